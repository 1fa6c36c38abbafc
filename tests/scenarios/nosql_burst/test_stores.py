"""Tests of each store with one contract on its own server, and of each store's own features."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
from cassandra.cluster import Cluster
from pymongo import MongoClient
from scenarios.fastpath.test_http import certificate
from scenarios.support import Events, Recorder, made, quiet
from serverprocess import ServerProcess
from servers import redis

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.errors import EndpointUnreachable, ScenarioError
from pinchpoint_scenarios.nosql_burst.params import NosqlBurstParams
from pinchpoint_scenarios.nosql_burst.records import LOADER, Contents, stamp
from pinchpoint_scenarios.nosql_burst.stores import Store, cassandra, store
from pinchpoint_scenarios.nosql_burst.stores.cassandra import Cassandra
from pinchpoint_scenarios.nosql_burst.stores.mongodb import Mongo

STORES = ("valkey", "redis", "cassandra", "mongodb")


@pytest.fixture(scope="session")
def redis_endpoint() -> Iterator[Endpoint]:
    with redis() as url:
        yield Endpoint("nosql", url)


@pytest.fixture(params=STORES)
def endpoint(request: pytest.FixtureRequest) -> Endpoint:
    """Yield each store's server in turn."""
    kind = str(request.param)
    if kind == "mongodb":
        server: ServerProcess = request.getfixturevalue("mongo_server")
        return Endpoint("nosql", server.url)
    fixture = {"valkey": "nosql", "redis": "redis_endpoint"}.get(kind, "cassandra_endpoint")
    found: Endpoint = request.getfixturevalue(fixture)
    return found


def opened(endpoint: Endpoint, **params: Any) -> Store:
    given = NosqlBurstParams.model_validate({"fields": 3, "field_bytes": 20, **params})
    return store(endpoint, "test", given)


def test_what_is_written_is_read(endpoint: Endpoint) -> None:
    """A single record and several at once are read back complete; a missing one is None."""
    place = opened(endpoint)
    place.claim(quiet)
    connection = place.connect(3)
    try:
        rows = [(item, [b"%d" % item, b"", bytes(range(20))]) for item in range(7)]
        assert connection.write(rows[:1]) == "ok"
        assert connection.write(rows[1:]) == "ok"
        assert connection.read([6]) == ("ok", [rows[6][1]])
        assert connection.read([0, 99, 5]) == ("ok", [rows[0][1], None, rows[5][1]])
        again = (0, [b"new", b"new", b"new"])
        assert connection.write([again]) == "ok"
        assert connection.read([0]) == ("ok", [again[1]])
    finally:
        connection.close()
        connection.close()
        place.remove()


def test_loading_writes_all(endpoint: Endpoint) -> None:
    """Loading writes all records; a new claim empties the store, and removal leaves nothing."""
    place = opened(endpoint)
    place.claim(quiet)
    told: list[int] = []
    place.load(((item, [b"a", b"b", b"c"]) for item in range(1_234)), told.append)
    assert told[-1] == 1_234
    connection = place.connect(0)
    assert connection.read([0, 1_233, 1_234]) == ("ok", [[b"a", b"b", b"c"], [b"a", b"b", b"c"], None])
    connection.close()
    place.claim(quiet)
    connection = place.connect(0)
    assert connection.read([0]) == ("ok", [None])
    connection.close()
    place.remove()
    place.remove()


def test_a_store_that_is_away_is_an_outcome(endpoint: Endpoint) -> None:
    """With the store away a session opens, and ``check`` gives one sentence without secrets."""
    scheme = urlsplit(endpoint.url).scheme
    database = "1" if scheme in {"redis", "valkey"} else "x"
    away = opened(Endpoint("nosql", f"{scheme}://u:s%26cret@127.0.0.1:1/{database}"), timeout_s="500ms")
    connection = away.connect(0)
    assert connection.write([(1, [b"a", b"b", b"c"])]) == "unreachable"
    assert connection.read([1]) == ("unreachable", [])
    connection.close()
    with pytest.raises(EndpointUnreachable, match=r"endpoint nosql \(127.0.0.1:1\)") as caught:
        away.check()
    assert "cret" not in str(caught.value)


def test_all_operations_and_the_read_back(endpoint: Endpoint) -> None:
    """Reads find the loaded records, every write can be read back, and one event reports it."""
    events, recorder = Events(), Recorder()
    weights = {"insert": 1, "update": 1, "read": 1, "read_modify_write": 1}
    params = {
        "operations": weights,
        "fields": 2,
        "field_bytes": 30,
        "keys": 40,
        "distribution": "latest",
        "verify": "all",
    }
    scenario = made("nosql-burst", {"nosql": endpoint}, params, event=events)
    scenario.prepare(quiet)
    try:
        sessions = [scenario.session(number) for number in range(2)]
        for turn in range(80):
            sessions[turn % 2].perform(recorder)
        for session in sessions:
            session.close()
        counts = recorder.counts()
        assert set(counts) == {(name, "ok") for name in weights}
        scenario.verify()  # type: ignore[attr-defined]  # see contract.Verified
    finally:
        scenario.finish(keep_data=False)
    (line,) = events.named("writes_read_back")
    writes = sum(count for (name, _), count in counts.items() if name != "read")
    assert line["acknowledged"] == writes
    assert line["records"] == line["confirmed"] > counts["insert", "ok"]
    assert (line["missing"], line["different"], line["not_read"], line["examples"]) == (0, 0, "", [])


def test_a_time_to_live(endpoint: Endpoint, request: pytest.FixtureRequest) -> None:
    """Records have a time to live that the store itself reports."""
    place = opened(endpoint, ttl="100s")
    place.claim(quiet)
    connection = place.connect(0)
    try:
        assert connection.write([(1, [b"a", b"b", b"c"])]) == "ok"
        assert connection.write([(1, [b"a", b"b", b"c"]), (2, [b"d", b"e", b"f"])]) == "ok"
        assert connection.read([2]) == ("ok", [[b"d", b"e", b"f"]])
        for item in (1, 2):
            assert 90 < _left_s(endpoint, item) <= 100
    finally:
        connection.close()
        place.remove()


def _left_s(endpoint: Endpoint, item: int) -> float:
    """Return the store's own time to live of a record, in seconds."""
    url = urlsplit(endpoint.url)
    if url.scheme == "cassandra":
        with Cluster([url.hostname], port=url.port, protocol_version=4) as cluster:
            said = cluster.connect().execute(
                "SELECT ttl(field0) FROM burst.pinch_test WHERE partition = %s AND item = %s", (item, item)
            )
            return float(said.one()[0])
    if url.scheme == "mongodb":
        with MongoClient[dict[str, Any]](endpoint.url) as client:
            collection = client.get_default_database()["pinchpoint_test"]
            document = collection.find_one({"_id": item})
            assert document is not None
            assert any("expires" in index["key"] for index in collection.list_indexes())
            now = client.admin.command("isMaster")["localTime"]
            left: float = (document["expires"] - now).total_seconds()
            return left
    import valkey  # noqa: PLC0415 - beside what it is for

    with valkey.Valkey.from_url(endpoint.url) as client_:
        return int(str(client_.pttl(f"pinchpoint:test:{item}"))) / 1000


# ---- Cassandra ---------------------------------------------------------------------------------------


def test_rows_share_partitions_of_the_width_asked_for(cassandra_endpoint: Endpoint) -> None:
    """25 records, ten per partition, have three partitions besides that of the run's hold."""
    place = opened(cassandra_endpoint, partition_width=10)
    place.claim(quiet)
    connection = place.connect(0)
    assert connection.write([(item, [b"a", b"b", b"c"]) for item in range(25)]) == "ok"
    assert connection.read([24]) == ("ok", [[b"a", b"b", b"c"]])
    connection.close()
    url = urlsplit(cassandra_endpoint.url)
    with Cluster([url.hostname], port=url.port, protocol_version=4) as cluster:
        found = cluster.connect().execute("SELECT DISTINCT partition FROM burst.pinch_test")
        assert sorted(row[0] for row in found) == [-1, 0, 1, 2]
    place.remove()


def test_partitions_are_refused_where_there_are_none(nosql: Endpoint, mongo_server: ServerProcess) -> None:
    """Partitions are refused for stores without them before any write, with the remedy."""
    for endpoint in (nosql, Endpoint("nosql", mongo_server.url)):
        with pytest.raises(ScenarioError, match="partition_width is 5, but this store has no partitions"):
            opened(endpoint, partition_width=5).check()


def test_a_level_that_cannot_be_met_is_an_outcome(cassandra_endpoint: Endpoint) -> None:
    """Two replicas of one are an unavailable outcome, and the connection stays in use."""
    one, two = (opened(cassandra_endpoint, cassandra={"consistency": level}) for level in ("ONE", "TWO"))
    one.claim(quiet)
    row = (1, [b"a", b"b", b"c"])
    connections = two.connect(0), one.connect(0)
    assert [connection.write([row]) for connection in connections] == ["unavailable", "ok"]
    assert connections[0].write([row, (2, row[1])]) == "unavailable"
    assert connections[1].write([row, (2, row[1])]) == "ok"
    for connection in connections:
        connection.close()
    one.remove()


@pytest.mark.parametrize(
    "params",
    [{"prepared": False}, {"batch_type": "logged"}, {"consistency": "ALL"}, {"consistency": "LOCAL_ONE"}],
)
def test_cassandras_own_parameters(cassandra_endpoint: Endpoint, params: dict[str, Any]) -> None:
    """The server accepts each of Cassandra's own parameters."""
    place = opened(cassandra_endpoint, cassandra=params)
    place.claim(quiet)
    connection = place.connect(0)
    rows = [(item, [b"a", b"b", b"c"]) for item in range(3)]
    assert connection.write(rows) == "ok"
    assert connection.write(rows[:1]) == "ok"
    assert connection.read([2]) == ("ok", [rows[2][1]])
    connection.close()
    place.remove()


def test_over_tls_the_same(
    cassandra_endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With TLS the node's certificate is checked; statements, batches and large records arrive complete."""
    port = urlsplit(cassandra_endpoint.url).port
    assert port is not None
    place = opened(cassandra_endpoint)
    place.claim(quiet)
    with tls_before(port, tmp_path) as (tls_port, trusted):
        over_tls = opened(Endpoint("nosql", f"cassandra://127.0.0.1:{tls_port}/burst?tls=true"))
        stranger = over_tls.connect(0)
        assert stranger.write([(1, [b"a"] * 3)]) == "unreachable"
        stranger.close()
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        connection = opened(Endpoint("nosql", f"cassandra://127.0.0.1:{tls_port}/burst?tls=true")).connect(0)
        rows = [(item, [b"a", b"b" * 10_000, b"c"]) for item in range(3)]
        assert connection.write(rows) == "ok"
        rows[0][1][1] *= 100
        assert connection.write(rows[:1]) == "ok"
        assert connection.read([0, 2]) == ("ok", [rows[0][1], rows[2][1]])
        connection.close()
    place.remove()


@contextmanager
def tls_before(port: int, folder: Path) -> Iterator[tuple[int, Path]]:
    """Yield a TLS port in front of a plain one, and the certificate to trust."""
    key, trusted = certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(trusted, key)

    def pass_on(source: socket.socket, to: socket.socket) -> None:
        with suppress(OSError):
            while content := source.recv(2**16):
                to.sendall(content)

    def serve(listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                accepted, _ = listening.accept()
                with suppress(OSError):
                    sealed = context.wrap_socket(accepted, server_side=True)
                    behind = socket.create_connection(("127.0.0.1", port))
                    for ends in ((sealed, behind), (behind, sealed)):
                        threading.Thread(target=pass_on, args=ends, daemon=True).start()
                    links.extend((sealed, behind))

    links: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,))
        thread.start()
        try:
            yield listening.getsockname()[1], trusted
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join(5)
            for each in links:
                each.close()


def test_the_table_is_made_again_under_a_prepared_statement(cassandra_endpoint: Endpoint) -> None:
    """After a server has lost a prepared statement, it is prepared again and the write succeeds."""
    place = opened(cassandra_endpoint)
    place.claim(quiet)
    connection = place.connect(0)
    row = (1, [b"a", b"b", b"c"])
    assert connection.write([row]) == "ok"
    place.claim(quiet)
    assert connection.write([row]) == "ok"
    connection.close()
    place.remove()


def test_a_table_of_somebody_else_stops_the_run(cassandra_endpoint: Endpoint) -> None:
    """Another user's table is neither dropped nor written; without a keyspace the remedy creates one."""
    url = urlsplit(cassandra_endpoint.url)
    with Cluster([url.hostname], port=url.port, protocol_version=4) as cluster:
        session = cluster.connect("burst")
        session.execute("CREATE TABLE pinch_test (partition bigint PRIMARY KEY)")
        place = opened(cassandra_endpoint)
        with pytest.raises(ScenarioError, match="did not make the table pinch_test of the keyspace burst"):
            place.claim(quiet)
        place.remove()
        assert session.execute("SELECT * FROM pinch_test").all() == []
        session.execute("DROP TABLE pinch_test", timeout=60)
    nowhere = Endpoint("nosql", cassandra_endpoint.url.replace("/burst", "/elsewhere"))
    with pytest.raises(ScenarioError, match=r"no keyspace 'elsewhere'.*CREATE KEYSPACE"):
        opened(nowhere).check()


def test_a_clock_that_is_set_back_does_not_bring_old_writes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write times increase over all sessions of a process even if the clock goes back."""
    times = iter([5_000_000_000, 5_000_000_000, 1_000_000_000, 6_000_000_000])
    monkeypatch.setattr(cassandra, "time", SimpleNamespace(time_ns=lambda: next(times)))
    clock = cassandra.WriteClock()
    with ThreadPoolExecutor(1) as elsewhere:
        found = [elsewhere.submit(clock.now_us).result(5) if odd else clock.now_us() for odd in (0, 1, 1, 0)]
    assert found == [5_000_000, 5_000_001, 5_000_002, 6_000_000]


def test_cassandra_says_what_a_write_is_worth(cassandra_endpoint: Endpoint) -> None:
    """Full durability has no warning; a hint only, or no commit log, has one."""
    facts = opened(cassandra_endpoint).check()
    assert (facts["server"], facts["version"], facts["warnings"]) == ("cassandra", "5.0.2", [])
    assert facts["settings"]["commitlog_sync"] == "batch"
    (said,) = opened(cassandra_endpoint, cassandra={"consistency": "ANY"}).check()["warnings"]
    assert "acknowledged before any replica has it" in said
    url = urlsplit(cassandra_endpoint.url)
    with Cluster([url.hostname], port=url.port, protocol_version=4) as cluster:
        session = cluster.connect()
        session.execute("ALTER KEYSPACE burst WITH durable_writes = false")
        (said,) = opened(cassandra_endpoint).check()["warnings"]
        session.execute("ALTER KEYSPACE burst WITH durable_writes = true")
    assert "does not go to the commit log" in said


@pytest.mark.parametrize(
    ("level", "replicas", "words"),
    [
        ("ONE", 1, []),
        ("ONE", 3, ["no more than 1 of 3 replicas"]),
        ("TWO", 3, []),
        ("TWO", 5, ["no more than 2 of 5 replicas"]),
        ("THREE", 6, ["no more than 3 of 6 replicas"]),
        ("LOCAL_ONE", None, ["no more than 1 of all replicas"]),
        ("LOCAL_QUORUM", 5, []),
    ],
)
def test_levels_below_a_majority_are_said(level: str, replicas: int | None, words: list[str]) -> None:
    """A consistency level below a majority warns of missed reads and lost writes."""
    given = NosqlBurstParams.model_validate({"cassandra": {"consistency": level}})
    settings = {"commitlog_sync": "batch", "durable_writes": "true"}
    store_ = Cassandra(Endpoint("nosql", "cassandra://127.0.0.1:1/x"), "test", given)
    said = list(store_._weaker(settings, replicas))
    assert [word in why for word, why in zip(words, said, strict=True)] == [True] * len(words)


# ---- MongoDB -----------------------------------------------------------------------------------------


def test_mongodb_says_what_a_write_is_worth(mongo_server: ServerProcess) -> None:
    """Weaker write concerns have a warning, and so has this server, which does not report its journal."""
    endpoint = Endpoint("nosql", mongo_server.url)
    checks: Callable[[dict[str, Any]], list[str]] = lambda asked: list(  # noqa: E731 - shorter than a function
        opened(endpoint, mongodb=asked).check()["warnings"]
    )
    assert "whether the server keeps a journal is not known" in checks({})[0]
    assert "journal is off" in checks({"journal": False})[0]
    assert "not acknowledged at all" in checks({"write_concern": 0, "journal": False})[0]


@pytest.mark.parametrize(
    ("wanted", "members", "warned"),
    [(1, 1, False), (1, 3, True), (2, 3, False), (2, 4, True), ("majority", 3, False), (1, None, False)],
)
def test_fewer_members_than_a_majority_are_said(wanted: int | str, members: int | None, warned: bool) -> None:
    """Fewer members than a majority warn of rollbacks; a single server or a router does not."""
    given = NosqlBurstParams.model_validate({"mongodb": {"write_concern": wanted}})
    said = list(Mongo(Endpoint("nosql", "mongodb://127.0.0.1:1/x"), "test", given)._weaker(True, members))
    assert ["taken back" in why for why in said] == [True] * warned


def test_a_collection_of_somebody_else_stops_the_run(mongo_server: ServerProcess) -> None:
    """Another user's collection is neither dropped nor written."""
    with MongoClient[dict[str, Any]](mongo_server.url) as client:
        collection = client.get_default_database()["pinchpoint_test"]
        collection.insert_one({"_id": 5})
        place = opened(Endpoint("nosql", mongo_server.url))
        with pytest.raises(ScenarioError, match="did not make the collection pinchpoint_test"):
            place.claim(quiet)
        place.remove()
        assert collection.count_documents({}) == 1
        collection.drop()


def test_loaded_records_are_no_sessions() -> None:
    """A loaded record can be distinguished from one that a session wrote."""
    contents = Contents(1, 2, 20)
    assert contents.writer(contents.of(stamp(LOADER, 17))) == stamp(LOADER, 17)


def test_a_session_that_is_opened_again_writes_what_nobody_wrote(nosql: Endpoint) -> None:
    """A session that opens again on a worker writes a record that no earlier session wrote."""
    params = {"operations": {"update": 1}, "fields": 1, "field_bytes": 30, "keys": 1}
    scenario = made("nosql-burst", {"nosql": nosql}, params)
    scenario.prepare(quiet)
    connection = opened(nosql, fields=1, keys=1).connect(9)
    found = []
    try:
        for _ in range(2):
            session = scenario.session(0)
            session.perform(Recorder())
            session.close()
            found.append(connection.read([0]))
    finally:
        connection.close()
        scenario.finish(keep_data=False)
    assert [outcome for outcome, _ in found] == ["ok", "ok"]
    assert found[0] != found[1]
