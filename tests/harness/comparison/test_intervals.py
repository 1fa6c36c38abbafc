"""The course of a figure in the verdict: the same figure, step by step, over the same time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.analysis.build import Build, crawl_bound_by_search

from pinchpoint.analysis import analyse
from pinchpoint.comparison.intervals import courses_of
from pinchpoint.data.inputs import read_inputs


def crawl() -> Build:
    """Return a crawl with its own log and two disks."""
    build = crawl_bound_by_search(measure_s=60)
    source = {
        "source": "sharepoint",
        "count": 5600,
        "failures": 0,
        "skipped": 0,
        "duration_s": 70.0,
        "repository_latency_s": 0.02,
        "complete": True,
    }
    return build.event("crawl_ended", 70, scenario="crawl", sources=[source])


def test_every_mean_and_percentile_has_its_course() -> None:
    """Throughput, percentiles, disks, CPUs and sources have courses that give the verdict's values."""
    run = crawl().run()
    verdict = analyse(run).to_json()
    found = courses_of(run, read_inputs(run), verdict)
    figures: dict[Any, float] = {
        ("scenario", "crawl", None, None, name): verdict["scenarios"]["crawl"][name]
        for name in ("throughput_per_s", "service_p50_s", "service_p95_s")
    }
    log = next(row for row in verdict["disks"] if row["role"] == "log")
    figures |= {
        ("disk", "sql", "sql1", "log", name): log[name] for name in ("write_latency_mean_s", "iops_mean")
    }
    cpu = next(row for row in verdict["cpus"] if row["tier"] == "search")
    figures |= {("cpu", "search", "search1", None, "busy_mean_ratio"): cpu["busy_mean_ratio"]}
    figures |= {
        ("source", "sharepoint", None, None, name): verdict["crawl"][0][name]
        for name in ("rate_per_s", "repository_latency_s")
    }
    assert figures.keys() <= found.keys()
    for key, figure in figures.items():
        assert found[key].value == pytest.approx(figure, rel=0.05), key
    assert found["scenario", "crawl", None, None, "service_p95_s"].value == pytest.approx(
        verdict["scenarios"]["crawl"]["service_p95_s"], rel=1e-9
    )


def test_a_maximum_and_a_count_have_none() -> None:
    """A maximum and a count have no course, because no resample can show more than was seen."""
    run = crawl().run()
    found = courses_of(run, read_inputs(run), analyse(run).to_json())
    assert not {key for key in found if key[-1] in ("write_latency_max_s", "iops_max", "count", "failures")}


def test_a_figure_of_another_stretch_has_none() -> None:
    """A figure of a part of the run has no course, as with a load in steps."""
    run = crawl().run()
    verdict = analyse(run).to_json()
    verdict["scenarios"]["crawl"]["throughput_per_s"] *= 1.2
    found = courses_of(run, read_inputs(run), verdict)
    assert ("scenario", "crawl", None, None, "throughput_per_s") not in found
    assert ("scenario", "crawl", None, None, "service_p50_s") in found


def test_open_loads_have_response_times_too() -> None:
    """An open load has a course of its response time."""
    build = Build(measure_s=60).host("sql1", "sql").cpu("sql1", 0.3, 0.2)
    run = build.open("orders", "sql-mix", 100).operations("orders", "log_append", 100, 0.004).run()
    verdict = analyse(run).to_json()
    found = courses_of(run, read_inputs(run), verdict)["scenario", "orders", None, None, "response_p95_s"]
    assert found.value == pytest.approx(verdict["scenarios"]["orders"]["response_p95_s"], rel=1e-9)


def test_samples_alone_have_courses() -> None:
    """Disks and CPUs of recordings have courses without any operation."""
    build = Build(measure_s=60).host("sql1", "sql", disks={"log": "sdc"}, cores=())
    run = build.cpu("sql1", 0.5).disk("sql1", "sdc", 100, 0.005).run()
    verdict = analyse(run).to_json()
    found = courses_of(run, read_inputs(run), verdict)
    assert {key[0] for key in found} == {"disk", "cpu"}
    assert np.isfinite(found["disk", "sql", "sql1", "log", "write_latency_mean_s"].influence).all()
