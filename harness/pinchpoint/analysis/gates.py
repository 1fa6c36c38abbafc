"""Checks whether a run is valid evidence (step 0): no fault of the load generator or the recorder.

An error of the farm does not invalidate the run: the operation is left out, or the error is the finding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from pinchpoint.analysis.contention import Contention, find_contention
from pinchpoint.analysis.failing import WAITS_BY_ITSELF, sessions, unanswered
from pinchpoint.analysis.flows import Flow, Flows
from pinchpoint.analysis.resources.base import compared
from pinchpoint.analysis.thresholds import (
    CLIENT_TIME_S,
    GENERATOR_CPU,
    GENERATOR_CPU_TIME,
    LITTLE,
    RECONNECT_S,
    SEND_LAG_S,
    SEND_LAG_SHARE,
    STARTED,
)
from pinchpoint.analysis.verdict import Fact
from pinchpoint.base import units
from pinchpoint.data.inputs import Inputs
from pinchpoint.data.series import Floats
from pinchpoint.store.schema import SEND

RECORDED = "generator.recorder_ok"


@dataclass(frozen=True, slots=True)
class Gate:
    """One condition of valid evidence, and whether the run meets it.

    Attributes:
        host: name of the load worker; "" for all load workers.
        fact: the measured fact; if the gate failed, what is wrong.
        remedy: what to do if the gate failed.
        held: whether the gate passed.
        excusable: whether a saturated farm can explain a failed gate, so that the run stays valid.
        contention: the other processes that took the CPU, if they explain the failed gate; None otherwise.
        blames: words about the load generator's fault, used if nothing else explains the failed gate.
    """

    host: str
    fact: Fact
    remedy: str
    held: bool = False
    excusable: bool = False
    contention: Contention | None = None
    blames: str = ""


def check_gates(inputs: Inputs, flows: Flows) -> tuple[Gate, ...]:
    """All gates, the recorder's first; a gate without measurements is left out.

    If operations came late though no core of a load worker was saturated, and other processes took the CPU,
    the other processes are the reason and not the load generator.
    """
    own = [*_recorder(inputs), *_generator_cpu(inputs)]
    late = [*_send_lag(inputs, flows)]
    late += [gate for flow in flows for gate in (*_little(inputs, flow), *_started(flow))]
    if all(gate.held for gate in own) and not all(gate.held for gate in late):
        contention = find_contention(inputs)
        if contention is not None and contention.delays:
            late = [
                gate if gate.held else replace(gate, remedy=contention.remedy(), contention=contention)
                for gate in late
            ]
    return (*own, *(gate if gate.contention else _blamed(gate) for gate in late))


def _blamed(gate: Gate) -> Gate:
    return replace(gate, fact=replace(gate.fact, fact=f"{gate.fact.fact}{gate.blames}"))


def _recorder(inputs: Inputs) -> Iterator[Gate]:
    remedy = "read why in the run's events"
    for event in inputs.events:
        if event.get("event") == "recorder_failed":
            why = event.get("why") or "no reason was recorded"
            worker = str(event.get("worker") or "")
            text = f"the recorder failed: {why}"
            yield Gate(worker, Fact(text, RECORDED, 0.0, worker), remedy)
    for key in inputs.samples.keys(RECORDED):
        mean = inputs.samples.mean(*key)
        if mean is None:
            continue
        held = mean >= 1
        text = f"the recorder of {key.host} {'recorded' if held else 'did not record'} all of the time"
        yield Gate(key.host, Fact(text, key.metric, mean, key.host), remedy, held)


def _generator_cpu(inputs: Inputs) -> Iterator[Gate]:
    """Gates of load workers' cores: a core may be saturated for a tenth of the time, bursts included.

    The CPU use of workers pinned to the same core is added up. The use of a worker whose control group allows
    less than a core is compared with the control group's quota.
    """
    pinned = {worker.name: worker.cores for worker in inputs.generators if len(worker.cores) == 1}
    sharing: dict[tuple[int, ...] | str, list[str]] = {}
    for key in inputs.samples.keys("generator.cpu_ratio"):
        sharing.setdefault(pinned.get(key.host, key.host), []).append(key.host)
    for names in sharing.values():
        used = [_of_allowed(inputs, name) for name in names]
        values = np.sum([np.nan_to_num(one) for one in used], axis=0)[np.any(np.isfinite(used), axis=0)]
        if not len(values):
            continue
        full, mean = float((values >= GENERATOR_CPU.value).mean()), float(values.mean())
        held = full <= GENERATOR_CPU_TIME.value
        text = f"the load generator ({', '.join(names)}) used {units.percent(mean)} of its core"
        if not held:
            limit = units.percent(GENERATOR_CPU.value)
            text += f", and {limit} or more of it for {units.percent(full)} of the time"
        remedy = "give the load generator more cores or workers, or lower the load"
        fact = compared(text, "generator.cpu_ratio", mean, (names[0], ""), "context", GENERATOR_CPU)
        rule = f"{GENERATOR_CPU.says}, {GENERATOR_CPU_TIME.says}"
        yield Gate(names[0], replace(fact, rule=rule), remedy, held)


def _of_allowed(inputs: Inputs, worker: str) -> Floats:
    """CPU use of a load worker as a share of the one core it may use, or of its control group's quota."""
    used, allowed = (
        inputs.samples.steps(worker, f"generator.{name}") for name in ("cpu_ratio", "allowed_cores")
    )
    return used / np.fmin(1.0, np.where(np.isfinite(allowed), allowed, 1.0))


def _send_lag(inputs: Inputs, flows: Flows) -> Iterator[Gate]:
    """Gates of scheduled scenarios: no operation may be sent later than intended while a session is free."""
    for flow in (flow for flow in flows if flow.load.scheduled):
        operations = inputs.traffic.of(flow.load.scenario)
        response, lag = operations.whole().response(), operations.operations(SEND).service()
        if response is None or lag is None:
            continue
        limit = max(SEND_LAG_S.value, SEND_LAG_SHARE.value * response.p99_s)
        text = f"operations of {flow.load.scenario} were sent {units.seconds(lag.p99_s)} late (p99)"
        where = ("", flow.load.scenario, "context", limit, SEND_LAG_S.source, SEND_LAG_S.says)
        fact = Fact(text, "generator.send_lag_s", lag.p99_s, *where)
        remedy = "give the load generator more cores or workers, or lower the load"
        yield Gate("", fact, remedy, lag.p99_s <= limit)


def _little(inputs: Inputs, flow: Flow) -> Iterator[Gate]:
    """The gate of closed load by Little's law: users = throughput x (service time + think time).

    The pauses of a replay are part of the think time. Operations that straddle the ends of the window widen
    the tolerance by the longest service time ÷ the window, because a stall of the farm delays all users at
    once. The client's own work between two operations also widens the tolerance; it matters if operations
    take about a millisecond. After a failure a session may wait before it connects again, so each failure
    explains one such pause. If much is missing, the operations in flight at the end are added, because a farm
    that no longer answers also occupies users. The sessions of a crawl wait for the crawl's frontier, and the
    sessions of a probe for each other and between repetitions, without an operation in flight: only an excess
    is an error there. The users of a locustfile wait, and work in parallel, as the file says, so there is no
    gate for them.
    """
    users = sessions(inputs, flow)
    if (
        flow.load.scheduled
        or flow.load.use.endswith(".py")
        or not users
        or flow.service is None
        or inputs.window.seconds == 0
    ):
        return
    rate = flow.finished / inputs.window.seconds
    accounted = rate * (flow.service.mean_s + flow.think_s)
    gap = (users - accounted) / users
    again = flow.failures * RECONNECT_S.value / (users * inputs.window.seconds)
    if gap > 0 and (flow.load.use in WAITS_BY_ITSELF or again >= gap):
        return
    if gap > LITTLE.value:
        accounted += unanswered(inputs, flow.load.scenario)[1] / inputs.window.seconds
        gap = (users - accounted) / users
    edge = flow.service.longest_s / inputs.window.seconds + _users_left(inputs, flow)
    client = rate * CLIENT_TIME_S.value / users
    held = -(LITTLE.value + edge) <= gap <= max(LITTLE.value + edge + again, client)
    text = (
        f"{flow.load.scenario}: response and think time explain {units.count(accounted)} of "
        f"{units.count(users)} {'user' if users == 1 else 'users'} (Little's law)"
    )
    fact = compared(text, "operations.service", gap, ("", flow.load.scenario), "context", LITTLE)
    remedy = "give the load generator more cores, or fewer users per worker"
    blames = "" if held else ": the load generator was delayed"
    yield Gate("", fact, remedy, held, blames=blames)


def _users_left(inputs: Inputs, flow: Flow) -> float:
    """The extra tolerance if users ended within the window, because users are counted once a step; else 0."""
    for key in inputs.samples.keys("generator.users"):
        counts = inputs.samples.steps(*key)
        counts = counts[np.isfinite(counts)]
        if key.instance == flow.load.scenario and len(counts) and counts.max() > counts.min():
            return inputs.window.step_s / inputs.window.seconds
    return 0.0


def _started(flow: Flow) -> Iterator[Gate]:
    if flow.started_ratio is None:
        return
    held = flow.started_ratio >= STARTED.value
    only = "" if held else "only "
    share = units.percent(flow.started_ratio)
    text = f"{only}{share} of the scheduled operations of {flow.load.scenario} were started"
    fact = compared(
        text, "generator.started_per_s", flow.started_ratio, ("", flow.load.scenario), "context", STARTED
    )
    yield Gate("", fact, "allow more sessions, or give the load generator more cores", held, excusable=True)
