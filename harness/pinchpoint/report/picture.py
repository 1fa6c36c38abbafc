"""Builds the picture of the farm: machines, their tiers, and the state of each tier's resources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pinchpoint.analysis.thresholds import MEMORY_CRITICAL, UTILISATION, latency_limit
from pinchpoint.base import units
from pinchpoint.base.groups import by_key
from pinchpoint.base.objects import JsonObject
from pinchpoint.base.wording import listed
from pinchpoint.data.machines import farm_cores, machine_name, machines, tiers
from pinchpoint.data.queries import WindowMeans
from pinchpoint.data.timeaxis import TimeAxis
from pinchpoint.store.read import StoredRun

State = Literal["saturated", "busy", "fine", "not measured"]

FIRST, NEXT, SUSPECTED, LIMITS = "bottleneck", "next bottleneck", "suspected", "limits this run"
"""Marks for the resources that the verdict names. A generator may limit a run below its CPU limit, so
``LIMITS`` does not change the state."""

_WORSE: tuple[State, ...] = ("not measured", "fine", "busy", "saturated")

_MEMORY = "mem.available_ratio"
_SHOWN = ("cpu.busy_ratio", _MEMORY, "generator.cpu_ratio", "generator.users")

# Thresholds of "busy" in the picture, from the warning levels of the PAL tool. The verdict does not use them.
_CPU_WARNING = 0.50
_MEMORY_WARNING = 0.10


@dataclass(frozen=True, slots=True)
class ResourceBox:
    """One resource in the picture.

    Attributes:
        name: name such as ``CPU``, ``log disk``, ``memory``.
        state: one of four states; one of them is "not measured".
        words: measured value as text, or the reason why there is none.
        mark: role of the resource in the verdict, such as "bottleneck"; "" if it has none.
    """

    name: str
    state: State
    words: str
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Box:
    """A tier on one host."""

    tier: str
    host: str
    resources: tuple[ResourceBox, ...]


@dataclass(frozen=True, slots=True)
class MachineBox:
    """One machine with its tiers.

    Attributes:
        name: host name.
        words: number of cores and size of memory as text.
        resources: resources that the tiers share; empty if the machine has a single tier.
        boxes: tiers on the machine.
        outside: whether the machine is a load generator and not part of the farm.
    """

    name: str
    words: str
    resources: tuple[ResourceBox, ...]
    boxes: tuple[Box, ...]
    outside: bool = False

    @property
    def shared(self) -> str:
        """Return a sentence about the tiers that share the machine; "" if fewer than two tiers do."""
        if self.outside or len(self.boxes) < 2:
            return ""
        names = listed(list(dict.fromkeys(box.tier for box in self.boxes)))
        return f"{names} share this one machine: its CPU, memory and disks are counted once."


def picture(run: StoredRun, verdict: JsonObject, clock: TimeAxis) -> tuple[MachineBox, ...]:
    """Return every machine of the farm, and the load generators as the last entry."""
    means = WindowMeans(run, clock.window, _SHOWN)
    marks = _marks(verdict)
    disks = {(row["host"], row["role"]): row for row in verdict.get("disks") or ()}
    placed, known = tiers(run), run.manifest.get("hosts", {})
    result = [
        _machine(run, hosts, [(t, h) for t, h in placed if h in hosts], means, marks, disks)
        for hosts in machines(known).values()
    ]
    result += [_unseen(tier, host, run) for tier, host in placed if host not in known]
    return (*result, *_generators(run, means, verdict))


def _machine(
    run: StoredRun,
    hosts: Sequence[str],
    placed: Sequence[tuple[str, str]],
    means: WindowMeans,
    marks: Mapping[tuple[str, str, str], str],
    disks: Mapping[tuple[str, str], JsonObject],
) -> MachineBox:
    facts = run.manifest["hosts"][hosts[0]]
    alone = len(placed) == 1
    memory = _memory(means.first(hosts, _MEMORY), facts)

    def marked(box: ResourceBox, what: str) -> ResourceBox:
        return _marked(box, next((marks["", host, what] for host in hosts if ("", host, what) in marks), ""))

    own = (marked(_machine_cpu(run, hosts, means), "cpu"), marked(memory, "memory"))
    shared, of_tier = _disks(run, placed, marks, disks)
    boxes = []
    for tier, host in placed:
        cpu = own[0] if alone else _tier_cpu(tier, host, means)
        resources = [_marked(cpu, marks.get((tier, host, "cpu"), ""))]
        resources += of_tier.get((tier, host), [])
        own_limit = means.of(host, _MEMORY, f"tier:{tier}")
        if own_limit is not None or alone:
            of_it = memory if own_limit is None else _memory(own_limit, facts, "of its own limit ")
            resources.append(_marked(of_it, marks.get((tier, host, "memory"), "")))
        boxes.append(Box(tier, host, tuple(resources)))
    size = [f"{facts['cores']} cores"] if facts.get("cores") else []
    size += [f"{units.bytes_(facts['memory_bytes'])} of memory"] if facts.get("memory_bytes") else []
    return MachineBox(
        machine_name(run.manifest["hosts"], hosts),
        ", ".join(size),
        () if alone else (*own, *shared),
        tuple(boxes),
    )


def _disks(
    run: StoredRun,
    placed: Sequence[tuple[str, str]],
    marks: Mapping[tuple[str, str, str], str],
    disks: Mapping[tuple[str, str], JsonObject],
) -> tuple[list[ResourceBox], dict[tuple[str, str], list[ResourceBox]]]:
    """Return each disk of a machine once: disks that several tiers share, and disks of each single tier."""
    users = by_key(
        (result.get("device") or f"{host} {role}", (tier, host, role))
        for tier, host in placed
        for role, result in run.manifest["hosts"][host].get("roles", {}).items()
    )
    shared: list[ResourceBox] = []
    own: dict[tuple[str, str], list[ResourceBox]] = {}
    for device, uses in users.items():
        each = [
            _marked(_disk(role, disks.get((host, role))), marks.get((tier, host, role), ""))
            for tier, host, role in uses
        ]
        worst = max(each, key=lambda one: (_WORSE.index(one.state), bool(one.mark)))
        worst = replace(worst, mark=next((one.mark for one in each if one.mark), ""))
        places = list(dict.fromkeys((tier, host) for tier, host, _ in uses))
        if len(places) == 1:
            roles = " + ".join(role for *_, role in uses)
            own.setdefault(places[0], []).append(replace(worst, name=f"{roles} disk"))
        else:
            words = ", ".join(f"{tier} {role}" for tier, _, role in uses)
            shared.append(replace(worst, name=f"disk {device} ({words})"))
    return shared, own


def _unseen(tier: str, host: str, run: StoredRun) -> MachineBox:
    """Return a host without a collector. Each of its known resources is "not measured"."""
    declared = run.manifest["farm"]["tiers"][tier]["hosts"][host] or {}
    names = ["CPU", *(f"{role} disk" for role in declared.get("disks") or {}), "memory"]
    resources = tuple(ResourceBox(name, "not measured", "no collector saw this host") for name in names)
    return MachineBox(host, "", (), (Box(tier, host, resources),))


def _machine_cpu(run: StoredRun, hosts: Sequence[str], means: WindowMeans) -> ResourceBox:
    """Return the CPU of a machine. If the farm may use only some of the cores, they determine the state."""
    whole = means.first(hosts, "cpu.busy_ratio")
    cores = farm_cores(run, hosts)
    each = [result for core in cores if (result := means.first(hosts, "cpu.busy_ratio", core))]
    if whole is None or not cores or len(each) < len(cores):
        return _cpu(whole, "no cpu.busy_ratio was delivered", "busy")
    part = _cpu((sum(core[0] for core in each) / len(each), 0.0, 0.0), "", "busy")
    named = f"the farm's core{'s'[: len(cores) > 1]} ({', '.join(cores)}) {part.words}"
    return ResourceBox("CPU", part.state, f"{named}, the whole machine {units.percent(whole[0])}")


def _tier_cpu(tier: str, host: str, means: WindowMeans) -> ResourceBox:
    result = means.of(host, "cpu.busy_ratio", f"tier:{tier}")
    return _cpu(result, "its processes were not watched", "of its cores used")


def _cpu(value: tuple[float, float, float] | None, why_not: str, words: str) -> ResourceBox:
    if value is None:
        return ResourceBox("CPU", "not measured", why_not)
    state: State = _level(value[0] >= UTILISATION.value, value[0] >= _CPU_WARNING)
    return ResourceBox("CPU", state, f"{units.percent(value[0])} {words}")


def _level(saturated: bool, busy: bool) -> State:
    return "saturated" if saturated else "busy" if busy else "fine"


def _memory(value: tuple[float, float, float] | None, facts: JsonObject, of: str = "") -> ResourceBox:
    if value is None:
        answer = (each["why"] for each in facts.get("not_measured") or () if each["metric"] == _MEMORY)
        return ResourceBox("memory", "not measured", next(answer, f"no {_MEMORY} was delivered"))
    low = value[1]
    state: State = _level(low < MEMORY_CRITICAL.value, low < _MEMORY_WARNING)
    return ResourceBox("memory", state, f"{units.percent(low)} {of}available at least")


def _disk(role: str, row: JsonObject | None) -> ResourceBox:
    """Return a disk whose state depends on the latency limit of its role. It is never "saturated" here."""
    name = f"{role} disk"
    row = row or {}
    iops, together = row.get("iops_mean"), row.get("transfer_latency_mean_s")
    latency = row.get("write_latency_mean_s") if together is None else together
    if iops is None and latency is None:
        return ResourceBox(
            name, "not measured", str(row.get("why_not_measured") or "no disk figures were delivered")
        )
    answer = [] if iops is None else [f"{units.per_second(iops)} I/O"]
    if latency is None:
        return ResourceBox(name, "fine", ", ".join(["no writes", *answer]))
    state: State = "busy" if latency > (row.get("latency_limit_s") or latency_limit(role).value) else "fine"
    of = "a write" if together is None else "an I/O"
    return ResourceBox(name, state, ", ".join([f"{units.seconds(latency)} {of}", *answer]))


def _marks(verdict: JsonObject) -> dict[tuple[str, str, str], str]:
    """Return (tier, host, role or resource) -> mark. If several marks apply, the strongest one counts.

    The memory of a machine belongs to no tier, so it is also listed without a tier. So are shared cores if no
    measurement shows which tier uses most of them.
    """
    result: dict[tuple[str, str, str], str] = {}
    named = [(verdict.get("bottleneck"), FIRST), (verdict.get("next"), NEXT)]
    named += [(candidate, SUSPECTED) for candidate in verdict.get("candidates") or ()]
    for blame, mark in named:
        if blame and blame.get("host"):
            kind = str(blame.get("kind") or "")
            what = str(blame.get("role") or ("cpu" if kind.startswith("cpu") else blame.get("resource")))
            result.setdefault((str(blame.get("tier") or ""), blame["host"], what), mark)
            if what == "memory" and not blame.get("instance"):
                result.setdefault(("", blame["host"], what), mark)
    return result


def _marked(resource: ResourceBox, mark: str) -> ResourceBox:
    if not mark:
        return resource
    state: State = "saturated" if mark == FIRST else resource.state
    return ResourceBox(resource.name, state, resource.words, mark)


def _generators(run: StoredRun, means: WindowMeans, verdict: JsonObject) -> tuple[MachineBox, ...]:
    hosts = means.hosts("generator.cpu_ratio")
    if not hosts:
        return ()
    blamed = _limiting(run, means, verdict)
    boxes = []
    for host in hosts:
        cpu = _cpu(means.of(host, "generator.cpu_ratio"), "", "of one core used")
        boxes.append(Box("load generator", host, (replace(cpu, mark=LIMITS if host in blamed else ""),)))
    return (MachineBox("load", "not part of the farm", (), tuple(boxes), outside=True),)


def _limiting(run: StoredRun, means: WindowMeans, verdict: JsonObject) -> set[str]:
    """Return the load workers that limited the run; all workers if the verdict names none.

    These are the named workers, workers that share a core with them, and all workers of a scenario that the
    verdict names without a worker.
    """
    blame = verdict.get("bottleneck") or {}
    if blame.get("kind") != "generator":
        return set()
    core = {
        one["worker"]: tuple(one["cores"])
        for one in run.manifest.get("generators") or ()
        if len(one.get("cores") or ()) == 1
    }
    reported = [(fact.get("host"), fact.get("instance")) for fact in blame.get("evidence") or ()]
    cores = {core.get(name, name) for name, _ in reported}
    scenarios = [instance for name, instance in reported if not name]
    hosts = means.hosts("generator.cpu_ratio")
    result = {
        host
        for host in hosts
        if core.get(host, host) in cores
        or any(means.of(host, "generator.users", scenario) for scenario in scenarios)
    }
    return result or set(hosts)
