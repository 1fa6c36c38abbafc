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
    texts = {name: FORMATS[name](report) for name in wanted}
    try:
        out.mkdir(parents=True, exist_ok=True)
        return [_written(out / f"report.{name}", text) for name, text in texts.items()]
    except OSError as error:
        raise InputError(
            f"{out}: cannot be written: {error.strerror}; give another folder with --out"
        ) from error


def _written(path: Path, content: str) -> Path:
    partial = path.with_name(f".{path.name}.partial")
    try:
        # A lone surrogate (a file name that is no text) has no UTF-8 form; it is written as \udcXX.
        partial.write_text(content, encoding="utf-8", errors="backslashreplace")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return path
