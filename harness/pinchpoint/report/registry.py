"""The formats a report can be had in, by name; one file per format. Reports as files."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from pinchpoint.base.errors import InputError
from pinchpoint.report import html, jsonfile, markdown
from pinchpoint.report.comparison import ComparisonReport
from pinchpoint.report.document import PlainReport
from pinchpoint.report.report import Report
from pinchpoint.store.write import writable, write_text

Gathered = Report | ComparisonReport | PlainReport
FORMATS: Mapping[str, Callable[[Gathered], str]] = {
    "html": html.write,
    "json": jsonfile.write,
    "md": markdown.write,
}
"""What ``--format`` takes -> the text of the file ``report.NAME``."""


def check_formats(names: Iterable[str]) -> None:
    """Raises ``InputError`` that lists all formats where one of these is none."""
    for name in names:
        if name not in FORMATS:
            near = difflib.get_close_matches(name, FORMATS, n=1)
            hint = f"; nearest: {near[0]}" if near else ""
            allowed = ", ".join(FORMATS)
            raise InputError(f"--format: {name!r} is not a report format; allowed: {allowed}{hint}")


def write_reports(report: Gathered, formats: Iterable[str], out: Path) -> list[Path]:
    """Write ``report.NAME`` of each format into a folder, each whole or not at all; their paths.

    Raises:
        InputError: a format is not known, or the folder cannot be written to.
    """
    wanted = list(formats)
    check_formats(wanted)
    texts = [FORMATS[name](report) for name in wanted]
    paths = [out / f"report.{name}" for name in wanted]
    with writable(out):
        out.mkdir(parents=True, exist_ok=True)
        for path, text in zip(paths, texts, strict=True):
            write_text(path, text)
    return paths
