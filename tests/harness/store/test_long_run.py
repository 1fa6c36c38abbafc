"""Long runs: ten-second steps are sums of their seconds, in bounded memory and space."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from harness.analysis.build import crawl_bound_by_search
from hdrh.histogram import HdrHistogram

from pinchpoint.analysis import analyse
from pinchpoint.data.latency import distributions
from pinchpoint.data.operations import Traffic
from pinchpoint.data.series import Window
from pinchpoint.data.timeaxis import clock_of
from pinchpoint.store import compact, histogram
from pinchpoint.store.coarse import coarse, step_s
from pinchpoint.store.journal import JournalWriter
from pinchpoint.store.read import open_run
from pinchpoint.store.schema import JOURNAL, OPERATIONS_SCHEMA, SAMPLES
from pinchpoint.store.write import RunWriter

SCRIPT = Path(__file__).with_name("day_script.py")
MB = 1_000_000


def text(*times_us: int) -> str:
    return histogram.encoded(histogram.counted(np.array(times_us) * 1000))


def row(second: int, count: int = 1, outcome: str = "ok", **more: object) -> list[object]:
    given = {"worker": "g1", "service": text(second % 100 + 1), "response": None, "dropped": 0} | more
    names = [given["worker"], "orders", "log_append", outcome]
    return [second, 1.0, *names, count, 10 * count, given["service"], given["response"], given["dropped"]]


def table(*rows: list[object]) -> pa.Table:
    return pa.table(list(map(list, zip(*rows, strict=True))), schema=OPERATIONS_SCHEMA)


def summed(operations: pa.Table, column: str = "service") -> HdrHistogram:
    whole = HdrHistogram(1, 3_600_000_000, 3)
    for one in operations[column].drop_null().to_pylist():
        whole.decode_and_add(one)
    return whole


def test_ten_seconds_are_the_sum_of_their_seconds() -> None:
    """Counts, bytes, drops and histograms add up in steps aligned to UTC."""
    rows = [row(second, second, worker=worker) for worker in ("g1", "g2") for second in range(1003, 1032)]
    rows.append(row(1005, 7, "timeout", response=text(900)))
    rows.append([1006, 1.0, "g1", "orders", "", "dropped", 0, 0, None, None, 4])
    found = coarse(table(*rows), 10)
    assert found.schema.equals(OPERATIONS_SCHEMA)
    assert set(found["interval_s"].to_pylist()) == {10.0}
    assert sorted(set(found["time_s"].to_pylist())) == [1000, 1010, 1020, 1030]
    of_g1 = found.filter((pc.field("worker") == "g1") & (pc.field("outcome") == "ok"))
    assert dict(zip(of_g1["time_s"].to_pylist(), of_g1["count"].to_pylist(), strict=True)) == {
        1000: sum(range(1003, 1010)),
        1010: sum(range(1010, 1020)),
        1020: sum(range(1020, 1030)),
        1030: 1030 + 1031,
    }
    assert of_g1["response"].null_count == of_g1.num_rows
    [dropped] = found.filter(pc.field("outcome") == "dropped").to_pylist()
    assert (dropped["count"], dropped["dropped"], dropped["service"]) == (0, 4, None)
    [failed] = found.filter(pc.field("outcome") == "timeout").to_pylist()
    assert failed["response"] == text(900)
    for column in ("count", "bytes", "dropped"):
        assert pc.sum(found[column]).as_py() == sum(r[OPERATIONS_SCHEMA.names.index(column)] for r in rows)
    assert summed(found).encode() == summed(table(*rows)).encode()


def test_what_is_coarse_already_stays() -> None:
    """Merging twice changes nothing, a partly merged table is completed, and short runs keep seconds."""
    rows = table(*(row(second) for second in range(1000, 1040)))
    once = coarse(rows, 10)
    assert coarse(once, 10).equals(once)
    half = pa.concat_tables([coarse(rows.slice(0, 20), 10), rows.slice(20)])
    assert coarse(half, 10).equals(once)
    assert coarse(rows, 1).equals(rows)
    assert coarse(rows.slice(0, 0), 10).num_rows == 0


@pytest.mark.parametrize(("minutes", "step"), [(0, 1), (60, 1), (61, 10), (480, 10)])
def test_the_load_decides_not_the_loading(minutes: int, step: int) -> None:
    """The duration of the load decides, not the time to load the data."""
    begun = 1_800_000_000
    now = datetime.fromtimestamp(begun + minutes * 60, UTC).isoformat()
    phases = [{"name": "warm_up", "from": datetime.fromtimestamp(begun, UTC).isoformat(), "to": None}]
    started = datetime.fromtimestamp(begun - 7200, UTC).isoformat()
    assert step_s({"started": started, "phases": phases}, now) == step
    assert step_s({"started": started, "phases": []}, now) == 1


def test_a_run_that_became_long_is_coarse_from_its_begin(tmp_path: Path) -> None:
    """A run over an hour is merged from its begin, whether live, killed or finished."""
    run = tmp_path / "run"
    begun = int(datetime.now(UTC).timestamp()) - 3700
    phase = {"name": "measure", "from": datetime.fromtimestamp(begun, UTC).isoformat(), "to": None}
    given = {"name": "p", "started": phase["from"], "phases": [phase], "warnings": []}
    store = RunWriter(run, given)
    with JournalWriter(run / JOURNAL, "g1", segment_s=600) as writer:
        for second in range(begun, begun + 3700, 5):
            writer.write_operations([row(second)], second * 10**9)
    compact.compact_closed(run / JOURNAL)
    assert len(list((run / JOURNAL).glob("*.operations.parquet"))) == 6
    live = open_run(run)
    store.close()
    recovered = open_run(run)
    for found in (live, recovered):
        assert set(found.operations["interval_s"].to_pylist()) == {10.0}
        assert pc.sum(found.operations["count"]).as_py() == 740
        assert 370 <= found.operations.num_rows <= 380, "one row a step, two where a segment ends in it"


def test_the_analysis_counts_ten_seconds_as_ten() -> None:
    """Rates, active seconds and the window equal those from seconds, except at the edges."""
    seconds = table(*(row(second, 3) for second in range(1000, 1100)))
    traffic = Traffic(coarse(seconds, 10))
    window = Window.between(1003.2, 1088.9, recorded_s=10.0)
    assert (window.first_s, window.step_s, window.steps) == (1010, 10, 7)
    assert traffic.per_step(window).tolist() == [3.0] * 7
    assert traffic.during(window).count == 3 * 70
    assert traffic.seconds == list(range(1000, 1100)) == Traffic(seconds).seconds


def test_a_verdict_on_ten_second_steps_is_that_on_seconds() -> None:
    """The verdict on ten-second steps has the same bottleneck, throughput and percentiles."""
    fine = crawl_bound_by_search(measure_s=900).run()
    long = replace(fine, operations=coarse(fine.operations, 10))
    by_the_second, by_ten = analyse(fine).to_json(), analyse(long).to_json()
    assert by_ten["outcome"] == by_the_second["outcome"] == "bottleneck"
    for key in ("kind", "tier", "host", "confidence"):
        assert by_ten["bottleneck"][key] == by_the_second["bottleneck"][key]
    mine, theirs = by_ten["scenarios"]["crawl"], by_the_second["scenarios"]["crawl"]
    for key in ("throughput_per_s", "service_p95_s"):
        assert mine[key] == pytest.approx(theirs[key], rel=0.02)
    clock = clock_of(long)
    assert clock.window is not None
    low, high = clock.window
    assert (low % 10, high % 10, high - low) == (0, 0, 900)
    assert clock.bucket_s >= 10
    [shown] = [one for one in distributions(long, clock.window) if one.scenario == "crawl"]
    [exact] = [one for one in distributions(fine, clock.window) if one.scenario == "crawl"]
    assert shown == exact


@pytest.mark.slow
def test_eight_hours_stay_small(tmp_path: Path) -> None:
    """Eight hours of 3 scenarios and 100 series fit into bounded memory and space."""
    run = tmp_path / "run"
    done = subprocess.run(
        [sys.executable, SCRIPT, run], capture_output=True, text=True, timeout=150, check=False
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    print(said)
    assert said["merging_bytes"] - said["before_bytes"] < 250 * MB
    assert said["writing_bytes"] - said["before_bytes"] < 100 * MB
    assert said["journal_bytes"] < 400 * MB
    assert said["files_bytes"] < 150 * MB
    operations = pq.read_table(run / "operations.parquet")
    per_second = 3 * 4 * 60
    assert pc.sum(operations["count"]).as_py() == 8 * 3600 * per_second * 6 // 5
    assert set(operations["interval_s"].to_pylist()) == {10.0}
    pool = operations.filter(pc.field("scenario") == "orders").slice(0, 50)
    assert all(HdrHistogram.decode(one).get_total_count() == n for one, n in zip(
        pool["service"].to_pylist(), pool["count"].to_pylist(), strict=True))  # fmt: skip
    samples = pq.ParquetFile(run / SAMPLES)
    assert samples.metadata.num_rows == 8 * 3600 * 100
    assert samples.metadata.num_row_groups < 80
