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
        instance: device, core, interface; ``""`` where there is only one.
        scale: into base units (0.001 for ms, 0.01 for per cent).
        offset: added after scaling (1, with a scale of -0.01, makes "% idle" a busy ratio).
        weight: for a mean of operations, the column with operations per second; None: no such column.
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
    """How to read a CSV that no format knows.

    Attributes:
        time: the column with the time of a row, the end of what it covers.
        time_format: as ``datetime.strptime`` has it; ``"unix"``: seconds since 1970, ``"unix_ms"``:
            milliseconds; None: ISO 8601.
        columns: column -> its metric; all others are left out.
        host: the host of all rows, or
        host_column: the column that names it.
        interval_s: seconds a row covers; None: the time since the row before of the same host.
        delimiter: between cells.
        decimal: the decimal mark.
        thousands: the mark between thousands; None: seen from each number, where it can be.
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
    """What a person says about a file beside its content.

    Attributes:
        zone: of times that name none, and of those whose file names an offset that is wrong; None: not given.
        names: a localised Windows' counter names -> their indices in its registry
            (``perfmon.registry_names``); empty: not given.
        mapping: of a CSV; None: not given.
        start_s: UTC seconds at which a file without times begins; None: not given.
        every_s: seconds between its readings; None: not given.
    """

    zone: tzinfo | None = None
    names: Mapping[str, frozenset[int]] = field(default_factory=dict)
    mapping: CsvMapping | None = None
    start_s: float | None = None
    every_s: float | None = None


@dataclass(slots=True)
class FileFacts:
    """What a file reports beside its samples; filled while they are read.

    Attributes:
        hosts: machine, as the file names it (``""`` where it does not) -> facts for the inventory:
            ``cores``, ``usable_cores``, ``memory_bytes``, ``os``, ``kernel``, ``data_io``, ``not_measured``.
        notes: sentences a reader must know: what was left out, what was taken for granted.
        zone_assumed: whether times without a zone were taken for UTC.
        utc_offset_s: how far its times are ahead of UTC, where the file says that itself.
        line: the one that is being read; None: of a file that is read as a whole.
    """

    hosts: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    zone_assumed: bool = False
    utc_offset_s: int = 0
    line: int | None = None

    def note(self, sentence: str) -> None:
        """Say it once."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def facts(self, host: str) -> dict[str, Any]:
        """The facts of a machine, to be added to."""
        return self.hosts.setdefault(host, {})


class Format(Protocol):
    """One kind of foreign file, as ``--kind`` names it."""

    name: str
    says: str
    """What it is and how to record it, in a few words, for the list of kinds."""

    def recognises(self, head: str) -> bool:
        """Whether a file that begins so (its first few thousand characters) is of this kind."""
        ...

    def read(self, lines: Iterable[str], settings: Settings, value: FileFacts) -> Iterator[Sample]:
        """The samples, host as the file names it, in any order; ``value`` is complete when they are.

        Raises ``ForeignFileError`` with the line.
        """
        ...


@runtime_checkable
class BinaryFormat(Protocol):
    """One kind of foreign file that is no text."""

    name: str
    says: str
    """One line for ``--help``; see ``Format.says``."""

    def begins(self, head: bytes) -> bool:
        """Whether a file with these first bytes (a million at most) is of this kind."""
        ...

    def read(self, file: BinaryIO, settings: Settings, value: FileFacts) -> Iterator[Sample]:
        """The samples of a file given as bytes, which may be read several times; see ``Format.read``."""
        ...
