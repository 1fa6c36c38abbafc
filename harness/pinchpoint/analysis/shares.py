"""Evidence about what is neither CPU nor disk: dependencies, locks, memory, connections, interfaces."""

from __future__ import annotations

from collections.abc import Callable

from pinchpoint.analysis.flows import Flow
from pinchpoint.analysis.measures import ShareMeasures
from pinchpoint.analysis.resources import Resource
from pinchpoint.analysis.thresholds import (
    CONNECTIONS,
    LOCK_WAIT,
    MANY_REFUSED,
    MEMORY_LOW,
    MEMORY_WAIT,
    NETWORK,
    NOT_SEEN,
    OUTSIDE_S,
    OWN_USE,
    POOL_HELD,
    QUEUED,
    READ_AGAIN,
    UTILISATION,
    at_least,
)

NONE: frozenset[str] = frozenset()
BOTH = frozenset({"E1", "E4"})


def share_evidence(resource: Resource, found: ShareMeasures, flows: tuple[Flow, ...]) -> frozenset[str]:
    """E1 from its use, E4 from who else sees that; of some only where somebody waits."""
    judge = JUDGES.get(resource.type)
    return judge(resource, found, flows) if judge else NONE


def pressed_at(tiers: tuple[str, ...], flows: tuple[Flow, ...]) -> bool:
    """Whether a pressed scenario goes to one of these tiers."""
    return any(flow.pressed and flow.share(tier) > 0 for flow in flows for tier in tiers)


def _dependency(resource: Resource, found: ShareMeasures, flows: tuple[Flow, ...]) -> frozenset[str]:
    """Its users wait for it most of their time, and the tier behind it has little to do.

    A farm that merely is not asked for much waits for nothing long: milliseconds are needed as well.
    """
    pressed = any(flow.pressed and flow.load.scenario == resource.scenario for flow in flows)
    # Of a tier of the farm that nobody looked at, nobody knows whether it has little to do.
    unseen = bool(resource.tiers) and found.own is None
    busy = unseen or (found.own is not None and found.own >= OWN_USE.value)
    if not (pressed and at_least(found.used, POOL_HELD) and at_least(found.each_s, OUTSIDE_S)) or busy:
        return NONE
    return BOTH if at_least(found.witness, NOT_SEEN) else frozenset({"E1"})


def _lock(resource: Resource, found: ShareMeasures, flows: tuple[Flow, ...]) -> frozenset[str]:
    if not (pressed_at(resource.tiers, flows) and at_least(found.witness, LOCK_WAIT)):
        return NONE
    return BOTH if at_least(found.used, UTILISATION) else frozenset({"E4"})


def _memory(resource: Resource, found: ShareMeasures, flows: tuple[Flow, ...]) -> frozenset[str]:
    """What was in memory is read again and again.

    File cache counts as available or not by how lately it was used, so that reading again tells more than
    what is left; the latter, and those who wait for memory, are its witnesses.
    """
    if not (pressed_at(resource.tiers, flows) and at_least(found.witness, READ_AGAIN)):
        return NONE
    low = found.used is not None and 1 - found.used < MEMORY_LOW.value
    return BOTH if low or at_least(found.pressure, MEMORY_WAIT) else frozenset({"E1"})


def _network(_resource: Resource, found: ShareMeasures, _flows: tuple[Flow, ...]) -> frozenset[str]:
    """It carries what it can; those behind it see little of the time that operations take."""
    if not at_least(found.used, NETWORK):
        return NONE
    return BOTH if at_least(found.witness, NOT_SEEN) else frozenset({"E1"})


def _pool(resource: Resource, found: ShareMeasures, _flows: tuple[Flow, ...]) -> frozenset[str]:
    """Operations were refused for want of a connection; all are used, where the server was asked.

    Of threads and tickets nobody is refused one: operations wait, and not because those who have one do.
    """
    if resource.views:
        full = at_least(found.used, CONNECTIONS) and not at_least(found.own, OWN_USE)
        return BOTH if full and at_least(found.witness, QUEUED) else NONE
    if found.used is None:
        return frozenset({"E4"}) if at_least(found.witness, MANY_REFUSED) else NONE
    if not (at_least(found.used, CONNECTIONS) and found.witness):
        return NONE
    return BOTH if at_least(found.witness, MANY_REFUSED) else frozenset({"E1"})


JUDGES: dict[str, Callable[[Resource, ShareMeasures, tuple[Flow, ...]], frozenset[str]]] = {
    "dependency": _dependency,
    "lock": _lock,
    "memory": _memory,
    "network": _network,
    "pool": _pool,
}
