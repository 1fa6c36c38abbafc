"""Words the verdict of a recording: its summary, its experiment, and the states of resources."""

from __future__ import annotations

from collections.abc import Sequence

from pinchpoint.analysis.recordings.measures import RecordedResource
from pinchpoint.analysis.recordings.outcome import LEAST_S, RecordingConclusion
from pinchpoint.base import units
from pinchpoint.base.wording import Summary, capitalised, listed
from pinchpoint.data.inputs import utc
from pinchpoint.data.timeaxis import zone_words

_STATES = {
    "cpu": "at least {limit} busy",
    "cpu_thread": "at least {limit} busy",
    "disk_cap": "at {limit} or more of its limit",
    "network": "at {limit} or more of its speed",
}
_MOST_MISSING = 4
_NEARLY_ALL = 0.995
"""A resource at its limit for this share of a recording counts as at its limit all the time."""


def summary(
    conclusion: RecordingConclusion, resources: Sequence[RecordedResource], crawl: str, offset_s: int
) -> Summary:
    """The outcome of a recording in words, with its figures.

    ``crawl`` is a sentence about the source at which most requests of a crawl are in flight, or "".
    ``offset_s`` is the offset of local time from UTC in seconds.
    """
    if conclusion.too_short is not None:
        recorded = units.seconds(conclusion.too_short)
        text = f"only {recorded} were recorded, at least {LEAST_S:.0f} s are needed."
        names = [f"{one.name} ({one.saturated[0].words})" for one in conclusion.others]
        limits = f"At its limit in that time: {listed(names)}." if names else ""
        return Summary(text, limits, _INCONCLUSIVE)
    if conclusion.named is not None:
        return _bottleneck(conclusion, conclusion.named, offset_s)
    if conclusion.outcome == "not_reached":
        return _not_reached(resources)
    if any(one.saturated for one in conclusion.others):
        return _over_limit([one for one in conclusion.others if one.saturated], offset_s)
    if not any(one.measures for one in resources):
        return _nothing_measured(crawl)
    return _inconclusive(conclusion).then(_not_measured(conclusion))


_INCONCLUSIVE = "Inconclusive"


def _bottleneck(conclusion: RecordingConclusion, resource: RecordedResource, offset_s: int) -> Summary:
    others = (
        f"At other times {each.name} was {saturated_words(each, offset_s)}." for each in conclusion.others
    )
    return Summary(f"{resource.name}.", label="Bottleneck").then(
        f"This resource was {saturated_words(resource, offset_s)}.",
        *(f"Meanwhile {each}." for each in conclusion.symptoms[:2]),
        *others,
    )


def _nothing_measured(crawl: str) -> Summary:
    if not crawl:
        return Summary("no CPU, memory, disk or network was recorded.", label=_INCONCLUSIVE)
    return Summary(
        f"The crawl waits for its source: {crawl}.",
        "If that source is outside of the farm, it limits this crawl. No CPU, memory, disk or network was "
        "recorded.",
    )


def _over_limit(resources: Sequence[RecordedResource], offset_s: int) -> Summary:
    """The summary of resources at their limits that work may not have waited for, each with its figures."""
    names = listed([one.name for one in resources])
    if len(resources) == 1:
        text, rest = f"1 resource was over its limit: {names}.", "Whether it slows users"
    else:
        text, rest = (
            f"{len(resources)} resources were over their limits: {names}.",
            "Which of them slows users",
        )
    each = (f"{capitalised(one.name)}: {_with_doubt(one, offset_s)}." for one in resources)
    return Summary(text).then(*each, f"{rest} is not known without response times or waits.")


def _not_reached(resources: Sequence[RecordedResource]) -> Summary:
    result = Summary(
        "CPU, memory, disks and network of every host were recorded and below their limits.",
        label="No limit reached",
    )
    cpus = [one for one in resources if one.resource == "cpu" and one.measures]
    busiest = max(cpus, key=lambda one: one.measures[0].highest, default=None)
    if busiest is None:
        return result
    return result.then(
        f"Highest CPU: {busiest.host}, {units.percent(busiest.measures[0].value)} busy on average."
    )


def _inconclusive(conclusion: RecordingConclusion) -> Summary:
    near = [
        f"{one.name} ({one.measures[0].words})"
        for one in conclusion.others
        if one.measures and not one.missing
    ]
    if near:
        return Summary(
            "no resource was saturated, but not all were clearly below their limits.",
            f"Nearest to their limits: {listed(near)}.",
            _INCONCLUSIVE,
        )
    return Summary("no recorded resource was saturated.", label=_INCONCLUSIVE)


def saturated_words(resource: RecordedResource, offset_s: int) -> str:
    """The state of a resource, its duration, its longest period (in local time), and its mean."""
    if not resource.saturated:
        return "not measured" if not resource.measures else "never saturated"
    first = resource.saturated[0]
    is_share = first.limit.value <= 1 and first.what in ("utilisation", "attribution")
    value = units.percent(first.value) if is_share else units.of_metric(first.metric, first.value)
    state = _state(resource)
    mean = "" if first.words in state else f", mean of the whole recording {value}"
    if first.over_s >= _NEARLY_ALL * first.measured_s:
        return f"{state} for all {units.span(first.measured_s)}{mean}"
    begin, end = (utc(round(at + offset_s)) for at in (first.stretches[0].from_s, first.stretches[0].to_s))
    clock = slice(11, 19 if begin[:16] == end[:16] else 16)  # a stretch within one minute needs its seconds
    until = end[clock] if begin[:10] == end[:10] else f"{end[:10]} {end[clock]}"
    return (
        f"{state} for {units.span(first.over_s)} of {units.span(first.measured_s)}, longest "
        f"{begin[:10]} {begin[clock]} to {until} {zone_words(offset_s)}{mean}"
    )


def experiment(conclusion: RecordingConclusion) -> str | None:
    """The experiment that would decide an inconclusive result; None if there is nothing to decide."""
    if conclusion.outcome == "not_reached":
        return (
            "Run a load in steps (`pinchpoint run`) until throughput stops following it, or record a busier "
            "time."
        )
    if conclusion.too_short is not None:
        return "Record for longer."
    remedies = [one.remedy for one in conclusion.others if one.remedy]
    if not remedies and not any(one.saturated for one in (*conclusion.others, conclusion.named) if one):
        remedies = [one.remedy for one in conclusion.missing if one.remedy]
    if conclusion.named is None and remedies:
        first, *more = list(dict.fromkeys(remedies))[:_MOST_MISSING]
        verb = "record " if first.startswith("record ") else ""
        return f"{capitalised('; '.join([first, *(each.removeprefix(verb) for each in more)]))}."
    load = "run a load in steps and import a recording of it (--into): the steps show what limits throughput."
    one = conclusion.named or next(iter(conclusion.others), None)
    if one is not None and one.resource == "disk":
        return f"Record how long the database waits for the {one.name} (WRITELOG, for example), or {load}"
    return capitalised(load)


def _state(resource: RecordedResource) -> str:
    first = resource.saturated[0]
    limit = first.limit.value
    if resource.kind in _STATES and first.what == "utilisation":
        return _STATES[resource.kind].format(limit=units.percent(limit))
    if first.metric.endswith("latency_s"):
        return f"above {units.seconds(limit)} an I/O"
    if resource.kind == "memory" and first.what == "utilisation":
        return f"below {units.percent(limit)} available memory"
    return f"saturated ({first.words})"


def _with_doubt(resource: RecordedResource, offset_s: int) -> str:
    doubt = f"; but {resource.doubt}" if resource.doubt else ""
    return f"{saturated_words(resource, offset_s)}{doubt}"


def _not_measured(conclusion: RecordingConclusion) -> str:
    names = list(dict.fromkeys(one.name for one in conclusion.missing))
    if not names:
        return ""
    more = [f"{len(names) - _MOST_MISSING} more"] if len(names) > _MOST_MISSING else []
    return f"Not measured: {listed([*names[:_MOST_MISSING], *more])}."
