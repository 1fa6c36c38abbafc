"""Replaces a disk of the run by a probed disk in the model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from pinchpoint.analysis.model.parts import UNQUEUED_S, DiskPart
from pinchpoint.analysis.resources.base import Resource
from pinchpoint.analysis.resources.disk.measures import measure_disk, write_and_flush_s
from pinchpoint.analysis.resources.disk.types import limits_words
from pinchpoint.analysis.stages import Rows
from pinchpoint.base import units
from pinchpoint.base.errors import InputError
from pinchpoint.data.curve import Curve, most_per_s
from pinchpoint.data.inputs import Limits
from pinchpoint.data.series import mean

HIDDEN = (
    "every measurement of the probe that shows how long {what} of {disk} takes was at a limit: "
    "{seconds} is assumed without a queue"
)
NOT_FLUSHED = (
    "the probe of {disk} did not flush single writes: a flushed write is assumed to take as "
    "long as one without a flush"
)
BACKGROUND = "background writes to {disk} slow the load only when the disk is at its limit"
DEEPER = (
    "the probe of {disk} measured up to {deepest} outstanding I/Os: no more throughput is assumed beyond that"
)


@dataclass(frozen=True, slots=True)
class Written:
    """The time of one log write on the probed disk.

    Attributes:
        each_s: seconds per write; None if a cap hides the time: writes then follow each other at the spacing
            of the cap, and a write takes any time up to that spacing.
        spacing_s: seconds between two writes, if a cap limited the probe's single writes; else None.
        bursts: whether the cap lets writes through at full speed for a while, and then none.
        spread_ratio: half of the range of the repetitions, as a share of the mean.
        cells: names of the probe's cells with this measurement.
        flushed: whether the probe flushed each write, as a log does.
    """

    each_s: float | None
    spacing_s: float | None
    bursts: bool
    spread_ratio: float
    cells: tuple[str, ...]
    flushed: bool


@dataclass(frozen=True, slots=True)
class Answered:
    """The time of an I/O of one workload, by the number of outstanding I/Os.

    Attributes:
        workload: name of the workload.
        curve: latency curve of the cells below any cap; None if all cells were at a cap.
        deepest: largest number of outstanding I/Os that was measured.
        spread_ratio: half of the range of the repetitions, as a share of the mean.
    """

    workload: str
    curve: Curve | None
    deepest: int
    spread_ratio: float


class ProbedDisk(Protocol):
    """A probed disk as the model sees it. Its methods raise InputError if the probe has no matching cell."""

    @property
    def label(self) -> str:
        """Name of the disk, in words."""

    @property
    def suite(self) -> str:
        """Name of the probe's suite."""

    @property
    def limits_are(self) -> str | None:
        """Source of the limits: ``found`` by the probe, ``declared``, or ``both``; None: unknown."""

    def written(self, size_bytes: float | None) -> Written:
        """The time of a log write of this size."""

    def answered(self, size_bytes: float | None, reads_ratio: float) -> Answered:
        """The time of I/Os of this size with this share of reads."""

    def limits_of(self, reads_ratio: float | None) -> Limits | None:
        """The limits for I/O with this share of reads; None: unknown."""


@dataclass(frozen=True, slots=True)
class DiskMix:
    """The I/O of one operation on one disk of the run, and the time of that I/O. None: not measured.

    Attributes:
        disk: name of the disk, such as ``sql.log``.
        reads: reads per operation.
        writes: writes per operation: the kernel's count, or data writes if that is verified.
        bytes: bytes read and written per operation.
        read_s: mean seconds per read.
        write_s: seconds per write, including its flush if there is one.
        waits_s: seconds that an operation waits for the disk, as reported by the database for its sessions.
    """

    disk: str
    reads: float
    writes: float
    bytes: float | None
    read_s: float | None
    write_s: float | None
    waits_s: float | None

    @property
    def size_bytes(self) -> float | None:
        """Mean bytes per I/O."""
        ios = self.reads + self.writes
        return self.bytes / ios if self.bytes is not None and ios else None

    @property
    def reads_ratio(self) -> float:
        """Reads ÷ all I/O."""
        ios = self.reads + self.writes
        return self.reads / ios if ios else 0.0


def mix_of(resource: Resource, rows: Rows, per_s: float) -> DiskMix:
    """The I/O of an operation on a disk.

    Args:
        resource: the disk.
        rows: the steps of the judged stage.
        per_s: operations per second of all scenarios.
    """
    result = measure_disk(resource, rows)
    reads, writes = (mean(resource.columns[name][rows]) or 0.0 for name in ("reads", "writes"))
    return DiskMix(
        disk=f"{resource.roles[0].tier}.{resource.roles[0].role}",
        reads=reads / per_s,
        writes=writes / per_s,
        bytes=result.bytes / per_s if result.bytes is not None else None,
        read_s=result.read_s,
        write_s=write_and_flush_s(resource, result),
        waits_s=result.sessions / per_s if result.sessions is not None else None,
    )


@dataclass(frozen=True, slots=True)
class Exchanged:
    """A probed disk that replaces a disk of the run.

    Attributes:
        probed: name of the probed disk, in words.
        suite: name of the probe's suite.
        limits_are: source of the limits, as in ``ProbedDisk``.
        mix: the I/O of an operation on the disk of the run.
        arithmetic: the figures of the replacement, in a sentence.
    """

    probed: str
    suite: str
    limits_are: str | None
    mix: DiskMix
    arithmetic: str


@dataclass(frozen=True, slots=True)
class Swap:
    """The result of replacing one disk.

    Attributes:
        part: the disk after the replacement.
        others: alternatives to ``part``, within the uncertainty of the probe.
        after: new value of the setting, in words.
        exchanged: what was replaced by what.
        assumes: assumptions, as sentences.
    """

    part: DiskPart
    others: tuple[DiskPart, ...]
    after: str
    exchanged: Exchanged
    assumes: tuple[str, ...]


def swapped(part: DiskPart, disk: ProbedDisk, mix: DiskMix) -> Swap:
    """Replace a disk of the run by a probed disk. Raises InputError if the probe reports too little."""
    limits = disk.limits_of(mix.reads_ratio)
    caps = limits or Limits()
    bare = replace(
        part, profile=None, stripes=1, caps=caps, at_limit=False, assumed=False, seen=False, queued=False
    )
    if part.commits:
        result, others, arithmetic, assumes = _log(bare, disk.written(part.write_bytes or None), mix)
    elif part.waits:
        answered = disk.answered(mix.size_bytes, mix.reads_ratio)
        result, others, arithmetic, assumes = _answering(bare, answered, mix)
    elif caps.known:
        result, others, assumes = bare, (), (BACKGROUND.format(disk=part.target),)
        arithmetic = f"{part.target}: no operation waits for it; only its limits matter"
    else:
        raise InputError(
            f"no operation waits for {part.target}, and the probe of {disk.label} found no limit: this "
            "disk does not limit this load"
        )
    after = (
        f"as {disk.label} was probed ({disk.suite}: "
        f"{limits_words(caps.iops, caps.bytes_per_s) or 'no limit'})"
    )
    exchanged = Exchanged(disk.label, disk.suite, disk.limits_are, mix, arithmetic)
    return Swap(result, others, after, exchanged, assumes)


_Put = tuple[DiskPart, tuple[DiskPart, ...], str, tuple[str, ...]]
"""(the disk after the replacement, its alternatives, the arithmetic, the assumptions)."""


def _log(bare: DiskPart, written: Written, mix: DiskMix) -> _Put:
    hidden = written.each_s is None
    each_s = min(UNQUEUED_S, written.spacing_s or UNQUEUED_S) if written.each_s is None else written.each_s
    part = replace(bare, each_s=each_s, bursts=written.bursts, assumed=hidden)
    spread = written.spread_ratio
    ends = (0.0, written.spacing_s or each_s) if hidden else (each_s * (1 - spread), each_s * (1 + spread))
    beside = f", and {units.seconds(bare.flush_more_s)} beside" if bare.flush_more_s else ""
    arithmetic = (
        f"{bare.target}: a flush is {bare.writes_per_flush:.2f} writes{beside}; each {_took(mix.write_s)} in "
        f"the run, {units.seconds(each_s)} on the probed disk ({', '.join(written.cells)})"
    )
    assumes = []
    if hidden:
        assumes.append(HIDDEN.format(what="a write", disk=bare.target, seconds=units.seconds(each_s)))
    if not written.flushed:
        assumes.append(NOT_FLUSHED.format(disk=bare.target))
    return part, tuple(replace(part, each_s=end) for end in ends), arithmetic, tuple(assumes)


def _answering(bare: DiskPart, answered: Answered, mix: DiskMix) -> _Put:
    curve = answered.curve
    each_s = curve.latency_s(1.0) if curve else UNQUEUED_S
    part = replace(bare, each_s=each_s, curve=curve, assumed=curve is None)
    seen_s = mix.read_s if mix.reads_ratio >= 0.5 else mix.write_s
    waited = sum(part.waits.values()) / len(part.waits)
    arithmetic = (
        f"{bare.target}: {waited:.3g} I/Os per operation are waited for; each {_took(seen_s)} in the "
        f"run; on the probed disk (workload {answered.workload}) {units.seconds(each_s)} at queue depth 1"
    )
    if curve is None:
        hidden = HIDDEN.format(what="an I/O", disk=bare.target, seconds=units.seconds(each_s))
        others = tuple(replace(part, each_s=each_s * factor) for factor in (0.0, 2.0))
        return part, others, arithmetic, (hidden,)
    assumes: tuple[str, ...] = ()
    if curve.ends:
        arithmetic += f", {units.per_second(most_per_s(curve.points) or 0.0)} at most"
        assumes = (DEEPER.format(disk=bare.target, deepest=answered.deepest),)
    return part, tuple(replace(part, curve=one) for one in _ends(curve, answered)), arithmetic, assumes


def _ends(curve: Curve, answered: Answered) -> Iterator[Curve]:
    yield curve.times(1 - answered.spread_ratio)
    yield curve.times(1 + answered.spread_ratio)
    yield from (replace(curve, shape=shape) for shape in (0.0, 1.0))


def _took(seconds: float | None) -> str:
    return "not measured" if seconds is None else units.seconds(seconds)
