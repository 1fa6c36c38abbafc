"""Reads what the analysis may use from a stored run: declarations, plan, measurements.

Never read: how an emulated farm was built (``manifest["farm"]["embedded"]``). The answer must come out of
the measurements, or it would be no proof that they suffice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow.compute as pc

from pinchpoint.base.clock import seconds_of
from pinchpoint.base.objects import JsonObject, object_at
from pinchpoint.data.operations import Traffic
from pinchpoint.data.series import Key, Samples, Window, add_up
from pinchpoint.data.timeaxis import shown_offset_s
from pinchpoint.plan.arrivals import Bursts, bursts, scenario_seed
from pinchpoint.store import samples as recorded
from pinchpoint.store.read import StoredRun
from pinchpoint_collectors.common.times import iso

CLIMBING = ("ramp", "steps")
"""Load models whose level is a rate, or a number of users."""


COMMIT_ROLES = ("log", "wal", "journal")
ROLE_ORDER = (*COMMIT_ROLES, "data", "tempdb", "index", "content", "os")
"""A device with several roles is named after the one that operations wait for first."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a disk, or of all disks of a machine; None: no limit, or none that is known.

    Attributes:
        iops: I/Os per second.
        bytes_per_s: bytes per second.
        io_unit_bytes: an I/O counts once per such unit begun; None: it counts once.
    """

    iops: float | None = None
    bytes_per_s: float | None = None
    io_unit_bytes: float | None = None

    @property
    def known(self) -> bool:
        """Whether there is any."""
        return bool(self.iops or self.bytes_per_s)

    def times(self, factor: float) -> Limits:
        """This many times as much."""
        return replace(
            self,
            iops=self.iops and self.iops * factor,
            bytes_per_s=self.bytes_per_s and self.bytes_per_s * factor,
        )

    def share(self, io: float, size: float) -> float:
        """How much of the nearer limit that many I/Os and bytes (per second, or per operation) take."""
        counted = max(io, size / self.io_unit_bytes) if self.io_unit_bytes else io
        by_io = counted / self.iops if self.iops else 0.0
        return max(by_io, size / self.bytes_per_s if self.bytes_per_s else 0.0)


@dataclass(frozen=True, slots=True)
class DiskRole:
    """The role of a disk on a tier's host.

    Attributes:
        machine: the machine the device belongs to.
        device: None if it could not be resolved; ``why`` says so.
        data_io: ``kernel``, ``writes-flushes``, ``unknown`` or ``not verified`` (collectors, "Inventory").
        limits: as declared, None where withheld.
        profile: the entry of the catalogue that was declared, None where figures or nothing were.
        stripes: this many disks of that profile it is declared to be made of.
        attached: which caps of its machine its I/O counts to: ``network``, ``cached``, or none (``local``).
        curve: (outstanding I/Os, seconds each) as a probe found them; empty if none did.
        seen: whether a collector looked at the device; never for a managed database.
    """

    tier: str
    host: str
    role: str
    machine: str
    device: str | None
    why: str | None
    data_io: str
    limits: Limits | None
    profile: str | None = None
    stripes: int = 1
    attached: str = "network"
    curve: tuple[tuple[float, float], ...] = ()
    seen: bool = True


@dataclass(frozen=True, slots=True)
class Host:
    """One host of the farm as a tier uses it.

    Attributes:
        machine: equal for hosts that share one machine.
        cores: the cores the tier's processes may use; empty if it has none or they are not known.
        usable: the cores of the machine; empty if they are not known.
        machine_type: the entry of the catalogue that the machine is declared to be; None if none is.
        members: the machine's whole disks -> those each is made of; empty if they are not known.
        models: the same disks -> their model, if it is known.
    """

    name: str
    tier: str
    machine: str
    cores: tuple[int, ...]
    usable: tuple[int, ...]
    machine_type: str | None = None
    members: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Worker:
    """One load generator.

    Attributes:
        cores: the cores it was pinned to; empty if it was not.
        machine: None if the run does not say which machine it ran on.
    """

    name: str
    cores: tuple[int, ...]
    machine: str | None


@dataclass(frozen=True, slots=True)
class Load:
    """One scenario's planned load.

    Attributes:
        model: ``closed`` (also ramps and steps of users), or as the plan names it.
        users: of a closed load, else None; of a ramp those at its end, of steps those that are judged.
        think_s: pause between two operations of a user.
        base_per_s: the rate of an open load, or between bursts.
        arrivals: ``poisson`` or ``constant``: how its operations are spaced, where it has a schedule.
        peak_per_s: the rate in a burst.
        bursts: when there are any, in seconds from the load's begin; None of another model.
        over_s: of a ramp, how long it takes.
        sources: of a crawl, each source's name -> its kind, where the plan names them.
        native: the farm crawls by itself, at its own rate: its operations are counted, not timed.
        several: the analysed time covers several levels of its load, so changes are intended.
    """

    scenario: str
    use: str
    model: str
    users: float | None = None
    think_s: float = 0.0
    base_per_s: float | None = None
    peak_per_s: float | None = None
    bursts: Bursts | None = None
    over_s: float | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    native: bool = False
    several: bool = False
    arrivals: str = "poisson"

    @property
    def scheduled(self) -> bool:
        """Whether operations have an intended start."""
        return self.model != "closed"


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything the steps read.

    Attributes:
        window: the measure phase.
        measured: whether there was a measure phase at all.
        whole: operations of the whole run; ``traffic`` those of the measure phase.
        objectives: those of scenarios; ``server_objectives`` those of the servers.
        generators: the load workers.
        views: (kind, host) of what was to measure a server from within: collectors beside those of hosts.
        utc_offset_s: how far the time of day that people read is ahead of UTC.
    """

    state: str
    window: Window
    measured: bool
    hosts: tuple[Host, ...]
    disks: tuple[DiskRole, ...]
    loads: tuple[Load, ...]
    objectives: tuple[JsonObject, ...]
    generators: tuple[Worker, ...]
    samples: Samples
    whole: Traffic
    traffic: Traffic
    events: tuple[JsonObject, ...]
    warnings: tuple[str, ...]
    views: tuple[tuple[str, str], ...] = ()
    utc_offset_s: int = 0
    server_objectives: tuple[JsonObject, ...] = ()

    def during(self, window: Window) -> Inputs:
        """The inputs as if only this part of the window had been measured."""
        samples, traffic = self.samples.during(window), self.whole.during(window)
        return replace(self, window=window, samples=samples, traffic=traffic)

    def load(self, scenario: str) -> Load | None:
        """The planned load of a scenario."""
        return next((load for load in self.loads if load.scenario == scenario), None)

    def on_machine(self, machine: str) -> tuple[Host, ...]:
        """The hosts that are this machine."""
        return tuple(host for host in self.hosts if host.machine == machine)

    def names_on(self, machine: str) -> list[str]:
        """Their names."""
        return [host.name for host in self.on_machine(machine)]


def read_inputs(run: StoredRun) -> Inputs:
    """Take from a run what the analysis may see."""
    manifest = run.manifest
    start, end, measured = _measure_phase(run)
    window = Window.between(start, end, pc.max(run.operations["interval_s"]).as_py() or 1.0)
    traffic = Traffic(run.operations)
    declared = dict(_declared_hosts(manifest))
    plan = object_at(manifest, "plan")
    hosts, disks = tuple(_hosts(manifest, declared)), tuple(disk_roles(manifest))
    return Inputs(
        state=manifest.get("state", "finished"),
        window=window,
        measured=measured,
        hosts=hosts,
        disks=disks,
        loads=tuple(
            _load(name, spec, scenario_seed(plan.get("seed") or 0, name))
            for name, spec in object_at(plan, "scenarios").items()
        ),
        objectives=tuple(one for one in plan.get("objectives") or () if one.get("scenario")),
        server_objectives=tuple(one for one in plan.get("objectives") or () if one.get("metric")),
        generators=tuple(
            Worker(str(worker.get("worker")), tuple(worker.get("cores") or ()), worker.get("machine_id"))
            for worker in manifest.get("generators") or ()
        ),
        samples=add_up(run.samples, window, _counted_together(hosts, disks)),
        whole=traffic,
        traffic=traffic.during(window),
        events=tuple(run.events),
        warnings=tuple(manifest.get("warnings") or ()),
        utc_offset_s=shown_offset_s(manifest),
        views=tuple(_views(manifest)),
    )


def utc(time_s: float) -> str:
    """UTC seconds as the run directory writes them."""
    return iso(time_s, "auto")


_WATCH_HOSTS = frozenset({"local", "ssh", "agent", "windows", "prometheus"})
"""Kinds that watch the host itself: whether it was seen is recognised by its CPU, whenever that came."""


def _views(manifest: JsonObject) -> Iterator[tuple[str, str]]:
    for collector in manifest.get("collectors") or ():
        if collector.get("kind") not in _WATCH_HOSTS:
            yield from ((collector["kind"], host) for host in collector.get("hosts") or ())


def _measure_phase(run: StoredRun) -> tuple[float, float, bool]:
    """Start and end of the measure phase; its end is the last thing recorded where the run stopped early."""
    for phase in run.manifest.get("phases") or ():
        if phase.get("name") == "measure" and phase.get("from"):
            start = seconds_of(phase["from"])
            end = phase.get("to")
            return start, seconds_of(end) if end else max(start, _last_record_s(run)), True
    return 0.0, 0.0, False


def _last_record_s(run: StoredRun) -> float:
    ends = [0.0]
    if run.operations.num_rows:
        ends.append(pc.max(pc.add(run.operations["time_s"], run.operations["interval_s"])).as_py())
    sampled = recorded.extent(run.samples)
    return max(*ends, sampled[1]) if sampled else max(ends)


def _counted_together(hosts: Iterable[Host], disks: Iterable[DiskRole]) -> set[Key]:
    """Reads and writes of the disks with a role: they are added where both are of the same reading."""
    metrics = ("disk.reads_per_s", "disk.writes_per_s", "disk.data_writes_per_s")
    places = {
        (host.name, disk.device)
        for disk in disks
        for host in hosts
        if host.machine == disk.machine and disk.device
    }
    return {Key(host, metric, device) for host, device in places for metric in metrics}


def _declared_hosts(manifest: JsonObject) -> Iterator[tuple[tuple[str, str], JsonObject]]:
    """(tier, host) → what farm.yaml declares under ``tiers``."""
    for tier, spec in object_at(manifest, "farm", "tiers").items():
        for host, entry in object_at(spec, "hosts").items():
            yield (tier, host), entry or {}


def _pairs(manifest: JsonObject, declared: Mapping[tuple[str, str], Any]) -> list[tuple[str, str]]:
    """Every (tier, host): those declared, and those only the inventory knows."""
    pairs = list(declared)
    known = {host for _, host in pairs}
    for host, facts in object_at(manifest, "hosts").items():
        if host not in known and facts.get("tier"):
            pairs.append((facts["tier"], host))
    return pairs


def _hosts(manifest: JsonObject, declared: Mapping[tuple[str, str], Any]) -> Iterator[Host]:
    inventory = object_at(manifest, "hosts")
    for tier, name in _pairs(manifest, declared):
        facts = object_at(inventory, name)
        own, usable = (tuple(sorted(facts.get(key) or ())) for key in ("tier_cores", "usable_cores"))
        disks = object_at(facts, "disks")
        yield Host(
            name,
            tier,
            facts.get("machine_id") or name,
            own,
            usable,
            declared.get((tier, name), {}).get("machine"),
            {disk: tuple(said.get("members") or ()) for disk, said in disks.items()},
            {disk: said["model"] for disk, said in disks.items() if said.get("model")},
        )


def disk_roles(manifest: JsonObject) -> Iterator[DiskRole]:
    """Every disk with a role, as declared and as found."""
    declared = dict(_declared_hosts(manifest))
    inventory = object_at(manifest, "hosts")
    for tier, host in _pairs(manifest, declared):
        facts = object_at(inventory, host)
        roles = object_at(facts, "roles")
        promised = object_at(declared.get((tier, host), {}), "disks")
        for role in dict.fromkeys([*roles, *promised]):
            result, answer = object_at(roles, role), object_at(promised, role)
            yield DiskRole(
                tier=tier,
                host=host,
                role=role,
                machine=facts.get("machine_id") or host,
                device=result.get("device"),
                why=result.get("why") or (None if result else "no collector saw this disk"),
                data_io=result.get("data_io") or "not verified",
                limits=_limits(answer),
                profile=answer.get("profile"),
                stripes=answer.get("stripes") or 1,
                attached=answer.get("attached") or "network",
                curve=_curve(answer),
                seen=bool(result),
            )


def _limits(text: JsonObject) -> Limits | None:
    """The declared caps, from a profile (already resolved) or given; None if they are withheld."""
    given = text.get("resolved_limits") or text.get("limits")
    if not isinstance(given, Mapping):
        return None
    iops, rate, unit = (given.get(key) for key in ("iops", "bytes_per_s", "io_unit_bytes"))
    return Limits(iops, rate, unit) if iops or rate else None


def _curve(text: JsonObject) -> tuple[tuple[float, float], ...]:
    """Latency over outstanding I/Os, where a probe wrote it into farm.yaml."""
    given = text.get("limits")
    result = given.get("latency") if isinstance(given, Mapping) else None
    return tuple((float(depth), float(latency_s)) for depth, latency_s in result or ())


def _load(name: str, spec: JsonObject, seed: int) -> Load:
    load = object_at(spec, "load")
    model = load.get("model", "closed")
    top: JsonObject = (load.get("to") or load.get("start") or {}) if model in CLIMBING else {}
    return Load(
        scenario=name,
        use=spec.get("use", ""),
        model="closed" if top.get("users") is not None else model,
        users=load.get("users") or top.get("users"),
        think_s=load.get("think_s") or 0.0,
        base_per_s=load.get("base_per_s") if model == "burst" else load.get("rate_per_s"),
        peak_per_s=load.get("peak_per_s"),
        bursts=bursts(load, seed) if model == "burst" else None,
        over_s=load.get("over_s") if model == "ramp" else None,
        sources=dict(_sources(spec)),
        native=object_at(spec, "params").get("drive") == "native",
        arrivals=load.get("arrivals") or "poisson",
    )


def _sources(spec: JsonObject) -> Iterator[tuple[str, str]]:
    """(name, kind) of a crawl's sources: its name, else profiles, else its endpoint, else its kind."""
    for source in object_at(spec, "params").get("sources") or ():
        kind = str(source.get("kind") or "")
        other = kind if kind == "profiles" else source.get("endpoint") or kind
        yield str(source.get("name") or other), kind
