"""The collector `mongodb` over the wire: a peer of MongoDB's protocol, which tells little of itself."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from collectors.asking import asking, found
from javaservers import mongo
from serverprocess import ServerProcess
from support import frozen

from pinchpoint_collectors.databases import mongodb
from pinchpoint_collectors.databases.base import ServerConnection, Target
from pinchpoint_collectors.databases.mongodb_driver import Connection
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Watch
from pinchpoint_collectors.registry import kind

README = (Path(__file__).parents[2] / "collectors" / "README.md").read_text()


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with mongo() as started:
        yield started


watching = partial(asking, "mongodb", "m1", "nosql")


def place(server: ServerProcess) -> str:
    return server.url.partition("//")[2].partition("/")[0]


def test_a_server_that_tells_little_is_read_and_the_rest_listed(server: ServerProcess) -> None:
    """Its connections are there; any other metric stands in the inventory, with the place it was sought."""
    with watching(server.url) as collector:
        samples = collector.read()
        facts = collector.inventory()["m1"]
    assert found(samples) == {("db.connections", ""): 1.0}, "one is ours, and there is no other"
    assert samples[0].interval_s > 0
    assert facts["database"]["version"].startswith("5.0")
    assert facts["database"]["settings"] is None, "it does not know the command"
    why = {each["metric"]: each["why"] for each in facts["not_measured"]}
    assert why["db.journal.syncs_per_s"] == (
        "this server's serverStatus has no wiredTiger.log.log sync operations"
    )
    assert json.loads(json.dumps(facts)) == facts
    assert "://" not in json.dumps(facts)


def test_every_metric_and_fact_is_in_the_readme(server: ServerProcess) -> None:
    """The table names all that can be sent, the inventory's all that is told."""
    metrics = {each.metric for each in mongodb.not_measured({})}
    assert len(metrics) > 20
    assert {metric for metric in metrics if f"`{metric}`" not in README} == set()
    with watching(server.url) as collector:
        facts = collector.inventory()["m1"]
    assert [key for key in (*facts, *facts["database"]) if f"`{key}`" not in README] == []


def test_of_several_members_the_watched_one_has_to_be_said(server: ServerProcess) -> None:
    """It is asked alone, also where the url names a replica set the member knows nothing of."""
    url = f"mongodb://nowhere.invalid:27017,{place(server)}/loadtest?replicaSet=rs0"
    with pytest.raises(CollectorError, match="each tells of itself only; say which one this host is"):
        kind("mongodb").connect([Watch("m1", "nosql", options={"url": url})])
    looked_up = {"url": "mongodb+srv://cluster.example/loadtest"}
    with pytest.raises(CollectorError, match="say which one this host is, as in `address: HOST:PORT`"):
        kind("mongodb").connect([Watch("m1", "nosql", options=looked_up)])
    with watching(url, address=place(server)) as collector:
        assert found(collector.read())["db.connections", ""]


def test_hosts_that_are_one_server_share_a_connection(server: ServerProcess) -> None:
    """One reading, under both names."""
    watches = [Watch(name, "nosql", options={"url": server.url}) for name in ("m1", "m2")]
    assert len({kind("mongodb").machine(watch) for watch in watches}) == 1
    collector = kind("mongodb").connect(watches)
    try:
        assert {each.host for each in collector.read()} == {"m1", "m2"}
    finally:
        collector.close()
        collector.close()


def test_a_frozen_server_is_given_up_and_found_again(
    server: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reading fails within seconds instead of hanging with it; when it wakes, readings work."""
    monkeypatch.setattr(ServerConnection, "answer_s", 1.0)
    with watching(server.url) as collector:
        with frozen(server.pid):
            begun = time.monotonic()
            with pytest.raises(CollectorError, match="nothing came back within 1 s"):
                collector.read()
            assert time.monotonic() - begun < 8
        deadline = time.monotonic() + 20
        while True:
            try:
                assert collector.read()
                break
            except CollectorError:
                assert time.monotonic() < deadline
                time.sleep(0.2)


def test_a_server_that_is_not_there_is_explained() -> None:
    """One sentence with the remedy, without the password."""
    url = "mongodb://watcher:wrong-secret@127.0.0.1:1/admin"
    with pytest.raises(CollectorError) as caught:
        kind("mongodb").connect([Watch("m1", "nosql", options={"url": url})])
    assert "start the server, or correct host and port in farm.yaml" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "wrong-secret" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["mongodb://a:se:cret@h/x", "mongodb://h:99999/x", "mongodb://h/?tls=perhaps"]
)
def test_a_url_that_is_none_is_explained(url: str) -> None:
    """What the library says of it, with the place to correct."""
    with pytest.raises(CollectorError, match=r"correct the url in farm\.yaml") as caught:
        kind("mongodb").connect([Watch("m1", "nosql", options={"url": url})])
    assert "cret" not in str(caught.value)


def test_the_logins_place_and_the_secure_ways_settings_are_the_urls() -> None:
    """Users of another database than admin, TLS as the load uses it; a user of the watch's own goes first."""
    url = "mongodb://loader:one@h1:27018,h2/loadtest?replicaSet=rs0&tls=true&tlsAllowInvalidCertificates=true"
    client = Connection(Target("here", url, "h2:27017", "watcher", "two"))._open()
    try:
        options = client.options
        assert options.direct_connection
        login = options.pool_options._credentials
        assert login is not None
        assert (login.username, login.password, login.source) == ("watcher", "two", "loadtest")
        assert options.pool_options._ssl_context is not None
    finally:
        client.close()


@pytest.mark.parametrize("options", [{}, {"url": "cassandra://c1/x"}])
def test_an_endpoint_that_is_no_mongodb_is_explained(options: dict[str, str]) -> None:
    """With what has to be said in farm.yaml."""
    with pytest.raises(CollectorError, match=r"host 'm1'.* say `endpoint: NAME`.*mongodb://"):
        kind("mongodb").connect([Watch("m1", "nosql", options=options)])
