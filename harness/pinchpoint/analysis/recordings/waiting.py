"""Finds waits in a recording other than for hardware: locks, pools, and systems outside the farm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from pinchpoint.analysis.recordings.measures import (
    Measure,
    RecordedResource,
    Rows,
    What,
    contexts,
    database,
    figure,
    measure,
    named,
    server_of,
    servers,
    sessions_waiting,
)
from pinchpoint.analysis.sessions import LOCK
from pinchpoint.analysis.thresholds import UTILISATION, WAIT_SHARE, Threshold
from pinchpoint.analysis.verdict import Kind
from pinchpoint.data.inputs import Host, Inputs
from pinchpoint.data.series import Key

BLOCKED = Threshold(1.0, "design", "sessions wait for locks without a break: one or more, for 30 seconds")
QUEUED = Threshold(BLOCKED.value, "design", "work waits for a thread or a ticket without a break")
REFUSED = Threshold(0.1, "design", "connections are refused: one in ten seconds, or more")
ON_NETWORK = Threshold(0.75, "PAL", "crawler: critical when more than 75 % of its threads access the network")

_LATCHES = ("Latch:", "LWLock:Buffer")
_WAITED_FOR = (
    (
        ("Client:",),
        "clients",
        "sessions that waited for their client or the network:",
        "what takes the results of",
        "whether the client or the network is slow was not recorded",
        "record CPU and network of the client",
    ),
    (
        ("Any:",),
        "waits",
        "sessions that waited, and not for a CPU:",
        "what sessions wait for in",
        "what they waited for was not recorded",
        "record the sessions by what they wait for",
    ),
    (
        ("Replica:",),
        "replicas",
        "commits that waited for a secondary replica:",
        "secondary replicas of",
        "whether the network or the secondary replica is slow was not recorded",
        "record the network to the secondary replica, and its log disk",
    ),
)
_SHARES = "db.waits_ratio"
_KINDS: Mapping[str, tuple[Kind, str]] = {
    "Lock": ("lock", "locks of {0}"),
    "Latch": ("lock", "latches of {0}"),
    "Log": ("disk", "log disk of {0}"),
    "Data": ("disk", "data disks of {0}"),
    "Temp": ("disk", "temporary files of {0}"),
    "Memory": ("memory", "query memory of {0}"),
    "CPU": ("cpu", "CPU of {1}"),
    "Client": ("external", "what takes the results of {0}"),
    "Replica": ("external", "secondary replicas of {0}"),
    "External": ("external", "other servers that {0} calls"),
}
"""Kind of wait -> (kind of limit, name of the resource)."""
_BACKLOG = Threshold(1e8, "design", "100 MB of the log wait for a secondary replica")
_QUEUES = (
    ("db.log_send_queue_bytes", "log that was not sent to the secondary replica:"),
    ("db.redo_queue_bytes", "log that the secondary replica has not applied:"),
)
_LOCKS = (
    ("db.lock_waiters", "sessions that waited for a lock:"),
    ("db.sessions_blocked", "sessions that were blocked:"),
)
_POOLS: tuple[tuple[str, Threshold, What, str, str], ...] = (
    (
        "db.connections_ratio",
        UTILISATION,
        "utilisation",
        "connections in use, of those allowed:",
        "connections",
    ),
    ("db.pool.busy_ratio", UTILISATION, "utilisation", "threads in use, of those there are:", "threads"),
    ("db.workers_ratio", UTILISATION, "utilisation", "workers in use, of those allowed:", "workers"),
    ("db.units_ratio", UTILISATION, "utilisation", "units in use, of those paid for:", "units"),
    ("db.tickets_ratio", UTILISATION, "utilisation", "tickets in use, of those there are:", "tickets"),
    ("db.connections_rejected_per_s", REFUSED, "saturation", "connections that were refused:", "connections"),
    ("db.connections_failed_per_s", REFUSED, "saturation", "connections that failed:", "connections"),
    ("db.pool.blocked", QUEUED, "saturation", "tasks that found no room in the queue:", "threads"),
    ("db.clients_queued", QUEUED, "saturation", "operations that waited for a ticket:", "operations"),
    ("db.pool.pending", QUEUED, "saturation", "tasks that waited for a thread:", "threads"),
    ("db.tasks_queued", QUEUED, "saturation", "tasks that waited for a worker:", "workers"),
    ("web.requests_queued", QUEUED, "saturation", "requests that waited for a worker:", "workers"),
    ("db.tickets_queued", QUEUED, "saturation", "operations that waited for a ticket:", "tickets"),
)
_LOCK_REQUESTS, _SESSIONS = "db.lock_waits_per_s", "db.sessions_waiting"
RESENT_CALLS = Threshold(0.1, "design", "calls to file servers are sent again: one in ten seconds, or more")
_DEADLOCKS, _INSIDE = "db.deadlocks_per_s", "app.lock_waiters"
DEADLOCKS = Threshold(0.1, "design", "sessions are ended by deadlocks: one in ten seconds, or more")
CRAWL = (("search.waiting", "documents that waited to be crawled"),)


def locks(inputs: Inputs, host: Host) -> Iterator[RecordedResource]:
    """The locks of each database server with recorded lock waits, and the locks of processes."""
    read = [metric for metric, _ in _LOCKS]
    for server in servers(inputs, host.name, *read, _LOCK_REQUESTS, _SESSIONS, _DEADLOCKS):
        blocked = [_saturation(inputs, host, metric, noun, server) for metric, noun in _LOCKS]
        if blocked[0] is None:
            waited = _waiters(inputs, host.name, "lock", server)
            waited = waited or sessions_waiting(inputs, host.name, [LOCK], server)
            blocked[0] = measure(inputs, waited, BLOCKED, "saturation", _LOCKS[0][1])
        result = [one for one in blocked if one]
        waits = _saturation(inputs, host, _LOCK_REQUESTS, "lock requests that waited:", server)
        if waits and (any(one.at_limit for one in result) or not waits.at_limit):
            result.append(waits)  # requests that wait for a moment are no limit alone
        ended = figure(inputs, host.name, _DEADLOCKS, server)
        deadlocks = measure(inputs, ended, DEADLOCKS, "errors", "deadlocks:")
        only = deadlocks is not None and deadlocks.at_limit and not any(one.at_limit for one in result)
        if deadlocks is not None:
            result.append(deadlocks)
        if result:
            name = f"locks of {database(server, host.name)}"
            one = _waited_for(host, "lock", server.removesuffix("/"), name, tuple(result))
            doubt = "how many sessions waited was not recorded" if only else ""
            yield replace(one, doubt=doubt, remedy=f"record the blocked sessions of {host.name}")
    for key in inputs.samples.keys(_INSIDE):
        rows = figure(inputs, *key) if key.host == host.name else None
        if inside := measure(inputs, rows, BLOCKED, "saturation", "threads that waited for a lock:"):
            name = f"locks of the process {key.instance} on {host.name}"
            yield _waited_for(host, "lock", key.instance, name, (inside,))


def _waiters(inputs: Inputs, host: str, of: str, server: str) -> Rows | None:
    """The mean number of waiting sessions by Little's law: seconds per wait x waits per second."""
    metrics = f"db.{of}_wait_s", f"db.{of}_waits_per_s"
    took, rate = (figure(inputs, host, metric, server) for metric in metrics)
    if took is None or rate is None:
        return None
    values = np.nan_to_num(took.values) * rate.values
    return replace(rate, values=values, metric=f"db.{of}_waiters")


def _saturation(inputs: Inputs, host: Host, metric: str, noun: str, server: str) -> Measure | None:
    return measure(inputs, figure(inputs, host.name, metric, server), BLOCKED, "saturation", noun)


def sessions(inputs: Inputs, host: Host) -> Iterator[RecordedResource]:
    """Waits of each database server's sessions other than for disks, locks, memory and workers."""
    for server in servers(inputs, host.name, _SESSIONS, "db.latch_waits_per_s"):
        where = database(server, host.name)
        latches = sessions_waiting(inputs, host.name, _LATCHES, server)
        latches = latches or _waiters(inputs, host.name, "latch", server)
        noun = "sessions that waited for a page in memory that another one uses:"
        if latched := measure(inputs, latches, BLOCKED, "saturation", noun):
            yield replace(
                _waited_for(host, "lock", f"{server}latches", f"latches of {where}", (latched,)),
                doubt="which pages they wait for was not recorded" if latched.at_limit else "",
                remedy=f"record what the sessions on {host.name} wait for (PAGELATCH, often of tempdb)",
            )
        for kinds, instance, noun, what, doubt, remedy in _WAITED_FOR:
            waiting = sessions_waiting(inputs, host.name, kinds, server)
            if one := measure(inputs, waiting, BLOCKED, "saturation", noun):
                result = _waited_for(host, "external", f"{server}{instance}", f"{what} {where}", (one,))
                yield replace(result, doubt=doubt if one.at_limit else "", remedy=remedy)


def waited_mostly(inputs: Inputs, host: Host) -> Iterator[RecordedResource]:
    """The kinds of waits that took most of the sessions' waiting time, as a mean since the server's start."""
    for key in inputs.samples.keys(_SHARES):
        rows = figure(inputs, *key) if key.host == host.name else None
        one = measure(
            inputs,
            rows,
            WAIT_SHARE,
            "attribution",
            "sessions waited for it, of all the time that they waited:",
        )
        if one is None or not one.at_limit or key.instance not in _KINDS:
            continue
        kind, name = _KINDS[key.instance]
        yield replace(
            _waited_for(host, kind, key.instance, name.format(database("", host.name), host.name), (one,)),
            doubt="it is a mean since the server started, whatever was slow",
            remedy="record the waits every 15 s while it is slow, with the time in each row",
        )


def replicas(inputs: Inputs, host: Host) -> Iterator[RecordedResource]:
    """Secondary replicas of a database that lag behind."""
    for metric, noun in _QUEUES:
        for key in inputs.samples.keys(metric):
            rows = figure(inputs, *key) if key.host == host.name else None
            one = measure(inputs, rows, _BACKLOG, "saturation", noun)
            if one is not None:
                name = f"secondary replica of {key.instance or 'the databases'} on {host.name}"
                result = _waited_for(host, "external", key.instance, name, (one,))
                yield replace(
                    result,
                    doubt="commits need not wait for a replica that lags" if one.at_limit else "",
                    remedy="record the network to the secondary replica, its log disk, and Transaction Delay",
                )


def file_servers(inputs: Inputs, host: Host) -> Iterator[RecordedResource]:
    """The NFS servers that a host calls, by the calls that the host had to repeat."""
    calls = figure(inputs, host.name, "net.nfs_retransmits_per_s")
    one = measure(inputs, calls, RESENT_CALLS, "saturation", "NFS calls that were sent again:")
    if one is not None:
        yield replace(
            _waited_for(host, "external", "NFS", f"NFS servers that {host.name} calls", (one,)),
            doubt="whether the server or the network is slow was not recorded",
            remedy="record the NFS server, and how long its calls take (nfsiostat)",
        )


def pools(inputs: Inputs, host: Host) -> Iterator[RecordedResource]:
    """Connections and threads of a host's servers; one pool may have several measures."""
    pools_: dict[tuple[str, str], list[Measure]] = {}
    for metric, limit, what, noun, held in _POOLS:
        for key in inputs.samples.keys(metric):
            rows = figure(inputs, host.name, metric, key.instance) if key.host == host.name else None
            one = measure(inputs, rows, limit, what, noun)
            if one is not None:
                server = server_of(key)
                name = f"{key.instance.removeprefix(server)} {held}".lstrip()
                instance = key.instance if key.instance != server else f"{server}{held}"
                name = f"{name} of the server{named(server)} on {host.name}"
                pools_.setdefault((instance, name), []).append(one)
    for (instance, name), measures in pools_.items():
        ordered = tuple(sorted(measures, key=lambda one: not one.at_limit))
        yield _waited_for(host, "pool", instance, name, ordered)


def dependencies(inputs: Inputs, host: Host) -> Iterator[RecordedResource]:
    """The content sources of a crawler, by the share of its threads that access the network."""
    samples = inputs.samples
    for key in samples.keys("search.threads_on_network"):
        share = _share_of_threads(inputs, key) if key.host == host.name else None
        if share is None:
            continue
        noun = "of the crawler's threads accessed the network:"
        one = measure(inputs, share, ON_NETWORK, "attribution", noun, above=True)
        if one is not None:
            name = f"what the crawler of {host.name} fetches from"
            latency = replace(one, metric=key.metric)
            waited = _waited_for(host, "external", "what it crawls", name, (latency,))
            yield replace(waited, context=contexts(inputs, host.name, CRAWL))


def _waited_for(
    host: Host, kind: Kind, instance: str, name: str, measures: tuple[Measure, ...]
) -> RecordedResource:
    busy = [one for one in measures if one.what == "utilisation"]
    has_room = not any(one.at_limit for one in measures) and all(one.has_room for one in busy)
    return RecordedResource(
        kind=kind,
        tier=host.tier,
        host=host.name,
        instance=instance,
        name=name,
        metric=measures[0].metric,
        measures=measures,
        has_room=has_room,
    )


def _share_of_threads(inputs: Inputs, key: Key) -> Rows | None:
    samples = inputs.samples
    waiting = samples.steps(*key)
    rest = [samples.steps(key.host, f"search.threads_{name}", key.instance) for name in ("filtering", "idle")]
    total = waiting + np.nan_to_num(rest).sum(axis=0)
    share = np.divide(waiting, total, out=np.full(len(total), np.nan), where=total > 0)
    return Rows.of(samples.series(*key), key._replace(metric="search.threads_ratio"), share)
