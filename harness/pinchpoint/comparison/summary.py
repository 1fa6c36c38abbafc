"""A comparison in a few plain sentences: did the bottleneck move, what changed, how sure that is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pinchpoint.comparison import changes as change
from pinchpoint.comparison.changes import Change
from pinchpoint.comparison.claim import Claim
from pinchpoint.comparison.manifests import Difference
from pinchpoint.comparison.moved import Movement
from pinchpoint.comparison.sides import Sides
from pinchpoint.report import units, words


def summary(
    sides: Sides, movement: Movement, main: Sequence[str], claimed: Claim, factors: Sequence[str]
) -> str:
    """The answer in sentences: the bottleneck, what changed, what may be claimed."""
    said = [movement_words(sides, movement)]
    if main and claimed.kind:
        said.append(f"From {sides.base.label} to {sides.other.label}: {'; '.join(main)}.")
    said.append(claim_words(claimed, factors))
    return " ".join(said)


def movement_words(sides: Sides, movement: Movement) -> str:
    """Whether the bottleneck moved, in one sentence."""
    if movement.moved is None or movement.base is None or movement.other is None:
        return f"Whether the bottleneck moved cannot be said: {movement.why}."
    base, other = thing(movement.base), thing(movement.other)
    if movement.moved:
        return f"The bottleneck moved: from {base} in {sides.base.label} to {other} in {sides.other.label}."
    note = f" ({movement.why})" if movement.why else ""
    return f"The bottleneck did not move: on both sides {base} gives way first{note}."


def main_changes(sides: Sides, found: Sequence[Change], studied: Sequence[Difference]) -> Iterator[str]:
    """What each scenario is judged by, and what the studied disks did."""
    plans = [manifest.get("plan") or {} for side in sides for manifest in side.manifests]
    planned: Mapping[str, Any] = plans[0].get("scenarios") or {}
    for name in dict.fromkeys(one.scenario for one in found if one.scenario):
        # Users who wait for each other do more or less; a schedule is kept, and takes longer or shorter.
        closed = ((planned.get(name) or {}).get("load") or {}).get("model", "closed") == "closed"
        one = change.of(found, scenario=name, metric="throughput_per_s") if closed else _p95(found, name)
        if one and one.pair.ratio is not None:
            yield f"{name}{'' if closed else ' p95'} {shift(one)}"
    disks = {(one.tier, one.role): None for one in studied if one.area == "disks" and one.role}
    for tier, role in disks:
        one = change.of(found, about="disk", tier=tier, role=role, metric="write_latency_mean_s")
        if one and one.pair.ratio is not None:
            yield f"a write to the {role} disk of {tier} {shift(one)}"


def shift(one: Change) -> str:
    """Both medians and how many times as much the other one is."""
    values = (units.of_metric(one.metric, value) for value in (one.pair.base, one.pair.other))
    return f"{' → '.join(values)} ({units.times(one.pair.ratio)})"


def _p95(found: Sequence[Change], name: str) -> Change | None:
    for metric in ("response_p95_s", "service_p95_s"):
        one = change.of(found, scenario=name, metric=metric)
        if one:
            return one
    return None


def claim_words(claimed: Claim, factors: Sequence[str]) -> str:
    """What may be claimed, in one sentence."""
    because = "; ".join(claimed.because)
    named = words.listed(list(factors)) if factors else ""
    if claimed.kind is None:
        return f"Nothing is claimed: {because}."
    if claimed.kind == "caused_by":
        return f"What changed may be put down to {named}: {because}."
    what = f"with {named}" if named else "with the difference between the sides"
    return f"What changed came together {what} and is not shown to be caused by it: {because}."


def thing(suspect: Mapping[str, Any]) -> str:
    """A resource without its host and device: ``the log disk of sql``."""
    return words.place({**suspect, "host": None, "instance": ""})


def warnings(sides: Sides, found: Sequence[Change], differing: Sequence[Difference]) -> Iterator[str]:
    """What a reader must know beside the figures."""
    if any(one.ci95 is None for one in found):
        counts = ", ".join(f"{side.label}: {len(side.runs)}" for side in sides)
        yield (
            "No change is called better, worse or equivalent: ratios have no 95 % interval yet. They say "
            f"what these runs measured ({counts}), not what another run would. Whether the bottleneck moved "
            "rests on the verdicts alone."
        )
    for directory in sides.same_runs:
        yield f"{directory} stands on both sides: held against itself, it can show no difference"
    mixed: list[str] = sorted({one.area for one in differing if one.mixed})
    if mixed:
        yield f"runs of one side differ among themselves in {words.listed(mixed)}: they are no plain repeats"
    for side in sides:
        for warning in dict.fromkeys(str(one) for verdict in side.verdicts for one in verdict["warnings"]):
            yield f"{side.label}: {warning}"
