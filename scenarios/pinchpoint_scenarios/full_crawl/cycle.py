"""The beginning and the end of a crawl: each happens once, whoever of the sessions gets to do it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from .frontier import CycleState, Frontier, SourceSummary
from .sources import Item

Attempt = Callable[[str], str]
"""Does ``reset`` or ``commit`` at the index, retried and recorded; returns ``ok`` or the failure's name."""


class Cycles:
    """Starts the first cycle, ends a cycle whose queue is empty, and starts the next where work repeats.

    Args:
        frontier: the session's.
        roots: source name -> its root container.
        repeat: whether another cycle follows.
        event: writes a line to the run's events.
    """

    def __init__(
        self, frontier: Frontier, roots: Mapping[str, Item], *, repeat: bool, event: Callable[..., None]
    ) -> None:
        self._frontier = frontier
        self._roots = roots
        self._repeat = repeat
        self._event = event

    def advance(self, index: Attempt) -> str | None:
        """Move the crawl on, after the queue was found empty.

        Args:
            index: asks the index to ``reset`` or to ``commit``.

        Returns:
            ``ok`` where there is, or will soon be, more to do; the name of the failure that keeps the next
            cycle from starting; None where the crawl is over. Raises ``DatabaseFailure``.
        """
        state = self._frontier.state()
        if state.ended and not self._continues(state.number):
            return None
        if state.queued or state.claimed or not self._frontier.claim(state):
            return "ok"
        if not state.ended:
            self._end(state, index("commit"))
            if not self._repeat:
                return None
        outcome = index("reset")
        if outcome == "ok":
            self._begin(state.number)
        else:
            self._frontier.give_back(state.number)
        return outcome

    def _continues(self, number: int) -> bool:
        """Whether a cycle follows number ``number``; 0 is none, but what the first follows."""
        return number == 0 or self._repeat

    def _begin(self, number: int) -> None:
        started = self._frontier.begin(number, self._roots)
        if started is not None:
            self._event("crawl_started", cycle=number + 1, started=_utc(started), sources=list(self._roots))

    def _end(self, state: CycleState, commit: str) -> None:
        ended = self._frontier.end(state.number)
        if ended is None:
            return
        sources = [_source(summary) for summary in self._frontier.summary()]
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
