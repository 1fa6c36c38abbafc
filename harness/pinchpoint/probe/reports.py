"""Reports of a probe, and of a comparison of two: files from the saved ones alone, nothing measured again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pinchpoint.base.errors import InputError
from pinchpoint.probe import compared, tables, words
from pinchpoint.probe.compare import ProbeComparison
from pinchpoint.probe.compared_page import compared_page
from pinchpoint.probe.conduct import content
from pinchpoint.probe.figures import figures
from pinchpoint.probe.judge import judge
from pinchpoint.probe.page import page
from pinchpoint.probe.record import PROBE, Probe, load
from pinchpoint.report.markdown import escaped, table_lines
from pinchpoint.report.tables import Table


def _markdown(title: str, summary: str, shown: Sequence[Table], notes: Sequence[str]) -> str:
    lines = [f"# {escaped(title)}", "", escaped(summary), ""]
    for table in shown:
        lines += table_lines(table)
    if notes:
        lines += ["### Warnings", "", *(f"- {escaped(note)}" for note in notes), ""]
    return "\n".join(lines) + "\n"


def _probe_markdown(probe: Probe) -> str:
    verdict, found = judge(probe), figures(probe)
    shown = [
        tables.workloads(verdict, probe.options.line_s),
        tables.alike(verdict),
        tables.cells(found, verdict),
    ]
    notes = [*verdict.host_cache, *dict.fromkeys(probe.warnings)]
    said = " ".join(filter(None, (verdict.summary, words.distance(verdict, probe.declared))))
    return _markdown(f"{probe.suite} on {probe.where.label}", said, shown, notes)


def _compared_markdown(found: ProbeComparison) -> str:
    title = " and ".join(found.labels)
    notes = [*(f"what else differs: {one}" for one in found.confounders), *found.warnings]
    return _markdown(title, found.summary, [compared.table(found), compared.moved_table(found)], notes)


OF_PROBES: Mapping[str, Callable[[Probe], str]] = {
    "html": lambda probe: page(probe, judge(probe)),
    "json": lambda probe: json.dumps(content(probe, judge(probe)), indent=1) + "\n",
    "md": _probe_markdown,
}
OF_COMPARISONS: Mapping[str, Callable[[ProbeComparison], str]] = {
    "html": compared_page,
    "json": lambda found: json.dumps(found.to_json(), indent=1) + "\n",
    "md": _compared_markdown,
}


def write_reports(directory: Path, formats: Sequence[str], out: Path) -> list[Path]:
    """Write ``report.NAME`` of each format; their paths. Raises InputError."""
    if (directory / PROBE).exists():
        probe = load(directory)
        texts = {name: _offered(name, OF_PROBES)(probe) for name in formats}
    else:
        found = compared.load(directory)
        texts = {name: _offered(name, OF_COMPARISONS)(found) for name in formats}
    try:
        out.mkdir(parents=True, exist_ok=True)
        return [_written(out / f"report.{name}", text) for name, text in texts.items()]
    except OSError as error:
        raise InputError(
            f"{out}: cannot be written: {error.strerror}; give another folder with --out"
        ) from error


def _offered(name: str, formats: Mapping[str, Callable[[Any], str]]) -> Callable[[Any], str]:
    if name not in formats:
        raise InputError(f"--format: {name!r} is not offered for probes; allowed: {', '.join(formats)}")
    return formats[name]


def _written(path: Path, text: str) -> Path:
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
    return path
