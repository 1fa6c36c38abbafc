"""Several sides on one page: runs and probes, compared in pairs, in every format."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path

import pytest
from harness.comparison.example import invalid, run
from harness.probe.build import Disk, geometric, probe_of
from support import run_cli

from pinchpoint.base.errors import InputError
from pinchpoint.comparison.saved import save
from pinchpoint.comparison.several_sides import (
    MOST,
    PairCall,
    SidesComparison,
    SidesFigure,
    compare_sides,
    load,
    ranked,
)
from pinchpoint.comparison.sides import Side
from pinchpoint.comparison.statistics import call_of, holm, welch
from pinchpoint.probe.judge import judge
from pinchpoint.probe.record import DeclaredDisk, DiskPrice, Probe
from pinchpoint.probe.record import save as save_probe
from pinchpoint.probe.several_probes import compare_probes, read_probes
from pinchpoint.probe.verdict import probe_content
from pinchpoint.report.charts import drawn_names
from pinchpoint.report.registry import FORMATS, write_reports
from pinchpoint.report.several_page import document, text
from pinchpoint_scenarios.storage_probe import Cell


def sides_of(rates: dict[str, float], runs: int = 5) -> list[Side]:
    """Return sides with about that crawl throughput, with small differences between the runs."""
    made = []
    for label, rate in rates.items():
        own = []
        for number in range(runs):
            one = run("dev" if label.startswith("dev") else "prod")
            one.verdict["scenarios"]["crawl"]["throughput_per_s"] = rate * (1 + 0.01 * (number - 2))
            own.append(one)
        made.append(Side(label, tuple(own)))
    return made


def figure(found: SidesComparison, name: str) -> SidesFigure:
    return next(one for one in found.figures if one.name == name and one.metric != "mean_s")


@pytest.mark.parametrize(
    ("rates", "standing"),
    [
        ({"a": 10, "b": 20, "c": 40}, ("worse", "worse", "best")),
        ({"a": 10, "b": 40, "c": 40.2}, ("worse", "equivalent", "tied")),
        ({"a": 10, "b": 20, "c": 21.4, "d": 5}, ("worse", "tied", "tied", "worse")),
    ],
)
def test_the_best_side_is_called_where_it_is_clear(
    rates: dict[str, float], standing: tuple[str | None, ...]
) -> None:
    """The best side is named where it is clearly better, equal within 5 %, or undecided."""
    found = compare_sides(sides_of(rates), metrics=["scenario.crawl.throughput_per_s"])
    one = figure(found, "scenario.crawl.throughput_per_s")
    assert one.standing == standing
    assert len(one.pairs) == len(list(combinations(rates, 2)))
    assert [other.judged for other in found.figures].count(True) == 1


def test_noise_is_hardly_ever_called_best() -> None:
    """In forty sets of four sides of one farm, "best" is rare: Holm's correction covers all pairs."""
    wrong = 0
    for attempt in range(40):
        chance = random.Random(attempt)
        values = [tuple(chance.lognormvariate(0, 0.1) for _ in range(5)) for _ in range(4)]
        pairs = list(combinations(range(4), 2))
        estimates = [welch(values[first], values[second]) for first, second in pairs]
        p = holm([one.p_within(1.05) if one else 1.0 for one in estimates])
        calls = [
            PairCall(pair, None, None, each, call_of(one, each, same=1.05, better="higher") if one else None)
            for pair, one, each in zip(pairs, estimates, p, strict=True)
        ]
        one = ranked(
            SidesFigure("x", "scenario", "throughput_per_s", "higher", True, tuple(values), tuple(calls))
        )
        wrong += "best" in ranked(one).standing
    assert wrong <= 2


def test_few_runs_and_invalid_ones_call_nothing() -> None:
    """Single runs without courses, and invalid runs, give no call."""
    few = compare_sides(sides_of({"a": 10, "b": 20, "c": 40}, runs=1))
    assert {pair.call for one in few.figures for pair in one.pairs} <= {None, "inconclusive"}
    assert any(said.startswith("Fewer than 5 runs on a side (a: 1, b: 1, c: 1)") for said in few.warnings)
    assert "c in 1; not confirmed: 1 run a side; 5 are needed." in str(few.answer)
    rows = next(part for part in document(few).parts if part.name == "figures").tables[0].rows
    assert rows[0]["standing"] == "not distinguishable from c (1 run a side; 5 are needed)"
    enough = compare_sides(
        sides_of({"a": 10, "b": 20, "c": 21.4}), metrics=["scenario.crawl.throughput_per_s"]
    )
    rows = next(part for part in document(enough).parts if part.name == "figures").tables[0].rows
    assert [row["standing"] for row in rows[1:]] == [
        "not distinguishable from c",
        "best median; not distinguishable from b",
    ]
    sides = sides_of({"a": 10, "b": 20, "c": 40})
    broken = Side("b", tuple(run("prod", **invalid()) for _ in range(5)))
    found = compare_sides([sides[0], broken, sides[2]], metrics=["scenario.crawl.throughput_per_s"])
    calls = {pair.sides: pair.call for pair in found.figures[0].pairs}
    assert calls == {(0, 1): "inconclusive", (0, 2): "better", (1, 2): "inconclusive"}
    assert not found.valid
    with pytest.raises(InputError, match=f"found 13 sides; allowed: 2 to {MOST}"):
        compare_sides(sides * 4 + sides[:1])


MATRIX = [Cell("8K random write", 8192, 0.0, 1.0, depth) for depth in geometric(1, 1024)]
SETUPS = {
    "hdd": Disk(service_s=lambda _: 1 / 288, uneven=0.08),
    "hdd-qos": Disk(service_s=lambda _: 1 / 288, iops=500, uneven=0.08),
    "ssd": Disk(floor_s=0.0004, iops=15600, uneven=0.002),
    "ssd-qos": Disk(floor_s=0.0004, iops=500),
}
"""Published figures of seed B's four setups."""


def probes(folder: Path) -> list[Path]:
    made = []
    for name, disk in SETUPS.items():
        probe: Probe = probe_of(disk, MATRIX, "iometer")
        (folder / name).mkdir(parents=True)
        save_probe(folder / name, probe_content(probe, judge(probe)))
        made.append(folder / name)
    return made


def test_four_probes_on_one_page_in_every_format(tmp_path: Path) -> None:
    """Seed B: each probe's thresholds under 20 ms and its limit, and the same from the saved files."""
    done = run_cli("compare", *probes(tmp_path), "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    directory = Path(done.stdout.splitlines()[-1])
    found = load(directory)
    assert found.labels == tuple(SETUPS)
    limits = {found.labels[one.side]: (one.kind, one.holds_to) for one in found.limits}
    assert limits == {
        "hdd": ("disk_device", 4),
        "hdd-qos": ("disk_device", 4),
        "ssd": ("disk_cap", 256),
        "ssd-qos": ("disk_cap", 8),
    }
    limited = (
        "Limits: hdd and hdd-qos: the device; ssd and ssd-qos: cap. Best, of 11 measurements: ssd in 11."
    )
    assert str(found.answer).startswith(limited)
    deep = figure(found, "8K random write, 1024 outstanding")
    assert deep.standing == ("worse", "worse", "best", "worse")
    call = deep.between(0, 1)
    assert call is not None
    assert call.call in ("equivalent", "inconclusive")
    written = write_reports(document(found), FORMATS, tmp_path / "all")
    assert all(path.stat().st_size > 500 for path in written)
    page = (directory / "report.html").read_text().replace("\xa0", " ")
    assert "IOPS and latency by queue depth; red: 20 ms" in page
    assert all(name in page for name in SETUPS)
    assert "8K random write" in text(found)


def rising(rate: float, _: Cell, trial: int) -> float:
    """Return a rate that rises slightly from trial to trial."""
    return rate + trial / 10


def test_repetitions_prices_and_bytes_of_large_io() -> None:
    """Seed E: MB/s over dd's trials, the widest gap in words, and the throughput per cost."""
    cells = [Cell("dd write", 2**20, 0.0, 0.0, 1), Cell("dd read", 2**20, 1.0, 0.0)]
    prices = {"persistent": 40.0, "ephemeral": 10.0, "mounted": None}
    made = []
    for name, price in prices.items():
        rate = {"persistent": 57.0, "ephemeral": 285.0, "mounted": 28.5}[name]
        probe = probe_of(partial(rising, rate), cells, "sequential", course=False)
        probe.where = replace(probe.where, farm=name, disk="nosql.data", emulated="FUSE time model")
        if price is not None:
            probe.declared = DeclaredDisk(price=DiskPrice("EUR", price))
        made.append(probe)
    found = compare_probes(made, [Path(name) for name in prices])
    assert [one.metric for one in found.figures if one.judged] == ["bytes_per_s", "bytes_per_s"]
    assert "The sides differ most in dd" in str(found.answer)
    assert "ephemeral is 9.9" in str(found.answer)
    assert str(found.answer).startswith("Best, of 2 measurements: ephemeral in 2.")
    assert "emulated disks, whose limits are those that farm.yaml gives them: persistent, ephemeral" in (
        " ".join(found.warnings)
    )
    part = next(one for one in document(found).parts if one.name == "figures")
    assert [chart.name for chart in part.charts] == ["throughput", "iops", "repetitions-1", "repetitions-2"]
    table = next(one for one in part.tables if one.name == "prices")
    assert table.title == "Highest throughput for 100 EUR a month"
    [first, *_] = table.rows
    assert first["side0"].endswith("150 MB/s")  # 60 MB/s for 40 EUR
    assert "side2" not in first


def test_what_is_saved_is_what_was_found(tmp_path: Path) -> None:
    found = compare_sides(sides_of({"dev": 10, "a/b<&>": 20, "c": 40}), ["disks"])
    directory = save(found, tmp_path)
    assert load(directory) == load(save(load(directory), tmp_path))
    assert json.loads((directory / "comparison.json").read_text()) == json.loads(json.dumps(found.to_json()))
    assert any(one.studied for one in found.differences)


HOSTILE = (
    *("<script>alert(1)</script>", "a\nb\tc", "\u202egnp.exe", "x" * 300, "=cmd|' /C calc'!A0", "| *md* `c`"),
    *("..", "", "日本語のサーバー" * 9, "../../etc/passwd", "&amp;\"'", "🚀" * 20),
)
"""Twelve names that a user or a host may have."""


def hostile_probes() -> SidesComparison:
    """Return twelve probes, some without the first cells, one with a failed cell."""
    made = []
    for at, name in enumerate(HOSTILE):
        disk = Disk(0.0004 * (at + 1), 500 * (at + 1))
        probe = probe_of(disk, MATRIX[at % 3 :], "iometer", repeat=1 + at % 6)
        probe.where = replace(probe.where, farm=name, disk="sql.log" if at % 2 else None, folder=name or "/")
        if at == 5:
            first = next(iter(probe.cells))
            probe.cells[first] = [replace(one, failed="fio: <b>boom</b>") for one in probe.cells[first]]
        made.append(probe)
    return compare_probes(made, [Path(f"/p/{at}") for at in range(12)])


def hostile_runs() -> SidesComparison:
    """Return twelve sides of runs, three of them without scenario figures."""
    sides = [one.runs for one in sides_of({str(at): 9.0 + at for at in range(12)}, runs=2)]
    for at in (0, 3, 6):
        sides[at] = tuple(replace(one, verdict={**one.verdict, "scenarios": {}}) for one in sides[at])
    return compare_sides([Side(*one) for one in zip(HOSTILE, sides, strict=True)], ["disks"])


@pytest.mark.parametrize("make", [hostile_probes, hostile_runs])
def test_twelve_sides_with_hostile_names(make: Callable[[], SidesComparison], tmp_path: Path) -> None:
    """Twelve sides with hostile names and missing values are drawn, written and read back."""
    found = make()
    directory = save(found, tmp_path)
    assert load(directory).labels == found.labels
    assert directory.parent == tmp_path
    written = write_reports(document(found), ("html", "md", "xlsx"), tmp_path / "written")
    page = written[0].read_text()
    assert "<script>alert" not in page
    assert "<b>boom" not in page
    assert page.count("<svg") >= 2
    assert text(found)


def test_a_warning_names_its_side_not_a_folder_that_several_have() -> None:
    """A warning names its side where three probes have the same folder and one has spent credits."""
    places = [
        Path(__file__).parents[2] / "golden_runs" / "probes" / name for name in ("uneven", "device", "floor")
    ]
    found = compare_probes(read_probes(places), places)
    assert any(one.startswith("uneven: RND4K read fell to a lower") for one in found.warnings)
    assert any(one.startswith("uneven: a cache on the host is suspected: reads") for one in found.warnings)
    assert not any(one.startswith("/srv/data") for one in found.warnings)


def test_names_of_charts_are_short_and_apart() -> None:
    """Chart names are one line of at most 30 letters; equal shortened names get a number."""
    names = drawn_names(["x" * 300, "x" * 299, "", "a\nb", "🚀" * 20])
    assert names == ["x" * 29 + "…", "x" * 29 + "… (2)", "(no name)", "a b", "🚀" * 14 + "…"]


def test_probes_with_nothing_in_common_are_no_sides() -> None:
    cells = [[Cell(f"{size} write", size, 0.0, 1.0, 1)] for size in (4096, 8192, 65536)]
    made = [probe_of(Disk(), each) for each in cells]
    with pytest.raises(InputError, match="have no measurement with the same block size"):
        compare_probes(made, [Path("a"), Path("b"), Path("c")])
