"""Sends each command to the node of a Valkey or Redis Cluster that has its key, and follows MOVED and ASK.

A redirected operation is one operation: it was not done where it was refused, and the way to the other node
counts as its time. What fails otherwise is never sent again here: it may have been done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from time import monotonic
from typing import Any, NamedTuple, Protocol, TypeVar

import valkey
from valkey import exceptions
from valkey.crc import VALKEY_CLUSTER_HASH_SLOTS, key_slot

from pinchpoint_collectors.common.backoff import Backoff
from pinchpoint_collectors.common.valkey_urls import Node

from ...fastpath.drivers.resp import Command
from ...fastpath.resp import Wire

_REDIRECTS = 5
"""How often a command is sent on: a slot that moves sends it twice, a failover once more."""
_READ_AGAIN_S = 0.1
"""The shortest time between two readings of the slots, however many sessions miss a node."""


_FAILOVER_S = 30.0
"""How long the data are waited for that the run made: a failover takes 15 s and some by default."""

Answer = TypeVar("Answer")


class NodeUnreachableError(exceptions.ConnectionError):
    """A node does not take connections: nothing was sent."""


class Redirect(NamedTuple):
    """Where a node sends a command on to.

    Attributes:
        slot: of its key.
        node: that has it.
        asking: for this command alone (ASK): the slot is about to move.
    """

    slot: int
    node: Node
    asking: bool


def redirect(reply: object, asked: Node) -> Redirect | None:
    """What a reply says of another node; None where it is no such reply."""
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
    """Which primary has which slot: as a node reported it, and as later redirects corrected it.

    The sessions of a process share it.

    Args:
        seeds: nodes that the URL names.
    """

    def __init__(self, seeds: Sequence[Node]) -> None:
        self.seeds = tuple(seeds)
        self._nodes: list[Node | None] = [None] * VALKEY_CLUSTER_HASH_SLOTS
        self._known = False
        self._read_s = 0.0

    @property
    def primaries(self) -> tuple[Node, ...]:
        """The nodes that have slots."""
        return tuple(dict.fromkeys(node for node in self._nodes if node is not None))

    @property
    def uncovered(self) -> int:
        """How many slots no node has."""
        return self._nodes.count(None)

    @property
    def due(self) -> bool:
        """Whether they have to be read before the next command."""
        return not self._known and monotonic() - self._read_s >= _READ_AGAIN_S

    def begin(self) -> None:
        """One session begins to read them; the others go on with the ones they have, if there are any."""
        if any(self._nodes):
            self._read_s = monotonic()

    def node_of(self, key: str | bytes) -> Node:
        """The node to send this key's command to; a seed where its slot's is not known."""
        slot = key_slot(key.encode() if isinstance(key, str) else key)
        return self._nodes[slot] or next(filter(None, self._nodes), self.seeds[0])

    def doubt(self) -> None:
        """A node was lost: another may have its slots by now."""
        self._known = False

    def correct(self, to: Redirect) -> None:
        """A slot has moved; with it perhaps others."""
        self._nodes[to.slot] = to.node
        self._known = False

    def take(self, reply: Sequence[Any], asked: Node) -> None:
        """Take over what CLUSTER SLOTS answered."""
        nodes: list[Node | None] = [None] * VALKEY_CLUSTER_HASH_SLOTS
        for first, last, (host, port, *_), *_ in reply:
            named = _named(host.decode() if isinstance(host, bytes) else host, asked)
            nodes[first : last + 1] = [Node(named, int(port))] * (last + 1 - first)
        self._nodes = nodes
        self.taken()

    def taken(self) -> None:
        """They were asked for just now, answered or not."""
        self._known, self._read_s = True, monotonic()


class ClusterWire:
    """A ``Wire`` over one to every primary, each connected when it is first needed.

    Commands have their key as the first argument. Those of ``ask_all`` go to one node after the other.

    Args:
        slots: the process's.
        make: makes the wire to one node.
    """

    def __init__(self, slots: Slots, make: Callable[[Node], Wire]) -> None:
        self._slots = slots
        self._make = make
        self._wires: dict[Node, Wire] = {}

    def connect(self) -> None:
        """Read which node has which slot, where that is not known or in doubt."""
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
                slots.taken()  # redirects say it, one slot after the other
            except exceptions.ValkeyError as error:
                # What a server said says more than that another one is away.
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
        """What failed is given up already; the wires to other nodes are kept."""

    def disconnect(self) -> None:
        self._drop(set(self._wires))

    def _follow(self, commands: Sequence[Command], sent_on: Mapping[int, Redirect]) -> list[object]:
        """The replies to commands that were sent on, in the order of ``sent_on``."""
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
        with suppress(exceptions.ValkeyError):  # an operation that was done has not failed by this
            self.connect()
        return [replies[number] for number in wanted]

    def _send(
        self, commands: Sequence[Command], places: Mapping[int, tuple[Node, bool]], replies: list[object]
    ) -> dict[int, Redirect]:
        """Send commands, note each reply; those that have to go to another node."""
        by_node: dict[Node, list[int]] = {}
        for number, (node, _) in places.items():
            by_node.setdefault(node, []).append(number)
        again: dict[int, Redirect] = {}
        for node, numbers in by_node.items():
            batch: list[Command] = []
            kept: list[int] = []  # where the replies to the commands themselves are
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
        """Run a command on one node; a wire that failed is given up, and the slots are in doubt."""
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
        except BaseException:  # a load that ends may end a command whose reply is still to come, too
            self._drop([node])
            self._slots.doubt()
            raise

    def _drop(self, nodes: Iterable[Node]) -> None:
        for node in list(nodes):
            if (wire := self._wires.pop(node, None)) is not None:
                wire.disconnect()


def _named(host: str | None, asked: Node) -> str:
    """The host that a node names; its own where it names none ("", "?"), as it may not know it."""
    return asked.host if host in (None, "", "?") else str(host)


class KeyCommands(Protocol):
    """What ``valkey.Valkey`` offers for single keys, whoever has them."""

    def get(self, key: str) -> Any: ...

    def set(self, key: str, value: str, *, nx: bool = False) -> Any: ...

    def unlink(self, *keys: str | bytes) -> Any: ...

    def scan_iter(self, match: str, count: int) -> Iterator[bytes]:
        """The keys that fit a pattern."""
        ...


class ClusterKeys:
    """``KeyCommands`` of all nodes of a cluster.

    Args:
        wire: to the cluster.
        slots: its.
        opened: a client of one node.
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

        slots.doubt()  # the load may have seen a failover, in other processes

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
        """Run a command on the cluster; again where a node was away: what was sent does no harm twice."""
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
