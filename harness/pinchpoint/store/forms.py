"""Defines the forms of manifest.json and events.jsonl that readers rely on.

The plan in a manifest has forms of its own here, because the records in ``pinchpoint.plan`` load slowly and
refuse fields of older versions.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from pinchpoint.store.document import Above0, Count, Form, NotBelow0, Time

_LONGEST = timedelta(days=366)
"""The longest accepted phase of a plan or imported recording."""
Cores = list[Annotated[int, Field(ge=0, lt=2**16)]]
Seconds = Annotated[float, Field(ge=0, le=_LONGEST.total_seconds())]
Period = Annotated[float, Field(gt=0, le=_LONGEST.total_seconds())]


# ---- the plan ---------------------------------------------------------------------------------------


class StoredLevel(Form):
    """A load level: a rate or a number of users."""

    per_s: NotBelow0 | None = None
    users: NotBelow0 | None = None


class StoredClosed(Form):
    """A closed load; the fields of all stored loads are those in ``plan.load_model``."""

    model: Literal["closed"]
    users: Above0
    think_s: Seconds | None = None


class StoredOpen(Form):
    """An open load: arrivals at a rate."""

    model: Literal["open", "soak"]
    rate_per_s: Above0
    arrivals: Literal["poisson", "constant"] | None = None


class StoredBurst(Form):
    """A load with a base rate and bursts."""

    model: Literal["burst"]
    base_per_s: NotBelow0
    peak_per_s: Above0
    every_s: Annotated[float, Field(ge=0.1, le=_LONGEST.total_seconds())]
    for_s: Period
    ramp_s: Seconds | None = None
    back_to_back: Annotated[int, Field(ge=1, le=100)] | None = None
    gap_s: Period | None = None
    jitter_ratio: Annotated[float, Field(ge=0, le=1)] | None = None


class StoredRamp(Form):
    """A load that rises from one level to another."""

    model: Literal["ramp"]
    start: StoredLevel
    to: StoredLevel
    over_s: Period
    think_s: Seconds | None = None


class StoredSteps(Form):
    """A load with one level after another."""

    model: Literal["steps"]
    start: StoredLevel
    step: StoredLevel
    each_s: Period
    until: str
    at_most: StoredLevel | None = None
    think_s: Seconds | None = None


class StoredScenario(Form):
    """One scenario of the plan."""

    use: str = ""
    load: Annotated[
        StoredClosed | StoredOpen | StoredBurst | StoredRamp | StoredSteps, Field(discriminator="model")
    ]
    params: dict[str, Any] = {}


class StoredObjective(Form):
    """A goal of a scenario (``scenario``) or of the servers (``metric``)."""

    scenario: str | None = None
    p50_s: Above0 | None = None
    p95_s: Above0 | None = None
    p99_s: Above0 | None = None
    errors_ratio: NotBelow0 | None = None
    throughput_per_s: Above0 | None = None
    metric: str | None = None
    host: str | None = None
    tier: str | None = None
    role: str | None = None
    device: str | None = None
    mean: NotBelow0 | None = None
    p50: NotBelow0 | None = None
    p95: NotBelow0 | None = None
    p99: NotBelow0 | None = None
    max: NotBelow0 | None = None
    min: NotBelow0 | None = None

    @model_validator(mode="after")
    def _of_one(self) -> Self:
        if (self.scenario is None) == (self.metric is None):
            raise ValueError("an objective of a scenario, or of a metric")
        return self


class StoredStopRule(Form):
    """A rule that stops the run: a metric's limit, or silence."""

    metric: str | None = None
    silent: Literal["operations", "collectors"] | None = None
    above: NotBelow0 | None = None
    below: NotBelow0 | None = None
    for_s: Seconds | None = None

    @model_validator(mode="after")
    def _of_one(self) -> Self:
        limited = (self.above is None) != (self.below is None)
        if (self.silent is None) == (self.metric is None) or (self.metric is not None and not limited):
            raise ValueError("a limit (above or below) of a metric, or silence")
        return self


class StoredCompare(Form):
    """The figures that comparisons of the plan's runs judge."""

    metrics: list[str] = []
    margin_ratio: Above0 | None = None
    bound: Annotated[float, Field(ge=1)] | None = None


class StoredPlan(Form):
    """The plan of the run; an imported run has no fields."""

    name: str | None = None
    seed: int | None = None
    scenarios: dict[str, StoredScenario] = {}
    objectives: list[StoredObjective] = []
    stop_when: list[StoredStopRule] = []
    compare: StoredCompare | None = None
    production: dict[str, Any] | None = None


# ---- the farm ---------------------------------------------------------------------------------------


class StoredLimits(Form):
    """The limits of a disk."""

    iops: Above0 | None = None
    bytes_per_s: Above0 | None = None
    io_unit_bytes: Above0 | None = None
    latency: list[tuple[Above0, Above0]] | None = None


class StoredDisk(Form):
    """A disk as farm.yaml declares it."""

    device: str | None = None
    profile: str | None = None
    stripes: Annotated[int, Field(ge=1, le=1024)] | None = None
    attached: str | None = None
    limits: StoredLimits | Literal["unknown"] | None = None
    resolved_limits: StoredLimits | None = None


class DeclaredHost(Form):
    """A host as farm.yaml declares it."""

    machine: str | None = None
    region: str | None = None
    zone: str | None = None
    disks: dict[str, StoredDisk | None] = {}
    collect: list[dict[str, Any]] = []


class StoredTier(Form):
    """A tier with its hosts."""

    hosts: dict[str, DeclaredHost | None] = {}


class StoredPrices(Form):
    """Prices of the farm's disks and machines."""

    currency: str
    disks: dict[str, NotBelow0] = {}
    machines: dict[str, NotBelow0] = {}


class Built(Form):
    """How an embedded farm was built: settings by tier or server, disks by ``TIER.ROLE``."""

    hosts: dict[str, int] | None = None
    disks: dict[str, dict[str, Any]] | None = None
    cpus: dict[str, Any] | None = None
    memory: dict[str, Any] | None = None
    delays: dict[str, Any] | None = None
    throttle: dict[str, Any] | None = None
    networks: dict[str, Any] | None = None
    settings: dict[str, Any] | None = None


class StoredFarm(Form):
    """The farm of the run."""

    name: str | None = None
    region: str | None = None
    tiers: dict[str, StoredTier] = {}
    prices: StoredPrices | None = None
    embedded: Built | None = None


# ---- hosts, load generators, collectors -------------------------------------------------------------


class Role(Form):
    """The device of a disk role, as found on the host."""

    device: str | None = None
    data_io: str | None = None
    why: str | None = None
    file_system: str | None = None


class StoredDevice(Form):
    """A disk of a machine."""

    members: list[str] | None = None
    model: str | None = None


class StoredNotMeasured(Form):
    """A metric that a collector cannot report."""

    metric: str
    why: str
    instance: str | None = None
    remedy: str | None = None


class StoredHost(Form):
    """The inventory of a host."""

    tier: str | None = None
    machine_id: str | None = None
    hostname: str | None = None
    cores: Count | None = None
    memory_bytes: NotBelow0 | None = None
    region: str | None = None
    zone: str | None = None
    machine_type: str | None = None
    tier_cores: Cores | None = None
    usable_cores: Cores | None = None
    roles: dict[str, Role] = {}
    disks: dict[str, StoredDevice] = {}
    not_measured: list[StoredNotMeasured] = []
    database: dict[str, Any] | None = None


class StoredGenerator(Form):
    """A load generator."""

    worker: str
    cores: Cores | None = None
    machine_id: str | None = None


class StoredCollector(Form):
    """A collector, its number of readings, and its cost."""

    kind: str
    hosts: list[str] = []
    interval_s: Above0 | None = None
    readings: Count | None = None
    failed: Count | None = None
    cpu_s: NotBelow0 | None = None
    host_cpu_s: NotBelow0 | None = None
    received_bytes: NotBelow0 | None = None


class Gap(Form):
    """A period in which a collector gave no reading."""

    from_: Time = Field(alias="from")
    to: Time
    missed: Count | None = None
    why: str | None = None


class Quality(Form):
    """Quality of a collector's readings: clock, gaps, impossible values."""

    clock_offset_s: float | None = None
    clock_error_s: float | None = None
    clock_offset_between_s: tuple[float, float] | None = None
    gaps: list[Gap] = []
    more_gaps: Count | None = None
    impossible: list[dict[str, str | int | float | None]] = []


# ---- phases, imports, proof, statements --------------------------------------------------------------


class StoredStretch(Form):
    """A period of a run; ``to`` is null while the period lasts."""

    from_: Time = Field(alias="from")
    to: Time | None

    @model_validator(mode="after")
    def _lasts(self) -> Self:
        if self.to is not None:
            lasted = _naive(self.to) - _naive(self.from_)
            if not timedelta() <= lasted <= _LONGEST:
                raise ValueError(f"an end after its begin, by {_LONGEST.days} days at most")
        return self


class StoredPhase(StoredStretch):
    """A phase of the run."""

    name: str


class StoredStep(StoredStretch):
    """A completed level of load."""

    scenario: str
    level: NotBelow0
    unit: Literal["per_s", "users"]


class StoredWarmUp(Form):
    """The detected end of the warm-up."""

    lasted_s: Seconds
    settled: Any = None
    unsettled: Any = None


class Import(Form):
    """An imported file of another tool."""

    file: str
    kind: str
    bytes: Count
    sha256: str
    from_: Time = Field(alias="from")
    to: Time
    samples: Count
    hosts: dict[str, str | None] | list[str]
    zone_assumed: Any = None
    utc_offset_s: int = 0
    notes: list[str] = []


ProofResult = Literal[
    "agrees", "contradicts", "undecided", "not_allowed", "not_supported", "nothing_to_prove", "failed"
]


class StoredSlowdown(Form):
    """How a resource was made slower."""

    what: str
    ratio: Annotated[float, Field(gt=0, lt=1)]
    of: str | None = None


class StoredResource(Form):
    """A resource of the farm."""

    kind: str | None = None
    tier: str | None = None
    host: str | None = None
    resource: str | None = None
    instance: str | None = None
    role: str | None = None


class Control(Form):
    """The control of ``run --prove``: a resource with room that was also made slower."""

    suspect: StoredResource
    change: StoredSlowdown


class Turn(StoredStretch):
    """A period in which a resource, the control, or nothing was made slower."""

    what: Literal["as_is", "slower", "control"]
    to: Time


class Proof(Form):
    """The test of ``run --prove``, or the reason why there was none."""

    suspect: StoredResource | None = None
    change: StoredSlowdown | None = None
    control: Control | None = None
    windows: list[Turn] | None = None
    result: ProofResult | None = None
    why: str | None = None


class TopStatement(Form):
    """Calls, time and rows of one SQL statement in the measure phase."""

    text: str | None = None
    database: str | None = None
    calls: NotBelow0
    time_s: NotBelow0
    rows: NotBelow0 | None = None


class StoredTopStatements(Form):
    """The top statements of one database server, or the reason why they were not measured."""

    kind: str
    host: str
    time_s: NotBelow0 | None = None
    calls: NotBelow0 | None = None
    count: Count | None = None
    statements: list[TopStatement] | None = None
    why: str | None = None
    remedy: str | None = None


class Manifest(Form):
    """The content of manifest.json."""

    state: Literal["running", "finished", "interrupted"]
    started: Time
    ended: Time | None = None
    name: str | None = None
    seed: int | None = None
    plan: StoredPlan = StoredPlan()
    farm: StoredFarm = StoredFarm()
    endpoints: dict[str, dict[str, dict[str, Any] | None] | None] = {}
    phases: list[StoredPhase] = []
    warm_up: StoredWarmUp | None = None
    steps: list[StoredStep] = []
    versions: dict[str, Any] = {}
    hosts: dict[str, StoredHost] = {}
    generators: list[StoredGenerator] = []
    collectors: list[StoredCollector] = []
    data_quality: dict[str, dict[str, Quality]] = {}
    content: dict[str, Any] | None = None
    imports: list[Import] = []
    proof: Proof | None = None
    statements: list[StoredTopStatements] = []
    warnings: list[str] = []


class StoredSource(Form):
    """Counts and times of a crawled source."""

    source: str
    count: Count
    failures: Count
    skipped: Count
    started: Time | None = None
    ended: Time | None = None
    duration_s: Seconds
    workers: Count | None = None
    rate_active_per_s: NotBelow0 | None = None
    repository_latency_s: NotBelow0 | None = None
    failures_by_kind: dict[str, Count] | None = None


class StoredEvent(Form):
    """A line of events.jsonl."""

    time: Time
    event: str
    stands_for: Count | None = None
    scenario: str | None = None


class CrawlEnded(StoredEvent):
    """The event with the crawl database's counts at the end of a crawl."""

    sources: list[StoredSource] = []
    destination_limit: Count | None = None


class LoadBegun(StoredEvent):
    """The event with the start time of a scenario's schedule."""

    scenario: str
    at: Time


class Guard(StoredEvent):
    """The event of a run's early end, with the reason and the rule of ``stop_when``."""

    why: str
    stop_rule: Count | None = None


class Warned(StoredEvent):
    """The event of a warning; ``stop_rule`` is the rule of ``stop_when`` that could not be evaluated."""

    sentence: str | None = None
    stop_rule: Count | None = None


class WorkerLost(StoredEvent):
    """The event of a load generator that ended during the run."""

    worker: str
    scenarios: list[str] = []


class StoredReadBack(StoredEvent):
    """The event with the result of reading acknowledged writes back."""

    acknowledged: Count | None = None
    records: Count | None = None
    confirmed: Count | None = None
    missing: Count | None = None
    different: Count | None = None
    expired: Count | None = None
    examples: list[str | int] | None = None


class Replayed(StoredEvent):
    """The event with the results of replayed statements."""

    captured: Count
    executed: Count
    differences: dict[str, Count]
    failed: dict[str, Count]


class StoredCourse(Form):
    """The IOPS and latency of a probe's cell over time."""

    step_s: Period
    iops: list[NotBelow0]
    latency_s: list[NotBelow0]


class StoredCell(Form):
    """A cell of a probe's suite: one workload of the disk."""

    workload: str
    block_bytes: Count | None = None
    read_ratio: NotBelow0 | None = None
    random_ratio: NotBelow0 | None = None
    outstanding: Count | None = None
    role: str = "data"


class Probed(StoredEvent):
    """The event of one measurement by a storage probe, or the reason why there is none."""

    scenario: str
    name: str | None = None
    cell: StoredCell
    suite: str
    trial: Count
    started_s: Annotated[float, Field(ge=0, lt=2**33)]
    folder: str
    size_bytes: Count
    memory_bytes: Count = 0
    host: str | None = None
    device: str | None = None
    disk: str | None = None
    why: str | None = None
    seconds: Seconds | None = None
    reads_per_s: NotBelow0 | None = None
    writes_per_s: NotBelow0 | None = None
    read_bytes_per_s: NotBelow0 | None = None
    write_bytes_per_s: NotBelow0 | None = None
    mean_s: NotBelow0 | None = None
    max_s: NotBelow0 | None = None
    series: StoredCourse | None = None
    times_ns: list[tuple[Count, Count]] | None = None


_EVENTS: dict[str, type[StoredEvent]] = {
    "crawl_ended": CrawlEnded,
    "load_begun": LoadBegun,
    "guard": Guard,
    "warning": Warned,
    "worker_lost": WorkerLost,
    "writes_read_back": StoredReadBack,
    "replayed": Replayed,
    "probed": Probed,
    "probe_failed": Probed,
}


def event_form(content: Any) -> type[StoredEvent]:
    """The form of a line of events.jsonl, selected by the line's ``event``."""
    name = content.get("event") if isinstance(content, dict) else None
    return _EVENTS.get(name, StoredEvent) if isinstance(name, str) else StoredEvent


def _naive(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=None)
