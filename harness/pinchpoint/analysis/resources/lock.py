"""Locks of a database: operations that wait for one another's rows and tables."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pinchpoint.analysis.flows import Flow, going_on
from pinchpoint.analysis.resources.base import Least, Resource, on_host
from pinchpoint.analysis.resources.shared import Figure, Shared
from pinchpoint.analysis.sessions import active_sessions, held_for_disks, largest_lock
from pinchpoint.analysis.thresholds import LOCK_WAIT, UTILISATION, WAIT_SHARE
from pinchpoint.base import units
from pinchpoint.data.inputs import Inputs

SOMEBODY = 0.5
"""Mean number of sessions waiting in a second from which somebody waits in most of it."""


class Lock(Shared):
    """The locks of one database."""

    kind = "lock"
    least = Least("witness", LOCK_WAIT)
    called = "a lock{where}"
    shown = "{witness} of the operations in flight wait for each other's locks"
    relieved = "change the same rows in fewer transactions"
    waiting = ("the share of operations that wait for locks", "db.lock_waiters", units.percent)

    def discover(
        self, inputs: Inputs, flows: tuple[Flow, ...], disks: tuple[Resource, ...]
    ) -> Iterator[Resource]:
        """Those of every database that was asked about them."""
        for host in inputs.hosts:
            waiters = inputs.samples.steps(host.name, "db.lock_waiters")
            waiters = np.where(np.isfinite(active_sessions(inputs, host.name)), waiters, np.nan)
            if not np.isfinite(waiters).any():
                continue
            there = going_on(inputs, flows, host.tier)
            columns = {
                "used": np.where(np.isfinite(waiters), waiters >= SOMEBODY, np.nan),
                "witness": np.divide(waiters, there, out=np.zeros_like(waiters), where=there > 0),
                "own": held_for_disks(inputs, host.name),
            }
            yield on_host(host, "lock", f"lock:{host.name}", largest_lock(inputs, host.name), columns)

    def figures(self, resource: Resource) -> tuple[Figure, ...]:
        """How often somebody waits, how many do, and whether those who hold locks wait for a disk."""
        waited = "{} of the operations in flight waited for one, as reported by the database"
        held = "{} of the sessions that wait for no lock (the lock holders among them) wait for a disk"
        often = "sessions waited for a lock {} of the time"
        return (
            Figure(lambda found: found.used, often, "db.lock_waiters", UTILISATION, "E1"),
            Figure(lambda found: found.witness, waited, "db.lock_waiters", LOCK_WAIT, "E4", required=True),
            Figure(lambda found: found.own, held, "db.sessions_active", WAIT_SHARE),
        )
