"""Locks of a database: operations that wait for one another's rows and tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from pinchpoint.analysis.flows import Flows, in_flight
from pinchpoint.analysis.resources.base import (
    ChangeableLimit,
    Context,
    Least,
    LimitMode,
    Resource,
    Resources,
    ShareMeasures,
    Suspicion,
    mean_of,
    on_host,
)
from pinchpoint.analysis.resources.cpu import not_shared_out
from pinchpoint.analysis.resources.dependency import LOCKS
from pinchpoint.analysis.resources.gain import advise
from pinchpoint.analysis.resources.shared import Figure, Shared
from pinchpoint.analysis.sessions import active_sessions, held_for_disks, largest_lock
from pinchpoint.analysis.stages import Rows
from pinchpoint.analysis.thresholds import LOCK_WAIT, UTILISATION, WAIT_SHARE, at_least
from pinchpoint.analysis.verdict import Advice, Kind
from pinchpoint.base import units
from pinchpoint.data.inputs import Inputs

if TYPE_CHECKING:
    from pinchpoint.analysis.advice_inputs import AdviceInputs


ONE_SESSION = 0.5
"""Mean number of waiting sessions in a second from which sessions wait in most of that second."""


class Lock(Shared):
    """The locks of one database."""

    type = "lock"
    kind = "lock"
    limit_modes: Mapping[Kind, LimitMode] = {"lock": "time"}
    yields = True
    short = "a lock of {tier}"
    placed = "locks of {tier} ({instance})"
    least = Least("witness", LOCK_WAIT)
    called = "a lock{where}"
    shown = "{witness} of the operations in flight wait for each other's locks"
    relieved = "change the same rows in fewer transactions"
    waiting = ("the share of operations that wait for locks", "db.lock_waiters", units.percent)

    def discover(self, inputs: Inputs, flows: Flows, disks: Resources) -> Iterator[Resource]:
        """The lock of every database that reported its lock waits."""
        for host in inputs.hosts:
            waiters = inputs.samples.steps(host.name, "db.lock_waiters")
            waiters = np.where(np.isfinite(active_sessions(inputs, host.name)), waiters, np.nan)
            if not np.isfinite(waiters).any():
                continue
            there = in_flight(flows, host.tier)
            columns = {
                "used": np.where(np.isfinite(waiters), waiters >= ONE_SESSION, np.nan),
                "witness": waiters / there if there > 0 else np.zeros_like(waiters),
                "own": held_for_disks(inputs, host.name),
            }
            yield on_host(host, "lock", f"lock:{host.name}", largest_lock(inputs, host.name), columns)

    def held(
        self, resource: Resource, measures: ShareMeasures, rows: Rows, flows: Flows
    ) -> ChangeableLimit | None:
        """The operations in flight that wait for a lock, as the setting ``TIER.lock``."""
        tier = resource.tiers[0]
        share = min(1.0, measures.witness or 0.0)
        waiting = {flow.load.scenario: share * flow.going_on(tier) for flow in flows}
        return ChangeableLimit(f"{tier}.lock", None, None, waiting, "locks are held no longer than now")

    def advise(self, basis: AdviceInputs, measures: ShareMeasures) -> Iterator[Advice]:
        """Advice to shorten the wait for locks, with its gain."""
        tier, kind = basis.first.resource.tiers[0], basis.first.resource.instance
        what = f"Shorten the transactions of {tier} that change the same rows, or spread them over more rows"
        what = f"{what} (they wait for {kind})" if kind else what
        yield advise("lock", tier, what, basis.asked_for(f"{tier}.lock=0ms"))

    def unseen(self, resources: Iterable[Resource], flows: Flows) -> bool:
        """Whether sessions are active in a database whose locks were not measured."""
        known = {tier for one in resources if one.type == self.type for tier in one.tiers}
        return any(in_flight(flows, tier) >= 1 for tier in LOCKS if tier not in known)

    def confidence_limits(
        self, suspicion: Suspicion, measures: ShareMeasures, context: Context
    ) -> Iterator[str]:
        """A sentence if the lock holders wait for a disk."""
        if at_least(measures.own, WAIT_SHARE):
            share = units.percent(measures.own)
            yield (
                f"{share} of the sessions that do not wait for a lock, lock holders included, wait for a disk"
            )

    def beside(self, resource: Resource, first: Suspicion, context: Context) -> Iterator[str]:
        """A sentence if operations wait for the lock while unknown work keeps the CPU of the host busy."""
        here = resource.machine == first.resource.machine and not_shared_out(first.resource)
        if not here or self.clearly_unsuspected(resource, context.rows, context.flows):
            return
        if self.judge(resource, self.measure(resource, context.rows), context.flows) is not None:
            share = units.percent(mean_of(resource, "witness", context.rows))
            yield (
                f"{share} of the operations in flight wait for each other's locks, and which work keeps "
                "these cores busy was not measured"
            )

    def figures(self, resource: Resource) -> tuple[Figure, ...]:
        """Figures: time with waiting sessions, operations that wait, lock holders that wait for a disk."""
        waited = "{} of the operations in flight waited for a lock, as reported by the database"
        held = "{} of the sessions that do not wait for a lock, lock holders included, wait for a disk"
        often = "sessions waited for a lock {} of the time"
        return (
            Figure(lambda found: found.used, often, "db.lock_waiters", UTILISATION, "E1"),
            Figure(lambda found: found.witness, waited, "db.lock_waiters", LOCK_WAIT, "E4", required=True),
            Figure(lambda found: found.own, held, "db.sessions_active", WAIT_SHARE),
        )
