"""Statistics: transients, level shifts, block resamples, histograms, and lost samples."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from harness.analysis.build import START_S, Build, utc
from hdrh.histogram import HdrHistogram

from pinchpoint.analysis import analyse
from pinchpoint.analysis.thresholds import LEVEL_SHIFT, MIN_SAMPLES
from pinchpoint.data import changes
from pinchpoint.data.operations import summarised
from pinchpoint.data.resample import block_rows
from pinchpoint.data.series import Window, add_up, spread
from pinchpoint.store.schema import SAMPLES_SCHEMA

find_shift = partial(changes.find_shift, least=MIN_SAMPLES.value, smallest=LEVEL_SHIFT.value)


def noise(count: int, seed: int, phi: float = 0.8, size: float = 0.05) -> npt.NDArray[np.float64]:
    random = np.random.default_rng(seed)
    wave = np.zeros(count)
    for index in range(1, count):
        wave[index] = phi * wave[index - 1] + random.normal(0, np.sqrt(1 - phi**2))
    return np.asarray(1 + size * wave)


def test_mser5_finds_a_transient_of_known_length() -> None:
    """A start at half the level for 20 s of 120 s is cut completely, mostly to within one batch."""
    cuts = []
    for seed in range(10):
        series = 100 * noise(120, seed)
        series[:20] *= 0.5
        cuts.append(changes.mser5(series))
    assert all(20 <= cut <= 60 for cut in cuts), cuts
    assert np.median(cuts) <= 25


def test_the_change_test_keeps_its_false_alarms_with_autocorrelated_noise() -> None:
    """Of 60 steady runs with φ = 0.8 and 30 % noise at most nine raise a false alarm."""
    alarms = sum(find_shift(100 * noise(120, seed, size=0.3)) is not None for seed in range(60))
    assert alarms <= 9


def test_the_change_test_sees_a_change() -> None:
    """A level that is 30 % lower in the second half is always detected with 5 % noise."""
    for seed in range(10):
        series = 100 * noise(120, seed)
        series[60:] *= 0.7
        shift = find_shift(series)
        assert shift is not None
        assert shift.at == pytest.approx(60, abs=6)
        assert shift.after / shift.before == pytest.approx(0.7, abs=0.08)


@pytest.mark.parametrize("count", [1, 4, 29])
def test_too_few_samples_never_raise_the_alarm(count: int) -> None:
    """Fewer than 30 samples never raise an alarm."""
    assert find_shift(np.linspace(1, 2, count)) is None


def test_block_resamples_keep_neighbours_together() -> None:
    """Resampled rows come in blocks of successive rows, and every row is drawn about equally often."""
    rows = block_rows(100, 500, np.random.default_rng(1))
    assert rows.shape == (500, 100)
    assert ((np.diff(rows, axis=1) % 100) == 1).mean() > 0.88
    counts = np.bincount(rows.ravel(), minlength=100)
    assert counts.min() > 300
    assert counts.max() < 700


def test_a_slow_start_is_left_out_of_the_window() -> None:
    """A slow start of a crawl is cut with a warning, and the evidence begins after it."""
    ramp = np.where(np.arange(130) < 35, 0.3, 1.0)
    build = (
        Build(measure_s=120, seed=2)
        .host("app3", "search")
        .cpu("app3", 0.5 + 0.46 * (ramp == 1.0), pressure=0.9)
    )
    build.closed("crawl", "full-crawl", 8).operations("crawl", "document:site", 80 * ramp, 0.1)
    verdict = analyse(build.run())
    (stage,) = verdict.stages
    assert 25 <= stage["cut_s"] <= 40
    assert stage["steady"] is True
    assert verdict.bottleneck is not None
    assert any("were left out" in warning for warning in verdict.warnings)


def test_a_load_that_never_settles_is_said() -> None:
    """Throughput that falls to a third near the end is reported as not steady."""
    falling = np.where(np.arange(130) < 100, 1.0, 0.33)
    build = Build(measure_s=120).host("app3", "search").cpu("app3", 0.96, pressure=0.9)
    build.closed("crawl", "full-crawl", 8).operations("crawl", "document:site", 80 * falling, 0.1)
    verdict = analyse(build.run())
    assert verdict.stages[0]["steady"] is False
    assert (
        "crawl: throughput did not settle; the level changed within the measured window" in verdict.warnings
    )


@pytest.mark.parametrize(("together_s", "alone_s"), [(40, 240), (90, 60)])
def test_a_crawl_is_judged_where_all_of_its_users_have_work(together_s: int, alone_s: int) -> None:
    """A crawl is judged while all users have work; the start and a single remaining source are cut."""
    end_s, begin_s, seconds = 10 + together_s + alone_s, 14, np.arange(10 + together_s + alone_s)
    full = (seconds >= begin_s) & (seconds < 10 + together_s)
    build = Build(measure_s=together_s + alone_s).host("app3", "search")
    build.cpu("app3", np.where(full, 0.97, 0.2), pressure=np.where(full, 0.9, 0.05))
    build.closed("crawl", "full-crawl", 8)
    build.operations("crawl", "document:sites", 80, 0.08, seconds=range(begin_s, 10 + together_s))
    build.operations("crawl", "document:share", 3, 0.3, seconds=range(begin_s, end_s))
    sources = [
        {"source": name, "count": 1, "failures": 0, "skipped": 0, "duration_s": ended, "workers": workers}
        | {"started": utc(START_S), "ended": utc(START_S + ended)}
        for name, ended, workers in (("sites", 10 + together_s, None), ("share", end_s, 1))
    ]
    build.event("crawl_ended", end_s, cycle=1, scenario="crawl", sources=sources)
    verdict = analyse(build.run())
    (stage,) = verdict.stages
    assert (stage["from"], stage["to"]) == (utc(START_S + begin_s), utc(START_S + 10 + together_s))
    assert any("sources had ended" in warning for warning in verdict.warnings)
    served = verdict.scenarios["crawl"]["throughput_per_s"]
    assert served == pytest.approx(83, rel=0.1)  # not over the whole phase
    assert verdict.bottleneck is not None
    assert (verdict.bottleneck.kind, verdict.bottleneck.tier) == ("cpu", "search")


def test_the_spread_of_a_normal_series_is_its_standard_deviation() -> None:
    """The spread of a normal series is its relative standard deviation, also with one outlier."""
    series = np.random.default_rng(1).normal(100, 4, 2000)
    assert spread(series) == pytest.approx(0.04, rel=0.1)
    series[7] = 5000
    assert spread(series) == pytest.approx(0.04, rel=0.1)
    assert spread(series[:4]) is None
    assert spread(np.zeros(50)) is None


def test_histogram_figures_are_the_library_s() -> None:
    """Percentiles equal those of the hdrh library to the microsecond, and means to its precision."""
    random = np.random.default_rng(3)
    for size in (1, 2, 10, 1000):
        histogram = HdrHistogram(1, 3_600_000_000, 3)
        for value in np.exp(random.uniform(0, np.log(3.0e9), size)):
            histogram.record_value(max(1, int(value)))
        found = summarised(np.frombuffer(histogram.counts, dtype=np.int64))
        assert found is not None
        for percent, value in ((50, found.p50_s), (95, found.p95_s), (99, found.p99_s)):
            assert value == pytest.approx(histogram.get_value_at_percentile(percent) / 1e6, abs=1e-7)
        assert found.count == size
        assert found.mean_s == pytest.approx(histogram.get_mean_value() / 1e6, rel=1e-3)
    assert summarised(np.zeros(0, dtype=np.int64)) is None


def test_what_never_started_counts_as_slower_than_everything() -> None:
    """Operations that never started count as infinite times in the percentiles."""
    random = np.random.default_rng(4)
    for never in (0, 3, 40, 60, 2000):
        timed, both = HdrHistogram(1, 3_600_000_000, 3), HdrHistogram(1, 3_600_000_000, 3)
        for value in random.uniform(1, 1e6, 1000):
            timed.record_value(int(value))
            both.record_value(int(value))
        both.record_value(3_600_000_000, never)
        found = summarised(np.frombuffer(timed.counts, dtype=np.int64), never)
        assert found is not None
        for percent, value in ((50, found.p50_s), (95, found.p95_s), (99, found.p99_s)):
            slow = both.get_value_at_percentile(percent) / 1e6
            assert value == (math.inf if slow > 3000 else pytest.approx(slow, abs=1e-7))
        assert found.longest_s <= 1.001


def test_windows_are_whole_seconds() -> None:
    """A phase from 10.2 to 20.9 s contains the seconds 11 to 19."""
    window = Window.between(10.2, 20.9)
    assert (window.first_s, window.seconds) == (11, 9)
    assert Window.between(10.2, 10.9).steps == 0
    assert Window.between(10.0, 9.0).steps == 0


def test_any_loss_of_data_still_gives_a_verdict() -> None:
    """Randomly missing rows, metrics, hosts, events and manifest keys never raise or give NaN."""
    random = np.random.default_rng(7)
    for case in range(60):
        build = Build(measure_s=int(random.integers(0, 50)), seed=case)
        build.host("sql1", "sql", disks={"log": "sdb", "data": "sdb"}).host("app3", "search", "b", cores=())
        build.cpu("sql1", 0.95, 0.9, pressure=0.9).cpu("app3", 0.4).disk("sql1", "sdb", 300, 0.02, reads=40)
        build.closed("orders", "sql-mix", 8).operations("orders", "log_append", 160, 0.05)
        build.burst("burst", 50, 500, 20, 5).operations("burst", "write", 60, 0.01, dropped=3)
        build.generator(burst=(70.0, 66.0)).objective(scenario="orders", p95_s=0.1)
        gone = set(random.choice(sorted({row[3] for row in build.samples}), 12, replace=False))
        build.samples = [row for row in build.samples if row[3] not in gone and random.random() > 0.3]
        nulled = random.random(len(build.samples)) < 0.3
        build.samples = [
            (*row[:5], None, *row[6:]) if void else row
            for row, void in zip(build.samples, nulled, strict=True)
        ]
        build.rows = [row for row in build.rows if random.random() > 0.5]
        for key in ("hosts", "generators", "collectors", "phases", "versions", "content"):
            if random.random() < 0.15:
                del build.manifest[key]
        verdict = analyse(build.run())
        assert verdict.to_json()["summary"]


def test_a_sample_of_five_seconds_holds_for_all_of_them_but_of_a_disk_it_counts_once() -> None:
    """A CPU sample of 5 s fills five steps, and a disk sample fills one; a gap stays a gap."""
    ends = [5, 10, 20, 21]  # nothing from 10 to 15 s; the last one covers one second
    lengths = [5.0, 5.0, 5.0, 1.0]
    rows = [
        (int(end * 1e9), length, "a", metric, "", end / 100, None)
        for metric in ("cpu.busy_ratio", "disk.reads_per_s")
        for end, length in zip(ends, lengths, strict=True)
    ]
    columns = zip(zip(*rows, strict=True), SAMPLES_SCHEMA, strict=True)
    table = pa.table([pa.array(values, field.type) for values, field in columns], schema=SAMPLES_SCHEMA)
    samples = add_up(table, Window(0, 1, 22))
    nan = np.nan
    expected = [0.05] * 5 + [0.1] * 5 + [nan] * 5 + [0.2] * 5 + [0.21, nan]
    np.testing.assert_array_equal(samples.steps("a", "cpu.busy_ratio"), expected)
    assert np.isfinite(samples.steps("a", "disk.reads_per_s")).sum() == 4
