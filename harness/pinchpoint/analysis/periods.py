"""Finds the bottleneck over time: one resource after the other, or several that take turns within a step."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pinchpoint.analysis.case import Case, build_case
from pinchpoint.analysis.levels import Level
from pinchpoint.analysis.resources.base import Resource, Suspicion
from pinchpoint.analysis.resources.disk.devices import disk_reading_s
from pinchpoint.analysis.resources.kinds import KINDS, measure, place, resource_name
from pinchpoint.analysis.thresholds import MIN_BLOCK, MIN_BLOCKS, MIN_SECONDS, OFTEN, UTILISATION
from pinchpoint.analysis.verdict import PLACE
from pinchpoint.base import units
from pinchpoint.base.wording import listed
from pinchpoint.data.inputs import Inputs, utc
from pinchpoint.data.series import Floats, Window

Steps = npt.NDArray[np.bool_]

MOST_BLOCKS = 24
"""Most blocks of equal length in a window."""
READINGS = 2
"""Fewest readings of each disk in a block."""


@dataclass(frozen=True, slots=True)
class Period:
    """A part of the window in which one resource, or none, was saturated.

    Attributes:
        window: the time of the period.
        blocks: number of consecutive blocks with the same result.
        first: the first suspect in the period's first block; None if no resource was saturated.
        suspected: resource -> number of blocks with evidence against it.
        seen: resource -> number of blocks in which the resource was measured.
        level: the load levels of the period, in words; "" if no load was in steps.
    """

    window: Window
    blocks: int
    first: Suspicion | None
    suspected: Mapping[str, int]
    seen: Mapping[str, int]
    level: str = ""

    @property
    def key(self) -> str | None:
        """The key of the saturated resource; None if no resource was saturated."""
        return self.first.resource.key if self.first else None


def find_periods(inputs: Inputs, levels: Sequence[Level] = ()) -> tuple[Period, ...]:
    """The periods of the window: consecutive blocks, or load levels, with the same result form one period.

    A single block between two blocks with the same other result counts as chance and gets that result.
    """
    blocks = [_block(inputs, window, words) for window, words in _windows(inputs, levels)]
    for before, at, after in zip(blocks, range(1, len(blocks)), blocks[2:], strict=False):
        lonely = before.key == after.key and blocks[at].key != before.key
        if lonely and not levels:
            blocks[at] = replace(blocks[at], first=before.first)
    return tuple(_joined(list(group)) for _, group in itertools.groupby(blocks, key=lambda block: block.key))


def _windows(inputs: Inputs, levels: Sequence[Level]) -> Iterator[tuple[Window, str]]:
    whole = inputs.window
    if levels:
        climber = [level for level in levels if level.scenario == levels[0].scenario]
        for level in climber:
            window = level.window(whole.step_s)
            if window.steps:
                yield window, level.words
        return
    least_s = max(MIN_BLOCK.value, READINGS * _longest_reading_s(inputs))
    steps = max(-(-whole.steps // MOST_BLOCKS), math.ceil(least_s / whole.step_s))
    count = max(1, whole.steps // steps)
    for number in range(count):
        first = number * steps
        length = steps if number < count - 1 else whole.steps - first
        yield Window(whole.first_s + first * whole.step_s, whole.step_s, length), ""


def _longest_reading_s(inputs: Inputs) -> float:
    """The longest interval between readings of a disk, in seconds; 0 without disks."""
    known = ((one.host, one.device) for one in inputs.disks if one.device is not None)
    each_s = (disk_reading_s(inputs.samples, [host], device) for host, device in known)
    return max(each_s, default=0.0)


def _block(inputs: Inputs, window: Window, words: str) -> Period:
    case: Case | None = build_case(inputs.during(window)) if window.steps else None
    result = [one for one in case.found if not one.not_waited_for] if case else []
    there = Counter(one.key for one in case.resources if _measured(one)) if case else Counter[str]()
    suspected = Counter(one.resource.key for one in result)
    return Period(window, 1, next(iter(result), None), suspected, there, words)


def _measured(resource: Resource) -> bool:
    """Whether a resource has a reading: without readings it may be at its limit."""
    column = next(
        (resource.columns[name] for name in ("reads", "busy", "used") if name in resource.columns), None
    )
    return column is not None and bool(np.isfinite(column).any())


def _joined(blocks: Sequence[Period]) -> Period:
    first, last = blocks[0], blocks[-1]
    steps = (last.window.first_s - first.window.first_s) // first.window.step_s + last.window.steps
    words = [first.level, last.level] if len(blocks) > 1 else [first.level]
    return Period(
        Window(first.window.first_s, first.window.step_s, steps),
        len(blocks),
        first.first,
        sum((Counter(block.suspected) for block in blocks), Counter()),
        sum((Counter(block.seen) for block in blocks), Counter()),
        " to ".join(filter(None, words)),
    )


def moved(periods: Sequence[Period]) -> bool:
    """Whether two resources were saturated in turn, and neither during most of the other's time.

    Two resources that are saturated at the same time alternate in first place, which is no move.
    """
    return any(_apart(a, b) and _apart(b, a) for a, b in itertools.combinations(_held(periods), 2))


def _held(periods: Sequence[Period]) -> list[Period]:
    """The periods in which a resource was saturated for too long to be chance."""
    return [one for one in periods if one.first and one.blocks >= MIN_BLOCKS.value]


def _apart(period: Period, other: Period) -> bool:
    if period.key is None or other.seen.get(period.key, 0) * 2 < other.blocks:
        return False
    return other.suspected.get(period.key, 0) * 2 < other.blocks


def moved_at_s(periods: Sequence[Period]) -> float:
    """The UTC second until which the first resource was saturated; infinite without a move."""
    return _held(periods)[0].window.end_s if moved(periods) else math.inf


def longest(periods: Sequence[Period]) -> Period:
    """The longest period with a saturated resource; the later of two equally long ones."""
    held = [one for one in periods if one.first]
    return max(held, key=lambda one: (one.window.seconds, one.window.first_s))


def full_from_s(periods: Sequence[Period]) -> float:
    """The UTC second since which one resource was saturated until the end; infinite if none was."""
    last = periods[-1] if periods else None
    return float(last.window.first_s) if last and last.first else math.inf


def moved_words(periods: Sequence[Period]) -> str:
    """The bottlenecks in order of time, as a sentence."""
    held, end_s = _held(periods), periods[-1].window.end_s
    parts = []
    for before, one in zip([None, *held], held, strict=False):
        assert one.first is not None  # noqa: S101 -- the list has none without
        begun = before is not None and one.window.first_s > before.window.end_s
        times = [f"from {_clock(one.window.first_s)} on"] if begun else []
        times += [f"until {_clock(one.window.end_s)}"] if one.window.end_s < end_s else []
        parts.append(" ".join([resource_name(one.first), *times]))
    return f"The bottleneck moved while this was measured: {', '.join(parts[:-1])}, then {parts[-1]}."


def _clock(time_s: float) -> str:
    return f"{utc(time_s)[11:19]} UTC"


def at_times_words(periods: Sequence[Period]) -> str:
    """A sentence about resources saturated for part of the time; "" if each was saturated too briefly."""
    lasted, blocks = Counter[str](), Counter[str]()
    firsts: dict[str, Suspicion] = {}
    for one in periods:
        if one.first is not None:
            key = one.first.resource.key
            lasted[key] += one.window.seconds
            blocks[key] += one.blocks
            firsts.setdefault(key, one.first)
    parts = [
        f"{resource_name(firsts[key])} for {units.seconds(float(length))}"
        for key, length in lasted.most_common()
        if blocks[key] >= MIN_BLOCKS.value
    ]
    whole = units.seconds(float(sum(one.window.seconds for one in periods)))
    return f"Saturated for a part of the {whole}: {listed(parts)} (timeline)." if parts else ""


def timeline_table(
    periods: Sequence[Period], judged: Suspicion | None = None, window: Window | None = None
) -> tuple[dict[str, Any], ...]:
    """One row per period: from, to, level, and the saturated resource (``kind`` None: no resource).

    Args:
        periods: the periods of the whole window.
        judged: the verdict's suspect, which replaces that of a period: its kind of limit comes from the whole
            window, not from a block.
        window: the judged part of the run.
    """
    return tuple(
        _row(replace(one, first=judged) if judged and window and _same(one, judged, window) else one)
        for one in periods
        if one.window.seconds >= MIN_SECONDS.value or one.level
    )


def _same(period: Period, judged: Suspicion, window: Window) -> bool:
    meet = period.window.first_s < window.end_s and window.first_s < period.window.end_s
    return meet and period.key == judged.resource.key


def _row(period: Period) -> dict[str, Any]:
    window, first = period.window, period.first
    return {
        "from": utc(window.first_s),
        "to": utc(window.end_s),
        "level": period.level or None,
        "kind": first.kind if first else None,
        **(place(first.resource, first.found) if first else dict.fromkeys(PLACE)),
    }


# ---- resources that take turns within a step -------------------------------------------------------


def taking_turns(case: Case) -> list[tuple[Resource, float]]:
    """The resources that take turns at their limit, with their shares of the time, the largest first.

    Work that uses one resource after the other takes the sum of the times at both. So the resources are at
    their limits at once less than half as often as independent resources would be. Each resource is often at
    its limit while the others are not, and together they leave hardly any time. A turn begins and ends within
    a step. So in a step in which no resource is at its limit, the share of each resource is its utilisation.
    """
    if case.stage is None:
        return []
    uses = [
        (one, used, used >= least.limit.value)
        for one in case.resources
        if one.whole is None and (least := KINDS[one.type].full_now) is not None
        for used in [one.columns[least.column][case.stage.rows]]
    ]
    # A tier's CPU limit is a limit of its own only if it is lower than the machine's cores. If both are full
    # equally often, the cores come first.
    uses.sort(key=lambda use: (-use[2].mean(), use[0].type != KINDS[use[0].type].kind, use[0].key))
    turns: list[tuple[Resource, Floats, Steps]] = []
    for one, used, full in uses:
        others = np.any([np.zeros_like(full), *(each for *_, each in turns)], axis=0)
        alone, together = float((full & ~others).mean()), float((full & others).mean())
        if alone < OFTEN.value or together > float(full.mean() * others.mean()) / 2:
            continue
        if not any(_of_the_same_cores(one, other) for other, *_ in turns):
            turns.append((one, used, full))
    if len(turns) < 2:
        return []
    at_limit = np.array([full for *_, full in turns])
    parts = np.where(at_limit.any(axis=0), at_limit, np.nan_to_num([used for _, used, _ in turns]))
    shares = (parts / np.maximum(1.0, parts.sum(axis=0))).mean(axis=1)
    if shares.sum() < UTILISATION.value:
        return []
    result = [(one, float(share)) for (one, *_), share in zip(turns, shares, strict=True)]
    return sorted(result, key=lambda item: (-item[1], item[0].key))


def _of_the_same_cores(resource: Resource, other: Resource) -> bool:
    """Whether two resources are the cores of one machine and a tier's CPU limit on that machine."""
    limit = KINDS[resource.type].kind == KINDS[other.type].kind
    return limit and resource.type != other.type and resource.machine == other.machine


def alternating_words(case: Case) -> str:
    """A sentence about the resources that take turns at their limit, with shares of the time, else ""."""
    turns = taking_turns(case)
    if case.stage is None or not turns:
        return ""
    rows = case.stage.rows
    shares = [
        f"{KINDS[one.type].name(one, measure(one, rows))} for {units.percent(share)} of the time"
        for one, share in turns
    ]
    return f"Several resources took turns at their limit: {listed(shares)}."
