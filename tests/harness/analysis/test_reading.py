"""Aggregation of samples, batch by batch and in any order, equals a loop over single rows."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bench import long_run
from harness.analysis.build import crawl_bound_by_search
from hdrh.histogram import HdrHistogram

from pinchpoint.analysis import analyse
from pinchpoint.base.errors import InputError
from pinchpoint.data.operations import Times, Traffic
from pinchpoint.data.series import Key, Window, add_up
from pinchpoint.store import histogram
from pinchpoint.store import samples as recorded
from pinchpoint.store.order import by_series, numbered, with_dictionaries
from pinchpoint.store.read import open_run
from pinchpoint.store.schema import SAMPLES, SAMPLES_SCHEMA

START_S = 1_800_000_000
WINDOW = Window(START_S, 10, 6)


def some_samples(seed: int, count: int = 4000) -> pa.Table:
    """Return rows in random order: inside and outside the window, with and without values and weights."""
    random = np.random.default_rng(seed)
    host = random.choice(["a1", "b1"], count)
    metric = random.choice(["cpu.busy_ratio", "disk.write_latency_s", "disk.writes_per_s"], count)
    weighted = metric == "disk.write_latency_s"
    columns = {
        "time_ns": (START_S + random.uniform(-10, 70, count)) * 1e9,
        "interval_s": random.choice([0.5, 1.0, 5.0], count),
        "host": host,
        "metric": metric,
        "instance": np.where(metric == "cpu.busy_ratio", "", random.choice(["sda", "sdb"], count)),
        "value": pa.array(random.uniform(0, 1, count), mask=random.random(count) < 0.2),
        "weight": pa.array(random.integers(0, 5, count).astype(float), mask=~weighted),
    }
    columns["time_ns"] = columns["time_ns"].astype(np.int64)
    return pa.table(columns, schema=SAMPLES_SCHEMA)


def one_by_one(table: pa.Table) -> dict[Key, dict[str, list[float]]]:
    """Return the reference sums per series, from a loop over rows."""
    found: dict[Key, dict[str, list[float]]] = defaultdict(
        lambda: {name: [0.0] * WINDOW.steps for name in ("total", "share", "covered_s", "counts", "highest")}
    )
    for row in table.to_pylist():
        step = int((row["time_ns"] / 1e9 - row["interval_s"] / 2 - START_S) // WINDOW.step_s)
        if not 0 <= step < WINDOW.steps:
            continue
        cells = found[Key(row["host"], row["metric"], row["instance"])]
        if row["value"] is None:
            continue
        weight = row["interval_s"] if row["weight"] is None else row["weight"]
        cells["total"][step] += row["value"] * weight
        cells["share"][step] += weight
        cells["covered_s"][step] += row["interval_s"]
        cells["counts"][step] += 1
        cells["highest"][step] = max(cells["highest"][step], row["value"])
    return found


@pytest.mark.parametrize("rows", [37, 4000])
def test_samples_are_added_up_as_one_by_one(rows: int) -> None:
    """Sums, weights, maxima and counts equal the reference, for batches of any length and order."""
    table = some_samples(1)
    parts = [table.slice(first, rows) for first in range(0, table.num_rows, rows)]
    found, expected = add_up(pa.concat_tables(parts), WINDOW), one_by_one(table)
    for metric in ("cpu.busy_ratio", "disk.write_latency_s", "disk.writes_per_s"):
        assert found.keys(metric) == sorted(key for key in expected if key.metric == metric)
    for key, cells in expected.items():
        series = found.series(*key)
        assert series is not None
        assert series.weighted == (key.metric == "disk.write_latency_s")
        for name, sums in cells.items():
            assert getattr(series, name) == pytest.approx(sums), (key, name)
        assert series.mean() == pytest.approx(sum(cells["total"]) / sum(cells["share"]))
        assert series.maximum() == max(cells["highest"])
        assert series.measured == sum(cells["counts"])


def test_a_part_of_the_window_is_what_it_alone_would_be() -> None:
    """A part of the aggregated window equals the aggregation of that part; other steps are refused."""
    table, part = some_samples(2), Window(START_S + 20, 10, 3)
    cut, alone = add_up(table, WINDOW).during(part), add_up(table, part)
    for key in alone.keys("disk.write_latency_s"):
        assert cut.mean(*key) == alone.mean(*key)
        assert np.array_equal(cut.steps(*key), alone.steps(*key), equal_nan=True)
        assert np.array_equal(cut.weights(*key), alone.weights(*key))
    beyond = add_up(table, WINDOW).during(Window(START_S + 50, 10, 3))
    assert np.isnan(beyond.steps("a1", "cpu.busy_ratio")[1:]).all()
    with pytest.raises(ValueError, match="steps"):
        add_up(table, WINDOW).during(Window(START_S + 5, 10, 2))


def test_readings_are_kept_only_of_what_was_asked_for() -> None:
    """Readings are kept in time order for the requested series only; another series raises KeyError."""
    table, key = some_samples(3), Key("b1", "disk.writes_per_s", "sda")
    found = add_up(pa.concat_tables([table.slice(1500), table.slice(0, 1500)]), WINDOW, [key]).readings(*key)
    rows = [row for row in table.to_pylist() if Key(row["host"], row["metric"], row["instance"]) == key]
    middles = {row["time_ns"] / 1e9 - row["interval_s"] / 2: row["value"] for row in rows}
    inside = {
        at: value
        for at, value in sorted(middles.items())
        if START_S <= at < START_S + 60 and value is not None
    }
    assert found.middle_s.tolist() == list(inside)
    assert found.value.tolist() == list(inside.values())
    with pytest.raises(KeyError):
        add_up(table, WINDOW, [key]).readings("a1", "disk.writes_per_s", "sda")


def test_only_what_may_hold_what_is_asked_for_is_read_and_once(tmp_path: Path) -> None:
    """Row groups without the requested series are skipped, and no row is read twice."""
    path, table = tmp_path / SAMPLES, some_samples(6)
    groups = list(by_series(with_dictionaries(table).unify_dictionaries().combine_chunks(), 200))
    with pq.ParquetWriter(path, table.schema) as file:
        for group in groups:
            file.write_table(table.take(pa.array(group)))
    assert max(map(len, groups)) <= 200
    assert sorted(np.concatenate(groups).tolist()) == list(range(table.num_rows))
    unread, names = recorded.UnreadSamples(recorded.in_file(path)), ("host", "metric", "instance")
    seen: list[pa.Table] = []
    for key in (Key("a1", "disk.writes_per_s", "sdb"), Key("b1", "cpu.busy_ratio", "")):
        given = list(unread.each(lambda found: found, recorded.SeriesFilter(*key)))
        assert given
        of_key = [row for row in table.to_pylist() if tuple(row[name] for name in names) == key]
        seen += given
        rows = [row for one in seen for row in one.to_pylist()]
        found = [row for row in rows if tuple(row[name] for name in names) == key]
        assert len(rows) < table.num_rows / 2
        assert sorted(map(str, found)) == sorted(map(str, of_key))
        assert not list(unread.each(lambda found: found, recorded.SeriesFilter(*key)))
    seen += unread.each(lambda found: found)
    assert sum(one.num_rows for one in seen) == table.num_rows
    whole = add_up(recorded.in_file(path), WINDOW)
    for key, cells in one_by_one(table).items():
        assert whole.mean(*key) == pytest.approx(sum(cells["total"]) / sum(cells["share"]))


def test_a_series_that_nobody_recorded_is_none(tmp_path: Path) -> None:
    """A series that was not recorded is None, wherever its name would be sorted."""
    path = tmp_path / SAMPLES
    pq.write_table(some_samples(7), path)
    found = add_up(recorded.in_file(path), WINDOW)
    assert found.series("a2", "disk.reads_per_s", "sda") is None
    assert found.series("z1", "zzz") is None
    assert found.keys("disk.reads_per_s") == []
    assert np.isnan(found.steps("a2", "cpu.busy_ratio")).all()


@pytest.mark.parametrize("possible", [30, 2**40])
def test_codes_are_numbered_alike_however_many_are_possible(possible: int) -> None:
    """Codes are numbered in ascending order, for small and for large ranges."""
    number, found = numbered(np.array([7, 3, 29, 3, 7]), possible)
    assert found.tolist() == [3, 7, 29]
    assert number.tolist() == [1, 0, 2, 0, 1]


def texts(seed: int, count: int) -> list[str | None]:
    random = np.random.default_rng(seed)
    draws = [random.lognormal(15, 2, random.integers(1, 300)).astype(np.int64) for _ in range(count)]
    return [
        None if number % 7 == 3 else histogram.encoded(histogram.counted(draw))
        for number, draw in enumerate(draws)
    ]


def counters(given: list[str]) -> list[int]:
    """Return the counts that the library's own decoder gives."""
    whole = HdrHistogram(histogram.LOWEST_US, histogram.HIGHEST_US, histogram.DIGITS)
    for text in given:
        whole.decode_and_add(text)
    return [int(whole.get_count_at_index(index)) for index in range(whole.counts_len)]


def test_histograms_are_decoded_as_the_library_does() -> None:
    """Decoded histograms equal the library's, one by one and together, with gaps and huge counts."""
    odd = [[0, 1], [0, 1, 0, 2], [3, 0, 0, 7], [0] * 23_000 + [1], [0] * 5 + [10**12], [5]]
    given = [*filter(None, texts(4, 40)), *(histogram.encoded(np.array(counts)) for counts in odd)]
    ends, used, counts = histogram.entries(given)
    for number in (0, 7, len(given) - 6, len(given) - 3, len(given) - 2, len(given) - 1):
        there = slice(ends[number], ends[number + 1])
        expected = counters([given[number]])
        assert used[there].tolist() == [index for index, count in enumerate(expected) if count]
        assert counts[there].tolist() == [count for count in expected if count]
    together = histogram.summed(given)
    assert together.tolist() == counters(given)[: len(together)]
    assert histogram.summed([]).tolist() == []


def test_any_choice_of_histograms_is_their_sum() -> None:
    """Any choice of rows sums to the same histogram, also when the same rows are requested again."""
    given, random = texts(5, 120), np.random.default_rng(5)
    times = Times(pa.chunked_array([given[:50], given[50:]]), random.permutation(120))
    for choice in ([], [3], range(120), range(20, 60), random.choice(120, 30, replace=False), range(20, 60)):
        expected = histogram.summed([text for text in (given[row] for row in choice) if text is not None])
        for keep in (True, False):
            assert times.sum(np.array(choice, dtype=np.int64), keep=keep).tolist() == expected.tolist()


def test_operations_keep_the_order_in_which_outcomes_came() -> None:
    """Outcomes keep the order in which they occurred, because the wording lists them in it."""
    run = crawl_bound_by_search().run()
    names = pa.array((["timeout", "ok", "broken"] * run.operations.num_rows)[: run.operations.num_rows])
    position = run.operations.schema.get_field_index("outcome")
    traffic = Traffic(run.operations.set_column(position, "outcome", names))
    assert list(traffic.outcomes()) == ["timeout", "ok", "broken"]
    assert sum(traffic.outcomes().values()) == traffic.count


def test_a_file_is_judged_as_the_table_it_was_written_from(tmp_path: Path) -> None:
    """A file gives the same verdict as its table; a truncated file is an error with its name."""
    run = crawl_bound_by_search().run()
    path = tmp_path / SAMPLES
    pq.write_table(run.samples, path, row_group_size=700)
    in_file = replace(run, samples=recorded.in_file(path))
    assert analyse(in_file).to_json() == analyse(run).to_json()
    assert recorded.extent(in_file.samples) == recorded.extent(run.samples)
    assert recorded.table(in_file.samples).equals(run.samples)
    pq.write_table(run.samples.drop_columns("weight"), path)
    with pytest.raises(InputError, match=r"its columns are .* allowed: .*weight"):
        recorded.in_file(path)
    path.write_bytes(b"PAR1 but no more")
    with pytest.raises(InputError, match="cannot be read"):
        recorded.in_file(path)


def test_pages_that_are_damaged_are_told(tmp_path: Path) -> None:
    """Damaged pages raise an error that names the file."""
    run, path = crawl_bound_by_search().run(), tmp_path / SAMPLES
    pq.write_table(run.samples, path, compression="zstd")
    content = bytearray(path.read_bytes())
    content[4 : len(content) // 2] = bytes(len(content) // 2 - 4)
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"samples\.parquet: cannot be read"):
        analyse(replace(run, samples=recorded.in_file(path)))


def test_a_long_run_names_its_bottleneck(tmp_path: Path) -> None:
    """90 s of the run of ``make bench SUITE=verdict`` (20 hosts) name the log's cap."""
    run = tmp_path / "run"
    assert long_run.write_run(run, 120) == 120 * (20 * 200 + 14)
    verdict = analyse(open_run(run))
    assert verdict.bottleneck is not None
    found = verdict.bottleneck
    assert (found.kind, found.tier, found.host, found.role) == ("disk_cap", "sql", "sql1", "log")
