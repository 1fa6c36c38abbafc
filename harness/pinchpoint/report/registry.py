"""The formats a report can be had in, by name; one file per format."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pinchpoint.base.errors import InputError
from pinchpoint.report import html, jsonfile, markdown
from pinchpoint.report.compared.report import ComparisonReport
from pinchpoint.report.compared.report import gather as gather_comparison
from pinchpoint.report.report import Report, gather
from pinchpoint.store.read import StoredRun


@dataclass(frozen=True, slots=True)
class Format:
    """A way to write a report.

    Attributes:
        name: what ``--format`` takes; the file is ``report.NAME``.
        write: the file's text from the gathered report.
        compare: the same of a comparison; None where this format is not offered for them.
    """

    name: str
    write: Callable[[Report], str]
    compare: Callable[[ComparisonReport], str] | None = None


def registered(formats: Iterable[Format]) -> dict[str, Format]:
    """Formats by name. Raises ``ValueError`` when two have the same."""
    found: dict[str, Format] = {}
    for each in formats:
        if each.name in found:
            raise ValueError(f"two report formats are named {each.name!r}")
        found[each.name] = each
    return found


FORMATS: Mapping[str, Format] = registered(
    (
        Format("html", html.write, html.compare),
        Format("json", jsonfile.write, jsonfile.compare),
        Format("md", markdown.write, markdown.compare),
    )
)


def format_named(name: str) -> Format:
    """The format of that name. Raises ``InputError`` that lists all of them."""
    if name in FORMATS:
        return FORMATS[name]
    near = difflib.get_close_matches(name, FORMATS, n=1)
    hint = f"; nearest: {near[0]}" if near else ""
    raise InputError(f"--format: {name!r} is not a report format; allowed: {', '.join(FORMATS)}{hint}")


def render(run: StoredRun, verdict: Mapping[str, Any], format_name: str) -> str:
    """The report of a run as text, from the saved files alone.

    Args:
        run: the run directory, read back.
        verdict: verdict.json's content.
        format_name: ``html``, ``json`` or ``md``.

    Raises:
        InputError: the format is not known, or the verdict is none.
    """
    return format_named(format_name).write(gather(run, verdict))


def write(run: StoredRun, verdict: Mapping[str, Any], format_name: str, folder: Path) -> Path:
    """Write ``report.NAME`` into ``folder``, whole or not at all, and return its path.

    Raises:
        InputError: the format is not known, or the verdict is none.
        OSError: the folder cannot be written to.
    """
    return _written(folder / f"report.{format_named(format_name).name}", render(run, verdict, format_name))


def render_comparison(content: Mapping[str, Any], format_name: str) -> str:
    """The report of a comparison as text, from comparison.json's content alone.

    Raises:
        InputError: the format is not known, or not offered for comparisons.
    """
    chosen = format_named(format_name)
    if chosen.compare is None:
        offered = ", ".join(each.name for each in FORMATS.values() if each.compare)
        raise InputError(f"--format: {format_name!r} is not offered for a comparison; allowed: {offered}")
    return chosen.compare(gather_comparison(content))


def write_comparison(content: Mapping[str, Any], format_name: str, folder: Path) -> Path:
    """Write ``report.NAME`` of a comparison into ``folder``, whole or not at all, and return its path.

    Raises:
        InputError: the format is not known, or not offered for comparisons.
        OSError: the folder cannot be written to.
    """
    text = render_comparison(content, format_name)
    return _written(folder / f"report.{format_name}", text)


def _written(path: Path, content: str) -> Path:
    partial = path.with_name(f".{path.name}.partial")
    try:
        # A lone surrogate (a file name that is no text) has no UTF-8 form; it is written as \udcXX.
        partial.write_text(content, encoding="utf-8", errors="backslashreplace")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return path
