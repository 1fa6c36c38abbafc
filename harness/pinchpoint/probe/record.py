"""One probe: what was asked for, where, and all that was measured; ``probe.json`` is its codec."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from pinchpoint.analysis.disk_types import limits_words
from pinchpoint.analysis.inputs import Limits
from pinchpoint.base.errors import InputError
from pinchpoint.probe import times
from pinchpoint.store.write import write_json
from pinchpoint_scenarios.storage_probe import Cell, Measured, Series

SCHEMA = "pinchpoint.probe/1"
PROBE = "probe.json"
LINE_S = 0.020
"""The latency that is looked for where no other is asked for: a data disk's (METHOD, thresholds)."""
State = Literal["running", "finished", "interrupted"]


@dataclass(frozen=True, slots=True)
class Trial:
    """One measurement of one cell. None: not told by the tool; ``failed`` says why there is nothing at all.

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
    series: Series | None = None
    failed: str | None = None

    @classmethod
    def of(cls, number: int, started: str, found: Measured) -> Trial:
        """What a tool measured."""
        return cls(
            number=number,
            started=started,
            seconds=found.seconds,
            reads_per_s=found.reads_per_s,
            writes_per_s=found.writes_per_s,
            read_bytes_per_s=found.read_bytes_per_s,
            write_bytes_per_s=found.write_bytes_per_s,
            latency=times.histogram(found.times_ns) if found.times_ns else None,
            mean_s=found.mean_s,
            max_s=found.max_s,
            series=found.series,
        )

    @property
    def iops(self) -> float | None:
        """Reads and writes; None where the tool tells neither."""
        return _sum(self.reads_per_s, self.writes_per_s)

    @property
    def bytes_per_s(self) -> float | None:
        """Likewise."""
        return _sum(self.read_bytes_per_s, self.write_bytes_per_s)

    @property
    def figure(self) -> float | None:
        """What repetitions are compared by: I/Os per second, bytes where the tool tells no I/Os."""
        return self.bytes_per_s if self.iops is None else self.iops


@dataclass(frozen=True, slots=True)
class Where:
    """The disk that was probed.

    Attributes:
        folder: as the user gave it, resolved.
        host: the machine's name.
        device: the whole disk by its kernel name; None where no block device is behind the folder.
        file_system: its type.
        model: the disk's model, where the kernel knows one.
        farm: the farm's name, where the probe was of a farm's disk.
        disk: ``tier.role``, likewise.
    """

    folder: str
    host: str
    device: str | None = None
    file_system: str | None = None
    model: str | None = None
    farm: str | None = None
    disk: str | None = None

    @property
    def label(self) -> str:
        """``sql.log of dev``, or the folder."""
        return f"{self.disk} of {self.farm}" if self.disk else self.folder


@dataclass(frozen=True, slots=True)
class Declared:
    """What the disk is said to be able to do.

    Attributes:
        profile: the catalogue's entry, where one was named.
        stripes: so many of them.
        limits: its caps; None where none are known.
        burst: those on credits; None where there are none.
    """

    profile: str | None = None
    stripes: int = 1
    limits: Limits | None = None
    burst: Limits | None = None

    @property
    def words(self) -> str:
        """``2 x azure/p30``, ``500 IOPS``; empty where nothing is declared."""
        if self.profile:
            return f"{self.stripes} x {self.profile}" if self.stripes > 1 else self.profile
        return limits_words(self.limits.iops, self.limits.bytes_per_s) if self.limits else ""


@dataclass(frozen=True, slots=True)
class Options:
    """How the suite was run.

    Attributes:
        repeat: repetitions.
        time_per_cell_s: how long each cell was measured; None: until its work was done.
        size_bytes: size of the file.
        line_s: the latency that is looked for.
    """

    repeat: int
    time_per_cell_s: float | None
    size_bytes: int
    line_s: float


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
        prepared: bytes and seconds of writing the file, as a user meets them; None where nothing was written.
        cells: cell -> its trials, in the suite's order.
        warnings: what a reader must know.
    """

    suite: str
    where: Where
    options: Options
    declared: Declared
    started: str
    ended: str | None = None
    state: State = "running"
    versions: dict[str, str] = field(default_factory=dict)
    prepared: dict[str, float] | None = None
    cells: dict[Cell, list[Trial]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types."""
        content = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "cells"}
        content |= {name: asdict(content[name]) for name in ("where", "options", "declared")}
        content["cells"] = [
            {"name": cell.name, **asdict(cell), "trials": [asdict(trial) for trial in trials]}
            for cell, trials in self.cells.items()
        ]
        return {"schema": SCHEMA, **content}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Probe:
        """What ``to_json`` made; what was added for readers (figures, verdict) is left out."""
        given = {each.name: content[each.name] for each in fields(cls)}
        said = given["declared"]
        given["where"] = Where(**given["where"])
        given["options"] = Options(**given["options"])
        given["declared"] = Declared(
            said["profile"], said["stripes"], _limits(said["limits"]), _limits(said["burst"])
        )
        given["cells"] = {_cell(row): [_trial(trial) for trial in row["trials"]] for row in given["cells"]}
        return cls(**given)


def load(directory: Path) -> Probe:
    """A probe's directory, read back. Raises InputError."""
    path = directory / PROBE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(
            f"{directory}: holds no {PROBE}, so it is no probe; `pinchpoint probe` makes one"
        ) from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as JSON: {error}; make the probe again") from error
    found = content.get("schema") if isinstance(content, dict) else type(content).__name__
    if found != SCHEMA:
        raise InputError(f"{path}: schema: found {found!r}; this version of Pinchpoint reads {SCHEMA!r}")
    try:
        return Probe.from_json(content)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: is damaged: {error!r}; make the probe again") from error


def save(directory: Path, content: Mapping[str, Any]) -> None:
    """Write ``probe.json`` whole or not at all. Raises InputError."""
    try:
        write_json(directory / PROBE, content)
    except OSError as error:
        raise InputError(
            f"{directory / PROBE}: cannot be written: {error.strerror}; give another folder with --out"
        ) from error


def _cell(row: Mapping[str, Any]) -> Cell:
    return Cell(**{each.name: row[each.name] for each in fields(Cell)})


def _trial(row: Mapping[str, Any]) -> Trial:
    series = row["series"]
    course = Series(series["step_s"], tuple(series["iops"]), tuple(series["latency_s"])) if series else None
    return Trial(**{**row, "series": course})


def _limits(row: Mapping[str, Any] | None) -> Limits | None:
    return Limits(**row) if row else None


def _sum(one: float | None, other: float | None) -> float | None:
    known = [value for value in (one, other) if value is not None]
    return sum(known) if known else None
