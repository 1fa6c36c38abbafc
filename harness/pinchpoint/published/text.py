"""Formats the verdict on published figures as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pinchpoint.analysis.published_means import Published, Suspected
from pinchpoint.base import units
from pinchpoint.base.text import one_line, titled, wrapped
from pinchpoint.published.judge import PublishedAnswer, PublishedFindings, named

OUTCOMES = {
    "bottleneck": "the published means show a bottleneck",
    "not_reached": "by the published means no resource is near its limit",
    "inconclusive": "inconclusive: the published means do not show one bottleneck",
}
KINDS = {
    "disk_cap": "at its declared limit",
    "disk_device": "slow for its role at this rate, so limited by the device",
    "disk_latency": "slow for its role",
    "disk_concurrency": "limited by too few outstanding I/Os",
}
"""Kind of a disk's limit -> its description in words."""


def published_text(findings: PublishedFindings) -> str:
    """The findings as text: answers by farm, sources, contradictions, differences, judged conclusions."""
    blocks = [f"{findings.title}: published figures, no sample."]
    blocks += ["\n".join(_farm(name, one)) for name, one in findings.farms.items()]
    if findings.sources:
        blocks.append("\n".join(_table(findings)))
    blocks += [
        titled("Figures that contradict each other:", findings.doubts),
        titled("What else differs:", findings.differ),
        *map(_answer, findings.conclusions),
    ]
    return "\n\n".join(filter(None, blocks))


def _farm(name: str, published: Published) -> Iterator[str]:
    sure = f" (confidence: {published.confidence})" if published.confidence else ""
    yield wrapped(f"{name}: {OUTCOMES[published.outcome]}{sure}.")
    for candidate in published.candidates:
        yield wrapped(_suspected(candidate), "  - ")
    for source in published.sources:
        yield wrapped(f"{source.source} is limited by something outside of the farm: {source.why}", "  - ")
    for disk, kind in published.slow:
        means = [f"{units.seconds(disk.latency_s)} an I/O"] if disk.latency_s is not None else []
        means += [units.iops(disk.iops)] if disk.iops is not None else []
        limited = KINDS.get(kind, kind)
        yield wrapped(f"{disk.tier}.{disk.role} of {disk.host}: {' at '.join(means)}: {limited}", "  - ")
    if published.experiment:
        yield wrapped(f"What would decide it: {published.experiment}")


def _suspected(suspected: Suspected) -> str:
    measured = "" if suspected.measured else ", not measured in full"
    return f"candidate: {named(suspected)}{measured}: {suspected.why}"


def _table(findings: PublishedFindings) -> Iterator[str]:
    rows: list[tuple[str, ...]] = [
        ("source", "farm", "count", "duration", "rate", "count ÷ duration", "latency")
    ]
    for row in findings.sources:
        for farm, one in row["farms"].items():
            rows.append((one_line(row["source"]), one_line(farm), *_cells(one)))
    widths = [max(len(cells[place]) for cells in rows) for place in range(len(rows[0]))]
    for cells in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _cells(one: Mapping[str, Any] | None) -> tuple[str, ...]:
    if one is None:
        return ("not published",) * 5
    count = "not published" if one["count"] is None else f"{one['count']:,}"
    return (
        f"{count} (all failed)" if one["failed"] else count,
        units.seconds(one["duration_s"]),
        units.per_second(one["rate_per_s"]),
        units.per_second(one["counted_per_s"]),
        units.seconds(one["latency_s"]),
    )


def _answer(answer: PublishedAnswer) -> str:
    verb = "support that" if answer.supported else "do not support that"
    text = f"The report concludes that {answer.says}. Its figures {verb}: {answer.because}."
    if answer.needs:
        text += f" To support it, measure {answer.needs}"
    return wrapped(text)
