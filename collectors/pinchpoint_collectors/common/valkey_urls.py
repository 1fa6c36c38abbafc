"""Reads a Valkey or Redis URL: one server, a cluster's seed hosts, or Sentinels.

- ``valkey://HOST:PORT/0``, ``redis://``: one server, or one node of a cluster.
- ``valkey://HOST1,HOST2,HOST3``, ``valkey+cluster://``, ``redis+cluster://``: some nodes of a cluster.
- ``valkey+sentinel://S1,S2,S3/MASTER/0``, ``redis+sentinel://``, ``redis-sentinel://``: Sentinels, and the
  name of the master that they watch.

Lettuce's ``redis-sentinel://S1,S2/0#MASTER`` and ``?sentinelMasterId=MASTER`` are read as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

SERVER = ("valkey", "redis")
CLUSTER = ("valkey+cluster", "redis+cluster")
SENTINEL = ("valkey+sentinel", "redis+sentinel", "redis-sentinel")
SCHEMES = (*SERVER, *CLUSTER, *SENTINEL)

_SERVER_PORT, _SENTINEL_PORT = 6379, 26379
_MASTER = frozenset({"sentinelmasterid", "master", "service_name"})
"""URL parameters (in lower case) that name the master."""


class Node(NamedTuple):
    """Host and port of a server."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ValkeyUrl:
    """The parts of a Valkey or Redis URL.

    Attributes:
        nodes: hosts of the URL in order: servers, or the Sentinels if there is a ``master``.
        cluster: whether the URL says that the nodes form a cluster; of a single node only the server knows.
        master: name under which the Sentinels watch the servers; None: the URL names no Sentinel.
        database: number of the database.
    """

    nodes: tuple[Node, ...]
    cluster: bool
    master: str | None
    database: int
    _scheme: str
    _login: str
    _query: str

    def of(self, node: Node) -> str:
        """Return the URL of one server with the same login, as ``valkey.connection`` accepts it."""
        query = f"?{self._query}" if self._query else ""
        return f"{self._scheme}://{self._login}{node}/{self.database}{query}"


def read(url: str) -> ValkeyUrl:
    """Parse a URL. Raises ``ValueError``, whose message does not contain the login."""
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES:
        raise ValueError(f"the scheme {parts.scheme!r} is none of {', '.join(SCHEMES)}")
    sentinel = parts.scheme in SENTINEL
    login, at, hosts = parts.netloc.rpartition("@")
    nodes = tuple(_node(host, _SENTINEL_PORT if sentinel else _SERVER_PORT) for host in hosts.split(","))
    options = parse_qsl(parts.query)
    named = [value for name, value in options if name.lower() in _MASTER]
    path = [unquote(part) for part in parts.path.split("/") if part]
    master = None
    if sentinel:
        named += [unquote(parts.fragment)] if parts.fragment else []
        if not named and path and not path[0].isdecimal():
            named = [path.pop(0)]
        if not named or not named[0]:
            raise ValueError(
                f"it does not name the master that the Sentinels watch; write {parts.scheme}://HOST/MASTER/0"
            )
        master = named[0]
    if len(path) > 1 or not all(part.isdecimal() for part in path):
        raise ValueError("its path is no number of a database")  # the text may be part of a password
    cluster = not sentinel and (parts.scheme in CLUSTER or len(nodes) > 1)
    database = int(path[0]) if path else 0
    if cluster and database:
        raise ValueError(f"database {database}: a cluster has database 0 only")
    return ValkeyUrl(
        nodes,
        cluster,
        master,
        database,
        "valkey" if parts.scheme.startswith("valkey") else "redis",
        login + at,
        urlencode([(name, value) for name, value in options if name.lower() not in _MASTER]),
    )


def server(text: str) -> Node:
    """Return the server at ``HOST[:PORT]``. Raises ``ValueError``."""
    return _node(text, _SERVER_PORT)


def _node(text: str, port: int) -> Node:
    try:
        parts = urlsplit(f"//{text}")
        if parts.hostname and parts.port != 0:
            return Node(parts.hostname, port if parts.port is None else parts.port)
    except ValueError:
        pass
    raise ValueError("a host is missing, or a port is no number from 1 to 65535")
