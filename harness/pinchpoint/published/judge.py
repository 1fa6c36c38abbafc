"""Judges published figures: the bottleneck that they show, contradictions, and missing measurements."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from pinchpoint.analysis.published_means import (
    CpuMean,
    DiskMean,
    Published,
    SourceMean,
    Suspected,
    judge_means,
)
from pinchpoint.base import units
from pinchpoint.data.inputs import Limits
from pinchpoint.published.record import (
    FarmFigures,
    PublishedClaim,
    PublishedConclusion,
    PublishedReport,
    SourceFigures,
)

SCHEMA = "pinchpoint.published/1"

SAME_RATE = 0.05
"""Allowed relative difference between a published rate and documents ÷ duration, which may be rounded."""
SAME_RATIO = 0.05
"""Allowed relative difference of a ratio in a report's text, which may be rounded; 4.38 is not "almost 4
times"."""
TOGETHER_S = 1.0
"""Crawls whose durations differ by no more than this are unlikely to agree by chance."""
SAME_COUNT = 0.01


@dataclass(frozen=True, slots=True)
class PublishedAnswer:
    """A report's conclusion, judged by its published figures.

    Attributes:
        farm: name of the farm.
        says: the conclusion as a sentence.
        supported: whether the figures show the same bottleneck and no other.
        because: the reason for ``supported``.
        needs: measurements that would be needed; None if nothing is missing.
    """

    farm: str
    says: str
    supported: bool
    because: str
    needs: str | None


@dataclass(frozen=True, slots=True)
class PublishedFindings:
    """The result of judging a report's published figures.

    Attributes:
        title: title of the report.
        farms: farm name -> the answer from its published means.
        sources: one row per source with its published figures in each farm.
        doubts: sentences about figures that contradict each other.
        differ: other differences between the farms, as the file gives them.
        conclusions: the report's own conclusions, judged.
    """

    title: str
    farms: Mapping[str, Published]
    sources: tuple[Mapping[str, Any], ...]
    doubts: tuple[str, ...]
    differ: tuple[str, ...]
    conclusions: tuple[PublishedAnswer, ...]

    def to_json(self) -> dict[str, Any]:
        """The findings as JSON types; null means "not published"."""
        result: dict[str, Any] = json.loads(json.dumps({"schema": SCHEMA, **asdict(self)}, allow_nan=False))
        return result


def judge_report(report: PublishedReport) -> PublishedFindings:
    """The findings about a report, by the rules for runs but from published means alone."""
    farms = {name: _judged(figures) for name, figures in report.farms.items()}
    return PublishedFindings(
        title=report.title,
        farms=farms,
        sources=tuple(_rows(report)),
        doubts=tuple(_doubts(report)),
        differ=report.differ,
        conclusions=tuple(
            _answer(one, report.farms[one.farm], farms[one.farm]) for one in report.conclusions
        ),
    )


def _judged(figures: FarmFigures) -> Published:
    disks = []
    for disk in figures.disks:
        caps = disk.caps
        limits = Limits(caps.iops, caps.bytes_per_s, caps.io_unit_bytes) if caps else None
        disks.append(DiskMean(disk.tier, disk.host, disk.role, disk.latency_s, disk.iops, limits))
    cpus = [CpuMean(cpu.tier, cpu.host, cpu.busy_ratio) for cpu in figures.cpus]
    sources = [
        SourceMean(one.name, one.rate_per_s, one.latency_s, one.tier)
        for one in figures.sources
        if one.rate_per_s and one.latency_s and not one.failed
    ]
    return judge_means(disks, cpus, sources)


def counted_per_s(source: SourceFigures) -> float | None:
    """Documents per second, from count ÷ duration; None if either was not published."""
    return source.count / source.duration_s if source.count and source.duration_s else None


def _rows(report: PublishedReport) -> Iterator[dict[str, Any]]:
    names = dict.fromkeys(one.name for farm in report.farms.values() for one in farm.sources)
    for name in names:
        of_each = {
            farm: next((one for one in figures.sources if one.name == name), None)
            for farm, figures in report.farms.items()
        }
        yield {
            "source": name,
            "farms": {
                farm: None
                if one is None
                else {
                    "count": one.count,
                    "failed": one.failed,
                    "duration_s": one.duration_s,
                    "rate_per_s": one.rate_per_s,
                    "counted_per_s": counted_per_s(one),
                    "latency_s": one.latency_s,
                }
                for farm, one in of_each.items()
            },
        }


# ---- where figures disagree -----------------------------------------------------------------------


def _doubts(report: PublishedReport) -> Iterator[str]:
    for name, farm in report.farms.items():
        for source in farm.sources:
            yield from _rate_doubt(name, source)
        yield from _coupled(name, [one for one in farm.sources if not one.failed])
    for (first, ours), (second, theirs) in combinations(report.farms.items(), 2):
        yield from _unlike(first, ours, second, theirs)
    for claim in report.claims:
        yield from _claim_doubt(report, claim)


def _claim_doubt(report: PublishedReport, claim: PublishedClaim) -> Iterator[str]:
    """A sentence if the published figures contradict the claim or do not include both figures."""
    base, other = (
        next(one for one in report.farms[farm].sources if one.name == claim.source)
        for farm in (claim.base, claim.other)
    )
    name = {"rate": "rate_per_s", "latency": "latency_s", "duration": "duration_s"}.get(claim.figure, "count")
    before, after = (getattr(one, name) for one in (base, other))
    if not before or not after:
        yield f'"{claim.says}" ({claim.source}, {claim.figure}): one of the two figures is not published'
    elif abs(after / before / claim.ratio - 1) > SAME_RATIO:
        yield (
            f'"{claim.says}": the {claim.figure} of {claim.source} in {claim.other} is '
            f"{units.times(after / before)} that in {claim.base}, not {units.times(claim.ratio)}"
        )


def _rate_doubt(farm: str, source: SourceFigures) -> Iterator[str]:
    if source.failed:
        yield f"{farm}: all of {source.name} failed, so its rate is not known"
        return
    counted = counted_per_s(source)
    if counted and source.rate_per_s and abs(source.rate_per_s / counted - 1) > SAME_RATE:
        yield (
            f"{farm}: {source.name}: {units.per_second(source.rate_per_s)} is published, but "
            f"{source.count:,} documents in {units.seconds(source.duration_s)} are "
            f"{units.per_second(counted)}"
        )


def _coupled(farm: str, sources: Sequence[SourceFigures]) -> Iterator[str]:
    """A sentence about the largest group of sources whose crawls took the same time within ``TOGETHER_S``."""
    timed = [one for one in sources if one.duration_s is not None]
    groups = [
        [one for one in timed if abs((one.duration_s or 0) - (first.duration_s or 0)) <= TOGETHER_S]
        for first in timed
    ]
    most = max(groups, key=len, default=[])
    if len(most) > 1:
        names = ", ".join(one.name for one in most)
        yield (
            f"{farm}: {names}: these crawls ended within {units.seconds(TOGETHER_S)} of each other, so their "
            "durations look coupled, and their rates depend on each other"
        )


def _unlike(first: str, ours: FarmFigures, second: str, theirs: FarmFigures) -> Iterator[str]:
    for one in ours.sources:
        same = next((other for other in theirs.sources if other.name == one.name), None)
        if same is None or one.failed or same.failed:
            continue
        if one.count and same.count and abs(same.count / one.count - 1) > SAME_COUNT:
            counts = f"{one.count:,} documents in {first}, {same.count:,} in {second}"
            yield f"{one.name}: {counts}: not the same work"
        faster = one.latency_s and same.latency_s and same.latency_s < one.latency_s
        if faster and one.rate_per_s and same.rate_per_s and same.rate_per_s < one.rate_per_s:
            yield (
                f"{one.name}: slower in {second} ({units.per_second(one.rate_per_s)}, then "
                f"{units.per_second(same.rate_per_s)}) though its latency fell from "
                f"{units.seconds(one.latency_s)} to {units.seconds(same.latency_s)}: latency does not limit "
                "this source"
            )


# ---- the report's own conclusion ------------------------------------------------------------------


def _answer(conclusion: PublishedConclusion, figures: FarmFigures, published: Published) -> PublishedAnswer:
    what = (
        "the CPU"
        if conclusion.of == "cpu"
        else f"the {conclusion.role} disks"
        if conclusion.role
        else "the disks"
    )
    says = (
        f"{what} of {conclusion.tier} limits {conclusion.farm}"
        if conclusion.of == "cpu"
        else f"{what} of {conclusion.tier} limit {conclusion.farm}"
    )
    same = [each for each in (*published.candidates, *published.rest) if _is(each, conclusion)]
    others = [each for each in published.candidates if not _is(each, conclusion)]
    if published.outcome == "bottleneck" and same:
        return PublishedAnswer(conclusion.farm, says, supported=True, because=same[0].why, needs=None)
    # A CPU is the bottleneck only if its utilisation is published. If disks are named, every CPU without a
    # published utilisation could also be the bottleneck.
    unknown = [
        cpu.host
        for cpu in figures.cpus
        if cpu.busy_ratio is None and (conclusion.of == "disk" or cpu.tier == conclusion.tier)
    ]
    why = [f"the utilisation of the CPU of {', '.join(unknown)} is not published"] if unknown else []
    if not same:
        why.append("its figures show no limit there")
    why += [
        f"{named(each)} is as likely: {each.why}"
        if each.measured
        else f"{named(each)} may limit it as well ({each.why})"
        for each in others
    ]
    return PublishedAnswer(
        conclusion.farm,
        says,
        supported=False,
        because="; ".join(why),
        needs=_needs(conclusion, unknown, others),
    )


def _needs(conclusion: PublishedConclusion, unknown: Sequence[str], others: Sequence[Suspected]) -> str:
    wanted = ["the disks of " + conclusion.tier] if conclusion.of == "disk" else []
    wanted += (
        [f"the CPU of {', '.join(unknown) or conclusion.tier}"] if unknown or conclusion.of == "cpu" else []
    )
    wanted += [named(each) for each in others]
    return (
        f"the utilisation of {' and '.join(wanted)} over time, at several load levels: the bottleneck is "
        "the resource whose utilisation rises with the load until it is saturated."
    )


def _is(each: Suspected, conclusion: PublishedConclusion) -> bool:
    return (each.of, each.tier) == (conclusion.of, conclusion.tier) and conclusion.role in {None, each.role}


def resource(each: Suspected) -> str:
    """The name of a resource, such as ``the log disks of sql``."""
    return f"{f'the {each.role} disks' if each.of == 'disk' else 'the CPU'} of {each.tier}"


def named(each: Suspected) -> str:
    """The name of a resource with its hosts, such as ``the log disks of sql (sql1, sql2)``."""
    return f"{resource(each)} ({', '.join(each.hosts)})"
