"""Reads Iometer's results.csv of the versions 2004 to 1.1."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pinchpoint_collectors.common.legible import ForeignFileError

from ..cell import Cell, CellFigures, shape_name
from .record import CellResult, ResultFile, number, queue_depth, whole

_SPEC = "'Access specification name"
_PARTS = "'size,% of size"
_TABLE = "'Target Type,"
_STAMP = "'Time Stamp"
_VERSION = "'Version"
_BYTES = {"MBps (Decimal)": 1e6, "MiBps (Binary)": 2.0**20, "MBps (Binary)": 2.0**20, "MBps": 2.0**20}
"""Column with the throughput -> bytes per unit. The first existing column counts; ``MBps`` alone means 2^20
bytes."""
_NEEDED = (
    "Target Type",
    "Target Name",
    "Access Specification Name",
    "IOps",
    "Average Response Time",
    "Errors",
)
_SECTOR = 512
_ANOTHER = re.compile(r"\d+(,[\d.]+){7}")
"""Line of a further part of an access specification, which makes the specification a mix."""
_ALL = 100
_FIGURES = 4
"""Number of fields used of an access specification: size, share, reads, random."""


@dataclass(frozen=True, slots=True)
class _Spec:
    """An access specification. The fields are None if it is a mix or missing in the file."""

    block_bytes: int | None = None
    read_ratio: float | None = None
    random_ratio: float | None = None


@dataclass(slots=True)
class _Header:
    """The header lines above the current line."""

    specs: dict[str, _Spec] = field(default_factory=dict)
    header: Sequence[str] = ()
    name: str = ""
    started: datetime | None = None

    def line(self, line: str, before: str, file: ResultFile, at: int) -> None:
        """Process one line. Raises ForeignFileError."""
        if line.startswith(_TABLE):
            self.header = _header(line, at)
        elif line.startswith(("ALL,", "DISK,")):
            _row(line, self.header, self.specs, self.started, file, at)
        elif line.startswith("'"):
            return
        elif before == _VERSION:
            file.version = line
        elif before == _STAMP:
            self.started = _time(line)
        elif before.startswith(_SPEC):
            self.name = line.rpartition(",")[0]
        elif before.startswith(_PARTS):
            self.specs[self.name] = _spec(line, at)
        elif self.name and _ANOTHER.match(line):
            self.specs[self.name] = _Spec()


class IometerCsv:
    """Reads Iometer's results.csv: each row for all targets together is one cell.

    The queue depth is that of one target times the number of targets.
    """

    name = "iometer"
    says = "Iometer's results.csv"
    suite = "iometer"

    def recognises(self, head: str) -> bool:
        """Return whether the first line is that of an Iometer file."""
        return head.lstrip("\ufeff \r\n").startswith("'Test Type,Test Description")

    def read(self, text: str) -> ResultFile:
        file = ResultFile("Iometer", None)
        seen = _Header()
        before = ""
        for at, line in enumerate((each.strip() for each in text.splitlines()), 1):
            seen.line(line, before, file, at)
            before = line
        if not file.results:
            raise ForeignFileError(
                "no row `ALL,All,...` with results was found: the file is cut off, or no test ended; export "
                "results.csv again"
            )
        return file


def _header(line: str, at: int) -> Sequence[str]:
    """Return the column names of a table. Raises ForeignFileError if a needed column is missing."""
    names = line.removeprefix("'").split(",")
    if missing := [name for name in _NEEDED if name not in names]:
        raise ForeignFileError(
            f"the columns {', '.join(missing)} are missing: the line is cut off, or was edited; allowed: "
            "results.csv of Iometer 2004 to 1.1, as it was written",
            at,
        )
    return names


def _row(
    line: str,
    header: Sequence[str],
    specs: Mapping[str, _Spec],
    started: datetime | None,
    file: ResultFile,
    at: int,
) -> None:
    if not header:
        raise ForeignFileError(
            "a row of results stands before the line 'Target Type,...; export results.csv again", at
        )
    cells = next(csv.reader([line.replace("\0", "")]))
    extra = len(cells) - len(header)
    if extra > 0:  # the name of a specification may contain commas
        cells = [*cells[:2], ",".join(cells[2 : 3 + extra]), *cells[3 + extra :]]
    if extra < 0:
        raise ForeignFileError(
            f"it has {len(cells)} cells, the header {len(header)}: the line is cut off; export results.csv "
            "again",
            at,
        )
    row = dict(zip(header, cells, strict=True))
    if row["Target Type"] == "DISK":
        if row["Target Name"] not in file.paths:
            file.paths.append(row["Target Name"])
        if sectors := row.get("Maximum Size"):
            file.size_bytes = whole(sectors, "Maximum Size", at) * _SECTOR or file.size_bytes
        return
    file.results.append(
        _result(row, specs.get(row["Access Specification Name"].strip(), _Spec()), started, at)
    )


def _result(row: Mapping[str, str], spec: _Spec, started: datetime | None, at: int) -> CellResult:
    def value(name: str) -> float:
        return number(row.get(name), name, at)

    unit = next((unit for unit in _BYTES if f"Read {unit}" in row), None)
    if unit is None:
        raise ForeignFileError(
            "no column `Read MBps` was found; allowed: results.csv of Iometer 2004 to 1.1", at
        )
    outstanding = _outstanding(row, at)
    if spec.block_bytes is None or spec.read_ratio is None or spec.random_ratio is None:
        cell = Cell(row["Access Specification Name"].strip() or "several", None, None, None, outstanding)
    else:
        name = shape_name(spec.block_bytes, spec.read_ratio, spec.random_ratio)
        cell = Cell(name, spec.block_bytes, spec.read_ratio, spec.random_ratio, outstanding)
    if errors := value("Errors"):
        return CellResult(cell, None, started, f"Iometer counted {errors:.0f} errors")
    if not value("IOps"):
        return CellResult(cell, None, started, "Iometer reports 0 I/Os per second")
    return CellResult(
        cell,
        CellFigures(
            seconds=None,
            reads_per_s=value("Read IOps"),
            writes_per_s=value("Write IOps"),
            read_bytes_per_s=value(f"Read {unit}") * _BYTES[unit],
            write_bytes_per_s=value(f"Write {unit}") * _BYTES[unit],
            mean_s=value("Average Response Time") / 1000 or None,
            max_s=value("Maximum Response Time") / 1000 or None,
        ),
        started,
    )


def _outstanding(row: Mapping[str, str], at: int) -> int | None:
    """Return the number of outstanding I/Os.

    None if the targets differ (a negative number), or if the file does not contain the number.
    """
    depth, disks = (row.get(name, "") for name in ("Queue Depth", "# Disks"))
    if not (depth.isdecimal() and disks.isdecimal()):
        return None
    return queue_depth(whole(depth, "Queue Depth", at) * whole(disks, "# Disks", at), at)


def _spec(line: str, at: int) -> _Spec:
    """Read the line ``size,% of size,% reads,% random,...`` of an access specification."""
    parts = line.split(",")
    if len(parts) < _FIGURES:
        raise ForeignFileError(
            "an access specification has fewer than 4 figures; export results.csv again", at
        )
    size, share, reads, random = (number(part, "an access specification", at) for part in parts[:_FIGURES])
    return _Spec(int(size), reads / 100, random / 100) if share == _ALL and size else _Spec()


def _time(text: str) -> datetime | None:
    """Return the local time from ``2009-03-04 15:02:10:123``; None if the text is not a time."""
    try:
        return datetime.strptime(text.rpartition(":")[0], "%Y-%m-%d %H:%M:%S")  # noqa: DTZ007 -- the caller knows the zone
    except ValueError:
        return None
