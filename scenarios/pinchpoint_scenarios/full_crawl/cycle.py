"""Starts and ends a crawl exactly once, in any of its sessions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from ..contract import OK
from .frontier import Frontier, changes_since
from .records import CHANGES, CycleState, Failed, SourceSummary, Start
from .sources import Item

AskIndex = Callable[[Literal["reset", "commit"]], str]
"""Queries the index with retries and records the request. Returns ``ok`` or the name of the failure."""

Advance = Literal["over", "soon", "failed"]
"""The crawl has ended; or there is or will soon be more work; or the next cycle could not be started."""

Mode = Literal["full", "incremental"]

INCREMENT_EVERY_S = 1.0
"""Shortest time between two incremental crawls in seconds, because a crawl without changes ends at once."""
_EXAMPLES = 20
"""Number of failed items of each kind and source in the event. The crawl database has all of them."""


@dataclass(frozen=True, slots=True)
class Root:
    """The starting point of a source.

    Attributes:
        item: root container of the source.
        workers: largest number of sessions that work on the source; None: unlimited.
    """

    item: Item
    workers: int | None = None


class Cycles:
    """Starts the first cycle, ends a cycle when its queue is empty, and starts the next if the crawl repeats.

    Args:
        frontier: queue of the session.
        roots: name of a source -> its starting point.
        mode: ``full`` or ``incremental``.
        destination_limit: largest number of simultaneous requests to the destination; None: one per session.
        repeat_s: a cycle that ends within this many seconds of the first start is followed by another; None:
            always.
        event: writes a line to the events of the run.
    """

    def __init__(
        self,
        frontier: Frontier,
        roots: Mapping[str, Root],
        *,
        mode: Mode,
        destination_limit: int | None,
        repeat_s: float | None,
        event: Callable[..., None],
    ) -> None:
        self._frontier = frontier
        self._roots = roots
        self._mode = mode
        self._destination_limit = destination_limit
        self._repeat_s = repeat_s
        self._event = event

    def advance(self, index: AskIndex) -> Advance:  # noqa: PLR0911 - one for each state a crawl can be in
        """Continue the crawl after the queue was found to be empty. Raises ``DatabaseFailure``."""
        state = self._frontier.state()
        if state.ended and not self._continues(state):
            return "over"
        if state.queued or state.claimed or self._too_soon(state) or not self._frontier.claim(state):
            return "soon"
        if not state.ended:
            if self._frontier.sweep(state.number):
                self._frontier.give_back(state.number)
                return "soon"
            self._end(state, index("commit"))
            state = self._frontier.state()
            if not self._continues(state):
                return "over"
            if self._too_soon(state):
                self._frontier.give_back(state.number)
                return "soon"
        if self._mode == "full" and index("reset") != OK:
            self._frontier.give_back(state.number)
            return "failed"
        self._begin(state.number)
        return "soon"

    def _continues(self, state: CycleState) -> bool:
        """Return whether another cycle follows.

        The decision uses the end of the cycle and not the current time, so that all sessions decide the same.
        """
        if state.since_start_s is None or self._repeat_s is None:
            return True
        return state.lasted_s is None or state.lasted_s < self._repeat_s

    def _too_soon(self, state: CycleState) -> bool:
        started_s = state.since_start_s
        return (
            self._mode == "incremental"
            and state.ended
            and started_s is not None
            and started_s < INCREMENT_EVERY_S
        )

    def _begin(self, number: int) -> None:
        anew = self._mode == "full"
        tokens = {} if anew else self._frontier.tokens()
        starts = [_start(source, root.item, tokens.get(source)) for source, root in self._roots.items()]
        started = self._frontier.begin(number, starts, anew=anew)
        if started is not None:
            self._event(
                "crawl_started",
                cycle=number + 1,
                mode=self._mode,
                started=_utc(started),
                sources=list(self._roots),
            )

    def _end(self, state: CycleState, commit: str) -> None:
        failures = self._frontier.failures(state.number, _EXAMPLES)
        sources = [self._line(summary, failures) for summary in self._frontier.summary(state.number)]
        ended = self._frontier.end(state.number)
        if ended is None:
            return
        order = list(self._roots)
        sources.sort(key=lambda source: order.index(source["source"]))
        self._event(
            "crawl_ended",
            cycle=state.number,
            mode=self._mode,
            started=_utc(ended[0]),
            ended=_utc(ended[1]),
            commit=commit,
            destination_limit=self._destination_limit,
            sources=sources,
        )

    def _line(self, summary: SourceSummary, failures: list[Failed]) -> dict[str, Any]:
        """Return one source's line of the event, with base units and times as UTC text."""
        duration_s = (summary.ended - summary.started).total_seconds() - summary.paused_s
        return {
            "source": summary.source,
            "count": summary.count,
            "failures": summary.failures,
            "skipped": summary.skipped,
            "deleted": summary.deleted,
            "unchanged": summary.unchanged,
            "bytes": summary.size_bytes,
            "started": _utc(summary.started),
            "ended": _utc(summary.ended),
            "duration_s": duration_s,
            "paused_s": summary.paused_s,
            "rate_per_s": summary.count / duration_s if duration_s > 0 else None,
            "rate_active_per_s": summary.count / summary.active_seconds if summary.active_seconds else None,
            "repository_latency_s": summary.latency_s,
            "repository_latency_p50_s": summary.latency_p50_s,
            "repository_latency_p95_s": summary.latency_p95_s,
            "workers": self._roots[summary.source].workers,
            "failures_by_kind": summary.failures_by_kind,
            "failed": [
                {
                    "url": each.url,
                    "failure": each.failure,
                    "message": each.message,
                    "attempts": each.attempts,
                    "ended": _utc(each.ended),
                }
                for each in failures
                if each.source == summary.source
            ],
        }


def _start(source: str, root: Item, token: str | None) -> Start:
    """Start a cycle.

    A source with a change token continues from it; any other is enumerated from its root.
    """
    if token is None:
        return Start(source, root, "container")
    return Start(source, changes_since(token), CHANGES)


def _utc(time: datetime) -> str:
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")
