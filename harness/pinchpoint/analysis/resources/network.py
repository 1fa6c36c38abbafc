"""Network interfaces of a machine: the rate of the fuller direction against the speed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from pinchpoint.analysis.flows import Flows, in_flight
from pinchpoint.analysis.resources.base import (
    ChangeableLimit,
    Least,
    LimitMode,
    Resource,
    Resources,
    ShareMeasures,
    mean_of,
    placed,
)
from pinchpoint.analysis.resources.dependency import held_outside, seen_by
from pinchpoint.analysis.resources.disk.types import AT_LEAST
from pinchpoint.analysis.resources.gain import advise
from pinchpoint.analysis.resources.shared import Figure, Shared
from pinchpoint.analysis.stages import Rows
from pinchpoint.analysis.thresholds import NETWORK, NOT_SEEN, OWN_USE
from pinchpoint.analysis.verdict import Advice, Kind
from pinchpoint.base import units
from pinchpoint.data.inputs import Inputs
from pinchpoint.data.series import Floats, Key

if TYPE_CHECKING:
    from pinchpoint.analysis.advice_inputs import AdviceInputs


class Network(Shared):
    """One interface whose speed is known."""

    type = "network"
    kind = "network"
    limit_modes: Mapping[Kind, LimitMode] = {"network": "use"}
    full_now = Least("used", NETWORK)
    maybe_full = Least("used", OWN_USE)
    short = "the network interface {instance} of {host}"
    placed = "the interface {instance} of {host}"
    least = Least("used", NETWORK)
    called = "the network interface {instance} of {host}"
    shown = "the interface carries {used} of its speed"
    relieved = "use a faster interface"
    grows = True

    def discover(self, inputs: Inputs, flows: Flows, disks: Resources) -> Iterator[Resource]:
        """Every interface with a known speed, once per machine.

        ``witness`` is the share of the operations in flight on which the machine's tiers do not work.
        """
        seen: set[tuple[str, str]] = set()
        pressed = [flow for flow in flows if flow.pressed]
        for key in inputs.samples.keys("net.speed_bytes_per_s"):
            hosts = [host for host in inputs.hosts if host.name == key.host]
            if not hosts or (hosts[0].machine, key.instance) in seen:
                continue
            seen.add((hosts[0].machine, key.instance))
            everyone = sorted(
                inputs.on_machine(hosts[0].machine), key=lambda host: -in_flight(pressed, host.tier)
            )
            speed = inputs.samples.steps(*key)
            names = ("net.received_bytes_per_s", "net.sent_bytes_per_s")
            received, sent = (inputs.samples.steps(key.host, name, key.instance) for name in names)
            # Without samples of the fuller direction, the other direction does not show the limit.
            ways = [way for way in (received, sent) if np.isfinite(way).any()]
            most = np.max(ways or [speed * np.nan], axis=0)
            fuller = max(names, key=lambda name: inputs.samples.mean(key.host, name, key.instance) or 0.0)
            all_names, tiers = placed(everyone)
            yield Resource(
                key=f"network:{hosts[0].machine}:{key.instance}",
                type="network",
                machine=hosts[0].machine,
                hosts=all_names,
                tiers=tiers,
                instance=key.instance,
                views=(Key(key.host, fuller, key.instance),),
                columns={
                    "used": np.divide(most, speed, out=np.full_like(most, np.nan), where=speed > 0),
                    "speed": speed,
                    "witness": _idle(inputs, flows, disks, set(tiers)),
                },
            )

    def held(
        self, resource: Resource, measures: ShareMeasures, rows: Rows, flows: Flows
    ) -> ChangeableLimit | None:
        """Operations at the interface's tiers on which no session works; all of them if that is unknown."""
        speed = mean_of(resource, "speed", rows)
        if not resource.tiers or speed is None:
            return None
        share = 1.0 if measures.witness is None else min(1.0, measures.witness)
        there = {flow.load.scenario: sum(map(flow.going_on, resource.tiers)) for flow in flows}
        waiting = {name: share * count for name, count in there.items()}
        return ChangeableLimit(
            f"{resource.tiers[0]}.network", speed, None, waiting, "the client and the path carry it"
        )

    def advise(self, basis: AdviceInputs, measures: ShareMeasures) -> Iterator[Advice]:
        """Advice: an interface that carries the load to the next limit; if unknown, twice as fast."""
        resource, bound, stage = basis.first.resource, basis.until(), basis.case.stage
        times = (1 + bound.ratio) * basis.now * (measures.used or NETWORK.value) if bound.ratio else AT_LEAST
        speed = mean_of(resource, "speed", stage.rows) if stage is not None else None
        gain = basis.unknown("its speed is not known")
        if speed is not None and resource.tiers:
            gain = basis.asked_for(f"{resource.tiers[0]}.network={speed * times / 1e6:.3g}MB/s")
        what = (
            f"Give {resource.hosts[0]} a faster interface than {resource.instance} "
            f"({units.percent(measures.used)} of its speed is used; needed: {units.times(times)} that speed)"
        )
        yield advise("network", resource.hosts[0], what, gain)

    def own_use(self, resource: Resource, rows: Rows) -> float | None:
        """Utilisation of the interface."""
        return mean_of(resource, "used", rows)

    def measure(self, resource: Resource, rows: Rows) -> ShareMeasures:
        """Utilisation of the interface, and the share of operations on which its tiers do not work."""
        return ShareMeasures(mean_of(resource, "used", rows), mean_of(resource, "witness", rows))

    def figures(self, resource: Resource) -> tuple[Figure, ...]:
        """Figures: utilisation of the interface, and operations on which its tiers do not work."""
        [fuller] = resource.views
        unseen = "its tiers do not work on {} of the operations in flight"
        return (
            Figure(
                lambda found: found.used,
                f"interface {resource.instance} carried {{}} of its speed in one direction",
                fuller.metric,
                NETWORK,
                "E1",
                required=True,
                instance=fuller.instance,
                host=fuller.host,
            ),
            Figure(lambda found: found.witness, unseen, seen_by(resource), NOT_SEEN, "E4"),
        )

    def waited_for(self, resource: Resource, measures: ShareMeasures, flows: Flows) -> bool:
        """Always true, because a full interface delays all operations."""
        return True


def _idle(inputs: Inputs, flows: Flows, disks: Resources, tiers: set[str]) -> Floats:
    """The largest share of a pressed scenario's operations that wait for the network to these tiers."""
    most = np.full(inputs.window.steps, np.nan)
    for flow in flows:
        for station in flow.stations:
            seen = held_outside(inputs, flows, station, disks) if station.tier in tiers else None
            if flow.pressed and seen is not None:
                most = np.fmax(most, seen["witness"])
    return most
