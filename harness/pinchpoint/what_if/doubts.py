"""What a prediction rests on that the run did not show: said in words, and put into the interval."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pinchpoint.base import units
from pinchpoint.what_if.parts import UNQUEUED_S, Disk, Part
from pinchpoint.what_if.settings import Setting, What

ASSUMED_LATENCY = (
    "{target} was only seen at its limit: an I/O that none waits before is taken to be done in {seconds}; "
    "--set {target}.latency=... says otherwise"
)
MAYBE_QUEUED = (
    "no cap of {target} is known, and I/O waits behind I/O there: {seconds} is taken for its latency; were "
    "it the time of a queue, a disk that lets more through would bring as much as the interval's end says"
)
OTHER_TYPE = (
    "no catalogue tells how long an I/O of {target} would take: {seconds}, as now, is taken for it; a type "
    "that answers sooner brings as much as the interval's end says; --set {target}.latency=... says otherwise"
)
INDEX_COMMITS = (
    "an index is committed for all at once: how much of the time waits for {target} is taken from how busy "
    "it is, and may be far off"
)
LOG_STRIPES = (
    "writes of {target} follow each other within one disk of the stripe: its I/Os per second are taken to "
    "stay those of one, its bytes per second to grow"
)


@dataclass(frozen=True, slots=True)
class Doubts:
    """Disks of which something that the answer rests on was not seen.

    Attributes:
        assumed: an I/O's latency had to be assumed.
        queued: what was seen of it may be the time of a queue.
        others: of another type than in the run, whose latency nobody told.
        logs: striped ones, whose small writes may follow each other within one disk.
        indexes: their names; how much of the time waits for them is a guess.
    """

    assumed: tuple[Disk, ...]
    queued: tuple[Disk, ...]
    others: tuple[Disk, ...]
    logs: tuple[Disk, ...]
    indexes: tuple[str, ...]

    @classmethod
    def of(cls, before: Sequence[Part], after: Sequence[Part], settings: Sequence[Setting]) -> Doubts:
        """Of the parts as they are to be, those that a setting is about."""
        set_: dict[str, set[What]] = {}
        for one in settings:
            set_.setdefault(one.target, set()).add(one.what)
        disks = [part for part in after if isinstance(part, Disk) and part.target in set_]
        types = {part.key: part.profile for part in before if isinstance(part, Disk)}
        untold = [disk for disk in disks if "latency_s" not in set_[disk.target]]
        assumed = tuple(disk for disk in disks if disk.assumed)
        queued = tuple(disk for disk in untold if _perhaps_a_queue(disk, set_[disk.target]))
        return cls(
            assumed=assumed,
            queued=queued,
            others=tuple(
                disk
                for disk in untold
                if disk.profile not in (None, types[disk.key])
                and (disk.waits or disk.commits)
                and disk not in (*assumed, *queued)
            ),
            logs=tuple(disk for disk in disks if "stripes" in set_[disk.target] and one_after_another(disk)),
            indexes=tuple(target for target in set_ if target.endswith(".index")),
        )

    def words(self) -> Iterator[str]:
        """What is assumed, a sentence each."""
        for disk in self.assumed:
            yield ASSUMED_LATENCY.format(target=disk.target, seconds=units.seconds(disk.each_s))
        for disk in self.queued:
            yield MAYBE_QUEUED.format(target=disk.target, seconds=units.seconds(disk.seen_s))
        for disk in self.others:
            yield OTHER_TYPE.format(target=disk.target, seconds=units.seconds(disk.each_s))
        yield from (LOG_STRIPES.format(target=disk.target) for disk in self.logs)
        yield from (INDEX_COMMITS.format(target=target) for target in self.indexes)

    def least_and_most(self, parts: Sequence[Part]) -> Iterator[tuple[Part, ...]]:
        """All parts with each assumed latency at nothing and at twice, and with what may be a queue's gone.

        Another type's as short as ``UNQUEUED_S``; a striped log's as if it spread evenly.
        """
        if self.assumed:
            for factor in (0.0, 2.0):
                yield _with_latency(parts, {disk.key: (disk.each_s or 0.0) * factor for disk in self.assumed})
        for sooner in (self.queued, self.others):
            if sooner:
                yield _with_latency(parts, {disk.key: min(disk.seen_s or 0.0, UNQUEUED_S) for disk in sooner})
        if self.logs:
            keys = {disk.key for disk in self.logs}
            yield tuple(
                _spread_evenly(part) if isinstance(part, Disk) and part.key in keys else part
                for part in parts
            )


def _perhaps_a_queue(disk: Disk, changed: set[What]) -> bool:
    """Whether it is to let more through, and what was seen of its latency is not surely its own."""
    return bool(changed & {"profile", "iops", "bytes_per_s"}) and disk.queued and bool(disk.waits)


def one_after_another(disk: Disk) -> bool:
    """Whether its small writes follow each other, so that they fall on one disk of a stripe for a while."""
    return bool(disk.commits) and disk.small


def _spread_evenly(log: Disk) -> Disk:
    """A striped log as if each of its disks took its share of the I/Os."""
    return replace(log, caps=replace(log.caps, iops=log.caps.iops and log.caps.iops * log.stripes))


def _with_latency(parts: Sequence[Part], each_s: Mapping[str, float]) -> tuple[Part, ...]:
    """The same parts; an I/O of some disks takes as long as that."""
    return tuple(
        replace(part, each_s=each_s[part.key]) if isinstance(part, Disk) and part.key in each_s else part
        for part in parts
    )
