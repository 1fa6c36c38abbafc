"""Lists the report formats by name, one file per format, and writes reports to files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

from pinchpoint.base.errors import InputError
from pinchpoint.report import html, jsonfile, junit, markdown, pdf, pptx, xlsx
from pinchpoint.report.brief import Gathered
from pinchpoint.report.cover import PLAIN, Cover
from pinchpoint.store.write import writable, write_file
from pinchpoint_collectors.common.names import allowed


class Writer(Protocol):
    """Returns the content of a file for a run, a comparison or another report (``Gathered``)."""

    def __call__(self, report: Gathered, cover: Cover = PLAIN) -> str | bytes: ...


FORMATS: Mapping[str, Writer] = {
    "html": html.write,
    "pdf": pdf.write,
    "pptx": pptx.write,
    "xlsx": xlsx.write,
    "md": markdown.write,
    "json": jsonfile.write,
    "junit": junit.write,
}
"""Value of ``--format`` -> writer of ``report.NAME``."""
_ENDINGS = {"junit": "xml"}
"""File extensions that differ from the name of the format."""


def check_formats(names: Iterable[str]) -> None:
    """Raises ``InputError`` with a list of all formats if a name is not one of them."""
    for name in names:
        if name not in FORMATS:
            raise InputError(f"--format: {name!r} is not a report format; {allowed(name, FORMATS)}")


def write_reports(report: Gathered, formats: Iterable[str], out: Path, cover: Cover = PLAIN) -> list[Path]:
    """Write ``report.NAME`` for each format into a folder and return the paths. No file is left half-written.

    Raises:
        InputError: a format is unknown, or the folder is not writable.
    """
    wanted = list(formats)
    check_formats(wanted)
    contents = [FORMATS[name](report, cover) for name in wanted]
    paths = [out / f"report.{_ENDINGS.get(name, name)}" for name in wanted]
    with writable(out):
        out.mkdir(parents=True, exist_ok=True)
        for path, content in zip(paths, contents, strict=True):
            write_file(path, content)
    return paths
