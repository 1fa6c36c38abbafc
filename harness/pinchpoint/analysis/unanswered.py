"""Operations that were in flight when the load ended: the only trace of a farm that stopped answering.

They are in no table of finished operations; if all users wait, those tables describe an earlier time.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pinchpoint.analysis.flows import Flow
from pinchpoint.analysis.thresholds import HELD_UP, HELD_UP_S, SEEN
from pinchpoint.base import units
from pinchpoint.data.inputs import Inputs
from pinchpoint.data.series import joined
from pinchpoint.store.schema import UNFINISHED
from pinchpoint_collectors.common.counts import counted

WAITS_BY_ITSELF = ("full-crawl", "storage-probe")
"""Scenarios whose sessions wait without an operation going on."""


def unanswered(inputs: Inputs, scenario: str) -> tuple[int, float]:
    """(operations in flight when the window ended; the seconds they had been in flight)."""
    begin_s, end_s = inputs.window.first_s, inputs.window.end_s
    return inputs.whole.of(scenario).under_way(end_s, begin_s)


def sessions(inputs: Inputs, flow: Flow) -> float | None:
    """How many sessions, or users, a scenario has; None if it is not known.

    As the generators counted them together, in the steps in which all that were there did: one that ended, or
    joined late, had its share only for a while. Where they did not all of the time, it is what was
    planned: users may have been more, or fewer, in what was lost.
    """
    keys = [key for key in inputs.samples.keys("generator.users") if key.instance == flow.load.scenario]
    users = joined(inputs.samples.steps(*key) for key in keys) if keys else np.empty(0)
    known = np.isfinite(users)
    return float(users[known].mean()) if len(users) and known.mean() >= SEEN.value else flow.load.users


def unanswered_words(inputs: Inputs, flows: tuple[Flow, ...]) -> str:
    """Sessions without an answer at the end of the window, and since when; "" if there are none."""
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
    """Operations that had not ended some seconds after the load; "" if all had."""
    given_up = inputs.whole.of(flow.load.scenario).operations(UNFINISHED)
    longest = given_up.service()
    if longest is None or flow.load.use in WAITS_BY_ITSELF:
        return ""
    return (
        f"{counted(given_up.count, 'operation')} had not ended some seconds after the load, not counted in "
        f"any table; the longest had run for {units.seconds(longest.longest_s)}"
    )
