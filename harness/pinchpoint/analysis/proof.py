"""Computes the result of the causal test of ``run --prove`` from the test's measured windows.

The inputs are the measurements of the windows, and the share of speed that a slowed resource kept.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow.compute as pc
import scipy  # loads its parts on first use; most verdicts need no part

from pinchpoint.analysis.case import Case
from pinchpoint.analysis.flows import Flow
from pinchpoint.analysis.resources.base import Suspicion, waits_for
from pinchpoint.analysis.resources.kinds import LIMIT_MODES, kind_of
from pinchpoint.analysis.summary import inconclusive_words
from pinchpoint.analysis.thresholds import PROOF_ANSWERS, PROOF_EXCEEDS, PROOF_NOTHING, PROOF_VISIBLE, STARTED
from pinchpoint.analysis.verdict import PLACE, Bottleneck, Fact, Headroom, Kind, Verdict
from pinchpoint.base import units
from pinchpoint.base.clock import seconds_of
from pinchpoint.data.operations import Traffic
from pinchpoint.data.series import Floats, Window
from pinchpoint.store.read import StoredRun

AS_IS, SLOWER, CONTROL = "as_is", "slower", "control"
SURE = 0.95
DRIFT_FROM = 6
"""With fewer windows a difference cannot be separated from a drift."""


@dataclass(frozen=True, slots=True)
class Effect:
    """The measured effect of a change on a figure.

    Attributes:
        ratio: figure of the changed windows ÷ figure of the normal windows.
        low: lower end of the 95 % interval of ``ratio``; None with too few windows.
        high: upper end of the 95 % interval of ``ratio``; None with too few windows.
    """

    ratio: float
    low: float | None = None
    high: float | None = None

    def shares(self, expected: float) -> tuple[float | None, float | None]:
        """(least, most) measured share of the effect ``expected``: 1 is all of the effect, 0 none."""
        if self.low is None or self.high is None:
            return None, None
        return math.log(self.high) / math.log(expected), math.log(self.low) / math.log(expected)

    @property
    def words(self) -> str:
        """The effect in words: ``74 % (71 % to 78 %)``."""
        if self.low is None or self.high is None:
            return units.percent(self.ratio)
        return f"{units.percent(self.ratio)} ({units.percent(self.low)} to {units.percent(self.high)})"


@dataclass(frozen=True, slots=True)
class PredictedEffect:
    """The effect of a change that the model predicts.

    Attributes:
        ratio: throughput after the change ÷ throughput now.
        words: the reason for the prediction.
    """

    ratio: float
    words: str


def find_effects(windows: Iterable[tuple[str, float, float]]) -> dict[str, Effect]:
    """The effect of each change on a figure, by least squares of its logarithm with a common drift.

    The unit is a window, because the seconds within a window resemble each other. All kinds of windows have
    the same variance.

    Args:
        windows: (change, time in seconds from any origin, figure above 0) of each window.
    """
    rows = list(windows)
    kinds = [kind for kind in (SLOWER, CONTROL) if any(row[0] == kind for row in rows)]
    if not kinds or not any(row[0] == AS_IS for row in rows):
        return {}
    at = np.array([row[1] for row in rows])
    columns: list[Floats] = [np.ones(len(rows))]
    columns += [np.array([float(row[0] == kind) for row in rows]) for kind in kinds]
    if len(rows) >= DRIFT_FROM:
        columns.append((at - at.mean()) / float(np.ptp(at)))
    design, figures = np.column_stack(columns), np.log([row[2] for row in rows])
    result, _, rank, _ = np.linalg.lstsq(design, figures, rcond=None)
    free = len(rows) - rank
    if free < 2 or rank < len(columns):
        return {kind: Effect(math.exp(result[place])) for place, kind in enumerate(kinds, 1)}
    spread = float(((figures - design @ result) ** 2).sum()) / free
    errors = np.sqrt(spread * np.diag(np.linalg.inv(design.T @ design)))
    reach = scipy.stats.t.ppf((1 + SURE) / 2, free) * errors
    return {
        kind: Effect(*(math.exp(result[place] + side * reach[place]) for side in (0, -1, 1)))
        for place, kind in enumerate(kinds, 1)
    }


def predicted(
    suspicion: Suspicion | None, kind: Kind, change: Mapping[str, Any], working: float = 1.0
) -> PredictedEffect:
    """The throughput that the model predicts if the named resource is slower.

    If operations wait for the resource, these waits take 1 ÷ ratio times as long: X' ÷ X = 1 ÷ (1 + w (1 ÷
    ratio - 1)), where w is the waits' share of the users' time, including think time (Little's law at a fixed
    number of users). A saturated resource does less in proportion: X' ÷ X = ratio ÷ U. Nothing changes while
    U is below the ratio (utilisation law).

    Args:
        suspicion: the evidence about the resource; None if only its name is known.
        kind: how the resource limits, or would limit.
        change: ``ratio``, the speed after the change ÷ before, and ``of``, what it is a share of: the
            resource's ``capacity`` or its earlier ``use``.
        working: share of the users' time with an operation in flight; the rest is think time.
    """
    ratio = float(change["ratio"])
    if LIMIT_MODES[kind] == "time":
        share, words = (
            kind_of(suspicion).waited_share(suspicion, suspicion.found, working)
            if suspicion
            else waits_for(None, working)
        )
        return PredictedEffect(1 / (1 + share * (1 / ratio - 1)), words)
    used = 1.0 if change.get("of") == "use" else _used(suspicion)
    words = "all of it is used" if used >= 1 else f"{units.percent(used)} of it is used"
    return PredictedEffect(min(1.0, ratio / used), words)


def _used(suspicion: Suspicion | None) -> float:
    """The utilisation of the resource; 1 if unknown, or if the resource does not limit by its utilisation."""
    if suspicion is None or LIMIT_MODES[suspicion.kind] != "use":
        return 1.0
    used = kind_of(suspicion).used_share(suspicion, suspicion.found)
    return min(1.0, used) if used else 1.0


def answer(
    effect: Effect | None, model: PredictedEffect, also: str | None = None, what: str = "throughput"
) -> tuple[Literal["agrees", "contradicts", "undecided"], str]:
    """Whether the measurement agrees with the model, with a sentence that explains the answer.

    The answer depends on the measured share of the model's effect, on a logarithmic scale, and its interval.

    Args:
        effect: the measured effect of the change; None if a window has no finished operation.
        model: the effect that the model predicts.
        also: another change that had an effect and should have none, in words; None without such a change.
        what: the compared figure, in words.
    """
    if effect is None:
        return "undecided", "nothing got through in some of the windows"
    if model.ratio > PROOF_VISIBLE.value:
        return "undecided", f"at this load the model says that hardly anything changes: {model.words}"
    text = f"{what} came to {effect.words} of what it was; the model says {units.percent(model.ratio)}"
    least, most = effect.shares(model.ratio)
    if least is None or most is None:
        return "undecided", f"{text}; too few windows to decide"
    if most < PROOF_ANSWERS.value:
        return "contradicts", text
    doubts = (
        (least < PROOF_ANSWERS.value, "the windows differ too much from each other to decide"),
        (least > PROOF_EXCEEDS.value, "it fell by more than that: more than this was made slower"),
        (also is not None, f"but so it did when {also} was slower"),
    )
    doubt = next((words for holds, words in doubts if holds), None)
    return ("undecided", f"{text}; {doubt}") if doubt else ("agrees", text)


SPEED = "the speed of operations (1 ÷ the time they take)"
NAMED = ("kind", *PLACE)


@dataclass(frozen=True, slots=True)
class EffectFigure:
    """The figure that is compared between windows, and that must be lower in a slower window.

    Attributes:
        scenario: the scenario of the operations.
        name: ``throughput_per_s``, or ``operations_per_busy_s`` (1 ÷ service time) for an open load that the
            farm keeps up with: the throughput of such a load follows the schedule.
    """

    scenario: str
    name: Literal["throughput_per_s", "operations_per_busy_s"]

    @property
    def words(self) -> str:
        """The name of the figure, in words."""
        return SPEED if self.name == "operations_per_busy_s" else "throughput"

    def of(self, traffic: Traffic, seconds: int) -> float | None:
        """The figure over ``traffic`` of ``seconds`` seconds; None if it is a time and no operation ended."""
        done = traffic.of(self.scenario).whole().ok()
        if self.name == "throughput_per_s":
            return done.count / seconds
        times = done.service()
        return 1 / times.mean_s if times is not None and times.mean_s > 0 else None


def with_proof(verdict: Verdict, run: StoredRun, case: Case) -> Verdict:
    """The verdict with the result of the causal test; unchanged without a test.

    Agreement adds a sentence and changes nothing else, because docs/rules.md has no such evidence. A
    contradiction lowers the confidence to low. If throughput hardly responded at all, no bottleneck is named.
    """
    given = run.manifest.get("proof")
    if given is None:
        return verdict
    if "windows" not in given:
        return replace(verdict, proof=_untested(given))
    target = verdict.bottleneck or next(iter(verdict.candidates), None)
    if target is None or any(getattr(target, key) != given["suspect"][key] for key in PLACE):
        why = "what was made slower is not what this verdict names"
        return replace(verdict, proof={**_untested(given), "result": "undecided", "why": why})
    return _judged(verdict, run, case, target, given)


def _untested(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "result": given.get("result"),
        "why": given.get("why"),
        "resource": given.get("suspect"),
        "change": None,
        "of": None,
        "predicted_ratio": None,
        "measured_ratio": None,
        "ci95": None,
        "sensitivity": None,
        "predicted_sensitivity": None,
        "control": None,
        "windows": [],
    }


def _judged(
    verdict: Verdict, run: StoredRun, case: Case, target: Bottleneck, given: Mapping[str, Any]
) -> Verdict:
    one = next(iter(case.found), None)
    figure = _figure(case.flows, one, target)
    if figure is None:
        return replace(
            verdict, proof={**_untested(given), "result": "undecided", "why": "no operation was recorded"}
        )
    windows = list(_values(run, figure, given["windows"]))
    effects = _effects(windows)
    change, model = given["change"], predicted(one, target.kind, given["change"], _working(case, figure))
    control = _control(given.get("control"), effects.get(CONTROL), figure)
    also_slower = control is not None and control["result"] == "contradicts"
    also = given["control"]["change"]["what"] if also_slower else None
    result, why = answer(effects.get(SLOWER), model, also, figure.words)
    proof = {
        **_untested(given),
        "result": result,
        "why": why,
        "change": {"what": change["what"], "capacity_ratio": change["ratio"]},
        "of": asdict(figure),
        "predicted_ratio": model.ratio,
        **_measured(effects.get(SLOWER), change["ratio"]),
        "predicted_sensitivity": math.log(model.ratio) / math.log(change["ratio"]),
        "control": control,
        "windows": [{key: row[key] for key in ("what", "from", "to", "value")} for row in windows],
    }
    fact = _fact(change, figure, effects.get(SLOWER), model, windows)
    reasons = (*verdict.explanation.reasons, f"made slower on purpose: {result}: {why}")
    explained = replace(verdict, proof=proof, explanation=replace(verdict.explanation, reasons=reasons))
    return _amended(explained, fact, proof, effects.get(SLOWER), model)


# ---- measurements of the test ------------------------------------------------------------------------


def _figure(flows: Iterable[Flow], suspicion: Suspicion | None, target: Bottleneck) -> EffectFigure | None:
    """The figure that must respond, of the scenario that waits most at the suspect's tier."""
    flows = [flow for flow in flows if flow.ok]
    named = (suspicion.disk.waiting if suspicion.disk else suspicion.resource.scenario) if suspicion else None
    own = [flow for flow in flows if flow.load.scenario == named]
    pressed = own or [flow for flow in flows if flow.pressed] or flows
    if not pressed:
        return None
    first = max(pressed, key=lambda flow: (flow.going_on(target.tier or ""), flow.ok))
    keeps_up = first.load.scheduled and (first.started_ratio or 1.0) >= STARTED.value
    if keeps_up and LIMIT_MODES[target.kind] == "time":
        return EffectFigure(first.load.scenario, "operations_per_busy_s")
    return EffectFigure(first.load.scenario, "throughput_per_s")


def _working(case: Case, figure: EffectFigure) -> float:
    """The share of the users' time with an operation in flight.

    The rest is think time, which a slower resource does not change.
    """
    flow = next(flow for flow in case.flows if flow.load.scenario == figure.scenario)
    if figure.name != "throughput_per_s" or flow.service is None or not flow.think_s:
        return 1.0
    return flow.service.mean_s / (flow.service.mean_s + flow.think_s)


def _values(
    run: StoredRun, figure: EffectFigure, windows: Iterable[Mapping[str, Any]]
) -> Iterable[dict[str, Any]]:
    everything = Traffic(run.operations)
    for given in windows:
        begin_s, end_s = round(seconds_of(given["from"])), round(seconds_of(given["to"]))
        there = everything.during(Window(begin_s, 1, end_s - begin_s))
        value = figure.of(there, end_s - begin_s)
        yield {**given, "at_s": (begin_s + end_s) / 2, "value": value}


def _effects(windows: Sequence[Mapping[str, Any]]) -> dict[str, Effect]:
    """The effect of each change; none if a window with, or without, the change has no finished operation.

    The remaining windows alone would make the figure look too good.
    """
    empty = {row["what"] for row in windows if row["value"] is None or row["value"] == 0}
    rows = [(row["what"], row["at_s"], row["value"]) for row in windows if row["value"] is not None]
    rows = [(kind, at_s, value) for kind, at_s, value in rows if value > 0]
    result = {} if AS_IS in empty else find_effects(rows)
    return {kind: effect for kind, effect in result.items() if kind not in empty}


def _measured(effect: Effect | None, ratio: float) -> dict[str, Any]:
    if effect is None:
        return {"measured_ratio": None, "ci95": None, "sensitivity": None}
    return {
        "measured_ratio": effect.ratio,
        "ci95": None if effect.low is None else [effect.low, effect.high],
        "sensitivity": math.log(effect.ratio) / math.log(ratio),
    }


def _control(
    given: Mapping[str, Any] | None, effect: Effect | None, figure: EffectFigure
) -> dict[str, Any] | None:
    """The result of the control test: a resource with headroom was slower, so nothing must have changed."""
    if given is None:
        return None
    change, ratio = given["change"], float(given["change"]["ratio"])
    least, most = effect.shares(ratio) if effect else (None, None)
    if effect is None or least is None or most is None:
        result, why = "undecided", "too few windows to decide"
    else:
        result = "agrees" if most < PROOF_ANSWERS.value else "undecided"
        result = "contradicts" if least > PROOF_ANSWERS.value else result
        why = f"{figure.words} came to {effect.words} of what it was; the model says that nothing changes"
    return {
        "result": result,
        "why": why,
        "resource": {key: given["suspect"][key] for key in NAMED},
        "change": {"what": change["what"], "capacity_ratio": ratio},
        "predicted_ratio": 1.0,
        **_measured(effect, ratio),
    }


# ---- changes of the verdict --------------------------------------------------------------------------


def _fact(
    change: Mapping[str, Any],
    figure: EffectFigure,
    effect: Effect | None,
    model: PredictedEffect,
    windows: list[dict[str, Any]],
) -> Fact:
    values: dict[str, list[float]] = defaultdict(list)
    for row in windows:
        values[row["what"]].append(0.0 if row["value"] is None else row["value"])
    before, then = (units.per_second(float(np.mean(values[kind] or [0.0]))) for kind in (AS_IS, SLOWER))
    what = "throughput" if figure.name == "throughput_per_s" else "operations per second of waiting"
    measured = effect.words if effect else units.NOT_MEASURED
    return Fact(
        fact=f"made slower on purpose ({change['what']} at {units.percent(change['ratio'])} of its speed): "
        f"{what} of {figure.scenario} went from {before} to {then}, {measured}; the model says "
        f"{units.percent(model.ratio)} ({model.words})",
        metric="operations.count",
        value=effect.ratio if effect else None,
        evidence="causal",
        rule=f"{PROOF_ANSWERS.says}; {model.words}",
    )


def _amended(
    verdict: Verdict, fact: Fact, proof: Mapping[str, Any], effect: Effect | None, model: PredictedEffect
) -> Verdict:
    """The verdict with the test as evidence, and without the parts that the test contradicts."""
    result, why = proof["result"], proof["why"]
    target = verdict.bottleneck or verdict.candidates[0]
    named = replace(target, evidence=(*target.evidence, fact))
    if verdict.bottleneck is None:
        return replace(verdict, candidates=(named, *verdict.candidates[1:]))
    if result != "contradicts":
        return replace(verdict, bottleneck=named)
    sentence = f"made slower on purpose it did not answer as what limits does: {why}"
    warnings = (*verdict.warnings, f"the test contradicts this verdict: {why}")
    _, most = effect.shares(model.ratio) if effect else (None, None)
    if most is None or most >= PROOF_NOTHING.value:
        doubted = replace(named, confidence="low", why_not_more=(*named.why_not_more, sentence))
        return replace(verdict, bottleneck=doubted, warnings=warnings)
    candidates = tuple(replace(one, confidence=None) for one in (verdict.runner_up, named) if one is not None)
    return replace(
        verdict,
        outcome="inconclusive",
        bottleneck=None,
        runner_up=None,
        next=None,
        then=None,
        headroom_ratio=None,
        headroom=Headroom(None, "unknown", None, None, None, "the test refuted what it was reckoned from"),
        advice=(),
        candidates=candidates,
        experiment=f"Find what else holds {proof['of']['scenario']} up: {proof['change']['what']} does not.",
        answer=inconclusive_words(sentence, candidates),
        warnings=warnings,
    )


def without_proof(run: StoredRun) -> StoredRun:
    """The run without the windows of the test, so that other analyses do not see the slowdowns."""
    begun = [phase["from"] for phase in run.manifest.get("phases") or () if phase["name"] == "prove"]
    if not begun:
        return run
    before = pc.less(run.operations["time_s"], math.floor(seconds_of(begun[0])))
    return replace(
        run,
        operations=run.operations.filter(before),
        events=[
            event
            for event in run.events
            if event.get("event") != "crawl_ended" or seconds_of(event["time"]) < seconds_of(begun[0])
        ],
    )
