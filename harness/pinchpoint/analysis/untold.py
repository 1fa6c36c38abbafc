"""What a gain takes for granted of parts whose limit or use nobody knows: that they have room for it."""

from __future__ import annotations

from collections.abc import Iterator

from pinchpoint.analysis.capacity import loads_of
from pinchpoint.analysis.case import Case
from pinchpoint.analysis.resources.base import Resource, Suspicion, busy
from pinchpoint.analysis.thresholds import DISK_OCCUPIED
from pinchpoint.base.wording import listed


def room_words(case: Case, first: Suspicion | None, times: float) -> str:
    """What must have room though it cannot be told whether it has; "" where there is nothing of that kind.

    Args:
        case: what was judged.
        first: what limits now; only what carries its loads is meant. None: all of it.
        times: throughput then ÷ throughput now.
    """
    found = list(_untold(case, first, times))
    return f"room for it on {listed(found)}" if found else ""


def _untold(case: Case, first: Suspicion | None, times: float) -> Iterator[str]:
    own = loads_of(first.resource, case.flows) if first is not None else None
    for one in case.resources:
        if first is not None and one.key == first.resource.key:
            continue
        if case.stage is not None and (own is None or own & loads_of(one, case.flows)):
            why = _why(one, busy(one, case.stage.rows), times)
            if why:
                yield f"{_thing(one)} ({why})"


def _why(one: Resource, used: float | None, times: float) -> str:
    """Why nobody knows; a disk is told of only where it would hardly idle any more."""
    if one.type == "cpu":
        return "not measured" if used is None else ""
    if one.type != "disk" or not one.roles or one.whole is not None or one.limits is not None:
        return ""
    if used is None:
        return "not measured"
    return "what it can do is not known" if used * times >= DISK_OCCUPIED.value else ""


def _thing(one: Resource) -> str:
    if one.type == "disk":
        return f"the {one.role} disk of {one.roles[0].host}"
    return f"the CPU of {listed(one.hosts)}"
