"""bonnie++'s CSV, of versions 1.96 to 2: a line is one run."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

from ..cell import Cell
from ..tools.bonnie import FILES, FORMATS, THROUGHPUT, figure
from .record import NO_DIRECT, Result, ResultError, ResultFile, number, whole

_SIZES = re.compile(r"(\d+)([KMGT]?)")
_UNITS = {"": 2**20, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


class BonnieCsv:
    """Cells have the names of our suite; what took too little time (``+++++``) is not measured."""

    name = "bonnie"
    says = "the CSV that bonnie++ prints last, of versions 1.96 to 2"
    suite = "bonnie"

    def recognises(self, head: str) -> bool:
        """A line that begins with a version of the format and one of the program."""
        return any(_is_line(line) for line in head.splitlines()[:-1] or [head])

    def read(self, text: str) -> ResultFile:
        """See ``Kind``."""
        found = ResultFile("bonnie++", None)
        for at, line in enumerate(text.splitlines(), 1):
            if not re.match(r"\d+\.\d+\w*,", line.strip()):
                continue
            fields = next(csv.reader([line.strip().replace("\0", "")]))
            many = FORMATS.get(fields[0])
            if many is None:
                listed = ", ".join(FORMATS)
                raise ResultError(
                    f"its format is {fields[0]}; supported: {listed}; use bonnie++ 1.96 or later",
                    at,
                )
            if len(fields) != many:
                raise ResultError(
                    f"it has {len(fields)} fields; the format {fields[0]} has {many}: the line is cut off", at
                )
            _line(fields, found, at)
        if not found.results:
            raise ResultError(
                "no line of bonnie++'s CSV was found; it is the last line that bonnie++ prints and begins "
                "with 1.98, for example. Its tables in text and HTML are not read: they have fewer figures"
            )
        return found


def _is_line(line: str) -> bool:
    fields = line.split(",")
    return fields[0].strip() in FORMATS and len(fields) > 20


def _line(fields: Sequence[str], found: ResultFile, at: int) -> None:
    if found.host not in (None, fields[2]):
        raise ResultError(
            f"it is of several machines ({found.host}, {fields[2]}); import them one by one", at
        )
    found.version, found.host = fields[1], fields[2]
    size = _SIZES.fullmatch(fields[5])
    if size:
        found.size_bytes = whole(size[1], "file_size", at) * _UNITS[size[2]]
    shift = len(fields) - FORMATS["1.98"]
    for name, (place, longest) in (*THROUGHPUT.items(), *FILES.items()):
        text = fields[place + shift]
        cell = Cell(f"bonnie {name}")
        if not text:
            continue
        if text.startswith("+"):
            found.results.append(
                Result(
                    cell,
                    None,
                    failed="bonnie++ does not report it: too fast for its own clock; use a larger -s or -n",
                )
            )
            continue
        found.results.append(Result(cell, figure(name, number(text, name, at), fields[longest + shift])))
    found.note(NO_DIRECT.format(what="bonnie++", how="it never is"))
