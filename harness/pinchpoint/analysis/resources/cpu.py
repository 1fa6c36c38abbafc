"""CPU: pools of cores, what a tier is allowed of them, single threads.

Hosts that share a machine read the same counters, so a pool of cores is built once per machine, whoever
reports it. With one load level its use is its busy fraction; the split into a fixed part and a part per
operation needs several levels.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Literal

import numpy as np

from pinchpoint.analysis.flows import Flows
from pinchpoint.analysis.resources.base import (
    GENERATOR,
    USE,
    ChangeableLimit,
    Context,
    CpuMeasures,
    Least,
    LimitMode,
    Measures,
    Resource,
    ResourceKind,
    Resources,
    Suspicion,
    Waiting,
    busy,
    compared,
    on_host,
    placed,
)
from pinchpoint.analysis.resources.disk.types import AT_LEAST
from pinchpoint.analysis.resources.gain import SAME, Gain, advise
from pinchpoint.analysis.stages import Rows
from pinchpoint.analysis.thresholds import (
    OTHER_PROCESSES,
    OWN_USE,
    PRESSURE,
    THREAD_BUSY,
    UTILISATION,
    at_least,
)
from pinchpoint.analysis.verdict import Advice, Bottleneck, Fact, Kind
from pinchpoint.base import units
from pinchpoint.base.wording import listed
from pinchpoint.data.inputs import Host, Inputs
from pinchpoint.data.series import Floats, Samples, mean

if TYPE_CHECKING:
    from pinchpoint.analysis.advice_inputs import AdviceInputs

FOLDERS = ("files",)
"""Tiers that may be just a folder, without processes."""
NOT_MEASURED_RANK = 0.75
"""Where a pool that was not measured stands among the candidates: before those known to have room."""
HALF = 0.5
"""Who uses more than half of a pool of cores uses most of it; what was seen half of the time was seen."""


class Cpu(ResourceKind[CpuMeasures]):
    """The rules that cores, threads and CPU limits share."""

    kind: Kind = "cpu"
    limit_modes: Mapping[Kind, LimitMode] = {"cpu": "use"}
    candidate: Kind | None = "cpu"
    takes_cpu = False  # of the CPU itself it can be said: what is left of it is saturated
    least = Least("busy", UTILISATION)
    maybe_full: Least | None = Least("busy", OWN_USE)
    placed = "the CPU of {host}"
    waiting: Waiting | None = (
        "the time in which processes wait for CPU",
        "pressure.cpu_ratio",
        units.percent,
    )

    def measure(self, resource: Resource, rows: Rows) -> CpuMeasures:
        """Means over the rows; uses are shares of the pool's busy time."""
        return measure_cpu(resource, rows)

    def judge(self, resource: Resource, measures: CpuMeasures, flows: Flows) -> Suspicion | None:
        """E1 from the busy ratio, E4 from a second source.

        A quota that is saturated is met exactly: whoever merely shares full cores does not get that far.
        """
        if not at_least(measures.busy, self.limit) or self.excused(measures):
            return None
        evidence = frozenset({"E1", "E4"} if self.witnessed(measures) else {"E1"})
        return Suspicion(resource, self.kind, evidence, measures, exact=measures.quota)

    def excused(self, measures: CpuMeasures) -> str:
        """Why it is no limit though it is used that much, in words; "" where it is one.

        A thread or an allowance is a limit of its own only where the cores around it have room. A quota
        below the cores is one in any case: full cores would not have let the tier reach it. Where no one saw
        the cores, the thread is taken for one: that its host was not seen lowers confidence.
        """
        room = measures.pool is None or measures.pool < UTILISATION.value
        if measures.seen >= HALF and (room or measures.quota):
            return ""
        return "the cores around it are saturated as well, or it was only partly measured"

    def nearness(self, resource: Resource, measures: CpuMeasures) -> float:
        """One that was not measured stands before those known to have room."""
        return NOT_MEASURED_RANK if measures.use is None else measures.use

    def used_share(self, suspicion: Suspicion, measures: CpuMeasures) -> float | None:
        """The busy ratio of the CPU."""
        return measures.busy

    def witnessed(self, measures: CpuMeasures) -> bool:
        """Whether pressure says as well that it is saturated.

        CPU pressure of the whole machine is a second source for a pool, and for a quota whose tasks wait.
        """
        return at_least(measures.pressure, PRESSURE)

    def witnesses(self, suspicion: Suspicion, measures: CpuMeasures) -> Iterator[Fact]:
        """How often processes waited for it."""
        return self._pressure(suspicion.resource, measures)

    def facts(self, suspicion: Suspicion, measures: CpuMeasures) -> Iterator[Fact]:
        """Facts about its busy ratio, the second source, and its users."""
        resource = suspicion.resource
        place = self.owner(resource, measures)[1] or "", resource.instance
        text = self.busy_words(resource, measures)
        yield compared(text, "cpu.busy_ratio", measures.busy, place, "E1", self.limit)
        yield from self._pressure(resource, measures)
        yield from self._as_reported(measures, resource)
        for tier, share in measures.uses.items():
            if tier == GENERATOR:
                text = f"the load generator used {units.percent(share)} of it"
                yield Fact(text, "generator.cpu_ratio", share)
            else:
                host = resource.hosts[resource.tiers.index(tier)] if tier in resource.tiers else ""
                text = f"{tier} used {units.percent(share)} of it"
                yield Fact(text, "cpu.busy_ratio", share, host, f"tier:{tier}")

    @abstractmethod
    def busy_words(self, resource: Resource, measures: CpuMeasures) -> str:
        """How busy it is."""

    def _pressure(self, resource: Resource, measures: CpuMeasures) -> Iterator[Fact]:
        if measures.pressure is not None:
            text = f"processes waited for CPU {units.percent(measures.pressure)} of the time"
            place = self.owner(resource, measures)[1] or "", ""
            evidence = "E4" if self.witnessed(measures) and self.kind == "cpu" else "context"
            yield compared(text, "pressure.cpu_ratio", measures.pressure, place, evidence, PRESSURE)

    def _as_reported(self, measures: CpuMeasures, resource: Resource) -> Iterator[Fact]:
        if measures.witness is not None:
            text = f"the server reports that it was working {units.percent(measures.witness)} of the time"
            evidence = "E4" if self.witnessed(measures) and self.kind != "cpu" else "context"
            place = resource.hosts[0], ""
            yield compared(text, "db.main_thread.busy_ratio", measures.witness, place, evidence, THREAD_BUSY)


class Cores(Cpu):
    """A pool of cores, which several tiers may share."""

    type = "cpu"
    nearest = True
    full_now = Least("busy", UTILISATION)
    short = "the CPU of {tier}"

    def discover(self, inputs: Inputs, flows: Flows, disks: Resources) -> Iterator[Resource]:
        """The distinct sets of cores that tiers may use, per machine."""
        return _pools(inputs)

    def excused(self, measures: CpuMeasures) -> str:
        """A pool of cores is a limit."""
        return ""

    def owner(self, resource: Resource, measures: CpuMeasures) -> tuple[str | None, str | None]:
        """The tier that uses most; where no tier's use was measured no tier is known, only where they are."""
        for tier in measures.uses:
            if tier in resource.tiers:
                return tier, resource.hosts[resource.tiers.index(tier)]
        return (None, resource.hosts[0]) if len(resource.tiers) > 1 else super().owner(resource, measures)

    def own_use(self, resource: Resource, rows: Rows) -> float | None:
        """Where no tier's own use of them was measured, all that is used of them is taken for theirs."""
        return busy(resource, rows) if not_shared_out(resource) else None

    def room_unknown(self, resource: Resource, rows: Rows, times: float) -> str:
        """Where it was not measured."""
        if busy(resource, rows) is not None:
            return ""
        return f"the CPU of {listed(resource.hosts)} ({units.NOT_MEASURED})"

    def beside(self, resource: Resource, first: Suspicion, context: Context) -> Iterator[str]:
        """A sentence if other processes saturate the CPU of its machine."""
        if resource.machine != first.resource.machine:
            return
        result = measure_cpu(resource, context.rows)
        rest = other_processes(resource, result)
        if at_least(result.busy, UTILISATION) and rest is not None:
            share = units.percent(rest)
            yield f"{share} of the CPU of {resource.hosts[0]} was used by other processes"

    def confidence_limits(
        self, suspicion: Suspicion, measures: CpuMeasures, context: Context
    ) -> Iterator[str]:
        """Sentences if the users of the CPU are unknown, or if the load generator uses too much of it."""
        tiers, own = suspicion.resource.tiers, measures.uses.get(GENERATOR, 0.0)
        if len(tiers) > 1 and not set(measures.uses) & set(tiers):
            yield "which tier uses the shared cores was not measured"
        if own >= OTHER_PROCESSES.value:
            used = units.percent(own)
            yield f"the load generator used {used} of these cores: without it they can do more"

    def name(self, resource: Resource, measures: CpuMeasures) -> str:
        """``the CPU of the sql tier (sql1)``, ``the CPU shared by sql and web (sql1)``."""
        if len(resource.tiers) > 1:
            return f"the CPU shared by {listed(resource.tiers)} ({self.owner(resource, measures)[1]})"
        return f"the CPU of the {self.owner(resource, measures)[0]} tier ({', '.join(resource.hosts)})"

    def short_name(self, resource: Resource, measures: CpuMeasures) -> str:
        """``the CPU shared by sql and web``."""
        if len(resource.tiers) > 1:
            return f"the CPU shared by {listed(resource.tiers)}"
        return super().short_name(resource, measures)

    def place(self, suspect: Bottleneck) -> str:
        """The place of the CPU, and whether it was measured."""
        seen = any(fact.value is not None for fact in suspect.evidence)
        return super().place(suspect) if seen else f"{super().place(suspect)} ({units.NOT_MEASURED})"

    def proof(self, suspicion: Suspicion, measures: CpuMeasures) -> str:
        """How busy they are, and who uses most of them."""
        cores = suspicion.resource.cores
        were = "was" if cores == 1 else "were"
        text = f"{_named(cores)} {were} {units.percent(measures.busy)} busy"
        return (
            text + self._sharing(suspicion.resource, measures) if len(suspicion.resource.tiers) > 1 else text
        )

    def relief(self, resource: Resource) -> str:
        """Advice: dedicated cores, or more of them."""
        alone = "give the tier a machine or core of its own"
        return alone if len(resource.tiers) > 1 else "give it more cores"

    def advise(self, basis: AdviceInputs, measures: CpuMeasures) -> Iterator[Advice]:
        """More of them; of what tiers share, who uses most of it; of several hosts, to spread the load."""
        first = basis.first
        resource, [tier, host] = first.resource, self.owner(first.resource, measures)
        more, gain = _more_cores(basis, resource.cores)
        cores = _cores_words(resource.cores, more)
        if len(resource.tiers) > 1:
            what = (
                f"Add CPUs to {host}, shared by {listed(resource.tiers)}{cores}{self._most(measures, tier)}"
            )
        else:
            beside = _beside(basis, measures) if tier else []
            yield from _evenly(basis, measures, beside)
            yield from _all_full(basis, beside, resource.cores, "Add CPUs to {}")
            what = f"Add CPUs to {f'{host}, of the hosts of {tier}' if beside else tier}{cores}"
        yield advise(first.kind, str(tier or host), what, gain)

    def _most(self, measures: CpuMeasures, tier: str | None) -> str:
        """The tier that uses most of a shared CPU."""
        share, own = measures.uses.get(tier or ""), measures.uses.get(GENERATOR, 0.0)
        if not share:
            return ""
        who, used = ("the load generator", own) if own > share else (tier, share)
        return f"; {who} uses {units.percent(used)} of it: move that first"

    def advise_on(self, suspect: Bottleneck, inputs: Inputs) -> Iterator[Advice]:
        """To watch it, where it was not measured."""
        if all(fact.value is None for fact in suspect.evidence):
            why = "how much of its CPU is used was not measured"
            what = f"Watch the CPU of {suspect.host} (a collector in farm.yaml), and run the same plan again"
            yield advise(suspect.kind, str(suspect.tier or suspect.host), what, Gain(None, None, why))

    def busy_words(self, resource: Resource, measures: CpuMeasures) -> str:
        """How busy it is."""
        whose = f"CPU of {', '.join(resource.hosts)}"
        if measures.busy is None:
            return f"{whose}: not measured"
        return f"{whose}: {_named(resource.cores)} {units.percent(measures.busy)} busy"

    def _sharing(self, resource: Resource, measures: CpuMeasures) -> str:
        tier, _ = self.owner(resource, measures)
        share, own = measures.uses.get(tier or ""), measures.uses.get(GENERATOR, 0.0)
        if share is None:
            return "; which tier used most of it was not measured"
        if own > share:
            return f"; the load generator used {units.percent(own)} of it, {tier} {units.percent(share)}"
        return f"; {tier} used {units.percent(share)} of it"


class CpuLimit(Cpu):
    """A tier's own allowance of CPU, which may be lower than its cores (a container's quota)."""

    type = "allowance"
    full_now = Least("busy", UTILISATION)
    short = "the CPU limit of {tier}"

    @property
    def reported(self) -> str:
        """The name of the CPU to which it belongs."""
        return "cpu"

    def own_use(self, resource: Resource, rows: Rows) -> float | None:
        """All that is used of it."""
        return busy(resource, rows)

    def load_use(self, resource: Resource, measures: CpuMeasures, *, in_steps: bool) -> float | None:
        """A tier's CPU limit is a separate resource only if it is less than the cores it runs on."""
        return measures.use if measures.quota else None

    def discover(self, inputs: Inputs, flows: Flows, disks: Resources) -> Iterator[Resource]:
        """One per host whose tier was measured by its processes."""
        for host in inputs.hosts:
            used = inputs.samples.steps(host.name, "cpu.busy_ratio", f"tier:{host.tier}")
            if np.isfinite(used).any():
                yield _own(inputs, host, "allowance", f"tier:{host.tier}", used)

    def witnessed(self, measures: CpuMeasures) -> bool:
        """Only for a quota: without one, other processes may be the ones that wait."""
        return measures.quota and super().witnessed(measures)

    def name(self, resource: Resource, measures: CpuMeasures) -> str:
        """``the CPU limit of the sql tier (sql1)``."""
        return f"the CPU limit of the {resource.tiers[0]} tier ({resource.hosts[0]})"

    def proof(self, suspicion: Suspicion, measures: CpuMeasures) -> str:
        """How much of it is used."""
        tier = suspicion.resource.tiers[0]
        return f"{tier} used {units.percent(measures.busy)} of its CPU limit; its cores were not saturated"

    def relief(self, resource: Resource) -> str:
        """More of it."""
        return "allow it more CPU"

    def advise(self, basis: AdviceInputs, measures: CpuMeasures) -> Iterator[Advice]:
        """More of it; of several hosts, to spread the load, or more for each."""
        resource = basis.first.resource
        allowed, beside = _allowed(resource), _beside(basis, measures)
        yield from _evenly(basis, measures, beside)
        yield from _all_full(basis, beside, allowed, "Allow {} more CPU")
        more, gain = _more_cores(basis, allowed)
        tier, host = resource.tiers[0], resource.hosts[0]
        whom = f"{host}, of the hosts of {tier}," if beside else tier
        what = f"Allow {whom} more CPU{_cores_words(allowed, more)}"
        yield advise(basis.first.kind, tier, what, gain)

    def busy_words(self, resource: Resource, measures: CpuMeasures) -> str:
        """How busy it is."""
        return f"the {resource.tiers[0]} tier used {units.percent(measures.busy)} of its CPU limit"


class Thread(Cpu):
    """A single thread, where the pool has more than one core: else the thread's limit is the pool's."""

    type = "thread"
    kind = "cpu_thread"
    limit_modes: Mapping[Kind, LimitMode] = {"cpu_thread": "use"}
    candidate = "cpu_thread"
    short = "the thread {instance} of {tier}"
    placed = "one thread of {tier} ({instance} on {host})"
    limit = THREAD_BUSY
    least = Least("busy", THREAD_BUSY)
    waiting = None

    def discover(self, inputs: Inputs, flows: Flows, disks: Resources) -> Iterator[Resource]:
        """The watched threads; on a host without a collector, the thread that its server reports."""
        for host in inputs.hosts:
            if len(host.cores or host.usable) == 1:
                continue
            keys = [key for key in inputs.samples.keys("cpu.busy_ratio") if key.host == host.name]
            threads = [key for key in keys if key.instance.startswith("thread:")]
            at_work = inputs.samples.steps(host.name, "db.main_thread.busy_ratio")
            for key in threads:
                used = inputs.samples.steps(*key)
                yield _own(inputs, host, "thread", key.instance, used, witness=at_work)
            if not keys and np.isfinite(at_work).any():
                waits = np.nan_to_num(inputs.samples.steps(host.name, "db.aof.wait_ratio"))
                yield _own(inputs, host, "thread", "thread:main", at_work - waits)

    def held(
        self, resource: Resource, measures: CpuMeasures, rows: Rows, flows: Flows
    ) -> ChangeableLimit | None:
        """The operations at its tier: it works on one at a time."""
        waiting = {flow.load.scenario: flow.going_on(resource.tiers[0]) for flow in flows}
        return ChangeableLimit(
            f"{resource.tiers[0]}.processes",
            1.0,
            None,
            waiting,
            "its work can be spread evenly over processes",
        )

    def is_part_of(self, resource: Resource, first: Resource) -> bool:
        """One of the pool that is saturated is part of the same bottleneck."""
        return first.type == Cores.type and first.machine == resource.machine

    def excused(self, measures: CpuMeasures) -> str:
        """Also where its server says that it had work for less than nine tenths of the time.

        What kept a core busy is then no limit: a child that writes a snapshot, a thread that spins while it
        waits for work (docs/metrics.md: the utilisation is what the server says, never the host's CPU).
        """
        if measures.witness is not None and measures.witness < UTILISATION.value:
            return "the server executed commands only part of that time"
        return super().excused(measures)

    def witnessed(self, measures: CpuMeasures) -> bool:
        """One thread at its limit makes no one else wait, but its server knows how long it was at work."""
        return at_least(measures.witness, THREAD_BUSY)

    def witnesses(self, suspicion: Suspicion, measures: CpuMeasures) -> Iterator[Fact]:
        """Evidence that the tier's server reports."""
        return self._as_reported(measures, suspicion.resource)

    def name(self, resource: Resource, measures: CpuMeasures) -> str:
        """``one thread of the nosql tier (main on nosql1)``."""
        return f"one thread of the {resource.tiers[0]} tier ({_thread(resource)} on {resource.hosts[0]})"

    def proof(self, suspicion: Suspicion, measures: CpuMeasures) -> str:
        """How busy it is, and what its cores had left."""
        pool = units.percent(measures.pool)
        used = units.percent(measures.busy)
        return f"the thread used {used} of one core and cannot use another; the cores were {pool} busy"

    def relief(self, resource: Resource) -> str:
        """A faster core, or several threads."""
        return "run it on a faster core, or as several processes"

    def advise(self, basis: AdviceInputs, measures: CpuMeasures) -> Iterator[Advice]:
        """A second one of it."""
        tier, thread = basis.first.resource.tiers[0], _thread(basis.first.resource)
        what = f"Run {tier} as two processes, or on a faster core ({thread} cannot use a second core)"
        yield advise(basis.first.kind, tier, what, basis.asked_for(f"{tier}.processes=2"))

    def busy_words(self, resource: Resource, measures: CpuMeasures) -> str:
        """How busy it is."""
        used = f"thread {_thread(resource)} used {units.percent(measures.busy)} of one core"
        return f"{used}, {_named(resource.cores)} {units.percent(measures.pool)}"


def _thread(resource: Resource) -> str:
    return resource.instance.removeprefix("thread:")


def _named(cores: int | None) -> str:
    """``its core`` or ``its 4 cores``."""
    if cores is None:
        return "its cores"
    return "its core" if cores == 1 else f"its {cores} cores"


# ---- what more of it brings ---------------------------------------------------------------------


def _beside(basis: AdviceInputs, measures: CpuMeasures) -> list[tuple[Resource, float]]:
    """The CPU of the tier's other hosts: cores that only this tier uses, or CPU limits; how busy each is."""
    first, stage = basis.first.resource, basis.case.stage
    if stage is None or measures.busy is None:
        return []
    others = (
        (one, busy(one, stage.rows))
        for one in basis.case.resources
        if one.type == first.type and one.key != first.key and one.tiers == first.tiers
    )
    return [(one, used) for one, used in others if used is not None]


def _evenly(
    basis: AdviceInputs, measures: CpuMeasures, beside: Sequence[tuple[Resource, float]]
) -> Iterator[Advice]:
    """Where other hosts of the tier have much room: as much as all of them carry when they share the load."""
    first = basis.first
    if not beside or max(used for _, used in beside) >= OWN_USE.value or not measures.busy:
        return
    [tier], host = first.resource.tiers, first.resource.hosts[0]
    uses = {host: measures.busy, **{one.hosts[0]: used for one, used in beside}}
    each = listed([f"{name} {units.percent(used)}" for name, used in uses.items()])
    what = (
        f"Spread the load of {tier} evenly over its hosts, if each host can do any of it (CPU used: {each})"
    )
    times = basis.now * measures.busy * len(uses) / sum(uses.values())
    assumes = f"{SAME}; its hosts are the same, and each can do what {host} does"
    yield advise(first.kind, tier, what, basis.until(times, f"the CPU of all hosts of {tier}", assumes))


def _all_full(
    basis: AdviceInputs, beside: Sequence[tuple[Resource, float]], cores: float | None, what: str
) -> Iterator[Advice]:
    """Where other hosts of the tier have little room as well: what it brings to do the same for all."""
    first = basis.first.resource
    full = {one.key: one.hosts[0] for one, used in beside if used >= OWN_USE.value}
    if not full:
        return
    demands = tuple(one for one in basis.demands if one.resource.key not in full)
    more, gain = _more_cores(replace(basis, demands=demands), cores, {first.key, *full})
    hosts = f"{listed(sorted({first.hosts[0], *full.values()}))} of {first.tiers[0]}"
    words = _cores_words(cores, more, " each")
    yield advise(basis.first.kind, first.tiers[0], f"{what.format(hosts)}{words}", gain)


def _allowed(resource: Resource) -> float | None:
    return mean(resource.columns["allowed"]) if "allowed" in resource.columns else None


def _more_cores(
    basis: AdviceInputs, cores: float | None, keys: Set[str] = frozenset()
) -> tuple[float | None, Gain]:
    """(the cores that carry the load until something else limits, twice the number where nothing does; gain).

    Args:
        basis: the inputs of the advice.
        cores: how many there are; None if that is not known.
        keys: of the pools that are to have more, where that is not the bottleneck alone.
    """
    bound = basis.until()
    if cores is None:
        return None, bound
    times = 1 + bound.ratio if bound.ratio else AT_LEAST
    more = math.ceil(cores * times - 1e-9) if cores >= 1 else round(cores * times, 2)
    target = basis.cpu_target(keys or {basis.first.resource.key})
    gain = basis.by(f"{target}={more:g}") if target is not None and more > cores else None
    return more if gain is not None or bound.ratio else None, gain or bound


def _cores_words(cores: float | None, more: float | None, each: str = "") -> str:
    """``: 3 instead of 2 cores``."""
    if cores is None:
        return ""
    now = f"{cores:.3g} core" + "s" * (cores != 1)
    return f" ({now}{each} now)" if more is None else f": {more:g} instead of {now}{each}"


# ---- who uses a pool of cores -------------------------------------------------------------------


def others_share(resource: Resource, measures: Measures) -> float | None:
    """The share of a pool's busy time that neither tiers nor load generators used.

    None if no tier's own use was measured: then nothing is known of who did.
    """
    if not set(resource.tiers) & set(measures.uses):
        return None
    return max(0.0, 1 - sum(measures.uses.values()))


def other_processes(resource: Resource, measures: Measures) -> float | None:
    """The same, if that is a third or more; None if it is less."""
    rest = others_share(resource, measures)
    return rest if rest is not None and rest >= OTHER_PROCESSES.value else None


def unwatched(suspicion: Suspicion) -> tuple[str, ...]:
    """Tiers that use, or may use, a pool of cores and were not measured."""
    tiers = dict.fromkeys([*suspicion.resource.tiers, *suspicion.resource.users])
    return tuple(tier for tier in tiers if tier not in (*suspicion.found.uses, GENERATOR))


def used_by_generator(suspicion: Suspicion) -> bool:
    """Whether the load generator uses more than half of a pool of cores."""
    return suspicion.found.uses.get(GENERATOR, 0.0) > HALF


def not_shared_out(resource: Resource) -> bool:
    """Whether no tier on this pool of cores was measured by itself."""
    uses = (resource.columns.get(f"{USE}{tier}") for tier in resource.tiers)
    return resource.type == Cores.type and not any(use is not None and np.isfinite(use).any() for use in uses)


# ---- their columns -----------------------------------------------------------------------------


def _pools(inputs: Inputs) -> Iterator[Resource]:
    """The distinct sets of cores that tiers may use, per machine.

    Where the processes of some tiers are known, a host without any (a folder of files) uses no cores; where
    those of none are, the machine is one pool.
    """
    known = {host.machine for host in inputs.hosts if host.cores}
    users = [host for host in inputs.hosts if host.cores or host.machine not in known]

    def pool(host: Host) -> tuple[str, tuple[int, ...]]:
        return host.machine, host.cores or host.usable

    for (machine, cores), group in groupby(sorted(users, key=pool), key=pool):
        hosts = list(group)
        everyone = inputs.names_on(machine)
        rest = [host for host in inputs.on_machine(machine) if not host.cores]
        names, tiers = placed(hosts)
        name = ",".join(map(str, cores))
        yield Resource(
            key=f"cpu:{machine}:{name}",
            type="cpu",
            machine=machine,
            hosts=names,
            tiers=tiers,
            instance=name,
            cores=len(cores) or None,
            columns={
                "busy": pool_busy(inputs.samples, everyone, cores),
                "pressure": inputs.samples.first_of(everyone, "pressure.cpu_ratio"),
                f"{USE}{GENERATOR}": _generator_use(inputs, machine, cores),
                "running": _running(inputs, hosts),
                **{f"{USE}{tier}": _tier_use(inputs, tier, hosts) for tier in tiers},
                **{f"{USE}{tier}": _tier_use(inputs, tier, rest) for tier in _others(rest, tiers)},
            },
        )


def _others(unknown: list[Host], tiers: tuple[str, ...]) -> Iterator[str]:
    """Further tiers that may use a pool, because their processes' cores are not known."""
    for tier in dict.fromkeys(host.tier for host in unknown):
        if tier not in (*tiers, *FOLDERS):
            yield tier


def _tier_use(inputs: Inputs, tier: str, hosts: list[Host]) -> Floats:
    """Cores' worth of CPU that all of a tier's hosts here use; NaN where one of them was not measured."""
    own = [cores_used(inputs, host) for host in hosts if host.tier == tier]
    return np.asarray(np.sum(own, axis=0), dtype=np.float64)


def _running(inputs: Inputs, hosts: list[Host]) -> Floats:
    """Sessions that are on a CPU or want one, as all servers here say; NaN where one of them does not."""
    lines = [inputs.samples.steps(host.name, "db.sessions_running") for host in hosts]
    return np.asarray(np.sum(lines, axis=0), dtype=np.float64)


def cores_used(inputs: Inputs, host: Host) -> Floats:
    """Cores' worth of CPU a host's tier uses."""
    return inputs.samples.steps(host.name, "cpu.busy_ratio", f"tier:{host.tier}") * cores_of(inputs, host)


def cores_of(inputs: Inputs, host: Host) -> Floats:
    """The cores that a host's tier may use: its quota, else those of the host; NaN if not known."""
    quota = inputs.samples.steps(host.name, "cpu.cores", f"tier:{host.tier}")
    return np.where(np.isfinite(quota), quota, float(len(host.cores or host.usable)) or np.nan)


def pool_busy(samples: Samples, hosts: list[str], cores: tuple[int, ...]) -> Floats:
    """The mean busy ratio of a set of cores; the machine's own where no core was measured."""
    result = samples.together(hosts, "cpu.busy_ratio", map(str, cores))
    return samples.first_of(hosts, "cpu.busy_ratio") if result is None else result


def _generator_use(inputs: Inputs, machine: str, cores: tuple[int, ...]) -> Floats:
    """Cores that the load generators used of this pool; 0 if they run on other cores.

    A worker that was not pinned may use all cores of its machine. One that does not say where it ran is on
    the farm's only if that has just one, and the worker was given cores of it.
    """
    total = np.zeros(inputs.window.steps)
    single = len({host.machine for host in inputs.hosts}) == 1
    all_cores = next((host.usable for host in inputs.on_machine(machine) if host.usable), ())
    for worker in inputs.generators:
        here = worker.machine == machine or (worker.machine is None and single and bool(worker.cores))
        may_use = worker.cores or all_cores
        shared = set(may_use) & set(cores)
        if here and shared:
            used = inputs.samples.steps(worker.name, "generator.cpu_ratio")
            total += used * len(shared) / len(may_use)
    return total


def _own(
    inputs: Inputs,
    host: Host,
    kind: Literal["allowance", "thread"],
    instance: str,
    used: Floats,
    **more: Floats,
) -> Resource:
    everyone = inputs.names_on(host.machine)
    columns = {
        "busy": used,
        "pool": pool_busy(inputs.samples, everyone, host.cores or host.usable),
        "allowed": inputs.samples.steps(host.name, "cpu.cores", f"tier:{host.tier}"),
        "pressure": inputs.samples.first_of(everyone, "pressure.cpu_ratio"),
        **more,
    }
    cores = len(host.cores or host.usable) or None
    return on_host(host, kind, f"{kind}:{host.name}:{instance}", instance, columns, cores=cores)


def measure_cpu(resource: Resource, rows: Rows) -> CpuMeasures:
    """Means over the rows; uses are shares of the pool's busy time."""
    columns = {name: column[rows] for name, column in resource.columns.items()}
    used_ratio = mean(columns["busy"])
    uses = {}
    for user in resource.users:
        used = mean(columns[f"{USE}{user}"])
        if used is None or used_ratio is None or not resource.cores or (user == GENERATOR and not used):
            continue  # a tier that idles was measured; a load generator that uses nothing is elsewhere
        uses[user] = min(1.0, used / (used_ratio * resource.cores)) if used_ratio else 0.0
    return CpuMeasures(
        busy=used_ratio,
        pool=mean(columns["pool"]) if "pool" in columns else None,
        pressure=mean(columns["pressure"]),
        seen=float(np.isfinite(columns["busy"]).mean()) if len(rows) else 0.0,
        uses=dict(sorted(uses.items(), key=lambda use: -use[1])),
        witness=mean(columns["witness"]) if "witness" in columns else None,
        quota=_is_quota(resource, columns),
    )


def _is_quota(resource: Resource, columns: Mapping[str, Floats]) -> bool:
    allowed = mean(columns["allowed"]) if "allowed" in columns else None
    return bool(resource.type == "allowance" and allowed and resource.cores and allowed < resource.cores)
