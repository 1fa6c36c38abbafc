"""The sentences of a probe's verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pinchpoint.analysis.resources.disk.types import limits_words
from pinchpoint.base import units, wording
from pinchpoint.probe.caps import rate
from pinchpoint.probe.course import RateChange
from pinchpoint.probe.record import DeclaredDisk, Probe
from pinchpoint.probe.verdict import ProbeVerdict
from pinchpoint_scenarios.storage_probe import Cell, Suite

KINDS: Mapping[str, str] = {
    "disk_cap": "held by a cap: more outstanding I/O gets no more done",
    "disk_device": "limited by the device itself: more outstanding I/O only waits longer",
    "disk_concurrency": "limited by how little is outstanding: more at once would get more done",
    "disk_latency": "limited by what each I/O takes: no cap is near",
}
OVER_TIME: Mapping[str, str] = {
    "disk_burst_exhausted": "fell to a lower level that holds: the burst credits ran out",
    "disk_warm_up": "got faster while it was measured: the disk is still warming up",
}
OR_CACHE = ", or, as writes alone are seen to fall, a cache that takes them is full"
OR_CAP = (
    "but its repetitions differ less than a device's: it may be a cap that only this workload reaches; "
    "eight seconds of measuring or more (--time-per-cell 5s) show it"
)
TOO_SHORT = (
    "one repetition of less than five seconds shows no kind of limit: repeat it (--repeat 3) or measure "
    "longer (--time-per-cell 5s)"
)
NO_CAP = "no cap: others got twice as much of the same done here, or more"
LIMITS_ARE: Mapping[str, str] = {
    "declared": "as declared",
    "found": "as found here",
    "both": "as declared and, where nothing is, as found here",
}
LISTED = 4


def summary(verdict: ProbeVerdict, probe: Probe, *, too_short: bool) -> str:
    """What the probe shows, in a few sentences; of cells that are all too short that before all."""
    said = [f"{wording.capitalised(TOO_SHORT)}."] if too_short else []
    for kind, workloads in verdict.over_time.items():
        written = kind == "disk_burst_exhausted" and all(
            cell.read_ratio == 0 for cell in probe.cells if cell.workload in workloads
        )
        said.append(f"{listed(workloads)} {OVER_TIME[kind]}{OR_CACHE if written else ''}.")
    for kind, workloads in verdict.kinds.items():
        said.append(f"{listed(workloads)}: {KINDS.get(kind, kind)}.")
    if verdict.limits is not None:
        caps = limits_words(verdict.limits.iops, verdict.limits.bytes_per_s)
        said.append(f"Its caps {LIMITS_ARE[str(verdict.limits_are)]}: {caps}.")
    for name, cap in verdict.caps:
        if name.startswith(("read", "write")):
            done = "read" if name.startswith("read") else "written"
            said.append(f"What is {done} is held at {rate(name, cap.value)}.")
    if verdict.contradicted:
        said.append(verdict.contradicted)
    if verdict.host_cache:
        said.append(f"A cache on the host is suspected: {verdict.host_cache[0]}.")
    if not said:
        measured = bool(verdict.workloads)
        said.append(
            "No limit shows: neither a rate that stays when more is outstanding nor a change over time."
            if measured
            else "Nothing was measured, so nothing can be said."
        )
    if probe.state != "finished":
        said.append("The suite was not finished: what is said rests on the part that was measured.")
    return " ".join(said)


def listed(names: Sequence[str]) -> str:
    """``a, b, c, d and 3 more``."""
    shown = ", ".join(names[:LISTED])
    return shown if len(names) <= LISTED else f"{shown} and {len(names) - LISTED} more"


def contradiction(name: str, declared: float, found: float, why: str) -> str:
    """The disk stands at another cap than the declared one."""
    return f"Declared are {rate(name, declared)}, but it stands at {rate(name, found)}: {why}."


def exceeded(name: str, declared: float, most: float) -> str:
    """It does more than it is declared to be able to."""
    done = rate(name, most)
    return f"Declared are {rate(name, declared)}, but {done} were done: the declaration does not hold."


def above(cell: Cell, name: str, found: float, allowed: float, profile: str | None) -> str:
    """Reads beyond the type's figures, while no write is."""
    of = f"{profile} allows" if profile else "is declared"
    return f"{cell.name} read {rate(name, found)} where {rate(name, allowed)} {of}, and no write exceeded it"


def reads_apart(cell: Cell, name: str, found: float, cap: float) -> str:
    """Reads alone do more than all that writes."""
    return (
        f"{cell.name} read {rate(name, found)} where writes, and reads among writes, stand at "
        f"{rate(name, cap)}; or those were credits, spent before the writes: more repetitions show it"
    )


def remembered(reads: RateChange, writes: RateChange | None) -> str:
    """Reads that depend on the trial."""
    went = f"what is read became {units.times(reads.after / reads.before)} as fast: {reads.how}"
    if writes is None:
        return f"{went}; too few writes to see whether the disk warms up"
    return f"{went}, what is written did not, and the page cache here had no part in it"


def distance(verdict: ProbeVerdict, declared: DeclaredDisk) -> str | None:
    """How much of the declared figures was reached at most; None where nothing is declared."""
    if not verdict.declared_used:
        return None
    used = " and ".join(
        f"{units.percent(ratio)} of its {'I/Os' if name == 'iops' else 'bytes'} per second"
        for name, ratio in verdict.declared_used.items()
    )
    return f"Of {declared.words or 'what is declared'} at most {used}."


def varied(cells: Sequence[Cell], repetitions: int) -> str:
    """What was varied within a workload."""
    depths = [cell.outstanding for cell in cells if cell.outstanding is not None]
    times = f"{repetitions} repetition{'s' * (repetitions != 1)}"
    if len(depths) > 1:
        return f"outstanding I/Os from {min(depths):,} to {max(depths):,}; {times}"
    return f"nothing but time: {times}"


def untold(used: float | None) -> str:
    """Of a cell whose tool reports no I/Os."""
    if used is None:
        return "bytes per second alone, and no cap to hold them against: what limits is not known"
    return f"{units.percent(used)} of the cap in bytes"


def moved(change: RateChange | None) -> str | None:
    """How a workload went over time; None where too little was measured."""
    if change is None:
        return None
    if change.move == "steady":
        return "steady"
    way = {"fell": "fell and held", "rose": "rose", "unsteady": "fell and did not hold"}[change.move]
    where = f" after {units.seconds(change.at_s)}" if change.at_s is not None else ""
    where = f" in repetition {change.at_trial}" if change.at_trial is not None else where
    return f"{way}: {units.times(change.after / change.before) if change.before else ''}{where}"


def estimate(found: dict[str, Any]) -> str:
    """What it will take, before it begins."""
    parts = [f"{found['jobs']} measurement{'s' * (found['jobs'] != 1)}"]
    if found["seconds"]:
        parts.append(f"about {units.seconds(found['seconds'])} of timed ones")
    if found["pauses_s"]:
        parts.append(f"{units.seconds(found['pauses_s'])} of pauses")
    if found["untimed"]:
        size = units.bytes_(found["longest_bytes"])
        parts.append(f"{found['untimed']} that last until their work is done, up to {size} each")
    if found["bytes"]:
        parts.append(
            f"before them a file of {units.bytes_(found['bytes'])} is written, as fast as the disk takes it"
        )
    return "estimate: " + "; ".join(parts)


def in_memory(chosen: Suite, size_bytes: int, memory_bytes: int) -> list[str]:
    """What a reader must know of a file that memory holds, where a suite goes through the page cache."""
    if chosen.size_bytes is not None or size_bytes >= 2 * memory_bytes:
        return []
    most, memory = units.bytes_(size_bytes), units.bytes_(memory_bytes)
    why = (
        f"the suite {chosen.name} goes through the page cache, and a file of {most} is less than twice the "
        f"memory ({memory}): it is memory, in part or wholly, that was measured; leave the size to the suite"
    )
    return [why]
