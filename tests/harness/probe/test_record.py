"""probe.json reads back as it was written, and a damaged file gives one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from harness.probe.build import Disk, declared, probe_of

from pinchpoint.base.errors import InputError
from pinchpoint.probe.figures import TrialMean, trial_figures
from pinchpoint.probe.judge import judge
from pinchpoint.probe.record import Probe, Trial, load, save
from pinchpoint.probe.suite_run import resumed
from pinchpoint.probe.verdict import probe_content
from pinchpoint.store import tool_histogram
from pinchpoint_scenarios.storage_probe import Cell


def test_a_probe_is_read_back_as_it_was(tmp_path: Path) -> None:
    """Everything in probe.json reads back; its figures and verdict are for other readers."""
    probe = probe_of(Disk(0.001, 500, 60e6), said=declared("azure/p10"))
    probe.versions, probe.prepared, probe.warnings = (
        {"fio": "fio-3.33"},
        {"bytes": 1.0, "seconds": 2.0},
        ["careful"],
    )
    save(tmp_path, probe_content(probe, judge(probe)))
    assert load(tmp_path) == probe
    said = json.loads((tmp_path / "probe.json").read_text())
    assert said["schema"] == "pinchpoint.probe/1"
    assert said["cells"][0]["figures"]["trials"] == 5
    assert "disk_cap" in said["verdict"]["kinds"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "cannot be read as JSON"),
        ('{"schema": "pinchpoint.run/1"}', "pinchpoint.probe/1"),
        ('{"schema": "pinchpoint.probe/1"}', "cells: missing"),
        ("[]", "all of it: found a list; allowed: an object"),
    ],
)
def test_a_file_that_is_no_probe(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "probe.json").write_text(content)
    with pytest.raises(InputError, match=words):
        load(tmp_path)


def test_a_folder_without_a_probe(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="it is not a probe"):
        load(tmp_path)


def test_percentiles_are_of_all_repetitions_together() -> None:
    """Percentiles merge all repetitions: p99 is 1 ms and p99.9 is 50 ms, not a mean."""
    start = "2026-01-01T00:00:00.000Z"
    first = Trial(
        1,
        start,
        1.0,
        100.0,
        0.0,
        0.0,
        0.0,
        tool_histogram.histogram({10**6: 99, 5 * 10**7: 1}),
        0.00149,
        0.05,
    )
    second = Trial(2, start, 1.0, 300.0, 0.0, 0.0, 0.0, tool_histogram.histogram({10**6: 100}), 0.001, 0.001)
    found = trial_figures([first, second])
    assert found.p50_s == pytest.approx(0.001, rel=0.001)
    assert found.p99_s == pytest.approx(0.001, rel=0.001)
    assert found.p999_s == pytest.approx(0.05, rel=0.001)
    assert found.max_s == 0.05
    assert found.iops is not None
    assert (found.iops.mean, found.iops.low, found.iops.high) == (200.0, 100.0, 300.0)
    assert found.mean_s == pytest.approx((0.00149 * 100 + 0.001 * 300) / 400)


def test_a_repetition_that_was_disturbed_is_in_the_mean_and_not_in_the_middle() -> None:
    """A disturbed repetition counts for the mean (133.3) but not for the median (137)."""
    one = TrialMean.of([137.0, 137.5, 125.5])
    assert (one.low, one.high, one.middle) == (125.5, 137.5, 137.0)
    assert one.mean == pytest.approx(400 / 3)
    assert one.spread_ratio == pytest.approx(6 / (400 / 3))
    assert one.usual_spread_ratio == pytest.approx(0.25 / 137)
    assert TrialMean.of([5.0, 7.0]).usual_spread_ratio == pytest.approx(1 / 6)
    assert TrialMean.of([5.0]).usual_spread_ratio == 0.0


def test_what_a_tool_does_not_tell_is_not_0() -> None:
    """A figure that a tool does not report (dd: latency, bonnie++: duration) stays None."""
    found = trial_figures([Trial(1, "2026-01-01T00:00:00.000Z", None, write_bytes_per_s=60e6)])
    assert (found.iops, found.mean_s, found.p99_s, found.max_s, found.seconds) == (
        None,
        None,
        None,
        None,
        None,
    )
    assert found.bytes_per_s is not None
    assert trial_figures([Trial(1, "2026-01-01T00:00:00.000Z", failed="no disk")]).failed == ("no disk",)


def test_histograms_of_any_latency_keep_three_digits() -> None:
    """Histograms from 1 µs to an hour are exact within a thousandth."""
    for value_ns in np.geomspace(2e3, 3e12, 60).astype(np.int64):
        [found] = tool_histogram.quantiles([tool_histogram.histogram({int(value_ns): 7})], [0.5])
        assert found == pytest.approx(value_ns / 1e9, rel=0.002, abs=1e-6)


def test_a_resumed_probe_tries_again_what_failed() -> None:
    probe = probe_of(Disk())
    cell = next(iter(probe.cells))
    probe.cells[cell].append(Trial(6, "2026-01-01T00:00:00.000Z", failed="no disk"))
    again: Probe = resumed(probe)
    assert (again.state, again.ended) == ("running", None)
    assert len(again.cells[cell]) == 5
    assert len(probe.cells[cell]) == 6


def test_cells_of_a_suite_have_names_of_their_own() -> None:
    assert Cell("RND4K read", 4096, 1.0, 1.0, 32).name == "RND4K read, 32 outstanding"
    assert Cell("dd read").name == "dd read"
