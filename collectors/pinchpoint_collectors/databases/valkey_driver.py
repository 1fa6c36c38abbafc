"""A connection to a Valkey or Redis server by valkey-py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from valkey import Valkey, exceptions
from valkey.connection import ConnectionPool

from pinchpoint_collectors.common import valkey_urls
from pinchpoint_collectors.databases.base import CONNECT_S, DatabaseTarget, ServerConnection
from pinchpoint_collectors.errors import CollectorError


class ValkeyServerConnection(ServerConnection[Valkey, tuple[tuple[str, ...], ...], list[Any]]):
    """A connection by valkey-py. One question consists of several commands, sent in one exchange.

    For a refused command, the answers contain a ``RefusedError``.
    """

    failures = (exceptions.ValkeyError, OSError)
    remedies: ClassVar[Mapping[str, str]] = {
        "password": "correct user and password in farm.yaml",
        "authentication required": "give user and password in farm.yaml",
        "noauth": "give user and password in farm.yaml",
        "max number of clients": "raise maxclients, or use fewer users: collectors need one connection",
        "timeout connecting": "check the address and the firewalls between",
        "protected mode": "give the server a password, and that password in farm.yaml",
        "loading": "wait until the server has loaded its data",
    }

    def _open(self) -> Valkey:
        target = self.target
        try:
            pool: ConnectionPool = ConnectionPool.from_url(_server_url(target))  # type: ignore[no-untyped-call]
        except ValueError as error:
            # The message of the library may quote a part of the password, so it is not shown.
            remedy = "correct the url in farm.yaml"
            raise self.error("the url, or a setting in it, cannot be read", remedy) from error
        login = {key: of for key, of in (("username", target.user), ("password", target.password)) if of}
        # Only AUTH is sent on connecting, because SELECT and CLIENT SETINFO would need further rights.
        pool.connection_kwargs |= {"db": 0, "lib_name": None, "lib_version": None, **login}
        pool.connection_kwargs |= {"socket_timeout": self.answer_s, "socket_connect_timeout": CONNECT_S}
        self.user = str(pool.connection_kwargs.get("username") or "default")
        return Valkey(connection_pool=pool)

    def _run(self, link: Valkey, question: tuple[tuple[str, ...], ...]) -> list[Any]:
        exchange: Any = link.pipeline(transaction=False)  # the library has no type hints for its arguments
        for command in question:
            exchange.execute_command(*command)
        answers = exchange.execute(raise_on_error=False)
        return [
            self._explain(answer) if isinstance(answer, exceptions.ResponseError) else answer
            for answer in answers
        ]

    def _close(self, link: Valkey) -> None:
        link.close()  # type: ignore[no-untyped-call]
        link.connection_pool.disconnect()

    def _explain(self, error: Exception) -> CollectorError:
        answer = self.no_answer if isinstance(error, exceptions.TimeoutError) else error
        may_not = isinstance(error, exceptions.NoPermissionError)
        remedy = f"run: ACL SETUSER {self.user} +info" if may_not else None
        return self.error(answer, remedy, refused=isinstance(error, exceptions.ResponseError))


def _server_url(target: DatabaseTarget) -> str:
    """Return the URL of one server, also if the endpoint names several nodes or Sentinels."""
    if target.url.partition("://")[0] not in valkey_urls.SCHEMES:
        return target.own_url
    url = valkey_urls.read(target.url)
    return url.of(url.nodes[0] if target.address is None else valkey_urls.server(target.address))
