"""The Markdown format: the report as text, for a ticket, a wiki or a mail."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from pinchpoint.base import units, wording
from pinchpoint.report.clock import day_and_time
from pinchpoint.report.evidence import Finding
from pinchpoint.report.picture import Machine, Resource
from pinchpoint.report.report import Report
from pinchpoint.report.tables import Table

_SECTIONS = (
    (
        "Load",
        (
            "levels",
            "drift",
            "checkpoints",
            "scenarios",
            "similarity",
            "replayed",
            "crawl",
            "crawl_stages",
            "crawl_log",
            "bursts",
            "writes",
            "probes",
            "errors",
            "operations",
        ),
    ),
    ("Tiers", ("demand", "disks", "cpus", "stores")),
    ("Data quality", ("generators", "collectors", "clocks", "blind", "imports", "incidents", "not_measured")),
    ("Environment", ("hosts", "host_disks", "versions", "content")),
)


def write(report: Report) -> str:
    """The document, without the charts: those are in the page, their values in report.json."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    manifest = report.run.manifest
    farm = manifest.get("farm", {}).get("name") or "unnamed"
    yield f"# {escaped(report.headline)}"
    yield ""
    started = day_and_time(manifest.get("started")) or "start not recorded"
    length = units.seconds(report.clock.length_s)
    yield f"{escaped(str(manifest.get('name') or 'Run'))} on farm {escaped(str(farm))}, {started}, {length}."
    for alarm in report.alarms:
        yield ""
        yield f"> **{escaped(alarm)}**"
    yield ""
    yield from _verdict(report)
    if report.tables["advice"].rows:
        yield from ("## What to do", "", *table_lines(report.tables["advice"]))
    yield "## The farm"
    yield ""
    for machine in report.machines:
        yield from _machine(machine)
    yield ""
    yield "## Evidence"
    yield ""
    for finding in report.findings:
        yield from _finding(finding)
    for name in ("proof", "objectives", "periods", "considered"):
        yield from table_lines(report.tables[name])
    if report.warnings:
        yield from ("### Warnings", "", *(f"- {escaped(warning)}" for warning in report.warnings), "")
    for title, names in _SECTIONS:
        yield from (f"## {title}", "")
        for name in names:
            yield from table_lines(report.tables[name])
    for title, key in (("The plan as it was used", "plan"), ("The farm as it was used", "farm")):
        yield from (f"### {title}", "", *_block(json.dumps(manifest.get(key), indent=2, ensure_ascii=False)))


def _verdict(report: Report) -> Iterator[str]:
    verdict = report.verdict
    yield f"- Outcome: **{wording.OUTCOME[str(verdict['outcome'])]}**"
    blame = verdict.get("bottleneck")
    if blame and blame.get("confidence"):
        yield f"- Confidence: **{blame['confidence']}**"
    if verdict.get("headroom_ratio") is not None:
        yield f"- Headroom: {units.percent(verdict['headroom_ratio'])}"
    if report.next_words:
        yield f"- {escaped(report.next_words)}"
    for name, rate in (verdict.get("capacity_at_least_per_s") or {}).items():
        yield f"- {escaped(name)}: at least {units.per_second(rate)} were served"
    if report.proof_words:
        yield f"- {escaped(report.proof_words)}"
    if verdict.get("experiment"):
        yield f"- What would decide it: {escaped(str(verdict['experiment']))}"
    yield ""
    if report.lead:
        yield escaped(report.lead)
        yield ""


def _machine(machine: Machine) -> Iterator[str]:
    name = "Load generators" if machine.outside else f"Machine {machine.name}"
    about = ". ".join(part.rstrip(".") for part in (machine.words, machine.shared) if part)
    yield f"- **{escaped(name)}**" + (f" ({escaped(about)})" if about else "")
    for resource in machine.resources:
        yield f"  - {_resource(resource)}"
    for box in machine.boxes:
        yield f"  - **{escaped(box.tier)}** on {escaped(box.host)}"
        for resource in box.resources:
            yield f"    - {_resource(resource)}"


def _resource(resource: Resource) -> str:
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
    """Text from a farm, so that nothing in it acts as Markdown or HTML, on one line."""
    one_line = " ".join(text.split())
    return re.sub(r"([\\`*_{}\[\]<>|#~])", r"\\\1", one_line)
