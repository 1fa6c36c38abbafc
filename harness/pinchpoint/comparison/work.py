"""Computes the requested and completed work of each side, and the maximum throughput of each scenario.

The report shows work before rates, because rates of different work cannot be compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pinchpoint.base import units
from pinchpoint.base.groups import by_key
from pinchpoint.base.objects import JsonObject, object_at
from pinchpoint.comparison.sides import ComparedRun, Side, Sides
from pinchpoint.comparison.statistics import Pair, middle, pair
from pinchpoint.data.operations import NO_ERRORS

KEPT_UP = 0.95
"""A run that does less than this share of the offered load does not keep up, so its rate is its maximum."""


def planned_scenarios(sides: Sides) -> JsonObject:
    """The scenarios of the first run's plan, and the scenarios that only the other side's plan has."""
    base, other = (object_at(side.manifests[0], "plan", "scenarios") for side in sides)
    return {**base, **{name: given for name, given in other.items() if name not in base}}


def is_closed(planned: JsonObject | None) -> bool:
    """Whether a scenario has a closed load of users, so that its throughput is a result, not an input."""
    load = object_at(planned, "load")
    top = load.get("to") or load.get("start") or {}
    return load.get("model", "closed") == "closed" or "users" in {key for key, v in top.items() if v}


def side_kept_up(side: Side, name: str) -> bool | None:
    """Whether all runs of a side kept up with the offered load; None without a schedule of one rate."""
    kept = [kept_up(run, name) for run in side.runs]
    return None if None in kept else all(kept)


def kept_up(run: ComparedRun, name: str) -> bool | None:
    """Whether a run kept up with its offered load; None without a schedule of one rate."""
    load = object_at(run.manifest, "plan", "scenarios", name, "load")
    row = object_at(run.verdict, "scenarios", name)
    rate, done = load.get("rate_per_s"), row.get("throughput_per_s")
    if not rate or done is None:
        return None
    failed = row.get("error_ratio") or 0.0
    return bool(done / (1 - failed if failed < 1 else 1.0) >= KEPT_UP * rate)


SAME_COUNT = 0.01
"""Counts within 1 % of each other are the same work (design value)."""
SAME_SHARE = 0.01
"""Failure shares within one percentage point count as the same (design value)."""


@dataclass(frozen=True, slots=True)
class WorkDone:
    """The work of one side, as medians over its runs; None if a run lacks the work or did not measure it.

    Attributes:
        count: successful documents or operations.
        failures: failed documents or operations.
        skipped: documents of a kind that the crawl does not read.
        dropped: operations that could not start in time.
        failed_ratio: failed ÷ ended operations.
        complete: whether every crawl ended; None for scenarios.
    """

    count: float | None = None
    failures: float | None = None
    skipped: float | None = None
    dropped: float | None = None
    failed_ratio: float | None = None
    complete: bool | None = None


@dataclass(frozen=True, slots=True)
class ComparedWork:
    """The work of one crawl source or scenario on both sides.

    Attributes:
        unlike: how the work differs, one sentence; None if it is the same work.
    """

    about: Literal["source", "scenario"]
    name: str
    base: WorkDone
    other: WorkDone
    unlike: str | None

    @property
    def worse(self) -> bool:
        """Whether more of the work failed or was dropped on the other side, or did not start or end there."""
        if WorkDone() in (self.base, self.other):
            return False  # the work belongs to the plan of one side only
        if (self.base.complete and self.other.complete is False) or (
            self.base.count and not self.other.count
        ):
            return True
        return any(
            (theirs or 0.0) - (ours or 0.0) > SAME_SHARE
            for ours, theirs in (
                (self.base.failed_ratio, self.other.failed_ratio),
                (_share(self.base.dropped, self.base.count), _share(self.other.dropped, self.other.count)),
            )
        )


def work_done(sides: Sides) -> tuple[ComparedWork, ...]:
    """The work of every crawl source and every scenario of either side."""
    return (*_each("source", sides), *_each("scenario", sides))


def _each(about: Literal["source", "scenario"], sides: Sides) -> Iterator[ComparedWork]:
    is_source = about == "source"
    done, unlike = (_source, _unlike_source) if is_source else (_scenario, _unlike_scenario)
    result = [
        [
            {row["source"]: row for row in verdict.get("crawl") or ()}
            if is_source
            else object_at(verdict, "scenarios")
            for verdict in side.verdicts
        ]
        for side in sides
    ]
    for name in dict.fromkeys(name for side in result for run in side for name in run):
        rows = ([run[name] for run in side if name in run] for side in result)
        base, other = (done(each) if each else WorkDone() for each in rows)
        yield ComparedWork(about, name, base, other, unlike(base, other, sides.labels))


def work_differences(value: Iterable[tuple[str, str | None]]) -> dict[str, list[str]]:
    """How work differs -> the names of the sources and scenarios with that difference."""
    return by_key((unlike, name) for name, unlike in value if unlike)


def _source(rows: Sequence[JsonObject]) -> WorkDone:
    count, failures, skipped = (
        middle([row.get(key) for row in rows]) for key in ("count", "failures", "skipped")
    )
    return WorkDone(
        count=count,
        failures=failures,
        skipped=skipped,
        failed_ratio=_share(failures, count),
        complete=all(row.get("complete") for row in rows),
    )


def _scenario(rows: Sequence[JsonObject]) -> WorkDone:
    count, dropped, failed_ratio = (
        middle([row.get(key) for row in rows]) for key in ("count", "dropped", "error_ratio")
    )
    failures = middle([_failed(object_at(row, "outcomes")) for row in rows])
    return WorkDone(count=count, failures=failures, dropped=dropped, failed_ratio=failed_ratio)


def _failed(outcomes: Mapping[str, int]) -> int:
    return sum(count for outcome, count in outcomes.items() if outcome not in NO_ERRORS)


def _share(failures: float | None, count: float | None) -> float | None:
    """Failures ÷ attempts; None if there were no attempts, or if a count is not known."""
    if failures is None or count is None or failures + count == 0:
        return None
    return failures / (failures + count)


def _unlike_source(base: WorkDone, other: WorkDone, labels: tuple[str, str]) -> str | None:
    """How the work of a crawl differs: in counts, in failures, or because a crawl did not end."""
    absent = _absent(base, other, labels)
    if absent:
        return absent
    open_ = [label for label, done in zip(labels, (base, other), strict=True) if not done.complete]
    if open_:
        return f"the crawl did not end in {' and '.join(open_)}"
    parts = [*_failures(base, other, labels)]
    counts = (("documents", base.count, other.count), ("skipped", base.skipped, other.skipped))
    parts += [
        f"{_number(ours)} {what} in {labels[0]}, {_number(theirs)} in {labels[1]}"
        for what, ours, theirs in counts
        if _differ(ours, theirs)
    ]
    return "; ".join(parts) or None


def _unlike_scenario(base: WorkDone, other: WorkDone, labels: tuple[str, str]) -> str | None:
    """How the work of a scenario differs: in failures or dropped operations.

    The number of operations is a result of the run, so a difference in it is not different work.
    """
    absent = _absent(base, other, labels)
    if absent:
        return absent
    parts = [*_failures(base, other, labels), *_idle(base, other, labels)]
    dropped = _share(base.dropped, base.count), _share(other.dropped, other.count)
    if _apart(*dropped):
        parts.append(
            f"{_percent(dropped[0])} not started in time in {labels[0]}, "
            f"{_percent(dropped[1])} in {labels[1]}"
        )
    return "; ".join(parts) or None


def _absent(base: WorkDone, other: WorkDone, labels: tuple[str, str]) -> str | None:
    there = [label for label, done in zip(labels, (base, other), strict=True) if done != WorkDone()]
    return f"only in {' and '.join(there)}" if len(there) < len(labels) else None


def _failures(base: WorkDone, other: WorkDone, labels: tuple[str, str]) -> Iterator[str]:
    if _apart(base.failed_ratio, other.failed_ratio):
        words = (
            f"{_percent(done.failed_ratio)} failed in {label}"
            for label, done in zip(labels, (base, other), strict=True)
        )
        yield ", ".join(words)


def _idle(base: WorkDone, other: WorkDone, labels: tuple[str, str]) -> Iterator[str]:
    """A side without a single success or failure, while the other side did something."""
    for label, done, beside in zip(labels, (base, other), (other, base), strict=True):
        if beside.count and not done.count and not done.failures:
            yield f"no operation succeeded in {label}"


def _apart(base: float | None, other: float | None) -> bool:
    return abs((base or 0.0) - (other or 0.0)) > SAME_SHARE


def _differ(base: float | None, other: float | None) -> bool:
    if base is None or other is None:
        return base is not other
    return abs(base - other) > SAME_COUNT * max(base, other)


def _number(value: float | None) -> str:
    return units.NOT_MEASURED if value is None else f"{value:,.0f}"


def _percent(value: float | None) -> str:
    return units.percent(value or 0.0)


How = Literal["reached", "at_least", "unknown"]
_AT_ITS_END = ("cpu", "cpu_thread", "disk_cap", "disk_device", "network", "pool", "disk_burst_exhausted")
"""Kinds of bottleneck that are saturated, so that more load brings no more throughput."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """The maximum throughput of one scenario on each side.

    Attributes:
        scenario: name of the scenario.
        pair: operations per second; the highest throughput of each run, with a ratio only if both sides
            reached their maximum.
        base_how: ``reached`` if more load would bring no more; ``at_least`` if more is possible; ``unknown``
            if not measured.
        other_how: the same for the other side.
        kept_up: for (base, other), whether the offered load was done; None for users, who have no offered
            rate.
    """

    scenario: str
    pair: Pair
    base_how: How
    other_how: How
    kept_up: tuple[bool | None, bool | None]


def capacities(sides: Sides) -> Iterator[Capacity]:
    """The capacity of each scenario that is planned on a side."""
    planned = planned_scenarios(sides)
    for name in planned:
        result = [[_most_of(run, name, planned[name]) for run in side.runs] for side in sides]
        hows = [_worst([how for _, how in side]) for side in result]
        open_ = [label for label, how in zip(sides.labels, hows, strict=True) if how != "reached"]
        unlike = f"the maximum of {' and '.join(open_)} was not reached" if open_ else None
        values = [[value for value, _ in side] for side in result]
        yield Capacity(
            scenario=name,
            pair=pair(values[0], values[1], sides.labels, unlike),
            base_how=hows[0],
            other_how=hows[1],
            kept_up=(side_kept_up(sides.base, name), side_kept_up(sides.other, name)),
        )


def _most_of(run: ComparedRun, name: str, planned: JsonObject) -> tuple[float | None, How]:
    """(the highest throughput of a run in a scenario, whether that was its maximum)."""
    row = object_at(run.verdict, "scenarios", name)
    done = row.get("throughput_per_s")
    levels = [one["throughput_per_s"] for one in run.verdict.get("levels") or () if one["scenario"] == name]
    if levels:
        knee = object_at(run.verdict, "knee").get("found")
        return max(levels), "reached" if knee else "at_least"
    if done is None:
        return None, "unknown"
    used_up = object_at(run.verdict, "bottleneck").get("kind") in _AT_ITS_END
    at_end = used_up if is_closed(planned) else kept_up(run, name) is False
    return done, "reached" if at_end else "at_least"


def _worst(hows: Sequence[How]) -> How:
    return next((how for how in ("unknown", "at_least") if how in hows), "reached")


def not_kept_up(value: Sequence[Capacity], sides: Sides) -> Iterator[str]:
    """A sentence for each scenario in which a side did not keep up with the offered load."""
    for one in value:
        behind = [side.label for side, kept in zip(sides, one.kept_up, strict=True) if kept is False]
        if behind:
            yield (
                f"{one.scenario}: {' and '.join(behind)} did not keep up with the offered load, so response "
                "times grew during the run. Compare its capacity instead"
            )
