"""Builds the model from a run: the demand of each operation on each part of the farm.

Nothing is fitted to later questions. Of an operation's time, what is waited for at disks is measured
(``analysis.waits``), what CPUs take is reckoned from their use, and the rest stays what it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pinchpoint.analysis.case import Case
from pinchpoint.analysis.flows import Flow
from pinchpoint.analysis.model.disks import Beside, Flushes, measured_disk
from pinchpoint.analysis.model.network import OPEN_USERS, Model, Users, fitted
from pinchpoint.analysis.model.parts import Bound, Caps, Cores, Disk, Part, Wait
from pinchpoint.analysis.resources.base import GENERATOR, CpuMeasures, Held, Resource, ShareMeasures
from pinchpoint.analysis.resources.cpu import measure_cpu, others_share
from pinchpoint.analysis.resources.kinds import KINDS, limit_words, measure
from pinchpoint.analysis.stages import Rows, offered_per_s
from pinchpoint.analysis.thresholds import CAP_MATCH, STARTED, UTILISATION
from pinchpoint.data.series import mean

KNOWN = 0.02
"""A throughput is known within that much (our value; the standard error of the pairs' runs is less)."""
FELT = 1 / 3
"""A rest of which less than a third is felt in the throughput is not found from that (our value)."""
LEAST_USED = 0.05
"""A thread or an interface of which the load takes less ends nothing."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One scenario as it ran.

    Attributes:
        flow: what the analysis knows of it.
        per_s: operations per second, whatever their outcome.
        now_per_s: of them those that ended well (``Case.now_per_s``).
        time_s: mean time of an operation.
        users: of a closed load; of one that could not be kept up, those in flight.
        think_s: between two operations.
        open: its rate is given, and was kept up.
        offered_per_s: of one that could not be kept up, what was requested; else infinite.
    """

    flow: Flow
    per_s: float
    now_per_s: float
    time_s: float
    users: float
    think_s: float
    open: bool
    offered_per_s: float = math.inf

    @property
    def name(self) -> str:
        """The scenario's."""
        return self.flow.load.scenario

    @property
    def is_rate(self) -> bool:
        """Whether its load is a rate, kept up or not, and not users."""
        return math.isfinite(self.asked_per_s)

    @property
    def asked_per_s(self) -> float:
        """The rate; infinite of users."""
        return self.per_s if self.open else self.offered_per_s


@dataclass(frozen=True, slots=True)
class Measured:
    """A run as parts and loads.

    Attributes:
        seen: the scenarios.
        parts: of the farm.
        unmeasured: by target, why nothing can be said of it.
        left_out: scenarios that are not modelled, in sentences.
        loads: with the rest that no part explains.
        ends: the same with the shortest and the longest rest that the run allows for.
    """

    seen: tuple[Seen, ...]
    parts: tuple[Part, ...]
    unmeasured: Mapping[str, str]
    left_out: tuple[str, ...]
    loads: tuple[Users, ...]
    ends: tuple[tuple[Users, ...], ...] = ()

    @property
    def per_s(self) -> dict[str, float]:
        """By scenario, operations per second."""
        return {one.name: one.per_s for one in self.seen}

    @property
    def time_s(self) -> dict[str, float]:
        """By scenario, mean time of an operation."""
        return {one.name: one.time_s for one in self.seen}

    @property
    def model(self) -> Model:
        """For the solver."""
        return model_of(self.loads, self.parts)


def model_of(loads: Sequence[Users], parts: Sequence[Part]) -> Model:
    """Loads and parts for the solver."""
    return Model(tuple(loads), tuple(station for part in parts for station in part.stations()))


def take(case: Case, rows: Rows, rest: Sequence[Users] | None = None) -> Measured:
    """What a case shows over those rows of the stage that is judged.

    Args:
        case: what is judged of a run.
        rows: of it.
        rest: the loads of the whole stage, whose rests are taken; None: they are found.
    """
    seen = tuple(_seen(case, rows))
    shares = Shares(seen)
    unmeasured: dict[str, str] = {}
    parts = tuple(_parts(case, rows, seen, shares, unmeasured))
    found = Measured(
        seen, parts, unmeasured, tuple(_left_out(case, seen)), tuple(_with_rest(one, parts) for one in seen)
    )
    if rest is None:
        return _rested(found)
    known = {one.scenario: one.rest_s for one in rest}
    return replace(found, loads=tuple(replace(one, rest_s=known[one.scenario]) for one in found.loads))


def _rested(measured: Measured) -> Measured:
    """With the rests that make the model as fast as the run was.

    A throughput is known within ``KNOWN`` only. Where all wait for one log a rest makes hardly any difference
    to it: of all rests that the run allows for it is then that which is nearest to what was measured (an
    operation's time less its waits), or their middle where it was not measured how long commits wait.
    """
    found = fitted(measured.model, measured.per_s, measured.time_s).loads
    near = model_of(found, measured.parts)
    fastest, slowest = (
        fitted(near, {name: each * factor for name, each in measured.per_s.items()}, measured.time_s).loads
        for factor in (1 + KNOWN, 1 - KNOWN)
    )
    logs = [part for part in measured.parts if isinstance(part, Disk) and part.commits]
    loads = []
    for seen, guess, one, low, high in zip(
        measured.seen, measured.loads, found, fastest, slowest, strict=True
    ):
        rest_s = one.rest_s
        if logs and (high.rest_s - low.rest_s) * FELT > 2 * KNOWN * (seen.time_s + seen.think_s):
            complete = all(part.waited_s for part in logs)
            rest_s = min(
                high.rest_s, max(low.rest_s, guess.rest_s if complete else (low.rest_s + high.rest_s) / 2)
            )
        loads.append(replace(one, rest_s=rest_s))
    return replace(measured, loads=tuple(loads), ends=(fastest, slowest))


class Shares:
    """Who is at which tier: of what is used there, each scenario is given its share of the time there.

    Args:
        seen: the scenarios.
    """

    def __init__(self, seen: Sequence[Seen]) -> None:
        self._seen = seen

    def of(self, tiers: Sequence[str]) -> dict[str, float]:
        """By scenario, its share of what these tiers do; by operations in flight where that is unknown."""
        there = {one.name: sum(one.flow.going_on(tier) for tier in set(tiers)) for one in self._seen}
        if not sum(there.values()):
            there = {one.name: one.flow.in_flight for one in self._seen}
        total = sum(there.values())
        return {name: one / total if total else 0.0 for name, one in there.items()}

    def each(self, amount: float, tiers: Sequence[str]) -> dict[str, float]:
        """By scenario, what one operation takes of an amount per second."""
        return {one.name: amount * self.of(tiers)[one.name] / one.per_s for one in self._seen}


def _seen(case: Case, rows: Rows) -> Iterator[Seen]:
    window, now = case.inputs.window, case.now_per_s()
    for flow in case.flows:
        if flow.load.native or flow.service is None:
            continue
        steps = case.inputs.traffic.of(flow.load.scenario).whole().per_step(window)[rows]
        per_s = float(steps.mean()) if len(steps) else 0.0
        if per_s > 0:
            offered = mean(offered_per_s(case.inputs, flow.load.scenario)[rows])
            # What is known within so much must be within what is asked for.
            offered = max(offered or math.inf, per_s * (1 + 2 * KNOWN))
            yield _scenario(flow, per_s, now.get(flow.load.scenario, 0.0), offered)


def _scenario(flow: Flow, per_s: float, now: float, offered_per_s: float) -> Seen:
    load = flow.load
    time_s = flow.service.mean_s if flow.service else 0.0  # _seen has looked that there is one
    if load.users:
        # By Little's law: what the generator itself takes between two operations is in it.
        round_s = load.users / per_s
        return Seen(flow, per_s, now, max(0.0, round_s - flow.think_s), load.users, flow.think_s, open=False)
    if flow.started_ratio is not None and flow.started_ratio < STARTED.value:
        users = max(1.0, per_s * time_s)
        return Seen(flow, per_s, now, time_s, users, 0.0, open=False, offered_per_s=offered_per_s)
    return Seen(flow, per_s, now, time_s, OPEN_USERS, OPEN_USERS / per_s - time_s, open=True)


def _with_rest(seen: Seen, parts: Sequence[Part]) -> Users:
    """A first guess of what no part explains: the solver finds the rest that fits."""
    spent = 0.0
    for part in parts:
        if not isinstance(part, Cores):
            spent += part.waited_s.get(seen.name, 0.0)
        else:
            spent += part.cpu_s.get(seen.name, 0.0) * part.waited.get(seen.name, 1.0)
    rest_s = max(0.0, seen.time_s - spent)
    return Users(seen.name, seen.users, seen.think_s, rest_s, seen.offered_per_s)


def _left_out(case: Case, seen: Sequence[Seen]) -> Iterator[str]:
    for flow in case.flows:
        if flow.load.scenario not in {one.name for one in seen}:
            why = (
                "the farm decides its rate itself" if flow.load.native else ("its operations were not timed")
            )
            yield f"{flow.load.scenario} is not predicted: {why}"


def _parts(
    case: Case, rows: Rows, seen: tuple[Seen, ...], shares: Shares, unmeasured: dict[str, str]
) -> Iterator[Part]:
    allowed = tuple(_allowances(case, rows, shares))
    yield from allowed
    limited = {tier for part in allowed for tier in part.tiers}
    reads_only = all(_reads_only(case, flow) for flow in case.flows)
    full = [part for part in allowed if _use(part, seen) >= UTILISATION.value]
    for resource in case.resources:
        if resource.type == "cpu":
            yield from _pool(resource, rows, shares, limited, unmeasured)
        elif resource.type == "disk" and resource.whole is None:
            target = f"{resource.roles[0].tier}.{resource.roles[0].role}"
            kind = next((one.kind for one in case.found if one.resource.key == resource.key), None)
            starved = any(set(part.tiers) & set(resource.tiers) for part in full)
            beside = Beside(kind, _flushes(case, resource, rows), reads_only, starved)
            found = measured_disk(
                resource, rows, case.flows, _beside_held(case, resource, rows, seen), shares, beside
            )
            if isinstance(found, Disk):
                yield found
            reason = found.unseen if isinstance(found, Disk) else found
            if reason:
                unmeasured[target] = reason
        else:
            held = None
            if any(one.resource.key == resource.key for one in case.found):
                held = KINDS[resource.type].held(resource, measure(resource, rows), rows, case.flows)
            yield from _bound(resource, rows, shares, held, seen)
    for one in case.found:
        yield from _wait(one.resource, rows, case.flows, seen)


def _use(part: Cores, seen: Sequence[Seen]) -> float:
    """The share of these cores that the load takes."""
    return sum(one.per_s * part.cpu_s[one.name] for one in seen) / part.cores


def _reads_only(case: Case, flow: Flow) -> bool:
    """Whether nothing that a scenario does writes anything."""
    traffic = case.inputs.traffic.of(flow.load.scenario).whole()
    return flow.load.use == "sql-mix" and not traffic.without("point_read", "range_scan").count


def _flushes(case: Case, resource: Resource, rows: Rows) -> Flushes | None:
    """Of the database's log on a disk; None where it does not count them."""
    if not resource.commit_path:
        return None
    samples = case.inputs.samples
    for host in resource.hosts:
        per_s = mean(samples.steps(host, "db.fsyncs_per_s", "wal")[rows])
        lasted = mean(samples.steps(host, "db.fsync_s_per_s", "wal")[rows])
        if per_s:
            return Flushes(per_s, lasted / per_s if lasted else None)
    return None


def _allowances(case: Case, rows: Rows, shares: Shares) -> Iterator[Cores]:
    """What single tiers may use of their cores, where that is less than those."""
    for resource in (one for one in case.resources if one.type == "allowance"):
        found, cores = measure_cpu(resource, rows), mean(resource.columns["allowed"][rows])
        if found.quota and found.busy is not None and cores:
            each = shares.each(found.busy * cores, resource.tiers)
            name = limit_words(resource, found)
            yield Cores(
                resource.key, name, resource.tiers, resource.hosts[0], cores, each, waited={}, allowance=True
            )


def _pool(
    resource: Resource, rows: Rows, shares: Shares, limited: set[str], unmeasured: dict[str, str]
) -> Iterator[Cores]:
    """A pool of cores: what its tiers use by each operation; what others use stays what it is."""
    found, cores = measure_cpu(resource, rows), resource.cores
    if found.busy is None or cores is None:
        why = "its CPU utilisation was not measured"
        unmeasured.update({f"{tier}.cpu": why for tier in resource.tiers})
        return
    used = found.busy * cores
    by_tier = {tier: found.uses[tier] * used for tier in resource.tiers if tier in found.uses}
    if not by_tier:
        by_tier = {"": used}
    # What load generators use beside them grows with the load, too, and is no part of an operation's time.
    beside = min(found.uses.get(GENERATOR, 0.0) * used, max(0.0, used - sum(by_tier.values())))
    cpu_s = shares.each(beside, resource.tiers)
    free_s: dict[str, float] = {}
    for tier, amount in by_tier.items():
        for name, each in shares.each(amount, [tier] if tier else resource.tiers).items():
            cpu_s[name] = cpu_s.get(name, 0.0) + each
            free_s[name] = free_s.get(name, 0.0) + (0.0 if tier in limited else each)
    yield Cores(
        key=resource.key,
        name=limit_words(resource, found),
        tiers=resource.tiers,
        host=resource.hosts[0],
        cores=float(cores),
        cpu_s=cpu_s,
        waited={name: free_s.get(name, 0.0) / each if each else 1.0 for name, each in cpu_s.items()},
        others_ratio=(others_share(resource, found) or 0.0) * found.busy,
    )


def _beside_held(case: Case, disk: Resource, rows: Rows, seen: tuple[Seen, ...]) -> tuple[Seen, ...]:
    """The scenarios with the time that is left beside waiting for an interface or a thread of its tiers."""
    for one in case.found:
        other = one.resource
        held = KINDS[other.type].held(other, measure(other, rows), rows, case.flows)
        if held is not None and held.size is not None and set(other.tiers) & set(disk.tiers):
            waited_s = _waited_s(held, seen)
            return tuple(replace(each, time_s=each.time_s - waited_s[each.name]) for each in seen)
    return seen


def _wait(resource: Resource, rows: Rows, flows: tuple[Flow, ...], seen: Sequence[Seen]) -> Iterator[Wait]:
    """What operations wait for without a queue, of a resource that limits."""
    found = measure(resource, rows)
    held = KINDS[resource.type].held(resource, found, rows, flows)
    if held is None or held.size is not None:
        return
    waited_s = _waited_s(held, seen)
    each_s = held.each_s or max(waited_s.values(), default=0.0)
    if each_s:
        waits = {name: one / each_s for name, one in waited_s.items()}
        yield Wait(resource.key, limit_words(resource, found), held.setting, each_s, waits, held.assumes)


def _waited_s(held: Held, seen: Sequence[Seen]) -> dict[str, float]:
    """By scenario, how long an operation waits for it: no longer than it takes."""
    return {one.name: min(one.time_s, held.waiting.get(one.name, 0.0) / one.per_s) for one in seen}


def _bound(
    resource: Resource, rows: Rows, shares: Shares, held: Held | None, seen: Sequence[Seen]
) -> Iterator[Bound]:
    """A machine's caps, an interface, a thread: what may end throughput before anything else does."""
    if resource.type not in {"disk", "network", "thread"}:
        return
    found = measure(resource, rows)
    if isinstance(found, CpuMeasures | ShareMeasures):
        used = found.busy if isinstance(found, CpuMeasures) else found.used
        if used is not None and used >= LEAST_USED and np.isfinite(used):
            name = limit_words(resource, found)
            # What limits is all used: its limit is what was seen.
            demand = shares.each(used if held is None else 1.0, resource.tiers)
            one = Bound(resource.key, name, None, resource.hosts, resource.tiers, demand)
            if held is not None and held.size is not None:
                waited_s = _waited_s(held, seen)
                one = replace(
                    one, target=held.setting, size=held.size, assumes=held.assumes, waited_s=waited_s
                )
            yield one
        return
    limits = resource.limits
    if found.io is None or limits is None:
        return
    caps = Caps(limits.iops, limits.bytes_per_s, limits.io_unit_bytes)
    if caps.share(found.io, found.bytes or 0.0) > 1 + CAP_MATCH.value:  # the declaration does not hold
        caps = Caps()
    yield Bound(
        key=resource.key,
        name=f"the machine {resource.hosts[0]} ({resource.instance}), all its disks",
        machine=resource.whole,
        hosts=resource.hosts,
        tiers=resource.tiers,
        demand_s={},
        caps=caps,
        io=shares.each(found.io, resource.tiers),
        bytes=shares.each(found.bytes or 0.0, resource.tiers),
    )
