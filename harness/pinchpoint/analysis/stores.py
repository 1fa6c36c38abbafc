"""Computes waits of NoSQL stores for the log, for data and for a thread from the stores' own statistics.

No store samples waits as a database does, but each has counters from which waits follow (docs/rules.md):

- Valkey, Redis: one thread serves all clients in turn. The server counts the thread's time in the log.
- Cassandra: a write occupies its stage until it is in the commit log (on the disk, if the node is configured
  so), a read until the data is read. An operation in a stage that is not on a CPU and does not wait for a CPU
  waits for a disk: writes for the data disk while memtables wait to be written out, else for the log disk.
- MongoDB: the server times the journal's flushes, and the clients' waits for pages and for room in the cache.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from pinchpoint.analysis.resources.cpu import cores_of, pool_busy
from pinchpoint.analysis.thresholds import UTILISATION
from pinchpoint.data.inputs import COMMIT_ROLES, DiskRole, Inputs
from pinchpoint.data.series import Floats, Key

WRITES, READS, REQUESTS = "MutationStage", "ReadStage", "Native-Transport-Requests"
FLUSHES = ("MemtableFlushWriter", "PerDiskMemtableFlushWriter")
"""Thread pools of Cassandra."""

LEAST = 1e-9
"""Least number of tasks, which avoids a division by 0."""

TICKETS = {"read": "tickets for reading", "write": "tickets for writing"}
"""Instance of MongoDB's ticket metrics -> words."""


@dataclass(slots=True)
class StoreView:
    """Operations that wait for one device, as the stores report; NaN if no store reports them.

    Attributes:
        waiting: operations that wait for the device, one number per step.
        share: share of the work (of the time of a write) that is waiting for the device, one value per step.
        series: the series that ``waiting`` and ``share`` come from.
    """

    waiting: Floats
    share: Floats
    series: list[Key] = field(default_factory=list)

    @classmethod
    def empty(cls, steps: int) -> StoreView:
        """The view before any store has reported."""
        unknown = np.full(steps, np.nan)
        return cls(unknown, unknown)

    def wait(self, more: Floats, *series: Key) -> None:
        """Add waiting operations, one number per step, and the series they come from."""
        self.waiting = np.where(np.isfinite(more), np.nan_to_num(self.waiting) + more, self.waiting)
        self.series += series


def store_view(inputs: Inputs, roles: Iterable[DiskRole]) -> StoreView:
    """The waits for a disk with these roles; a log without its own disk is on the data disk."""
    view = StoreView.empty(inputs.window.steps)
    for role in roles:
        own = {disk.role for disk in inputs.disks if disk.host == role.host}
        data = role.role == "data"
        log = role.role in COMMIT_ROLES or (data and not own & set(COMMIT_ROLES))
        if log:
            _valkey_log(inputs, role.host, view)
            _mongodb_log(inputs, role.host, view)
        if data:
            _mongodb_data(inputs, role.host, view)
        _cassandra(inputs, role.host, view, log=log, data=data)
    return view


# ---- Valkey, Redis -----------------------------------------------------------------------------------


def _valkey_log(inputs: Inputs, host: str, view: StoreView) -> None:
    """Add the share of the main thread's work that writes and flushes the log: all clients wait for it."""
    key = Key(host, "db.aof.wait_ratio", "")
    waits, busy = inputs.samples.steps(*key), inputs.samples.steps(host, "db.main_thread.busy_ratio")
    # Without a measured busy time the thread counts as busy all of the time.
    busy = np.where(np.isfinite(busy), busy, 1.0)
    share = np.divide(waits, busy, out=np.full_like(waits, np.nan), where=busy > 0)
    _share(view, np.minimum(1.0, share), key)


# ---- MongoDB -----------------------------------------------------------------------------------------


def _mongodb_log(inputs: Inputs, host: str, view: StoreView) -> None:
    """Add the share of a write's time that is waiting for the journal.

    If flushes follow one another without a pause, writes always wait for the next flush. Otherwise a write
    waits for its own flush, and in addition for a flush that is running when the write comes. Writes that
    take less than half of a flush do not wait for it. For writes that take between half of a flush and a
    flush the share is unknown.
    """
    key = Key(host, "db.journal.sync_s_per_s", "")
    busy, flush_s = inputs.samples.steps(*key), inputs.samples.steps(host, "db.journal.sync_latency_s")
    write_s = inputs.samples.steps(host, "db.request_latency_s", "write")
    part = np.divide((1 + busy) * flush_s, write_s, out=np.full_like(busy, np.nan), where=write_s > 0)
    share = np.where(busy >= UTILISATION.value, 1.0, np.minimum(1.0, part))
    share = np.where(write_s >= flush_s, share, np.nan)
    _share(view, np.where(write_s < flush_s / 2, 0.0, share), key)


def waiting_for_data(inputs: Inputs, host: str) -> Floats:
    """Per step, MongoDB clients that wait for pages or for room in the cache; NaN if not reported."""
    view = StoreView.empty(inputs.window.steps)
    _mongodb_data(inputs, host, view)
    return view.waiting


def _mongodb_data(inputs: Inputs, host: str, view: StoreView) -> None:
    """Add clients that read pages, or that wait until pages of the cache are written."""
    room = Key(host, "db.cache_wait_s_per_s", "")
    pages = Key(host, "db.cache_read_latency_s", "")
    each_s, how_many = inputs.samples.steps(*pages), inputs.samples.weights(*pages)
    reading = np.nan_to_num(each_s) * how_many / inputs.window.step_s
    waiting = inputs.samples.steps(*room) + reading
    if np.isfinite(waiting).any():
        view.wait(waiting, pages if reading.sum() > waiting[np.isfinite(waiting)].sum() / 2 else room)


def _share(view: StoreView, share: Floats, key: Key) -> None:
    if np.isfinite(share).any():
        view.share = np.fmax(view.share, share)
        view.series.append(key)


# ---- Cassandra ---------------------------------------------------------------------------------------


def _cassandra(inputs: Inputs, host: str, view: StoreView, *, log: bool, data: bool) -> None:
    writes, reads = tasks_held(inputs, host, WRITES), tasks_held(inputs, host, READS)
    if not np.isfinite(writes).any():
        return
    held, (used, queue) = writes + np.nan_to_num(reads), _on_cpu(inputs, host)
    most, least = (np.clip(1 - ready / np.maximum(held, LEAST), 0, 1) for ready in (used, used + queue))
    idle = np.where(least >= most / 2, least, np.nan)  # with nearly full cores the share is unknown
    if not np.isfinite(idle).any():
        return
    flushing = sum(_pending(inputs, host, pool) for pool in _pools(inputs, host, FLUSHES)) > 0
    if log:
        view.wait(np.where(flushing, 0.0, writes) * idle, Key(host, "db.pool.active", WRITES))
    if data:
        waiting = (np.nan_to_num(reads) + np.where(flushing, writes, 0.0)) * idle
        view.wait(waiting, Key(host, "db.pool.active", READS))


def tasks_held(inputs: Inputs, host: str, pool: str) -> Floats:
    """Per step, tasks of a pool that run or wait for a thread."""
    return inputs.samples.steps(host, "db.pool.active", pool) + _pending(inputs, host, pool)


def _pending(inputs: Inputs, host: str, pool: str) -> Floats:
    return np.nan_to_num(inputs.samples.steps(host, "db.pool.pending", pool))


def _pools(inputs: Inputs, host: str, names: tuple[str, ...]) -> list[str]:
    keys = inputs.samples.keys("db.pool.pending")
    return [key.instance for key in keys if key.host == host and key.instance.startswith(names)]


def _on_cpu(inputs: Inputs, name: str) -> tuple[Floats, Floats]:
    """Per step, (threads of a store on a CPU, most threads that wait for one); NaN if not measured.

    The threads on a CPU are the number of cores that the store uses. The waiting threads are at most ``u² ÷
    (1 - u)``, the queue of one server that is busy for a share u of the time (M/M/1); the queue of several
    servers is shorter.
    """
    host = next((one for one in inputs.hosts if one.name == name), None)
    if host is None:
        return np.full(inputs.window.steps, np.nan), np.full(inputs.window.steps, np.nan)
    everyone = inputs.names_on(host.machine)
    busy = pool_busy(inputs.samples, everyone, host.cores or host.usable)
    own = inputs.samples.steps(name, "cpu.busy_ratio", f"tier:{host.tier}")
    used = np.where(np.isfinite(own), own, busy) * cores_of(inputs, host)
    fullest = np.minimum(0.999, np.fmax(busy, own))
    return used, np.asarray(fullest**2 / (1 - fullest))


def operations_inside(inputs: Inputs, host: str) -> Floats:
    """Per step, operations with a thread (Cassandra) or a ticket (MongoDB); NaN for any other store."""
    threads = inputs.samples.steps(host, "db.pool.active", REQUESTS)
    tickets = [inputs.samples.steps(host, "db.tickets_used", instance) for instance in TICKETS]
    return np.where(np.isfinite(threads), threads, np.sum(tickets, axis=0))
