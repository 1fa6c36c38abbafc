"""Finds operations that failed or were in flight when the load ended: too many prevent the all-clear.

Operations in flight are the only trace of a farm that stopped answering. The tables of finished operations do
not have them; if all users wait, these tables describe an earlier time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

import numpy as np

from pinchpoint.analysis.flows import Flow, Flows
from pinchpoint.analysis.objectives import objective_table
from pinchpoint.analysis.thresholds import FAILING, HELD_UP, HELD_UP_S, SEEN
from pinchpoint.base import units
from pinchpoint.data.inputs import Inputs
from pinchpoint.data.operations import NO_ERRORS
from pinchpoint.data.series import joined
from pinchpoint.store.schema import UNFINISHED
from pinchpoint_collectors.common.counts import counted

OF_CONTENT = ("not_found", "permission", "authentication", "token_expired", "robots", "not_supported")
"""Outcomes that depend on the content and not on the load: real content always causes some."""

NAMED = 3
"""Most kinds of failures, and most server messages, that are listed per scenario."""


def failures(inputs: Inputs, flow: Flow) -> Iterator[str]:
    """The outcomes of a scenario's operations, without operations that never started."""
    outcomes = inputs.traffic.of(flow.load.scenario).whole().outcomes()
    yield from (kind for kind in outcomes if kind != "dropped")


def said_of(inputs: Inputs, flow: Flow) -> list[str]:
    """The server's messages for failed statements of a scenario, each with file and line if known."""
    lines = [
        f"{event.get('said')}, {_place(event)}"
        for event in inputs.events
        if event.get("event") == "statement_failed" and event.get("scenario") == flow.load.scenario
    ]
    return lines[:NAMED]


def _place(event: Mapping[str, Any]) -> str:
    if "script" in event:
        return f"{PurePath(str(event['script'])).name}:{event.get('line')}"
    return str(event.get("operation"))


def failing_words(inputs: Inputs, flows: Flows) -> Iterator[str]:
    """Sentences about scenarios with more failures than an objective allows, or too many without one."""
    errors = (row for row in objective_table(inputs) if row["metric"] == "errors_ratio")
    allowed = {row["scenario"] for row in errors if row["met"]}
    for flow in flows:
        if flow.load.scenario not in allowed:
            yield from _failing(inputs, flow)


def _failing(inputs: Inputs, flow: Flow) -> Iterator[str]:
    outcomes = inputs.traffic.of(flow.load.scenario).whole().outcomes()
    failed = {kind: n for kind, n in outcomes.items() if kind not in (*NO_ERRORS, *OF_CONTENT)}
    share = sum(failed.values()) / flow.finished if flow.finished else 0.0
    if share >= FAILING.value:
        named = sorted(failed, key=lambda kind: -failed[kind])[:NAMED]
        kinds = ", ".join([*named, *said_of(inputs, flow)])
        yield f"{units.percent(share)} of the operations of {flow.load.scenario} failed ({kinds})"


# ---- in flight at the end --------------------------------------------------------------------------

WAITS_BY_ITSELF = ("full-crawl", "storage-probe")
"""Scenarios whose sessions also wait without an operation in flight."""


def unanswered(inputs: Inputs, scenario: str) -> tuple[int, float]:
    """(number of operations in flight when the window ended, sum of the seconds they had been in flight)."""
    begin_s, end_s = inputs.window.first_s, inputs.window.end_s
    return inputs.whole.of(scenario).under_way(end_s, begin_s)


def sessions(inputs: Inputs, flow: Flow) -> float | None:
    """The mean number of sessions (users) of a scenario; None if unknown.

    The mean covers the steps in which no generator's count is missing; a generator counts from its first to
    its last count. If these steps cover too little of the window, the number is the planned one.
    """
    keys = [key for key in inputs.samples.keys("generator.users") if key.instance == flow.load.scenario]
    users = joined(inputs.samples.steps(*key) for key in keys) if keys else np.empty(0)
    known = np.isfinite(users)
    return float(users[known].mean()) if len(users) and known.mean() >= SEEN.value else flow.load.users


def unanswered_words(inputs: Inputs, flows: Flows) -> str:
    """A sentence about sessions that were waiting when the window ended; "" if there are too few."""
    return "; ".join(text for flow in flows for text in _held_up(inputs, flow))


def _held_up(inputs: Inputs, flow: Flow) -> Iterator[str]:
    users = sessions(inputs, flow)
    if not users or flow.load.use in WAITS_BY_ITSELF:
        return
    count, total_s = unanswered(inputs, flow.load.scenario)
    each_s = total_s / count if count else 0.0
    usual_s = flow.service.longest_s if flow.service else 0.0
    if count >= HELD_UP.value * users and each_s >= max(HELD_UP_S.value, usual_s):
        yield (
            f"when the measurement ended, {count:,} of {users:g} sessions of {flow.load.scenario} had waited "
            f"{units.seconds(each_s)} for an answer"
        )


def given_up_words(inputs: Inputs, flow: Flow) -> str:
    """A sentence about operations that had not ended some seconds after the load; "" if all had ended."""
    given_up = inputs.whole.of(flow.load.scenario).operations(UNFINISHED)
    longest = given_up.service()
    if longest is None or flow.load.use in WAITS_BY_ITSELF:
        return ""
    return (
        f"{counted(given_up.count, 'operation')} had not ended some seconds after the load, not counted in "
        f"any table; the longest had run for {units.seconds(longest.longest_s)}"
    )
