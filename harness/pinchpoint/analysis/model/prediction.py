"""Predicts throughput after a change, with its interval and the next bottleneck.

All gains are calculated here: those of the advice in a verdict, of ``what-if`` and of comparisons.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from pinchpoint.analysis.case import Case
from pinchpoint.analysis.model.applied import Applied, Changed, apply
from pinchpoint.analysis.model.measured import Measured, model_of, take
from pinchpoint.analysis.model.network import CLOSE, OPEN_USERS, Solution, Users, is_open, solve
from pinchpoint.analysis.model.parts import CoresPart, DiskPart, Part, Wait
from pinchpoint.analysis.model.probed import DiskMix, Exchanged, mix_of
from pinchpoint.analysis.model.settings import Setting
from pinchpoint.analysis.resources.gain import SAME
from pinchpoint.analysis.stages import Rows
from pinchpoint.analysis.thresholds import OTHER_PROCESSES, UTILISATION
from pinchpoint.base import units
from pinchpoint.base.errors import InputError
from pinchpoint.data.resample import block_rows

SCHEMA = "pinchpoint.what-if/1"


@dataclass(frozen=True, slots=True)
class Throughput:
    """The measured and the predicted throughput of one scenario.

    Attributes:
        scenario: name of the scenario.
        now_per_s: successful operations per second in the judged part.
        then_per_s: predicted operations per second. ``low_per_s`` and ``high_per_s`` are the ends of its
            interval, from the uncertainty of the run, the assumptions, and the known error of the model.
        ratio: predicted ÷ measured throughput.
        now_s: measured mean seconds of an operation.
        then_s: predicted mean seconds of an operation; None for an open load that is not kept up, because its
            time grows without end.
        kept_up: whether an open load would be served completely; None for a closed load.
    """

    scenario: str
    now_per_s: float
    then_per_s: float
    low_per_s: float
    high_per_s: float
    ratio: float
    now_s: float
    then_s: float | None
    kept_up: bool | None

    @property
    def low_ratio(self) -> float:
        """Lower end of the predicted interval ÷ measured throughput."""
        return self.low_per_s / self.now_per_s if self.now_per_s else self.ratio

    @property
    def high_ratio(self) -> float:
        """Upper end of the predicted interval ÷ measured throughput."""
        return self.high_per_s / self.now_per_s if self.now_per_s else self.ratio


@dataclass(frozen=True, slots=True)
class Binding:
    """The resource that limits the load.

    Attributes:
        how: ``used_up``: a part is saturated; ``waited_for``: no part is saturated, but operations wait for
            this part most; ``elsewhere``: measured resources do not explain most of the time; ``nothing``: an
            open load is served completely.
        key: key of the part; None if no part limits.
        name: name of the limit, in words.
        ratio: utilisation of the part, or share of the operations' time spent there; None if nothing limits.
        scenario: the scenario whose operations wait; None if a part is saturated or nothing limits.
    """

    how: Literal["used_up", "waited_for", "elsewhere", "nothing"]
    key: str | None
    name: str
    ratio: float | None
    scenario: str | None


@dataclass(frozen=True, slots=True)
class PartUse:
    """Utilisation and wait of one part of the farm, before and after the change.

    Attributes:
        key: key of the resource.
        name: name of the part, in words.
        now_ratio: utilisation in the run; None without a known limit.
        then_ratio: predicted utilisation; None without a known limit. ``now_s`` and ``then_s`` are the
            longest times in seconds that an operation of any scenario spends there; 0: no wait.
    """

    key: str
    name: str
    now_ratio: float | None
    then_ratio: float | None
    now_s: float
    then_s: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """The predicted throughput and times after a change.

    Attributes:
        run: directory of the run.
        changed: effect of each setting.
        scenarios: throughput of each scenario.
        binds_now: what limits the run, according to the model.
        binds_then: what limits after the change.
        parts: utilisation and wait of each measured part.
        assumes: conditions and assumptions, as sentences.
        warnings: warnings for the reader.
        exchanged: probed disks that replace disks of the run.
    """

    run: str
    changed: tuple[Changed, ...]
    scenarios: tuple[Throughput, ...]
    binds_now: Binding
    binds_then: Binding
    parts: tuple[PartUse, ...]
    assumes: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    exchanged: tuple[Exchanged, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The prediction as JSON types, with null for unknown values.

        ``exchanged`` is present only if a probed disk was set.

        Raises:
            ValueError: a number is not finite.
        """
        content = {"schema": SCHEMA, **asdict(self)}
        if not self.exchanged:
            del content["exchanged"]
        result: dict[str, Any] = json.loads(json.dumps(content, allow_nan=False))
        return result


RESAMPLES = 40
SEED = 1
ROUGH = 1e-4
"""Precision of the solutions of resamples, whose spread is 5 % and more."""
ENDS = (0.025, 0.975)
LEAST_ERROR, MOST_ERROR = 0.05, 0.10
"""Error of the model for a small change, and for a change that doubles or halves throughput. Changes between
are interpolated in logarithms. The values come from pairs of emulated farms (tests/ground_truth/pairs)."""
MISFIT = 0.10
"""A model error above this ratio for the run itself gives a warning."""
STAYS = f"{SAME}; the time that no measured resource explains stays the same"
STEADY = {"closed", "open", "soak"}
"""Load models with a constant load."""
SHOWS = 0.005
AMORTISED = 0.75
"""CPU time grows at least with this power of throughput: small operations share the cost of wake-ups and
context switches. Embedded databases showed 0.5 to 0.76. Predictions use 1, the value of tiers that
compute."""
WORK_ROUNDS = 4

Change = Callable[[Measured], Applied]
"""Changes the parts and loads of a run or of a resample. Raises InputError."""


@dataclass(frozen=True)
class ModelledRun:
    """A run with its fitted model, the solution of the model, and resamples.

    Attributes:
        case: the judged part of the run.
        name: directory of the run.
    """

    case: Case
    name: str

    @property
    def rows(self) -> Rows:
        """The steps of the judged stage."""
        assert self.case.stage is not None  # noqa: S101 -- a case without is not modelled
        return self.case.stage.rows

    @cached_property
    def measured(self) -> Measured:
        """The run as parts and loads."""
        return take(self.case, self.rows)

    @cached_property
    def now(self) -> Solution:
        """The model's equilibrium for the run."""
        return solve(self.measured.model)

    @cached_property
    def drawn(self) -> tuple[tuple[Measured, Solution], ...]:
        """Block resamples of the run, with their solutions.

        Blocks are used because adjacent seconds are correlated.

        Resamples in which a scenario had no operations are left out.
        """
        places = block_rows(len(self.rows), RESAMPLES, np.random.default_rng(SEED))
        result = (take(self.case, self.rows[each], self.measured.loads) for each in places)
        names = [one.name for one in self.measured.seen]
        return tuple(
            (one, solve(one.model, self.now, ROUGH))
            for one in result
            if [each.name for each in one.seen] == names
        )


def predict_change(
    modelled: ModelledRun, settings: Sequence[Setting], notes: Sequence[str] = ()
) -> Prediction:
    """Predict the farm with these settings. Raises InputError if this is not possible.

    Args:
        modelled: the run.
        settings: the changes.
        notes: further assumptions besides those of the settings.
    """
    measured, mix = modelled.measured, _mix(modelled, [one for one in settings if one.what == "probe"])

    def change(measured: Measured) -> Applied:
        return apply(measured, settings, mix)

    applied = change(measured)
    now = modelled.now
    then = _solved(applied)  # starts like ``now``, so that a change without effect gives equal figures
    return Prediction(
        run=modelled.name,
        changed=applied.changed,
        scenarios=tuple(_throughputs(modelled, change, applied, now, then)),
        binds_now=_binding(measured.loads, measured.parts, now),
        binds_then=_binding(applied.loads, applied.parts, then),
        parts=tuple(_uses(measured.parts, applied.parts, now, then)),
        assumes=tuple(dict.fromkeys([STAYS, *applied.assumes, *notes])),
        warnings=tuple(_warnings(measured, now)),
        exchanged=applied.exchanged,
    )


def _mix(modelled: ModelledRun, probes: Sequence[Setting]) -> Mapping[str, DiskMix]:
    """By disk name, the I/O of an operation, if a probed disk is set.

    Raises InputError if the load is not constant.
    """
    if not probes:
        return {}
    models = {flow.load.model for flow in modelled.case.flows if flow.finished}
    if modelled.case.climb or not models <= STEADY:
        why = (
            f"the load of {modelled.name} is {', '.join(sorted(models))}; allowed with the disk of a probe: "
            "a constant load (closed, open, soak)"
        )
        raise InputError(*(f"--set {one.name}={one.text}: {why}" for one in probes))
    per_s = sum(one.per_s for one in modelled.measured.seen)
    disks = [one for one in modelled.case.resources if one.is_device]
    return {one.disk: one for one in (mix_of(disk, modelled.rows, per_s) for disk in disks)}


def _solved(
    applied: Applied, near: Solution | None = None, parts: Sequence[Part] | None = None, close: float = CLOSE
) -> Solution:
    return solve(model_of(applied.loads, applied.parts if parts is None else parts), near, close)


def _throughputs(
    modelled: ModelledRun, change: Change, applied: Applied, now: Solution, then: Solution
) -> Iterator[Throughput]:
    lows, highs = _spread(modelled, change, then)
    pairs = [(now, _solved(applied, then, parts)) for parts in applied.uncertain]
    pairs += _of_other_rests(modelled.measured, applied, now, then)
    pairs.append((now, _of_other_work(applied, now, then)))
    for one in modelled.measured.seen:
        name = one.name
        ratio = then.per_s[name] / now.per_s[name]
        also = [after.per_s[name] / before.per_s[name] for before, after in pairs]
        off = _off(ratio)
        low = min(ratio, lows.get(name, ratio), *also) / off
        high = max(ratio, highs.get(name, ratio), *also) * off
        load = next(load for load in applied.loads if load.scenario == name)
        kept = _kept_up(load, then)
        high = min(high, max(ratio, _asked_per_s(load) / now.per_s[name]))
        yield Throughput(
            scenario=name,
            now_per_s=one.now_per_s,
            then_per_s=one.now_per_s * ratio,
            low_per_s=one.now_per_s * low,
            high_per_s=one.now_per_s * high,
            ratio=ratio,
            now_s=one.time_s,
            then_s=None if kept is False else _time_s(load, then, one.per_s * ratio),
            kept_up=kept,
        )


def _of_other_rests(
    measured: Measured, applied: Applied, now: Solution, then: Solution
) -> Iterator[tuple[Solution, Solution]]:
    """(before, after) with the shortest and with the longest unexplained times that the run allows."""
    for loads in measured.ends:
        before = solve(model_of(loads, measured.parts), now)
        rests = {one.scenario: one.rest_s for one in loads}
        changed = (replace(one, rest_s=rests[one.scenario]) for one in applied.loads)
        yield before, solve(model_of(tuple(changed), applied.parts), then)


def _of_other_work(applied: Applied, now: Solution, then: Solution) -> Solution:
    """The solution after the change if CPU time per operation falls as throughput rises."""
    for _ in range(WORK_ROUNDS):
        factors = {name: (each / now.per_s[name]) ** (AMORTISED - 1) for name, each in then.per_s.items()}
        parts = (
            replace(part, cpu_s={name: each * factors[name] for name, each in part.cpu_s.items()})
            if isinstance(part, CoresPart)
            else part
            for part in applied.parts
        )
        then = _solved(applied, then, tuple(parts))
    return then


def _off(ratio: float) -> float:
    """The model's error as a factor, in either direction."""
    far = min(1.0, abs(math.log(ratio)) / math.log(2))
    return 1 + LEAST_ERROR + (MOST_ERROR - LEAST_ERROR) * far if far > CLOSE else 1.0


def _asked_per_s(load: Users) -> float:
    """The requested rate of a load in operations per second; infinite for users without a schedule."""
    return OPEN_USERS / (load.think_s + load.rest_s) if is_open(load) else load.most_per_s


def _kept_up(load: Users, then: Solution) -> bool | None:
    """Whether an open load would be served completely; None for a number of users."""
    offered = _asked_per_s(load)
    return then.per_s[load.scenario] >= (1 - 2 * SHOWS) * offered if math.isfinite(offered) else None


def _time_s(load: Users, then: Solution, per_s: float) -> float:
    """Mean seconds of an operation: from its stations for an open load, else from Little's law.

    Args:
        load: the load of one scenario.
        then: the model's equilibrium.
        per_s: predicted operations per second, scaled from the measured throughput of the run.
    """
    if _kept_up(load, then) is None:
        return max(0.0, load.users / per_s - load.think_s)
    there = sum(stay for (_, name), stay in then.stays_s.items() if name == load.scenario)
    return load.rest_s + there


def _spread(
    modelled: ModelledRun, change: Change, near: Solution
) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """(lower ends, upper ends) by scenario of the throughput ratio over resamples of the run."""
    ratios: dict[str, list[float]] = {one.name: [] for one in modelled.measured.seen}
    for measured, now in modelled.drawn:
        try:
            then = _solved(change(measured), near, close=ROUGH)
        except InputError:
            continue  # the change cannot be applied to the seconds of this resample alone
        for name, result in ratios.items():
            result.append(then.per_s[name] / now.per_s[name])
    low, high = (
        {name: float(np.quantile(result, end)) for name, result in ratios.items() if result} for end in ENDS
    )
    return low, high


# ---- the limiting part ----------------------------------------------------------------------------


def _binding(loads: Sequence[Users], parts: Sequence[Part], solution: Solution) -> Binding:
    """The fullest saturated part; without one, the part where operations spend most time."""
    full = {key: use for key, use in solution.use.items() if use >= UTILISATION.value}
    named = {part.key: part for part in parts}
    if full:
        key = max(full, key=lambda key: (key in solution.at_bound, full[key]))
        return Binding("used_up", key, named[key].name, min(1.0, full[key]), None)
    held_up = [one for one in loads if not is_open(one) and not _kept_up(one, solution)]
    if not held_up:
        return Binding("nothing", None, "nothing: the whole offered load is served", None, None)
    one = max(held_up, key=lambda one: one.users - solution.per_s[one.scenario] * one.think_s)
    time_s = one.users / solution.per_s[one.scenario]
    stays = {key: stay / time_s for (key, name), stay in solution.stays_s.items() if name == one.scenario}
    key = max(stays, key=stays.__getitem__, default="")
    elsewhere = 1 - sum(stays.values()) - one.think_s / time_s
    if not key or stays[key] < elsewhere:
        return Binding("elsewhere", None, "time that no measured resource explains", elsewhere, one.scenario)
    return Binding("waited_for", key, named[key].name, stays[key], one.scenario)


def _uses(before: Sequence[Part], after: Sequence[Part], now: Solution, then: Solution) -> Iterator[PartUse]:
    for part in before:
        stay = [
            max((found.stays_s[key, name] for key, name in found.stays_s if key == part.key), default=0.0)
            for found in (now, then)
        ]
        # Without a known limit, a part has utilisation 0 in the model: its utilisation is unknown.
        capped = [_is_capped(one) for one in (part, _same(after, part))]
        used = [
            found.use.get(part.key) if known else None
            for found, known in zip((now, then), capped, strict=True)
        ]
        yield PartUse(part.key, part.name, used[0], used[1], stay[0], stay[1])


def _is_capped(part: Part) -> bool:
    return part.caps.known if isinstance(part, DiskPart) else not isinstance(part, Wait)


def _same(parts: Sequence[Part], part: Part) -> Part:
    return next(one for one in parts if one.key == part.key)


def _warnings(measured: Measured, now: Solution) -> Iterator[str]:
    yield from measured.left_out
    for one in measured.seen:
        ratio = now.per_s[one.name] / one.per_s
        if abs(ratio - 1) > MISFIT:
            yield (
                f"{one.name}: the model calculates {units.percent(ratio)} of the throughput measured in "
                "this run; changes are relative to the model's value"
            )
    for part in measured.parts:
        if isinstance(part, CoresPart) and part.others_ratio > OTHER_PROCESSES.value:
            yield (
                f"{units.percent(part.others_ratio)} of {part.name} is used by other processes: half of "
                "that is assumed to be available to the farm"
            )
    for target, why in measured.unmeasured.items():
        yield f"{target} is not part of the model: {why}"
