"""The form of verdict.json as it is read back: the verdict's records, and the rows of its tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from pinchpoint.analysis.verdict import Advice, Explanation, Headroom, Next, Outcome, Suspect
from pinchpoint.store.document import Count, Form, NotBelow0, Time
from pinchpoint.store.shape import ProofResult

Figure = float | None
"""None: not measured."""
Amount = NotBelow0 | None
Text = str | None


class Use(Form):
    """How much of a shared resource a tier used."""

    tier: str
    share_ratio: NotBelow0


@dataclass(frozen=True, slots=True)
class Named(Suspect):
    """A suspect, with the form of its uses."""

    uses: tuple[Use, ...] = ()  # type: ignore[assignment]


class Burst(Form):
    """A burst (``bursts.burst_table``)."""

    start_s: NotBelow0
    duration_s: NotBelow0
    offered: Amount
    done: Count
    dropped: Count
    p50_s: Amount
    p99_s: Amount
    backlog: Amount
    calm_s: Amount
    recovery_s: Amount
    watched_s: NotBelow0


class Writes(Form):
    """Acknowledged writes that were read back (``durability.writes_table``)."""

    acknowledged: Count
    records: Count
    confirmed: Count
    missing: Count
    different: Count
    expired: Count
    sample: str
    examples: list[str | int]
    not_read: list[str]


class Scenario(Form):
    """What a scenario did."""

    count: Count | None = None
    throughput_per_s: Amount = None
    service_p50_s: Amount = None
    service_p95_s: Amount = None
    service_p99_s: Amount = None
    response_p50_s: Amount = None
    response_p95_s: Amount = None
    response_p99_s: Amount = None
    error_ratio: Amount = None
    dropped: Count | None = None
    outcomes: dict[str, Count] = {}
    bursts: list[Burst] | None = None
    writes: Writes | None = None


class Destination(Form):
    """Where a crawl's documents went."""

    busy: NotBelow0
    busy_ratio: NotBelow0
    limit: Count


class Crawl(Form):
    """A crawled source (``crawls.crawl_table``)."""

    source: str
    count: Count
    failures: Count
    skipped: Count | None = None
    duration_s: Amount = None
    rate_per_s: Amount = None
    rate_active_per_s: Amount = None
    repository_latency_s: Amount = None
    complete: bool = True
    failures_by_kind: dict[str, Count] = {}
    stages: dict[str, Amount] = {}
    workers: Count | None = None
    workers_busy: Amount = None
    workers_busy_ratio: Amount = None
    destination: Destination | None = None


class Disk(Form):
    """A disk with a role."""

    tier: str
    host: str
    role: str
    device: Text = None
    iops_mean: Amount = None
    iops_max: Amount = None
    iops_source: str
    read_latency_mean_s: Amount = None
    write_latency_mean_s: Amount = None
    write_latency_max_s: Amount = None
    flush_latency_mean_s: Amount = None
    latency_limit_s: Amount = None
    latency_limit_source: Text = None
    why_not_measured: Text = None


class Cpu(Form):
    """A tier's CPU on a host."""

    tier: str
    host: str
    of: str
    busy_mean_ratio: Figure
    busy_max_ratio: Figure
    machine_busy_mean_ratio: Figure = None
    machine_busy_max_ratio: Figure = None


class Objective(Form):
    """What came of a promise."""

    scenario: str
    metric: str
    target: float
    value: Figure
    met: bool | None
    result: str
    holds: Text = None


class Demand(Form):
    """What the load takes of a resource (``capacity.demand_table``)."""

    tier: Text
    host: str
    resource: str
    instance: str
    role: Text
    levels: Count
    used_ratio: float
    each_s: Figure
    base_ratio: Figure
    ceilings_per_s: dict[str, float]
    assumes: str


class Part(Form):
    """A stretch of time."""

    from_: Time = Field(alias="from")
    to: Time


class Stage(Part):
    """A load level that was looked at."""

    name: str
    samples: Count
    cut_s: NotBelow0
    steady: bool | None


class Level(Part):
    """What a level of a load in steps brought."""

    scenario: str
    level: NotBelow0
    unit: str
    throughput_per_s: Amount
    dropped: Count
    error_ratio: Amount
    objectives_met: bool | None
    service_p50_s: Amount
    service_p95_s: Amount
    response_p50_s: Amount
    response_p95_s: Amount


class Held(Form):
    """Up to which level a scenario's objectives held."""

    all_held: bool
    unit: str
    level: Amount
    throughput_per_s: Amount
    never_per_s: Amount


class Usl(Form):
    """The universal scalability law, fitted."""

    sigma: float
    kappa: float
    slope_ratio: float


class Knee(Form):
    """What the search for a knee answered; empty where none was searched for."""

    found: bool | None = None
    level: Amount = None
    levels: Count = 0
    needed: Count = 0
    slope_ratio: Figure = None
    throughput_per_s: Amount = None
    why: str = ""
    usl: Usl | None = None


class Period(Part):
    """Which resource was saturated in it (``timeline.timeline_table``)."""

    kind: Text
    tier: Text
    host: Text
    resource: Text
    instance: Text
    role: Text
    level: Text


class Drift(Form):
    """What changed over a soak (``drift.drift_table``)."""

    metric: str
    instance: str
    of: str
    first: Figure
    last: Figure
    change_ratio: Figure
    trend: Literal["rises", "falls", "steady"] | None


class Checkpoint(Form):
    """The load while a database wrote its checkpoints (``checkpoints.checkpoint_table``)."""

    scenario: str
    host: str
    p95_between_s: Amount
    p95_during_s: Amount
    p95_ratio: Amount
    throughput_between_per_s: Amount
    throughput_during_per_s: Amount
    timed: Count
    requested: Count
    written_s: NotBelow0
    written_ratio: NotBelow0
    read_every_s: NotBelow0


class Store(Form):
    """A figure that a store reports (``store_tables.store_table``)."""

    tier: str
    host: str
    of: str
    metric: str
    instance: str
    mean: Figure
    max: Figure


class Resource(Form):
    """What was made slower."""

    kind: Text = None
    tier: Text = None
    host: Text = None
    resource: Text = None
    instance: Text = None
    role: Text = None


class Slowed(Form):
    """How."""

    what: str
    capacity_ratio: Annotated[float, Field(gt=0)]


class Answered(Form):
    """What answered."""

    result: ProofResult
    why: str
    resource: Resource | None = None
    change: Slowed | None = None
    predicted_ratio: Amount = None
    measured_ratio: Amount = None
    ci95: tuple[float, float] | None = None
    sensitivity: Figure = None


class Judged(Form):
    """The figure by which it was judged."""

    scenario: str
    name: str


class Window(Part):
    """A time with or without the change."""

    what: str
    value: Amount


class Proof(Answered):
    """What the test of ``run --prove`` said (``proof.with_proof``)."""

    of: Judged | None = None
    predicted_sensitivity: Figure = None
    control: Answered | None = None
    windows: list[Window] = []


class Kept(Form):
    """verdict.json. Only its outcome was always there."""

    outcome: Outcome
    bottleneck: Named | None = None
    runner_up: Named | None = None
    next: Next | None = None
    then: Next | None = None
    headroom_ratio: Figure = None
    headroom: Headroom | None = None
    advice: list[Advice] = []
    demand: list[Demand] = []
    candidates: list[Named] = []
    experiment: Text = None
    capacity_at_least_per_s: dict[str, NotBelow0] = {}
    objectives: list[Objective] = []
    scenarios: dict[str, Scenario] = {}
    crawl: list[Crawl] = []
    disks: list[Disk] = []
    cpus: list[Cpu] = []
    stages: list[Stage] = []
    levels: list[Level] = []
    objectives_held: dict[str, Held] = {}
    knee: Knee = Knee()
    explanation: Explanation | None = None
    timeline: list[Period] = []
    drift: list[Drift] = []
    checkpoints: list[Checkpoint] = []
    stores: list[Store] = []
    proof: Proof | None = None
    summary: str = ""
    warnings: list[str] = []
    measured: bool = True
