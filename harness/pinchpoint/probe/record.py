"""The record of a probe: options, place and measurements; ``probe.json`` is its codec."""

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
"""The latency that is looked for where no other is asked for: a data disk's (docs/rules.md)."""
State = Literal["running", "finished", "interrupted"]


@dataclass(frozen=True, slots=True)
class Trial:
    """One measurement of one cell. None: not reported by the tool; ``failed`` has the reason if nothing is.

    Attributes:
        number: which repetition, from 1.
        started: UTC.
        seconds: how long it was measured.
        reads_per_s: I/Os per second; of making files, operations.
        writes_per_s: likewise.
        read_bytes_per_s: bytes per second.
        write_bytes_per_s: likewise.
        latency: histogram, as ``operations.parquet`` has them (HdrHistogram V2, base64, µs).
        mean_s: mean latency.
        max_s: the longest.
        series: how it went over time.
        failed: why it was not measured.
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
        """The figures that a tool measured."""
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
        """Reads and writes; None if the tool reports neither."""
        return _sum(self.reads_per_s, self.writes_per_s)

    @property
    def bytes_per_s(self) -> float | None:
        """Likewise."""
        return _sum(self.read_bytes_per_s, self.write_bytes_per_s)

    @property
    def figure(self) -> float | None:
        """The figure that repetitions are compared by: I/Os per second; bytes if the tool reports no I/Os."""
        return self.bytes_per_s if self.iops is None else self.iops


@dataclass(frozen=True, slots=True)
class ProbeLocation:
    """The disk that was probed.

    Attributes:
        folder: as the user gave it, resolved.
        host: the machine's name.
        device: the whole disk by its kernel name; None if no block device is behind the folder.
        file_system: its type.
        model: the disk's model, where the kernel knows one.
        farm: the farm's name, where the probe was of a farm's disk.
        disk: ``tier.role``, likewise.
        machine: the machine's type in the catalogue, where the farm names one.
        emulated: how an emulated disk is made; None of any other.
        read_ahead_bytes: how far the kernel reads ahead of sequential reads through the page cache; None: not
            known.
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
        """``sql.log of dev``, or the folder."""
        return f"{self.disk} of {self.farm or self.host}" if self.disk else self.folder


@dataclass(frozen=True, slots=True)
class DiskPrice:
    """The price of a disk, by its farm's ``prices``.

    Attributes:
        currency: its name.
        per_month: of the whole disk.
    """

    currency: str
    per_month: float

    @property
    def words(self) -> str:
        """``19.50 EUR a month``."""
        return f"{self.per_month:,.2f} {self.currency} a month"


@dataclass(frozen=True, slots=True)
class DeclaredDisk:
    """The declared limits of the disk.

    Attributes:
        profile: the catalogue's entry, where one was named.
        stripes: this many of them.
        limits: its caps; None if none are known.
        burst: those on credits; None without one.
        price: what it costs; None if no price is given.
    """

    profile: str | None = None
    stripes: int = 1
    limits: Limits | None = None
    burst: Limits | None = None
    price: DiskPrice | None = None

    @property
    def words(self) -> str:
        """``2 x azure/p30``, ``500 IOPS``; empty if nothing is declared."""
        if self.profile:
            return f"{self.stripes} x {self.profile}" if self.stripes > 1 else self.profile
        return limits_words(self.limits.iops, self.limits.bytes_per_s) if self.limits else ""


@dataclass(frozen=True, slots=True)
class Options:
    """How the suite was run.

    Attributes:
        repeat: repetitions.
        time_per_cell_s: how long each cell was measured; None: until its work was done, or not reported.
        size_bytes: size of the file; None: not reported by the file that was imported.
        line_s: the latency that is looked for.
        threads: of the tool, each with the suite's queue depth.
    """

    repeat: int
    time_per_cell_s: float | None
    size_bytes: int | None
    line_s: float
    threads: int = 1

    @property
    def file_bytes(self) -> int:
        """Size of the file of a probe that is measured here. Raises ValueError of one that was imported."""
        if self.size_bytes is None:
            raise ValueError("an imported probe is not measured here")
        return self.size_bytes


@dataclass(slots=True)
class Probe:
    """A probe, while it is made and after.

    Attributes:
        suite: its suite's name.
        where: the disk.
        options: how.
        declared: what the disk is said to be able to do.
        started: UTC.
        ended: UTC; None while it is running.
        state: ``running`` also of one that was killed.
        versions: program -> version.
        prepared: bytes and seconds of writing the file, as a user meets them; None if nothing was written.
        cells: cell -> its trials, in the suite's order.
        warnings: what a reader must know.
        imports: file, kind and SHA-256 of each file it was read from; empty of one that was measured here.
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
        """As plain JSON types."""
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
    """A cell and what was measured of it, as in probe.json."""

    workload: str
    block_bytes: Count | None
    read_ratio: NotBelow0 | None
    random_ratio: NotBelow0 | None
    outstanding: Annotated[int, Field(ge=1, lt=2**31)] | None
    role: Role
    trials: list[Trial]


class _SavedProbe(Form):
    """probe.json, without what was added for readers (figures, verdict)."""

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
    """A probe's directory, read back. Raises InputError."""
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
    """Write ``probe.json`` whole or not at all. Raises InputError."""
    with writable(directory / PROBE):
        write_json(directory / PROBE, content)


def _sum(one: float | None, other: float | None) -> float | None:
    known = [value for value in (one, other) if value is not None]
    return sum(known) if known else None
