"""Words the verdict in one or two plain sentences, and the experiment that would decide an unclear one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pinchpoint.analysis.capacity import Demand
from pinchpoint.analysis.flows import Flow, only_probes
from pinchpoint.analysis.gates import Gate
from pinchpoint.analysis.resources.base import Suspicion
from pinchpoint.analysis.resources.cpu import other_processes, unwatched
from pinchpoint.analysis.resources.kinds import KINDS, kind_of, resource_name
from pinchpoint.analysis.verdict import Bottleneck
from pinchpoint.base import units
from pinchpoint.base.wording import Summary, bare, capitalised, listed

LONGER = "Measure for at least a minute at the same load."


def bottleneck_words(suspicion: Suspicion, runner_up: Suspicion | None, *, in_bursts: bool) -> Summary:
    """The bottleneck, the figure that shows it, and the runner-up if saturated."""
    when = " in the bursts" if in_bursts else ""
    also = "" if runner_up is None else f"Also saturated: {bare(resource_name(runner_up))}."
    return Summary(f"{bare(resource_name(suspicion))}.", label=f"Bottleneck{when}").then(
        f"{capitalised(kind_of(suspicion).proof(suspicion, suspicion.found))}.", also
    )


def invalid_words(gates: Sequence[Gate]) -> Summary:
    """Why a run is no valid evidence, in words."""
    why = gates[0].fact.fact
    if gates[0].contention is not None:
        return Summary(f"{gates[0].contention.words()}.", f"{capitalised(why)}.", "Invalid run")
    return Summary(f"{why}.", label="Invalid run")


def not_reached_words(rates: Mapping[str, float], most_used: Demand | None) -> Summary:
    """The first sentences if no limit was reached: the served rates, and the highest utilisation."""
    served = listed([f"{units.per_second(rate)} of {name}" for name, rate in rates.items()])
    higher = "The farm's limit is higher: raise the load until throughput no longer rises."
    summary = Summary(f"the farm served {served}.", higher, "No limit reached")
    if most_used is None:
        return summary
    name = bare(KINDS[most_used.resource.type].name(most_used.resource, most_used.found))
    return summary.then(f"Highest utilisation: {name}, {units.percent(most_used.use)}.")


def inconclusive_words(why: str, candidates: Sequence[Bottleneck]) -> Summary:
    """Why no resource can be named, with the candidates, in words."""
    named = listed([bare(KINDS[one.resource].place(one)) for one in candidates])
    return Summary(f"{why}.", f"Candidates: {named}." if named else "", "Inconclusive")


def experiment(flows: Sequence[Flow], suspicions: Sequence[Suspicion]) -> str:
    """The one experiment that would decide most, in words."""
    if suspicions:
        return _of_suspects(suspicions)
    if only_probes(flows):
        folders = listed([f"probe-{flow.load.scenario}" for flow in flows])
        return (
            f"Read what the probes measured (`pinchpoint report` of {folders} in the run's folder). To find "
            "the farm's bottleneck, add a scenario of the application to the plan."
        )
    native = next((flow for flow in flows if flow.load.native), None)
    if native is not None:
        return (
            f"Measure the farm's servers while {native.load.scenario} goes on (collect, under tiers): "
            "the processors of those that crawl and index, the disks of the index, of the crawl database and "
            "of its log."
        )
    closed = next((flow for flow in flows if flow.pressed and not flow.missed and flow.load.users), None)
    if closed is not None:
        users = closed.load.users or 0
        return (
            f"Double the users of {closed.load.scenario} ({users:g} to {2 * users:g}): if throughput rises, "
            "the farm's limit was not reached; if only the times rise, a lock, a pool or a dependency "
            "that is not measured limits it."
        )
    slow = next((flow for flow in flows if flow.pressed), None)
    if slow is not None:
        return (
            f"Run {slow.load.scenario} alone, and again at half its load: if its times stay the same, "
            "they are its own; if they fall, a resource that is not measured is saturated."
        )
    return LONGER


def _of_suspects(suspicions: Sequence[Suspicion]) -> str:
    """The experiment that separates two suspects, or one suspect from chance."""
    first, relief = suspicions[0], kind_of(suspicions[0]).relief(suspicions[0].resource)
    if first.not_waited_for and len(suspicions) == 1:
        return f"{capitalised(relief)} and repeat: if throughput rises, {resource_name(first)} was the limit."
    if other_processes(first.resource, first.found) is not None:
        host, unseen = first.resource.hosts[0], unwatched(first)
        if unseen:
            return f"Watch the processes of {listed(list(unseen))} on {host}, and run the same plan again."
        return f"End the other processes on {host}, and run the same plan again."
    if len(suspicions) > 1:
        return (
            f"Relieve {resource_name(first)} alone ({relief}) and repeat: if throughput rises, "
            f"that was the limit; if it stays, it is {resource_name(suspicions[1])}."
        )
    return f"{LONGER} If the answer still varies, {relief} and see whether throughput rises."
