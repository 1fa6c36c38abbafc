"""Counts the samples, or operations, behind a fact of the verdict."""

from __future__ import annotations

from dataclasses import replace

from pinchpoint.analysis.case import Case
from pinchpoint.analysis.stages import Rows
from pinchpoint.analysis.verdict import Fact
from pinchpoint.data.inputs import Inputs
from pinchpoint.data.series import Key, each_core

OF_LEVELS = ("E2", "E3")
"""Kinds of evidence that come from several load levels."""


def counted(fact: Fact, case: Case) -> Fact:
    """The fact with the number of its samples, or of operations if the fact is about operations.

    Hosts of one machine have the same samples, so the number is that of the first host with samples. A fact
    from several levels counts all of these levels; any other fact counts the judged part.
    """
    parts = [(case.inputs, None if case.stage is None else case.stage.rows)]
    if fact.evidence in OF_LEVELS and case.climb is not None:
        step_s = case.inputs.window.step_s
        parts = [(case.inputs.during(level.window(step_s)), None) for level in case.climb.levels]
    machines = {host.machine for host in case.inputs.hosts if host.name == fact.host}
    hosts = [host.name for host in case.inputs.hosts if host.machine in machines]
    for name in dict.fromkeys([fact.host, *hosts]):
        one = replace(fact, host=name)
        if count := sum(_count(one, inputs, rows) for inputs, rows in parts):
            return replace(one, samples=count)
    return fact


def _count(fact: Fact, inputs: Inputs, rows: Rows | None) -> int:
    """The number of samples, or operations, behind a fact in the steps ``rows`` (None: in all steps)."""
    if "." not in fact.metric or fact.metric.startswith("operations."):
        return sum(inputs.traffic.of(name).whole().count for name in _scenarios(fact, inputs))
    samples = inputs.samples
    if fact.host and fact.instance is not None:
        keys = [Key(fact.host, fact.metric, each) for each in each_core(fact.instance)]
    else:
        keys = [
            key
            for key in samples.keys(fact.metric)
            if fact.host in {key.host, ""} and fact.instance in {key.instance, None}
        ]
    result = [series for series in (samples.series(*key) for key in keys) if series is not None]
    if not result and len(keys) > 1 and fact.instance:  # only the machine was measured, not single cores
        return _count(replace(fact, instance=""), inputs, rows)
    judged = rows is not None and not fact.metric.startswith("generator.")
    counts = [int(series.counts[rows].sum()) for series in result] if judged else []
    # the middle of a long interval may be outside ``rows``
    return sum(counts) or sum(series.measured for series in result)


def _scenarios(fact: Fact, inputs: Inputs) -> list[str]:
    """The scenario of a fact, else all scenarios; none for a fact without a metric."""
    names = [load.scenario for load in inputs.loads]
    if not fact.metric:
        return []
    return [fact.instance] if not fact.host and fact.instance in names and fact.instance else names
