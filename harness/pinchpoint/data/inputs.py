"""Reads the inputs of the analysis from a stored run: declarations, plan, measurements.

The analysis never reads how an emulated farm was built (``manifest["farm"]["embedded"]``): its answer must
come from measurements alone.
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
"""Load models whose level is a rate or a number of users."""


COMMIT_ROLES = ("log", "wal", "journal")
ROLE_ORDER = (*COMMIT_ROLES, "data", "tempdb", "index", "content", "os")
"""Roles by priority: a device with several roles gets the name of the first role in this order."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a disk, or of all disks of a machine together; None: no limit, or not known.

    Attributes:
        iops: I/Os per second.
        bytes_per_s: bytes per second.
        io_unit_bytes: bytes per counted I/O: a larger I/O counts once for each unit begun; None: every I/O
            counts once.
    """

    iops: float | None = None
    bytes_per_s: float | None = None
    io_unit_bytes: float | None = None

    @property
    def known(self) -> bool:
        """Whether at least one limit is known."""
        return bool(self.iops or self.bytes_per_s)

    def times(self, factor: float) -> Limits:
        """The limits multiplied by ``factor``."""
        return replace(
            self,
            iops=self.iops and self.iops * factor,
            bytes_per_s=self.bytes_per_s and self.bytes_per_s * factor,
        )

    def share(self, io: float, size: float) -> float:
        """The share of the nearer limit that the I/Os and bytes use, per second or per operation."""
        counted = max(io, size / self.io_unit_bytes) if self.io_unit_bytes else io
        by_io = counted / self.iops if self.iops else 0.0
        return max(by_io, size / self.bytes_per_s if self.bytes_per_s else 0.0)


@dataclass(frozen=True, slots=True)
class DiskRole:
    """The role of a disk on a tier's host.

    Attributes:
        machine: id of the machine that has the device.
        device: name of the device; None if not resolved, and ``why`` gives the reason.
        data_io: how the I/O was verified: ``kernel``, ``writes-flushes``, ``unknown`` or ``not verified``
            (docs/metrics.md, "Inventory").
        limits: declared limits; None if not declared.
        profile: declared type of the disk in the catalogue; None if limits or nothing were declared.
        stripes: declared number of disks of that type that form the disk.
        attached: which limits of its machine the I/O counts against: ``network``, ``cached``, or none
            (``local``).
        curve: (outstanding I/Os, mean latency in seconds) from a probe; empty without a probe.
        seen: whether a collector inspected the device; always False for a managed database.
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
    """One host of the farm in the role of a tier.

    Attributes:
        machine: id of the machine; equal for hosts on the same machine.
        cores: the cores that the tier's processes may use; empty if there are none or they are not known.
        usable: the usable cores of the machine; empty if not known.
        machine_type: declared type of the machine in the catalogue; None if not declared.
        members: whole disk of the machine -> its member disks; empty if not known.
        models: whole disk of the machine -> its model, for disks with a known model.
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
        cores: the cores to which the generator was pinned; empty if it was not pinned.
        machine: id of the generator's machine; None if not recorded.
    """

    name: str
    cores: tuple[int, ...]
    machine: str | None


@dataclass(frozen=True, slots=True)
class Load:
    """The planned load of one scenario.

    Attributes:
        model: ``closed`` (also for ramps and steps of users), else the load model's name in the plan.
        users: number of users of a closed load, else None. Of a ramp: the users at its end; of steps: the
            users of the judged step.
        think_s: pause between two operations of a user, seconds.
        base_per_s: rate of an open load, or of a burst load between bursts, operations per second.
        arrivals: spacing of scheduled operations: ``poisson`` or ``constant``.
        peak_per_s: rate in a burst, operations per second.
        bursts: the bursts, with times in seconds from the start of the load; None for other load models.
        over_s: length of a ramp, seconds; None for other load models.
        sources: name of a crawl's source -> its kind, for sources that the plan names.
        native: whether the farm's own crawler crawls, at its own rate; its operations are counted but not
            timed.
        several: whether the analysed time covers several levels of the load, so that changes are intended.
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
        """Whether the operations have an intended start."""
        return self.model != "closed"


@dataclass(frozen=True, slots=True)
class Inputs:
    """All inputs of the analysis.

    Attributes:
        window: the measure phase, as steps of whole UTC seconds.
        measured: whether the run had a measure phase.
        whole: operations of the whole run; ``traffic`` contains those of the measure phase.
        objectives: objectives of scenarios; ``server_objectives`` contains those of the servers.
        generators: the load generators.
        views: (kind, host) of each collector that measures a server from inside and not the host.
        utc_offset_s: offset of the displayed time of day from UTC, seconds.
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
        """The inputs for this window alone."""
        samples, traffic = self.samples.during(window), self.whole.during(window)
        return replace(self, window=window, samples=samples, traffic=traffic)

    def load(self, scenario: str) -> Load | None:
        """The planned load of a scenario; None if the plan has no such scenario."""
        return next((load for load in self.loads if load.scenario == scenario), None)

    def on_machine(self, machine: str) -> tuple[Host, ...]:
        """The hosts on this machine."""
        return tuple(host for host in self.hosts if host.machine == machine)

    def names_on(self, machine: str) -> list[str]:
        """The names of the hosts on this machine."""
        return [host.name for host in self.on_machine(machine)]


def read_inputs(run: StoredRun) -> Inputs:
    """The inputs of the analysis from a stored run."""
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
    """A time in UTC seconds as ISO text, in the form used in run directories."""
    return iso(time_s, "auto")


_WATCH_HOSTS = frozenset({"local", "ssh", "agent", "windows", "prometheus"})
"""Kinds of collectors that measure the host itself; the CPU samples show whether the host was measured."""


def _views(manifest: JsonObject) -> Iterator[tuple[str, str]]:
    for collector in manifest.get("collectors") or ():
        if collector.get("kind") not in _WATCH_HOSTS:
            yield from ((collector["kind"], host) for host in collector.get("hosts") or ())


def _measure_phase(run: StoredRun) -> tuple[float, float, bool]:
    """(start, end, True) of the measure phase, UTC seconds; (0, 0, False) if the run has none.

    In a run that stopped early the phase ends with the last record.
    """
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
    """The series of reads and writes of disks with roles, for which single readings are kept.

    Reads and writes are added only if both come from the same reading.
    """
    metrics = ("disk.reads_per_s", "disk.writes_per_s", "disk.data_writes_per_s")
    places = {
        (host.name, disk.device)
        for disk in disks
        for host in hosts
        if host.machine == disk.machine and disk.device
    }
    return {Key(host, metric, device) for host, device in places for metric in metrics}


def _declared_hosts(manifest: JsonObject) -> Iterator[tuple[tuple[str, str], JsonObject]]:
    """((tier, host), content of the host in farm.yaml) of each host under ``tiers``."""
    for tier, spec in object_at(manifest, "farm", "tiers").items():
        for host, entry in object_at(spec, "hosts").items():
            yield (tier, host), entry or {}


def _pairs(manifest: JsonObject, declared: Mapping[tuple[str, str], Any]) -> list[tuple[str, str]]:
    """Every (tier, host): the declared ones, and those that are only in the inventory."""
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
    """Every disk role, with its declaration and the inventory of its host."""
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
    """The declared limits of a disk, from its profile or its own; None if there are none."""
    given = text.get("resolved_limits") or text.get("limits")
    if not isinstance(given, Mapping):
        return None
    iops, rate, unit = (given.get(key) for key in ("iops", "bytes_per_s", "io_unit_bytes"))
    return Limits(iops, rate, unit) if iops or rate else None


def _curve(text: JsonObject) -> tuple[tuple[float, float], ...]:
    """(outstanding I/Os, latency in seconds) from a probe, as declared in farm.yaml; empty without it."""
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
    """(name, kind) of each source of a crawl.

    Without a name, a source is named ``profiles`` for that kind, else after its endpoint, else after its
    kind.
    """
    for source in object_at(spec, "params").get("sources") or ():
        kind = str(source.get("kind") or "")
        other = kind if kind == "profiles" else source.get("endpoint") or kind
        yield str(source.get("name") or other), kind
