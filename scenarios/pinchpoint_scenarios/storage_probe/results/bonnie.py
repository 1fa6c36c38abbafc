"""Reads bonnie++'s CSV of the versions 1.96 to 2. Each line is one run."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence

from pinchpoint_collectors.common.legible import ForeignFileError

from ..cell import Cell, CellFigures
from .record import NO_DIRECT, CellResult, ResultFile, number, whole

FORMATS: Mapping[str, int] = {"1.96": 48, "1.97": 48, "1.98": 50}
"""Format version -> number of fields. Field numbers below are those of 1.98, which has two more fields before
the first figure."""
TOO_FAST = "+"
"""bonnie++ prints ``+++++`` for a test that took less than half a second. Such a test counts as not
measured."""

THROUGHPUT: Mapping[str, tuple[int, int]] = {
    "block write": (11, 39),
    "rewrite": (13, 40),
    "block read": (17, 42),
    "seeks": (19, 43),
}
"""Test on one large file -> field of its rate and field of its longest latency."""

FILES: Mapping[str, tuple[int, int]] = {
    "create files in order": (26, 44),
    "read files in order": (28, 45),
    "delete files in order": (30, 46),
    "create files at random": (32, 47),
    "read files at random": (34, 48),
    "delete files at random": (36, 49),
}
"""Test on small files -> field of its rate (files per second) and field of its longest latency."""

_TIMES = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_LATENCY = re.compile(r"(\d+)(us|ms|s)")
_SIZES = re.compile(r"(\d+)([KMGT]?)")
_UNITS = {"": 2**20, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


class BonnieCsv:
    """Reads bonnie++'s CSV into cells of the suite ``bonnie``. A value of ``+++++`` is not measured."""

    name = "bonnie"
    says = "the CSV that bonnie++ prints last, of versions 1.96 to 2"
    suite = "bonnie"

    def recognises(self, head: str) -> bool:
        """Return whether a line begins with a known version of the CSV format and has enough fields."""
        return any(_is_line(line) for line in head.splitlines()[:-1] or [head])

    def read(self, text: str) -> ResultFile:
        file = ResultFile("bonnie++", None)
        for at, line in enumerate(text.splitlines(), 1):
            if not re.match(r"\d+\.\d+\w*,", line.strip()):
                continue
            fields = next(csv.reader([line.strip().replace("\0", "")]))
            many = FORMATS.get(fields[0])
            if many is None:
                listed = ", ".join(FORMATS)
                raise ForeignFileError(
                    f"its format is {fields[0]}; supported: {listed}; use bonnie++ 1.96 or later",
                    at,
                )
            if len(fields) != many:
                raise ForeignFileError(
                    f"it has {len(fields)} fields; the format {fields[0]} has {many}: the line is cut off", at
                )
            _line(fields, file, at)
        if not file.results:
            raise ForeignFileError(
                "no line of bonnie++'s CSV was found; it is the last line that bonnie++ prints and begins "
                "with 1.98, for example. Its tables in text and HTML are not read: they have fewer figures"
            )
        return file


def _is_line(line: str) -> bool:
    fields = line.split(",")
    return fields[0].strip() in FORMATS and len(fields) > 20


def _line(fields: Sequence[str], file: ResultFile, at: int) -> None:
    if file.host not in (None, fields[2]):
        raise ForeignFileError(
            f"it is of several machines ({file.host}, {fields[2]}); import them one by one", at
        )
    file.version, file.host = fields[1], fields[2]
    size = _SIZES.fullmatch(fields[5])
    if size:
        file.size_bytes = whole(size[1], "file_size", at) * _UNITS[size[2]]
    shift = len(fields) - FORMATS["1.98"]
    for name, (place, longest) in (*THROUGHPUT.items(), *FILES.items()):
        text = fields[place + shift]
        cell = Cell(f"bonnie {name}")
        if not text:
            continue
        if text.startswith(TOO_FAST):
            file.results.append(
                CellResult(
                    cell,
                    None,
                    failed="bonnie++ does not report it: too fast for its own clock; use a larger -s or -n",
                )
            )
            continue
        file.results.append(CellResult(cell, figure(name, number(text, name, at), fields[longest + shift])))
    file.note(NO_DIRECT.format(what="bonnie++", how="it never is"))


def figure(name: str, value: float, longest: str) -> CellFigures:
    """Return a figure in base units.

    bonnie++ gives large files in KiB per second, seeks in seeks per second, and small files in files per
    second.
    """
    rate, longest_s = value * 1024, _seconds(longest)
    if name == "block write":
        return CellFigures(None, read_bytes_per_s=0.0, write_bytes_per_s=rate, max_s=longest_s)
    if name == "block read":
        return CellFigures(None, read_bytes_per_s=rate, write_bytes_per_s=0.0, max_s=longest_s)
    if name == "rewrite":  # a rewrite reads and writes each byte
        return CellFigures(None, read_bytes_per_s=rate, write_bytes_per_s=rate, max_s=longest_s)
    if name.startswith(("read", "seeks")):
        return CellFigures(None, reads_per_s=value, writes_per_s=0.0, max_s=longest_s)
    return CellFigures(None, reads_per_s=0.0, writes_per_s=value, max_s=longest_s)


def _seconds(text: str) -> float | None:
    match = _LATENCY.fullmatch(text)
    return int(match[1]) * _TIMES[match[2]] if match else None
