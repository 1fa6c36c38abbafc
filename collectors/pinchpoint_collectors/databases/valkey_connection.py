"""A connection to a Valkey or Redis under load: it never waits for long, and comes back by itself."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from valkey import Valkey, exceptions
from valkey.connection import ConnectionPool
from valkey.exceptions import NoPermissionError, ResponseError, ValkeyError

from pinchpoint_collectors.databases.valkey_values import Info, Spike
from pinchpoint_collectors.errors import CollectorError

CONNECT_S = 3.0
ANSWER_S = 3.0
"""After so long we give the server up: one whose only thread waits for its disk answers nobody."""
_NO_DELAYS = "monitoring is disabled"
"""LATENCY DOCTOR's words where latency-monitor-threshold is 0."""


class Answer(NamedTuple):
    """What a server says at one instant.

    Attributes:
        info: all fields of ``INFO`` and of its section ``debug``.
        events: the kinds of delay it has noted; None where we may not ask.
        histories: of the kinds that were asked for, the delays, oldest first.
    """

    info: Info
    events: frozenset[str] | None
    histories: dict[str, list[Spike]]


class Server:
    """One Valkey or Redis server, over one connection.

    Args:
        where: how messages name it; without secrets.
        url: its address.
        user: in place of the URL's, if given.
        password: likewise.
    """

    def __init__(self, where: str, url: str, user: str | None, password: str | None) -> None:
        self._where = where
        # Nothing is said on connecting but AUTH: SELECT and CLIENT SETINFO would need rights of their own.
        own: dict[str, Any] = {"db": 0, "lib_name": None, "lib_version": None}
        own |= {key: value for key, value in (("username", user), ("password", password)) if value}
        try:
            pool: ConnectionPool = ConnectionPool.from_url(url)  # type: ignore[no-untyped-call]
        except ValueError as error:
            # Not what the library says: it may quote a piece of the password.
            said = "the url, or a setting in it, cannot be read"
            raise CollectorError(f"{where}: {said}; correct the url in farm.yaml") from error
        pool.connection_kwargs |= own | {"socket_timeout": ANSWER_S, "socket_connect_timeout": CONNECT_S}
        self.user = str(pool.connection_kwargs.get("username") or "default")
        self._client = Valkey(connection_pool=pool)

    def read(self, events: Collection[str] = (), *, sees_latency: bool = True) -> Answer:
        """Everything at one instant, in one exchange: a server that flushes answers once in a flush.

        Args:
            events: the kinds of delay whose history is wanted.
            sees_latency: whether to ask for delays at all.

        Raises ``CollectorError``.
        """
        asked = [("INFO",), ("INFO", "debug")]
        if sees_latency:
            asked += [("LATENCY LATEST",), *(("LATENCY HISTORY", name) for name in events)]
        basic, debug, *delays = self._ask(*asked)
        for answer in (basic, debug):
            if isinstance(answer, ResponseError):
                raise self._failed(answer)
        if any(isinstance(answer, ResponseError) for answer in delays):
            delays = []
        latest, *histories = delays or [None]
        return Answer(
            basic | debug,
            None if latest is None else frozenset(_text(event[0]) for event in latest),
            {
                name: [Spike(*each) for each in history]
                for name, history in zip(events, histories, strict=False)
            },
        )

    def notes_delays(self) -> bool | None:
        """Whether the server notes delays at all; None where we may not ask. Raises ``CollectorError``.

        ``CONFIG GET`` would tell the threshold, and its passwords (``requirepass``) as well: it is not asked.
        """
        (said,) = self._ask(("LATENCY DOCTOR",))
        return None if isinstance(said, ResponseError) else _NO_DELAYS not in _text(said)

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        self._client.close()  # type: ignore[no-untyped-call]
        self._client.connection_pool.disconnect()

    def _ask(self, *commands: tuple[str, ...]) -> list[Any]:
        """The answers, in one exchange; a refusal stands in its place. Raises ``CollectorError``."""
        asking: Any = self._client.pipeline(transaction=False)  # the library leaves what it takes untyped
        for command in commands:
            asking.execute_command(*command)
        try:
            return list(asking.execute(raise_on_error=False))
        except (ValkeyError, OSError) as error:
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> CollectorError:
        said = str(error).strip().partition("\n")[0] or type(error).__name__
        if isinstance(error, exceptions.TimeoutError):
            said = f"nothing came back within {ANSWER_S:.0f} s"
        remedy = _remedy(said)
        if isinstance(error, NoPermissionError):
            remedy = f"; run: ACL SETUSER {self.user} +info"
        return CollectorError(f"{self._where}: {said}{remedy}")


def _text(answer: bytes | str) -> str:
    return answer.decode() if isinstance(answer, bytes) else answer


def _remedy(said: str) -> str:
    remedies = {
        "password": "correct user and password in farm.yaml",
        "authentication required": "give user and password in farm.yaml",
        "noauth": "give user and password in farm.yaml",
        "refused": "start the server, or correct host and port in farm.yaml",
        "max number of clients": "raise maxclients, or use fewer users: collectors need one connection",
        "nothing came back": "check the server, the address and the firewalls between",
        "timeout connecting": "check the address and the firewalls between",
        "name or service": "correct the host name in farm.yaml",
        "name resolution": "correct the host name in farm.yaml",
        "protected mode": "give the server a password, and that password in farm.yaml",
        "loading": "wait until the server has loaded its data",
    }
    found = next((remedy for words, remedy in remedies.items() if words in said.lower()), None)
    return f"; {found}" if found else ""
