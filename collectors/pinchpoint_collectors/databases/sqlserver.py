"""Kind ``sqlserver``: SQL Server's own view of its files, waits, locks, memory and schedulers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from pinchpoint_collectors.databases import session_sampler, sqlserver_sql, sqlserver_values
from pinchpoint_collectors.databases.server_kind import NodeKind
from pinchpoint_collectors.databases.session_sampler import SessionSample, SessionSampler
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.proc.value import Value
from pinchpoint_collectors.record import Collector, Sample, Watch


class Server(Protocol):
    """Whom the collector asks; ``sqlserver_connection.Server`` in the field."""

    def ask(self, statement: str) -> list[Mapping[str, Any]]:
        """The rows of one statement. Raises ``CollectorError``."""
        ...

    def ask_if_connected(self, statement: str) -> list[Mapping[str, Any]] | None:
        """As ``ask``; None where there is no connection now."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class SqlserverKind(NodeKind):
    """The kind ``sqlserver`` of farm.yaml: SQL Server from 2016 on, also as Azure SQL."""

    name = "sqlserver"
    product = "SQL Server"
    schemes = ("mssql+odbc", "mssql")
    package = "pyodbc (and the system's libodbc; Debian: unixodbc)"
    counts_files = True

    def _connect(self, watches: Sequence[Watch], where: str) -> Collector:
        from pinchpoint_collectors.databases.sqlserver_connection import (  # noqa: PLC0415 -- an extra
            Server as Connected,
        )

        options = watches[0].options
        server = Connected(where, self._url(watches[0]), options.get("user"), options.get("password"))
        try:
            return SqlserverCollector(watches, server, where)
        except CollectorError:
            server.close()
            raise


class SqlserverCollector:
    """Watches one server: its counters at each reading, its sessions ten times a second in between."""

    def __init__(self, watches: Sequence[Watch], server: Server, where: str) -> None:
        self._hosts = {watch.host: watch.tier for watch in watches}
        self._server = server
        self._about = server.ask(sqlserver_sql.ABOUT)[0]
        _check(self._about, where)
        engine = self._about["engine"]
        self._statements = (sqlserver_sql.files(engine), sqlserver_sql.waits(engine))
        self._before: _Reading | None = None
        self._waits: dict[str, None] = {}  # a set that keeps its order
        self._blockers: dict[str, None] = {}
        self._watcher = SessionSampler("sqlserver-sessions", self._look, self._look_if_connected)

    def read(self) -> Sequence[Sample]:
        """The growth of the counters, and the means of the looks, since the reading before."""
        now = _Reading(self._server, *self._statements)
        seen = self._watcher.take()
        self._waits.update(dict.fromkeys(name for look in seen for name in look.waiting))
        before, self._before = self._before, now
        # Counters begin anew with the server.
        same = before is not None and before.totals["started"] == now.totals["started"]
        interval_s = (now.monotonic_ns - before.monotonic_ns) / 1e9 if before else 0.0
        values = [
            *session_sampler.activity(seen, self._waits),
            *sqlserver_values.levels(now.totals, now.clerks),
        ]
        values += session_sampler.connections(
            sqlserver_values.connections(now.counters), self._about["connections_limit"]
        )
        values += self._held_by(seen[-1])
        if before is not None and same:
            values.append(sqlserver_values.cpu(before.totals, now.totals, interval_s))
            counters_s, waits_s, files_s = now.seconds_since(before)
            values += sqlserver_values.counters(before.counters, now.counters, counters_s)
            values += sqlserver_values.waits(before.waits, now.waits, waits_s)
            values += sqlserver_values.files(before.files, now.files, files_s)
        else:
            values += sqlserver_values.counters(None, now.counters, interval_s)
        values.append(Value("collector.cpu_s", "sqlserver/looks", self._watcher.cpu_s()))
        return [Sample(now.time_ns, interval_s, host, *value) for host in self._hosts for value in values]

    def inventory(self) -> Mapping[str, Mapping[str, Any]]:
        """The server under ``database``. See collectors/README.md, "Inventory"."""
        about = self._about
        settings = self._server.ask(sqlserver_sql.SETTINGS)
        databases = self._server.ask(sqlserver_sql.DATABASES)
        database = {
            "server": "sqlserver",
            "version": about["version"],
            "edition": about["edition"],
            "role": about["role"],
            "sees": "all sessions",
            "standby": about["updateability"] == "READ_ONLY",
            "connections_limit": about["connections_limit"],
            "settings": {row["name"]: row["value"] for row in settings},
            "databases": {row["name"]: {k: v for k, v in row.items() if k != "name"} for row in databases},
        }
        found = sqlserver_values.by_name(self._server.ask(_COUNTERS))
        missing = [asdict(each) for each in sqlserver_values.not_measured(about, found)]
        return {
            host: {"tier": tier, "database": database, "not_measured": missing}
            for host, tier in self._hosts.items()
        }

    def close(self) -> None:
        """Stop looking and close the connection."""
        self._watcher.stop()
        self._server.close()

    def _look(self) -> SessionSample:
        return sqlserver_values.look(self._server.ask(sqlserver_sql.SESSIONS))

    def _look_if_connected(self) -> SessionSample | None:
        rows = self._server.ask_if_connected(sqlserver_sql.SESSIONS)
        return None if rows is None else sqlserver_values.look(rows)

    def _held_by(self, last: SessionSample) -> Iterator[Value]:
        """Who blocks whom, asked only while somebody waits; who once did is 0 from then on."""
        found: Mapping[str, float] = {}
        if last.blocked:
            found = sqlserver_values.blockers(self._server.ask(sqlserver_sql.BLOCKERS))
            self._blockers.update(dict.fromkeys(found))
        for name in self._blockers:
            yield Value("db.sessions_blocked_by", name, found.get(name, 0.0))


_COUNTERS = sqlserver_sql.counters(sqlserver_values.OBJECTS)


class _Reading:
    """The counters, and when each answer came: a saturated server keeps a question waiting for seconds."""

    def __init__(self, server: Server, files: str, waits: str) -> None:
        self.totals = server.ask(sqlserver_sql.TOTALS)[0]
        self.time_ns, self.monotonic_ns = time.time_ns(), time.monotonic_ns()
        self.clerks = server.ask(sqlserver_sql.CLERKS)
        self.counters, counters_ns = sqlserver_values.by_name(server.ask(_COUNTERS)), time.monotonic_ns()
        self.waits, waits_ns = server.ask(waits), time.monotonic_ns()
        self.files, files_ns = sqlserver_values.by_file(server.ask(files)), time.monotonic_ns()
        self._came_ns = (counters_ns, waits_ns, files_ns)

    def seconds_since(self, before: _Reading) -> tuple[float, ...]:
        """From the answers of a reading before to these: of the counters, the waits and the files."""
        return tuple((now - then) / 1e9 for then, now in zip(before._came_ns, self._came_ns, strict=True))


def _check(about: Mapping[str, Any], where: str) -> None:
    """Raise ``CollectorError`` for a server that is too old, or a login that may see nothing of it."""
    role, azure = about["role"], about["engine"] == sqlserver_sql.AZURE
    if not azure and int(str(about["version"]).partition(".")[0]) < sqlserver_sql.OLDEST:
        raise CollectorError(
            f"{where}: the server is SQL Server {about['version']}; collector kind 'sqlserver' knows 2016 "
            f"({sqlserver_sql.OLDEST}) and later: upgrade the server, or leave this collector out"
        )
    if azure and not about["sees_database"]:
        raise CollectorError(
            f"{where}: the user {role} may not see what the database does; in it, run: "
            f"GRANT VIEW DATABASE STATE TO [{role}]"
        )
    if not azure and not (about["sees_server"] or about["sees_performance"]):
        raise CollectorError(
            f"{where}: the login {role} may not see what the server does; run: "
            f"GRANT VIEW SERVER STATE TO [{role}] (from 2022 on VIEW SERVER PERFORMANCE STATE is enough)"
        )
