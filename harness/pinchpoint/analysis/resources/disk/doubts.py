"""What keeps the confidence in a disk low though its evidence holds: what else would look the same."""

from __future__ import annotations

from collections.abc import Iterator

from pinchpoint.analysis.behind import MOST
from pinchpoint.analysis.flows import Flow
from pinchpoint.analysis.resources.base import DiskMeasures, Suspicion
from pinchpoint.analysis.resources.disk.classify import ignored
from pinchpoint.analysis.resources.disk.measures import kind_unknown
from pinchpoint.analysis.resources.disk.movement import COUNT_ERROR
from pinchpoint.analysis.resources.disk.slowness import write_and_flush_s
from pinchpoint.analysis.stages import Rows
from pinchpoint.analysis.thresholds import MOSTLY_READS, NO_LATENCY_S, REGULATOR_FLAT, UTILISATION, at_least


def disk_doubts(first: Suspicion, found: DiskMeasures, rows: Rows, flows: tuple[Flow, ...]) -> Iterator[str]:
    """Why no more than low confidence is due, in sentences."""
    if first.kind == "disk":
        yield f"how it limits is not known: {kind_unknown(first.resource, rows).why}"
    if first.contradicted:
        yield "the measurement contradicts the declared limit of the disk"
    if first.demoted:
        yield _unwaited(first, found)
    yield from _more_readers(first, found, flows)
    yield from _alike(first, found)
    if len(first.resource.roles) > 1 and first.resource.whole is None:
        roles = ", ".join(f"{role.tier}.{role.role}" for role in first.resource.roles)
        yield f"one device serves several roles ({roles}): it cannot be said whose I/O it is"


def _unwaited(first: Suspicion, found: DiskMeasures) -> str:
    """Why a disk is no more than a candidate though it is full."""
    if first.disk is not None and ignored(found, first.disk):
        return "hardly anybody waits for it, as its server says"
    return "writes to data files are mostly asynchronous: nothing was seen to wait for them"


def _alike(first: Suspicion, found: DiskMeasures) -> Iterator[str]:
    """What else would make a disk's I/O look as it does: the disk is known, how it limits is not."""
    io = found.moves["io"]
    if first.kind in {"disk_latency", "disk_concurrency", "disk_device"} and io.slope is None:
        yield "what was outstanding did not move: a limit of the disk would look the same"
    if first.kind != "disk_cap":
        return
    held, declared = found.moves[found.binding], first.disk is not None and first.disk.near_cap
    few = REGULATOR_FLAT.value * held.count < COUNT_ERROR
    if not declared and held.flat and not held.any_size and (few or held.irregular):
        yield "a device ends I/Os as evenly, if few end in a second or many that each take their time"
    if not declared and held.by_large:
        yield "only larger I/Os tell that more outstanding gets no more done: they take longer on any disk"
    if declared and found.held is None and not at_least(found.utilisation, UTILISATION) and not held.queued:
        yield "it is near its declared limit without its pauses alone: I/Os that each take their time"
    taken = write_and_flush_s(first.resource, found)
    if not first.exact and not io.queued and not at_least(taken, NO_LATENCY_S):
        yield "one I/O at a time, each of excellent latency: just the time they take would look the same"


def _more_readers(first: Suspicion, found: DiskMeasures, flows: tuple[Flow, ...]) -> Iterator[str]:
    """More reads than operations, of a disk of which nobody says who waits for it."""
    if found.sessions is not None or found.log_waits is not None:
        return
    reads = (found.io or 0.0) * (found.reads_ratio or 0.0) * (found.read_s or 0.0)
    there = sum(flow.going_on(tier) for flow in flows for tier in first.resource.tiers)
    if at_least(found.reads_ratio, MOSTLY_READS) and there and reads > MOST * there:
        yield f"{reads:.2g} reads are under way for {there:.2g} operations: others read there, too, or ahead"
