"""Contract of an import format: its options, its samples, and the format itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Any, BinaryIO, Protocol, runtime_checkable

from pinchpoint_collectors.record import Sample


@dataclass(frozen=True, slots=True)
class MappedColumn:
    """A column of a CSV as a metric: value = cell x scale + offset.

    Attributes:
        instance: device, core, interface; ``""`` if there is only one.
        scale: factor to base units (0.001 for ms, 0.01 for per cent).
        offset: value added after scaling (1, with a scale of -0.01, makes "% idle" a busy ratio).
        weight: for a mean over operations, the column with operations per second; None: no such column.
        host: host of the values; None: the host of the whole file.
    """

    metric: str
    instance: str = ""
    scale: float = 1.0
    offset: float = 0.0
    weight: str | None = None
    host: str | None = None


@dataclass(frozen=True, slots=True)
class CsvMapping:
    """How a CSV in an unknown format is read.

    Attributes:
        time: column with the time of a row, the end of its interval.
        time_format: format of ``datetime.strptime``; ``"unix"``: seconds since 1970, ``"unix_ms"``:
            milliseconds; None: ISO 8601.
        columns: column -> metric; other columns are ignored.
        host: host of all rows, if there is no ``host_column``.
        host_column: column with the name of the host.
        interval_s: seconds that a row covers; None: the time since the previous row of the same host.
        delimiter: separator of cells.
        decimal: the decimal mark.
        thousands: thousands separator; None: derived from each number, if possible.
    """

    time: str
    columns: Mapping[str, MappedColumn]
    time_format: str | None = None
    host: str | None = None
    host_column: str | None = None
    interval_s: float | None = None
    delimiter: str = ","
    decimal: str = "."
    thousands: str | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """The user's options for a file.

    Attributes:
        zone: zone of times without one, and of times whose offset in the file is wrong; None: not given.
        names: counter names of a localised Windows -> their indexes in its registry
            (``perfmon.registry_names``); empty: not given.
        mapping: mapping of a CSV; None: not given.
        start_s: UTC seconds at which a file without times begins; None: not given.
        every_s: seconds between readings; None: not given.
    """

    zone: tzinfo | None = None
    names: Mapping[str, frozenset[int]] = field(default_factory=dict)
    mapping: CsvMapping | None = None
    start_s: float | None = None
    every_s: float | None = None


@dataclass(slots=True)
class FileFacts:
    """Facts about a file besides its samples. They are filled while the samples are read.

    Attributes:
        hosts: machine in the file (``""`` if there is none) -> facts for the inventory: ``cores``,
            ``usable_cores``, ``memory_bytes``, ``os``, ``kernel``, ``data_io``, ``not_measured``.
        notes: sentences for the reader: what was ignored, what was assumed.
        zone_assumed: whether times without a zone were read as UTC.
        utc_offset_s: the file's own offset of its times from UTC, if it has one.
        line: current line; None for a file that is read as a whole.
    """

    hosts: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    zone_assumed: bool = False
    utc_offset_s: int = 0
    line: int | None = None

    def note(self, sentence: str) -> None:
        """Add a note, unless it exists."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def facts(self, host: str) -> dict[str, Any]:
        """Return the facts of a machine, to which facts can be added."""
        return self.hosts.setdefault(host, {})


class Format(Protocol):
    """One format of another tool's files, named by ``--kind``."""

    name: str
    says: str
    """Short description of the format and of how to record it, for the list of kinds."""

    def recognises(self, head: str) -> bool:
        """Return whether a file with this start (a few thousand characters) is of this format."""
        ...

    def read(self, lines: Iterable[str], settings: Settings, value: FileFacts) -> Iterator[Sample]:
        """Yield the samples with the host names in the file, in any order. At the end ``facts`` is complete.

        Raises ``ForeignFileError`` with the line.
        """
        ...


@runtime_checkable
class BinaryFormat(Protocol):
    """One binary format of another tool's files."""

    name: str
    says: str
    """One line for ``--help`` (see ``Format.says``)."""

    def begins(self, head: bytes) -> bool:
        """Return whether a file with these first bytes (at most a million) is of this format."""
        ...

    def read(self, file: BinaryIO, settings: Settings, value: FileFacts) -> Iterator[Sample]:
        """Yield the samples of a file, whose bytes may be read several times (see ``Format.read``)."""
        ...
