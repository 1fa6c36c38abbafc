"""The formats a report can be had in, by name; one file per format."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pinchpoint.errors import InputError
from pinchpoint.report import html, jsonfile, markdown
from pinchpoint.report.report import Report, gather
from pinchpoint.store.read import StoredRun


@dataclass(frozen=True, slots=True)
class Format:
    """A way to write a report.

    Attributes:
        name: what ``--format`` takes; the file is ``report.NAME``.
        write: the file's text from the gathered report.
    """

    name: str
    write: Callable[[Report], str]


def registered(formats: Iterable[Format]) -> dict[str, Format]:
    """Formats by name. Raises ``ValueError`` when two have the same."""
    found: dict[str, Format] = {}
    for each in formats:
        if each.name in found:
            raise ValueError(f"two report formats are named {each.name!r}")
        found[each.name] = each
    return found


FORMATS: Mapping[str, Format] = registered(
    (Format("html", html.write), Format("json", jsonfile.write), Format("md", markdown.write))
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
    path = folder / f"report.{format_named(format_name).name}"
    partial = path.with_name(f".{path.name}.partial")
    content = render(run, verdict, format_name)
    try:
        # A lone surrogate (a file name that is no text) has no UTF-8 form; it is written as \udcXX.
        partial.write_text(content, encoding="utf-8", errors="backslashreplace")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return path
