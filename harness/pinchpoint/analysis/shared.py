"""What sessions share beside CPU and disks: locks, connections, a machine's network interfaces."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pinchpoint.analysis.dependencies import held_outside
from pinchpoint.analysis.flows import Flow, going_on
from pinchpoint.analysis.resources import Resource, placed
from pinchpoint.analysis.sessions import active_sessions, held_for_disks, largest_lock
from pinchpoint.data.inputs import Inputs
from pinchpoint.data.series import Floats, Key

SOMEBODY = 0.5
"""Mean number of sessions waiting in a second from which somebody waits in most of it."""


def find_locks(inputs: Inputs, flows: tuple[Flow, ...]) -> Iterator[Resource]:
    """The locks of every database that was asked about them."""
    for host in inputs.hosts:
        waiters = inputs.samples.steps(host.name, "db.lock_waiters")
        waiters = np.where(np.isfinite(active_sessions(inputs, host.name)), waiters, np.nan)
        if not np.isfinite(waiters).any():
            continue
        there = going_on(inputs, flows, host.tier)
        yield Resource(
            key=f"lock:{host.name}",
            type="lock",
            machine=host.machine,
            hosts=(host.name,),
            tiers=(host.tier,),
            instance=largest_lock(inputs, host.name),
            columns={
                "used": np.where(np.isfinite(waiters), waiters >= SOMEBODY, np.nan),
                "witness": np.divide(waiters, there, out=np.zeros_like(waiters), where=there > 0),
                "own": held_for_disks(inputs, host.name),
            },
        )


def find_connections(inputs: Inputs, flows: tuple[Flow, ...]) -> Iterator[Resource]:
    """The connections of every database that was asked about them, or that refused some."""
    for host in inputs.hosts:
        used = inputs.samples.steps(host.name, "db.connections_ratio")
        own = [flow for flow in flows if flow.share(host.tier)]
        finished, refused = sum(flow.finished for flow in own), sum(flow.refused for flow in own)
        if not np.isfinite(used).any() and not refused:
            continue
        ratio = refused / finished if finished else 0.0
        yield Resource(
            key=f"pool:{host.name}",
            type="pool",
            machine=host.machine,
            hosts=(host.name,),
            tiers=(host.tier,),
            instance="connections",
            columns={"used": used, "witness": np.full(inputs.window.steps, ratio)},
        )


def find_interfaces(
    inputs: Inputs, flows: tuple[Flow, ...], disks: tuple[Resource, ...]
) -> Iterator[Resource]:
    """The network interfaces whose speed is known, once per machine: the busier of their two directions.

    Their witness: the share of the operations under way there for which the tiers of that machine do nothing.
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
