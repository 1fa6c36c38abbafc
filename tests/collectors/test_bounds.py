"""Tests of the possible range of each metric: all metrics have one, and large values are kept."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from collectors.imports.test_formats import FILES, read

import pinchpoint_collectors
from pinchpoint_collectors import bounds
from pinchpoint_collectors.exporters.tables import EXPORTERS
from pinchpoint_collectors.imports.mapped_csv import METRICS
from pinchpoint_collectors.record import Sample
from pinchpoint_collectors.windows.counters import LOGGED

ROOT = Path(pinchpoint_collectors.__file__).parents[2]
_NAME = r"(?:cpu|mem|disk|net|pressure|db|search|generator|collector)\.[a-z][a-z_.]*[a-z]"
_LITERAL = re.compile(rf"\"({_NAME})\"")
_IN_README = re.compile(rf"`({_NAME})`")
NO_METRICS = frozenset({"cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us", "mem.resident"})
"""Control group files, and a field of MongoDB."""
GROUPS = frozenset({"disk.write", "disk.data_write", "collector.clock"})
"""Prefixes of names."""
AT = 1_763_629_200 * 10**9


def all_metrics() -> set[str]:
    """Return all metrics of the documentation, the tables and the source code."""
    found = set(METRICS)
    found |= {each.metric for counters in LOGGED.values() for each in counters.values()}
    found |= {each.metric for exporter in EXPORTERS for each in exporter.means.values()}
    readme = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    rows = "\n".join(line for line in readme.splitlines() if line.startswith("|"))
    found |= set(_IN_README.findall(rows))
    for folder in ("collectors", "harness/pinchpoint/loadgen"):
        for path in (ROOT / folder).rglob("*.py"):
            if ".venv" not in path.parts:
                found |= set(_LITERAL.findall(path.read_text(encoding="utf-8")))
    return found - NO_METRICS - GROUPS


def test_the_table_knows_every_metric() -> None:
    """Each metric has a range of its own or of its unit."""
    metrics = all_metrics()
    assert len(metrics) > 150
    assert [name for name in sorted(metrics) if not bounds.is_known(name)] == []


@pytest.mark.parametrize("metric", sorted(all_metrics()))
def test_no_metric_takes_nonsense(metric: str) -> None:
    """No metric accepts NaN, infinity, extreme values, or values below 0."""
    for value in (math.nan, math.inf, -math.inf, 1e308, -1e308, -1e10):
        assert not bounds.is_possible(Sample(AT, 1.0, "a", metric, "", value)), value
    assert bounds.is_possible(Sample(AT, 1.0, "a", metric, "", None))
    assert bounds.is_possible(Sample(AT, 1.0, "a", metric, "", 0.0))


@pytest.mark.parametrize(("kind", "text"), FILES, ids=lambda each: each[:12])
def test_what_real_files_hold_is_possible(kind: str, text: str) -> None:
    """All values of recorded files are within the ranges."""
    samples, _ = read(kind, text)
    assert samples
    assert [each for each in samples if not bounds.is_possible(each)] == []
    assert [each.metric for each in samples if not bounds.is_known(each.metric)] == []


@pytest.mark.parametrize(
    ("metric", "value", "is_possible"),
    [
        ("cpu.busy_ratio", 1.0001, True),
        ("cpu.busy_ratio", 1.2, True),  # two clock ticks in a reading of a tenth of a second
        ("cpu.busy_ratio", 2000.0, False),
        ("cpu.busy_ratio", -0.003, True),
        ("cpu.busy_ratio", -0.5, False),
        ("cpu.run_queue", 40_000.0, True),
        ("disk.busy_ratio", 45.0, True),  # an I/O of 45 s that ends, as counted by Linux before 5.19
        ("disk.busy_ratio", 2000.0, False),
        ("pressure.io_ratio", 2.0, True),  # the kernel updates it every two seconds
        ("disk.write_latency_s", 540.0, True),  # Windows gives up after this time
        ("disk.write_latency_s", 39_600.0, False),
        ("disk.writes_per_s", 1.2e7, True),
        ("disk.writes_per_s", -1.87, False),
        ("db.memory_ratio", 3.0, True),  # the limit was lowered during the run
        ("db.page_life_s", 3e7, True),
        ("db.lock_wait_latency_s", 90_000.0, True),
        ("db.checkpoint_write_s_per_s", 1800.0, True),
        ("collector.clock_offset_s", -1.7e9, True),
        ("search.waiting", 5e6, True),
        ("later.metric_of_another_version", -7.0, True),
    ],
)
def test_what_can_be(metric: str, value: float, *, is_possible: bool) -> None:
    """Unusual values that occur on machines are kept unchanged; impossible ones are not."""
    assert bounds.is_possible(Sample(AT, 1.0, "a", metric, "", value)) is is_possible


def test_a_mean_of_less_than_no_operation() -> None:
    """A mean over a negative number of operations becomes null."""
    tally = bounds.Tally()
    (kept,) = tally.checked([Sample(AT, 1.0, "a", "disk.read_latency_s", "sda", 0.01, -3.0)])
    assert (kept.value, kept.weight) == (None, None)
    (one,) = tally.found.values()
    assert "a mean of -3 operations" in one.words()


def test_a_sample_without_a_place_is_left_out() -> None:
    """A sample over thirty years is dropped, because it would need memory for each second."""
    tally = bounds.Tally()
    good = Sample(AT, 1.0, "a", "cpu.run_queue", "", 1.0)
    odd = [good._replace(interval_s=1e9), good._replace(time_ns=10**30), good._replace(interval_s=math.nan)]
    assert tally.checked([*odd, good]) == [good]
    (one,) = tally.found.values()
    assert (one.count, "1,000,000,000 s" in one.words()) == (3, True)


def test_of_many_series_ten_are_named() -> None:
    """Of a thousand affected series, ten are named and the rest is one line."""
    tally = bounds.Tally()
    tally.checked(Sample(AT, 1.0, "a", "cpu.busy_ratio", str(core), 99.0) for core in range(25))
    words = bounds.sentences(tally.found.values())
    assert len(words) == 11
    assert words[0].startswith("cpu.busy_ratio 0 of a: 1 impossible value")
    assert words[-1].startswith("15 more impossible values of 15 other series")
