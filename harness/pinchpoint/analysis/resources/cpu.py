"""CPU resources: pools of cores, CPU limits of tiers, and single threads.

Hosts that share a machine read the same counters, so a pool of cores is built once per machine. With one load
level, the utilisation of a pool is its busy ratio; only several levels separate a fixed part from a part per
operation.
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
"""Tiers that may be a folder only, without processes."""
NOT_MEASURED_RANK = 0.75
"""Nearness to a limit of a pool that was not measured: it ranks before pools known to have room."""
HALF = 0.5
"""A user of more than half of a pool of cores uses most of it. A resource counts as measured if half of the
rows have a value."""


class Cpu(ResourceKind[CpuMeasures]):
    """Rules that pools of cores, threads and CPU limits share."""

    kind: Kind = "cpu"
    limit_modes: Mapping[Kind, LimitMode] = {"cpu": "use"}
    candidate: Kind | None = "cpu"
    takes_cpu = False  # whatever the hypervisor took, the remaining CPU time is saturated
    least = Least("busy", UTILISATION)
    maybe_full: Least | None = Least("busy", OWN_USE)
    placed = "the CPU of {host}"
    waiting: Waiting | None = (
        "the time in which processes wait for CPU",
        "pressure.cpu_ratio",
        units.percent,
    )

    def measure(self, resource: Resource, rows: Rows) -> CpuMeasures:
        """Means over these rows. The uses are shares of the pool's busy time."""
        return measure_cpu(resource, rows)

    def judge(self, resource: Resource, measures: CpuMeasures, flows: Flows) -> Suspicion | None:
        """E1 from the busy ratio, E4 from a second source.

        A saturated quota counts as an exact limit, because a tier on shared, full cores would not reach it.
        """
        if not at_least(measures.busy, self.limit) or self.excused(measures):
            return None
        evidence = frozenset({"E1", "E4"} if self.witnessed(measures) else {"E1"})
        return Suspicion(resource, self.kind, evidence, measures, exact=measures.quota)

    def excused(self, measures: CpuMeasures) -> str:
        """Why a CPU resource with high utilisation is no limit, in words; "" if it is a limit.

        A thread or an allowance is a limit of its own only if the cores that it runs on have room. A quota
        below the cores is always a limit: full cores would not have let the tier reach its quota. If the
        cores were not measured, the thread counts as a limit, and the unmeasured host lowers confidence.
        """
        room = measures.pool is None or measures.pool < UTILISATION.value
        if measures.seen >= HALF and (room or measures.quota):
            return ""
        return "the cores around it are saturated as well, or it was only partly measured"

    def nearness(self, resource: Resource, measures: CpuMeasures) -> float:
        """How near a CPU is to saturation.

        A CPU that was not measured ranks before CPUs known to have room.
        """
        return NOT_MEASURED_RANK if measures.use is None else measures.use

    def used_share(self, suspicion: Suspicion, measures: CpuMeasures) -> float | None:
        """The busy ratio of the CPU."""
        return measures.busy

    def witnessed(self, measures: CpuMeasures) -> bool:
        """Whether CPU pressure also shows that the CPU is saturated.

        The pressure of the whole machine is a second source for a pool, and for a quota whose tasks wait.
        """
        return at_least(measures.pressure, PRESSURE)

    def witnesses(self, suspicion: Suspicion, measures: CpuMeasures) -> Iterator[Fact]:
        """The share of the time in which processes waited for CPU, as a fact."""
        return self._pressure(suspicion.resource, measures)

    def facts(self, suspicion: Suspicion, measures: CpuMeasures) -> Iterator[Fact]:
        """Facts about the busy ratio, the second source, and the users of the CPU."""
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
        """The utilisation of the CPU resource in words."""

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
        """An empty text, because a saturated pool of cores is always a limit."""
        return ""

    def owner(self, resource: Resource, measures: CpuMeasures) -> tuple[str | None, str | None]:
        """(tier, host) of the tier that uses most of the pool; tier None if no tier's use was measured."""
        for tier in measures.uses:
            if tier in resource.tiers:
                return tier, resource.hosts[resource.tiers.index(tier)]
        return (None, resource.hosts[0]) if len(resource.tiers) > 1 else super().owner(resource, measures)

    def own_use(self, resource: Resource, rows: Rows) -> float | None:
        """Utilisation of the pool if no tier's use was measured by itself; else None."""
        return busy(resource, rows) if not_shared_out(resource) else None

    def room_unknown(self, resource: Resource, rows: Rows, times: float) -> str:
        """Name of the CPU if its utilisation was not measured; else ""."""
        if busy(resource, rows) is not None:
            return ""
        return f"the CPU of {listed(resource.hosts)} ({units.NOT_MEASURED})"

    def beside(self, resource: Resource, first: Suspicion, context: Context) -> Iterator[str]:
        """A sentence if other processes saturate the CPU of the machine."""
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
        """Sentences if the users of the CPU are unknown, or if the load generator uses a large part of it."""
        tiers, own = suspicion.resource.tiers, measures.uses.get(GENERATOR, 0.0)
        if len(tiers) > 1 and not set(measures.uses) & set(tiers):
            yield "which tier uses the shared cores was not measured"
        if own >= OTHER_PROCESSES.value:
            used = units.percent(own)
            yield f"the load generator used {used} of these cores: without it they can do more"

    def name(self, resource: Resource, measures: CpuMeasures) -> str:
        """Name: ``the CPU of the sql tier (sql1)``, ``the CPU shared by sql and web (sql1)``."""
        if len(resource.tiers) > 1:
            return f"the CPU shared by {listed(resource.tiers)} ({self.owner(resource, measures)[1]})"
        return f"the CPU of the {self.owner(resource, measures)[0]} tier ({', '.join(resource.hosts)})"

    def short_name(self, resource: Resource, measures: CpuMeasures) -> str:
        """Name in advice, such as ``the CPU shared by sql and web``."""
        if len(resource.tiers) > 1:
            return f"the CPU shared by {listed(resource.tiers)}"
        return super().short_name(resource, measures)

    def place(self, suspect: Bottleneck) -> str:
        """Name of the CPU among candidates, with a note if it was not measured."""
        seen = any(fact.value is not None for fact in suspect.evidence)
        return super().place(suspect) if seen else f"{super().place(suspect)} ({units.NOT_MEASURED})"

    def proof(self, suspicion: Suspicion, measures: CpuMeasures) -> str:
        """The busy ratio of the cores and the tier that uses most of them, in words."""
        cores = suspicion.resource.cores
        were = "was" if cores == 1 else "were"
        text = f"{_named(cores)} {were} {units.percent(measures.busy)} busy"
        return (
            text + self._sharing(suspicion.resource, measures) if len(suspicion.resource.tiers) > 1 else text
        )

    def relief(self, resource: Resource) -> str:
        """The change that would relieve the pool, in words: more cores, or cores of its own for a tier."""
        alone = "give the tier a machine or core of its own"
        return alone if len(resource.tiers) > 1 else "give it more cores"

    def advise(self, basis: AdviceInputs, measures: CpuMeasures) -> Iterator[Advice]:
        """Advice: more cores; for shared cores, the main user; for several hosts, to spread the load."""
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
        """Words for the main user of a shared CPU, a tier or the load generator; "" if unknown."""
        share, own = measures.uses.get(tier or ""), measures.uses.get(GENERATOR, 0.0)
        if not share:
            return ""
        who, used = ("the load generator", own) if own > share else (tier, share)
        return f"; {who} uses {units.percent(used)} of it: move that first"

    def advise_on(self, suspect: Bottleneck, inputs: Inputs) -> Iterator[Advice]:
        """Advice to measure the CPU, if it was not measured."""
        if all(fact.value is None for fact in suspect.evidence):
            why = "how much of its CPU is used was not measured"
            what = f"Watch the CPU of {suspect.host} (a collector in farm.yaml), and run the same plan again"
            yield advise(suspect.kind, str(suspect.tier or suspect.host), what, Gain(None, None, why))

    def busy_words(self, resource: Resource, measures: CpuMeasures) -> str:
        """The busy ratio of the cores in words."""
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
    """The CPU limit of a tier, which may be lower than its cores (a container's quota)."""

    type = "allowance"
    full_now = Least("busy", UTILISATION)
    short = "the CPU limit of {tier}"

    @property
    def reported(self) -> str:
        """The resource type in verdict.json: ``cpu``, because a CPU limit is part of a CPU."""
        return "cpu"

    def own_use(self, resource: Resource, rows: Rows) -> float | None:
        """Utilisation of the CPU limit."""
        return busy(resource, rows)

    def load_use(self, resource: Resource, measures: CpuMeasures, *, in_steps: bool) -> float | None:
        """Utilisation by the load; None if the CPU limit is not below the cores that the tier runs on."""
        return measures.use if measures.quota else None

    def discover(self, inputs: Inputs, flows: Flows, disks: Resources) -> Iterator[Resource]:
        """One CPU limit per host whose tier's processes were measured."""
        for host in inputs.hosts:
            used = inputs.samples.steps(host.name, "cpu.busy_ratio", f"tier:{host.tier}")
            if np.isfinite(used).any():
                yield _own(inputs, host, "allowance", f"tier:{host.tier}", used)

    def witnessed(self, measures: CpuMeasures) -> bool:
        """Whether CPU pressure also shows saturation; False without a quota: other processes may wait."""
        return measures.quota and super().witnessed(measures)

    def name(self, resource: Resource, measures: CpuMeasures) -> str:
        """Name in plain words, such as ``the CPU limit of the sql tier (sql1)``."""
        return f"the CPU limit of the {resource.tiers[0]} tier ({resource.hosts[0]})"

    def proof(self, suspicion: Suspicion, measures: CpuMeasures) -> str:
        """The utilisation of the CPU limit in words."""
        tier = suspicion.resource.tiers[0]
        return f"{tier} used {units.percent(measures.busy)} of its CPU limit; its cores were not saturated"

    def relief(self, resource: Resource) -> str:
        """The change that would relieve the limit, in words."""
        return "allow it more CPU"

    def advise(self, basis: AdviceInputs, measures: CpuMeasures) -> Iterator[Advice]:
        """Advice: a higher CPU limit for one or all hosts of the tier, or to spread the load over them."""
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
        """The utilisation of the CPU limit in words."""
        return f"the {resource.tiers[0]} tier used {units.percent(measures.busy)} of its CPU limit"


class Thread(Cpu):
    """A single thread on several cores. On one core, the limit of the thread is that of the pool."""

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
        """The measured threads; on a host without a collector, the thread that its server reports."""
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
        """The operations at the thread's tier, of which the thread serves one at a time."""
        waiting = {flow.load.scenario: flow.going_on(resource.tiers[0]) for flow in flows}
        return ChangeableLimit(
            f"{resource.tiers[0]}.processes",
            1.0,
            None,
            waiting,
            "its work can be spread evenly over processes",
        )

    def is_part_of(self, resource: Resource, first: Resource) -> bool:
        """Whether ``first`` is a pool of cores on the thread's machine, so that both are one bottleneck."""
        return first.type == Cores.type and first.machine == resource.machine

    def excused(self, measures: CpuMeasures) -> str:
        """Why the thread is no limit, in words; also if its server reports less than 90 % busy time.

        The thread was then busy with something else: a child process that writes a snapshot, or spinning
        while it waits for work (docs/metrics.md: utilisation is the server's figure, not the host's CPU).
        """
        if measures.witness is not None and measures.witness < UTILISATION.value:
            return "the server executed commands only part of that time"
        return super().excused(measures)

    def witnessed(self, measures: CpuMeasures) -> bool:
        """Whether the server also reports a busy thread. One thread at its limit causes no CPU pressure."""
        return at_least(measures.witness, THREAD_BUSY)

    def witnesses(self, suspicion: Suspicion, measures: CpuMeasures) -> Iterator[Fact]:
        """Evidence that the server of the tier reports."""
        return self._as_reported(measures, suspicion.resource)

    def name(self, resource: Resource, measures: CpuMeasures) -> str:
        """Name in plain words, such as ``one thread of the nosql tier (main on nosql1)``."""
        return f"one thread of the {resource.tiers[0]} tier ({_thread(resource)} on {resource.hosts[0]})"

    def proof(self, suspicion: Suspicion, measures: CpuMeasures) -> str:
        """The busy ratios of the thread and of its cores, in words."""
        pool = units.percent(measures.pool)
        used = units.percent(measures.busy)
        return f"the thread used {used} of one core and cannot use another; the cores were {pool} busy"

    def relief(self, resource: Resource) -> str:
        """The change that would relieve the thread, in words."""
        return "run it on a faster core, or as several processes"

    def advise(self, basis: AdviceInputs, measures: CpuMeasures) -> Iterator[Advice]:
        """Advice to run the tier as two processes."""
        tier, thread = basis.first.resource.tiers[0], _thread(basis.first.resource)
        what = f"Run {tier} as two processes, or on a faster core ({thread} cannot use a second core)"
        yield advise(basis.first.kind, tier, what, basis.asked_for(f"{tier}.processes=2"))

    def busy_words(self, resource: Resource, measures: CpuMeasures) -> str:
        """The busy ratios of the thread and of its cores, in words."""
        used = f"thread {_thread(resource)} used {units.percent(measures.busy)} of one core"
        return f"{used}, {_named(resource.cores)} {units.percent(measures.pool)}"


def _thread(resource: Resource) -> str:
    return resource.instance.removeprefix("thread:")


def _named(cores: int | None) -> str:
    """``its core`` or ``its 4 cores``, for a sentence."""
    if cores is None:
        return "its cores"
    return "its core" if cores == 1 else f"its {cores} cores"


# ---- gain from more CPU --------------------------------------------------------------------------


def _beside(basis: AdviceInputs, measures: CpuMeasures) -> list[tuple[Resource, float]]:
    """(CPU resource, busy ratio) of the tier's other hosts: pools of this tier alone, or CPU limits."""
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
    """Advice to spread the load over all hosts of the tier, if the other hosts have much room."""
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
    """Advice to enlarge all full hosts of the tier, if other hosts have little room as well."""
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
    """(cores that carry the load to the next limit, else twice the present number; gain).

    The number of cores is None if the present number or the gain is unknown.

    Args:
        basis: inputs of the advice.
        cores: present number of cores; None if unknown.
        keys: keys of the CPU resources to enlarge; empty: the bottleneck alone.
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
    """Words for a change of the number of cores: ``: 3 instead of 2 cores``."""
    if cores is None:
        return ""
    now = f"{cores:.3g} core" + "s" * (cores != 1)
    return f" ({now}{each} now)" if more is None else f": {more:g} instead of {now}{each}"


# ---- users of a pool of cores --------------------------------------------------------------------


def others_share(resource: Resource, measures: Measures) -> float | None:
    """The share of a pool's busy time that neither tiers nor load generators used.

    None if no tier's own use was measured, because the users of the pool are then unknown.
    """
    if not set(resource.tiers) & set(measures.uses):
        return None
    return max(0.0, 1 - sum(measures.uses.values()))


def other_processes(resource: Resource, measures: Measures) -> float | None:
    """The share of a pool's busy time that other processes used, if it is a third or more; else None."""
    rest = others_share(resource, measures)
    return rest if rest is not None and rest >= OTHER_PROCESSES.value else None


def unwatched(suspicion: Suspicion) -> tuple[str, ...]:
    """Tiers that use or may use a pool of cores, but were not measured."""
    tiers = dict.fromkeys([*suspicion.resource.tiers, *suspicion.resource.users])
    return tuple(tier for tier in tiers if tier not in (*suspicion.found.uses, GENERATOR))


def used_by_generator(suspicion: Suspicion) -> bool:
    """Whether the load generator uses more than half of a pool of cores."""
    return suspicion.found.uses.get(GENERATOR, 0.0) > HALF


def not_shared_out(resource: Resource) -> bool:
    """Whether the resource is a pool of cores on which no tier was measured by itself."""
    uses = (resource.columns.get(f"{USE}{tier}") for tier in resource.tiers)
    return resource.type == Cores.type and not any(use is not None and np.isfinite(use).any() for use in uses)


# ---- columns of CPU resources --------------------------------------------------------------------


def _pools(inputs: Inputs) -> Iterator[Resource]:
    """The distinct sets of cores that tiers may use, per machine.

    If the cores of some tiers' processes are known, a host with unknown cores (a folder of files) uses none.
    If no tier's cores are known, the machine is one pool.
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
    """Further tiers that may use a pool, because the cores of their processes are unknown."""
    for tier in dict.fromkeys(host.tier for host in unknown):
        if tier not in (*tiers, *FOLDERS):
            yield tier


def _tier_use(inputs: Inputs, tier: str, hosts: list[Host]) -> Floats:
    """Cores used by a tier on all of these hosts; NaN if one of the hosts was not measured."""
    own = [cores_used(inputs, host) for host in hosts if host.tier == tier]
    return np.asarray(np.sum(own, axis=0), dtype=np.float64)


def _running(inputs: Inputs, hosts: list[Host]) -> Floats:
    """Sessions that run on a CPU or wait for one, on all of these hosts; NaN if one does not report them."""
    lines = [inputs.samples.steps(host.name, "db.sessions_running") for host in hosts]
    return np.asarray(np.sum(lines, axis=0), dtype=np.float64)


def cores_used(inputs: Inputs, host: Host) -> Floats:
    """Cores used by the tier of a host."""
    return inputs.samples.steps(host.name, "cpu.busy_ratio", f"tier:{host.tier}") * cores_of(inputs, host)


def cores_of(inputs: Inputs, host: Host) -> Floats:
    """Cores that the tier of a host may use: its quota, else the host's cores; NaN if unknown."""
    quota = inputs.samples.steps(host.name, "cpu.cores", f"tier:{host.tier}")
    return np.where(np.isfinite(quota), quota, float(len(host.cores or host.usable)) or np.nan)


def pool_busy(samples: Samples, hosts: list[str], cores: tuple[int, ...]) -> Floats:
    """Mean busy ratio of a set of cores; that of the whole machine if no core was measured."""
    result = samples.together(hosts, "cpu.busy_ratio", map(str, cores))
    return samples.first_of(hosts, "cpu.busy_ratio") if result is None else result


def _generator_use(inputs: Inputs, machine: str, cores: tuple[int, ...]) -> Floats:
    """Cores of this pool that load generators used; 0 if the generators run on other cores.

    A worker that was not pinned may use all cores of its machine. A worker that does not report its machine
    counts only if the farm has a single machine and the worker was given cores of it.
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
    """Means over these rows. The uses are shares of the pool's busy time."""
    columns = {name: column[rows] for name, column in resource.columns.items()}
    used_ratio = mean(columns["busy"])
    uses = {}
    for user in resource.users:
        used = mean(columns[f"{USE}{user}"])
        if used is None or used_ratio is None or not resource.cores or (user == GENERATOR and not used):
            continue  # an idle tier was measured; a load generator without use runs elsewhere
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
