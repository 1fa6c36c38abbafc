"""Defines the verdict of an analysis as frozen records; verdict.json is their plain form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from pinchpoint.base.wording import Summary

SCHEMA = "pinchpoint.verdict/1"

Outcome = Literal["bottleneck", "not_reached", "inconclusive", "invalid"]
Confidence = Literal["high", "medium", "low"]
Kind = Literal[
    "cpu",
    "cpu_thread",
    "disk",
    "disk_cap",
    "disk_device",
    "disk_concurrency",
    "disk_burst_exhausted",
    "disk_latency",
    "disk_warm_up",
    "memory",
    "network",
    "lock",
    "pool",
    "external",
    "generator",
    "contention",
]


PLACE = ("tier", "host", "resource", "instance", "role")
"""Names of the fields that say where a resource is."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One measured fact, in words and as a number.

    Attributes:
        fact: the fact as a sentence.
        metric: the metric of samples.parquet, or the column of operations.parquet, that the fact comes from.
        value: the measured number in base units; None if nothing was measured.
        host: name of the host whose samples were used; "" if the fact belongs to no host.
        instance: instance of the metric, or cores ("0,1"); None for several instances of the host together.
        evidence: ``E1`` saturation, ``E2`` growing queue, ``E3`` ceiling, ``E4`` independent witness,
            ``causal`` the test of ``run --prove``, or ``context``.
        threshold: number that the value was compared with, in base units; None without one.
        source: author of the threshold: ``SP``, ``PAL``, ``MS-IO``, ``design``, or ``declared``; None without
            one.
        rule: the threshold's rule, in words.
        samples: number of samples of the series, or of operations, behind the fact; None if not counted.
    """

    fact: str
    metric: str
    value: float | None
    host: str = ""
    instance: str | None = ""
    evidence: str = "context"
    threshold: float | None = None
    source: str | None = None
    rule: str | None = None
    samples: int | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """The answer to one question about a resource or a gate.

    Attributes:
        evidence: ``E1`` to ``E4``, or ``gate``.
        holds: whether the evidence was found, or the gate passed; None if it could not be judged.
        fact: the measured value and its threshold; the fact's ``value`` is None if nothing was measured.
    """

    evidence: str
    holds: bool | None
    fact: Fact


@dataclass(frozen=True, slots=True)
class Considered:
    """A resource that was considered as the bottleneck.

    Attributes:
        name: the resource in words.
        kind: how the resource would limit; None without evidence against it.
        used_ratio: utilisation of the resource; None if unknown (a disk without a declared limit).
        checks: the checks for E1 to E4.
        why: why the resource is, or is not, the bottleneck.
    """

    name: str
    kind: Kind | None
    tier: str | None
    host: str | None
    resource: str
    instance: str
    role: str | None
    used_ratio: float | None
    checks: tuple[Check, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The evidence and the reasons behind a verdict.

    Attributes:
        gates: the checks that valid evidence must pass.
        considered: every considered resource, the most used first.
        reasons: the reasons for the verdict, as sentences.
        would_change: facts and actions that would change the verdict, as sentences.
    """

    gates: tuple[Check, ...]
    considered: tuple[Considered, ...]
    reasons: tuple[str, ...]
    would_change: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """A resource that limits the farm, or may limit it.

    Attributes:
        kind: how the resource limits (docs/reading-a-verdict.md).
        tier: the tier that causes the limit: on a shared machine the tier that uses most of the resource, for
            a dependency the tier behind the dependency. None if the farm has no such tier, or if the tiers'
            use of the shared cores was not measured.
        host: name of the host.
        resource: type of the resource: ``cpu``, ``thread``, ``disk``, ``memory``, ``network``, ``lock``,
            ``pool``, ``dependency``, ``generator``, ``recorder``.
        instance: device, cores ("0,1"), thread, interface, kind of lock, source, or endpoint.
        role: role of a disk; None for all disks of a machine together, whose ``instance`` is the machine's
            type.
        confidence: confidence in the bottleneck; None for a candidate.
        window: UTC start and end of the analysed time.
        evidence: the measured facts.
        shared_with: the other tiers that use the same resource.
        uses: ``{"tier", "share_ratio"}``: the share of each tier in the use of the resource, the largest
            first.
        why_not_more: the reasons why the confidence is not higher, as sentences.
    """

    kind: Kind
    tier: str | None
    host: str | None
    resource: str
    instance: str
    role: str | None
    confidence: Confidence | None
    window: tuple[str, str] | None
    evidence: tuple[Fact, ...]
    shared_with: tuple[str, ...] = ()
    uses: tuple[Mapping[str, Any], ...] = ()
    why_not_more: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Next:
    """The next bottleneck after the present one is removed.

    Attributes:
        gain_ratio: most throughput gained until the next bottleneck limits (0.38 = 38 %).
        utilisation_ratio: present utilisation of the next bottleneck.
        assumes: the conditions of the gain, in words.
        at_most: whether the gain is a bound; from one load level the gain is an estimate.
        others_ratio: part of the utilisation by other processes; None if unknown.
    """

    kind: Kind
    tier: str | None
    host: str | None
    resource: str
    instance: str
    role: str | None
    utilisation_ratio: float
    gain_ratio: float
    assumes: str
    at_most: bool = False
    others_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class Headroom:
    """The room for more load: throughput at the objectives ÷ throughput now - 1.

    Attributes:
        ratio: the headroom; 0 if there is none, None if unknown.
        how: ``levels``: measured by a load in steps; ``model``: computed from utilisations; else ``unknown``.
        scenario: the scenario whose load grows; None: all scenarios grow in the same proportion.
        now_per_s: throughput of the scenario in the judged part, operations per second.
        objectives_per_s: highest throughput at which the scenario's objectives are met, operations per
            second.
        why: how the headroom was found, or why it is unknown, in words.
        assumes: the conditions of the headroom, in words; "" if nothing was computed.
    """

    ratio: float | None
    how: Literal["levels", "model", "unknown"]
    scenario: str | None
    now_per_s: float | None
    objectives_per_s: float | None
    why: str
    assumes: str = ""


@dataclass(frozen=True, slots=True)
class Advice:
    """One recommended change, from the model and the catalogue.

    Attributes:
        kind: the kind of limit that the change is for.
        target: the resource that is changed, such as ``sql.log`` or ``search``.
        what: the change, in words.
        gain_ratio: throughput gained by the change (0.38 = 38 %): predicted by ``what-if`` if ``set`` is
            given, else the most possible gain; None if unknown.
        limit_next: the limit after the change, in words; None if unknown.
        assumes: the conditions of the gain, or why the gain is unknown, in words.
        source: entries of the catalogue that the change is based on (``entry``, ``source``, ``date``); None
            if there are none.
        text: the whole advice as a sentence.
        at_most: whether the gain is a bound.
        set: arguments of ``what-if --set`` for the change; empty if ``what-if`` has no setting for it.
        interval_ratio: (low, high) of the gain if ``set`` is given; else None.
        scenario: the scenario that gains this, if ``set`` is given; of several scenarios the one that gains
            most.
    """

    kind: Kind
    target: str
    what: str
    gain_ratio: float | None
    limit_next: str | None
    assumes: str
    source: Mapping[str, str] | None
    text: str
    at_most: bool = False
    set: tuple[str, ...] = ()
    interval_ratio: tuple[float, float] | None = None
    scenario: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Everything that an analysis found; docs/run-directory.md describes all fields.

    Attributes:
        answer: the parts of ``summary``.
        capacity_at_least_per_s: scenario -> served throughput in operations per second, if no limit was
            reached.
        then: the bottleneck after ``next``.
        headroom: ``headroom_ratio`` with how it was found.
        advice: the recommended changes, the most useful first.
        demand: utilisation of each resource, and the throughput that saturates it (``capacity.demand_row``).
        knee: the result of the search for a knee.
        stages: the analysed load levels.
        levels: figures of each level of a load in steps; else empty.
        objectives_held: for a load in steps: scenario -> the highest level that met the scenario's
            objectives.
        explanation: the considered resources, the reasons for the verdict, and facts that would change it.
        timeline: the saturated resource over time, one row per period (``periods.timeline_table``).
        drift: changes over a soak (``drift.drift_table``); else empty.
        checkpoints: the load while a database wrote checkpoints, and in between
            (``checkpoints.checkpoint_table``).
        stores: statistics that NoSQL stores reported (``store_tables.store_table``).
        proof: the result of the test of ``run --prove`` (``proof.with_proof``); None without the test.
        measured: whether anything was measured: False if the measure phase never began, if no operation ended
            in it, or, for samples alone, if no sample has a value.
    """

    outcome: Outcome
    bottleneck: Bottleneck | None
    runner_up: Bottleneck | None
    next: Next | None
    then: Next | None
    headroom_ratio: float | None
    headroom: Headroom
    advice: tuple[Advice, ...]
    demand: tuple[Mapping[str, Any], ...]
    candidates: tuple[Bottleneck, ...]
    experiment: str | None
    capacity_at_least_per_s: Mapping[str, float]
    objectives: tuple[Mapping[str, Any], ...]
    scenarios: Mapping[str, Mapping[str, Any]]
    crawl: tuple[Mapping[str, Any], ...]
    disks: tuple[Mapping[str, Any], ...]
    cpus: tuple[Mapping[str, Any], ...]
    stages: tuple[Mapping[str, Any], ...]
    levels: tuple[Mapping[str, Any], ...]
    objectives_held: Mapping[str, Mapping[str, Any]]
    knee: Mapping[str, Any]
    explanation: Explanation
    timeline: tuple[Mapping[str, Any], ...]
    drift: tuple[Mapping[str, Any], ...]
    checkpoints: tuple[Mapping[str, Any], ...]
    answer: Summary
    warnings: tuple[str, ...] = field(default=())
    stores: tuple[Mapping[str, Any], ...] = ()
    proof: Mapping[str, Any] | None = None
    measured: bool = True

    @property
    def summary(self) -> str:
        """The answer in a few sentences."""
        return str(self.answer)

    def to_json(self) -> dict[str, Any]:
        """The content of verdict.json: only JSON types, null for "not measured".

        Raises:
            ValueError: a number is not finite, which a verdict must not contain.
        """
        content = {"schema": SCHEMA, "summary": self.summary, **asdict(self)}
        result: dict[str, Any] = json.loads(json.dumps(content, allow_nan=False))
        return result


def exit_status(verdict: Verdict) -> int:
    """The exit status of a verdict: 3 no valid evidence, 1 an objective was not met, 0 otherwise.

    A run that measured nothing is no evidence. An objective that was not measured was not met. If all
    operations failed, the status is 1 even without objectives.
    """
    if verdict.outcome == "invalid" or not verdict.measured:
        return 3
    rows = verdict.scenarios.values()
    if any(row["error_ratio"] for row in rows) and not any(row["count"] for row in rows):
        return 1
    return 0 if all(objective["met"] for objective in verdict.objectives) else 1
