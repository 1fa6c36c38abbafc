"""The load over the day from recordings of perfmon and sar."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from harness.fit.exports import DISK, log_of, perfmon

from pinchpoint.base.errors import InputError
from pinchpoint.fit.fit import recorded
from pinchpoint.fit.rates import LoadCourse

NINE_S = datetime(2026, 11, 20, 9, tzinfo=UTC).timestamp()
NINE_TO_TEN = (NINE_S, NINE_S + 3600)


def of(*paths: str, zone: Any = None, host: str | None = None) -> LoadCourse:
    """Return the course of recordings beside statement statistics from nine to ten."""
    return recorded([Path(path) for path in paths], zone, host, NINE_TO_TEN)


def test_a_recording_says_how_the_load_goes_over_the_day(tmp_path: Path) -> None:
    """A recording gives the busiest hour, bursts if any, and I/O sizes."""
    even = of(perfmon(tmp_path / "even.csv", peak_hour=14))
    assert even.busiest == "the busiest hour, 2026-11-20 14:00 UTC"
    assert even.peak_ratio == pytest.approx(3, rel=0.02)
    assert even.bursts is None
    assert even.what == "I/Os"
    sizes = {name: figure.value for name, figure in even.figures.items()}
    assert sizes == pytest.approx({"disk_read_bytes": 8192, "disk_write_bytes": 16384})
    assert even.hours[14] == pytest.approx(3, rel=0.03)
    assert even.hours[3] == pytest.approx(1, rel=0.03)
    assert not even.notes
    uneven = of(perfmon(tmp_path / "bursts.csv", peak_hour=14, bursts=True))
    assert uneven.bursts is not None
    assert uneven.bursts.peak_ratio / uneven.bursts.base_ratio == pytest.approx(6, rel=0.05)
    assert uneven.bursts.every_s == 600
    assert uneven.bursts.for_s == pytest.approx(120, rel=0.1)


def test_hours_are_told_by_the_clock_on_the_wall(tmp_path: Path) -> None:
    """The hours follow the given time zone's clock."""
    day = perfmon(tmp_path / "day.csv", peak_hour=14)
    assert of(day, zone=ZoneInfo("Asia/Tokyo")).busiest == "the busiest hour, 2026-11-20 23:00 Asia/Tokyo"
    east = of(day, zone=timezone(timedelta(hours=2)))
    assert east.busiest == "the busiest hour, 2026-11-20 16:00 UTC+02:00"
    assert east.hours[16] == pytest.approx(3, rel=0.03)


def test_an_hour_that_comes_twice_is_two_hours(tmp_path: Path) -> None:
    """When clocks go back, the repeated hour counts as two hours."""
    begins = datetime(2026, 10, 24, 22, tzinfo=UTC)
    counters = (f"\\\\S\\LogicalDisk(L:)\\Disk {name}/sec" for name in ("Reads", "Writes"))
    head = ",".join(f'"{cell}"' for cell in ("(PDH-CSV 4.0) (UTC)(0)", *counters))
    lines = [head]
    for minute in range(6 * 60):
        at = begins + timedelta(minutes=minute)
        rate = 500 if at.hour == 1 else 100  # the second 02:00 in Berlin
        lines.append(f'"{at:%m/%d/%Y %H:%M:%S}.000","{rate}","0"')
    path = tmp_path / "night.csv"
    path.write_text("\n".join(lines) + "\n")
    found = recorded([path], ZoneInfo("Europe/Berlin"), None, None)
    assert found.busiest == "the busiest hour, 2026-10-25 02:00 Europe/Berlin"
    assert found.peak_ratio == pytest.approx(500 / ((5 * 100 + 500) / 6), rel=0.03)
    assert found.hours[2] == pytest.approx((500 + 100) / 2 / ((5 * 100 + 500) / 6), rel=0.03)


def test_what_a_recording_leaves_out_is_said(tmp_path: Path) -> None:
    """Half a day, a day without the statistics' time, and less than two hours are each reported."""
    (part,) = of(perfmon(tmp_path / "half.csv", peak_hour=3, minutes=12 * 60)).notes
    assert part == (
        "half.csv covers 0 whole days, and 12.0 h of 2026-11-20: a busier hour may lie in what was not "
        "recorded"
    )
    short = of(perfmon(tmp_path / "short.csv", peak_hour=23, minutes=40))
    assert (short.busiest, short.peak_ratio) == ("all 39 min of it", 1)
    assert "nothing of the time in which the statements were counted" in short.notes[0]
    begun = of(perfmon(tmp_path / "begun.csv", peak_hour=10, minutes=10 * 60 + 10))
    assert begun.busiest != "the busiest hour, 2026-11-20 10:00 UTC", "ten minutes are no hour"


def test_what_the_server_was_asked_is_better_than_what_its_disks_did(tmp_path: Path) -> None:
    """SQL Server batches are preferred to disk I/O; the size of a log write is found."""
    counters = [f"LogicalDisk(L:)\\{name}" for name in DISK[:2]]
    counters += ["SQLServer:SQL Statistics\\Batch Requests/sec"]
    counters += [
        f"SQLServer:Databases(_Total)\\{name}" for name in ("Log Bytes Flushed/sec", "Log Flushes/sec")
    ]
    path = log_of(
        tmp_path / "sql.csv", "SQL1", counters, 1440, lambda m: [9, 9, 400 if m // 60 == 11 else 200, 8000, 2]
    )
    found = of(path)
    assert (found.what, found.busiest) == ("the server's batches", "the busiest hour, 2026-11-20 11:00 UTC")
    assert found.peak_ratio == pytest.approx(2, rel=0.02)
    assert found.figures["log_write_bytes"].value == pytest.approx(4000)


def sadf(path: Path, *, peak_hour: int) -> str:
    """Return a day as ``sadf -j`` prints it, with reads and writes of a disk as one figure."""
    statistics = []
    for tenth in range(1, 145):
        at = datetime(2026, 11, 20, tzinfo=UTC) + timedelta(minutes=10 * tenth)
        rate = 400.0 if (tenth * 10 - 5) // 60 == peak_hour else 100.0
        disk = {
            "disk-device": "sda",
            "tps": rate,
            "rkB": rate * 2,
            "wkB": rate * 6,
            "aqu-sz": 0.1,
            "await": 1.0,
        }
        stamp = {"date": f"{at:%Y-%m-%d}", "time": f"{at:%H:%M:%S}", "utc": 1, "interval": 600}
        statistics.append({"timestamp": stamp, "disk": [disk]})
    host = {
        "nodename": "db1",
        "sysname": "Linux",
        "machine": "x86_64",
        "number-of-cpus": 4,
        "file-date": "2026-11-20",
        "file-utc-time": "00:00:00",
        "statistics": statistics,
    }
    path.write_text(json.dumps({"sysstat": {"hosts": [host]}}), encoding="utf-8")
    return str(path)


def test_sars_disks_are_reads_and_writes_together(tmp_path: Path) -> None:
    """A day of sar is as good as one of perfmon; I/O sizes are over reads and writes."""
    found = of(sadf(tmp_path / "sa20.json", peak_hour=16))
    assert found.busiest == "the busiest hour, 2026-11-20 16:00 UTC"
    assert found.peak_ratio == pytest.approx(4, rel=0.02)
    assert {name: figure.value for name, figure in found.figures.items()} == {"disk_io_bytes": 8 * 1024}


def test_several_machines_are_told_apart(tmp_path: Path) -> None:
    """Several machines are never added up; one can be selected, also by its short name."""
    paths = [perfmon(tmp_path / f"{host}.csv", peak_hour=9, host=host) for host in ("SQL1", "APP1.example")]
    with pytest.raises(InputError, match=r"of several machines \(SQL1, APP1\.example\); choose one"):
        of(*paths)
    assert of(*paths, host="app1").peak_ratio == pytest.approx(1, rel=0.02)
    with pytest.raises(InputError, match=r"--host sql2: no recording contains that machine; found: SQL1"):
        of(*paths, host="sql2")
    with pytest.raises(InputError, match=r"is the same as .*SQL1\.csv; give each recording once"):
        of(paths[0], paths[0])


def test_a_recording_without_a_disk_is_refused(tmp_path: Path) -> None:
    """A recording without disk counters is refused with the names of the needed ones."""
    path = log_of(tmp_path / "idle.csv", "S", [f"LogicalDisk(L:)\\{n}" for n in DISK], 60, lambda _: [0] * 4)
    with pytest.raises(
        InputError, match=r"idle\.csv: no disk did any I/O in it.*LogicalDisk of perfmon, sar -d"
    ):
        of(path)
