"""Computes the changes between two sides: sources, disks, CPUs, scenarios, bursts, CPU time and costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

from pinchpoint.base import wording
from pinchpoint.base.figures import FIGURES, About, Better
from pinchpoint.base.objects import JsonObject, object_at
from pinchpoint.comparison.costs import Costs
from pinchpoint.comparison.intervals import Key
from pinchpoint.comparison.sides import ComparedRun, HostPair, HostPairs, Sides
from pinchpoint.comparison.statistics import Call, Pair, pair
from pinchpoint.comparison.work import side_kept_up


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgement of a figure's ratio.

    Attributes:
        ci95: the 95 % interval of the ratio; None if not known.
        interval: ``between_runs`` if the interval covers the differences between runs; ``within_run`` if it
            covers only the random variation within the runs; None without an interval.
        why_no_interval: why there is no interval, one sentence; None if there is one.
        declared: whether the figure was selected for judgement.
        margin_ratio: ratios from 1/margin to margin count as no change; None if the figure is not judged.
        floor_ratio: the ratio between runs of the same farm, at least 1; None if not known.
        p: p-value of the hypothesis that the ratio lies within the margin, corrected for the number of judged
            figures.
        call: the judgement in one word; None if the figure is not judged.
        confidence: the confidence of a called change: ``high`` with enough runs on both sides, else
            ``medium``; None without a change.
    """

    ci95: tuple[float, float] | None = None
    interval: Literal["between_runs", "within_run"] | None = None
    why_no_interval: str | None = None
    declared: bool = False
    margin_ratio: float | None = None
    floor_ratio: float | None = None
    p: float | None = None
    call: Call | None = None
    confidence: Literal["high", "medium"] | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """One figure of both sides.

    Attributes:
        about: the kind of thing that the figure describes.
        metric: the name of the figure; its suffix is its unit.
        name: the full name, as ``--metric`` takes it: ``scenario.crawl.throughput_per_s``.
        pair: the values of both sides.
        source: the crawl source; None for other things.
        scenario: the scenario; None for other things.
        tier: the tier of a disk, a CPU or CPU time; None for other things.
        place: the pair of hosts of a disk or CPU; None for other things.
        role: the role of the disk; None for other things.
        per: the unit of work: ``document``, ``commit`` or ``burst``; for a cost the amount, ``100 EUR a
            month``.
        better: the direction that is better; None if neither is (more I/O is not better in itself).
        judged: the judgement of the ratio.
    """

    about: About
    metric: str
    name: str
    pair: Pair
    source: str | None = None
    scenario: str | None = None
    tier: str | None = None
    place: HostPair | None = None
    role: str | None = None
    per: str | None = None
    better: Better | None = None
    judged: Judgement = Judgement()

    def key(self, side: str) -> Key:
        """The key of the figure in the runs of a side (``base`` or ``other``)."""
        # a farm's cost is constant, so its figures vary over time like the throughput
        if self.about == "cost":
            return "scenario", self.scenario, None, None, "throughput_per_s"
        if self.about == "effort":
            return self.about, f"{self.scenario}.{self.tier}", None, None, self.metric
        host = getattr(self.place, side) if self.place else None
        return self.about, self.source or self.scenario or self.tier, host, self.role, self.metric


def changes(sides: Sides, places: HostPairs, costs: Costs | None = None) -> tuple[Change, ...]:
    """Every figure of both sides, in the order sources, disks, CPUs, scenarios, bursts, CPU time, costs."""
    return tuple(
        Change(
            kind.about,
            metric,
            f"{kind.about}.{name}.{metric}",
            rows.pair(key, metric, kind.unlike(rows, key, metric)),
            better=better,
            **where,
        )
        for kind in _kinds(sides, places, costs)
        for rows in (_VerdictRows(sides, kind.read),)
        for key in rows
        for name, where in (kind.whose(rows, key),)
        for metric, better in FIGURES[kind.about].items()
        if kind.has(rows, key, metric)
    )


class _VerdictRows:
    """The rows of one table of the verdicts, for each run, by the thing that a row describes."""

    def __init__(
        self, sides: Sides, read: Callable[[ComparedRun, str], Iterator[tuple[Any, JsonObject]]]
    ) -> None:
        self._labels = sides.labels
        self._base, self._other = ([dict(read(run, name)) for run in side.runs] for name, side in sides.named)

    def __iter__(self) -> Iterator[Any]:
        return iter(dict.fromkeys(key for rows in (*self._base, *self._other) for key in rows))

    def pair(self, key: Any, metric: str, unlike: str | None = None) -> Pair:
        base, other = ([rows.get(key, {}).get(metric) for rows in side] for side in (self._base, self._other))
        return pair(base, other, self._labels, unlike)

    def all(self, key: Any, column: str) -> list[Any]:
        """The values of a column, from every run that has the row."""
        return [rows[key].get(column) for rows in (*self._base, *self._other) if key in rows]

    @property
    def sides(self) -> Iterator[tuple[str, list[dict[Any, JsonObject]]]]:
        """(label, rows of each run) of both sides."""
        return zip(self._labels, (self._base, self._other), strict=True)

    def lacks(self, key: Any, metric: str) -> list[str]:
        """The labels of the sides that have a run with the row but without the figure."""
        return [
            label
            for label, side in self.sides
            if any(key in rows and rows[key].get(metric) is None for rows in side)
        ]

    def unlike(self, key: Any, column: str, what: str) -> str | None:
        """Why the figures of the runs are different quantities, by a column; None if they are the same."""
        kinds = sorted({str(kind) for kind in self.all(key, column)})
        return f"{what} ({' and '.join(kinds)}), so there is no ratio" if len(kinds) > 1 else None


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of thing that has figures.

    Attributes:
        about: the name of the kind.
        read: reads the rows of this kind from a run's verdict: (key, row).
        whose: returns (the key's part of the figure's name, the fields of ``Change`` that identify the
            thing).
        unlike: returns why the values of the sides are different quantities; None if they are the same
            quantity.
        has: returns whether the thing has the metric.
    """

    about: About
    read: Callable[[ComparedRun, str], Iterator[tuple[Any, JsonObject]]]
    whose: Callable[[_VerdictRows, Any], tuple[str, dict[str, Any]]]
    unlike: Callable[[_VerdictRows, Any, str], str | None] = lambda *_: None
    has: Callable[[_VerdictRows, Any, str], bool] = lambda *_: True


def _kinds(sides: Sides, places: HostPairs, costs: Costs | None) -> Iterator[_Kind]:
    """All kinds, in the order of the comparison."""

    def place(row: JsonObject, side: str) -> HostPair:
        return places.of(row["tier"], row["host"], side)

    def of_disk(key: tuple[HostPair, str]) -> tuple[str, dict[str, Any]]:
        there, role = key
        return f"{places.short(there)}.{role}", {"tier": there.tier, "place": there, "role": role}

    yield _Kind(
        "source",
        lambda run, _: ((row["source"], row) for row in run.verdict.get("crawl") or ()),
        lambda _, source: (source, {"source": source}),
        _cut_off,
    )
    yield _Kind(
        "disk",
        lambda run, side: (((place(row, side), row["role"]), row) for row in _disk_rows(run)),
        lambda _, key: of_disk(key),
        lambda rows, key, metric: (
            rows.unlike(key, "iops_source", "I/O is counted in two ways") if metric.startswith("io") else None
        ),
    )
    yield _Kind(
        "cpu",
        lambda run, side: ((place(row, side), row) for row in run.verdict.get("cpus") or ()),
        lambda _, there: (places.short(there), {"tier": there.tier, "place": there}),
        lambda rows, key, _: rows.unlike(key, "of", "it is a share of two different things"),
    )
    yield _Kind("scenario", _scenario_rows, _scenario, has=_one_time_kind)
    yield _Kind("burst", _burst_rows, _scenario, _unrecovered)
    yield _Kind(
        "effort", _effort_rows, _effort, _unlike_effort, has=lambda _, key, metric: bool(key[2] == metric)
    )
    if costs is not None and costs.known:
        known = costs
        yield _Kind(
            "cost",
            lambda run, side: ((name, _worth(row, known, side)) for name, row in _scenario_rows(run, side)),
            lambda _, scenario: (scenario, {"scenario": scenario, "per": known.per}),
            lambda _, scenario, __: known.why or _given(sides, scenario),
        )


def _scenario(_: _VerdictRows, scenario: str) -> tuple[str, dict[str, Any]]:
    return scenario, {"scenario": scenario}


def _cut_off(rows: _VerdictRows, source: str, metric: str) -> str | None:
    if metric in ("count", "failures", "duration_s") and not all(rows.all(source, "complete")):
        return "not every crawl of it ended, so there is no ratio"
    return None


def _disk_rows(run: ComparedRun) -> Iterator[JsonObject]:
    # I/O per operation needs a run with one scenario: with several, the origin of the I/O is unknown.
    every = list(object_at(run.verdict, "scenarios").values())
    done_per_s = every[0].get("throughput_per_s") if len(every) == 1 else None
    for row in run.verdict.get("disks") or ():
        each = row["iops_mean"] / done_per_s if done_per_s and row["iops_mean"] is not None else None
        yield {**row, "io_per_operation": each}


def _scenario_rows(run: ComparedRun, _: str) -> Iterator[tuple[str, JsonObject]]:
    return iter(object_at(run.verdict, "scenarios").items())


def _one_time_kind(rows: _VerdictRows, scenario: str, metric: str) -> bool:
    """Whether a metric's time (service or response) is the kind that both sides have."""
    other = "service" if time_kind(rows.all(scenario, "response_p95_s")) == "response" else "response"
    return not metric.startswith(other)


def _burst_rows(run: ComparedRun, side: str) -> Iterator[tuple[str, JsonObject]]:
    """Each scenario with bursts, with the figures of the median burst of the run."""
    for name, row in _scenario_rows(run, side):
        if row.get("bursts"):
            yield name, {metric: _median_burst(row["bursts"], metric) for metric in FIGURES["burst"]}


def _effort_rows(run: ComparedRun, _: str) -> Iterator[tuple[tuple[str, str, str], JsonObject]]:
    """The CPU time of each tier per unit of work, or the reason why the time is not known."""
    for one in run.efforts:
        yield one.thing, {one.metric: one.value, "per": one.per, "why": one.why}


def _effort(rows: _VerdictRows, thing: tuple[str, str, str]) -> tuple[str, dict[str, Any]]:
    scenario, tier, _ = thing
    per = " or ".join(dict.fromkeys(rows.all(thing, "per")))
    return f"{scenario}.{tier}", {"scenario": scenario, "tier": tier, "per": per}


def _unlike_effort(rows: _VerdictRows, thing: tuple[str, str, str], metric: str) -> str | None:
    pers = dict.fromkeys(rows.all(thing, "per"))
    if len(pers) > 1:
        return f"it is counted by {' and by '.join(pers)}, so there is no ratio"
    answer: dict[str, list[str]] = {}
    for label, side in rows.sides:
        result = [row[thing] for row in side if thing in row]
        if all(row[metric] is None for row in result):
            why = next((row["why"] for row in result if row["why"]), "it did not run there")
            answer.setdefault(why, []).append(label)
    return (
        "; ".join(f"not known for {wording.listed(labels)}: {why}" for why, labels in answer.items()) or None
    )


def _worth(row: JsonObject, costs: Costs, side: str) -> JsonObject:
    """Throughput for each ``UNIT_OF_COST`` of the farm's monthly cost; None if not known."""
    done = row.get("throughput_per_s")
    return {"worth_per_s": None if done is None else costs.worth(side, done)}


def _given(sides: Sides, scenario: str) -> str | None:
    """Why the throughput does not show what the farm can do for its cost; None if it does."""
    if not all(side_kept_up(side, scenario) for side in sides):
        return None
    return f"both sides served the whole offered load of {scenario}, so their maximum is not known"


def _unrecovered(rows: _VerdictRows, scenario: str, metric: str) -> str | None:
    """Why recovery times are incomplete, because some runs did not recover; None if all did."""
    lacking = rows.lacks(scenario, metric)
    if metric != "recovery_s" or not lacking:
        return None
    return f"in {wording.listed(list(lacking))} a burst was not recovered from while it was watched"


def _median_burst(bursts: Sequence[JsonObject], metric: str) -> float | None:
    """The median of a metric over the bursts; None if a burst lacks the metric, for example recovery.

    A burst at the end of the measurement has no watched recovery, so ``recovery_s`` ignores it.
    """
    seen = [burst for burst in bursts if metric != "recovery_s" or burst.get("watched_s") != 0]
    values = [burst.get(metric) for burst in seen]
    known = [value for value in values if value is not None]
    return float(median(known)) if known and len(known) == len(values) else None


def time_kind(response: Sequence[float | None]) -> str:
    """``response`` if every run has response times, else ``service``: both sides use the same kind."""
    return "response" if response and all(value is not None for value in response) else "service"


def first_change(value: Sequence[Change], **wanted: Any) -> Change | None:
    """The first change with the given attributes; None if there is none."""
    return next((one for one in value if all(getattr(one, k) == v for k, v in wanted.items())), None)
