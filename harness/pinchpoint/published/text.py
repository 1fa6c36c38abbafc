"""The verdict on published figures as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pinchpoint.analysis.published_means import Published, Suspected
from pinchpoint.base import units
from pinchpoint.base.text import one_line, titled, wrapped
from pinchpoint.published.judge import PublishedAnswer, PublishedFindings, named

OUTCOMES = {
    "bottleneck": "these means name a bottleneck",
    "not_reached": "nothing in these means is near its limit",
    "inconclusive": "inconclusive: these means do not decide what limits it",
}


def published_text(findings: PublishedFindings) -> str:
    """Each farm's answer, the table of sources, doubts, and what the report's own conclusion rests on."""
    blocks = [f"{findings.title}: published figures, no sample."]
    blocks += ["\n".join(_farm(name, one)) for name, one in findings.farms.items()]
    if findings.sources:
        blocks.append("\n".join(_table(findings)))
    blocks += [
        titled("What in these figures disagrees:", findings.doubts),
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
        yield wrapped(f"{disk.tier}.{disk.role} of {disk.host}: {kind}: {' at '.join(means)}", "  - ")
    if published.experiment:
        yield wrapped(f"What would decide it: {published.experiment}")


def _suspected(suspected: Suspected) -> str:
    measured = "" if suspected.measured else ", of which not all is known"
    return f"suspected: {named(suspected)}{measured}: {suspected.why}"


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
    verb = "bear that out" if answer.supported else "do not bear that out"
    text = f"The report concludes that {answer.says}. Its figures {verb}: {answer.because}."
    if answer.needs:
        text += f" That conclusion would need {answer.needs}."
    return wrapped(text)
