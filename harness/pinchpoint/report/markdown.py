"""The Markdown format: the report as text, for a ticket, a wiki or a mail."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pinchpoint.base import units
from pinchpoint.base.text import escaped_bytes, one_line
from pinchpoint.data.timeaxis import day_and_time
from pinchpoint.report.brief import Brief, Gathered, brief_of
from pinchpoint.report.comparison import SECTIONS as COMPARED_SECTIONS
from pinchpoint.report.comparison import ComparisonReport, SideWords
from pinchpoint.report.cover import PLAIN, Cover
from pinchpoint.report.document import PlainReport
from pinchpoint.report.evidence import Finding
from pinchpoint.report.picture import MachineBox, ResourceBox
from pinchpoint.report.report import SECTIONS, Report
from pinchpoint.report.tables import Section, Table


def write(report: Gathered, cover: Cover = PLAIN) -> str:
    """The document, without the charts: those are in the page, their values in report.json."""
    brief = brief_of(report)
    match report:
        case Report():
            lines = _lines(report)
        case ComparisonReport():
            lines = _compared_lines(report)
        case _:
            lines = _document_lines(report)
            brief = replace(brief, main=None)  # its tables follow at once, with all their columns
    return "\n".join([*_first(brief, cover), *lines]) + "\n"


def _first(brief: Brief, cover: Cover) -> Iterator[str]:
    """Page one: an answer a line, in the order of the questions, and the table beside them."""
    yield from (f"# {escaped(cover.title or brief.title)}", "")
    for each in brief.answers:
        text = " ".join(filter(None, (escaped(each.more), f"({escaped(each.small)})" if each.small else "")))
        yield f"- {each.question}: **{escaped(each.text)}**" + (f" {text}" if text else "")
    yield ""
    if brief.main is not None:
        yield from table_lines(brief.main)


def _document_lines(doc: PlainReport) -> Iterator[str]:
    for table in (table for part in doc.parts for table in part.tables):
        yield from table_lines(table)
    yield from _warnings(doc.notes)


def _warnings(notes: Sequence[str]) -> Iterator[str]:
    if notes:
        yield from ("### Warnings", "", *(f"- {escaped(note)}" for note in notes), "")


def _lines(report: Report) -> Iterator[str]:
    manifest = report.run.manifest
    for alarm in report.alarms:
        yield from (f"> **{escaped(alarm)}**", "")
    for name, rate in (report.verdict.get("capacity_at_least_per_s") or {}).items():
        yield from (f"{escaped(name)}: at least {units.per_second(rate)} were served.", "")
    if report.proof_words:
        yield from (escaped(report.proof_words), "")
    if report.tables["advice"].rows:
        yield from ("## What to do", "", *table_lines(report.tables["advice"]))
    yield from ("## The farm", "")
    for machine in report.machines:
        yield from _machine(machine)
    yield from ("", "## Evidence", "")
    for finding in report.findings:
        yield from _finding(finding)
    for name in ("proof", "periods", "considered"):
        yield from table_lines(report.tables[name])
    yield from _warnings(report.warnings)
    yield from _sections(SECTIONS, report.tables)
    for title, key in (("The plan as it was used", "plan"), ("The farm as it was used", "farm")):
        yield from (f"### {title}", "", *_block(json.dumps(manifest.get(key), indent=2, ensure_ascii=False)))


def _machine(machine: MachineBox) -> Iterator[str]:
    name = "Load generators" if machine.outside else f"Machine {machine.name}"
    about = ". ".join(part.rstrip(".") for part in (machine.words, machine.shared) if part)
    yield f"- **{escaped(name)}**" + (f" ({escaped(about)})" if about else "")
    for resource in machine.resources:
        yield f"  - {_resource(resource)}"
    for box in machine.boxes:
        yield f"  - **{escaped(box.tier)}** on {escaped(box.host)}"
        for resource in box.resources:
            yield f"    - {_resource(resource)}"


def _resource(resource: ResourceBox) -> str:
    mark = f" (**{resource.mark}**)" if resource.mark else ""
    return f"{escaped(resource.name)}: {resource.state}{mark}, {escaped(resource.words)}"


def _finding(finding: Finding) -> Iterator[str]:
    yield f"### {finding.title}: {escaped(finding.place)}"
    yield ""
    if finding.meaning:
        yield escaped(finding.meaning)
        yield ""
    for why in finding.why_not_more:
        yield from (escaped(why), "")
    for each in finding.evidence:
        compared = f" Compared with {escaped(each.threshold)}." if each.threshold else ""
        yield f"- {escaped(each.fact)} ({each.kind}).{compared}"
        yield ""
        yield from _block(each.query, "sh", indent="  ")


def _sections(sections: Iterable[Section], tables: Mapping[str, Table]) -> Iterator[str]:
    for section in sections:
        if not any(tables[name].rows or tables[name].empty for name in section.tables if name in tables):
            continue
        yield from (f"## {section.title}", "")
        for name in section.tables:
            if name in tables:
                yield from table_lines(tables[name])


def _compared_lines(report: ComparisonReport) -> Iterator[str]:
    for alarm in report.alarms:
        yield from (f"> **{escaped(alarm)}**", "")
    if report.content["bottleneck"]["why"]:
        yield from (escaped(report.content["bottleneck"]["why"]), "")
    rest = {name: table for name, table in report.tables.items() if name != "judged"}  # it stands above
    yield from _sections(COMPARED_SECTIONS, rest)
    yield from ("## Evidence of each side", "")
    for side in report.sides:
        yield from _side(side)
    yield from _warnings(report.content["warnings"])


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


def table_lines(table: Table) -> Iterator[str]:
    """A table under its heading; the sentence that replaces it when it is empty, if there is one."""
    if not (table.rows or table.empty):
        return
    yield from (f"### {escaped(table.title)}", "")
    if not table.rows:
        yield from (escaped(table.empty), "")
        return
    yield _row([escaped(column.title) for column in table.columns])
    yield _row(["---:" if column.numeric else "---" for column in table.columns])
    for cells in table.cells():
        yield _row([escaped(cell) for cell in cells])
    yield ""
    if table.note:
        yield from (escaped(table.note), "")


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _block(text: str, language: str = "json", indent: str = "") -> Iterator[str]:
    """A code block whose fence is longer than any run of backticks inside it."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    for line in (f"{fence}{language}", *text.splitlines(), fence):
        yield indent + line
    yield ""


def escaped(text: str) -> str:
    """Text on one line in which nothing acts as Markdown or HTML, but a command is shown as code."""
    parts = re.split(r"(`pinchpoint [^`|]*`)", one_line(escaped_bytes(text)))
    return "".join(
        part if at % 2 else re.sub(r"([\\`*_{}\[\]<>|#~])", r"\\\1", part) for at, part in enumerate(parts)
    )
