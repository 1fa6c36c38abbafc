"""Shapes that were not used to design the rules: no wrong answer with more than low confidence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from ground_truth.noises import noises
from harness.analysis import shapes
from harness.analysis.build import START_S
from harness.analysis.shapes import WARM_UP_S, Shape
from harness.analysis.tiers import BEHIND
from harness.analysis.verdicts import answer

from pinchpoint.analysis import Verdict, analyse
from pinchpoint.analysis.verdict import Fact
from pinchpoint.store.read import StoredRun

SHAPES = {**shapes.SHAPES, **BEHIND}
MEASURE_S = 60
SHORT_S = 20
CLOCK_S = 0.8


def told(verdict: Verdict) -> Iterator[Fact]:
    """Yield every fact in a verdict and in its explanation."""
    for one in (verdict.bottleneck, verdict.runner_up, *verdict.candidates):
        yield from one.evidence if one else ()
    for considered in verdict.explanation.considered:
        yield from (check.fact for check in considered.checks)
    yield from (gate.fact for gate in verdict.explanation.gates)


def wrong(shape: Shape, run: StoredRun) -> str:
    """Return the error in the verdict on a run; "" for none."""
    verdict = analyse(run)
    verdict.to_json()
    without = [fact.fact for fact in told(verdict) if fact.value is not None and not fact.samples]
    if without:
        return f"facts that rest on no sample: {without}"
    found, sure = answer(verdict), verdict.bottleneck.confidence if verdict.bottleneck else None
    if verdict.outcome == "inconclusive":
        return "" if verdict.experiment else f"no experiment: {verdict.summary}"
    if found in shape.right or sure == "low":
        return ""
    return f"{found}, {sure}: {verdict.summary}"


def _hosts(run: StoredRun) -> list[str]:
    return sorted(run.manifest["hosts"])


def _changed(run: StoredRun, rows: pa.ChunkedArray, **columns: pa.Array) -> StoredRun:
    """Return the run with other values in some columns of the selected sample rows."""
    table = run.samples
    for name, values in columns.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(at), pc.if_else(rows, values, table[name]))
    return replace(run, samples=table)


def troubles(run: StoredRun) -> Iterator[tuple[str, StoredRun]]:
    """Yield runs with disturbed samples: ``noises``, shifted clocks, and counters that stop or restart."""
    yield from noises(run)
    middle_ns = int((START_S + WARM_UP_S + MEASURE_S / 2) * 1e9)
    for host in _hosts(run):
        own = pc.equal(run.samples["host"], host)
        for way in (-CLOCK_S, CLOCK_S):
            shifted = pc.add(run.samples["time_ns"], int(way * 1e9))
            yield f"the clock of {host} is {way:+g} s off", _changed(run, own, time_ns=shifted)
        late = pc.greater(run.samples["time_ns"], middle_ns)
        gone = pc.and_(own, late)
        yield f"the counters of {host} stop", replace(run, samples=run.samples.filter(pc.invert(gone)))
        disks = pc.and_(gone, pc.starts_with(run.samples["metric"], "disk."))
        yield f"the disks of {host} stop", replace(run, samples=run.samples.filter(pc.invert(disks)))
    anew = np.isin((run.samples["time_ns"].to_numpy() - START_S * 10**9) // 10**9, range(15, 80, 9))
    nothing = pa.nulls(run.samples.num_rows, pa.float64())
    yield "counters begin anew", _changed(run, pa.chunked_array([pa.array(anew)]), value=nothing)


@pytest.mark.parametrize("name", SHAPES)
def test_nobody_is_named_wrongly(name: str) -> None:
    """Each shape gives a right answer, an inconclusive one with an experiment, or a low confidence."""
    assert wrong(SHAPES[name], SHAPES[name].make(1, MEASURE_S).run()) == ""


@pytest.mark.slow  # each shape with each disturbance and three seeds takes minutes
@pytest.mark.parametrize("name", SHAPES)
def test_nobody_is_named_wrongly_whatever_is_missing(name: str) -> None:
    """The same holds with lost, late, rare or stopped samples, runs of 20 s, and other seeds."""
    shape = SHAPES[name]
    found = {}
    for seed in (1, 2, 3):
        run = shape.make(seed, MEASURE_S).run()
        for what, troubled in [("as it is", run), *troubles(run)]:
            found[seed, what] = wrong(shape, troubled)
        found[seed, "short"] = wrong(shape, shape.make(seed, SHORT_S).run())
    assert {key: words for key, words in found.items() if words} == {}
