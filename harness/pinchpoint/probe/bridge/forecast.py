"""A probe and a run's mix → what that application would get done on that disk, with its range."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from typing import Any

from pinchpoint.analysis.resources import COMMIT_ROLES
from pinchpoint.errors import InputError
from pinchpoint.probe.bridge.disk import LEAST_SPREAD, MIDDLE, Curve, ProbedDisk, Taken
from pinchpoint.probe.bridge.mix import DiskMix, Mix
from pinchpoint.probe.bridge.model import (
    Circle,
    Parts,
    Work,
    fitted_rest,
    flush_ios,
    processor_s,
    throughput,
)

SCHEMA = "pinchpoint.prediction/1"
FEW = 0.01
"""Reads fewer than one in a hundred operations make are none an operation waits for (our value)."""
_HALF = 0.5
_LEAST_HIDDEN = 0.1
"""At a cap an I/O takes a tenth of the time from one to the next, or more (our value)."""
_ERRORS = 2.0
"""Twice the standard error of the run's throughput, either way."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What an application would get done on a probed disk.

    Attributes:
        mix: what was measured.
        disk: which disk was probed.
        suite: by which suite.
        per_s: operations per second.
        low: of the range: what the probe's and the run's spread and the model's own choices allow.
        high: likewise.
        response_s: mean response there.
        before: where an operation's time went in the run, by the model.
        after: where it would go.
        circle: what was carried over, with the probed disk.
        most_per_s: what the disk's caps allow; None where none is known.
        limited_by: what holds it there: ``flush``, ``reads``, ``cpu``, ``rest``, ``cap``, ``load``, or the
            name of another resource.
        flush_io: what one I/O of a flush takes; None where no commit waits for the disk.
        curve: of its reads; None where an operation waits for none.
        assumes: what must hold for it.
    """

    mix: Mix
    disk: str
    suite: str
    per_s: float
    low: float
    high: float
    response_s: float
    before: Parts
    after: Parts
    circle: Circle
    most_per_s: float | None
    limited_by: str
    flush_io: Taken | None
    curve: Curve | None
    assumes: tuple[str, ...]

    @property
    def ratio(self) -> float:
        """Of the throughput there to the one measured."""
        return self.per_s / self.mix.per_s

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types."""
        work = asdict(self.circle.work)
        curve = self.curve
        return {
            "schema": SCHEMA,
            "disk": self.disk,
            "suite": self.suite,
            "throughput_per_s": self.per_s,
            "low_per_s": self.low,
            "high_per_s": self.high,
            "measured_per_s": self.mix.per_s,
            "ratio": self.ratio,
            "response_s": self.response_s,
            "limited_by": self.limited_by,
            "most_per_s": self.most_per_s,
            "before_s": asdict(self.before),
            "after_s": asdict(self.after),
            "operation": work,
            "flush_io": asdict(self.flush_io) if self.flush_io else None,
            "reads": {"workload": curve.workload, "points": curve.points} if curve else None,
            "mix": self.mix.to_json(),
            "assumes": list(self.assumes),
        }


@dataclass(frozen=True, slots=True)
class _Choice:
    """One way to carry the run over: everything that is not known exactly, settled."""

    overlap: float = 1.0
    shape: float = MIDDLE
    latency: float = 0.0
    """So many spreads more than the probe's mean."""
    queues: bool = True
    """Whether users wait for a core as the model has it; else CPU time is a part of their rest."""
    measured: float = 0.0
    """So many spreads more were done in the run than its mean: a log that never idles tells no rest."""
    ios: float = 1.0
    """So many times the I/Os per flush."""
    hidden: float = _HALF
    """Of the time from one I/O to the next, at a cap, each takes so much."""


@dataclass(frozen=True, slots=True)
class _Carried:
    """A choice, carried out."""

    per_s: float
    before: Parts
    after: Parts
    circle: Circle
    shortened: float


def predict(disk: ProbedDisk, mix: Mix) -> Prediction:
    """Carry a run over to a probed disk. Raises InputError where the probe does not tell what is needed."""
    work, more_ios, notes = _work(mix)
    flush_io = disk.flush_io(_log_size(mix.disk)) if work.commits else None
    curve = disk.reads(mix.disk.size_bytes, mix.disk.reads_ratio) if work.reads else None
    if flush_io is None and curve is None and disk.limits is None:
        raise InputError(
            f"--predict: {mix.run}: no operation waits for {mix.disk.disk}, and the probe of {disk.label} "
            "shows no cap: nothing there would hold this load"
        )
    carry = partial(_carried, disk, mix, work, flush_io, curve)
    middle = carry(_Choice())
    hidden = flush_io is not None and flush_io.at_cap_s is not None
    found = [carry(choice).per_s for choice in _choices(work, more_ios, hidden=hidden)]
    cap = _most(disk, mix, work)
    return Prediction(
        mix=mix,
        disk=disk.label,
        suite=disk.suite,
        per_s=middle.per_s,
        low=min(*found, middle.per_s),
        high=max(*found, middle.per_s),
        response_s=_response(middle, mix),
        before=middle.before,
        after=middle.after,
        circle=middle.circle,
        most_per_s=cap if math.isfinite(cap) else None,
        limited_by=_limited_by(middle, mix, cap),
        flush_io=flush_io,
        curve=curve,
        assumes=tuple(_assumes(mix, work, flush_io, curve, middle.shortened, notes)),
    )


def _choices(work: Work, more_ios: float, *, hidden: bool) -> Iterator[_Choice]:
    """Every corner of what is not known exactly, as far as it makes a difference."""
    both = (-1.0, 1.0)
    corners = product(
        (1.0, _HALF) if work.commits else (1.0,),
        (0.0, 1.0) if work.reads else (MIDDLE,),
        both,
        (True, False) if work.cores else (True,),
        both,
        dict.fromkeys((1.0, more_ios)),
        (_LEAST_HIDDEN, 1.0) if hidden else (_HALF,),
    )
    return (_Choice(*corner) for corner in corners)


def _work(mix: Mix) -> tuple[Work, float, list[str]]:
    """(what an operation asks for but its rest, how many times a flush's I/Os may be more, assumptions)."""
    disk, notes = mix.disk, []
    commits = mix.commits if disk.commit_path and disk.write_s and disk.writes else 0.0
    reads = disk.reads if disk.reads >= FEW and disk.read_s else 0.0
    flush, background = _Flush(1.0), disk.writes
    if commits:
        is_log = disk.disk.partition(".")[2] in COMMIT_ROLES
        flush = _flush(mix, commits, is_log=is_log)
        notes += [flush.note] if flush.note else []
        background = 0.0 if is_log else max(0.0, disk.writes - (disk.flushes or commits))
    cores = mix.cores if mix.cpu_s else 0
    return Work(0.0, mix.cpu_s or 0.0, cores, commits, flush.ios, reads, background), flush.times, notes


@dataclass(frozen=True, slots=True)
class _Flush:
    """What a flush takes: its I/Os, how many times as many they may be, and what was assumed."""

    ios: float
    times: float = 1.0
    note: str = ""


def _flush(mix: Mix, commits: float, *, is_log: bool) -> _Flush:
    """Counted by the database where it is asked, else from how many writes the commits made."""
    disk = mix.disk
    if disk.flushes and is_log:
        return _Flush(disk.writes / disk.flushes)
    if disk.flushes:
        return _Flush(1.0, note="a flush is one I/O; all other writes are made in the background")
    found = flush_ios(mix.users, mix.per_s * commits, mix.per_s * disk.writes, disk.write_s or 0.0)
    if found is not None:
        return _Flush(found, note="nobody counted flushes: their I/Os follow from how many writes were made")
    # Never idle: two groups of users take turns, so that a commit waits for two flushes at most.
    times = max(1.0, _there_s(mix) / (2 * commits * (disk.write_s or 1.0)))
    return _Flush(
        1.0, times, "the log was never idle, and nobody counted flushes: one is taken to be one I/O"
    )


def _log_size(disk: DiskMix) -> float | None:
    """The mean size of what is written; None where most I/Os are reads, whose size it would be."""
    return disk.size_bytes if disk.reads_ratio < _HALF else None


def _carried(
    disk: ProbedDisk, mix: Mix, work: Work, flush_io: Taken | None, curve: Curve | None, choice: _Choice
) -> _Carried:
    """Fit the rest to the run, put the probed disk in place of the run's, and look what comes out."""
    spread = max(LEAST_SPREAD, _ERRORS * mix.spread_ratio)
    mix = replace(mix, per_s=mix.per_s * (1 + choice.measured * spread))
    work = replace(work, ios_per_flush=work.ios_per_flush * choice.ios)
    here = mix.disk
    old_read = here.read_s or 0.0
    more_s = max(0.0, (here.flush_s or 0.0) - work.ios_per_flush * (here.write_s or 0.0))
    base = Circle(
        work=work,
        users=mix.users,
        think_s=mix.think_s,
        flush_io_s=here.write_s or 0.0,
        read=lambda _: old_read,
        flush_more_s=more_s if work.commits else 0.0,
        overlap=choice.overlap,
    )
    base = base if choice.queues and _fits(base, mix) else _without_cpu(base)
    base, shortened = _fitted(base, mix)
    new = replace(
        base,
        flush_io_s=_slower(flush_io, choice) * shortened,
        flush_more_s=base.flush_more_s * shortened,
        spacing_s=(flush_io.at_cap_s or 0.0) * work.ios_per_flush if flush_io else 0.0,
        read=_read(curve, choice, shortened),
    )
    most = min(_most(disk, mix, work), *(at for _, at in _ahead(mix)), math.inf)
    if mix.cores and mix.cpu_s:
        most = min(most, max(mix.per_s, mix.cores / mix.cpu_s))
    per_s = throughput(new, most) if math.isfinite(mix.users) else min(mix.per_s, most)
    return _Carried(per_s, base.parts(mix.per_s), new.parts(per_s), new, shortened)


def _fitted(circle: Circle, mix: Mix) -> tuple[Circle, float]:
    """A closed circle by its users, an open load by its response."""
    return fitted_rest(circle, mix.per_s, _there_s(mix))


def _there_s(mix: Mix) -> float:
    """An operation's time in the run: of a closed load by Little's law, the client's own work included."""
    return mix.users / mix.per_s - mix.think_s if math.isfinite(mix.users) else mix.response_s


def _fits(circle: Circle, mix: Mix) -> bool:
    """Whether waiting for a core, as the model has it, has room in an operation's time."""
    others = 1 - 1 / mix.users if math.isfinite(mix.users) else 1.0
    found = circle.parts(mix.per_s)
    queue_s = processor_s(circle.work.cpu_s, circle.work.cores, mix.per_s * others)
    return queue_s + found.flush_s + found.read_s <= _there_s(mix)


def _without_cpu(circle: Circle) -> Circle:
    return replace(circle, work=replace(circle.work, cpu_s=0.0, cores=0))


def _slower(taken: Taken | None, choice: _Choice) -> float:
    if taken is None:
        return 0.0
    hidden = 1.0 if taken.at_cap_s is None else choice.hidden
    return taken.mean_s * (1 + choice.latency * taken.spread_ratio) * hidden


def _read(curve: Curve | None, choice: _Choice, shortened: float) -> Callable[[float], float]:
    if curve is None:
        return lambda _: 0.0
    factor = (1 + choice.latency * curve.spread_ratio) * shortened
    return lambda per_s: curve.latency_s(per_s, choice.shape) * factor


def _most(disk: ProbedDisk, mix: Mix, work: Work) -> float:
    """What the caps allow of I/O that is not shared: flushes are, so their part is in their latency."""
    limits, here = disk.limits, mix.disk
    ios = work.reads + work.background
    if limits is None or not ios:
        return math.inf
    size = (here.size_bytes or 0.0) * ios
    counted = max(ios, size / limits.io_unit_bytes) if limits.io_unit_bytes else ios
    pairs = ((limits.iops, counted), (limits.bytes_per_s, size))
    return min((cap / each for cap, each in pairs if cap and each), default=math.inf)


def _ahead(mix: Mix) -> list[tuple[str, float]]:
    """What else would end, where it is not used beyond its declared limit already."""
    return [(name, at) for name, at in mix.others if at > mix.per_s]


def _response(found: _Carried, mix: Mix) -> float:
    """Of a closed load by Little's law, where a cap makes users wait as well."""
    if not math.isfinite(mix.users):
        return found.after.response_s
    return mix.users / found.per_s - mix.think_s


def _limited_by(found: _Carried, mix: Mix, cap: float) -> str:
    if found.per_s >= cap * 0.999:
        return "cap"
    for name, at in _ahead(mix):
        if found.per_s >= at * 0.999:
            return name
    if mix.cores and mix.cpu_s and found.per_s >= mix.cores / mix.cpu_s * 0.999:
        return "cpu"
    if not math.isfinite(mix.users):
        return "load"
    parts = {
        "flush": found.after.flush_s,
        "reads": found.after.read_s,
        "cpu": found.after.cpu_s,
        "rest": found.after.rest_s + mix.think_s,
    }
    return max(parts, key=parts.__getitem__)


def _assumes(
    mix: Mix, work: Work, flush_io: Taken | None, curve: Curve | None, shortened: float, notes: list[str]
) -> list[str]:
    """What must hold, in sentences."""
    found = ["the same mix of operations and the same cache ratio, on the same machine", *notes]
    if flush_io:
        found += flush_io.assumes
        found.append(
            "commits that meet a flush wait for it and share the next one; a flush's I/O keeps its size"
        )
    if work.background:
        found.append("writes that nobody waits for hold the load only at a cap of the disk")
    if curve and math.isfinite(mix.users) and mix.users > curve.points[-1][0]:
        depth = f"{curve.points[-1][0]:g}"
        found.append(f"the probe had up to {depth} reads outstanding; more of them would get no more done")
    if shortened < 1:
        found.append(
            f"operations of the run waited {1 - shortened:.0%} less for the disk than its latency makes "
            "(reads that overlap, or several disks behind one role); so they would there"
        )
    if len(mix.scenarios) > 1:
        found.append("all scenarios grow or shrink alike")
    return found
