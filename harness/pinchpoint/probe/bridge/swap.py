"""A run's disk with a probed one in its place: the same I/O asked for, what the probe found taken for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pinchpoint.analysis.disk_types import limits_words
from pinchpoint.base import units
from pinchpoint.base.errors import InputError
from pinchpoint.data.curve import most_per_s
from pinchpoint.forecast.parts import UNQUEUED_S, Caps, Disk
from pinchpoint.probe.bridge.disk import Answered, ProbedDisk, Written
from pinchpoint.probe.bridge.mix import DiskMix

HIDDEN = (
    "a cap held all of the probe's cells that tell how long {what} of {disk} takes: one that none waits "
    "before is taken to be done in {seconds}"
)
NOT_FLUSHED = "the probe of {disk} flushed no write by itself: one that is flushed is taken to last as long"
BACKGROUND = "what is written to {disk} without anybody's waiting holds the load at a cap only"
DEEPER = "the probe of {disk} had up to {deepest} outstanding: more of them are taken to get no more done"


@dataclass(frozen=True, slots=True)
class Swap:
    """One disk, exchanged.

    Attributes:
        part: as it would be.
        others: what else it may be, by what the probe does not tell exactly.
        after: what it is to be, in words.
        arithmetic: what was put in place of what, in a sentence.
        assumes: what had to be assumed, in sentences.
    """

    part: Disk
    others: tuple[Disk, ...]
    after: str
    arithmetic: str
    assumes: tuple[str, ...]


def swapped(part: Disk, disk: ProbedDisk, mix: DiskMix) -> Swap:
    """Put a probed disk in the place of a run's.

    Args:
        part: the run's.
        disk: the probed one.
        mix: what an operation asks of the run's.

    Raises:
        InputError: the probe does not tell what is needed.
    """
    limits = disk.limits_of(mix.reads_ratio)
    caps = Caps(limits.iops, limits.bytes_per_s, limits.io_unit_bytes) if limits else Caps()
    bare = replace(
        part, profile=None, stripes=1, caps=caps, at_limit=False, assumed=False, seen=False, queued=False
    )
    words = f"as {disk.label} was probed ({disk.suite}: {_caps_words(caps)})"
    if part.commits:
        return _log(bare, disk.written(part.write_bytes or None), mix, words)
    if part.waits:
        return _answering(bare, disk.answered(mix.size_bytes, mix.reads_ratio), mix, words)
    if not caps.known:
        raise InputError(
            f"--predict: no operation waits for {part.target}, and the probe of {disk.label} shows no cap: "
            "nothing there would hold this load"
        )
    told = f"{part.target}: nobody waits for it; its caps alone count"
    return Swap(bare, (), words, told, (BACKGROUND.format(disk=part.target),))


def _log(bare: Disk, written: Written, mix: DiskMix, words: str) -> Swap:
    hidden = written.each_s is None
    each_s = min(UNQUEUED_S, written.spacing_s or UNQUEUED_S) if written.each_s is None else written.each_s
    part = replace(bare, each_s=each_s, bursts=written.bursts, assumed=hidden)
    ends = (0.0, written.spacing_s or each_s) if hidden else _ends(each_s, written.spread_ratio)
    there = units.seconds(mix.write_s) if mix.write_s is not None else "not measured"
    beside = f", and {units.seconds(bare.flush_more_s)} beside" if bare.flush_more_s else ""
    told = (
        f"{bare.target}: a flush is {bare.writes_per_flush:.2f} writes{beside}; each {there} there, "
        f"{units.seconds(each_s)} here ({', '.join(written.cells)})"
    )
    assumes = []
    if hidden:
        assumes.append(HIDDEN.format(what="a write", disk=bare.target, seconds=units.seconds(each_s)))
    if not written.flushed:
        assumes.append(NOT_FLUSHED.format(disk=bare.target))
    return Swap(part, tuple(replace(part, each_s=end) for end in ends), words, told, tuple(assumes))


def _answering(bare: Disk, answered: Answered, mix: DiskMix, words: str) -> Swap:
    curve, spread = answered.curve, answered.spread_ratio
    each_s = curve.latency_s(1.0) if curve else UNQUEUED_S
    part = replace(bare, each_s=each_s, curve=curve, assumed=curve is None)
    seen = mix.read_s if mix.reads_ratio >= 0.5 else mix.write_s
    there = units.seconds(seen) if seen is not None else "not measured"
    waited = sum(part.waits.values()) / len(part.waits)
    told = (
        f"{bare.target}: {waited:.3g} I/Os an operation are waited for; each {there} there, here as "
        f"{answered.workload}: {units.seconds(each_s)} one at a time"
    )
    if curve and curve.ends:
        told += f", {units.per_second(most_per_s(curve.points) or 0.0)} at most"
    if curve is None:
        hidden = HIDDEN.format(what="an I/O", disk=bare.target, seconds=units.seconds(each_s))
        others = tuple(replace(part, each_s=each_s * factor) for factor in (0.0, 2.0))
        return Swap(part, others, words, told, (hidden,))
    curves = [curve.times(1 - spread), curve.times(1 + spread)]
    curves += [replace(curve, shape=shape) for shape in (0.0, 1.0)]
    assumes = (DEEPER.format(disk=bare.target, deepest=answered.deepest),) if curve.ends else ()
    return Swap(part, tuple(replace(part, curve=one) for one in curves), words, told, assumes)


def _ends(each_s: float, spread_ratio: float) -> Iterator[float]:
    yield each_s * (1 - spread_ratio)
    yield each_s * (1 + spread_ratio)


def _caps_words(caps: Caps) -> str:
    return limits_words(caps.iops, caps.bytes_per_s) or "no cap"
