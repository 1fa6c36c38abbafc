"""The beginning and the end of a crawl: each happens once, whoever of the sessions gets to do it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from ..contract import OK
from .frontier import CycleState, Frontier, SourceSummary
from .sources import Item

AskIndex = Callable[[Literal["reset", "commit"]], str]
"""Asks the index, with retries, and records it; returns ``ok`` or the failure's name."""

Advance = Literal["over", "soon", "failed"]
"""The crawl is over; there is, or will soon be, more to do; the next cycle could not be started."""


class Cycles:
    """Starts the first cycle, ends a cycle whose queue is empty, and starts the next where work repeats.

    Args:
        frontier: the session's.
        roots: source name -> its root container.
        repeat_s: another cycle follows one that ended within so many seconds of the first one's start; None:
            one always follows.
        event: writes a line to the run's events.
    """

    def __init__(
        self,
        frontier: Frontier,
        roots: Mapping[str, Item],
        *,
        repeat_s: float | None,
        event: Callable[..., None],
    ) -> None:
        self._frontier = frontier
        self._roots = roots
        self._repeat_s = repeat_s
        self._event = event

    def advance(self, index: AskIndex) -> Advance:
        """Move the crawl on, after the queue was found empty. Raises ``DatabaseFailure``."""
        state = self._frontier.state()
        if state.ended and not self._continues(state):
            return "over"
        if state.queued or state.claimed or not self._frontier.claim(state):
            return "soon"
        if not state.ended:
            self._end(state, index("commit"))
            if not self._continues(self._frontier.state()):
                return "over"
        if index("reset") != OK:
            self._frontier.give_back(state.number)
            return "failed"
        self._begin(state.number)
        return "soon"

    def _continues(self, state: CycleState) -> bool:
        """Whether a cycle follows this one; number 0 is none, but what the first follows.

        Judged by when it ended, not by the time now: all sessions come to the same answer.
        """
        if state.number == 0 or self._repeat_s is None:
            return True
        return state.lasted_s is None or state.lasted_s < self._repeat_s

    def _begin(self, number: int) -> None:
        started = self._frontier.begin(number, self._roots)
        if started is not None:
            self._event("crawl_started", cycle=number + 1, started=_utc(started), sources=list(self._roots))

    def _end(self, state: CycleState, commit: str) -> None:
        sources = [_source(summary) for summary in self._frontier.summary()]
        ended = self._frontier.end(state.number)
        if ended is None:
            return
        order = list(self._roots)
        sources.sort(key=lambda source: order.index(source["source"]))
        self._event(
            "crawl_ended",
            cycle=state.number,
            started=_utc(ended[0]),
            ended=_utc(ended[1]),
            commit=commit,
            sources=sources,
        )


def _source(summary: SourceSummary) -> dict[str, Any]:
    """One source's line of the event: base units, times as UTC text."""
    return {
        "source": summary.source,
        "count": summary.count,
        "failures": summary.failures,
        "skipped": summary.skipped,
        "bytes": summary.size_bytes,
        "started": _utc(summary.started),
        "ended": _utc(summary.ended),
        "duration_s": (summary.ended - summary.started).total_seconds(),
        "repository_latency_s": summary.latency_s,
        "failures_by_kind": summary.failures_by_kind,
    }


def _utc(time: datetime) -> str:
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")
