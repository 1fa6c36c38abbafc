"""Converts states and counts of the farm's crawl to finished items and progress messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...units import spelt_s

IDLE = "Idle"
FULL = frozenset({"CrawlStarting", "CrawlingFull", "CrawlCompleting"})
"""States of a full crawl. All other states except Idle are reported."""
STANDING = frozenset({"Paused", "CrawlPausing"})
"""States in which a crawl is paused. Their time does not count."""
STOPPING = frozenset({"CrawlStopping", "ShuttingDown"})

WORDS: Mapping[str, str] = {
    IDLE: "is idle",
    "CrawlStarting": "is starting",
    "CrawlingFull": "is being crawled",
    "CrawlCompleting": "is completing",
    "CrawlingIncremental": "is being crawled incrementally",
    "ProcessingNotifications": "is processing notifications",
    "Throttled": "is throttled by the farm",
    "CrawlPausing": "is being paused on the farm",
    "Paused": "is paused on the farm",
    "CrawlResuming": "is being resumed",
    "CrawlStopping": "is being stopped on the farm",
    "Recovering": "is recovering: the search service was restarted",
    "ShuttingDown": "is shutting down: the search service is being stopped",
}
"""State of the farm (enumeration CrawlStatus) -> words."""

SLOW_START_S = 60.0
"""Seconds after which the user is informed that a crawl has not started. On an idle farm it starts within
seconds."""


@dataclass(frozen=True, slots=True)
class CrawlState:
    """The state of one content source at one moment, as the farm reports it.

    Attributes:
        source: name of the content source.
        state: name of the state on the farm (``Idle``, ``CrawlingFull``, ...).
        started: begin of its last crawl in the form of the farm; None: never.
        duration_s: duration of its last crawl in seconds; None while it runs. success, warning, error,
            top_level_error, deleted: items of its last crawl; None if not reported. A top-level error is one
            of a start address.
    """

    source: str
    state: str
    started: str | None = None
    duration_s: float | None = None
    success: int | None = None
    warning: int | None = None
    error: int | None = None
    top_level_error: int | None = None
    deleted: int | None = None

    @classmethod
    def of(cls, line: Mapping[str, Any]) -> CrawlState:
        """Return the state in a line of the script."""
        names = ("success", "warning", "error", "top_level_error", "deleted")
        counts = {name: None if line.get(name) is None else int(line[name]) for name in names}
        duration = line.get("duration_s")
        return cls(
            str(line["source"]),
            str(line["state"]),
            line.get("started"),
            None if duration is None else float(duration),
            **counts,
        )

    @property
    def idle(self) -> bool:
        """Return whether no crawl is in progress."""
        return self.state == IDLE

    @property
    def words(self) -> str:
        """Return the state in words. An unknown state of a newer farm keeps its own name."""
        return WORDS.get(self.state, f"is in the state {self.state}")


@dataclass(frozen=True, slots=True)
class CrawlChange:
    """The changes of a source between two readings.

    Attributes:
        done, failed, skipped, deleted: number of items with this result.
        sentences: messages for the user.
    """

    done: int = 0
    failed: int = 0
    skipped: int = 0
    deleted: int = 0
    sentences: tuple[str, ...] = ()


@dataclass(slots=True)
class SourceProgress:
    """The progress of one source's crawl.

    Args:
        before: state of the source before its crawl was started.
        joined: whether its crawl was started elsewhere, so that it is the one that the farm shows.
        asked_s: time of the start request in seconds of a monotonic clock.
        start_within_s: seconds after which a crawl that has not begun counts as failed.

    Attributes:
        last: last reported state. begun, ended: whether the crawl has begun or ended; a crawl that did not
            begin has also ended.
        not_started: why the crawl did not begin.
        stopped: whether the crawl was stopped before its end by someone else.
        paused_s: time in which the crawl was paused, in seconds.
        active_s: total length of all readings in which items were done, in seconds.
    """

    before: CrawlState
    joined: bool
    asked_s: float
    start_within_s: float
    last: CrawlState = field(init=False)
    begun: bool = field(init=False)
    ended: bool = False
    not_started: str | None = None
    stopped: bool = False
    paused_s: float = 0.0
    active_s: float = 0.0
    _looked_s: float = field(init=False)
    _reported_slow: bool = False

    def __post_init__(self) -> None:
        self.last, self.begun, self._looked_s = self.before, self.joined, self.asked_s
        self.ended = self.joined and self.before.idle

    def refuse(self, why: str) -> None:
        """Record that the farm did not start the crawl."""
        self.not_started, self.ended = why, True

    def take(self, now: CrawlState, at_s: float) -> CrawlChange:
        """Take the current state of the farm. Return the changes."""
        length_s, self._looked_s = at_s - self._looked_s, at_s
        if self.ended:
            return CrawlChange()
        if not self.begun:
            self.begun = now.started is not None and now.started != self.before.started
            if not self.begun:
                return CrawlChange(sentences=self._waiting(now, at_s - self.asked_s))
            self.last = CrawlState(now.source, "CrawlStarting", now.started)  # its counts begin at 0
        reported = self._reported(now)
        change = CrawlChange(
            done=_more(self.last.success, now.success),
            failed=_more(self.last.error, now.error),
            skipped=_more(self.last.warning, now.warning),
            deleted=_more(self.last.deleted, now.deleted),
            sentences=reported,
        )
        self.paused_s += length_s if self.last.state in STANDING and now.state in STANDING else 0.0
        self.active_s += length_s if change.done else 0.0
        self.last, self.ended = now, now.idle
        return change

    @property
    def duration_s(self) -> float | None:
        """Return the duration of the crawl by the clock of the farm, without pauses."""
        lasted_s = self.last.duration_s if self.begun and self.ended else None
        return None if lasted_s is None else max(0.0, lasted_s - self.paused_s)

    def _waiting(self, now: CrawlState, waited_s: float) -> tuple[str, ...]:
        self.last = now
        if waited_s >= self.start_within_s:
            self.refuse(
                f"it has not begun {spelt_s(waited_s)} after it was started; the farm says: it {now.words}"
            )
            return ()
        if waited_s < SLOW_START_S or self._reported_slow:
            return ()
        self._reported_slow = True
        return (f"starts slowly: it was started {spelt_s(waited_s)} ago and {now.words}",)

    def _reported(self, now: CrawlState) -> tuple[str, ...]:
        sentences = []
        if now.state in STOPPING:
            self.stopped = True
        if now.state != self.last.state:
            if not now.idle and (now.state not in FULL or self.last.state not in FULL):
                sentences.append(now.words)
            if now.idle and self.stopped:
                sentences.append("was stopped on the farm before its end")
            if now.idle and now.top_level_error:
                start = f"errors of start addresses ({now.top_level_error})"
                sentences.append(f"ended with {start}: what lies behind them was not crawled")
        return tuple(sentences)


def _more(before: int | None, now: int | None) -> int:
    """Return the increase of a count; 0 if the count falls or is not reported."""
    return max(0, (now or 0) - (before or 0))
