"""Contract of each collector of a server: each kind's tests inherit it and use a real server."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from collectors.asking import asking, read_again
from support import frozen, until

from pinchpoint_collectors.databases.base import ServerConnection
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Watch
from pinchpoint_collectors.registry import kind

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("database-collectors", "metrics", "server-metrics")
README = "".join((DOCS / f"{page}.md").read_text() for page in PAGES)


@dataclass(frozen=True)
class Peer:
    """A server as its documented user watches it.

    Attributes:
        url: the server's URL with the user's name and password.
        processes: function that returns the process ids to suspend.
        count: function that returns the number of the user's connections; None: the server does not report
            it.
        connections: number of connections of a collector.
    """

    url: str
    processes: Callable[[], Sequence[int]]
    count: Callable[[], int] | None = None
    connections: int = 1

    @property
    def place(self) -> str:
        """Host and port of the server."""
        return self.url.partition("://")[2].partition("/")[0].rpartition("@")[2]

    @property
    def password(self) -> str:
        """The password; "" if none is needed."""
        return self.url.rpartition("@")[0].rpartition(":")[2] if "@" in self.url else ""


class ServerContract:
    """Contract of a collector; ``peer`` is a fixture of the kind's tests.

    Attributes:
        KIND: name of the kind.
        UNREACHABLE: url with ``{place}`` and ``{password}`` -> pattern of the error.
        SEVERAL: True if a url may name several servers.
    """

    KIND: ClassVar[str]
    UNREACHABLE: ClassVar[dict[str, str]]
    SEVERAL: ClassVar[bool] = True

    def test_every_metric_and_fact_is_in_the_readme(self, peer: Peer) -> None:
        """The README lists each metric and inventory fact; no fact has an address or a password."""
        with asking(self.KIND, "db1", "sql", peer.url) as collector:
            samples = collector.read()
            facts = collector.inventory()["db1"]
        assert {each.metric for each in samples if f"`{each.metric}`" not in README} == set()
        assert [key for key in (*facts, *facts["database"]) if f"`{key}`" not in README] == []
        said = json.dumps(facts)
        assert json.loads(said) == facts
        assert "://" not in said
        assert not peer.password or peer.password not in said

    def test_hosts_that_are_one_server_share_a_connection(self, peer: Peer) -> None:
        """Two hosts on one server share one reading and one connection; closing twice is allowed."""
        watches = [Watch(name, "sql", options={"url": peer.url}) for name in ("db1", "db2")]
        assert len({kind(self.KIND).machine(watch) for watch in watches}) == 1
        collector = kind(self.KIND).connect(watches)
        try:
            assert {each.host for each in collector.read()} == {"db1", "db2"}
            assert peer.count is None or peer.count() == peer.connections
        finally:
            collector.close()
            collector.close()
        until(lambda: not (peer.count is not None and peer.count()), "nothing stays behind")

    def test_a_frozen_server_is_given_up_and_found_again(
        self, peer: Peer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Readings of a suspended server fail within seconds and work again when the server continues."""
        monkeypatch.setattr(ServerConnection, "answer_s", 1.0)
        with asking(self.KIND, "db1", "sql", peer.url) as collector:
            with frozen(*peer.processes()):
                begun = time.monotonic()
                with pytest.raises(CollectorError, match=r"nothing came back|connection"):
                    collector.read()
                assert time.monotonic() - begun < 8
            read_again(collector, within_s=20)

    def test_a_server_that_cannot_be_asked_is_explained(self, peer: Peer) -> None:
        """An unreachable server gives one sentence with the remedy and without the password."""
        for given, said in self.UNREACHABLE.items():
            url = given.format(place=peer.place, password=peer.password)
            with pytest.raises(CollectorError, match=f"host 'db1', collector '{self.KIND}'") as caught:
                kind(self.KIND).connect([Watch("db1", "sql", options={"url": url})])
            told = str(caught.value)
            assert said in told
            assert "\n" not in told
            assert "cret" not in told
            assert not peer.password or peer.password not in told

    def test_of_several_servers_the_watched_one_is_asked_alone(self, peer: Peer) -> None:
        """With several servers, the collector reads the watched one, with the endpoint's login."""
        if not self.SEVERAL:
            return
        url = peer.url.replace(peer.place, f"nowhere.invalid:9,{peer.place}")
        with asking(self.KIND, "db1", "sql", url, address=peer.place) as collector:
            assert collector.inventory()["db1"]["database"]
