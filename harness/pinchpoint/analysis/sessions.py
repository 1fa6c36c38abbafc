"""Sampled database sessions: independent evidence of what sessions wait for (docs/rules.md).

Wait events are PostgreSQL's (its documentation, "Wait Event Types"): the collector samples them. Of other
databases a collector says itself what a wait is for, in front of the server's own name for it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pinchpoint.data.inputs import COMMIT_ROLES, DiskRole, Inputs
from pinchpoint.data.series import Floats, added, measured_or_zero

LOG_WAITS = ("IO:Wal", "IO:WAL", "LWLock:WALWrite", "Log:")
"""A session writes or flushes the log, or waits for the one that does: group commit."""
DATA_WAITS = (
    "IO:DataFile",
    "IO:AioIo",
    "IO:SlruRead",
    "IO:SLRURead",
    "IO:SlruWrite",
    "IO:SLRUWrite",
    "BufferPin:",
    "LWLock:BufferIO",
    "IPC:BufferIO",
    "IPC:BufferIo",
    "LWLock:AioUringCompletion",
    "Data:",
)
"""A session reads or writes pages of tables, or waits for the one that reads the same page.

The latter is ``LWLock:BufferIO`` in 13, ``IPC:BufferIO`` from 14 on and ``IPC:BufferIo`` from 17 on, when
``SLRURead`` became ``SlruRead``, too; with ``io_method = io_uring`` (18) also ``LWLock:AioUringCompletion``.
"""
TEMPORARY_WAITS = ("IO:BufFile", "Temp:")

WAITS = {
    "log": LOG_WAITS,
    "wal": LOG_WAITS,
    "journal": LOG_WAITS,
    "data": DATA_WAITS,
    "tempdb": TEMPORARY_WAITS,
}
"""Disk role -> how the names of waits for it begin."""

LOCK = "Lock:"
"""How the names of waits for locks on rows and tables begin."""


def sessions_at_work(inputs: Inputs, hosts: Iterable[str]) -> Floats:
    """Sessions whose statement runs or waits, or whose transaction is open; NaN if not measured.

    Those that are hidden from whoever asks may be at work as well.
    """

    def of(host: str) -> Floats:
        held, hidden = (
            measured_or_zero(inputs.samples.steps(host, f"db.sessions_{name}"))
            for name in ("idle_in_transaction", "hidden")
        )
        return active_sessions(inputs, host) + held + hidden

    return added([np.full(inputs.window.steps, np.nan), *map(of, hosts)])


def active_sessions(inputs: Inputs, host: str) -> Floats:
    """Sessions whose statement runs or waits; NaN if not measured, or if more were hidden than visible."""
    active = inputs.samples.steps(host, "db.sessions_active")
    hidden = measured_or_zero(inputs.samples.steps(host, "db.sessions_hidden"))
    return np.where(hidden > active, np.nan, active)


def largest_lock(inputs: Inputs, host: str) -> str:
    """The kind of lock most sessions wait for (``transactionid``: a row that another transaction changed)."""
    waits = {
        key.instance.removeprefix(LOCK): inputs.samples.mean(*key) or 0.0
        for key in inputs.samples.keys("db.sessions_waiting")
        if key.host == host and key.instance.startswith(LOCK)
    }
    return max(waits, key=waits.__getitem__, default="")


def held_for_disks(inputs: Inputs, host: str) -> Floats:
    """The share of working sessions that wait for a disk, without sessions that wait for a lock; NaN if none.

    Holders of locks are included.
    """
    waits = _sessions(inputs, host, (*LOG_WAITS, *DATA_WAITS, *TEMPORARY_WAITS))
    locked = measured_or_zero(inputs.samples.steps(host, "db.lock_waiters"))
    rest = sessions_at_work(inputs, [host]) - locked
    known = np.isfinite(rest) & (rest > 0)
    return np.minimum(1.0, np.divide(waits, rest, out=np.full_like(rest, np.nan), where=known))


def waiting_sessions(inputs: Inputs, roles: Iterable[DiskRole]) -> Floats:
    """How many sessions waited for a device with these roles; NaN if no database was read.

    A data disk has the log and the temporary files too, if they have no separate disk. No database
    reports waits for a disk whose role has no wait event, such as a second data disk.
    """
    total = np.full(inputs.window.steps, np.nan)
    for role in roles:
        active, prefixes = active_sessions(inputs, role.host), _prefixes(inputs, role)
        if prefixes and np.isfinite(active).any():
            waits = _sessions(inputs, role.host, prefixes)
            total = np.where(np.isfinite(active), measured_or_zero(total) + waits, total)
    return total


def _prefixes(inputs: Inputs, role: DiskRole) -> tuple[str, ...]:
    own = WAITS.get(role.role, ())
    if role.role != "data":
        return own
    others = {disk.role for disk in inputs.disks if disk.host == role.host}
    here = own if others & set(COMMIT_ROLES) else (*own, *LOG_WAITS)
    return here if "tempdb" in others else (*here, *TEMPORARY_WAITS)


def _sessions(inputs: Inputs, host: str, prefixes: tuple[str, ...]) -> Floats:
    total = np.zeros(inputs.window.steps)
    for key in inputs.samples.keys("db.sessions_waiting"):
        if key.host == host and prefixes and key.instance.startswith(prefixes):
            total += measured_or_zero(inputs.samples.steps(*key))
    return total
