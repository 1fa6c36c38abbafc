"""Words the verdict of a probe in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pinchpoint.analysis.resources.disk.types import limits_words
from pinchpoint.base import units, wording
from pinchpoint.probe.caps import rate
from pinchpoint.probe.figures import figures
from pinchpoint.probe.over_time import RateChange
from pinchpoint.probe.record import DeclaredDisk, Probe, ProbeLocation
from pinchpoint.probe.verdict import ProbeVerdict
from pinchpoint_infra.catalogue import Profile
from pinchpoint_scenarios.storage_probe import Cell, Suite

KINDS: Mapping[str, str] = {
    "disk_cap": "at a limit of the disk: a higher queue depth brings no more throughput",
    "disk_device": "limited by the device: a higher queue depth only raises latency",
    "disk_concurrency": "limited by the queue depth: more outstanding I/Os would bring more throughput",
    "disk_latency": "limited by the latency of each I/O; no limit of the disk was reached",
}
SHORT: Mapping[str, str] = {
    "disk_cap": "cap",
    "disk_device": "the device",
    "disk_concurrency": "too few outstanding I/Os",
    "disk_latency": "latency",
}
OVER_TIME: Mapping[str, str] = {
    "disk_burst_exhausted": "fell to a lower, constant rate: its burst credits are spent",
    "disk_warm_up": "became faster during the measurement: the disk is still warming up",
}
OR_CACHE = ", or, because only writes fell, a write cache is full"
OR_CAP = (
    "but its repetitions vary less than those of a device: it may be a limit that only this workload "
    "reaches. Measure for at least eight seconds to decide (--time-per-cell 5s)"
)
TOO_SHORT = (
    "one repetition of less than five seconds cannot show the kind of limit: repeat it (--repeat 3) or "
    "measure longer (--time-per-cell 5s)"
)
NO_CAP = "no limit: other workloads reached at least twice this rate on this disk"
OF_A_CACHE = (
    "more than the disk's limit: a cache on the host is suspected, so this shows no limit of the disk"
)
OUT_OF_REACH = 0.5
"""Share of the limit below which single I/Os cannot reach the limit (design value)."""
LIMITS_ARE: Mapping[str, str] = {
    "declared": "declared",
    "found": "measured",
    "both": "declared; measured where nothing is declared",
}
NAMED = 2
"""Up to this number, workloads are named; more are counted."""


def summary(verdict: ProbeVerdict, probe: Probe, *, too_short: bool) -> wording.Summary:
    """The result of a probe in a few sentences; a warning about too short measurements comes first."""
    answer = [f"{wording.capitalised(TOO_SHORT)}."] if too_short else []
    for kind, workloads in verdict.over_time.items():
        written = kind == "disk_burst_exhausted" and all(
            cell.read_ratio == 0 for cell in probe.cells if cell.workload in workloads
        )
        answer.append(f"{who(workloads, verdict)} {OVER_TIME[kind]}{OR_CACHE if written else ''}.")
    answer += _of_limits(verdict, probe)
    answer += _one_at_a_time(verdict, probe)
    for name, cap in verdict.caps:
        if name.startswith(("read", "write")):
            done = "reads" if name.startswith("read") else "writes"
            answer.append(f"{wording.capitalised(done)} are limited to {rate(name, cap.value)}.")
    if verdict.contradicted:
        answer.append(verdict.contradicted)
    if verdict.host_cache:
        answer.append(f"A cache on the host is suspected: {verdict.host_cache[0]}.")
    if not answer:
        measured = bool(verdict.workloads)
        answer.append(
            "No limit was found: no rate stayed constant at a higher queue depth, and none changed over time."
            if measured
            else "Nothing was measured."
        )
    if probe.state != "finished":
        answer.append("The suite is not finished: this verdict covers only the measured part.")
    return wording.Summary.of(answer)


def _one_at_a_time(verdict: ProbeVerdict, probe: Probe) -> list[str]:
    """A sentence that only parallel I/O reaches the limit, for the workload furthest below it."""
    shallow = [
        (one.cells[0].used_ratio, one.cells[0], one.workload)
        for one in verdict.workloads
        if one.kind == "disk_cap"
        and one.cells[0].kind == "disk_concurrency"
        and one.cells[0].used_ratio is not None
        and one.cells[0].used_ratio < OUT_OF_REACH
    ]
    if not shallow:
        return []
    used, cell, workload = min(shallow, key=lambda each: each[0])
    result = next(one for of, one in figures(probe).items() if of.name == cell.cell)
    if result.mean_s is None:
        return []
    text = f"With {cell.outstanding} outstanding, {workload} reaches {units.percent(used)} of its limit"
    return [f"{text} ({units.seconds(result.mean_s)} each): only parallel I/O reaches it."]


def _of_limits(verdict: ProbeVerdict, probe: Probe) -> Iterator[str]:
    """A sentence for each kind of limit, with the limits of the disk if they are known."""
    limits, burst = verdict.limits, probe.declared.burst
    caps = limits and limits_words(limits.iops, limits.bytes_per_s)
    if caps:
        caps = f"{caps} ({LIMITS_ARE[str(verdict.limits_are)]}"
        caps += f"; on burst credits {limits_words(burst.iops, burst.bytes_per_s)})" if burst else ")"
    for kind, workloads in verdict.kinds.items():
        does = f"{who(workloads, verdict)} {'is' if len(workloads) == 1 else 'are'}"
        yield (
            f"{does} at a limit of the disk: {caps}."
            if kind == "disk_cap" and caps
            else f"{does} {KINDS.get(kind, kind)}."
        )
    if caps and "disk_cap" not in verdict.kinds:
        yield f"Limits of the disk: {caps}."


def who(workloads: Sequence[str], verdict: ProbeVerdict) -> str:
    """Workloads in words, for a sentence: ``RND4K read``, ``3 of 6 workloads``, ``All 6 workloads``."""
    total = len(verdict.workloads)
    if len(workloads) == total > 1:
        return f"All {total} workloads"
    return named(workloads) if len(workloads) <= NAMED else f"{len(workloads)} of {total} workloads"


def named(workloads: Sequence[str]) -> str:
    """Workloads in words: ``RND4K read and RND4K write``, ``3 workloads``."""
    return wording.listed(workloads) if len(workloads) <= NAMED else f"{len(workloads)} workloads"


def what_to_do(verdict: ProbeVerdict, probe: Probe) -> list[str]:
    """Next steps: first those that make the figures reliable, then how to use the figures."""
    steps = []
    if probe.state != "finished":
        steps.append("Continue the probe with --resume.")
    if verdict.host_cache:
        steps.append("Switch the host's cache off for this disk, then probe it again.")
    if verdict.contradicted:
        steps.append("Correct the limits of this disk in farm.yaml.")
    if "disk_warm_up" in verdict.over_time:
        steps.append("Repeat the probe until the rates stay constant.")
    if "disk_burst_exhausted" in verdict.over_time:
        steps.append("Plan with the lower rate: it is what the disk sustains.")
    return [*steps, "Predict an application on this disk: `pinchpoint what-if RUN --set TIER.ROLE=PROBE`."]


def notes(probe: Probe, verdict: ProbeVerdict) -> list[str]:
    """Notes beside the summary of a probe: warnings, and whether the disk is emulated."""
    built = emulated(probe.where)
    return [*dict.fromkeys([*verdict.host_cache[1:], *probe.warnings, *([built] if built else [])])]


def emulated(where: ProbeLocation) -> str | None:
    """A sentence for an emulated disk; None for a real disk."""
    if where.emulated is None:
        return None
    return f"{where.label} is emulated ({where.emulated}): its limits are those that its farm.yaml gives it"


def contradiction(name: str, declared: float, value: float) -> str:
    """A sentence for a disk whose measured cap differs from its declared limit."""
    return f"The declared limit is {rate(name, declared)}, but {rate(name, value)} was measured."


def exceeded(name: str, declared: float, most: float) -> str:
    """A sentence for a disk that exceeds its declared limit."""
    done = rate(name, most)
    return f"The declared limit is {rate(name, declared)}, but {done} was measured: the declaration is wrong."


def above(cell: Cell, name: str, value: float, allowed: float, profile: str | None, *, more: int) -> str:
    """Words for reads above the declared limit; ``more`` is the number of further such measurements."""
    of = f"{profile} allows" if profile else "are declared"
    others = f" ({more} more measurement{'s' * (more != 1)} with reads exceeded it)" if more else ""
    return (
        f"{cell.name} read {rate(name, value)}, more than the {rate(name, allowed)} that {of}{others}; no "
        "write exceeded that limit"
    )


def reads_apart(cell: Cell, name: str, value: float, cap: float) -> str:
    """Words for reads that are faster than the cap on writes and mixed I/O."""
    return (
        f"{cell.name} read {rate(name, value)}, but writes and mixed I/O are limited to "
        f"{rate(name, cap)}. Burst credits that were spent before the writes are another explanation: "
        "more repetitions decide"
    )


def remembered(reads: RateChange, *, known: bool) -> str:
    """Why a cache is suspected: reads got faster with each repetition. ``known``: writes did not."""
    went = f"reads became {units.times(reads.after / reads.before)} as fast: {reads.how}"
    if not known:
        return f"{went}; too few writes to decide whether the disk is warming up"
    return f"{went}; writes did not, and the page cache of this machine was not involved"


def distance(verdict: ProbeVerdict, declared: DeclaredDisk) -> str | None:
    """The highest measured share of the declared limits; None if nothing is declared."""
    if not verdict.declared_used:
        return None
    used = " and ".join(
        f"{units.percent(ratio)} of the {'IOPS' if name == 'iops' else 'bytes per second'}"
        for name, ratio in verdict.declared_used.items()
    )
    return f"Reached at most {used} of {declared.words or 'the declared limits'}."


def varied(cells: Sequence[Cell], repetitions: int) -> str:
    """The varied quantity of a workload, in words."""
    depths = [cell.outstanding for cell in cells if cell.outstanding is not None]
    times = f"{repetitions} repetition{'s' * (repetitions != 1)}"
    if len(depths) > 1:
        return f"outstanding I/Os from {min(depths):,} to {max(depths):,}; {times}"
    return f"only time: {times}"


def no_latency(used: float | None) -> str:
    """Words for a cell whose tool reports no I/Os; ``used`` is its share of the limit in bytes per second."""
    if used is None:
        return "no latency was measured and no limit is known, so the kind of limit is unknown"
    return f"{units.percent(used)} of the limit in bytes per second"


def moved(change: RateChange | None) -> str | None:
    """The change of a workload over time, in words; None if too little was measured."""
    if change is None:
        return None
    if change.move == "steady":
        return "steady"
    way = {"fell": "fell and stayed lower", "rose": "rose", "unsteady": "fell and rose again"}[change.move]
    where = f" after {units.seconds(change.at_s)}" if change.at_s is not None else ""
    where = f" at repetition {change.at_trial}" if change.at_trial is not None else where
    return f"{way}: {units.times(change.after / change.before) if change.before else ''}{where}"


def estimate(value: dict[str, Any]) -> str:
    """The estimated time, in words."""
    most = "at most " if value["at_most"] else ""
    parts = [f"{most}{value['jobs']} measurement{'s' * (value['jobs'] != 1)}"]
    if value["seconds"]:
        parts.append(f"about {units.seconds(value['seconds'])} of measuring")
    if value["pauses_s"]:
        parts.append(f"{units.seconds(value['pauses_s'])} of pauses")
    if value["untimed"]:
        size = units.bytes_(value["size_bytes"])
        parts.append(f"{value['untimed']} that end when their I/O is done (up to {size} each)")
    if value["bytes"]:
        parts.append(
            f"before that, a file of {units.bytes_(value['bytes'])} is written at the disk's full speed"
        )
    return "estimate: " + "; ".join(parts)


def in_memory(chosen: Suite, size_bytes: int, memory_bytes: int) -> list[str]:
    """A warning that the file fits in memory, for suites that use the page cache; else empty."""
    if chosen.size_bytes is not None or size_bytes >= 2 * memory_bytes:
        return []
    most, memory = units.bytes_(size_bytes), units.bytes_(memory_bytes)
    why = (
        f"the suite {chosen.name} uses the page cache, and its file ({most}) is smaller than twice the "
        f"memory ({memory}): memory was measured, at least in part. Omit --size"
    )
    return [why]


def machine_limits(machine: Profile, declared: DeclaredDisk) -> list[str]:
    """The machine's limit for all uncached disks, and whether it is below this disk's limit."""
    allowed = limits_words(machine.iops, machine.bytes_per_s)
    if not allowed:
        return []
    burst = machine.burst
    more = f" ({limits_words(burst.iops, burst.bytes_per_s)} on credits)" if burst else ""
    disk = declared.burst or declared.limits
    lower = [
        name
        for name, has, may in (
            ("IOPS", disk and disk.iops, machine.iops),
            ("bytes per second", disk and disk.bytes_per_s, machine.bytes_per_s),
        )
        if has and may and may < has
    ]
    less = f", in {wording.listed(lower)} less than this disk" if lower else ""
    return [f"the machine {machine.name} allows {allowed}{more} to all its disks past the host's cache{less}"]
