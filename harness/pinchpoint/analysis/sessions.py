"""Computes from sampled database sessions what these sessions wait for (docs/rules.md).

The collector of PostgreSQL samples the server's wait events (its documentation, "Wait Event Types"). The
collectors of other databases put the kind of wait in front of the server's own name for the wait.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pinchpoint.data.inputs import COMMIT_ROLES, DiskRole, Inputs
from pinchpoint.data.series import Floats, added, measured_or_zero

LOG_WAITS = ("IO:Wal", "IO:WAL", "LWLock:WALWrite", "Log:")
"""Waits of sessions that write or flush the log, or wait for the session that does (group commit)."""
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
"""Waits of sessions that read or write pages of tables, or wait for another session's read of a page.

A wait for another session's read is ``LWLock:BufferIO`` in 13, ``IPC:BufferIO`` from 14 on and
``IPC:BufferIo`` from 17 on, when ``SLRURead`` also became ``SlruRead``. With ``io_method = io_uring`` (18) it
can be ``LWLock:AioUringCompletion``.
"""
TEMPORARY_WAITS = ("IO:BufFile", "Temp:")

WAITS = {
    "log": LOG_WAITS,
    "wal": LOG_WAITS,
    "journal": LOG_WAITS,
    "data": DATA_WAITS,
    "tempdb": TEMPORARY_WAITS,
}
"""Disk role -> prefixes of the names of waits for such a disk."""

LOCK = "Lock:"
"""Prefix of the names of waits for locks on rows and tables."""


def sessions_at_work(inputs: Inputs, hosts: Iterable[str]) -> Floats:
    """Per step, sessions with a running or waiting statement or an open transaction; NaN if not measured.

    Sessions that are hidden from the collector are included, because they may be at work.
    """

    def of(host: str) -> Floats:
        held, hidden = (
            measured_or_zero(inputs.samples.steps(host, f"db.sessions_{name}"))
            for name in ("idle_in_transaction", "hidden")
        )
        return active_sessions(inputs, host) + held + hidden

    return added([np.full(inputs.window.steps, np.nan), *map(of, hosts)])


def active_sessions(inputs: Inputs, host: str) -> Floats:
    """Per step, sessions whose statement runs or waits; NaN if unknown or if most were hidden."""
    active = inputs.samples.steps(host, "db.sessions_active")
    hidden = measured_or_zero(inputs.samples.steps(host, "db.sessions_hidden"))
    return np.where(hidden > active, np.nan, active)


def largest_lock(inputs: Inputs, host: str) -> str:
    """The kind of lock that most sessions wait for; "" if no session waits for a lock.

    The kind ``transactionid`` is a row that another transaction changed.
    """
    waits = {
        key.instance.removeprefix(LOCK): inputs.samples.mean(*key) or 0.0
        for key in inputs.samples.keys("db.sessions_waiting")
        if key.host == host and key.instance.startswith(LOCK)
    }
    return max(waits, key=waits.__getitem__, default="")


def held_for_disks(inputs: Inputs, host: str) -> Floats:
    """Per step, the share of working sessions that wait for a disk; NaN without working sessions.

    Sessions that wait for a lock are left out; sessions that hold a lock are included.
    """
    waits = _sessions(inputs, host, (*LOG_WAITS, *DATA_WAITS, *TEMPORARY_WAITS))
    locked = measured_or_zero(inputs.samples.steps(host, "db.lock_waiters"))
    rest = sessions_at_work(inputs, [host]) - locked
    known = np.isfinite(rest) & (rest > 0)
    return np.minimum(1.0, np.divide(waits, rest, out=np.full_like(rest, np.nan), where=known))


def waiting_sessions(inputs: Inputs, roles: Iterable[DiskRole]) -> Floats:
    """Per step, sessions that waited for a device with these roles; NaN if no database was read.

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
