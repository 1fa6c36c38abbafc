"""Valkey and Redis: valkey-py, and past it where every operation goes."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any, cast

import valkey
from valkey import exceptions
from valkey.backoff import NoBackoff
from valkey.connection import ConnectionPool
from valkey.retry import Retry

from ...addresses import place, unreachable, without_secrets
from ...backoff import Backoff
from ...contract import OK, Endpoint
from ...errors import EndpointUnreachable, ScenarioError
from ...fastpath.resp import FastWire, Wire

CONNECT_TIMEOUT_S = 5
MARK = "owner"
"""The key under our prefix that says the others are ours."""
MARKER = "pinchpoint.owned/1: made by a load test, which may delete every key of this prefix"
_BATCH_KEYS = 500  # one SCAN step and one UNLINK: short enough not to hold the server's one thread

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
    "BUSY": "busy",  # a script holds the server
}
"""First word of the server's error -> the name of the failure, where valkey-py has no class for it."""


def outcome_of(error: exceptions.ValkeyError) -> str:
    """The name of a failure; ``error_<first word>`` where it has none here."""
    text = str(error)
    if "max number of clients" in text:
        return "too_many_connections"
    for kind, outcome in _BY_CLASS:
        if isinstance(error, kind):
            return outcome
    word = text.partition(" ")[0]
    return _BY_WORD.get(word) or f"error_{re.sub(r'[^a-z0-9]+', '_', word.lower()).strip('_') or 'unnamed'}"


class Valkey:
    """One Valkey or Redis server (not a cluster)."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def check(self) -> Mapping[str, Any]:
        """Version and durability settings; "not known" where the server does not let us read them."""
        with self._client() as client:
            info = cast("dict[str, Any]", client.info("server"))
            if info.get("server_mode", info.get("redis_mode")) == "cluster":
                raise ScenarioError(
                    f"{place(self._endpoint)}: the server is part of a cluster, which is not supported; "
                    "name a single server in farm.yaml"
                )
            settings = self._settings(client)
        return {
            "server": info.get("server_name", "redis"),
            "version": info.get("valkey_version", info.get("redis_version")),
            "settings": settings,
            "warnings": [self._durability(settings)] if self._durability(settings) else [],
        }

    def claim(self, prefix: str, progress: Callable[[str], None]) -> None:
        """Empty our prefix and mark it; raises ``ScenarioError`` where keys lie there without our mark."""
        with self._client() as client:
            if not self._ours(client, prefix):
                if found := next(self._batches(client, prefix), None):
                    raise ScenarioError(
                        f"{place(self._endpoint)}: keys that Pinchpoint did not make start with {prefix!r} "
                        f"(one is {found[0]!r}); rename them, or give the scenario another name in the plan"
                    )
                client.set(prefix + MARK, MARKER)
            for deleted in self._delete(client, prefix):
                progress(f"deleted {deleted} keys of an earlier run")

    def connect(self, timeout_s: float, *, fast: bool) -> ValkeyConnection:
        """A session's connection, opened now if the server answers."""
        wire = cast("Wire", self._pool(timeout_s).make_connection())
        return ValkeyConnection(FastWire(wire, timeout_s) if fast else wire)

    def remove(self, prefix: str) -> None:
        """Delete our keys in bounded batches, the mark last; nothing without the mark."""
        with self._client() as client:
            if self._ours(client, prefix):
                deque(self._delete(client, prefix), maxlen=0)
                client.unlink(prefix + MARK)

    def _pool(self, timeout_s: float) -> ConnectionPool:
        make: Callable[..., ConnectionPool] = ConnectionPool.from_url
        options = self._endpoint.options
        login = {"username": options.get("user"), "password": options.get("password")}
        return make(
            self._endpoint.url,
            socket_timeout=timeout_s,
            socket_connect_timeout=CONNECT_TIMEOUT_S,
            socket_keepalive=True,
            retry=Retry(NoBackoff(), 0),  # a failure is an outcome: nothing tries again behind our back
            lib_name=None,
            lib_version=None,
            **{key: value for key, value in login.items() if value is not None},
        )

    @contextmanager
    def _client(self) -> Iterator[valkey.Valkey]:
        """A client for work outside the load; its failures come out as sentences."""
        try:
            with valkey.Valkey.from_pool(self._pool(timeout_s=30)) as client:
                yield client
        except exceptions.ValkeyError as error:
            raise self._explained(error) from error

    def _explained(self, error: exceptions.ValkeyError) -> EndpointUnreachable:
        outcome = outcome_of(error)
        text = without_secrets(str(error), self._endpoint)
        cause, remedy = {
            "authentication": ("the server refused the user or the password", "correct them in farm.yaml"),
            "permission": (f"the user lacks a right: {text}", "grant it (ACL SETUSER), or name another user"),
            "loading": ("the server is still loading its data", "wait until it has"),
            "timeout": ("the server did not answer in time", "check the address and the server's load"),
            "connection_lost": (text, "start the server, or correct host and port in farm.yaml"),
        }.get(outcome, (f"the server said: {text}", "see the server's log"))
        return unreachable(self._endpoint, cause, remedy)

    def _settings(self, client: valkey.Valkey) -> dict[str, str]:
        try:
            found = cast("dict[str, str]", client.config_get("append*"))
        except exceptions.ResponseError:  # renamed, or denied to this user: many hosted servers do
            found = {}
        return {name: found.get(name, "not known") for name in ("appendonly", "appendfsync")}

    def _durability(self, settings: Mapping[str, str]) -> str:
        """What a reader of the result must know about what a write was worth; empty where all is well."""
        if settings["appendonly"] == "not known":
            return f"{place(self._endpoint)}: whether a write waits for the disk is not known"
        if settings["appendonly"] == "no":
            return f"{place(self._endpoint)}: appendonly is off, so a write is not durable"
        if settings["appendfsync"] != "always":
            return (
                f"{place(self._endpoint)}: appendfsync is {settings['appendfsync']}, "
                "so a write does not wait for the disk"
            )
        return ""

    def _ours(self, client: valkey.Valkey, prefix: str) -> bool:
        return bool(client.get(prefix + MARK) == MARKER.encode())

    def _batches(self, client: valkey.Valkey, prefix: str) -> Iterator[list[bytes]]:
        escaped = re.sub(r"([*?\[\]\\])", r"\\\1", prefix)
        keys = client.scan_iter(match=escaped + "*", count=_BATCH_KEYS)
        while batch := list(islice(keys, _BATCH_KEYS)):
            yield batch

    def _delete(self, client: valkey.Valkey, prefix: str) -> Iterator[int]:
        """Delete the keys under our prefix but the mark, a batch per step; yields how many so far."""
        mark = (prefix + MARK).encode()
        deleted = 0
        for batch in self._batches(client, prefix):
            if keys := [key for key in batch if key != mark]:
                client.unlink(*keys)
                deleted += len(keys)
                yield deleted


class ValkeyConnection:
    """One session's connection, opened when needed and again, with pauses, after it was lost."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._backoff = Backoff()
        self._connect()

    def wait_until_due(self) -> None:
        """Wait out the pause after a failed attempt to connect."""
        self._backoff.wait()

    def write(self, key: str, values: list[bytes]) -> str:
        """SET a record of one field, HSET one of several; returns ``ok`` or the failure's name."""
        if failure := self._connect():
            return failure
        if len(values) == 1:
            command: list[str | bytes] = ["SET", key, values[0]]
        else:
            command = ["HSET", key]
            for number, value in enumerate(values):
                command += (f"field{number}", value)
        try:
            self._wire.send_command(*command)
            self._wire.read_response()
        except exceptions.ValkeyError as error:
            if not isinstance(error, exceptions.ResponseError):
                self._wire.disconnect()  # a late answer must not be taken for the next one
            return outcome_of(error)
        return OK

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        self._wire.disconnect()

    def _connect(self) -> str:
        """Connect and log in, unless that is done; the name of the failure, or "" where there is none."""
        try:
            self._wire.connect()
        except exceptions.ValkeyError as error:
            self._backoff.failed()
            outcome = outcome_of(error)
            return "unreachable" if outcome in {"connection_lost", "timeout"} else outcome
        self._backoff.succeeded()
        return ""
