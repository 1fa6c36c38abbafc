"""How many samples, or operations, a fact of the verdict rests on."""

from __future__ import annotations

from dataclasses import replace

from pinchpoint.analysis.case import Case
from pinchpoint.analysis.stages import Rows
from pinchpoint.analysis.verdict import Fact
from pinchpoint.data.inputs import Inputs
from pinchpoint.data.operations import Traffic
from pinchpoint.data.series import Key, each_core

OF_LEVELS = ("E2", "E3")
"""Evidence that several levels give."""


def counted(fact: Fact, case: Case) -> Fact:
    """The fact with how many samples it rests on, or how many operations where it is about these.

    Hosts of one machine read the same: it is told of the first of them that did.
    """
    machines = {host.machine for host in case.inputs.hosts if host.name == fact.host}
    hosts = [host.name for host in case.inputs.hosts if host.machine in machines]
    each = (replace(fact, host=name) for name in dict.fromkeys([fact.host, *hosts]))
    counts = ((one, _count(one, case)) for one in each)
    return next((replace(one, samples=count) for one, count in counts if count), fact)


def _count(fact: Fact, case: Case) -> int:
    """Over the part that is judged; what several levels say of a resource rests on all of them."""
    if fact.evidence not in OF_LEVELS or case.climb is None:
        return _count_in(fact, case.inputs, None if case.stage is None else case.stage.rows)
    step_s = case.inputs.window.step_s
    parts = (case.inputs.during(level.window(step_s)) for level in case.climb.levels)
    return sum(_count_in(fact, part, None) for part in parts)


def _count_in(fact: Fact, inputs: Inputs, rows: Rows | None) -> int:
    """How many samples, or operations, a fact rests on in a part of the run.

    Args:
        fact: what is told.
        inputs: that part.
        rows: its steps that are judged; None: all of them. Of the generator, and of operations, it is all.
    """
    if "." not in fact.metric or fact.metric.startswith("operations."):
        return sum(flow.count for flow in _operations(fact, inputs)) if fact.metric else 0
    samples = inputs.samples
    if fact.host and fact.instance is not None:
        keys = [Key(fact.host, fact.metric, each) for each in each_core(fact.instance)]
    else:
        keys = [key for key in samples.keys(fact.metric) if _about(fact, key)]
    found = [series for series in (samples.series(*key) for key in keys) if series is not None]
    if found:
        judged = rows is not None and not fact.metric.startswith("generator.")
        counts = [int(series.counts[rows].sum()) for series in found] if judged else []
        return sum(counts) or sum(series.measured for series in found)  # of long intervals, the middle counts
    if len(keys) > 1 and fact.instance:  # no core was measured by itself: it was told by the machine's own
        return _count_in(replace(fact, instance=""), inputs, rows)
    return 0


def _operations(fact: Fact, inputs: Inputs) -> list[Traffic]:
    """Those of the scenario it is about, else of all."""
    names = [load.scenario for load in inputs.loads]
    own = [fact.instance] if not fact.host and fact.instance in names else names
    return [inputs.traffic.of(name).whole() for name in own if name is not None]


def _about(fact: Fact, key: Key) -> bool:
    return fact.host in {key.host, ""} and fact.instance in {key.instance, None}
