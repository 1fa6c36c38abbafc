"""Tests of nosql-burst on a real Valkey: records are complete, and only its own keys are deleted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
import valkey
from scenarios.support import Events, Recorder, made, quiet

from pinchpoint_scenarios.contract import Endpoint, Scenario
from pinchpoint_scenarios.errors import EndpointUnreachable, ScenarioError
from pinchpoint_scenarios.nosql_burst.records import Contents, author, stamp
from pinchpoint_scenarios.nosql_burst.stores.valkey import outcome_of

PREFIX = "pinchpoint:test:"
OWN = {f"{PREFIX}owner".encode(), f"{PREFIX}holder".encode()}
"""Keys that are no records: the mark, and the run that holds the store."""


def _keys(client: valkey.Valkey) -> set[bytes]:
    return set(cast("list[bytes]", client.keys()))


def _run(client: valkey.Valkey, *command: str) -> None:
    run: Callable[..., object] = client.execute_command
    run(*command)


@contextmanager
def prepared(endpoint: Endpoint, params: dict[str, Any]) -> Iterator[Scenario]:
    driver = made("nosql-burst", {"nosql": endpoint}, params)
    try:
        driver.prepare(quiet)
        yield driver
    finally:
        driver.finish(keep_data=False)


@pytest.mark.parametrize("fields", [1, 3])
def test_every_write_counted_ok_can_be_read_back(nosql: Endpoint, client: valkey.Valkey, fields: int) -> None:
    """The last write of each key is stored: a plain value for one field, a hash for several."""
    recorder = Recorder()
    with prepared(nosql, {"fields": fields, "field_bytes": 20, "keys": 30}) as driver:
        session = driver.session(5)
        for _ in range(100):
            assert session.perform(recorder)
        session.close()
        contents, found = Contents(1, fields, 20), set()
        for key in _keys(client) - OWN:
            if fields == 1:
                values = [cast("bytes", client.get(key))]
            else:
                hashed = cast("dict[bytes, bytes]", client.hgetall(key.decode()))
                values = [hashed[b"field%d" % number] for number in range(fields)]
            found.add(contents.writer(values))
        assert None not in found, "a record is no write of ours"
        assert stamp(author(0, 0), 100) in found, "the last write is not there"
        assert 20 < len(found) <= 30
    assert recorder.counts() == {("update", "ok"): 100}
    assert {row.size_bytes for row in recorder.rows} == {20 * fields}


def test_a_session_that_moves_takes_no_write_back(nosql: Endpoint, client: valkey.Valkey) -> None:
    """A session that moves to another worker starts again with the same records, and none is lost."""
    events = Events()
    params = {"keys": 5, "verify": "all"}
    here = made("nosql-burst", {"nosql": nosql}, params, event=events)
    # the session's second worker
    there = made("nosql-burst", {"nosql": nosql}, params, event=events, worker=1)
    here.prepare(quiet)
    for driver, writes in ((here, 40), (there, 7)):
        session = driver.session(5)
        for _ in range(writes):
            session.perform(Recorder())
        session.close()
    for driver in (here, there):
        driver.verify()  # type: ignore[attr-defined]  # see contract.Verified
    here.finish(keep_data=False)
    told = events.named("writes_read_back")
    assert [line["records"] - line["confirmed"] for line in told] == [0, 0]
    assert [line["acknowledged"] for line in told] == [40, 7]


def test_workers_share_what_is_read_back(nosql: Endpoint, client: valkey.Valkey) -> None:
    """All workers together read back as many records as the plan states."""
    events = Events()
    params = {"keys": 1000, "verify": 60}
    drivers = [
        made("nosql-burst", {"nosql": nosql}, params, event=events, worker=worker, workers=3)
        for worker in range(3)
    ]
    drivers[0].prepare(quiet)
    for number, driver in enumerate(drivers):
        session = driver.session(number)
        for _ in range(100):
            session.perform(Recorder())
        session.close()
        driver.verify()  # type: ignore[attr-defined]
    drivers[0].finish(keep_data=False)
    records = [line["records"] for line in events.named("writes_read_back")]
    assert len(records) == 3
    assert all(5 <= each <= 20 for each in records)


def test_finish_deletes_our_keys_and_no_others(nosql: Endpoint, client: valkey.Valkey) -> None:
    """Only the run's own keys are deleted, not those with a similar prefix."""
    client.set("pinchpoint:tes", 1)
    client.set("pinchpoint:test", 1)
    client.set("pinchpoint:test2:1", 1)
    driver = made("nosql-burst", {"nosql": nosql}, {"keys": 2000, "fields": 1, "field_bytes": 1})
    driver.prepare(quiet)
    session = driver.session(0)
    for _ in range(1500):  # more than one batch
        session.perform(Recorder())
    session.close()
    driver.finish(keep_data=True)
    assert len(_keys(client)) > 500
    driver.finish(keep_data=False)
    assert _keys(client) == {
        b"pinchpoint:tes",
        b"pinchpoint:test",
        b"pinchpoint:test2:1",
    }


def test_keys_of_somebody_else_stop_the_run(nosql: Endpoint, client: valkey.Valkey) -> None:
    """Keys with the prefix but without the mark are never deleted and stop the run."""
    client.set(PREFIX + "1", "theirs")
    driver = made("nosql-burst", {"nosql": nosql})
    with pytest.raises(
        ScenarioError, match="keys that Pinchpoint did not make start with 'pinchpoint:test:'"
    ):
        driver.prepare(quiet)
    driver.finish(keep_data=False)
    assert client.get(PREFIX + "1") == b"theirs"


def test_prepare_starts_from_nothing(nosql: Endpoint, client: valkey.Valkey) -> None:
    """A new run starts without the records that an earlier run kept."""
    driver = made("nosql-burst", {"nosql": nosql})
    driver.prepare(quiet)
    client.set(PREFIX + "old", 1)
    driver.prepare(quiet)
    assert _keys(client) == OWN
    driver.finish(keep_data=False)


@pytest.mark.parametrize("outcome", ["connection_lost", "timeout"])
def test_a_write_that_fails_is_an_outcome_and_the_session_goes_on(
    nosql: Endpoint, client: valkey.Valkey, outcome: str
) -> None:
    """After a killed or silent connection the next write succeeds and reads its own reply."""
    with prepared(nosql, {"timeout_s": "100ms"} if outcome == "timeout" else {}) as driver:
        session, recorder = driver.session(0), Recorder()
        session.perform(recorder)
        if outcome == "timeout":
            client.client_pause(300, all=True)
        else:
            _run(client, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        session.perform(recorder)
        time.sleep(0.3)
        session.perform(recorder)
        session.close()
    assert [row.outcome for row in recorder.rows] == ["ok", outcome, "ok"]


def test_a_store_that_is_full_or_away_is_an_outcome(nosql: Endpoint, client: valkey.Valkey) -> None:
    """The server's refusals are named outcomes, and a session opens while the store is away."""
    with prepared(nosql, {}) as driver:
        session, recorder = driver.session(0), Recorder()
        client.config_set("maxmemory", 1)
        session.perform(recorder)
        client.config_set("maxmemory", 0)
        session.perform(recorder)
        session.close()
        away = made("nosql-burst", {"nosql": Endpoint("nosql", "valkey://127.0.0.1:1/0")}).session(0)
        away.perform(recorder)
        away.close()
    assert [row.outcome for row in recorder.rows] == ["out_of_memory", "ok", "unreachable"]


@pytest.mark.parametrize(
    ("weaker", "params", "words"),
    [
        ({}, {}, ""),
        ({"appendfsync": "everysec"}, {}, "appendfsync is everysec, so a write does not wait for the disk"),
        ({"no-appendfsync-on-rewrite": "yes"}, {}, "does not wait for the disk while the file is rewritten"),
        ({"maxmemory": "1gb", "maxmemory-policy": "allkeys-lru"}, {}, "may throw acknowledged writes away"),
        ({"maxmemory-policy": "allkeys-lru"}, {}, ""),
        ({"maxmemory": "1gb", "maxmemory-policy": "volatile-ttl"}, {"ttl": "9s"}, "once it holds 1073741824"),
        ({"maxmemory": "1gb", "maxmemory-policy": "volatile-ttl"}, {}, ""),
    ],
)
def test_check_says_what_an_acknowledged_write_is_worth(
    nosql: Endpoint, client: valkey.Valkey, weaker: dict[str, str], params: dict[str, Any], words: str
) -> None:
    """Full durability without eviction has no warning; each weaker setting has one sentence."""
    before = {name: cast("dict[str, str]", client.config_get(name))[name] for name in weaker}
    try:
        for name, value in weaker.items():
            client.config_set(name, value)
        facts = made("nosql-burst", {"nosql": nosql}, params).check()["nosql"]
    finally:
        for name, value in before.items():
            client.config_set(name, value)
    assert facts["server"] == "valkey"
    assert facts["settings"]["appendonly"] == "yes"
    assert "not known" not in facts["settings"].values()
    assert len(facts["warnings"]) == bool(words)
    assert words in "".join(facts["warnings"])


@pytest.mark.parametrize(
    ("denied", "settings", "version_known", "said"),
    [("-config", {"not known"}, True, "not known"), ("-info", None, False, "this user may not use INFO")],
)
def test_what_a_user_may_not_ask_is_not_known(
    nosql: Endpoint,
    client: valkey.Valkey,
    denied: str,
    settings: set[str] | None,
    version_known: bool,
    said: str,
) -> None:
    """Without the right to read settings or INFO, the store is used, and check warns of unknown values."""
    _run(client, "ACL", "SETUSER", "plain", "on", ">plain", "~*", "+@all", denied)
    parts = urlsplit(nosql.url)
    url = f"valkey://plain:plain@{parts.hostname}:{parts.port}/0"
    facts = made("nosql-burst", {"nosql": Endpoint("nosql", url)}).check()["nosql"]
    _run(client, "ACL", "DELUSER", "plain")
    assert settings is None or set(facts["settings"].values()) == settings
    assert (facts["server"] is not None, facts["version"] is not None) == (version_known, version_known)
    assert said in facts["warnings"][0]
    assert settings is None or len(facts["warnings"]) == 1


def test_a_store_that_lets_us_not_in_is_explained(nosql: Endpoint) -> None:
    """A refused login gives one sentence with cause and remedy, without the password."""
    parts = urlsplit(nosql.url)
    for url, cause in (
        (f"valkey://:se%26cret@{parts.hostname}:{parts.port}/0", "refused the user or the password"),
        ("redis://:secret@127.0.0.1:1/0", "start the server, or correct host and port"),
    ):
        with pytest.raises(EndpointUnreachable) as caught:
            made("nosql-burst", {"nosql": Endpoint("nosql", url)}).check()
        message = str(caught.value)
        assert message.startswith("endpoint nosql (127.0.0.1:")
        assert cause in message
        assert "cret" not in message
    with pytest.raises(
        ScenarioError,
        match=r"allowed: cassandra, mongodb, mongodb\+srv, redis, redis\+cluster, .*valkey\+sentinel",
    ):
        made("nosql-burst", {"nosql": Endpoint("nosql", "memcached://127.0.0.1/x")})


def test_errors_without_a_class_are_named_by_their_first_word() -> None:
    """An unknown server error becomes an outcome named after its first word."""
    error = valkey.exceptions.ResponseError
    assert outcome_of(error("MISCONF Errors writing to the AOF file")) == "disk_error"
    assert outcome_of(error("CLUSTERDOWN The cluster is down")) == "cluster_down"
    assert outcome_of(error("")) == "error_unnamed"
