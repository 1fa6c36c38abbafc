"""Holds the record of a probe: options, disk and measurements; ``probe.json`` is its file format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from pinchpoint.analysis.resources.disk.types import limits_words
from pinchpoint.base.errors import InputError
from pinchpoint.data.inputs import Limits
from pinchpoint.store import document, tool_histogram
from pinchpoint.store.document import Count, Form, NotBelow0, Time
from pinchpoint.store.write import writable, write_json
from pinchpoint_scenarios.storage_probe import Cell, CellFigures, CellSeries
from pinchpoint_scenarios.storage_probe.cell import Role

SCHEMA = "pinchpoint.probe/1"
PROBE = "probe.json"
LINE_S = 0.020
"""Latency line in seconds if none is given: the line for a data disk (docs/rules.md)."""
State = Literal["running", "finished", "interrupted"]


@dataclass(frozen=True, slots=True)
class Trial:
    """One measurement of one cell. None: not reported by the tool; ``failed`` says why all are None.

    Attributes:
        number: number of the repetition, from 1.
        started: UTC start of the measurement.
        seconds: duration of the measurement in seconds.
        reads_per_s: read I/Os per second; for a tool that creates files, operations per second.
        writes_per_s: write I/Os per second.
        read_bytes_per_s: bytes read per second.
        write_bytes_per_s: bytes written per second.
        latency: latency histogram in the format of ``operations.parquet`` (HdrHistogram V2, base64, µs).
        mean_s: mean latency in seconds.
        max_s: longest latency in seconds.
        series: rate and latency over time.
        failed: why the measurement failed; None if it succeeded.
    """

    number: int
    started: str
    seconds: float | None = None
    reads_per_s: float | None = None
    writes_per_s: float | None = None
    read_bytes_per_s: float | None = None
    write_bytes_per_s: float | None = None
    latency: str | None = None
    mean_s: float | None = None
    max_s: float | None = None
    series: CellSeries | None = None
    failed: str | None = None

    @classmethod
    def of(cls, number: int, started: str, figures: CellFigures) -> Trial:
        """Make a trial from the figures that a tool measured."""
        return cls(
            number=number,
            started=started,
            seconds=figures.seconds,
            reads_per_s=figures.reads_per_s,
            writes_per_s=figures.writes_per_s,
            read_bytes_per_s=figures.read_bytes_per_s,
            write_bytes_per_s=figures.write_bytes_per_s,
            latency=tool_histogram.histogram(figures.times_ns) if figures.times_ns else None,
            mean_s=figures.mean_s,
            max_s=figures.max_s,
            series=figures.series,
        )

    @property
    def iops(self) -> float | None:
        """Reads and writes per second; None if the tool reports neither."""
        return _sum(self.reads_per_s, self.writes_per_s)

    @property
    def bytes_per_s(self) -> float | None:
        """Bytes read and written per second; None if the tool reports neither."""
        return _sum(self.read_bytes_per_s, self.write_bytes_per_s)

    @property
    def figure(self) -> float | None:
        """The figure for comparing repetitions: I/Os per second, else bytes per second."""
        return self.bytes_per_s if self.iops is None else self.iops


@dataclass(frozen=True, slots=True)
class ProbeLocation:
    """The disk that was probed.

    Attributes:
        folder: the folder on the disk, resolved.
        host: the name of the machine.
        device: the kernel name of the whole disk; None if the folder is not on a block device.
        file_system: the type of the file system.
        model: the model of the disk; None if the kernel reports none.
        farm: the name of the farm; None if a folder was probed.
        disk: ``tier.role`` or ``tier.host.role`` in the farm; None if a folder was probed.
        machine: the machine type in the catalogue; None if the farm names none.
        emulated: the method that emulates the disk; None for a real disk.
        read_ahead_bytes: bytes that the kernel reads ahead through the page cache; None if not known.
    """

    folder: str
    host: str
    device: str | None = None
    file_system: str | None = None
    model: str | None = None
    farm: str | None = None
    disk: str | None = None
    machine: str | None = None
    emulated: str | None = None
    read_ahead_bytes: int | None = None

    @property
    def label(self) -> str:
        """The disk in words: ``sql.log of dev``, or the folder."""
        return f"{self.disk} of {self.farm or self.host}" if self.disk else self.folder


@dataclass(frozen=True, slots=True)
class DiskPrice:
    """The price of a disk, from the ``prices`` of its farm.

    Attributes:
        currency: the currency.
        per_month: the price of the whole disk, currency units a month.
    """

    currency: str
    per_month: float

    @property
    def words(self) -> str:
        """The price in words: ``19.50 EUR a month``."""
        return f"{self.per_month:,.2f} {self.currency} a month"


@dataclass(frozen=True, slots=True)
class DeclaredDisk:
    """The declared limits of a disk.

    Attributes:
        profile: the name of the catalogue entry; None if none was given.
        stripes: number of striped disks.
        limits: the caps; None if none are known.
        burst: the caps with burst credits; None if there are none.
        price: the price of the disk; None if not given.
    """

    profile: str | None = None
    stripes: int = 1
    limits: Limits | None = None
    burst: Limits | None = None
    price: DiskPrice | None = None

    @property
    def words(self) -> str:
        """The declaration in words: ``2 x azure/p30``, ``500 IOPS``; empty if nothing is declared."""
        if self.profile:
            return f"{self.stripes} x {self.profile}" if self.stripes > 1 else self.profile
        return limits_words(self.limits.iops, self.limits.bytes_per_s) if self.limits else ""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a probe.

    Attributes:
        repeat: number of repetitions.
        time_per_cell_s: seconds of measurement per cell; None if a cell ends when its work is done, or if not
            reported.
        size_bytes: size of the file in bytes; None if an imported file does not report it.
        line_s: the latency line in seconds.
        threads: threads of the tool, each with the queue depth of the suite.
    """

    repeat: int
    time_per_cell_s: float | None
    size_bytes: int | None
    line_s: float
    threads: int = 1

    @property
    def file_bytes(self) -> int:
        """Size of the file in bytes. Raises ValueError for an imported probe."""
        if self.size_bytes is None:
            raise ValueError("an imported probe is not measured here")
        return self.size_bytes


@dataclass(slots=True)
class Probe:
    """A running or ended probe.

    Attributes:
        suite: the name of the suite.
        where: the disk.
        options: the options of the probe.
        declared: the declared limits of the disk.
        started: UTC start of the probe.
        ended: UTC end of the probe; None while it is running.
        state: the state; a probe that was killed stays ``running``.
        versions: program -> version.
        prepared: bytes and seconds of writing the file before the measurements; None if no file was written.
        cells: cell -> its trials, in the order of the suite.
        warnings: warnings for the reader.
        imports: name, kind and SHA-256 of each imported file; empty for a probe that was measured here.
    """

    suite: str
    where: ProbeLocation
    options: Options
    declared: DeclaredDisk
    started: str
    ended: str | None = None
    state: State = "running"
    versions: dict[str, str] = field(default_factory=dict)
    prepared: dict[str, float] | None = None
    cells: dict[Cell, list[Trial]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    imports: list[dict[str, str]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The probe as plain JSON types."""
        content = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "cells"}
        if not self.imports:
            del content["imports"]
        content |= {name: asdict(content[name]) for name in ("where", "options", "declared")}
        content["cells"] = [
            {"name": cell.name, **asdict(cell), "trials": [asdict(trial) for trial in trials]}
            for cell, trials in self.cells.items()
        ]
        return {"schema": SCHEMA, **content}


class _Cell(Form):
    """A cell with its trials in probe.json."""

    workload: str
    block_bytes: Count | None
    read_ratio: NotBelow0 | None
    random_ratio: NotBelow0 | None
    outstanding: Annotated[int, Field(ge=1, lt=2**31)] | None
    role: Role
    trials: list[Trial]


class _SavedProbe(Form):
    """The content of probe.json without the derived parts (figures, verdict)."""

    suite: str
    where: ProbeLocation
    options: Options
    declared: DeclaredDisk
    started: Time
    ended: Time | None
    state: State
    versions: dict[str, str]
    prepared: dict[str, NotBelow0] | None
    cells: list[_Cell]
    warnings: list[str]
    imports: Annotated[list[dict[str, str]], Field(default_factory=list)]


def load(directory: Path) -> Probe:
    """Read the probe in a directory. Raises InputError."""
    if not (directory / PROBE).exists():
        raise InputError(
            f"{directory}: contains no {PROBE}, so it is not a probe; `pinchpoint probe` makes one"
        )
    kept: _SavedProbe = document.read_record(directory / PROBE, _SavedProbe, SCHEMA, "make the probe again")
    cells = {
        Cell(**{each.name: getattr(row, each.name) for each in fields(Cell)}): row.trials
        for row in kept.cells
    }
    return Probe(**{each.name: getattr(kept, each.name) for each in fields(Probe)} | {"cells": cells})


def save(directory: Path, content: Mapping[str, Any]) -> None:
    """Write ``probe.json`` completely or not at all. Raises InputError."""
    with writable(directory / PROBE):
        write_json(directory / PROBE, content)


def _sum(one: float | None, other: float | None) -> float | None:
    known = [value for value in (one, other) if value is not None]
    return sum(known) if known else None
