"""Network interfaces of a machine: the fuller of their two directions against their speed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from pinchpoint.analysis.flows import Flow
from pinchpoint.analysis.resources.base import Least, Resource, ShareMeasures, Way, mean_of, placed
from pinchpoint.analysis.resources.dependency import held_outside, seen_by
from pinchpoint.analysis.resources.shared import Figure, Shared
from pinchpoint.analysis.stages import Rows
from pinchpoint.analysis.thresholds import NETWORK, NOT_SEEN, OWN_USE
from pinchpoint.analysis.verdict import Kind
from pinchpoint.data.inputs import Inputs
from pinchpoint.data.series import Floats, Key


class Network(Shared):
    """One interface whose speed is known."""

    type = "network"
    kind = "network"
    ways: Mapping[Kind, Way] = {"network": "use"}
    full_now = Least("used", NETWORK)
    maybe_full = Least("used", OWN_USE)
    short = "the network interface {instance} of {host}"
    placed = "the interface {instance} of {host}"
    least = Least("used", NETWORK)
    called = "the network interface {instance} of {host}"
    shown = "it carries {used} of its speed"
    relieved = "use a faster interface"
    grows = True

    def discover(
        self, inputs: Inputs, flows: tuple[Flow, ...], disks: tuple[Resource, ...]
    ) -> Iterator[Resource]:
        """Each once per machine.

        Their witness: the share of the operations in flight there for which the machine's tiers do nothing.
        """
        seen: set[tuple[str, str]] = set()
        for key in inputs.samples.keys("net.speed_bytes_per_s"):
            hosts = [host for host in inputs.hosts if host.name == key.host]
            if not hosts or (hosts[0].machine, key.instance) in seen:
                continue
            seen.add((hosts[0].machine, key.instance))
            everyone = sorted(inputs.on_machine(hosts[0].machine), key=lambda host: -_there(flows, host.tier))
            speed = inputs.samples.steps(*key)
            names = ("net.received_bytes_per_s", "net.sent_bytes_per_s")
            received, sent = (inputs.samples.steps(key.host, name, key.instance) for name in names)
            # Where the fuller direction was lost, the other one says nothing of it.
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
                    "witness": _idle(inputs, flows, disks, set(tiers)),
                },
            )

    def own_use(self, resource: Resource, rows: Rows) -> float | None:
        """All that is used of it."""
        return mean_of(resource, "used", rows)

    def figures(self, resource: Resource) -> tuple[Figure, ...]:
        """What it carries, and how little of the time that operations take those behind it see."""
        [fuller] = resource.views
        unseen = "its tiers do not work on {} of the operations in flight"
        return (
            Figure(
                lambda found: found.used,
                f"{resource.instance} carried {{}} of its speed in one direction",
                fuller.metric,
                NETWORK,
                "E1",
                required=True,
                instance=fuller.instance,
                host=fuller.host,
            ),
            Figure(lambda found: found.witness, unseen, seen_by(resource), NOT_SEEN, "E4"),
        )

    def waited_for(self, resource: Resource, found: ShareMeasures, flows: tuple[Flow, ...]) -> bool:
        """It carries what it can, whoever waits."""
        return True


def _there(flows: tuple[Flow, ...], tier: str) -> float:
    """How many operations of pressed scenarios are at a tier, or on the way to it."""
    return sum(flow.going_on(tier) for flow in flows if flow.pressed)


def _idle(inputs: Inputs, flows: tuple[Flow, ...], disks: tuple[Resource, ...], tiers: set[str]) -> Floats:
    """Of the operations of pressed scenarios at these tiers, the largest share that is on its way there."""
    most = np.full(inputs.window.steps, np.nan)
    for flow in flows:
        for station in flow.stations:
            seen = held_outside(inputs, flows, station, disks) if station.tier in tiers else None
            if flow.pressed and seen is not None:
                most = np.fmax(most, seen["witness"])
    return most
