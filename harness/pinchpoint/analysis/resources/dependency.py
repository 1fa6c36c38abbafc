"""Finds waits of users outside of the measured farm: a slow repository or network path (``external``).

If a limited number of users waits at a station, the wait while the station's tier is idle is a dependency.
The wait while the tier works belongs to the tier's own resources (docs/rules.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from pinchpoint.analysis.coverage import unseen_at
from pinchpoint.analysis.flows import Flows, in_flight
from pinchpoint.analysis.resources.base import (
    ChangeableLimit,
    Context,
    Least,
    LimitMode,
    NoSingleCause,
    Resource,
    Resources,
    ShareMeasures,
    Suspicion,
    busy,
)
from pinchpoint.analysis.resources.cpu import cores_of
from pinchpoint.analysis.resources.gain import Gain, advise
from pinchpoint.analysis.resources.shared import OF_OPERATIONS, Figure, Shared
from pinchpoint.analysis.sessions import sessions_at_work
from pinchpoint.analysis.stages import Rows
from pinchpoint.analysis.stations import Station, at_work, calls
from pinchpoint.analysis.stores import operations_inside
from pinchpoint.analysis.thresholds import (
    HARDLY_WAITED_FOR,
    LOOP_LAG,
    NOT_SEEN,
    OUTSIDE_S,
    OWN_USE,
    POOL_HELD,
    PRESSURE,
    at_least,
)
from pinchpoint.analysis.verdict import Advice, Kind
from pinchpoint.base import units
from pinchpoint.base.wording import grouped
from pinchpoint.data.inputs import Host, Inputs
from pinchpoint.data.series import Floats, mean

if TYPE_CHECKING:
    from pinchpoint.analysis.advice_inputs import AdviceInputs


LOCKS = ("sql",)
"""Tiers whose operations may wait for each other's locks, which only the server can report."""


class Dependency(Shared):
    """The wait of a scenario's users on the way to one of its stations."""

    type = "dependency"
    kind = "external"
    limit_modes: Mapping[Kind, LimitMode] = {"external": "time"}
    yields = True
    short = "network or dependency in front of {instance}"
    placed = "network or dependency in front of {instance}"
    least = Least("used", POOL_HELD)
    called = "network or dependency in front of {instance}"
    shown = (
        "{used} of the users of {scenario} wait for this dependency, {each_s} each time; the farm itself is "
        "mostly idle"
    )
    relieved = "remove the delay in front of {instance}"

    def discover(self, inputs: Inputs, flows: Flows, disks: Resources) -> Iterator[Resource]:
        """One resource per station of every closed load, whose number of users is limited and known."""
        for flow in flows:
            users = flow.load.users
            if not users or flow.load.scheduled:
                continue
            for station in flow.stations:
                columns = held_outside(inputs, flows, station, disks)
                if columns is None:
                    continue
                hosts = [host for host in inputs.hosts if host.tier == station.tier]
                outside = columns.pop("outside")
                yield Resource(
                    key=f"dependency:{flow.load.scenario}:{station.name}",
                    type="dependency",
                    machine=hosts[0].machine if hosts else "",
                    hosts=tuple(host.name for host in hosts),
                    tiers=(station.tier,) if hosts else (),
                    instance=station.name,
                    scenario=flow.load.scenario,
                    columns={
                        **columns,
                        "used": outside / users,
                        "each_s": _each(outside, station),
                    },
                )

    def figures(self, resource: Resource) -> tuple[Figure, ...]:
        """Figures: share of users that wait, time per wait, and idle share of the called tier.

        The time per wait must reach some milliseconds, because a lightly loaded farm has short waits as well.
        """
        held = f"{{}} of the users of {resource.scenario} wait for {resource.instance} at any time"
        each = "each request waits {} while its tier does not work on it"
        answer = (
            Figure(lambda found: found.used, held, OF_OPERATIONS, POOL_HELD, "E1", required=True),
            Figure(
                lambda found: found.each_s,
                each,
                OF_OPERATIONS,
                OUTSIDE_S,
                required=True,
                show=units.seconds,
            ),
        )
        if not resource.tiers:
            return answer
        unseen = "the called tier is idle for {} of that time"
        return (
            *answer,
            Figure(lambda found: found.witness, unseen, seen_by(resource), NOT_SEEN, "E4"),
            Figure(
                lambda found: found.own,
                "that tier uses {} of its own resources",
                "cpu.busy_ratio",
                OWN_USE,
                excuses=True,
                instance=f"tier:{resource.tiers[0]}",
            ),
        )

    def waited_for(self, resource: Resource, measures: ShareMeasures, flows: Flows) -> bool:
        """Whether the farm limits the scenario of the dependency.

        The result is False if the called tier was not measured, because its idle time is then unknown.
        """
        unseen = bool(resource.tiers) and measures.own is None
        return not unseen and any(flow.pressed and flow.load.scenario == resource.scenario for flow in flows)

    def waited_share(
        self, suspicion: Suspicion, measures: ShareMeasures, working: float
    ) -> tuple[float, str]:
        """(share of the users' time, think time included, spent waiting for the dependency, in words)."""
        if measures.used is None:
            return super().waited_share(suspicion, measures, working)
        return measures.used, f"its users wait for it {units.percent(measures.used)} of their time"

    def held(
        self, resource: Resource, measures: ShareMeasures, rows: Rows, flows: Flows
    ) -> ChangeableLimit | None:
        """The users of the scenario that wait, as the setting ``NAME.delay``."""
        own = next((flow for flow in flows if flow.load.scenario == resource.scenario), None)
        if own is None or not own.load.users or measures.used is None:
            return None
        waiting = {resource.scenario: measures.used * own.load.users}
        return ChangeableLimit(
            f"{resource.instance}.delay", None, measures.each_s, waiting, "the called system has room"
        )

    def advise(self, basis: AdviceInputs, measures: ShareMeasures) -> Iterator[Advice]:
        """Advice to remove the wait, with its gain."""
        name, scenario = basis.first.resource.instance, basis.first.resource.scenario
        what = (
            f"Reduce the delay in front of {name}: {scenario} waits {units.seconds(measures.each_s)} per call"
        )
        yield advise("external", name, what, basis.asked_for(f"{name}.delay=0ms"))
        users = next((f.load.users for f in basis.case.flows if f.load.scenario == scenario), None)
        if users:
            more = Gain(None, None, "the called system limits how many requests run at once")
            yield advise(
                "external",
                scenario,
                f"Or run more requests of {scenario} at once ({users:g} users now)",
                more,
            )

    def why_not_named(
        self, suspicion: Suspicion, measures: ShareMeasures, inputs: Inputs
    ) -> NoSingleCause | None:
        """Why the dependency cannot be named: a late load generator, or deeper tiers not measured."""
        lags = [inputs.samples.mean(*key) or 0.0 for key in inputs.samples.keys("generator.loop_lag_s")]
        if not measures.each_s or max(lags, default=0.0) < LOOP_LAG.value * measures.each_s:
            return deeper_unseen(inputs, suspicion.resource.tiers)
        lag, each = units.seconds(max(lags)), units.seconds(measures.each_s)
        return NoSingleCause(
            f"the load generator itself is {lag} late; the wait takes only {each}",
            "Give the load generator more CPU, and run the same plan again.",
        )

    def confidence_limits(
        self, suspicion: Suspicion, measures: ShareMeasures, context: Context
    ) -> Iterator[str]:
        """Sentences about deeper causes of the wait: disks, and sessions that no scenario explains."""
        tiers, inputs = suspicion.resource.tiers, context.inputs
        if set(tiers) & set(LOCKS):
            return
        deeper = _unasked_behind(inputs, tiers)
        for host in [*suspicion.resource.hosts, *(each.name for each in inputs.hosts if each.tier in deeper)]:
            yield from _waits_for_io(context, host)
        yield from _unexplained_sessions(inputs, tiers, context.flows)


def deeper_unseen(inputs: Inputs, tiers: tuple[str, ...]) -> NoSingleCause | None:
    """Why a wait for these tiers cannot be named: deeper tiers were not measured; None if all were.

    A dependency is named only if everything deeper has room (docs/rules.md).
    """
    missing = list(unseen_at(inputs, (*tiers, *_unasked_behind(inputs, tiers))))
    if not missing:
        return None
    what = grouped(missing)
    return NoSingleCause(what, f"Measure the whole farm ({what}), and run the same plan again.")


def _waits_for_io(context: Context, host: str) -> Iterator[str]:
    """Sentences if work waits for I/O on the host, if a disk is busy, or if neither was measured."""
    inputs = context.inputs
    machines = [one.machine for one in inputs.hosts if one.name == host]
    everyone = [host, *(name for machine in machines for name in inputs.names_on(machine))]
    waits = mean(inputs.samples.first_of(everyone, "pressure.io_ratio"))
    if at_least(waits, PRESSURE):
        yield f"processes wait for I/O on {host} {units.percent(waits)} of the time"
    if waits is not None:
        return
    used = dict(_busy_disks(context, host, everyone))
    for disk, ratio in used.items():
        if at_least(ratio, PRESSURE):
            yield f"{disk} of {host} is busy {units.percent(ratio)} of the time"
    # A busy time that a store reports includes requests that wait for the store's disks.
    lines = [inputs.samples.steps(host, "db.main_thread.busy_ratio"), operations_inside(inputs, host)]
    if all(ratio is None for ratio in used.values()) and not np.isfinite(lines).any():
        yield f"whether processes wait for a disk on {host} was not measured"


def _busy_disks(context: Context, host: str, everyone: list[str]) -> Iterator[tuple[str, float | None]]:
    """(name of a disk, busy ratio): disks with a role first, then the others. None: not measured."""
    disks, samples = [one for one in context.resources if one.is_device], context.inputs.samples
    yield from ((f"the {one.role} disk", busy(one, context.rows)) for one in disks if host in one.hosts)
    known = {one.instance for one in disks}
    for key in samples.keys("disk.busy_ratio"):
        if key.host in everyone and key.instance not in known:
            yield f"disk {key.instance}", samples.mean(*key)


def _unexplained_sessions(inputs: Inputs, tiers: tuple[str, ...], flows: Flows) -> Iterator[str]:
    """Active sessions of a deeper tier that neither the scenarios nor these tiers explain."""
    there = in_flight(flows, *tiers)
    for deeper in _behind(inputs, tiers):
        more = (mean(at_work(inputs, deeper)) or 0.0) - in_flight(flows, deeper)
        if more > HARDLY_WAITED_FOR.value * there:
            yield f"{more:.2g} sessions are active in {deeper}; whose requests they serve is not known"


def _behind(inputs: Inputs, tiers: tuple[str, ...]) -> tuple[str, ...]:
    """The deeper tiers that these tiers may call."""
    deeper = dict.fromkeys(host.tier for host in inputs.hosts)
    return tuple(one for one in deeper if any(calls(inputs, tier, one) for tier in tiers))


def _unasked_behind(inputs: Inputs, tiers: tuple[str, ...]) -> tuple[str, ...]:
    """The deeper tiers that these tiers may call and whose sessions were not measured."""
    return tuple(one for one in _behind(inputs, tiers) if not np.isfinite(at_work(inputs, one)).any())


def seen_by(resource: Resource) -> str:
    """The series that shows the work of a tier: the database's sessions, else the operations."""
    return "db.sessions_active" if set(resource.tiers[:1]) & set(LOCKS) else OF_OPERATIONS


def held_outside(
    inputs: Inputs, flows: Flows, station: Station, disks: Resources
) -> dict[str, Floats] | None:
    """Columns of the wait at a station outside of its tier; None if the tier's work was not measured.

    ``outside``: number of users that wait while the tier is idle for them. ``own`` and ``witness``: as in
    ShareMeasures.
    """
    hosts = [host for host in inputs.hosts if host.tier == station.tier]
    if station.tier in LOCKS:
        return _as_server_sees(inputs, flows, station, hosts)
    if hosts:
        return _by_own_use(inputs, station, hosts, disks)
    unknown = np.full(inputs.window.steps, np.nan)
    return {"outside": station.per_step, "witness": unknown, "own": unknown}


def _as_server_sees(
    inputs: Inputs, flows: Flows, station: Station, hosts: list[Host]
) -> dict[str, Floats] | None:
    """The columns of ``held_outside``: operations in flight without an active server session wait outside."""
    working = sessions_at_work(inputs, [host.name for host in hosts])
    if not np.isfinite(working).any():
        return None
    stations = [one for flow in flows for one in flow.stations]
    own = [one.per_step for one in stations if one.tier == station.tier]
    behind = [one.downstream[station.tier] for one in stations if station.tier in one.downstream]
    everybody = np.sum([*own, *behind], axis=0)
    idle = _share(np.maximum(0.0, everybody - working), everybody)
    used = _most(_cpu(inputs, hosts), inputs.window.steps)
    return {"outside": station.per_step * idle, "witness": idle, "own": used}


def _by_own_use(
    inputs: Inputs, station: Station, hosts: list[Host], disks: Resources
) -> dict[str, Floats] | None:
    """The columns of ``held_outside``, from the CPU and disk use of the tier.

    A content source serves several users at a time: one user per core that it uses. Any other tier is assumed
    to serve one user at a time: while the tier works, all its users wait for it. A store may report more
    work: the busy ratio of its only thread (waits for its log included), or the number of operations inside
    it. The time that a tier waits for a deeper tier is not outside.
    """
    steps = inputs.window.steps
    busy = [disk.columns["busy"] for disk in disks if station.tier in disk.tiers]
    ratios = _cpu(inputs, hosts)
    seen = bool(np.isfinite(_most(ratios, steps)).any())
    if not seen and not station.source:
        return None
    at_work = np.zeros(steps)
    for column in (*_cores(inputs, hosts, ratios), *busy):
        at_work += np.nan_to_num(column)
    if station.source:
        outside = np.maximum(0.0, station.per_step - at_work)
    else:
        for host in hosts:
            at_work = np.fmax(at_work, inputs.samples.steps(host.name, "db.main_thread.busy_ratio"))
        inside = sum(np.nan_to_num(operations_inside(inputs, host.name)) for host in hosts)
        outside = station.per_step * np.maximum(0.0, 1.0 - at_work)
        outside = np.minimum(outside, np.maximum(0.0, station.per_step - inside))
    outside = outside * _not_behind(station)
    witness = _share(outside, station.per_step) if seen else np.full(steps, np.nan)
    return {"outside": outside, "witness": witness, "own": _most([*ratios, *busy], steps)}


def _not_behind(station: Station) -> Floats:
    """Share of the station's operations that do not wait for a deeper tier."""
    behind = sum(station.downstream.values(), np.zeros_like(station.per_step))
    return np.clip(1 - behind / station.going_on, 0.0, 1.0) if station.going_on else np.ones_like(behind)


def _cpu(inputs: Inputs, hosts: list[Host]) -> list[Floats]:
    """Busy ratio of the tier's own processes on each host, relative to the CPU that they may use."""
    return [inputs.samples.steps(host.name, "cpu.busy_ratio", f"tier:{host.tier}") for host in hosts]


def _cores(inputs: Inputs, hosts: list[Host], ratios: list[Floats]) -> Iterator[Floats]:
    """Cores used by the tier's own processes on each host."""
    for host, ratio in zip(hosts, ratios, strict=True):
        yield ratio * np.nan_to_num(cores_of(inputs, host), nan=1.0)


def _most(columns: list[Floats], steps: int) -> Floats:
    """The largest of several columns in each step; NaN where none was measured."""
    most = np.full(steps, np.nan)
    for column in columns:
        most = np.fmax(most, column)
    return most


def _share(part: Floats, whole: Floats) -> Floats:
    return np.divide(part, whole, out=np.full_like(whole, np.nan), where=whole > 0)


def _each(outside: Floats, station: Station) -> Floats:
    """Seconds that one request to the station waits while the tier does not work on it."""
    if station.mean_s is None:
        return np.full_like(outside, np.nan)
    return _share(outside, station.per_step) * station.mean_s
