"""Tests of the collector `valkey` with a cluster's nodes or Sentinels in the endpoint."""

from __future__ import annotations

import pytest
from collectors.asking import asking, found
from servers import valkey_cluster, valkey_sentinels

from pinchpoint_collectors.common import valkey_urls
from pinchpoint_collectors.common.valkey_urls import Node
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Watch
from pinchpoint_collectors.registry import kind


def refused(options: dict[str, str]) -> str:
    with pytest.raises(CollectorError) as caught:
        kind("valkey").connect([Watch("c1", "nosql", options=options)])
    return str(caught.value)


def test_a_node_of_a_cluster_is_named_by_its_address() -> None:
    """A cluster node must be named by its address, because each node reports only itself."""
    with valkey_cluster() as group:
        ports = list(group)
        url = "valkey://:sesame@" + ",".join(f"127.0.0.1:{port}" for port in ports)
        assert f"say which one this host is, as in `address: 127.0.0.1:{ports[0]}`" in refused({"url": url})
        with asking("valkey", "c1", "nosql", url, address=f"127.0.0.1:{ports[1]}") as watched:
            assert found(watched.read())["db.connections", ""]


def test_sentinels_do_not_stand_for_the_server() -> None:
    """With Sentinels an address is needed, because the figures would be the Sentinel's."""
    with valkey_sentinels() as (servers, sentinels):
        url = f"valkey+sentinel://:sesame@127.0.0.1:{next(iter(sentinels))}/orders/0"
        assert "as in `address: HOST:6379`" in refused({"url": url})
        for port in servers:
            with asking("valkey", "c1", "nosql", url, address=f"127.0.0.1:{port}") as watched:
                assert found(watched.read())["db.commands_per_s", ""]


@pytest.mark.parametrize(
    ("url", "nodes", "cluster", "master", "server"),
    [
        ("valkey://h", [("h", 6379)], False, None, "valkey://h:6379/0"),
        ("redis://u:p%40@h:1/3?protocol=3", [("h", 1)], False, None, "redis://u:p%40@h:1/3?protocol=3"),
        (
            "valkey://:p@a,b:7,[::1]:8",
            [("a", 6379), ("b", 7), ("::1", 8)],
            True,
            None,
            "valkey://:p@a:6379/0",
        ),
        ("redis+cluster://a", [("a", 6379)], True, None, "redis://a:6379/0"),
        ("valkey+sentinel://:p@a,b:7/m/2", [("a", 26379), ("b", 7)], False, "m", "valkey://:p@a:26379/2"),
        ("redis+sentinel://a/m", [("a", 26379)], False, "m", "redis://a:26379/0"),
        ("redis-sentinel://a,b/1#m", [("a", 26379), ("b", 26379)], False, "m", "redis://a:26379/1"),
        ("redis-sentinel://a/1?sentinelMasterId=m", [("a", 26379)], False, "m", "redis://a:26379/1"),
    ],
)
def test_addresses_as_people_write_them(
    url: str, nodes: list[tuple[str, int]], cluster: bool, master: str | None, server: str
) -> None:
    """Each form of an address gives the URL of one server."""
    said = valkey_urls.read(url)
    assert (list(said.nodes), said.cluster, said.master) == ([Node(*each) for each in nodes], cluster, master)
    assert said.of(said.nodes[0]) == server


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("valkey+sentinel://a/0", "does not name the master"),
        ("valkey://a,b/1", "a cluster has database 0 only"),
        ("valkey://a,,b", "a host is missing"),
        ("valkey://a:0", "a host is missing, or a port"),
        ("valkey://a/x", "its path is no number of a database"),
        ("http://a", "the scheme 'http' is none of"),
    ],
)
def test_what_is_no_address_is_said(url: str, words: str) -> None:
    """An invalid address gives an error without the login."""
    with pytest.raises(ValueError, match=words):
        valkey_urls.read(url)
