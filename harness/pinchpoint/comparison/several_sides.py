"""Compares three or more sides: each judged figure pair by pair, and the best side for each figure.

A comparison of two sides (``comparison.comparison``) contains more detail. Here Holm's correction covers all
pairs of sides and all judged figures together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

from pinchpoint.base import units, wording
from pinchpoint.base.errors import ExitStatus, InputError
from pinchpoint.base.figures import MOST_METRICS, Better
from pinchpoint.base.groups import by_key
from pinchpoint.comparison.changes import Change, changes
from pinchpoint.comparison.comparison import Comparison, compare, plain
from pinchpoint.comparison.costs import costs_of
from pinchpoint.comparison.judged_figures import EstimatedChange, estimate_changes
from pinchpoint.comparison.saved import COMPARISON
from pinchpoint.comparison.sides import Side, Sides, folder_name, pair_hosts
from pinchpoint.comparison.statistics import ENOUGH, Call, holm, middle
from pinchpoint.comparison.words import reported
from pinchpoint.comparison.work import not_kept_up, work_differences
from pinchpoint.plan.prices import Prices
from pinchpoint.store import document

SCHEMA = "pinchpoint.sides/1"
FEWEST, MOST = 3, 12
"""The allowed number of sides, so that all fit on one page."""

Standing = Literal["best", "tied", "equivalent", "worse"]
"""The rank of a side in one figure: best, tied with the best, equivalent to the best, or worse."""


@dataclass(frozen=True, slots=True)
class PairCall:
    """One figure for one pair of sides.

    Attributes:
        sides: positions of the two sides; the first one is the base.
        ratio: second side ÷ first side; None if there is no ratio.
        ci95: the 95 % interval of the ratio; None if there is no interval.
        p: p-value of the hypothesis that the ratio lies within the margin, Holm-corrected over all pairs and
            judged figures; None without an interval.
        call: the judgement of the second side in one word; None if the figure is not judged.
    """

    sides: tuple[int, int]
    ratio: float | None
    ci95: tuple[float, float] | None
    p: float | None
    call: Call | None


@dataclass(frozen=True, slots=True)
class SidesFigure:
    """One figure of every side.

    Attributes:
        name: the full name, ``scenario.crawl.throughput_per_s``; for a probe the name of the cell.
        about: the kind of thing that the figure describes; ``cell`` for a probe.
        metric: the name of the figure; its suffix is its unit.
        better: the direction that is better; None if neither is.
        judged: whether the figure is judged.
        values: the values of each side's runs; None for a run that did not measure the figure.
        pairs: every pair of sides that measured the figure.
        standing: the rank of each side; None if the side did not measure the figure, the figure is not
            judged, or neither direction is better.
        source: the crawl source of the figure, or None.
        scenario: the scenario of the figure, or None.
        tier: the tier of the figure, or None.
        role: the role of the figure's disk, or None.
        per: the unit of work, such as ``document``, or None.
        workload: the workload of a probe's cell; None for runs.
        outstanding: the queue depth of a probe's cell; None for runs.
    """

    name: str
    about: str
    metric: str
    better: Better | None
    judged: bool
    values: tuple[tuple[float | None, ...], ...]
    pairs: tuple[PairCall, ...] = ()
    standing: tuple[Standing | None, ...] = ()
    source: str | None = None
    scenario: str | None = None
    tier: str | None = None
    role: str | None = None
    per: str | None = None
    workload: str | None = None
    outstanding: int | None = None

    @property
    def medians(self) -> tuple[float | None, ...]:
        """The median of each side; None for a side that did not measure the figure."""
        return tuple(middle(values) for values in self.values)

    @property
    def leader(self) -> int | None:
        """The side with the best median; None if neither way is better, or fewer than two are measured."""
        known = [(value, at) for at, value in enumerate(self.medians) if value is not None]
        if self.better is None or len(known) < 2:
            return None
        return (max if self.better == "higher" else min)(known, key=lambda one: one[0])[1]

    @property
    def fewest(self) -> int:
        """The smallest number of values on a side, among the sides that have any; 0 if none has."""
        counts = [sum(value is not None for value in values) for values in self.values]
        return min((count for count in counts if count), default=0)

    def between(self, first: int, second: int) -> PairCall | None:
        """The pair of two sides as second ÷ first, in either order; None if there is no such pair."""
        for one in self.pairs:
            if one.sides == (first, second):
                return one
            if one.sides == (second, first):
                ci95 = (1 / one.ci95[1], 1 / one.ci95[0]) if one.ci95 else None
                ratio = 1 / one.ratio if one.ratio else None
                return PairCall(one.sides[::-1], ratio, ci95, one.p, _TURNED.get(one.call, one.call))
        return None


_TURNED: Mapping[Call | None, Call | None] = {"better": "worse", "worse": "better"}


@dataclass(frozen=True, slots=True)
class OneSide:
    """One side of the comparison.

    Attributes:
        label: the name of the side.
        runs: the directories of the side's runs, or of its probe.
        found: the bottleneck or limit in words, with the number of runs that name it.
        confidence: the confidence in the bottleneck; "" if there is none.
        following: the next bottleneck in words; "" if not known.
        declared: the declared limits of a probe's disk; "" for runs.
        per_month: the monthly cost of a probe's disk, by the ``prices`` of its farm; None without a price,
            and for runs.
        currency: the currency of ``per_month``; "" without a price, and for runs.
    """

    label: str
    runs: tuple[str, ...]
    found: str
    confidence: str = ""
    following: str = ""
    declared: str = ""
    per_month: float | None = None
    currency: str = ""


@dataclass(frozen=True, slots=True)
class SideDifference:
    """A difference between a side and the first side.

    Attributes:
        side: position of the side.
        area: the area of the fact, as in ``differences.Difference``.
        what: the name of the fact; its suffix is its unit.
        tier: the tier; None if the fact applies to the whole run.
        role: the role of the disk; None for other facts.
        hosts: names of the hosts; empty if the fact applies to the tier or the whole run.
        first: the value on the first side.
        other: the value on this side.
        studied: whether the difference belongs to a studied area.
    """

    side: int
    area: str
    what: str
    tier: str | None
    role: str | None
    hosts: tuple[str, ...]
    first: Any
    other: Any
    studied: bool = False


@dataclass(frozen=True, slots=True)
class WorkloadLimit:
    """The limit of a probe's workload on one side, and its rate within the latency line.

    Attributes:
        side: position of the side.
        workload: the name of the workload.
        kind: how the disk limits the workload; None if not known.
        holds_to: the highest queue depth with a mean latency below the line; None if there is none, or no
            latency.
        crossed_at: the lowest queue depth with a mean latency above the line; None if there is none.
        within_iops: the most I/Os per second with a mean latency below the line; None if there are none.
        most_iops: the most I/Os per second at any queue depth.
        within_bytes_per_s: the most bytes per second with a mean latency below the line; None if there are
            none.
        most_bytes_per_s: the most bytes per second at any queue depth.
        load_class: the name of the load class with ``holds_to`` outstanding I/Os, such as ``very light``.
    """

    side: int
    workload: str
    kind: str | None
    holds_to: int | None
    crossed_at: int | None
    within_iops: float | None
    most_iops: float | None
    within_bytes_per_s: float | None
    most_bytes_per_s: float | None
    load_class: str | None = None


@dataclass(frozen=True, slots=True)
class SidesComparison:
    """The comparison of several sides.

    Attributes:
        of: the kind of the sides: runs or probes.
        sides: three to twelve sides; ``differences`` are relative to the first one.
        figures: the figures; judged ones come first.
        differences: the differences from the first side.
        limits: for probes, the limit of each workload on each side; empty for runs.
        line_s: the latency line of ``limits``, in seconds; None for runs.
        margin_ratio: relative difference within which two sides are equivalent.
        warnings: warnings for the reader.
        valid: whether every run is valid evidence.
    """

    of: Literal["runs", "probes"]
    sides: tuple[OneSide, ...]
    figures: tuple[SidesFigure, ...]
    differences: tuple[SideDifference, ...]
    limits: tuple[WorkloadLimit, ...]
    line_s: float | None
    margin_ratio: float
    warnings: tuple[str, ...]
    valid: bool = True

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the sides."""
        return tuple(side.label for side in self.sides)

    @property
    def folder(self) -> str:
        """The name of the comparison's folder: ``comparison-dev-test-prod``."""
        return folder_name(self.labels)

    @property
    def answer(self) -> wording.Summary:
        """The limit of each side, and the best side in each judged figure."""
        return wording.Summary.of(list(_sentences(self)))

    def to_json(self) -> dict[str, Any]:
        """The content of comparison.json."""
        return {"schema": SCHEMA, "summary": str(self.answer), **asdict(self)}


def check_number(sides: Sequence[object]) -> None:
    """Raise InputError if there are more sides than fit on a page."""
    if len(sides) > MOST:
        raise InputError(f"compare: found {len(sides)} sides; allowed: 2 to {MOST} on one page")


def ranked(figure: SidesFigure) -> SidesFigure:
    """The figure with the rank of each side, from the calls of its pairs."""
    leader = figure.leader
    if leader is None or not figure.judged:
        return replace(figure, standing=(None,) * len(figure.values))
    standings: list[Standing | None] = []
    for at, value in enumerate(figure.medians):
        pair = figure.between(leader, at)
        call = pair.call if pair else None
        if value is None or at == leader:
            standings.append(None)
        else:
            standings.append("worse" if call == "worse" else "equivalent" if call == "equivalent" else "tied")
    others = [one for one in standings if one is not None]
    standings[leader] = "best" if others and all(one == "worse" for one in others) else "tied"
    return replace(figure, standing=tuple(standings))


def compare_sides(
    sides: Sequence[Side],
    factors: Sequence[str] = (),
    *,
    metrics: Sequence[str] = (),
    bound: float | None = None,
    margin: float | None = None,
    prices: Prices | None = None,
) -> SidesComparison:
    """Compare several sides of runs (for the arguments see ``comparison.compare``).

    Raises:
        InputError: there are too many sides, a factor or a metric is not known, or the plans declare
            different values.
    """
    check_number(sides)
    with_first = {
        place: compare(
            Sides(sides[0], other), factors, metrics=metrics, bound=bound, margin=margin, prices=prices
        )
        for place, other in enumerate(sides[1:], 1)
    }
    judges = with_first[1].declared
    names = list(dict.fromkeys(name for one in with_first.values() for name in one.metrics))[:MOST_METRICS]
    pairs = {
        (first, second): _estimates(
            Sides(sides[first], sides[second]), judges.bound, judges.margin_ratio, prices
        )
        for first, second in combinations(range(len(sides)), 2)
    }
    called = _called(pairs, names, [all(run.is_evidence for run in side.runs) for side in sides])
    figures = [ranked(one) for one in _figures(called, names, len(sides))]
    figures.sort(key=lambda one: names.index(one.name) if one.name in names else len(names))
    made = tuple(_side(side) for side in sides)
    return SidesComparison(
        of="runs",
        sides=made,
        figures=tuple(figures),
        differences=tuple(_differences(with_first)),
        limits=(),
        line_s=None,
        margin_ratio=judges.margin_ratio,
        warnings=tuple(dict.fromkeys(_warnings(sides, with_first))),
        valid=all(one.claim.kind is not None for one in with_first.values()),
    )


_Estimates = Mapping[tuple[int, int], Mapping[str, EstimatedChange]]


def _estimates(
    sides: Sides, bound: float, margin_ratio: float, prices: Prices | None
) -> dict[str, EstimatedChange]:
    """The figures of a pair of sides, by name."""
    places = pair_hosts(sides.base.manifests[0], sides.other.manifests[0])
    result = changes(sides, places, costs_of(sides, prices))
    return {one.change.name: one for one in estimate_changes(result, sides, bound, same=margin_ratio)}


def _names(pairs: _Estimates, count: int) -> list[dict[Any, str]]:
    """For each side: identity of a figure -> the figure's name on the first side."""
    made: list[dict[Any, str]] = [{} for _ in range(count)]
    for (first, second), result in pairs.items():
        if first == 0:
            for name, one in result.items():
                made[0].setdefault(_key(one.change, "base"), name)
                made[second].setdefault(_key(one.change, "other"), name)
    return made


def _key(change: Change, side: str) -> Any:
    return change.about, change.metric, change.key(side)


def _called(
    pairs: _Estimates, names: Sequence[str], valid: Sequence[bool]
) -> dict[tuple[int, int], dict[str, Change]]:
    """The figures of each pair, named as on the first side; judged figures have their call."""
    known = _names(pairs, len(valid))
    by_name = {
        pair: {known[pair[0]].get(_key(one.change, "base"), name): one for name, one in result.items()}
        for pair, result in pairs.items()
    }
    asked = [(pair, name) for pair, result in by_name.items() for name in names if name in result]
    p = dict(zip(asked, holm([by_name[pair][name].p for pair, name in asked]), strict=True))
    made: dict[tuple[int, int], dict[str, Change]] = {}
    for pair, result in by_name.items():
        made[pair] = {}
        for name, one in result.items():
            change = one.called(p[pair, name]) if (pair, name) in p else one.change
            if change.judged.call and not all(valid[side] for side in pair):
                change = replace(change, judged=replace(change.judged, call="inconclusive"))
            made[pair][name] = change
    return made


def _figures(
    called: Mapping[tuple[int, int], Mapping[str, Change]], names: Sequence[str], count: int
) -> Iterator[SidesFigure]:
    every = dict.fromkeys(name for result in called.values() for name in result)
    for name in every:
        values: list[tuple[float | None, ...]] = [()] * count
        calls = []
        for (first, second), result in called.items():
            one = result.get(name)
            if one is None:
                continue
            values[first], values[second] = one.pair.base_values, one.pair.other_values
            calls.append(
                PairCall((first, second), one.pair.ratio, one.judged.ci95, one.judged.p, one.judged.call)
            )
            sample = one
        yield SidesFigure(
            name=name,
            about=sample.about,
            metric=sample.metric,
            better=sample.better,
            judged=name in names,
            values=tuple(values),
            pairs=tuple(calls),
            source=sample.source,
            scenario=sample.scenario,
            tier=sample.tier,
            role=sample.role,
            per=sample.per,
        )


def _side(side: Side) -> OneSide:
    counted = Counter(wording.limited_by(verdict) for verdict in side.verdicts)
    result, count = counted.most_common(1)[0]
    same = next(verdict for verdict in side.verdicts if wording.limited_by(verdict) == result)
    runs = len(side.runs)
    following = same.get("next")
    return OneSide(
        label=side.label,
        runs=tuple(run.directory for run in side.runs),
        found=f"{result} ({count} of {runs} runs)" if runs > 1 else result,
        confidence=str((same.get("bottleneck") or {}).get("confidence") or ""),
        following=wording.bottleneck_name(following) if following else "",
    )


def _differences(with_first: Mapping[int, Comparison]) -> Iterator[SideDifference]:
    for place, result in with_first.items():
        every = [*((one, True) for one in result.studied)]
        every += [(one.difference, False) for one in result.confounders]
        for one, studied in every:
            yield SideDifference(
                side=place,
                area=one.area,
                what=one.what,
                tier=one.tier,
                role=one.role,
                hosts=tuple(each.name for each in one.places),
                first=plain(one.base),
                other=plain(one.other),
                studied=studied,
            )


def _warnings(sides: Sequence[Side], with_first: Mapping[int, Comparison]) -> Iterator[str]:
    for side in sides:
        for run in side.runs:
            if not run.is_evidence:
                yield f"The run {run.directory} ({side.label}) is not valid: no conclusion is drawn from it"
    for result in with_first.values():
        for unlike, names in work_differences((one.name, one.unlike) for one in result.work).items():
            yield f"{result.sides.other.label}: {wording.listed(names)}: {unlike}"
    counts = ", ".join(f"{side.label}: {len(side.runs)}" for side in sides)
    if min(len(side.runs) for side in sides) < ENOUGH:
        yield (
            f"Fewer than {ENOUGH} runs on a side ({counts}): only changes above "
            f"{units.times(with_first[1].declared.bound)} are reported there. Repeat the runs to see smaller "
            f"ones (`run --repeat {ENOUGH}`)."
        )
    for result in with_first.values():
        yield from (
            *result.declared.notes,
            *not_kept_up(result.capacity, result.sides),
            *reported(result.sides),
        )


def _sentences(comparison: SidesComparison) -> Iterator[str]:
    limits = by_key((side.found, side.label) for side in comparison.sides)
    every = f"all {len(comparison.sides)} sides"
    by_limit = [(every if len(limits) == 1 else wording.listed(who), what) for what, who in limits.items()]
    if comparison.of == "probes":
        limited = f"Limits: {'; '.join(f'{who}: {what}' for who, what in by_limit)}."
        compared = [
            *_best_words(comparison.sides, comparison.figures, "measurements", "repetition"),
            *_widest(comparison),
        ]
        # The limits come first if they are known for every side.
        known = {one.side for one in comparison.limits if one.kind}
        yield from [limited, *compared] if len(known) == len(comparison.sides) else [*compared, limited]
        return
    yield f"Bottleneck of {'; of '.join(f'{who}: {what}' for who, what in by_limit)}."
    yield from _best_words(comparison.sides, comparison.figures, "judged figures", "run")


def _widest(comparison: SidesComparison) -> Iterator[str]:
    """The figure whose medians differ most between sides, if they differ by more than the margin."""
    ratios = []
    for one in comparison.figures:
        known = [(value, at) for at, value in enumerate(one.medians) if value]
        if one.judged and known:
            (most, high), (least, low) = max(known), min(known)
            ratios.append((most / least, one.name, high, low))
    ratio, name, high, low = max(ratios, default=(1.0, "", 0, 0))
    if ratio > 1 + comparison.margin_ratio:
        yield (
            f"The sides differ most in {name}: {comparison.labels[high]} is {units.times(ratio)} as fast as "
            f"{comparison.labels[low]}."
        )


def too_few(figures: Sequence[SidesFigure], each_is: str) -> str:
    """Why no figure has a best side: ``1 run a side; 5 are needed``; "" if there are enough runs."""
    fewest = min((one.fewest for one in figures), default=ENOUGH)
    few = f"{fewest} {each_is}{'s' * (fewest != 1)} a side; {ENOUGH} are needed"
    return few if fewest < ENOUGH else ""


def _best_words(
    sides: Sequence[OneSide], figures: Sequence[SidesFigure], what: str, each_is: str
) -> list[str]:
    """Sentences: how many figures each side is best at, and how many have no clear best side."""
    # A figure that some sides did not measure has no best side.
    asked = [one for one in figures if one.judged and one.leader is not None and None not in one.medians]
    wins = Counter(sides[one.standing.index("best")].label for one in asked if "best" in one.standing)
    leads = Counter(
        sides[one.leader].label
        for one in asked
        if one.leader is not None and one.medians.count(one.medians[one.leader]) == 1
    )
    few = too_few(asked, each_is)
    if asked and all(pair.ci95 is None for one in asked for pair in one.pairs):
        each = ", ".join(f"{label} in {count}" for label, count in leads.most_common()) or "none"
        return [f"Best median, of {len(asked)} {what}: {each}; not confirmed: {few}."]
    left = len(asked) - wins.total()
    parts = [", ".join(f"{label} in {count}" for label, count in wins.most_common())] if wins else []
    parts = [f"Best, of {len(asked)} {what}: {each}" for each in parts]
    if left:
        parts.append(f"In {left} of {len(asked)} {what} no side is clearly the best{few and f' ({few})'}")
    return [f"{each}." for each in parts]


def exit_status(comparison: SidesComparison, *, fail_on_worse: bool = False) -> ExitStatus:
    """3 if a run is not valid evidence, 1 if ``fail_on_worse`` and a side is worse than the first, else 0."""
    if not comparison.valid:
        return ExitStatus.NOT_EVIDENCE
    worse = any(
        pair.call == "worse" for one in comparison.figures for pair in one.pairs if pair.sides[0] == 0
    )
    return ExitStatus.OBJECTIVES_MISSED if fail_on_worse and worse else ExitStatus.FINE


def load(directory: Path) -> SidesComparison:
    """Read the comparison in a directory. Raises InputError."""
    remedy = "`pinchpoint compare A B C` makes it again"
    comparison: SidesComparison = document.read_record(
        directory / COMPARISON, SidesComparison, SCHEMA, remedy
    )
    return comparison
