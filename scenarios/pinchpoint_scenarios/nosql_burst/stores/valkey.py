"""Accesses Valkey and Redis (server, cluster, Sentinels) by valkey-py, and by ``Wire`` for operations."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import islice
from time import monotonic
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import valkey
from valkey import exceptions
from valkey.backoff import NoBackoff
from valkey.connection import Connection, ConnectionPool
from valkey.crc import VALKEY_CLUSTER_HASH_SLOTS, key_slot
from valkey.retry import Retry
from valkey.sentinel import MasterNotFoundError, Sentinel, SentinelConnectionPool

from pinchpoint_collectors.common import valkey_urls
from pinchpoint_collectors.common.backoff import Backoff
from pinchpoint_collectors.common.valkey_urls import Node

from ...addresses import place, unreachable, without_secrets
from ...contract import OK, Endpoint
from ...errors import EndpointUnreachable, ScenarioError
from ...fastpath.drivers.resp import Command
from ...fastpath.resp import FastWire, LibraryWire, Wire
from ..hold import Hold, HoldEntry
from ..params import NosqlBurstParams
from ..records import Fields, Row
from .contract import MARKER, Store, refuse_partitions

# In a cluster, each command goes to the node with its key, and MOVED and ASK are followed. A redirected
# operation is one operation: the refusing node did not perform it, and the redirect counts as its time. After
# any other failure a command is never sent again here, because it may have been performed.

_REDIRECTS = 5
"""Largest number of redirects of a command. A slot that moves needs two, and a failover one more."""
_READ_AGAIN_S = 0.1
"""Shortest time between two readings of the slots in seconds, for any number of sessions that miss a node."""


_FAILOVER_S = 30.0
"""Seconds to wait for the data that the run created. By default a failover takes 15 s and more."""

Answer = TypeVar("Answer")


class NodeUnreachableError(exceptions.ConnectionError):
    """A node does not accept connections. Nothing was sent."""


class Redirect(NamedTuple):
    """The redirect of a command by a node.

    Attributes:
        slot: slot of the key.
        node: node with the slot.
        asking: whether the redirect is for this command only (ASK), because the slot is about to move.
    """

    slot: int
    node: Node
    asking: bool


def redirect(reply: object, asked: Node) -> Redirect | None:
    """Return the redirect in a reply; None if the reply is no redirect."""
    if not isinstance(reply, exceptions.ResponseError):
        return None
    word, _, rest = str(reply).partition(" ")
    if word not in {"MOVED", "ASK"}:
        return None
    slot, _, where = rest.partition(" ")
    host, _, port = where.rpartition(":")
    if not slot.isdecimal() or not port.isdecimal():
        raise exceptions.InvalidResponse(f"the server sent a redirect that cannot be read: {reply}")
    return Redirect(int(slot), Node(_named(host, asked), int(port)), word == "ASK")


class Slots:
    """The primary of each slot, as reported by a node and corrected by redirects.

    The sessions of a process share it.

    Args:
        seeds: nodes in the URL.
    """

    def __init__(self, seeds: Sequence[Node]) -> None:
        self.seeds = tuple(seeds)
        self._nodes: list[Node | None] = [None] * VALKEY_CLUSTER_HASH_SLOTS
        self._known = False
        self._read_s = 0.0

    @property
    def primaries(self) -> tuple[Node, ...]:
        """Return the nodes with slots."""
        return tuple(dict.fromkeys(node for node in self._nodes if node is not None))

    @property
    def uncovered(self) -> int:
        """Return the number of slots without a node."""
        return self._nodes.count(None)

    @property
    def due(self) -> bool:
        """Return whether the slots must be read before the next command."""
        return not self._known and monotonic() - self._read_s >= _READ_AGAIN_S

    def begin(self) -> None:
        """Begin to read the slots in one session.

        The other sessions use the known slots, if there are any.
        """
        if any(self._nodes):
            self._read_s = monotonic()

    def node_of(self, key: str | bytes) -> Node:
        """Return the node for the command of a key; a seed if the slot of the key is unknown."""
        slot = key_slot(key.encode() if isinstance(key, str) else key)
        return self._nodes[slot] or next(filter(None, self._nodes), self.seeds[0])

    def doubt(self) -> None:
        """Record that a node was lost, so that another node may have its slots now."""
        self._known = False

    def correct(self, to: Redirect) -> None:
        """Record that a slot has moved. Other slots may have moved, too."""
        self._nodes[to.slot] = to.node
        self._known = False

    def take(self, reply: Sequence[Any], asked: Node) -> None:
        """Store the answer of CLUSTER SLOTS."""
        nodes: list[Node | None] = [None] * VALKEY_CLUSTER_HASH_SLOTS
        for first, last, (host, port, *_), *_ in reply:
            named = _named(host.decode() if isinstance(host, bytes) else host, asked)
            nodes[first : last + 1] = [Node(named, int(port))] * (last + 1 - first)
        self._nodes = nodes
        self.taken()

    def taken(self) -> None:
        """Record that the slots were requested, with or without an answer."""
        self._known, self._read_s = True, monotonic()


class ClusterWire:
    """A ``Wire`` over the wires to every primary. Each is connected at its first use.

    Commands have their key as the first argument. The commands of ``ask_all`` are sent to one node after the
    other.

    Args:
        slots: slots that the process shares.
        make: creates the wire to one node.
    """

    def __init__(self, slots: Slots, make: Callable[[Node], Wire]) -> None:
        self._slots = slots
        self._make = make
        self._wires: dict[Node, Wire] = {}

    def connect(self) -> None:
        """Read the node of each slot, if it is unknown or in doubt."""
        slots = self._slots
        if not slots.due:
            return
        slots.begin()
        failure: exceptions.ValkeyError | None = None
        for node in dict.fromkeys((*self._wires, *slots.primaries, *slots.seeds)):
            try:
                reply = self._on(node, lambda wire: wire.ask("CLUSTER", "SLOTS"))
                slots.take(reply, node)
            except exceptions.NoPermissionError:
                slots.taken()  # redirects report it, one slot after the other
            except exceptions.ValkeyError as error:
                # The error of a server explains more than the absence of another server.
                failure = error if failure is None or isinstance(error, exceptions.ResponseError) else failure
                continue
            self._drop(set(self._wires) - {*slots.primaries, *slots.seeds})
            return
        if failure is not None:
            raise failure

    def ask(self, *command: str | bytes) -> object:
        node = self._slots.node_of(command[1])
        try:
            return self._on(node, lambda wire: wire.ask(*command))
        except exceptions.ResponseError as error:
            to = redirect(error, node)
            if to is None:
                raise
        (reply,) = self._follow([command], {0: to})
        if isinstance(reply, exceptions.ResponseError):
            raise reply
        return reply

    def ask_all(self, commands: Sequence[Command]) -> list[object]:
        places = {number: self._slots.node_of(command[1]) for number, command in enumerate(commands)}
        replies: list[object] = [None] * len(commands)
        sent_on = self._send(commands, {number: (node, False) for number, node in places.items()}, replies)
        if sent_on:
            for number, reply in zip(sent_on, self._follow(commands, sent_on), strict=True):
                replies[number] = reply
        return replies

    def give_up(self) -> None:
        """Do nothing: the failed wire is closed already, and the wires to other nodes are kept."""

    def disconnect(self) -> None:
        self._drop(set(self._wires))

    def _follow(self, commands: Sequence[Command], sent_on: Mapping[int, Redirect]) -> list[object]:
        """Return the replies to redirected commands, in the order of ``sent_on``."""
        replies: list[object] = [None] * len(commands)
        wanted, again = list(sent_on), dict(sent_on)
        for _ in range(_REDIRECTS):
            for to in again.values():
                if not to.asking:
                    self._slots.correct(to)
            again = self._send(
                commands, {number: (to.node, to.asking) for number, to in again.items()}, replies
            )
            if not again:
                break
        with suppress(exceptions.ValkeyError):  # an operation that was performed has not failed
            self.connect()
        return [replies[number] for number in wanted]

    def _send(
        self, commands: Sequence[Command], places: Mapping[int, tuple[Node, bool]], replies: list[object]
    ) -> dict[int, Redirect]:
        """Send commands and store each reply. Return the commands that another node must get."""
        by_node: dict[Node, list[int]] = {}
        for number, (node, _) in places.items():
            by_node.setdefault(node, []).append(number)
        again: dict[int, Redirect] = {}
        for node, numbers in by_node.items():
            batch: list[Command] = []
            kept: list[int] = []  # positions of the replies to the commands themselves
            for number in numbers:
                if places[number][1]:
                    batch.append(("ASKING",))
                kept.append(len(batch))
                batch.append(commands[number])
            answers = self._on(node, lambda wire, batch=batch: wire.ask_all(batch))  # type: ignore[misc]
            for number, at in zip(numbers, kept, strict=True):
                replies[number] = answers[at]
                if (to := redirect(answers[at], node)) is not None:
                    again[number] = to
        return again

    def _on(self, node: Node, run: Callable[[Wire], Any]) -> Any:
        """Run a command on one node. A failed wire is closed, and the slots are in doubt."""
        wire = self._wires.get(node)
        if wire is None:
            wire = self._make(node)
            try:
                wire.connect()
            except (exceptions.ConnectionError, exceptions.TimeoutError) as error:
                wire.disconnect()
                self._slots.doubt()
                if isinstance(error, exceptions.AuthenticationError | exceptions.BusyLoadingError):
                    raise
                raise NodeUnreachableError(f"the cluster's node {node}: {error}") from error
            except exceptions.ValkeyError:
                wire.disconnect()
                raise
            self._wires[node] = wire
        try:
            return run(wire)
        except exceptions.ResponseError:
            raise
        except BaseException:  # the end of the load may also interrupt a command without a reply
            self._drop([node])
            self._slots.doubt()
            raise

    def _drop(self, nodes: Iterable[Node]) -> None:
        for node in list(nodes):
            if (wire := self._wires.pop(node, None)) is not None:
                wire.disconnect()


def _named(host: str | None, asked: Node) -> str:
    """Return the host that a node names; the host of that node for ("", "?"), which means unknown."""
    return asked.host if host in (None, "", "?") else str(host)


class KeyCommands(Protocol):
    """The commands of ``valkey.Valkey`` for single keys, on any node."""

    def get(self, key: str) -> Any: ...

    def set(self, key: str, value: str, *, nx: bool = False) -> Any: ...

    def unlink(self, *keys: str | bytes) -> Any: ...

    def scan_iter(self, match: str, count: int) -> Iterator[bytes]:
        """Yield the keys that match a pattern."""
        ...


class ClusterKeys:
    """``KeyCommands`` for all nodes of a cluster.

    Args:
        wire: wire to the cluster.
        slots: slots of the cluster.
        opened: returns a client of one node.
    """

    def __init__(
        self,
        wire: ClusterWire,
        slots: Slots,
        opened: Callable[[Node], AbstractContextManager[valkey.Valkey]],
    ) -> None:
        self._wire = wire
        self._slots = slots
        self._opened = opened

        slots.doubt()  # the load may have seen a failover in other processes

    def get(self, key: str) -> Any:
        return self._ask("GET", key)

    def set(self, key: str, value: str, *, nx: bool = False) -> Any:
        return self._ask("SET", key, value, *(["NX"] if nx else []))

    def unlink(self, *keys: str | bytes) -> None:
        for reply in self._patiently(lambda: self._wire.ask_all([("UNLINK", key) for key in keys])):
            if isinstance(reply, exceptions.ResponseError):
                raise reply

    def scan_iter(self, match: str, count: int) -> Iterator[bytes]:
        self._patiently(lambda: None)
        for node in self._slots.primaries:
            with self._opened(node) as client:
                yield from client.scan_iter(match=match, count=count)

    def _ask(self, *command: str) -> object:
        return self._patiently(lambda: self._wire.ask(*command))

    def _patiently(self, run: Callable[[], Answer]) -> Answer:
        """Run a command on the cluster. It is repeated if a node was away, which is harmless."""
        backoff, deadline = Backoff(), monotonic() + _FAILOVER_S
        while True:
            try:
                self._wire.connect()
                return run()
            except NodeUnreachableError:
                if monotonic() > deadline:
                    raise
                backoff.failed()
                backoff.wait()


CONNECT_TIMEOUT_S = 5
MARK = "owner"
"""Key under the prefix that marks the other keys as those of Pinchpoint."""
HOLDER = "holder"
"""Key under the prefix that names the run with the keys."""

_SETTINGS = ("appendonly", "appendfsync", "no-appendfsync-on-rewrite", "maxmemory", "maxmemory-policy")
"""Settings that determine whether an acknowledged write is durable."""
_NOT_KNOWN = "not known"
_NO_INFO = (
    "this user may not use INFO: the version, and whether it is a cluster, are not known, and a collector of "
    "this user measures nothing of the server (ACL SETUSER USER +info)"
)
_NO_SLOTS = (
    "this user may not use CLUSTER SLOTS: redirects say which node has a key, which takes time; other nodes "
    "are not checked (ACL SETUSER USER +cluster|slots)"
)
_BEFORE_REPLICAS = (
    "a write is acknowledged before the replicas have it, so a failover may lose the last ones; what is read "
    "back after the run counts them"
)
_NO_CLUSTER = "cluster support disabled"
_BATCH_KEYS = 500  # one SCAN step and one UNLINK, short enough not to block the main thread of the server

_BY_CLASS: tuple[tuple[type[exceptions.ValkeyError], str], ...] = (
    (exceptions.TimeoutError, "timeout"),
    (exceptions.AuthenticationError, "authentication"),
    (exceptions.AuthenticationWrongNumberOfArgsError, "authentication"),
    (exceptions.OutOfMemoryError, "out_of_memory"),
    (exceptions.ReadOnlyError, "read_only"),
    (exceptions.NoPermissionError, "permission"),
    (exceptions.BusyLoadingError, "loading"),
    (exceptions.ConnectionError, "connection_lost"),
)
_BY_WORD = {
    "MISCONF": "disk_error",  # the server refuses writes because it could not persist earlier ones
    "WRONGTYPE": "wrong_type",
    "BUSY": "busy",  # a script blocks the server
    "CLUSTERDOWN": "cluster_down",  # no node has the slot, or a majority of the primaries is away
}
"""First word of an error of the server -> name of the failure, if valkey-py has no class for it."""


def outcome_of(error: exceptions.ValkeyError) -> str:
    """Return the name of a failure; ``error_<first word>`` for an unknown one."""
    text = str(error)
    if "max number of clients" in text:
        return "too_many_connections"
    for kind, outcome in _BY_CLASS:
        if isinstance(error, kind):
            return outcome
    word = text.partition(" ")[0]
    return _BY_WORD.get(word) or f"error_{re.sub(r'[^a-z0-9]+', '_', word.lower()).strip('_') or 'unnamed'}"


def open_store(endpoint: Endpoint, name: str, params: NosqlBurstParams) -> Store:
    """Return the store of an endpoint without connecting to it."""
    return Valkey(endpoint, f"pinchpoint:{name}:", params)


class Valkey:
    """A Valkey or Redis store. A record with one field is a string, with several fields a hash."""

    def __init__(self, endpoint: Endpoint, prefix: str, params: NosqlBurstParams) -> None:
        self._endpoint = endpoint
        self._prefix = prefix
        self._params = params
        try:
            self._url = valkey_urls.read(endpoint.url)
        except ValueError as error:
            raise unreachable(endpoint, str(error), "correct the url in farm.yaml") from error
        self._slots = Slots(self._url.nodes)
        self._is_cluster: bool | None = True if self._url.cluster else False if self._url.master else None
        self.what = f"the keys that start with {prefix!r}"
        self._hold = Hold(endpoint, self.what)

    def check(self) -> Mapping[str, Any]:
        """Return version and durability settings; "not known" without the right to read them.

        For a cluster they are those of its first primary, and what makes a write to any primary less durable.
        """
        refuse_partitions(self._endpoint, self._params)
        warnings: list[str] = []
        nodes: Sequence[Node | None] = self._primaries(warnings) if self._in_cluster() else [None]
        infos, settings = [], []
        for node in nodes:
            with self._client(node) as client:
                infos.append(self._info(client))
                self._refuse_replica(infos[-1])
                settings.append(self._settings(client))
        warnings += [] if infos[0] else [_NO_INFO]
        warnings += [why for each in settings for why in self._weaker(each)]
        if self._in_cluster() or self._url.master:
            warnings.append(_BEFORE_REPLICAS)
        return {
            "server": infos[0].get("server_name", "redis") if infos[0] else None,
            "version": infos[0].get("valkey_version", infos[0].get("redis_version")),
            "settings": settings[0],
            "warnings": [f"{place(self._endpoint)}: {why}" for why in dict.fromkeys(warnings)],
        }

    def _in_cluster(self) -> bool:
        """Return whether the server is part of a cluster. It is queried if the URL does not say so."""
        if self._is_cluster is None:
            with self._client() as client:
                try:
                    self._is_cluster = bool(client.info("cluster").get("cluster_enabled"))  # type: ignore[union-attr]
                except exceptions.NoPermissionError:
                    self._is_cluster = self._has_slots(client)
        return self._is_cluster

    def _has_slots(self, client: valkey.Valkey) -> bool:
        ask: Callable[..., object] = client.execute_command
        try:
            ask("CLUSTER SLOTS")
        except exceptions.ResponseError:  # no cluster, or no right to know; operations will show it
            return False
        return True

    def _primaries(self, warnings: list[str]) -> Sequence[Node | None]:
        """Return the nodes with slots; without the right to query, those in the URL."""
        with self._failures():
            wire = ClusterWire(self._slots, lambda node: LibraryWire(self._library(node)))
            try:
                wire.connect()
            finally:
                wire.disconnect()
        if not self._slots.primaries:
            warnings.append(_NO_SLOTS)
            return [None]
        if self._slots.uncovered:
            raise ScenarioError(
                f"{place(self._endpoint)}: no node of the cluster has {self._slots.uncovered:,} of its slots "
                "and it refuses their keys; start the missing nodes, or give their slots to others"
            )
        return self._slots.primaries

    def _info(self, client: valkey.Valkey) -> dict[str, Any]:
        """Return the INFO of the server; empty without the right to query."""
        try:
            return {
                **cast("dict[str, Any]", client.info("server")),
                **cast("dict[str, Any]", client.info("replication")),
            }
        except exceptions.NoPermissionError:
            return {}

    def _refuse_replica(self, info: Mapping[str, Any]) -> None:
        """Raises ``ScenarioError`` if the only named server is a replica."""
        if info.get("role") == "slave" and not self._is_cluster:
            raise ScenarioError(
                f"{place(self._endpoint)}: the server is a replica and takes no writes; name its primary "
                f"{info.get('master_host')}:{info.get('master_port')} in farm.yaml, or its Sentinels"
            )

    def claim(self, progress: Callable[[str], None], *, take_over: bool = False) -> None:
        """Delete the keys under the prefix, mark it and reserve it for this run.

        Raises ``ScenarioError`` if keys exist there without the mark, or if another run has the prefix.
        """
        with self._keys() as client:
            if not self._ours(client) and (result := next(self._batches(client), None)):
                raise ScenarioError(
                    f"{place(self._endpoint)}: keys that Pinchpoint did not make start with "
                    f"{self._prefix!r} (one is {result[0]!r}); rename them, or give the scenario another "
                    "name in the plan"
                )
            self._hold.take(self._entry(client), over=take_over)
            client.set(self._prefix + MARK, MARKER)
            for deleted in self._delete(client):
                progress(f"deleted {deleted} keys of an earlier run")

    def load(self, rows: Iterable[Row], progress: Callable[[int], None]) -> None:
        """Write many records, some hundred at a time. Raises ``ScenarioError`` if one is refused."""
        remaining, loaded = iter(rows), 0
        connection = self._connection(lambda node: LibraryWire(self._library(node)))
        try:
            while batch := list(islice(remaining, _BATCH_KEYS)):
                if (outcome := connection.write(batch)) != OK:
                    raise ScenarioError(f"{place(self._endpoint)}: loading records failed: {outcome}")
                loaded += len(batch)
                progress(loaded)
        finally:
            connection.close()

    def connect(self, session: int) -> ValkeyConnection:
        """Return a session's connection, opened now if the server answers."""
        del session  # all sessions use the same servers
        timeout_s = self._params.timeout_s
        return self._connection(lambda node: FastWire(self._library(node), timeout_s))

    def remove(self) -> None:
        """Delete the keys in batches, then the mark, then the reservation.

        Without the mark nothing is done.
        """
        with self._keys() as client:
            entry = self._entry(client)
            if self._ours(client) and self._hold.have(entry):
                deque(self._delete(client), maxlen=0)
                client.unlink(self._prefix + MARK)
            self._hold.release(entry)

    def release(self) -> None:
        if self._hold.held:
            with self._keys() as client:
                self._hold.release(self._entry(client))

    def _entry(self, client: KeyCommands) -> HoldEntry:
        return _HoldKey(self._prefix + HOLDER, client)

    def _connection(self, make: Callable[[Node | None], Wire]) -> ValkeyConnection:
        return ValkeyConnection(
            make(None), lambda: ClusterWire(self._slots, make), self._prefix, self._params.fields,
            self._params.ttl_s, in_cluster=bool(self._is_cluster),
        )  # fmt: skip

    def _library(self, node: Node | None) -> Connection:
        return self._pool(self._params.timeout_s, node).make_connection()

    def _pool(self, timeout_s: float, node: Node | None = None) -> ConnectionPool:
        """Return connections to a node, by default the one in the URL or the one from its Sentinels."""
        make: Callable[..., ConnectionPool] = ConnectionPool.from_url
        options = self._endpoint.options
        login = {"username": options.get("user"), "password": options.get("password")}
        waits = {
            "socket_timeout": timeout_s,
            "socket_connect_timeout": CONNECT_TIMEOUT_S,
            "socket_keepalive": True,
            "retry": Retry(NoBackoff(), 0),  # a failure is an outcome, so that the library must not retry
            "lib_name": None,
            "lib_version": None,
        }
        pool = make(
            self._url.of(node or self._url.nodes[0]),
            **waits,
            **{key: value for key, value in login.items() if value is not None},
        )
        if self._url.master is None or node is not None:
            return pool
        of_master = {
            name: value for name, value in pool.connection_kwargs.items() if name not in Node._fields
        }
        sentinels: Callable[..., Sentinel] = Sentinel
        by_sentinel: Callable[..., ConnectionPool] = SentinelConnectionPool
        asked = sentinels(self._url.nodes, sentinel_kwargs=self._sentinel_options())
        return by_sentinel(self._url.master, asked, **of_master)

    def _sentinel_options(self) -> dict[str, Any]:
        """Return the options for a connection to a Sentinel, which has a login of its own."""
        options = self._endpoint.options
        login = {"username": options.get("sentinel_user"), "password": options.get("sentinel_password")}
        waits = {"socket_timeout": CONNECT_TIMEOUT_S, "socket_connect_timeout": CONNECT_TIMEOUT_S}
        return {
            **waits,
            **{name: value for name, value in login.items() if value},
            "retry": Retry(NoBackoff(), 0),
            "lib_name": None,
            "lib_version": None,
        }

    @contextmanager
    def _client(self, node: Node | None = None) -> Iterator[valkey.Valkey]:
        """Open a client of one server for work outside the load. Its failures become messages."""
        with self._failures(node), valkey.Valkey.from_pool(self._pool(30, node)) as client:
            yield client

    @contextmanager
    def _keys(self) -> Iterator[KeyCommands]:
        """Return the keys of the server or of all nodes of a cluster. Failures become messages."""
        if not self._in_cluster():
            with self._client() as client:
                yield cast("KeyCommands", client)  # its type hints are incomplete
            return
        with self._failures():
            wire = ClusterWire(self._slots, lambda node: LibraryWire(self._pool(30, node).make_connection()))
            try:
                yield ClusterKeys(wire, self._slots, self._client)
            finally:
                wire.disconnect()

    @contextmanager
    def _failures(self, node: Node | None = None) -> Iterator[None]:
        try:
            yield
        except exceptions.ValkeyError as error:
            raise self._explained(error, node) from error

    def _explained(self, error: exceptions.ValkeyError, node: Node | None = None) -> EndpointUnreachable:
        if isinstance(error, MasterNotFoundError):
            return self._without_master()
        if _NO_CLUSTER in str(error):
            remedy = "name one server in farm.yaml, or its Sentinels (valkey+sentinel://HOST,HOST/MASTER/0)"
            return unreachable(self._endpoint, "the server is not part of a cluster", remedy)
        outcome = outcome_of(error)
        text = without_secrets(str(error), self._endpoint).rstrip(" .")
        if node is not None and outcome in {"connection_lost", "timeout"}:
            cause = f"the cluster names its node {node}, which cannot be reached from here ({text})"
            remedy = "open the way to every node, or correct what the node announces (cluster-announce-ip)"
            return unreachable(self._endpoint, cause, remedy)
        cause, remedy = {
            "authentication": ("the server refused the user or the password", "correct them in farm.yaml"),
            "permission": (f"the user lacks a right: {text}", "grant it (ACL SETUSER), or name another user"),
            "loading": ("the server is still loading its data", "wait until it has"),
            "timeout": ("the server did not answer in time", "check the address and the server's load"),
            "connection_lost": (text, "start the server, or correct host and port in farm.yaml"),
        }.get(outcome, (f"the server said: {text}", "see the server's log"))
        return unreachable(self._endpoint, cause, remedy)

    def _without_master(self) -> EndpointUnreachable:
        """Return why the Sentinels named no master."""
        master, known, answer = self._url.master, set[str](), ""
        for node in self._url.nodes:
            client = valkey.Valkey(**node._asdict(), **self._sentinel_options())
            try:
                known |= cast("Any", client).sentinel_masters().keys()
            except exceptions.ValkeyError as error:
                answer = answer or without_secrets(str(error), self._endpoint)
            finally:
                cast("Any", client).close()
        if master in known:
            cause = f"its Sentinels report that the master {master} is down"
            return unreachable(self._endpoint, cause, "start it, or wait until they have promoted a replica")
        if known:
            cause = f"its Sentinels watch no master {master!r}"
            return unreachable(self._endpoint, cause, f"known to them: {', '.join(sorted(known))}")
        return unreachable(
            self._endpoint,
            f"no Sentinel answered ({answer})",
            "start them, or correct hosts, ports and sentinel_password in farm.yaml",
        )

    def _settings(self, client: valkey.Valkey) -> dict[str, str]:
        try:  # one by one, because several in one command need Redis 7
            result = [cast("dict[str, str]", client.config_get(name)).get(name) for name in _SETTINGS]
        except exceptions.ResponseError:  # renamed, or denied to this user, as on many hosted servers
            result = [None] * len(_SETTINGS)
        return {name: value or _NOT_KNOWN for name, value in zip(_SETTINGS, result, strict=True)}

    def _weaker(self, settings: Mapping[str, str]) -> Iterator[str]:
        """Yield what makes an acknowledged write less than durable, or may lose it later."""
        if settings["appendonly"] == _NOT_KNOWN:
            yield "whether a write waits for the disk is not known"
        elif settings["appendonly"] == "no":
            yield "appendonly is off, so a write is not durable"
        elif settings["appendfsync"] != "always":
            yield f"appendfsync is {settings['appendfsync']}, so a write does not wait for the disk"
        elif settings["no-appendfsync-on-rewrite"] == "yes":
            yield (
                "no-appendfsync-on-rewrite is on, so a write does not wait for the disk while the file is "
                "rewritten or a snapshot is taken"
            )
        policy = settings["maxmemory-policy"]
        evicts = policy.startswith("allkeys-") or (policy.startswith("volatile-") and self._params.ttl_s)
        if evicts and settings["maxmemory"] not in ("0", _NOT_KNOWN):
            yield (
                f"maxmemory-policy is {policy}, so the server may throw acknowledged writes away once it "
                f"holds {settings['maxmemory']} bytes (maxmemory)"
            )

    def _ours(self, client: KeyCommands) -> bool:
        return bool(client.get(self._prefix + MARK) == MARKER.encode())

    def _batches(self, client: KeyCommands) -> Iterator[list[bytes]]:
        """Yield batches of the keys under the prefix, except the mark and the reservation."""
        escaped = re.sub(r"([*?\[\]\\])", r"\\\1", self._prefix)
        own = {(self._prefix + name).encode() for name in (MARK, HOLDER)}
        result = client.scan_iter(match=escaped + "*", count=_BATCH_KEYS)
        keys = (key for key in result if key not in own)
        while batch := list(islice(keys, _BATCH_KEYS)):
            yield batch

    def _delete(self, client: KeyCommands) -> Iterator[int]:
        """Delete the keys under the prefix except these two, a batch per step. Yields their number so far."""
        deleted = 0
        for batch in self._batches(client):
            client.unlink(*batch)
            deleted += len(batch)
            yield deleted


class _HoldKey:
    """A ``HoldEntry`` in a key."""

    def __init__(self, key: str, client: KeyCommands) -> None:
        self._key = key
        self._client = client

    def enter(self, holder: str, *, over: bool) -> str | None:
        if over:
            self._client.unlink(self._key)
        while True:  # repeated only if an entry is removed between two commands
            result = cast("bytes | None", self._client.get(self._key))
            if result is not None:
                return None if result == holder.encode() else result.decode(errors="replace")
            if self._client.set(self._key, holder, nx=True):
                return None

    def leave(self, holder: str) -> str | None:
        result = cast("bytes | None", self._client.get(self._key))
        if result == holder.encode():
            self._client.unlink(self._key)
            return None
        return None if result is None else result.decode(errors="replace")


class ValkeyConnection:
    """One session's connection. It is opened when needed, and reopened after a loss, with pauses.

    Args:
        wire: sends a command to one server and returns its reply.
        cluster: creates the wire to a cluster, if a server is part of one.
        prefix: prefix of every key.
        fields: number of fields of a record.
        ttl_s: time to live of a record in seconds; None: unlimited.
        in_cluster: whether the server is part of a cluster.
    """

    def __init__(
        self, wire: Wire, cluster: Callable[[], ClusterWire], prefix: str, fields: int, ttl_s: float | None,
        *, in_cluster: bool = False,
    ) -> None:  # fmt: skip
        self._cluster = cluster
        self._use(cluster() if in_cluster else wire)
        self._prefix = prefix
        self._fields = fields
        self._expiry = "" if ttl_s is None else str(max(1, round(ttl_s * 1000)))
        self._backoff = Backoff()
        self._connect()

    def _use(self, wire: Wire) -> None:
        self._wire = wire
        self._ask = wire.ask
        self._connected = False

    def wait_until_due(self) -> None:
        """Wait for the end of the pause after a failed attempt to connect."""
        if not self._connected:
            self._backoff.wait()

    def write(self, rows: Sequence[Row]) -> str:
        """Write a record with SET (one field) or HSET (several). Several records are sent at once."""
        if len(rows) > 1 or self._expiry:
            return self._exchange([command for row in rows for command in self._commands(*row)])[0]
        if not self._connected and (failure := self._connect()):
            return failure
        item, fields = rows[0]
        try:
            if len(fields) == 1:
                self._ask("SET", f"{self._prefix}{item}", fields[0])
            else:
                self._ask(*self._set(item, fields))
        except exceptions.ValkeyError as error:
            return self.write(rows) if self._is_sent_on(error) else self._failed(error)
        return OK

    def read(self, items: Sequence[int]) -> tuple[str, list[Fields | None]]:
        """Read a record with GET (one field) or HGETALL (several)."""
        verb = "GET" if self._fields == 1 else "HGETALL"
        outcome, replies = self._exchange([(verb, f"{self._prefix}{item}") for item in items])
        return outcome, [_record(reply) for reply in replies] if outcome == OK else []

    def close(self) -> None:
        """Close the connection. A second call does nothing."""
        self._connected = False
        self._wire.disconnect()

    def _failed(self, error: exceptions.ValkeyError) -> str:
        """Return the name of a failure. A connection that is no longer usable is closed."""
        if not isinstance(error, exceptions.ResponseError) or isinstance(error, exceptions.ReadOnlyError):
            self._connected = False
            # A late answer must not be mistaken for the next one. After a failover, a name or the Sentinels
            # lead to another server. The connections to other nodes of a cluster are kept.
            wire = self._wire
            wire.give_up() if isinstance(wire, ClusterWire) else wire.disconnect()
        if isinstance(error, NodeUnreachableError):
            self._backoff.failed()
            return _not_connected(error)
        return outcome_of(error)

    def _is_sent_on(self, error: object) -> bool:
        """Return whether a server refused because it is part of a cluster, which is used from now on."""
        if isinstance(self._wire, ClusterWire) or not str(error).startswith(("MOVED ", "ASK ")):
            return False
        self._wire.disconnect()
        self._use(self._cluster())
        return True

    def _set(self, item: int, fields: Fields) -> Command:
        key = f"{self._prefix}{item}"
        if len(fields) == 1:
            return ("SET", key, fields[0])
        command: list[str | bytes] = ["HSET", key]
        for number, value in enumerate(fields):
            command += (f"field{number}", value)
        return tuple(command)

    def _commands(self, item: int, fields: Fields) -> Iterator[Command]:
        command = self._set(item, fields)
        if self._expiry and len(fields) == 1:
            command += ("PX", self._expiry)
        yield command
        if self._expiry and len(fields) > 1:  # older servers cannot do both in one command
            yield ("PEXPIRE", command[1], self._expiry)

    def _exchange(self, commands: Sequence[Command]) -> tuple[str, list[Any]]:
        """Send commands and wait for every reply.

        Return ``ok`` and the replies, or the first failure's name.
        """
        if not self._connected and (failure := self._connect()):
            return failure, []
        try:
            replies = self._wire.ask_all(commands)
        except exceptions.ValkeyError as error:
            return self._failed(error), []
        refused = next((reply for reply in replies if isinstance(reply, exceptions.ResponseError)), None)
        if refused is None:
            return OK, replies
        return self._exchange(commands) if self._is_sent_on(refused) else (self._failed(refused), [])

    def _connect(self) -> str:
        """Connect and log in, unless connected. Return the name of the failure, or ""."""
        try:
            self._wire.connect()
        except exceptions.ValkeyError as error:
            self._backoff.failed()
            return _not_connected(error)
        self._backoff.succeeded()
        self._connected = True
        return ""


def _not_connected(error: exceptions.ValkeyError) -> str:
    """Return the name of a failure to connect."""
    outcome = outcome_of(error)
    return "unreachable" if outcome in {"connection_lost", "timeout"} else outcome


def _record(reply: Any) -> Fields | None:
    """Return a record from the reply to GET, or from the names and values in the reply to HGETALL."""
    if reply is None or reply == []:
        return None
    if isinstance(reply, bytes):
        return [reply]
    values = dict(zip(reply[::2], reply[1::2], strict=True))
    return [values.get(b"field%d" % number, b"") for number in range(len(values))]
