"""What was measured about dependencies, locks, memory, connections and interfaces, as sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from pinchpoint.analysis.measures import ShareMeasures
from pinchpoint.analysis.resources import Resource
from pinchpoint.analysis.thresholds import (
    CONNECTIONS,
    LOCK_WAIT,
    MANY_REFUSED,
    MEMORY_LOW,
    MEMORY_WAIT,
    NETWORK,
    OUTSIDE_S,
    OWN_USE,
    POOL_HELD,
    QUEUED,
    READ_AGAIN,
    UTILISATION,
    Threshold,
    at_least,
)
from pinchpoint.analysis.verdict import Fact
from pinchpoint.report import units


def share_facts(resource: Resource, found: ShareMeasures) -> tuple[Fact, ...]:
    """The evidence against one of them, the strongest first; what was not measured is left out."""
    return tuple(fact for fact in WORDS[resource.type](resource, found) if fact.value is not None)


def _fact(
    resource: Resource, text: str, metric: str, value: float | None, evidence: str, limit: Threshold
) -> Fact:
    host = resource.hosts[0] if resource.hosts else ""
    return Fact(text, metric, value, host, resource.instance, evidence, limit.value, limit.source, limit.says)


def _dependency(resource: Resource, found: ShareMeasures) -> Iterator[Fact]:
    held = units.percent(found.used)
    text = f"{held} of the users of {resource.scenario} wait for {resource.instance} at any time"
    yield _fact(resource, text, "users_held_ratio", found.used, "E1", POOL_HELD)
    text = f"each request waits {units.seconds(found.each_s)} in which nothing is done for it there"
    yield _fact(resource, text, "service_s", found.each_s, "context", OUTSIDE_S)
    if resource.tiers:
        text = f"the tier behind it sees nothing of {units.percent(found.witness)} of that time"
        yield _fact(resource, text, "idle_share_ratio", found.witness, "E4", POOL_HELD)
        text = f"it uses {units.percent(found.own)} of what it has"
        yield _fact(resource, text, "cpu.busy_ratio", found.own, "context", OWN_USE)


def _lock(resource: Resource, found: ShareMeasures) -> Iterator[Fact]:
    text = f"somebody waited for a lock {units.percent(found.used)} of the time"
    evidence = "E1" if found.used is not None and found.used >= UTILISATION.value else "context"
    yield _fact(resource, text, "db.lock_waiters", found.used, evidence, UTILISATION)
    text = f"{units.percent(found.witness)} of the operations under way waited for one, as the database says"
    yield _fact(resource, text, "db.lock_waiters", found.witness, "E4", LOCK_WAIT)


def _memory(resource: Resource, found: ShareMeasures) -> Iterator[Fact]:
    text = f"{units.percent(found.witness)} of what was read had been in memory before"
    yield _fact(resource, text, "mem.refaulted_bytes_per_s", found.witness, "E1", READ_AGAIN)
    left = None if found.used is None else 1 - found.used
    low = left is not None and left < MEMORY_LOW.value
    text = f"{units.percent(left)} of memory was available"
    yield _fact(resource, text, "mem.available_ratio", left, "E4" if low else "context", MEMORY_LOW)
    text = f"somebody waited for memory {units.percent(found.pressure)} of the time"
    waits = found.pressure is not None and found.pressure >= MEMORY_WAIT.value
    kind = "E4" if waits else "context"
    yield _fact(resource, text, "pressure.memory_ratio", found.pressure, kind, MEMORY_WAIT)


def _network(resource: Resource, found: ShareMeasures) -> Iterator[Fact]:
    text = f"{resource.instance} carried {units.percent(found.used)} of its speed in one direction"
    yield _fact(resource, text, "net.sent_bytes_per_s", found.used, "E1", NETWORK)
    text = f"its tiers see nothing of {units.percent(found.witness)} of the operations under way"
    witnessed = found.witness is not None and found.witness >= POOL_HELD.value
    yield _fact(
        resource, text, "idle_share_ratio", found.witness, "E4" if witnessed else "context", POOL_HELD
    )


def _pool(resource: Resource, found: ShareMeasures) -> Iterator[Fact]:
    if resource.views:
        in_use, queue = resource.views
        text = f"{units.percent(found.used)} of the {resource.instance} were in use"
        fact = _fact(resource, text, in_use.metric, found.used, "E1", CONNECTIONS)
        yield replace(fact, instance=in_use.instance)
        text = f"{units.percent(found.witness)} of the operations waited for one"
        kind = "E4" if at_least(found.witness, QUEUED) else "context"
        fact = _fact(resource, text, queue.metric, found.witness, kind, QUEUED)
        yield replace(fact, instance=queue.instance)
        text = f"{units.percent(found.own)} of those in use were held by what waits for something else"
        yield _fact(resource, text, "held_ratio", found.own, "context", OWN_USE)
        return
    text = f"{units.percent(found.used)} of the connections were in use"
    yield _fact(resource, text, "db.connections_ratio", found.used, "E1", CONNECTIONS)
    text = f"{units.percent(found.witness)} of the operations were refused one"
    yield _fact(resource, text, "refused_ratio", found.witness, "E4", MANY_REFUSED)


WORDS: dict[str, Callable[[Resource, ShareMeasures], Iterator[Fact]]] = {
    "dependency": _dependency,
    "lock": _lock,
    "memory": _memory,
    "network": _network,
    "pool": _pool,
}
