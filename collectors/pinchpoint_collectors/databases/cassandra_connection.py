"""A connection to one node of a Cassandra cluster: to no other, and it never waits for long."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from cassandra import DriverException, OperationTimedOut, RequestExecutionException, Unauthorized
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable, Session
from cassandra.policies import ConstantReconnectionPolicy, FallthroughRetryPolicy, WhiteListRoundRobinPolicy
from cassandra.query import dict_factory

from pinchpoint_collectors.databases.cassandra_values import TABLES, Row
from pinchpoint_collectors.errors import CollectorError

CONNECT_S = 3.0
ANSWER_S = 3.0
"""After so long we give an answer up: a node that waits for its disk keeps its connections and no promise."""

_FAILURES = (DriverException, RequestExecutionException, NoHostAvailable, OSError)


class Node:
    """One node.

    Args:
        where: how messages name it; without secrets.
        address: host and port.
        url: the endpoint's, for its login and whether it is spoken to over TLS (``?tls=true``).
        user: in place of the URL's, if given.
        password: likewise.
    """

    def __init__(self, where: str, address: str, url: str, user: str | None, password: str | None) -> None:
        parts = urlsplit(url)
        login, place = parts.netloc.rpartition("@")[0], urlsplit(f"//{address}")
        named, _, secret = login.partition(":")
        self._where = where
        self.user = user or unquote(named) or None
        self._password = password or unquote(secret)
        try:
            self._host, self._port = place.hostname or "", place.port or 9042
        except ValueError as error:
            raise CollectorError(f"{where}: {error}; correct the address in farm.yaml") from error
        self._tls = parse_qs(parts.query).get("tls") == ["true"]
        self._cluster: Any = None
        self._session: Session | None = None

    def ask(self, statements: Iterable[str]) -> list[list[Row]]:
        """The rows of each statement, all asked at once. Raises ``CollectorError``."""
        try:
            session = self._session or self._connect()
            asked = [session.execute_async(statement) for statement in statements]
            return [list(future.result()) for future in asked]
        except _FAILURES as error:
            raise self._failed(error) from error

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        cluster, self._cluster, self._session = self._cluster, None, None
        if cluster is not None:
            cluster.shutdown()

    def _connect(self) -> Session:
        profile = ExecutionProfile(
            load_balancing_policy=WhiteListRoundRobinPolicy([self._host]),  # what is asked is the node's own
            retry_policy=FallthroughRetryPolicy(),
            request_timeout=ANSWER_S,
            row_factory=dict_factory,
        )
        self.close()
        self._cluster = Cluster(
            contact_points=[self._host],
            port=self._port,
            auth_provider=PlainTextAuthProvider(self.user, self._password) if self.user else None,
            ssl_context=ssl.create_default_context() if self._tls else None,
            protocol_version=4,
            connect_timeout=CONNECT_S,
            control_connection_timeout=ANSWER_S,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            reconnection_policy=ConstantReconnectionPolicy(1.0, None),
            schema_metadata_enabled=False,
            token_metadata_enabled=False,
            monitor_reporting_enabled=False,
        )
        try:
            self._session = self._cluster.connect()
        except BaseException:
            self.close()
            raise
        return self._session

    def _failed(self, error: BaseException) -> CollectorError:
        if isinstance(error, NoHostAvailable) and error.errors:
            error = next(iter(error.errors.values()))
        said = str(error).strip().partition("\n")[0] or type(error).__name__
        if isinstance(error, OperationTimedOut):
            said = f"nothing came back within {ANSWER_S:.0f} s"
        if isinstance(error, Unauthorized):
            tables = ", ".join((*TABLES, "settings"))
            remedy = f"; run GRANT SELECT ON system_views.T TO {self.user} for each T of {tables}"
        else:
            remedy = _remedy(said)
        return CollectorError(f"{self._where}: {said}{remedy}")


def _remedy(said: str) -> str:
    remedies = {
        "requires authentication": "give user and password in farm.yaml",
        "credentials": "correct user and password in farm.yaml",
        "incorrect": "correct user and password in farm.yaml",
        "refused": "start the node, or correct host and port in farm.yaml",
        "resolve": "correct the host name in farm.yaml",
        "name or service": "correct the host name in farm.yaml",
        "protocol": "correct host and port in farm.yaml: it does not speak Cassandra's protocol",
        "nothing came back": "check the node, the address and the firewalls between",
        "timed out": "check the address and the firewalls between",
    }
    found = next((remedy for words, remedy in remedies.items() if words in said.lower()), None)
    return f"; {found}" if found else ""
