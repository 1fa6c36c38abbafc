"""Computes the outcome of a recording from its resources: bottleneck, confidence, missing measurements.

| outcome | when |
| --- | --- |
| `bottleneck` | one resource was saturated and nothing speaks against it, or several took turns |
| `not_reached` | CPU, memory, disks and network of every host were measured and had room |
| `inconclusive` | otherwise: with candidates, missing measurements, and the experiment that decides |

| confidence | when |
| --- | --- |
| medium | two measures agree; its host's CPU, memory, disks were measured; no other limit was near |
| low | one of these conditions is not met |

High confidence needs operations at several levels of load, which a recording does not have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pinchpoint.analysis.recordings.measures import RecordedResource, overlap_s
from pinchpoint.analysis.recordings.memory import pages_to
from pinchpoint.analysis.recordings.symptoms import symptoms_during
from pinchpoint.analysis.verdict import Confidence, Outcome
from pinchpoint.data.inputs import Inputs

NO_OPERATIONS = "no operation was recorded: throughput and waits are not known"
LEAST_S = 60.0
"""Shortest recording that is judged, in seconds: a shorter one shows a moment, not a load."""
_READ_LATE = 0.05
"""Tolerance of the length: a recorder that waits a second between readings takes 59 a minute."""
_TOGETHER = 0.5
"""Least share of the longer one of two times at the limit in which both were at their limits."""
_TURNS = 0.2
"""Resources take turns if they are saturated together for less than this share of the shorter time."""
_HARDWARE = ("cpu", "thread", "memory", "disk", "network")
_NEEDED = ("cpu", "memory", "disk", "network")
_MOST_CANDIDATES = 3


@dataclass(frozen=True, slots=True)
class RecordingConclusion:
    """The outcome of a recording, with its reasons.

    Attributes:
        outcome: the outcome.
        named: the bottleneck; None without one.
        others: the resources that took turns with the bottleneck; without a bottleneck the candidates.
        confidence: confidence in the bottleneck; None without one.
        limits: the reasons why the confidence is not higher.
        symptoms: finished work that was less or slower while the bottleneck was saturated, in words.
        missing: the resources that were not measured.
        too_short: length of the recording in seconds if it is too short; else None.
    """

    outcome: Outcome
    named: RecordedResource | None = None
    others: tuple[RecordedResource, ...] = ()
    confidence: Confidence | None = None
    limits: tuple[str, ...] = ()
    symptoms: tuple[str, ...] = ()
    missing: tuple[RecordedResource, ...] = ()
    too_short: float | None = None


def conclude_recording(
    inputs: Inputs, resources: Sequence[RecordedResource], recorded_s: float
) -> RecordingConclusion:
    """The outcome of a recording, with its reasons."""
    missing = tuple(one for one in resources if one.missing)
    saturated = sorted((one for one in resources if one.saturated), key=lambda one: -one.over_s)
    if recorded_s < LEAST_S * (1 - _READ_LATE):
        candidates = tuple(saturated[:_MOST_CANDIDATES])
        return RecordingConclusion("inconclusive", others=candidates, too_short=recorded_s, missing=missing)
    collapses = [one for one in saturated if not one.recorded and not one.doubt]
    plain = _causes(
        inputs, [one for one in saturated if not one.doubt or _is_waited_for(one, collapses)], resources
    )
    if plain and all(_take_turns(plain[0], other) for other in plain[1:]):
        named, *others = plain
        symptoms = tuple(each.words for each in symptoms_during(inputs, named.stretches))
        confidence, limits = _confidence(named, others, resources, symptoms)
        return RecordingConclusion("bottleneck", named, tuple(others), confidence, limits, symptoms, missing)
    suspects = plain if len(plain) > 1 else saturated
    known = [one for one in suspects if one.recorded]
    guessed = [one for one in suspects if one not in known]
    near = [one for one in resources if not one.saturated and _is_near(one)] if suspects else []
    candidates = (*known, *sorted(near, key=_highest, reverse=True), *guessed)
    if candidates:
        return RecordingConclusion("inconclusive", others=candidates[:_MOST_CANDIDATES], missing=missing)
    if _all_had_room(inputs, resources):
        return RecordingConclusion("not_reached", missing=missing)
    open_ = [one for one in resources if one.measures and one.has_room is not True and not one.missing]
    open_.sort(key=_highest, reverse=True)
    unknown = open_ or missing
    return RecordingConclusion("inconclusive", others=tuple(unknown[:_MOST_CANDIDATES]), missing=missing)


def _causes(
    inputs: Inputs, saturated: Sequence[RecordedResource], resources: Sequence[RecordedResource]
) -> list[RecordedResource]:
    """The saturated resources, without waits that saturated hardware explains.

    Locks, pools and other systems are left out if saturated hardware explains the waits. A disk whose I/O is
    mostly paging is left out, because the memory is the cause. At times without saturated hardware, locks,
    pools and other systems are causes only if all hardware of the host was measured and had room.
    """
    hardware = [one for one in saturated if one.resource in _HARDWARE]
    short = [one for one in hardware if one.resource == "memory"]
    hardware = [one for one in hardware if not any(pages_to(inputs, memory, one) for memory in short)]
    upper = [one for one in saturated if one.resource not in _HARDWARE]
    upper = [one for one in upper if all(_take_turns(one, other) for other in hardware)]
    causes = [one for one in upper if _deeper_has_room(one, resources)]
    known = [*hardware, *(one for one in causes if one.recorded)]
    causes = [one for one in causes if one.recorded or not any(_explains(other, one) for other in known)]
    return sorted((*hardware, *causes), key=lambda one: -one.over_s)


def _explains(resource: RecordedResource, collapse: RecordedResource) -> bool:
    """Whether a resource on the same host was saturated during a collapse of work, and so explains it."""
    return resource.host == collapse.host and overlap_s(resource.stretches, collapse.stretches) > 0


def _is_waited_for(resource: RecordedResource, collapses: Sequence[RecordedResource]) -> bool:
    """Whether work collapsed while sessions waited for a lock or dependency, and hardly at other times.

    The collapse removes the doubt about such a resource.
    """
    if resource.resource not in ("dependency", "lock") or not resource.recorded:
        return False
    return any(
        other.host == resource.host
        and overlap_s(resource.stretches, other.stretches) >= _TOGETHER * max(resource.over_s, other.over_s)
        for other in collapses
    )


def _deeper_has_room(resource: RecordedResource, resources: Sequence[RecordedResource]) -> bool:
    deeper = [
        other for other in resources if other.host == resource.host and other.resource in ("cpu", "disk")
    ]
    had_room = all(other.has_room or (other.saturated and _take_turns(resource, other)) for other in deeper)
    return {other.resource for other in deeper} == {"cpu", "disk"} and had_room


def _take_turns(resource: RecordedResource, other: RecordedResource) -> bool:
    shorter = min(sum(each.seconds for each in which.stretches) for which in (resource, other))
    return overlap_s(resource.stretches, other.stretches) < _TURNS * shorter


def _confidence(
    named: RecordedResource,
    others: Sequence[RecordedResource],
    resources: Sequence[RecordedResource],
    symptoms: Sequence[str],
) -> tuple[Confidence, tuple[str, ...]]:
    """(confidence, reasons why it is not higher), by the module's table."""
    agree = {one.what for one in named.saturated} | ({"symptom"} if symptoms else set())
    limits = [] if len(agree) > 1 else ["only one measure of it was at its limit"]
    own = [one for one in resources if one.host == named.host and one.resource in ("cpu", "memory", "disk")]
    others_cpu = [one for one in resources if one.host != named.host and one.resource == "cpu"]
    limits += [one.missing for one in (*own, *others_cpu) if one.missing]
    # Finished work that collapsed is an effect of the bottleneck and no second resource near its limit.
    near = [
        one for one in resources if one is not named and one.recorded and (one.saturated or _is_near(one))
    ]
    limits += [f"{one.name} was near its limit as well" for one in near]
    limits += [f"{one.name} was saturated at other times" for one in others if one not in near]
    return ("low" if limits else "medium"), (*dict.fromkeys(limits), NO_OPERATIONS)


def _is_near(resource: RecordedResource) -> bool:
    used = [each for each in resource.measures if each.what == "utilisation"]
    return any(each.limit.value <= 1 and not each.has_room for each in used) and not resource.has_room


def _highest(resource: RecordedResource) -> float:
    return resource.measures[0].highest


def _all_had_room(inputs: Inputs, resources: Sequence[RecordedResource]) -> bool:
    hosts = {host.name for host in inputs.hosts}
    measured = {(one.host, one.resource) for one in resources}
    return (
        bool(hosts)
        and all((host, each) in measured for host in hosts for each in _NEEDED)
        and all(one.has_room is True for one in resources)
    )
