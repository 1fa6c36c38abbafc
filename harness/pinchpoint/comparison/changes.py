"""What changed: the figures of sources, disks, tiers, scenarios, bursts, efforts, costs, side beside side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

from pinchpoint.base import wording
from pinchpoint.base.figures import FIGURES, About, Better
from pinchpoint.comparison.costs import Costs
from pinchpoint.comparison.courses import Key
from pinchpoint.comparison.efforts import Effort
from pinchpoint.comparison.sides import Place, Places, Run, Sides
from pinchpoint.comparison.statistics import Call, Pair, pair
from pinchpoint.comparison.work import side_kept_up


@dataclass(frozen=True, slots=True)
class Judgement:
    """What may be said of a figure's ratio.

    Attributes:
        ci95: its 95 % interval; None: not known.
        interval: what it covers: how runs differ from one another (``between_runs``), or only chance within
            the runs there are (``within_run``); None without one.
        why_no_interval: why there is none, one sentence.
        declared: whether it is one of the figures that were to be judged.
        margin_ratio: from 1/margin to margin the sides count as the same; None: not judged.
        floor_ratio: how many times as much the same farm differed from itself; None: not known.
        p: of the ratio lying within the margin, corrected for the number of declared figures.
        call: what may be said; None where the figure was not declared.
        confidence: of a change that is called: ``high`` between runs, else ``medium``.
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
    """One figure of one thing, on both sides.

    Attributes:
        about: what kind of thing it is.
        metric: the figure; its ending is its unit.
        name: what ``--metric`` names it: ``scenario.crawl.throughput_per_s``.
        pair: its values.
        source: the crawl source, where it is one.
        scenario: the scenario, where it is one.
        tier: the tier, of a disk or CPU.
        place: the host, likewise.
        role: the disk's role.
        per: of what it is one: ``document``, ``commit``, ``burst``; ``100 EUR a month`` of a cost.
        better: which way is better; None: neither (more I/O is not better by itself).
        judged: what may be said of it.
    """

    about: About
    metric: str
    name: str
    pair: Pair
    source: str | None = None
    scenario: str | None = None
    tier: str | None = None
    place: Place | None = None
    role: str | None = None
    per: str | None = None
    better: Better | None = None
    judged: Judgement = Judgement()

    def key(self, side: str) -> Key:
        """Whose figure it is in the runs of a side (``base`` or ``other``)."""
        if self.about == "cost":  # a farm costs the same all along
            return "scenario", self.scenario, None, None, "throughput_per_s"
        if self.about == "effort":
            return self.about, f"{self.scenario}.{self.tier}", None, None, self.metric
        host = getattr(self.place, side) if self.place else None
        return self.about, self.source or self.scenario or self.tier, host, self.role, self.metric


Row = Mapping[str, Any]


def changes(sides: Sides, places: Places, costs: Costs | None = None) -> tuple[Change, ...]:
    """Every figure of both sides: sources, disks, CPUs, scenarios, bursts, efforts, costs, in this order."""
    return (
        *_sources(sides),
        *_disks(sides, places),
        *_cpus(sides, places),
        *_scenarios(sides),
        *_bursts(sides),
        *_efforts(sides),
        *(_costs(sides, costs) if costs is not None and costs.known else ()),
    )


class _Rows:
    """The rows of one of the verdicts' tables, by what they are about, run by run."""

    def __init__(self, sides: Sides, read: Callable[[Run, str], Iterator[tuple[Any, Row]]]) -> None:
        self._labels = sides.base.label, sides.other.label
        self._base = [dict(read(run, "base")) for run in sides.base.runs]
        self._other = [dict(read(run, "other")) for run in sides.other.runs]

    def __iter__(self) -> Iterator[Any]:
        return iter(dict.fromkeys(key for rows in (*self._base, *self._other) for key in rows))

    def pair(self, key: Any, metric: str, unlike: str | None = None) -> Pair:
        base, other = ([rows.get(key, {}).get(metric) for rows in side] for side in (self._base, self._other))
        return pair(base, other, self._labels, unlike)

    def all(self, key: Any, column: str) -> list[Any]:
        """A column's values in every run that has the row."""
        return [rows[key].get(column) for rows in (*self._base, *self._other) if key in rows]

    def lacks(self, key: Any, metric: str) -> list[str]:
        """The sides of which a run has the row, and not the figure."""
        return [
            label
            for label, side in zip(self._labels, (self._base, self._other), strict=True)
            if any(key in rows and rows[key].get(metric) is None for rows in side)
        ]

    def unlike(self, key: Any, column: str, what: str) -> str | None:
        """Why the runs' figures are not the same quantity, where a column says so."""
        kinds = sorted({str(kind) for kind in self.all(key, column)})
        return f"{what} ({' and '.join(kinds)}), so there is no ratio" if len(kinds) > 1 else None


def _sources(sides: Sides) -> Iterator[Change]:
    rows = _Rows(sides, lambda run, _: ((row["source"], row) for row in run.verdict.get("crawl") or ()))
    for source in rows:
        ended = all(rows.all(source, "complete"))
        for metric, better in FIGURES["source"].items():
            cut = None
            if not ended and metric in ("count", "failures", "duration_s"):
                cut = "not every crawl of it ended, so there is no ratio"
            found = rows.pair(source, metric, cut)
            yield Change("source", metric, f"source.{source}.{metric}", found, source=source, better=better)


def _disks(sides: Sides, places: Places) -> Iterator[Change]:
    def read(run: Run, side: str) -> Iterator[tuple[Any, Row]]:
        done_per_s = _done_per_s(run)
        for row in run.verdict.get("disks") or ():
            each = row["iops_mean"] / done_per_s if done_per_s and row["iops_mean"] is not None else None
            yield (places.of(row["tier"], row["host"], side), row["role"]), {**row, "io_per_operation": each}

    rows = _Rows(sides, read)
    for place, role in rows:
        counted = rows.unlike((place, role), "iops_source", "I/O is counted in two ways")
        for metric, better in FIGURES["disk"].items():
            found = rows.pair((place, role), metric, counted if metric.startswith("io") else None)
            name = f"disk.{places.short(place)}.{role}.{metric}"
            yield Change("disk", metric, name, found, tier=place.tier, place=place, role=role, better=better)


def _done_per_s(run: Run) -> float | None:
    """Operations per second of a run's only scenario: of several nobody knows whose I/O it is."""
    every = list((run.verdict.get("scenarios") or {}).values())
    return every[0].get("throughput_per_s") if len(every) == 1 else None


def _cpus(sides: Sides, places: Places) -> Iterator[Change]:
    def read(run: Run, side: str) -> Iterator[tuple[Any, Row]]:
        for row in run.verdict.get("cpus") or ():
            yield places.of(row["tier"], row["host"], side), row

    rows = _Rows(sides, read)
    for place in rows:
        mixed = rows.unlike(place, "of", "it is a share of two different things")
        for metric, better in FIGURES["cpu"].items():
            found = rows.pair(place, metric, mixed)
            name = f"cpu.{places.short(place)}.{metric}"
            yield Change("cpu", metric, name, found, tier=place.tier, place=place, better=better)


def _scenarios(sides: Sides) -> Iterator[Change]:
    rows = _Rows(sides, lambda run, _: iter((run.verdict.get("scenarios") or {}).items()))
    for scenario in rows:
        other = "service" if time_kind(rows.all(scenario, "response_p95_s")) == "response" else "response"
        for metric, better in FIGURES["scenario"].items():
            if metric.startswith(other):
                continue
            name, found = f"scenario.{scenario}.{metric}", rows.pair(scenario, metric)
            yield Change("scenario", metric, name, found, scenario=scenario, better=better)


def _bursts(sides: Sides) -> Iterator[Change]:
    """Per burst: the median burst of each run."""

    def read(run: Run, _: str) -> Iterator[tuple[Any, Row]]:
        for name, row in (run.verdict.get("scenarios") or {}).items():
            if row.get("bursts"):
                yield name, {metric: _median_burst(row["bursts"], metric) for metric in FIGURES["burst"]}

    rows = _Rows(sides, read)
    for scenario in rows:
        for metric, better in FIGURES["burst"].items():
            name = f"burst.{scenario}.{metric}"
            found = rows.pair(scenario, metric, _unrecovered(rows.lacks(scenario, metric), metric))
            yield Change("burst", metric, name, found, scenario=scenario, better=better)


def _efforts(sides: Sides) -> Iterator[Change]:
    """CPU time of each tier for each unit of work; where it is not known on a side, why."""
    found = [[{one.thing: one for one in run.efforts} for run in side.runs] for side in sides]
    for thing in dict.fromkeys(thing for side in found for run in side for thing in run):
        scenario, tier, metric = thing
        each = [[run.get(thing) for run in side] for side in found]
        base, other = ([one.value if one else None for one in side] for side in each)
        pers = dict.fromkeys(one.per for side in each for one in side if one)
        unlike = f"it is counted by {' and by '.join(pers)}, so there is no ratio" if len(pers) > 1 else None
        yield Change(
            "effort",
            metric,
            f"effort.{scenario}.{tier}.{metric}",
            pair(base, other, (sides.base.label, sides.other.label), unlike or _unknown(sides, each)),
            scenario=scenario,
            tier=tier,
            per=" or ".join(pers),
            better=FIGURES["effort"][metric],
        )


def _unknown(sides: Sides, each: Sequence[Sequence[Effort | None]]) -> str | None:
    """Why a side has no value at all; None where each has one."""
    said: dict[str, list[str]] = {}
    for side, efforts in zip(sides, each, strict=True):
        if all(one is None or one.value is None for one in efforts):
            why = next((one.why for one in efforts if one and one.why), "nothing of it was done there")
            said.setdefault(why, []).append(side.label)
    return "; ".join(f"not known of {wording.listed(labels)}: {why}" for why, labels in said.items()) or None


def _costs(sides: Sides, costs: Costs) -> Iterator[Change]:
    """Of each scenario what is done for what the farm costs; a schedule that is kept shows prices alone."""
    rows = _Rows(sides, lambda run, _: iter((run.verdict.get("scenarios") or {}).items()))
    for scenario in rows:
        done = rows.pair(scenario, "throughput_per_s")
        base, other = (
            [None if one is None else costs.worth(name, one) for one in values]
            for name, values in (("base", done.base_values), ("other", done.other_values))
        )
        yield Change(
            "cost",
            "worth_per_s",
            f"cost.{scenario}.worth_per_s",
            pair(base, other, (sides.base.label, sides.other.label), costs.why or _given(sides, scenario)),
            scenario=scenario,
            per=costs.per,
            better=FIGURES["cost"]["worth_per_s"],
        )


def _given(sides: Sides, scenario: str) -> str | None:
    """Why what was done tells nothing of what could be done for the money; None where it does."""
    if not all(side_kept_up(side, scenario) for side in sides):
        return None
    return f"both sides did what {scenario} was offered: what they could do for it is not seen"


def _unrecovered(lacking: Sequence[str], metric: str) -> str | None:
    """Why the runs that did recover tell nothing of those that did not; None where all did."""
    if metric != "recovery_s" or not lacking:
        return None
    return f"in {wording.listed(list(lacking))} a burst was not recovered from while it was watched"


def _median_burst(bursts: Sequence[Row], metric: str) -> float | None:
    """None where a burst lacks it: one that was not recovered from took longer than any that was.

    Of one with which the measuring ended nobody saw how long it took.
    """
    seen = [burst for burst in bursts if metric != "recovery_s" or burst.get("watched_s") != 0]
    values = [burst.get(metric) for burst in seen]
    known = [value for value in values if value is not None]
    return float(median(known)) if known and len(known) == len(values) else None


def time_kind(response: Sequence[float | None]) -> str:
    """``response`` where every run has response times, else ``service``: one kind for both sides."""
    return "response" if response and all(value is not None for value in response) else "service"


def of(found: Sequence[Change], **wanted: Any) -> Change | None:
    """The first change with these attributes."""
    return next((one for one in found if all(getattr(one, k) == v for k, v in wanted.items())), None)
