"""The verdict: what a run proves, as frozen records. verdict.json is their plain form."""

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
"""Fields that say where a resource is."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that was measured, in words and as a number.

    Attributes:
        fact: the sentence.
        metric: the metric of samples.parquet it rests on, or the column of operations.parquet.
        value: the number, base units; None if nothing was measured.
        host: whose samples.
        instance: which instance of the metric, or cores ("0,1"); None: several of the host's together.
        evidence: ``E1`` saturation, ``E2`` growing queue, ``E3`` ceiling, ``E4`` independent witness,
            ``causal`` the test of ``run --prove``, or ``context``.
        threshold: what the value was compared with, base units.
        source: where the threshold comes from: ``SP``, ``PAL``, ``MS-IO``, ``design``, or ``declared``.
        rule: what the threshold says, in words.
        samples: how many samples of that series (or operations) it rests on; None if it is no such thing.
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
    """One question that was asked.

    Attributes:
        evidence: ``E1`` to ``E4``, or ``gate``.
        holds: None if it could not be judged.
        fact: what was measured, and what it was compared with; ``value`` None if nothing was.
    """

    evidence: str
    holds: bool | None
    fact: Fact


@dataclass(frozen=True, slots=True)
class Considered:
    """A resource that was considered.

    Attributes:
        name: in words.
        kind: how it would limit; None if nothing speaks against it.
        used_ratio: how much of it is used; None if that is not known (a disk without a declared limit).
        checks: E1 to E4.
        why: why it is, or is not, the answer.
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
    """The chain behind the answer.

    Attributes:
        gates: what valid evidence had to pass.
        considered: every resource, the most used first.
        reasons: why this answer, in sentences.
        would_change: what would change it, in sentences.
    """

    gates: tuple[Check, ...]
    considered: tuple[Considered, ...]
    reasons: tuple[str, ...]
    would_change: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """A resource that limits the farm, or may.

    Attributes:
        kind: how it limits (docs/reading-a-verdict.md).
        tier: the tier that causes it: on a shared machine the one that uses most of it, of a dependency the
            one behind it; None if the farm has none, or which tier uses the shared cores was not measured.
        host: the host.
        resource: ``cpu``, ``thread``, ``disk``, ``memory``, ``network``, ``lock``, ``pool``, ``dependency``,
            ``generator``, ``recorder``.
        instance: device, cores ("0,1"), thread, interface, kind of lock, source or endpoint.
        role: the disk's role; None of all disks of a machine together, whose type is then the ``instance``.
        confidence: None for candidates that nothing was concluded about.
        window: UTC start and end of the analysed time.
        evidence: what was measured.
        shared_with: the other tiers that use the same resource.
        uses: who used how much of it: ``{"tier", "share_ratio"}``, the most first.
        why_not_more: sentences: what keeps the confidence from being higher.
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
    """The next bottleneck once this one is removed.

    Attributes:
        gain_ratio: the most throughput gained until then (0.38 = 38 %).
        utilisation_ratio: how much of it is used now.
        assumes: what must stay as it is for that to hold.
        at_most: whether it is a bound: by one load level it is an estimate.
        others_ratio: the part of the utilisation that other processes use; None if none is known.
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
    """How much more load there is room for: throughput at the objectives ÷ throughput now - 1.

    Attributes:
        ratio: None if that is not known; 0 if there is none.
        how: ``levels``: read off a load in steps; ``model``: reckoned from what is used; else ``unknown``.
        scenario: whose load it is about; None: all of them in the same proportion.
        now_per_s: its throughput in what was judged.
        objectives_per_s: the highest throughput at which its objectives hold.
        why: how that was found, or why it could not be, in words.
        assumes: what must stay as it is for that to hold; "" where nothing was reckoned.
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
    """One thing to do, from the model and the catalogue.

    Attributes:
        kind: the kind of limit it is about.
        target: what is changed: ``sql.log``, ``search``.
        what: what to do.
        gain_ratio: the throughput gained by it (0.38 = 38 %), as ``what-if`` says where ``set`` is given,
            else at most; None if that is not known.
        limit_next: what limits then; None if that is not known.
        assumes: what must stay as it is for that to hold, or why the gain is not known.
        source: the entries of the catalogue it rests on (``entry``, ``source``, ``date``); None: on none.
        text: all of it as a sentence.
        at_most: whether the gain is a bound.
        set: the same for ``what-if --set``; none: a change that it does not know.
        interval_ratio: of the gain, where ``set`` is given.
        scenario: the scenario that gains it, if ``set`` is given; of several the one that gains most.
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
    """Everything an analysis found, see docs/run-directory.md.

    Attributes:
        answer: ``summary`` in its parts.
        capacity_at_least_per_s: if no limit was reached, the throughput served, by scenario.
        then: the bottleneck after the next.
        headroom: the same as ``headroom_ratio``, with how it was found.
        advice: what to do, the most useful first.
        demand: what the load takes of each resource, and where that ends (``capacity.demand_row``).
        knee: what the search for a knee answered.
        stages: the analysed load levels.
        levels: of a load in steps, what each level brought; else empty.
        objectives_held: of such a load, per scenario, the highest level that met its objectives.
        explanation: what was considered, why this is the answer, what would change it.
        timeline: what was saturated when, one row per period (``timeline.timeline_table``).
        drift: of a soak, what changed over it (``drift.drift_table``); else empty.
        checkpoints: the load while a database wrote them, and in between (``checkpoints.checkpoint_table``).
        stores: what NoSQL stores reported of themselves (``store_tables.store_table``).
        proof: what the test of ``run --prove`` said (``proof.with_proof``); None if none was wanted.
        measured: whether anything was measured at all: False if the measure phase never began, where no
            operation ended in it, or, of samples alone, where no sample holds a value.
        tables: the dictionaries of ``scenarios``, ``crawl``, ``disks``, ``cpus``, ``objectives``.
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
            ValueError: a number is not finite; such a value has no place in a verdict.
        """
        content = {"schema": SCHEMA, "summary": self.summary, **asdict(self)}
        result: dict[str, Any] = json.loads(json.dumps(content, allow_nan=False))
        return result


def exit_status(verdict: Verdict) -> int:
    """The exit status of a verdict: 3 not valid evidence, 1 an objective not met, 0 fine.

    A run that measured nothing is no evidence, and an objective that was not measured was not met; nor was
    any, said or not, where every operation failed.
    """
    if verdict.outcome == "invalid" or not verdict.measured:
        return 3
    rows = verdict.scenarios.values()
    if any(row["error_ratio"] for row in rows) and not any(row["count"] for row in rows):
        return 1
    return 0 if all(objective["met"] for objective in verdict.objectives) else 1
