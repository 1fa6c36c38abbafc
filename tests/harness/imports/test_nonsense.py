"""Impossible values in foreign files: not measured and counted; a whole column is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from collectors.imports.logs import IOSTAT, SADF, perfmon, row
from support import run_cli

from pinchpoint.base.errors import InputError
from pinchpoint.imports import HostPlaces, import_as_run, open_source, read_mapping
from pinchpoint.imports.reading import TimeSpan
from pinchpoint.store.read import open_run
from pinchpoint.store.samples import table
from pinchpoint_collectors.imports.record import Settings

START = 1_763_629_200
MAPPING = """
time: {{column: t, format: unix}}
host: db1
columns:
  v: {{metric: {metric}, scale: {scale}}}
"""


def mapped(folder: Path, cells: Iterable[object], metric: str = "cpu.busy_ratio", scale: float = 1.0) -> Path:
    """Return the run of an imported CSV with one column and one row per second."""
    rows = "".join(f"{START + at},{cell}\n" for at, cell in enumerate([0, *cells]))
    (folder / "m.csv").write_text("t,v\n" + rows, encoding="utf-8")
    (folder / "map.yaml").write_text(MAPPING.format(metric=metric, scale=scale), encoding="utf-8")
    mapping = read_mapping(folder / "map.yaml")
    return imported(folder / "m.csv", "csv", mapping=mapping)


def imported(path: Path, kind: str | None = None, **settings: Any) -> Path:
    """Return a file as a recording."""
    source = open_source(path, kind)
    return import_as_run([source], Settings(**settings), HostPlaces(), TimeSpan(), path.parent / "runs")


def values(run: Path, metric: str, instance: str = "") -> list[float | None]:
    """Return the run's values of a series in time order."""
    stored = open_run(run)
    rows = table(stored.samples).sort_by("time_ns").to_pylist()
    return [one["value"] for one in rows if (one["metric"], one["instance"]) == (metric, instance)]


def warned(run: Path) -> str:
    """Return the run's warnings."""
    return "\n".join(open_run(run).manifest["warnings"])


def test_a_cell_that_cannot_be_is_not_measured(tmp_path: Path) -> None:
    """An impossible cell is null, and the warning has its value, number, first line and place."""
    cells = [0.5] * 60
    cells[10], cells[20] = 2000.0, -7.0
    run = mapped(tmp_path, cells)
    found = values(run, "cpu.busy_ratio")
    assert (found[10], found[20], found[30], len(found)) == (None, None, 0.5, 60)
    assert "m.csv: cpu.busy_ratio of db1: 2 impossible values, not measured" in warned(run)
    assert "the first is 2,000, in line 13; allowed: -0.1 to 1.5" in warned(run)


def test_a_column_of_nonsense_is_refused_with_its_unit(tmp_path: Path) -> None:
    """A column whose values are mostly impossible is refused with its unit."""
    with pytest.raises(InputError) as caught:
        mapped(tmp_path, [0.5] * 3 + [4300] * 57)
    assert "m.csv:6: cpu.busy_ratio: 57 of 60 values above 1, median 4,300: perhaps percent x 100" in str(
        caught.value
    )
    assert "`scale: 0.0001`" in str(caught.value)


def test_percentages_of_an_idle_machine_are_refused(tmp_path: Path) -> None:
    """Percentages mapped as ratios are refused although most of them are below 1."""
    with pytest.raises(InputError, match=r"5 of 60 values above 1, median 12: perhaps percent"):
        mapped(tmp_path, [0.7] * 55 + [3, 12, 12, 40, 60])


@pytest.mark.parametrize(
    ("metric", "odd", "fine"),
    [
        ("disk.write_latency_s", "39600", 45.0),
        ("disk.writes_per_s", "1e308", 2e6),
        ("disk.writes_per_s", "-1.87", 0.0),
        ("disk.writes_per_s", "9" * 400, 1.0),
        ("mem.available_bytes", "1e30", 1e13),
        ("db.batches_per_s", "1e300", 1e5),
        ("cpu.busy_ratio", "-3.5", 1.0001),
    ],
)
def test_physical_bounds_of_a_mapped_column(tmp_path: Path, metric: str, odd: str, fine: float) -> None:
    """Large but possible values of a mapped column are kept beside impossible ones."""
    run = mapped(tmp_path, [fine, odd, fine, fine], metric)
    assert values(run, metric) == [fine, None, fine, fine]
    assert f"{metric} of db1: 1 impossible value" in warned(run)


@pytest.mark.parametrize("cell", ["1_000", "0x10", "١٢٣", "1e", "--1", "1 2", "0b1", "True"])
def test_only_numbers_are_numbers(tmp_path: Path, cell: str) -> None:
    """Spellings that Python accepts as numbers and recorders do not write are refused."""
    with pytest.raises(InputError, match=r"m.csv:3: found .* where a number should be"):
        mapped(tmp_path, [cell, 0.5, 0.5])
    path = tmp_path / "p.csv"
    path.write_text(perfmon([row(), [cell, *row()[1:]], row()]), encoding="utf-8")
    with pytest.raises(InputError, match=r"p.csv:4: found .* where a number should be"):
        imported(path)


@pytest.mark.parametrize("cell", ["inf", "Infinity", "-inf", "nan", "-nan(ind)", "1.#QNAN"])
def test_words_for_no_number_are_not_measured(tmp_path: Path, cell: str) -> None:
    """Words for a missing number are not measured, and neither 0 nor an error."""
    assert values(mapped(tmp_path, [0.5, cell, 0.5]), "cpu.busy_ratio") == [0.5, None, 0.5]


def sadf(change: Callable[[dict[str, Any]], None], count: int = 10, odd: int = 5) -> str:
    """Return a sar log with one changed record."""
    content = json.loads(SADF)
    (record,) = content["sysstat"]["hosts"][0]["statistics"]
    records = [json.loads(json.dumps(record)) for _ in range(count)]
    for at, each in enumerate(records):
        each["timestamp"]["time"] = f"00:{at + 10}:01"
        each["timestamp"]["interval"] = 60
    change(records[odd])
    content["sysstat"]["hosts"][0]["statistics"] = records
    return json.dumps(content)


def cpu_of(idle: float) -> Callable[[dict[str, Any]], None]:
    def change(record: dict[str, Any]) -> None:
        record["cpu-load"][0]["idle"] = idle

    return change


@pytest.mark.parametrize("idle", [-199_900.0, 700.0, 1e308, float("nan"), float("inf"), 10**290])
def test_sar_with_a_processor_of_200000_percent(tmp_path: Path, idle: float) -> None:
    """An idle share of 700 % in sar is not measured, rather than an idle CPU."""
    path = tmp_path / "sar.json"
    path.write_text(sadf(cpu_of(idle)), encoding="utf-8")
    run = imported(path)
    found = values(run, "cpu.busy_ratio")
    assert (found.count(None), found[5]) == (1, None)
    assert found[0] == pytest.approx(0.25)
    assert "cpu.busy_ratio of db1: 1 impossible value" in warned(run)


def test_integers_beyond_any_float(tmp_path: Path) -> None:
    """Integers of 400 or 5,000 digits are impossible values, not errors."""
    for figures in (400, 5000):
        path = tmp_path / f"sar{figures}.json"
        path.write_text(sadf(cpu_of(12345.0)).replace("12345.0", "9" * figures), encoding="utf-8")
        assert values(imported(path), "cpu.busy_ratio").count(None) == 1


def test_halves_of_characters(tmp_path: Path) -> None:
    r"""JSON with a lone surrogate ("\ud800") gives a run and all its reports."""
    path = tmp_path / "sar.json"
    text = SADF.replace('"sda"', '"s\\ud800a"').replace('"db1"', '"db\\udfff"')
    path.write_text(text, encoding="utf-8")
    done = run_cli("import", str(path), "--out", str(tmp_path / "runs"))
    assert done.returncode in (0, 3), done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    assert values(run, "disk.transfers_per_s", "s\ufffda") == [120.0]
    assert (run / "report.html").exists()


def test_iostat_with_a_latency_of_eleven_hours(tmp_path: Path) -> None:
    """One iostat report with an impossible latency is not measured, and the others are."""
    content = json.loads(IOSTAT)
    reports = content["sysstat"]["hosts"][0]["statistics"]
    for at in range(2, 8):
        reports.append(json.loads(json.dumps(reports[1])))
        reports[-1]["timestamp"] = f"2026-11-20T09:00:{5 * at:02d}+0100"
    reports[4]["disk"][0]["w_await"] = 39_600_000.0
    path = tmp_path / "iostat.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    run = imported(path)
    assert values(run, "disk.write_latency_s", "sda").count(None) == 1
    assert "disk.write_latency_s sda of db1: 1 impossible value" in warned(run)
    assert "the first is 39,600, at 2026-11-20T08:00:20.000Z; allowed: 0 to 3,600" in warned(run)


@pytest.mark.parametrize("when", ["1970-01-02", "2150-11-20", "9999-11-20"])
def test_times_that_cannot_be(tmp_path: Path, when: str) -> None:
    """Times of an unset clock or of the next century are refused."""
    path = tmp_path / "sar.json"
    path.write_text(SADF.replace('"date": "2026-11-20"', f'"date": "{when}"'), encoding="utf-8")
    with pytest.raises(InputError, match="allowed: times from 1980 to "):
        imported(path)


def test_a_recording_of_many_years_takes_no_memory_for_them(tmp_path: Path) -> None:
    """Two rows forty years apart are refused; a year with two rows needs little memory."""
    far = "".join(f"{at},0.5\n" for at in (START - 40 * 365 * 86_400, START))
    (tmp_path / "m.csv").write_text("t,v\n" + far, encoding="utf-8")
    said = MAPPING.format(metric="cpu.busy_ratio", scale=1.0) + "interval: 1s\n"
    (tmp_path / "map.yaml").write_text(said, encoding="utf-8")
    mapping = read_mapping(tmp_path / "map.yaml")
    with pytest.raises(InputError, match="allowed: 366 days at most"):
        imported(tmp_path / "m.csv", "csv", mapping=mapping)
    rows = "".join(f"{at},0.5\n" for at in (START - 300 * 86_400, START))
    (tmp_path / "m.csv").write_text("t,v\n" + rows, encoding="utf-8")
    run = imported(tmp_path / "m.csv", "csv", mapping=mapping)
    script = (
        "import sys; from pathlib import Path; from pinchpoint.analysis.saved import verdict_of\n"
        "verdict_of(Path(sys.argv[1]))\n"
        "status = Path('/proc/self/status').read_text()\n"
        "print(next(line.split()[1] for line in status.splitlines() if line.startswith('VmHWM')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(run)], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 1_500_000  # KiB; lines for 128 series of 2.6 million steps took twice that
