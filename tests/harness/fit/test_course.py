"""How a production load goes over the day, from recordings of perfmon and sar."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from harness.fit.exports import DISK, comments, fitted, log_of, pair, perfmon

from pinchpoint.base.errors import InputError
from pinchpoint.fit.fit import fit
from pinchpoint.fit.rates import Course
from pinchpoint.fit.recording import recorded
from pinchpoint.plan import load_plan

NINE_S = datetime(2026, 11, 20, 9, tzinfo=UTC).timestamp()
NINE_TO_TEN = (NINE_S, NINE_S + 3600)
READ_ONLY = {"query": "SELECT 1", "calls": 10050, "rows": 10050, "shared_blks_hit": 10050}


def of(*paths: str, zone: Any = None, host: str | None = None) -> Course:
    """The course of recordings, beside statements that were counted from nine to ten."""
    return recorded([Path(path) for path in paths], zone, host, NINE_TO_TEN)


def test_a_recording_says_how_the_load_goes_over_the_day(tmp_path: Path) -> None:
    """The busiest hour beside the time of the statistics; bursts, where it has them; sizes of I/Os."""
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
    """The same hour of the same recording, by two clocks."""
    day = perfmon(tmp_path / "day.csv", peak_hour=14)
    assert of(day, zone=ZoneInfo("Asia/Tokyo")).busiest == "the busiest hour, 2026-11-20 23:00 Asia/Tokyo"
    east = of(day, zone=timezone(timedelta(hours=2)))
    assert east.busiest == "the busiest hour, 2026-11-20 16:00 UTC+02:00"
    assert east.hours[16] == pytest.approx(3, rel=0.03)


def test_an_hour_that_comes_twice_is_two_hours(tmp_path: Path) -> None:
    """When clocks go back, the load of the second is not added to the first's."""
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
    """Half a day; a day without the time of the statistics; less than two hours."""
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
    """Batches of SQL Server in the same log; how large a write to its log was."""
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
    """A day as ``sadf -j`` prints it: reads and writes of a disk are one figure there."""
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
    """Its day is as good; sizes are of both."""
    found = of(sadf(tmp_path / "sa20.json", peak_hour=16))
    assert found.busiest == "the busiest hour, 2026-11-20 16:00 UTC"
    assert found.peak_ratio == pytest.approx(4, rel=0.02)
    assert {name: figure.value for name, figure in found.figures.items()} == {"disk_io_bytes": 8 * 1024}


def test_several_machines_are_told_apart(tmp_path: Path) -> None:
    """Never added up; one of them can be named, also by its name alone."""
    paths = [perfmon(tmp_path / f"{host}.csv", peak_hour=9, host=host) for host in ("SQL1", "APP1.example")]
    with pytest.raises(InputError, match=r"of several machines \(SQL1, APP1\.example\); say whose day it is"):
        of(*paths)
    assert of(*paths, host="app1").peak_ratio == pytest.approx(1, rel=0.02)
    with pytest.raises(InputError, match=r"--host sql2: no recording is of that machine; there is SQL1"):
        of(*paths, host="sql2")
    with pytest.raises(InputError, match=r"is the same as .*SQL1\.csv; give each recording once"):
        of(paths[0], paths[0])


def test_a_recording_without_a_disk_is_refused(tmp_path: Path) -> None:
    """The counters that are needed are named."""
    path = log_of(tmp_path / "idle.csv", "S", [f"LogicalDisk(L:)\\{n}" for n in DISK], 60, lambda _: [0] * 4)
    with pytest.raises(
        InputError, match=r"idle\.csv: no disk did any I/O in it.*LogicalDisk of perfmon, sar -d"
    ):
        of(path)


def test_a_recording_makes_the_load_profile(tmp_path: Path) -> None:
    """Outside of the recording, beside its mean; the burst load has the hour's mean; hours are listed."""
    sources = pair(tmp_path, READ_ONLY)
    recording = perfmon(tmp_path / "day.csv", peak_hour=14, bursts=True)
    plan, text = fitted(tmp_path, *sources, recording, zone=ZoneInfo("Europe/Berlin"))
    load = plan["scenarios"]["production"]["load"]
    assert load["model"] == "burst"
    share = load["for_s"] / load["every_s"]
    mean = load["base_per_s"] * (1 - share) + load["peak_per_s"] * share
    assert mean == pytest.approx(100 * 300 / (100 * 23 / 24 + 300 / 24), rel=0.05)
    assert load["peak_per_s"] / load["base_per_s"] == pytest.approx(6, rel=0.05)
    assert plan["production"]["reads_per_s"] == pytest.approx(mean, rel=0.05)
    assert plan["phases"]["measure"]["at_most_s"] == 3 * load["every_s"]
    said = comments(text)
    assert "the busiest hour, 2026-11-20 15:00 Europe/Berlin" in said
    assert "15h x 2.65, 16h x 0.923" in said
    assert " times as much for 120 s every 600 s, at once (seen every 60 s)" in said
    assert "day.csv has nothing of the time in which the statements were counted" in said


def office(path: Path, hours: int = 24) -> str:
    """A day with a night at 50, eight hours at 400, and two hours up and two down."""
    levels = [50] * 7 + [150, 300] + [400] * 8 + [300, 150] + [50] * 5

    def cells(minute: int) -> list[float]:
        rate = levels[(minute - 1) // 60 % 24]  # a reading is of the minute before
        return [rate / 2, rate / 2, rate * 4096, rate * 4096]

    return log_of(path, "SQL1", [f"LogicalDisk(L:)\\{name}" for name in DISK], hours * 60 + 1, cells)


def test_a_whole_day_can_be_the_load(tmp_path: Path) -> None:
    """As a quiet level, a busy one and the way between, in as long as is wanted; its mean is the day's."""
    sources = [*pair(tmp_path, READ_ONLY), office(tmp_path / "day.csv")]
    text = fit(sources, 1, lambda _: None, None, None, 24 * 60)
    (tmp_path / "plan.yaml").write_text(text)
    plan = load_plan(tmp_path / "plan.yaml").to_json()
    load = plan["scenarios"]["production"]["load"]
    assert (load["model"], load["every_s"]) == ("burst", 24 * 60)
    assert plan["phases"]["measure"]["at_most_s"] == 24 * 60
    day = (50 * 12 + 2 * 150 + 2 * 300 + 8 * 400) / 24
    mean = 100 * 1.0  # the statements' rate is taken for the recording's mean
    assert load["base_per_s"] == pytest.approx(mean * 50 / day, rel=0.1)
    assert load["peak_per_s"] == pytest.approx(mean * 400 / day, rel=0.1)
    assert load["for_s"] == pytest.approx(11 * 60, abs=90)
    share = (load["for_s"] - load["ramp_s"]) / load["every_s"]
    assert load["base_per_s"] * (1 - share) + load["peak_per_s"] * share == pytest.approx(mean, rel=0.02)
    assert plan["production"]["reads_per_s"] == pytest.approx(mean, rel=0.02)
    assert "bursts within its hours are not in it" in comments(text)


def test_a_day_that_is_not_known_cannot_be_the_load(tmp_path: Path) -> None:
    """Hours that were not recorded, none at all, an even day."""
    statements = pair(tmp_path, READ_ONLY)
    for said, *more in (
        (
            r"--day: half\.csv has no 1[23]h, .*23h: the day's course is not known",
            office(tmp_path / "half.csv", 12),
        ),
        (r"--day: before\.csv, after\.csv do not tell how the load goes over the day",),
        (r"--day: even\.csv: the day is even", perfmon(tmp_path / "even.csv", peak_hour=99)),
    ):
        with pytest.raises(InputError, match=said):
            fit([*statements, *more], 1, lambda _: None, None, None, 600)


def test_a_time_zone_that_nobody_named_is_said(tmp_path: Path) -> None:
    """Its times were taken for UTC: the plan says so, and how to say it."""
    path = Path(perfmon(tmp_path / "typeperf.csv", peak_hour=14))
    path.write_text(path.read_text().replace(" (UTC)(0)", ""))
    plan, text = fitted(tmp_path, *pair(tmp_path, READ_ONLY), str(path))
    assert plan["production"]["reads_per_s"] > 0
    assert "typeperf.csv: " in comments(text)
    assert "--zone" in comments(text)
