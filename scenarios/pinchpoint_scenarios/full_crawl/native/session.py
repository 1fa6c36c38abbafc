"""Watches the farm's own crawl and records its progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from pinchpoint_collectors.common.backoff import Backoff
from pinchpoint_collectors.common.powershell import LinkLost
from pinchpoint_collectors.common.times import iso

from ...contract import OK, Record
from ...errors import ScenarioError
from ...units import spelt_s
from .crawl_log import failures, latency_missing, latency_s
from .crawler import Crawler
from .params import NativeParams
from .progress import CrawlChange, CrawlState, SourceProgress

CRAWL = "crawl"
NOT_STARTED, STOPPED, LINK_LOST = "not_started", "stopped", "link_lost"
UNTIMED = 0
"""Start of an operation with an unknown time, because the farm reports the number of items and not their
times."""

_STOP_S = 4.0


class NativeSession:
    """The only session of a crawl. The farm's own crawler decides how many items it processes at a time.

    Args:
        crawler: controls the crawler of the farm.
        params: polling interval and time limits.
        event: writes a line to the events of the run.
    """

    def __init__(self, crawler: Crawler, params: NativeParams, event: Callable[..., None]) -> None:
        self._crawler = crawler
        self._params = params
        self._event = event
        self._before: dict[str, CrawlState] = {}
        self._joined = False
        self._sources: dict[str, SourceProgress] = {}
        self._begin_ns = self._looked_ns = 0
        self._begun = ""
        self._lost_s: float | None = None
        self._backoff = Backoff()
        self._over = False

    def warm(self) -> None:
        """Open the link and load SharePoint's cmdlets, before any time counts."""
        try:
            self._crawler.states()
        except LinkLost as lost:  # the first reading tries again
            self._no_link(lost)

    def perform(self, record: Record) -> bool:
        """Start the crawls, or read their progress once. Returns False when all crawls have ended."""
        try:
            if self._over:
                return False
            if not self._sources:
                self._begin(record)
            else:
                time.sleep(self._left_s())
                self._read_progress(record)
            self._link_is_back()
        except LinkLost as lost:
            return self._no_link(lost, record)
        if all(source.ended for source in self._sources.values()):
            self._end()
        return True

    def close(self) -> None:
        """Stop the crawls if the run ends first, and disconnect. A second call does nothing."""
        try:
            if self._sources and not self._over:
                self._over = True
                self._crawler.stop(_STOP_S)
        except (LinkLost, ScenarioError) as error:  # the owner of the scenario stops the remaining crawls
            self._event("crawl_not_stopped_at_once", why=str(error))
        finally:
            self._crawler.leave()

    def _begin(self, record: Record) -> None:
        """Start the crawls together, or watch those that a worker that has died started."""
        states = {state.source: state for state in self._crawler.states()}
        now_ns = time.perf_counter_ns()
        if not self._before:
            self._before, self._begin_ns, self._begun = states, now_ns, iso(time.time(), "auto")
            self._joined = not all(state.idle for state in states.values())
            self._foreign(states)
        refused: dict[str, str] = {}
        # A start request whose answer was lost may have arrived, so a crawl that has begun since is not
        # started again.
        waiting = [name for name, state in states.items() if _untouched(state, self._before[name])]
        if waiting and not self._joined:
            refused = self._crawler.start(waiting)
        if self._joined or len(waiting) < len(states):
            self._crawler.watch()
        if self._joined:
            self._event("crawl_joined", why="crawls were going on already, and are watched from here on")
        at_s, self._looked_ns = now_ns / 1e9, now_ns
        for name in states:
            before, within_s = self._before[name], self._params.start_within
            self._sources[name] = SourceProgress(before, self._joined, at_s, within_s)
        names = [label(name) for name in states]
        self._event("crawl_started", cycle=1, mode="full", started=self._begun, sources=names)
        for name, why in refused.items():
            self._sources[name].refuse(why)
            self._failed(name, record)

    def _foreign(self, states: Mapping[str, CrawlState]) -> None:
        """Raises if the farm has begun a crawl of another kind meanwhile."""
        other = [state for state in states.values() if state.state.startswith("CrawlingIncremental")]
        if other:
            raise ScenarioError(
                f"content source {other[0].source!r} {other[0].words} by a schedule of the farm's own; "
                "switch its schedule and continuous crawls off for the test, wait until it is idle, run again"
            )

    def _read_progress(self, record: Record) -> None:
        states = self._crawler.states()
        now_ns = time.perf_counter_ns()
        for state in states:
            source = self._sources.get(state.source)
            if source is None or source.ended:
                continue
            waited = not source.begun
            change = source.take(state, now_ns / 1e9)
            if waited and source.begun:
                record(f"{CRAWL}/start", OK, self._begin_ns, now_ns)
            self._record(label(state.source), change, record, now_ns)
            for sentence in change.sentences:
                self._event("crawl_state", source=state.source, state=state.state, why=sentence)
            if source.not_started:
                self._failed(state.source, record)
            if source.ended and source.stopped:
                record(CRAWL, STOPPED, self._begin_ns, now_ns)
        for name in self._sources.keys() - {state.source for state in states}:
            self._gone(name)
        self._looked_ns = now_ns

    def _gone(self, name: str) -> None:
        if not self._sources[name].ended:
            self._sources[name].ended = True
            self._event(
                "crawl_state", source=name, state="gone", why="is no content source of the farm any more"
            )

    def _record(self, name: str, change: CrawlChange, record: Record, now_ns: int) -> None:
        """Record the items done since the last reading, spread evenly over the time between."""
        counts = (
            (f"document:{name}", OK, change.done),
            (f"document:{name}", "error", change.failed),
            (f"document:{name}", "skipped", change.skipped),
            (f"removal:{name}", OK, change.deleted),
        )
        length_ns = now_ns - self._looked_ns
        for operation, outcome, count in counts:
            for number in range(1, count + 1):
                record(operation, outcome, UNTIMED, self._looked_ns + length_ns * number // count)

    def _failed(self, name: str, record: Record) -> None:
        why = self._sources[name].not_started
        record(CRAWL, NOT_STARTED, self._begin_ns, time.perf_counter_ns())
        self._event("crawl_state", source=name, state=NOT_STARTED, why=f"was not crawled: {why}")

    def _left_s(self) -> float:
        return max(0.0, self._params.poll - (time.perf_counter_ns() - self._looked_ns) / 1e9)

    def _no_link(self, lost: LinkLost, record: Record | None = None) -> bool:
        """Wait and retry after the link was lost. Returns False after the time limit."""
        now_s = time.monotonic()
        if self._lost_s is None:
            self._lost_s = now_s
            self._event("crawler_link_lost", why=str(lost))
        if record is not None and now_s - self._lost_s > self._params.reconnect_within:
            record(CRAWL, LINK_LOST, self._begin_ns or time.perf_counter_ns(), time.perf_counter_ns())
            self._event("crawler_link_given_up", why=str(lost), after_s=round(now_s - self._lost_s, 1))
            self._write_end({})
            return False
        self._backoff.failed()
        if record is not None:
            self._backoff.wait()
        return True

    def _link_is_back(self) -> None:
        if self._lost_s is not None:
            after = spelt_s(time.monotonic() - self._lost_s)
            self._event("crawler_link_back", why=f"the link came back after {after}; the crawl went on")
            self._lost_s = None
            self._backoff.succeeded()

    def _end(self) -> None:
        """Report the results after all crawls have ended."""
        try:
            logs = {str(line["source"]): line for line in self._crawler.statistics() if "source" in line}
        except ScenarioError as error:
            logs = {}
            self._event("crawl_statistics_not_read", why=str(error))
        self._write_end(logs)

    def _write_end(self, logs: Mapping[str, Mapping[str, Any]]) -> None:
        self._over = True
        ended = iso(time.time(), "auto")
        rows = [self._row(name, source, logs.get(name, {}), ended) for name, source in self._sources.items()]
        self._event(
            "crawl_ended",
            cycle=1,
            mode="full",
            started=self._begun,
            ended=ended,
            commit=None,
            sources=rows,
        )

    def _row(self, name: str, source: SourceProgress, log: Mapping[str, Any], ended: str) -> dict[str, Any]:
        """Return one source's line of the event, with the keys of a crawl by Pinchpoint."""
        last, duration_s = source.last, source.duration_s
        begun = source.begun
        count, failed = (last.success or 0, last.error or 0) if begun else (0, 1)
        by_kind, examples = failures(log.get("errors") or (), failed)
        if not begun:
            by_kind = {NOT_STARTED: 1}
            why = source.not_started
            examples = [{"url": None, "failure": NOT_STARTED, "message": why, "attempts": 1, "ended": None}]
        history = list(log.get("history") or ())
        latency = latency_s(history) if begun else None
        if begun and log and latency is None:
            self._event("crawl_latency_not_measured", source=label(name), why=latency_missing(history))
        return {
            "source": label(name),
            "count": count,
            "failures": failed,
            "skipped": (last.warning or 0) if begun else 0,
            "deleted": last.deleted if begun else None,
            "unchanged": None,
            "bytes": None,
            "started": self._begun,
            "ended": ended,
            "duration_s": duration_s,
            "paused_s": source.paused_s,
            "rate_per_s": count / duration_s if duration_s else None,
            "rate_active_per_s": count / source.active_s if source.active_s else None,
            "repository_latency_s": latency,
            "repository_latency_p50_s": None,
            "repository_latency_p95_s": None,
            "workers": None,
            "failures_by_kind": by_kind,
            "failed": examples,
            "complete": begun and source.ended and not source.stopped,
            "top_level_errors": last.top_level_error if begun else None,
            "stopped": source.stopped,
            "crawl_history": history,
        }


def label(name: str) -> str:
    """Return the name of a content source in operations, without slashes, because a slash begins a stage."""
    return name.replace("/", "\N{DIVISION SLASH}")


def _untouched(now: CrawlState, before: CrawlState) -> bool:
    return now.idle and now.started == before.started
