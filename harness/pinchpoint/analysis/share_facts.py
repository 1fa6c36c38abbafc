"""What was measured about dependencies, locks, memory, connections and interfaces, as sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from pinchpoint.analysis.dependencies import LOCKS
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
    WAIT_SHARE,
    Threshold,
    at_least,
)
from pinchpoint.analysis.verdict import Fact
from pinchpoint.base import units

OF_OPERATIONS = "operations.service"
"""What is told by how many operations there were, and how long they took."""


def share_facts(resource: Resource, found: ShareMeasures) -> tuple[Fact, ...]:
    """The evidence against one of them, the strongest first; what was not measured is left out."""
    return tuple(fact for fact in WORDS[resource.type](resource, found) if fact.value is not None)


def _fact(
    resource: Resource,
    text: str,
    metric: str,
    value: float | None,
    evidence: str,
    limit: Threshold,
    instance: str = "",
) -> Fact:
    host = resource.hosts[0] if resource.hosts else ""
    host, instance = ("", resource.scenario) if metric.startswith("operations.") else (host, instance)
    return Fact(text, metric, value, host, instance, evidence, limit.value, limit.source, limit.says)


def _dependency(resource: Resource, found: ShareMeasures) -> Iterator[Fact]:
    held = units.percent(found.used)
    text = f"{held} of the users of {resource.scenario} wait for {resource.instance} at any time"
    yield _fact(resource, text, OF_OPERATIONS, found.used, "E1", POOL_HELD)
    text = f"each request waits {units.seconds(found.each_s)} in which nothing is done for it there"
    yield _fact(resource, text, OF_OPERATIONS, found.each_s, "context", OUTSIDE_S)
    if resource.tiers:
        text = f"the tier behind it sees nothing of {units.percent(found.witness)} of that time"
        yield _fact(resource, text, _seen_by(resource), found.witness, "E4", NOT_SEEN)
        text = f"it uses {units.percent(found.own)} of what it has"
        cpu = f"tier:{resource.tiers[0]}"
        yield _fact(resource, text, "cpu.busy_ratio", found.own, "context", OWN_USE, cpu)


def _lock(resource: Resource, found: ShareMeasures) -> Iterator[Fact]:
    text = f"somebody waited for a lock {units.percent(found.used)} of the time"
    evidence = "E1" if found.used is not None and found.used >= UTILISATION.value else "context"
    yield _fact(resource, text, "db.lock_waiters", found.used, evidence, UTILISATION)
    text = f"{units.percent(found.witness)} of the operations under way waited for one, as the database says"
    yield _fact(resource, text, "db.lock_waiters", found.witness, "E4", LOCK_WAIT)
    of_rest = "of the sessions that wait for none, who hold it among them, wait for a disk"
    text = f"{units.percent(found.own)} {of_rest}"
    yield _fact(resource, text, "db.sessions_active", found.own, "context", WAIT_SHARE)


def _memory(resource: Resource, found: ShareMeasures) -> Iterator[Fact]:
    text = f"{units.percent(found.witness)} of what was read had been in memory before"
    again = "mem.refaulted_bytes_per_s" if resource.instance else "mem.paged_in_bytes_per_s"
    yield _fact(resource, text, again, found.witness, "E1", READ_AGAIN, resource.instance)
    left = None if found.used is None else 1 - found.used
    low = left is not None and left < MEMORY_LOW.value
    text, kind = f"{units.percent(left)} of memory was available", "E4" if low else "context"
    yield _fact(resource, text, "mem.available_ratio", left, kind, MEMORY_LOW, resource.instance)
    text = f"somebody waited for memory {units.percent(found.pressure)} of the time"
    kind = "E4" if at_least(found.pressure, MEMORY_WAIT) else "context"
    yield _fact(resource, text, "pressure.memory_ratio", found.pressure, kind, MEMORY_WAIT)


def _network(resource: Resource, found: ShareMeasures) -> Iterator[Fact]:
    [fuller] = resource.views
    text = f"{resource.instance} carried {units.percent(found.used)} of its speed in one direction"
    fact = _fact(resource, text, fuller.metric, found.used, "E1", NETWORK, fuller.instance)
    yield replace(fact, host=fuller.host)
    text = f"its tiers see nothing of {units.percent(found.witness)} of the operations under way"
    kind = "E4" if at_least(found.witness, NOT_SEEN) else "context"
    yield _fact(resource, text, _seen_by(resource), found.witness, kind, NOT_SEEN)


def _seen_by(resource: Resource) -> str:
    """The series that tells what a tier works on: a database's sessions, else the operations'."""
    return "db.sessions_active" if resource.tiers[0] in LOCKS else OF_OPERATIONS


def _pool(resource: Resource, found: ShareMeasures) -> Iterator[Fact]:
    if resource.views:
        in_use, queue = resource.views
        text = f"{units.percent(found.used)} of the {resource.instance} were in use"
        yield _fact(resource, text, in_use.metric, found.used, "E1", CONNECTIONS, in_use.instance)
        text = f"{units.percent(found.witness)} of the operations waited for one"
        kind = "E4" if at_least(found.witness, QUEUED) else "context"
        yield _fact(resource, text, queue.metric, found.witness, kind, QUEUED, queue.instance)
        text = f"{units.percent(found.own)} of those in use were held by what waits for something else"
        yield _fact(resource, text, in_use.metric, found.own, "context", OWN_USE, in_use.instance)
        return
    text = f"{units.percent(found.used)} of the connections were in use"
    yield _fact(resource, text, "db.connections_ratio", found.used, "E1", CONNECTIONS)
    text = f"{units.percent(found.witness)} of the operations were refused one"
    kind = "E4" if at_least(found.witness, MANY_REFUSED) else "context"
    yield _fact(resource, text, "operations.outcome", found.witness, kind, MANY_REFUSED)


WORDS: dict[str, Callable[[Resource, ShareMeasures], Iterator[Fact]]] = {
    "dependency": _dependency,
    "lock": _lock,
    "memory": _memory,
    "network": _network,
    "pool": _pool,
}
