"""Tests of a farm's own crawl as a scenario with a simulated farm: start, progress, stop, recording."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scenarios.full_crawl.native.farm import Farm, Source
from scenarios.full_crawl.native.sshfarm import SshFarm, ssh_farm
from scenarios.support import Events, Recorder, quiet

from pinchpoint_scenarios.contract import Scenario, ScenarioContext
from pinchpoint_scenarios.errors import EndpointUnreachable, ScenarioError
from pinchpoint_scenarios.full_crawl import FullCrawl
from pinchpoint_scenarios.full_crawl.params import FullCrawlParams

pytestmark = pytest.mark.timeout(60)

SOURCES = "Local sites", "User profiles"


@pytest.fixture
def farm() -> Farm:
    """Return two content sources that are crawled in a second."""
    return Farm(
        [
            Source(SOURCES[0], items=90, errors=3, warnings=5, deleted=2),
            Source(SOURCES[1], items=60, per_s=100),
        ]
    )


@pytest.fixture
def server(farm: Farm, tmp_path: Path) -> Iterator[SshFarm]:
    """Yield the farm behind SSH."""
    with ssh_farm(farm, tmp_path) as standing:
        yield standing


def made(
    server: SshFarm,
    events: Events,
    *,
    reset: str | None = None,
    also: str | None = None,
    resume: bool = False,
    **native: Any,
) -> Scenario:
    """Return the scenario as the harness creates it."""
    params = {"drive": "native", "native": {"poll": "200ms", **native}}
    return FullCrawl(
        ScenarioContext(
            name="crawl",
            endpoints={"crawler": server.endpoint()},
            params=FullCrawlParams.model_validate(params),
            seed=1,
            worker=0,
            workers=1,
            repeat_s=0,
            event=events,
            resume=resume,
            reset_index=tuple(filter(None, (reset, also))),
        )
    )


def crawl(driver: Scenario, recorder: Recorder, limit_s: float = 40) -> None:
    """Perform operations until the crawl is over."""
    deadline = time.monotonic() + limit_s
    session = driver.session(0)
    try:
        while session.perform(recorder):
            assert time.monotonic() < deadline, "the crawl did not end"
    finally:
        session.close()


def rows(events: Events) -> dict[str, dict[str, Any]]:
    """Return the sources' entries of the only crawl_ended event."""
    (ended,) = events.named("crawl_ended")
    return {row["source"]: row for row in ended["sources"]}


def told(events: Events) -> list[str]:
    """Return the messages on the sources' states."""
    return [f"{line['source']} {line['why']}" for line in events.named("crawl_state")]


def test_a_crawl_is_started_watched_and_told(farm: Farm, server: SshFarm) -> None:
    """One request starts both sources, each item is recorded once, and the results are the farm's."""
    events, recorder = Events(), Recorder()
    driver = made(server, events)
    facts = driver.check()["crawler"]
    assert (facts["server"], facts["version"], facts["content_sources"]) == (
        "SharePoint",
        "16.0.10417.20018",
        list(SOURCES),
    )
    assert "crawls into its index as it is" in facts["warnings"][0]
    sentences: list[str] = []
    driver.prepare(sentences.append)
    crawl(driver, recorder)
    driver.finish(keep_data=False)
    counts = recorder.counts()
    assert counts[f"document:{SOURCES[0]}", "ok"] == 90
    assert counts[f"document:{SOURCES[0]}", "error"] == 3
    assert counts[f"document:{SOURCES[0]}", "skipped"] == 5
    assert counts[f"removal:{SOURCES[0]}", "ok"] == 2
    assert counts[f"document:{SOURCES[1]}", "ok"] == 60
    assert recorder.counts(stages=True)["crawl/start", "ok"] == 2
    documents = [row for row in recorder.rows if row.operation.startswith("document:")]
    assert {row.start_ns for row in documents} == {0}, "nobody knows when an item was begun"
    assert len({row.end_ns for row in documents}) > 60, "items are spread over the time between two looks"
    first, second = rows(events)[SOURCES[0]], rows(events)[SOURCES[1]]
    assert (first["count"], first["failures"], first["skipped"], first["deleted"]) == (90, 3, 5, 2)
    assert first["duration_s"] == 0.9
    assert first["rate_per_s"] == 100
    assert 0 < first["rate_active_per_s"] <= 110
    assert first["repository_latency_s"] == 0.381
    assert first["repository_latency_p95_s"] is None
    assert first["failures_by_kind"] == {"The item could not be accessed.": 3}
    assert (second["count"], second["failures_by_kind"]) == (60, {})
    assert farm.did().count("start") == 1
    assert farm.resets == 0
    assert "stop" not in farm.did()
    assert sentences == [
        (
            'the farm crawls into its index as it is; run --reset-index "NAME", with the name of the search '
            "service application, empties it before"
        )
    ]


def test_the_index_is_reset_only_by_its_name_and_after_saying_what_is_lost(
    farm: Farm, server: SshFarm
) -> None:
    """A wrong name resets nothing and names the right one; before a reset the lost counts are printed."""
    with pytest.raises(
        ScenarioError, match=r"--reset-index: found 'search'; .* is 'Search Service Application'"
    ):
        made(server, Events(), reset="search").check()
    assert farm.resets == 0
    driver = made(server, Events(), reset="Search of another crawl", also=farm.application)
    facts = driver.check()["crawler"]
    assert (facts["reset"], facts["warnings"]) == (True, [])
    said: list[str] = []

    def progress(sentence: str) -> None:
        said.append(f"{farm.resets} {sentence}")

    driver.prepare(progress)
    assert said[0].startswith("0 resetting the index of 'Search Service Application': all of it is lost")
    assert "2 content sources (Local sites: SuccessCount 7,777; User profiles: SuccessCount 7,777)" in said[0]
    assert said[1].startswith("1 the index of 'Search Service Application' was reset")


def test_one_source_that_does_not_start_leaves_the_other_alone(farm: Farm, server: SshFarm) -> None:
    """A source that does not start has the reason in the results, and the other is crawled."""
    farm.sources[1].refuses = "The content source is locked."
    events, recorder = Events(), Recorder()
    driver = made(server, events)
    driver.prepare(quiet)
    crawl(driver, recorder)
    failed = rows(events)[SOURCES[1]]
    assert (failed["count"], failed["failures"], failed["duration_s"]) == (0, 1, None)
    assert failed["failures_by_kind"] == {"not_started": 1}
    assert failed["failed"][0]["message"] == "The content source is locked."
    assert told(events) == ["User profiles was not crawled: The content source is locked."]
    assert recorder.counts()["crawl", "not_started"] == 1
    assert rows(events)[SOURCES[0]]["count"] == 90


def test_a_slow_start_a_pause_and_a_crawl_that_never_begins(farm: Farm, server: SshFarm) -> None:
    """The start is not in the rate, a pause not in the duration; a crawl that never begins has failed."""
    farm.sources[0].starting_s, farm.sources[0].pause = 0.6, (0.4, 1.0)
    farm.sources[1].never_begins = True
    events, recorder = Events(), Recorder()
    driver = made(server, events, start_within="1200ms")
    driver.prepare(quiet)
    crawl(driver, recorder)
    first, second = rows(events)[SOURCES[0]], rows(events)[SOURCES[1]]
    assert first["count"] == 90
    assert 0.3 < first["paused_s"] < 1.5
    assert first["duration_s"] == pytest.approx(1.9 - first["paused_s"])
    assert second["failures_by_kind"] == {"not_started": 1}
    assert "has not begun" in second["failed"][0]["message"]
    assert f"{SOURCES[0]} is paused on the farm" in told(events)


def test_a_lost_link_is_opened_again_and_nothing_is_counted_twice(farm: Farm, server: SshFarm) -> None:
    """After a lost server in mid-crawl the link reopens, and each item is counted once."""
    farm.sources[0].per_s = 40
    events, recorder = Events(), Recorder()
    driver = made(server, events)
    driver.prepare(quiet)

    def interrupt() -> None:
        time.sleep(1.0)
        server.shut()
        time.sleep(0.7)
        server.open()

    cutter = threading.Thread(target=interrupt)
    cutter.start()
    crawl(driver, recorder)
    cutter.join()
    assert [line["event"] for line in events.lines if "link" in line["event"]] == [
        "crawler_link_lost",
        "crawler_link_back",
    ]
    assert recorder.counts()[f"document:{SOURCES[0]}", "ok"] == 90
    assert farm.did().count("start") == 1
    assert "watch" in farm.did()
    assert "stopped-as-orphan" not in farm.did()
    assert rows(events)[SOURCES[0]]["duration_s"] == 2.25


def test_a_link_that_does_not_come_back_ends_the_crawl_for_us(farm: Farm, server: SshFarm) -> None:
    """After ``reconnect_within`` the crawl is given up with a message, and its counts so far stay."""
    farm.sources[0].items = 100_000
    events, recorder = Events(), Recorder()
    driver = made(server, events, reconnect_within="500ms")
    driver.prepare(quiet)
    session = driver.session(0)
    for _ in range(4):
        assert session.perform(recorder)
    server.shut()
    deadline = time.monotonic() + 30
    while session.perform(recorder):
        assert time.monotonic() < deadline
    session.close()
    assert recorder.counts()["crawl", "link_lost"] == 1
    assert len(events.named("crawler_link_given_up")) == 1
    assert rows(events)[SOURCES[0]]["count"] > 0
    server.open()


def test_a_run_that_ends_early_stops_the_crawl(farm: Farm, server: SshFarm) -> None:
    """Closing a session requests the stop, and the scenario's end waits until the farm is idle."""
    farm.sources[0].items, farm.sources[0].stopping_s = 100_000, 1.0
    events = Events()
    driver = made(server, events)
    driver.prepare(quiet)
    session = driver.session(0)
    assert session.perform(Recorder())
    session.close()
    assert farm.sources[0].line()["state"] == "CrawlStopping"
    driver.finish(keep_data=True)
    assert [source.line()["state"] for source in farm.sources] == ["Idle", "Idle"]


def test_a_crawl_that_somebody_stops_is_told(farm: Farm, server: SshFarm) -> None:
    """A crawl stopped by an administrator ends, is not complete, and is reported."""
    farm.sources[0].items, farm.sources[0].stopping_s = 100_000, 0.6
    events, recorder = Events(), Recorder()
    driver = made(server, events)
    driver.prepare(quiet)
    timer = threading.Timer(1.0, farm.sources[0].stop)
    timer.start()
    crawl(driver, recorder)
    timer.join()
    assert rows(events)[SOURCES[0]]["stopped"]
    assert recorder.counts()["crawl", "stopped"] == 1
    assert f"{SOURCES[0]} was stopped on the farm before its end" in told(events)


def test_a_farm_that_is_not_ready_is_refused_with_the_reason(farm: Farm, server: SshFarm) -> None:
    """A running crawl, a paused application, or an unknown name is refused before anything starts."""
    with pytest.raises(ScenarioError, match=r"unknown content source 'Local site'; .*nearest: Local sites"):
        made(server, Events(), content_sources=["Local site"]).check()
    with pytest.raises(ScenarioError, match=r"the farm has no search service application 'Extra'"):
        made(server, Events(), application="Extra").check()
    with pytest.raises(ScenarioError, match=r"run without --resume"):
        made(server, Events(), resume=True).check()
    farm.paused = 2
    with pytest.raises(ScenarioError, match=r"is paused \(IsPaused: 0x2\)"):
        made(server, Events()).check()
    farm.paused = 0
    farm.sources[1].state = "CrawlingIncremental"
    with pytest.raises(
        ScenarioError, match=r"User profiles is being crawled incrementally; wait until all are idle"
    ):
        made(server, Events()).check()
    assert made(server, Events(), content_sources=[SOURCES[0]]).check()
    farm.refuses["check"] = "Cannot access the local farm. Verify that the local farm is properly configured."
    with pytest.raises(
        ScenarioError, match=r"the farm answered: Cannot access the local farm.*double hop.*credssp"
    ):
        made(server, Events()).check()
    assert farm.did().count("start") == 0


def test_an_incremental_crawl_that_begins_meanwhile_is_not_taken_for_ours(
    farm: Farm, server: SshFarm
) -> None:
    """An incremental crawl that starts between check and run ends the run with the reason."""
    driver = made(server, Events())
    driver.prepare(quiet)
    farm.sources[0].state = "CrawlingIncremental"
    session = driver.session(0)
    try:
        with pytest.raises(
            ScenarioError, match=r"'Local sites' is being crawled incrementally by a schedule"
        ):
            session.perform(Recorder())
    finally:
        session.close()
    farm.sources[0].state = "Idle"


def test_an_unreachable_farm_is_said_to_be(server: SshFarm, monkeypatch: pytest.MonkeyPatch) -> None:
    """For an unreachable farm the check gives the address, the reason and the remedy."""
    monkeypatch.setattr("pinchpoint_scenarios.full_crawl.native.drive._REACH_S", 0.5)
    server.shut()
    with pytest.raises(
        EndpointUnreachable, match=r"endpoint crawler .*Connection refused.*check the address"
    ):
        made(server, Events()).check()
    server.open()
