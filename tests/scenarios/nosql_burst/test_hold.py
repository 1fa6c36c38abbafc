"""Tests of a run's hold on a store: no other run empties the store unless it takes over."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import valkey
from scenarios.support import Events, Recorder, made, quiet
from serverprocess import ServerProcess

from pinchpoint_scenarios.contract import Endpoint, Scenario
from pinchpoint_scenarios.errors import ScenarioError
from pinchpoint_scenarios.nosql_burst import NosqlBurst
from pinchpoint_scenarios.nosql_burst.params import NosqlBurstParams
from pinchpoint_scenarios.nosql_burst.stores import Store, store

NAME = "held"
IN_USE = (
    r"^endpoint nosql \(.*\): another run \(process \d+ on \S+, since \d{4}-.* UTC\) is using the .*; wait "
    "until it has ended, or give the scenario another name in the plan; if it was killed: pinchpoint run "
    "--take-over$"
)
LIVING = """
import sys, time
from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.nosql_burst.params import NosqlBurstParams
from pinchpoint_scenarios.nosql_burst.stores import store
store(Endpoint("nosql", sys.argv[1]), sys.argv[2], NosqlBurstParams()).claim(print)
print("claimed", flush=True)
time.sleep(60)
"""


@pytest.fixture(params=["valkey", "cassandra", "mongodb"])
def endpoint(request: pytest.FixtureRequest) -> Endpoint:
    """Yield each kind of store's server in turn."""
    if request.param == "mongodb":
        server: ServerProcess = request.getfixturevalue("mongo_server")
        return Endpoint("nosql", server.url)
    found: Endpoint = request.getfixturevalue({"valkey": "nosql"}.get(request.param, "cassandra_endpoint"))
    return found


def run(endpoint: Endpoint, events: Events | None = None, *, take_over: bool = False) -> Scenario:
    """Return a run's scenario, as the process that prepares and finishes it has."""
    params = {"fields": 2, "field_bytes": 30, "keys": 20, "verify": "all"}
    return made(
        "nosql-burst", {"nosql": endpoint}, params, name=NAME, event=events or Events(), take_over=take_over
    )


def opened(endpoint: Endpoint) -> Store:
    return store(endpoint, NAME, NosqlBurstParams())


def write(scenario: Scenario, times: int) -> None:
    session, recorder = scenario.session(0), Recorder()
    for _ in range(times):
        session.perform(recorder)
    session.close()
    assert recorder.counts() == {("update", "ok"): times}


def lost(scenario: Scenario, events: Events) -> int:
    """Return the number of records whose acknowledged write is missing or different."""
    assert isinstance(scenario, NosqlBurst)
    scenario.verify()
    line = events.named("writes_read_back")[-1]
    assert line["records"] > 0
    missing: int = line["records"] - line["confirmed"]
    return missing


def test_a_second_run_is_refused_and_takes_nothing(endpoint: Endpoint) -> None:
    """A second run is refused at its start and removes nothing; after the first run it starts at once."""
    events = Events()
    first, second = run(endpoint, events), run(endpoint)
    first.prepare(quiet)
    try:
        write(first, 30)
        with pytest.raises(ScenarioError, match=IN_USE):
            second.prepare(quiet)
        second.finish(keep_data=False)
        assert lost(first, events) == 0
    finally:
        first.finish(keep_data=False)
    told: list[str] = []
    second.prepare(told.append)
    second.finish(keep_data=False)
    assert told == [], "nothing was left of the first, and it was not waited for"


def test_records_that_are_kept_are_held_no_more(endpoint: Endpoint) -> None:
    """Kept records have no hold: their run can read and remove them, and the next run empties them."""
    events = Events()
    first, second = run(endpoint, events), run(endpoint, events)
    first.prepare(quiet)
    write(first, 30)
    first.finish(keep_data=True)
    first.finish(keep_data=True)
    assert lost(first, events) == 0
    told: list[str] = []
    second.prepare(told.append)
    try:
        assert all("of an earlier run" in sentence for sentence in told)
        write(second, 3)
        assert lost(first, events) > 0
        first.finish(keep_data=False)  # the records are now those of another run
        assert lost(second, events) == 0
    finally:
        second.finish(keep_data=False)


def test_a_run_that_was_taken_over_is_told(endpoint: Endpoint) -> None:
    """A run that was taken over reports it once, and leaves the other run's records."""
    events = Events()
    second = run(endpoint, events, take_over=True)
    for ends in ("remove", "release"):
        first = opened(endpoint)
        first.claim(quiet)
        second.prepare(quiet)
        try:
            write(second, 30)
            with pytest.raises(
                ScenarioError, match=r"another run \(.*\) has taken .* over.* may be its doing"
            ):
                getattr(first, ends)()
            getattr(first, ends)()
            first.remove()
            assert lost(second, events) == 0
        finally:
            second.finish(keep_data=False)


def test_of_two_that_begin_together_one_at_most_gets_in(endpoint: Endpoint) -> None:
    """Of two runs that start together at most one gets the hold; the other gets an error."""
    stores = [opened(endpoint), opened(endpoint)]

    def claimed(place: Store) -> bool:
        try:
            place.claim(quiet)
        except ScenarioError as error:
            assert "another run (" in str(error)  # noqa: PT017 - which of them it is, if any, is not known
            return False
        return True

    with ThreadPoolExecutor(2) as both:
        assert sum(both.map(claimed, stores)) <= 1
    for place in stores:
        place.remove()
    stores[0].claim(quiet)
    stores[0].remove()


def test_a_killed_run_holds_until_it_is_taken_over(endpoint: Endpoint) -> None:
    """A killed run keeps its hold, with its process and start time, until another run takes over."""
    command = [sys.executable, "-c", LIVING, endpoint.url, NAME]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as living:
        try:
            assert living.stdout is not None
            while living.stdout.readline() != "claimed\n":
                assert living.poll() is None
        finally:
            living.kill()
    place = opened(endpoint)
    with pytest.raises(ScenarioError, match=rf"another run \(process {living.pid} on \S+, since "):
        place.claim(quiet)
    place.remove()
    place.claim(quiet, take_over=True)
    with pytest.raises(ScenarioError, match=IN_USE):
        opened(endpoint).claim(quiet)
    place.remove()
    place.claim(quiet)
    place.remove()


def test_a_store_that_forgot_the_hold_is_told_again(nosql: Endpoint) -> None:
    """If the hold's key is missing, as after a restart without persistence, the records are removed."""
    first = opened(nosql)
    first.claim(quiet)
    with valkey.Valkey.from_url(nosql.url) as client:
        client.delete(f"pinchpoint:{NAME}:holder")
        first.remove()
        assert client.keys(f"pinchpoint:{NAME}:*") == []
