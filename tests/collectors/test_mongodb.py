"""The collector `mongodb` over the wire: a peer of MongoDB's protocol, which tells little of itself."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import ClassVar

import pytest
from collectors.asking import asking, found
from collectors.server_contract import README, Peer, ServerContract
from javaservers import mongo
from serverprocess import ServerProcess

from pinchpoint_collectors.databases import mongodb
from pinchpoint_collectors.databases.base import DatabaseTarget
from pinchpoint_collectors.databases.mongodb_driver import MongoServerConnection
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Watch
from pinchpoint_collectors.registry import kind


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with mongo() as started:
        yield started


@pytest.fixture(scope="module")
def peer(server: ServerProcess) -> Peer:
    return Peer(server.url, lambda: [server.pid])


class TestContract(ServerContract):
    KIND = "mongodb"
    UNREACHABLE: ClassVar = {
        "mongodb://watcher:wrong-secret@127.0.0.1:1/admin": (
            "start the server, or correct host and port in farm.yaml"
        ),
        "mongodb://a:se:cret@h/x": "correct the url in farm.yaml",
        "mongodb://h:99999/x": "correct the url in farm.yaml",
        "mongodb://h/?tls=perhaps": "correct the url in farm.yaml",
    }


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


def test_every_metric_that_can_be_sent_is_in_the_readme() -> None:
    """This server sends few of them."""
    metrics = {each.metric for each in mongodb.not_measured({})}
    assert len(metrics) > 20
    assert {metric for metric in metrics if f"`{metric}`" not in README} == set()


def test_of_several_members_the_watched_one_has_to_be_said(server: ServerProcess) -> None:
    """Also where the url names a replica set the member knows nothing of, or the name service knows them."""
    url = f"mongodb://nowhere.invalid:27017,{place(server)}/loadtest?replicaSet=rs0"
    looked_up = {"url": "mongodb+srv://cluster.example/loadtest"}
    with pytest.raises(CollectorError, match="say which one this host is, as in `address: HOST:PORT`"):
        kind("mongodb").connect([Watch("m1", "nosql", options=looked_up)])
    with watching(url, address=place(server)) as collector:
        assert found(collector.read())["db.connections", ""]


def test_the_logins_place_and_the_secure_ways_settings_are_the_urls() -> None:
    """Users of another database than admin, TLS as the load uses it; a user of the watch's own goes first."""
    url = "mongodb://loader:one@h1:27018,h2/loadtest?replicaSet=rs0&tls=true&tlsAllowInvalidCertificates=true"
    client = MongoServerConnection(DatabaseTarget("here", url, "h2:27017", "watcher", "two"))._open()
    try:
        options = client.options
        assert options.direct_connection
        login = options.pool_options._credentials
        assert login is not None
        assert (login.username, login.password, login.source) == ("watcher", "two", "loadtest")
        assert options.pool_options._ssl_context is not None
    finally:
        client.close()
