"""A probe's page and terminal text: complete, escaped, without network, for each kind of probe."""

from __future__ import annotations

from dataclasses import replace

import pytest
from harness.probe.build import Disk, declared, probe_of

from pinchpoint.probe.figures import figures
from pinchpoint.probe.judge import judge
from pinchpoint.probe.record import Probe, Trial
from pinchpoint.probe.target import of_profile
from pinchpoint.probe.verdict import ProbeVerdict
from pinchpoint.report import html
from pinchpoint.report.probe import against_catalogue, grid_of_patterns, probe_text, workloads
from pinchpoint.report.probe_page import MARGIN, document
from pinchpoint_infra.catalogue import profile
from pinchpoint_scenarios.storage_probe import SUITES


def page(probe: Probe, verdict: ProbeVerdict) -> str:
    return html.write(document(probe, verdict)).replace("\xa0", " ")  # between figures and units


def one_of_each() -> dict[str, Probe]:
    """Return a probe of every suite; cells of dd and bonnie++ have no I/O counts."""
    found = {
        name: probe_of(Disk(0.001, 500, 60e6), suite=name, repeat=3, course=name == "stability", seconds=40)
        for name in SUITES
        if name not in ("sequential", "bonnie", "iometer-full")
    }
    for name in ("sequential", "bonnie"):
        probe = probe_of(lambda _cell, _trial: 50.0, suite=name, repeat=12, course=False)
        for cell, trials in probe.cells.items():
            probe.cells[cell] = [Trial(one.number, one.started, 1.0, read_bytes_per_s=60e6) for one in trials]
        found[name] = probe
    return found


@pytest.mark.parametrize("name", one_of_each())
def test_every_suite_has_a_page_and_a_text(name: str) -> None:
    probe = one_of_each()[name]
    verdict = judge(probe)
    made, text = page(probe, verdict), probe_text(probe, verdict)
    assert "<script" not in made
    assert 'src="' not in made  # and the policy allows no network at all
    assert "default-src &#39;none&#39;" in made
    assert made.count("<svg") >= 1
    assert next(iter(probe.cells)).workload in text
    assert "None" not in text


def test_charts_of_a_matrix_have_the_line() -> None:
    """The charts have IOPS and latency over outstanding I/Os with the line, throughput, and time."""
    probe = probe_of(Disk(0.001, 500, 60e6), suite="iometer", repeat=3, course=False)
    made = page(probe, judge(probe))
    assert made.count("<figure") == 3
    assert "IOPS and latency by queue depth; red: 20 ms" in made
    assert "outstanding I/Os" in made


def test_charts_have_room_for_a_browser_s_letters_and_scroll_on_a_phone() -> None:
    """Charts have room for wide browser letters, and scroll on a phone instead of shrinking."""
    probe = probe_of(Disk(0.001, 500, 60e6))
    for chart in document(probe, judge(probe)).parts[0].charts:
        assert chart.spec["padding"] == MARGIN
        assert MARGIN["left"] >= 0.25 * 24 * 6  # a quarter of 24 letters of 6 px
    assert '<div class="scroll"><svg' in page(probe, judge(probe))


def test_names_are_escaped() -> None:
    probe = probe_of(Disk(0.001, 500, 60e6), said=declared("azure/p10"))
    probe.where = replace(probe.where, folder="/srv/<b>&", model="<script>")
    made = page(probe, judge(probe))
    assert "<script>" not in made
    assert "&lt;b&gt;&amp;" in made


def test_the_distance_to_what_is_declared_is_told_everywhere() -> None:
    """500 of a P30's 5,000 IOPS, striped twice, are shown as 5 % in terminal and page."""
    said = of_profile(profile("azure/p30"), 2)
    probe = probe_of(Disk(0.001, 500, 60e6), said=said)
    verdict = judge(probe)
    for made in (page(probe, verdict), probe_text(probe, verdict)):
        assert "Reached at most 5 % of the IOPS and 15 % of the bytes per second of 2 x azure/p30" in made


def test_crystaldiskmark_has_its_grid() -> None:
    """CrystalDiskMark has a grid of bytes, IOPS and latency by pattern; other suites have none."""
    probe = probe_of(Disk(0.001, 500, 60e6), repeat=3)
    table = grid_of_patterns(figures(probe))
    patterns = ["SEQ1M Q8T1", "SEQ1M Q1T1", "RND4K Q32T1", "RND4K Q1T1"]
    assert [row["pattern"] for row in table.rows] == patterns
    shown = [column.cell(table.rows[2]) for column in table.columns]
    assert shown == ["RND4K Q32T1", *["2.05 MB/s"] * 3, *["500/s"] * 3, *["64 ms"] * 3]
    assert "The grid of CrystalDiskMark" in page(probe, judge(probe))
    older = probe_of(Disk(0.001, 500, 60e6), suite="crystaldiskmark-3", repeat=1)
    assert [row["pattern"] for row in grid_of_patterns(figures(older)).rows] == [
        *("Seq Q1T1", "512K Q1T1", "4K Q1T1", "4K Q32T1")
    ]
    other = probe_of(Disk(0.001, 500, 60e6), suite="database", repeat=1)
    assert grid_of_patterns(figures(other)).rows == []


def test_figures_stand_beside_the_limits_of_disk_and_machine() -> None:
    """A P10 on a D4s v3 is compared with its baseline, its burst, and the machine's two limits."""
    probe = probe_of(Disk(0.001, 3500, 170e6), repeat=3, said=declared("azure/p10"))
    probe.where = replace(probe.where, machine="azure/d4s_v3", farm="prod", disk="sql.log")
    table = against_catalogue(probe, figures(probe))
    assert [(row["iops"], row["bytes_per_s"]) for row in table.rows] == [
        (500, 100e6),
        (3500, 170e6),
        (6400, 96e6),
        (8000, 200e6),
    ]
    assert [round(row["write_iops"], 2) for row in table.rows] == [7, 1, 0.55, 0.44]
    assert "writes 3,500/s and 170 MB/s" in table.note
    made = page(probe, judge(probe))
    assert "What was measured beside what is allowed" in made
    assert "Machine type" in made
    assert against_catalogue(probe_of(Disk()), {}).rows == []


def test_an_emulated_disk_is_called_so() -> None:
    """An emulated disk is labelled as emulated, with the method, on page and terminal."""
    probe = probe_of(Disk(0.001, 500, 60e6))
    probe.where = replace(probe.where, farm="dev", disk="sql.log", emulated="FUSE time model")
    verdict = judge(probe)
    for made in (page(probe, verdict), probe_text(probe, verdict)):
        assert "sql.log of dev is emulated (FUSE time model)" in " ".join(made.split())


def test_a_line_that_not_even_one_holds_is_not_called_unmeasured() -> None:
    """A line missed at one outstanding is shown as such, and a missing latency as not measured."""
    slow = probe_of(Disk(0.116), suite="crystaldiskmark", repeat=1)
    [row] = [row for row in workloads(judge(slow), 0.02).rows if row["workload"] == "SEQ1M write"]
    assert (row["holds"], row["crossed"]) == (0, 1)
    table = workloads(judge(slow), 0.02)
    [column] = [column for column in table.columns if column.key == "holds"]
    assert column.cell(row) == "none"
    untold = workloads(judge(one_of_each()["sequential"]), 0.02)
    assert all(column.cell(row) == "no latency" for row in untold.rows)


def test_what_was_not_measured_is_said_with_its_reason() -> None:
    probe = probe_of(Disk(0.001, 500, 60e6), suite="sequential", repeat=5, course=False)
    cell = list(probe.cells)[-1]
    probe.cells[cell] = [
        replace(one, failed="hdparm: only root may read a device") for one in probe.cells[cell]
    ]
    verdict = judge(probe)
    for made in (page(probe, verdict), probe_text(probe, verdict)):
        assert "only root may read a device" in made
        assert "not measured" in made


def test_a_probe_of_which_nothing_was_measured_has_a_page() -> None:
    probe = probe_of(Disk())
    probe.cells = {cell: [] for cell in probe.cells}
    verdict = judge(probe)
    assert "Nothing was measured" in page(probe, verdict)
    assert "Nothing was measured" in probe_text(probe, verdict)


def test_what_is_not_measured_yet_is_counted_not_listed() -> None:
    """An interrupted matrix shows three rows and the number of missing cells."""
    probe = probe_of(Disk(0.001, 500, 60e6), suite="iometer-full", repeat=1)
    for number, trials in enumerate(probe.cells.values()):
        if number >= 3:
            trials.clear()
    probe = replace(probe, state="interrupted")
    verdict = judge(probe)
    text = probe_text(probe, verdict)
    assert f"Not measured yet: {len(probe.cells) - 3} of {len(probe.cells)} cells." in text
    assert len(text.splitlines()) < 30
    assert "…" not in text
    assert "4K 50% random" not in page(probe, verdict)
