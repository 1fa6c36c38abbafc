"""A connection to one Cassandra node by the Apache driver, which opens a second one for its own use."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

from cassandra import DriverException, OperationTimedOut, RequestExecutionException, Unauthorized
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable, Session
from cassandra.policies import ConstantReconnectionPolicy, FallthroughRetryPolicy, WhiteListRoundRobinPolicy
from cassandra.query import dict_factory

from pinchpoint_collectors.databases.base import CONNECT_S, DatabaseTarget, Row, ServerConnection
from pinchpoint_collectors.databases.cassandra import TABLES
from pinchpoint_collectors.errors import CollectorError


class CassandraServerConnection(ServerConnection[Session, tuple[str, ...], list[list[Row]]]):
    """A connection by cassandra-driver.

    One question consists of several statements, which are sent at once.
    """

    failures = (DriverException, RequestExecutionException, NoHostAvailable, OSError)
    remedies: ClassVar[Mapping[str, str]] = {
        "requires authentication": "give user and password in farm.yaml",
        "credentials": "correct user and password in farm.yaml",
        "incorrect": "correct user and password in farm.yaml",
        "refused": "start the node, or correct host and port in farm.yaml",
        "resolve": "correct the host name in farm.yaml",
        "protocol": "correct host and port in farm.yaml: it does not speak Cassandra's protocol",
        "nothing came back": "check the node, the address and the firewalls between",
        "timed out": "check the address and the firewalls between",
    }

    def __init__(self, target: DatabaseTarget) -> None:
        super().__init__(target)
        self.user = target.login[0] or None

    def _open(self) -> Session:
        parts = urlsplit(self.target.own_url)
        try:
            host, port = parts.hostname or "", parts.port or 9042
        except ValueError as error:
            raise self.error(str(error), "correct the address in farm.yaml") from error
        is_tls = parse_qs(parts.query).get("tls") == ["true"]
        profile = ExecutionProfile(
            load_balancing_policy=WhiteListRoundRobinPolicy([host]),  # the driver must not query other nodes
            retry_policy=FallthroughRetryPolicy(),
            request_timeout=self.answer_s,
            row_factory=dict_factory,
        )
        cluster = Cluster(
            contact_points=[host],
            port=port,
            auth_provider=PlainTextAuthProvider(*self.target.login) if self.user else None,
            ssl_context=ssl.create_default_context() if is_tls else None,
            protocol_version=4,
            connect_timeout=CONNECT_S,
            control_connection_timeout=self.answer_s,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            reconnection_policy=ConstantReconnectionPolicy(1.0, None),
            schema_metadata_enabled=False,
            token_metadata_enabled=False,
            monitor_reporting_enabled=False,
        )
        try:
            return cluster.connect()
        except BaseException:
            cluster.shutdown()
            raise

    def _run(self, link: Session, question: tuple[str, ...]) -> list[list[Row]]:
        asked = [link.execute_async(statement) for statement in question]
        return [list(future.result()) for future in asked]

    def _close(self, link: Session) -> None:
        link.cluster.shutdown()

    def _explain(self, error: Exception) -> CollectorError:
        if isinstance(error, NoHostAvailable) and error.errors:
            error = next(iter(error.errors.values()))
        answer = self.no_answer if isinstance(error, OperationTimedOut) else error
        remedy = None
        if isinstance(error, Unauthorized):
            tables = ", ".join((*TABLES, "settings"))
            remedy = f"run GRANT SELECT ON system_views.T TO {self.user} for each T of {tables}"
        return self.error(answer, remedy)
