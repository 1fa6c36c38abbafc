"""What would have to be otherwise for a kind of evidence against a resource to hold no more."""

from __future__ import annotations

from collections.abc import Iterator

from pinchpoint.analysis.checks import Looked
from pinchpoint.analysis.evidence import DiskState
from pinchpoint.analysis.facts import facts, shift_words
from pinchpoint.analysis.measures import DiskMeasures
from pinchpoint.analysis.signature import Suspicion
from pinchpoint.analysis.thresholds import (
    BY_SIZE,
    DISK_SHIFT,
    REGULATOR_FLAT,
    UTILISATION,
    WAIT_SHARE,
    WAITING_IO,
)
from pinchpoint.analysis.verdict import Check
from pinchpoint.report import units


def margins(first: Looked) -> Iterator[str]:
    """One sentence per kind of evidence that holds: on which rule it hangs, or on which several."""
    for check in first.checks:
        grounds = tuple(dict.fromkeys(_grounds(first.one, check))) if check.holds else ()
        if len(grounds) == 1:
            yield f"{check.evidence} would not hold if this did not: {grounds[0]}"
        elif grounds:
            yield f"{check.evidence} would not hold if none of these did: {'; '.join(grounds)}"


def _grounds(one: Suspicion, check: Check) -> Iterator[str]:
    """Each of them alone is enough for that kind of evidence."""
    if check.evidence == "E1" and one.disk is not None and isinstance(one.found, DiskMeasures):
        yield from _of_disk(one, one.found, one.disk)
        return
    witnesses = [fact for fact in facts(one) if fact.evidence == "E4" and fact.rule]
    each_rule = {fact.rule: fact for fact in reversed(witnesses)}  # the first of each
    for fact in [*reversed(each_rule.values())] if check.evidence == "E4" and each_rule else [check.fact]:
        if fact.rule:
            yield f"{fact.rule} (now: {fact.fact})"


def _of_disk(one: Suspicion, found: DiskMeasures, state: DiskState) -> Iterator[str]:
    """In the order of ``evidence.disk_evidence``: whichever of these holds, it is used up."""
    if state.occupied and state.near_cap:
        yield f"{UTILISATION.says} (now: {units.percent(state.used)} of the declared limit)"
    if state.occupied and state.regulated:
        held = found.moves[found.held or found.binding]
        rule = REGULATOR_FLAT if held.flat else BY_SIZE
        yield f"{rule.says} (now: {units.percent(held.spread)} of spread)"
    if state.occupied and state.device:
        count = units.count(found.outstanding or 0.0)
        yield f"{WAITING_IO.says}, and more of them get no more done (now: {count})"
    if state.fell or state.rose:
        yield f"{DISK_SHIFT.says} (now: {shift_words(one.resource)})"
    if state.late or state.concurrency:
        share = units.percent(state.wait_ratio)
        yield f"{WAIT_SHARE.says} (now: {share} of the time of {state.waiting}'s operations)"
