"""The contract of an import format: its options, its samples, and the format itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Any, BinaryIO, Protocol, runtime_checkable

from pinchpoint_collectors.record import Sample


@dataclass(frozen=True, slots=True)
class MappedColumn:
    """One column of a CSV as one of our metrics: value = cell x scale + offset.

    Attributes:
        instance: device, core, interface; ``""`` if there is only one.
        scale: into base units (0.001 for ms, 0.01 for per cent).
        offset: added after scaling (1, with a scale of -0.01, makes "% idle" a busy ratio).
        weight: for a mean over operations, the column with operations per second; None: no such column.
        host: None: the host of the whole file.
    """

    metric: str
    instance: str = ""
    scale: float = 1.0
    offset: float = 0.0
    weight: str | None = None
    host: str | None = None


@dataclass(frozen=True, slots=True)
class CsvMapping:
    """How to read a CSV in an unknown format.

    Attributes:
        time: the column with a row's time, the end of its interval.
        time_format: format of ``datetime.strptime``; ``"unix"``: seconds since 1970, ``"unix_ms"``:
            milliseconds; None: ISO 8601.
        columns: column -> its metric; other columns are ignored.
        host: the host of all rows, or
        host_column: the column with the host's name.
        interval_s: seconds a row covers; None: the time since the row before of the same host.
        delimiter: between cells.
        decimal: the decimal mark.
        thousands: the mark between thousands; None: derived from each number, if possible.
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
    """What the user declares about a file.

    Attributes:
        zone: zone of times without one, and of times whose offset in the file is wrong; None: not given.
        names: counter names of a localised Windows -> their indexes in its registry
            (``perfmon.registry_names``); empty: not given.
        mapping: of a CSV; None: not given.
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
    """Facts of a file besides its samples; filled while they are read.

    Attributes:
        hosts: machine in the file (``""`` if there is none) -> facts for the inventory: ``cores``,
            ``usable_cores``, ``memory_bytes``, ``os``, ``kernel``, ``data_io``, ``not_measured``.
        notes: sentences for the reader: what was ignored, what was assumed.
        zone_assumed: whether times without a zone were read as UTC.
        utc_offset_s: the file's own offset of its times from UTC, if it has one.
        line: the present line; None for a file that is read as a whole.
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
        """The facts of a machine, to be added to."""
        return self.hosts.setdefault(host, {})


class Format(Protocol):
    """One kind of foreign file, named by ``--kind``."""

    name: str
    says: str
    """What the kind is and how to record it, in a few words, for the list of kinds."""

    def recognises(self, head: str) -> bool:
        """Whether a file with this beginning (a few thousand characters) is of this kind."""
        ...

    def read(self, lines: Iterable[str], settings: Settings, value: FileFacts) -> Iterator[Sample]:
        """The samples with the file's host names, in any order; ``facts`` is complete at their end.

        Raises ``ForeignFileError`` with the line.
        """
        ...


@runtime_checkable
class BinaryFormat(Protocol):
    """One kind of binary foreign file."""

    name: str
    says: str
    """One line for ``--help``; see ``Format.says``."""

    def begins(self, head: bytes) -> bool:
        """Whether a file with these first bytes (at most a million) is of this kind."""
        ...

    def read(self, file: BinaryIO, settings: Settings, value: FileFacts) -> Iterator[Sample]:
        """The samples of a file given as bytes, which may be read several times; see ``Format.read``."""
        ...
