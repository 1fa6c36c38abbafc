"""Pools that admit requests of clients: connections, worker threads, tickets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from pinchpoint.analysis.flows import Flows, in_flight
from pinchpoint.analysis.resources.base import (
    LimitMode,
    NoSingleCause,
    Resource,
    Resources,
    ShareMeasures,
    Suspicion,
    on_host,
)
from pinchpoint.analysis.resources.dependency import deeper_unseen
from pinchpoint.analysis.resources.gain import advise
from pinchpoint.analysis.resources.shared import Figure, Shared
from pinchpoint.analysis.stores import READS, REQUESTS, TICKETS, WRITES, tasks_held, waiting_for_data
from pinchpoint.analysis.thresholds import CONNECTIONS, MANY_REFUSED, OWN_USE, QUEUED
from pinchpoint.analysis.verdict import Advice, Kind
from pinchpoint.base import units
from pinchpoint.data.inputs import Host, Inputs
from pinchpoint.data.series import Floats, Key

if TYPE_CHECKING:
    from pinchpoint.analysis.advice_inputs import AdviceInputs


class Pool(Shared):
    """A pool of one server: its connections, the threads that accept requests, or the tickets to its engine.

    Operations wait for a thread or a ticket; none is refused one. Such a pool limits only if its holders do
    not wait for something else.
    """

    type = "pool"
    kind = "pool"
    limit_modes: Mapping[Kind, LimitMode] = {"pool": "use"}
    yields = True
    short = "the number of {instance} of {tier}"
    placed = "the {instance} of {host}"
    limit = CONNECTIONS
    called = "the number of {instance}{where}"
    relieved = "allow more of them"
    grows = True

    def discover(self, inputs: Inputs, flows: Flows, disks: Resources) -> Iterator[Resource]:
        """The pools of every server: connections (reported or refused), request threads and tickets.

        For threads and tickets, ``used`` is the share in use, ``witness`` the share of the operations in
        flight that wait for one, and ``own`` the share of the holders that wait for a deeper resource. If
        ``own`` is high, that resource fills the pool.
        """
        for host in inputs.hosts:
            yield from _connections(inputs, flows, host)
            in_use = inputs.samples.steps(host.name, "db.pool.active", REQUESTS)
            if np.isfinite(in_use).any():
                name = f"threads for requests ({REQUESTS})"
                keys = [Key(host.name, f"db.pool.{of}", REQUESTS) for of in ("busy_ratio", "pending")]
                deeper = sum(np.nan_to_num(tasks_held(inputs, host.name, one)) for one in (WRITES, READS))
                yield _waited_for(inputs, flows, host, name, keys, in_use, np.asarray(deeper))
            for instance, name in TICKETS.items():
                in_use = inputs.samples.steps(host.name, "db.tickets_used", instance)
                if np.isfinite(in_use).any():
                    keys = [Key(host.name, f"db.tickets_{of}", instance) for of in ("ratio", "queued")]
                    deeper = np.nan_to_num(waiting_for_data(inputs, host.name))
                    yield _waited_for(inputs, flows, host, name, keys, in_use, deeper)

    def advise(self, basis: AdviceInputs, measures: ShareMeasures) -> Iterator[Advice]:
        """Advice to enlarge the pool."""
        tier = next(iter(basis.first.resource.tiers), "")
        refused, name = units.percent(measures.witness), basis.first.resource.instance
        what = f"Allow {tier} more connections, or share fewer among the clients ({refused} were refused one)"
        if basis.first.resource.views:
            what = f"Allow {tier} more {name} ({refused} of the operations wait for one)"
        why = "how long an operation holds one at higher concurrency was not measured"
        yield advise("pool", tier, what, basis.unknown(why))

    def load_use(self, resource: Resource, measures: ShareMeasures, *, in_steps: bool) -> float | None:
        """Utilisation by the load; None for one load level, because sessions stay open."""
        return measures.used if in_steps else None

    def why_not_named(
        self, suspicion: Suspicion, measures: ShareMeasures, inputs: Inputs
    ) -> NoSingleCause | None:
        """Reasons why a full pool may only be the effect of a deeper resource that was not measured."""
        return deeper_unseen(inputs, suspicion.resource.tiers)

    def figures(self, resource: Resource) -> tuple[Figure, ...]:
        """Figures: share in use, operations that wait or are refused, holders that wait elsewhere."""
        if not resource.views:
            used, refused = (
                "{} of the connections were in use",
                "{} of the operations were refused a connection",
            )
            return (
                Figure(lambda found: found.used, used, "db.connections_ratio", CONNECTIONS, "E1"),
                Figure(lambda found: found.witness, refused, "operations.outcome", MANY_REFUSED, "E4"),
            )
        in_use, queue = resource.views
        return (
            Figure(
                lambda found: found.used,
                f"{{}} of the {resource.instance} were in use",
                in_use.metric,
                CONNECTIONS,
                "E1",
                required=True,
                instance=in_use.instance,
            ),
            Figure(
                lambda found: found.witness,
                "{} of the operations waited for one",
                queue.metric,
                QUEUED,
                "E4",
                required=True,
                instance=queue.instance,
            ),
            Figure(
                lambda found: found.own,
                "{} of those in use were waiting for something else",
                in_use.metric,
                OWN_USE,
                excuses=True,
                instance=in_use.instance,
            ),
        )

    def waited_for(self, resource: Resource, measures: ShareMeasures, flows: Flows) -> bool:
        """Whether connections were full and operations refused; always true for threads and tickets."""
        if resource.views:
            return True
        full = measures.used is None or measures.used >= CONNECTIONS.value
        return full and bool(measures.witness)

    def proof(self, suspicion: Suspicion, measures: ShareMeasures) -> str:
        """Share in use, and share of operations that wait or are refused, in words."""
        missed = f"{units.percent(measures.witness)} of the operations"
        meet = "wait for" if suspicion.resource.views else "are refused"
        if measures.used is None:
            return f"{missed} are refused one"
        of = f"the {suspicion.resource.instance}" if suspicion.resource.views else "the connections"
        return f"{units.percent(measures.used)} of {of} are in use, and {missed} {meet} one"


def _connections(inputs: Inputs, flows: Flows, host: Host) -> Iterator[Resource]:
    """The connections of a database that reported their number, or that refused some."""
    used = inputs.samples.steps(host.name, "db.connections_ratio")
    own = [flow for flow in flows if flow.share(host.tier)]
    finished, refused = sum(flow.finished for flow in own), sum(flow.refused for flow in own)
    if np.isfinite(used).any() or refused:
        ratio = refused / finished if finished else 0.0
        columns = {"used": used, "witness": np.full(inputs.window.steps, ratio)}
        yield on_host(host, "pool", f"pool:{host.name}", "connections", columns)


def _waited_for(
    inputs: Inputs,
    flows: Flows,
    host: Host,
    name: str,
    keys: list[Key],
    in_use: Floats,
    deeper: Floats,
) -> Resource:
    used, queued = (inputs.samples.steps(*key) for key in keys)
    there = in_flight(flows, host.tier)
    waiting = queued / there if there > 0 else np.full_like(queued, np.nan)
    columns = {
        "used": used,
        "witness": np.minimum(1.0, waiting),
        "own": np.minimum(1.0, np.divide(deeper, in_use, out=np.zeros_like(in_use), where=in_use > 0)),
    }
    key = f"pool:{host.name}:{keys[0].metric}:{keys[0].instance}"
    return on_host(host, "pool", key, name, columns, views=tuple(keys))
