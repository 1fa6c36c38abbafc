"""Tests of a content source's progress: counts, times and messages from the farm's states."""

from __future__ import annotations

from typing import Any

from pinchpoint_scenarios.full_crawl.native.crawl_log import failures, items, latency_missing, latency_s
from pinchpoint_scenarios.full_crawl.native.progress import CrawlChange, CrawlState, SourceProgress

BEFORE = CrawlState("Intranet", "Idle", "2026-11-20T01:00:00Z", 3600.0, 7777, 5, 33, 0, 0)
STARTED = "2026-11-21T01:00:00Z"


def now(state: str, success: int = 0, **more: Any) -> CrawlState:
    """Return the source's state in its new crawl."""
    return CrawlState("Intranet", state, STARTED, success=success, **more)


def progress(joined: bool = False, before: CrawlState = BEFORE) -> SourceProgress:
    """Return a source whose crawl was started at second 100."""
    return SourceProgress(before, joined, 100.0, 300.0)


def test_counts_of_the_crawl_before_are_not_counted_again() -> None:
    """Counts of the previous crawl, shown until the new one begins, are not counted."""
    source = progress()
    waiting = CrawlState("Intranet", "CrawlStarting", BEFORE.started, None, 7777, 5, 33)
    assert source.take(waiting, 105) == CrawlChange()
    assert not source.begun
    change = source.take(now("CrawlingFull", 40, error=2, warning=3, deleted=1), 110)
    assert (change.done, change.failed, change.skipped, change.deleted) == (40, 2, 3, 1)
    assert source.take(now("CrawlingFull", 90, error=2, warning=3, deleted=1), 115) == CrawlChange(done=50)
    last = source.take(now("Idle", 100, duration_s=12.5, error=2, warning=3, deleted=1), 120)
    assert (last.done, source.ended, source.duration_s, source.active_s) == (10, True, 12.5, 15.0)
    assert source.take(now("CrawlingFull", 5), 125) == CrawlChange(), (
        "a later crawl by schedule is none of ours"
    )


def test_a_crawl_that_is_over_between_two_looks_is_seen() -> None:
    """A crawl that begins and ends between two polls is detected by its start time."""
    source = progress()
    change = source.take(now("Idle", 3, duration_s=0.8), 105)
    assert (change.done, source.begun, source.ended, source.not_started) == (3, True, True, None)


def test_a_first_crawl_ever_begins() -> None:
    """The first crawl of a source, without an earlier start time, is detected."""
    source = progress(before=CrawlState("Intranet", "Idle"))
    assert source.take(CrawlState("Intranet", "CrawlStarting"), 105) == CrawlChange()
    assert source.take(now("CrawlingFull", 7), 110).done == 7


def test_a_slow_start_is_told_once_and_a_crawl_that_never_begins_has_failed() -> None:
    """A slow start is reported once; after ``start_within`` it is a failure in the farm's words."""
    source = progress()
    waiting = CrawlState("Intranet", "CrawlStarting", BEFORE.started)
    assert source.take(waiting, 150).sentences == ()
    (sentence,) = source.take(waiting, 165).sentences
    assert "starts slowly: it was started 1m05s ago and is starting" in sentence
    assert source.take(waiting, 200).sentences == ()
    idle = CrawlState("Intranet", "Idle", BEFORE.started)
    assert source.take(idle, 401) == CrawlChange()
    assert source.ended
    assert not source.begun
    assert source.not_started == "it has not begun 5m01s after it was started; the farm says: it is idle"
    assert source.duration_s is None


def test_a_pause_is_told_and_is_no_part_of_the_duration() -> None:
    """A pause is reported and is not part of the duration."""
    source = progress()
    source.take(now("CrawlingFull", 10), 110)
    assert source.take(now("Paused", 10), 120).sentences == ("is paused on the farm",)
    assert source.take(now("Paused", 10), 150).sentences == ()
    assert source.take(now("CrawlingFull", 20), 160).sentences == ("is being crawled",)
    source.take(now("Idle", 30, duration_s=80.0), 180)
    assert (source.paused_s, source.duration_s) == (30.0, 50.0)


def test_other_states_and_ends_are_said_in_words() -> None:
    """A stop by an administrator, failing start addresses and an unknown state are reported."""
    source = progress()
    source.take(now("CrawlingFull", 10), 110)
    assert source.take(now("Melting", 10), 115).sentences == ("is in the state Melting",)
    assert source.take(now("CrawlStopping", 12), 120).sentences == ("is being stopped on the farm",)
    ended = source.take(now("Idle", 12, duration_s=20.0, top_level_error=2), 125)
    assert ended.sentences == (
        "was stopped on the farm before its end",
        "ended with errors of start addresses (2): what lies behind them was not crawled",
    )
    assert source.stopped


def test_a_crawl_that_was_going_on_is_counted_from_here_on() -> None:
    """After a takeover only new items are counted; the other worker's records stay."""
    source = progress(joined=True, before=now("CrawlingFull", 40))
    assert source.take(now("CrawlingFull", 55), 110).done == 15
    done = progress(joined=True, before=now("Idle", 40, duration_s=9.0))
    assert (done.ended, done.duration_s) == (True, 9.0)


def test_counts_that_a_farm_does_not_tell_are_not_zeros() -> None:
    """A count that the farm's answer lacks is None."""
    state = CrawlState.of({"source": "A", "state": "Idle", "success": 3, "warning": None})
    assert (state.success, state.warning, state.error) == (3, None, None)


def test_the_crawl_log_is_read_by_the_names_of_its_columns() -> None:
    """The latency is read from the column of repository latency, in ms; without it it is not measured."""
    assert latency_s([{"CrawlID": 3, "Repository latency (ms)": 467.0}]) == 0.467
    assert latency_s([{"CrawlID": 3, "Latency": 467.0}]) is None
    assert latency_s([]) is None
    assert latency_missing([]).startswith("repository latency is not measured: the crawl history has no row")
    assert "it has CrawlID, Latency." in latency_missing([{"CrawlID": 3, "Latency": 467.0}])


def test_failures_come_by_message_where_these_account_for_the_crawl() -> None:
    """Messages are kinds of failure only if their counts add up to this crawl's errors, else examples."""
    told: list[dict[str, Any]] = [
        {"ErrorID": 1, "ErrorMessage": "Access is denied.", "ErrorCount": 4},
        {"ErrorMessage": None},
    ]
    by_kind, log = failures(told, 4)
    assert by_kind == {"Access is denied.": 4}
    assert [(row["failure"], row["message"]) for row in log] == [("Access is denied.", "Access is denied.")]
    by_kind, log = failures(told, 9)
    assert by_kind == {"error": 9}
    assert [(row["failure"], row["message"]) for row in log] == [("error", "Access is denied.")]
    assert failures([], 0) == ({}, [])


def test_what_a_reset_would_lose_is_said_by_source() -> None:
    """Before a reset, each source's counts above zero are listed."""
    rows = [{"ContentSourceName": "Sites", "SuccessCount": 13534, "ErrorCount": 0, "Average": 3.5}]
    assert items(rows) == ["Sites: SuccessCount 13,534"]
