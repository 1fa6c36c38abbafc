"""The Markdown format of a comparison."""

from __future__ import annotations

from collections.abc import Iterator

from pinchpoint.report.clock import day_and_time
from pinchpoint.report.compared.report import ComparisonReport, SideWords
from pinchpoint.report.markdown import escaped, table_lines

_SECTIONS = (
    ("What differs between the sides", ("studied", "confounders")),
    ("The work that was done", ("work",)),
    ("How much changed, and how sure that is", ("judged", "cost", "what_if", "capacity")),
    ("Both sides beside each other", ("sources", "disks", "cpus", "efforts", "scenarios", "bursts")),
)


def write(report: ComparisonReport) -> str:
    """The document."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: ComparisonReport) -> Iterator[str]:
    yield from (f"# {escaped(report.headline)}", "")
    base, other = report.sides
    yield f"{escaped(base.label)} compared with {escaped(other.label)} ({escaped(report.runs_words)})."
    yield ""
    for alarm in report.alarms:
        yield from (f"> **{escaped(alarm)}**", "")
    yield from _answers(report)
    for title, names in _SECTIONS:
        yield from (f"## {title}", "")
        for name in names:
            if name in report.tables:
                yield from table_lines(report.tables[name])
    yield from ("## What each side's verdict rests on", "")
    for side in report.sides:
        yield from _side(side)
    if report.content["warnings"]:
        yield from ("### Warnings", "", *(f"- {escaped(str(one))}" for one in report.content["warnings"]), "")


def _answers(report: ComparisonReport) -> Iterator[str]:
    """What changed, did the bottleneck move, how sure."""
    if report.changed:
        yield from ("What changed:", "", *(f"- {escaped(one)}" for one in report.changed), "")
    names = [f"{escaped(side.named) or 'nobody is named'} ({escaped(side.label)})" for side in report.sides]
    yield f"- Did the bottleneck move? **{report.moved_words}**: {' → '.join(names)}"
    if report.content["bottleneck"]["why"]:
        yield f"  ({escaped(report.content['bottleneck']['why'])})"
    yield from (f"- {escaped(each)}" for each in report.gains)
    yield f"- How sure? **{report.claim_words}**: {escaped('; '.join(report.content['claim_because']))}"
    yield f"- {escaped(report.runs_words)}; {escaped(report.sure_words)}"
    yield ""


def _side(side: SideWords) -> Iterator[str]:
    yield from (f"### {escaped(side.label)}", "")
    for run in side.runs:
        started = day_and_time(run["started"]) or "start not recorded"
        yield f"- {escaped(run['summary'])} ({escaped(run['directory'])}, {started})"
        if run["experiment"]:
            yield f"  What would decide it: {escaped(str(run['experiment']))}"
    yield ""
    for finding in side.findings:
        sure = f", confidence {finding.confidence}" if finding.confidence else ""
        yield from (f"{finding.title}: **{escaped(finding.place)}**{sure}.", "")
        yield from (f"- {escaped(each.fact)} ({each.kind})" for each in finding.evidence)
        yield ""
    if side.next_words:
        yield from (escaped(side.next_words), "")
