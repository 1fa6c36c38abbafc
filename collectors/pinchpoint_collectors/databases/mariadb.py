"""Kind ``mariadb``: MariaDB's or MySQL's own view of its waits, locks, files, log and connections."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pinchpoint_collectors.databases import mariadb_sql, mariadb_values, session_sampler
from pinchpoint_collectors.databases.base import RefusedError
from pinchpoint_collectors.databases.server_kind import NodeKind
from pinchpoint_collectors.databases.session_sampler import SessionSample, SessionSampler
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.proc.value import Value
from pinchpoint_collectors.record import Collector, Sample, Watch

if TYPE_CHECKING:
    from pinchpoint_collectors.databases.mariadb_connection import Server

READING = "Data:read"
"""Sessions that wait for a page to be read, as the performance schema times it."""


class MariadbKind(NodeKind):
    """The kind ``mariadb`` of farm.yaml: MariaDB from 10.5, MySQL from 8.0 on."""

    name = "mariadb"
    product = "MariaDB or MySQL"
    schemes = ("mysql", "mariadb", "mysql+odbc", "mariadb+odbc")
    package = "pymysql"
    counts_files = True

    def _connect(self, watches: Sequence[Watch], where: str) -> Collector:
        from pinchpoint_collectors.databases.mariadb_connection import Server  # noqa: PLC0415 -- an extra

        options = watches[0].options
        server = Server(where, self._url(watches[0]), options.get("user"), options.get("password"))
        try:
            return MariadbCollector(watches, server, where)
        except CollectorError:
            server.close()
            raise


class MariadbCollector:
    """Watches one server: its counters at each reading, its sessions ten times a second in between."""

    def __init__(self, watches: Sequence[Watch], server: Server, where: str) -> None:
        self._hosts = {watch.host: watch.tier for watch in watches}
        self._server = server
        self._about = server.ask(mariadb_sql.ABOUT)[0]
        try:
            self._version = mariadb_sql.version_of(str(self._about["version"]))
        except CollectorError as error:
            raise CollectorError(f"{where}: {error}") from error
        self._sees_all = self._may(mariadb_sql.TRANSACTIONS)
        self._summaries, self._timed = self._look_for_summaries()
        self._status = mariadb_sql.status(mariadb_values.STATUS)
        self._before: _Reading | None = None
        self._waits: dict[str, None] = {}  # a set that keeps its order
        self._blockers: dict[str, None] = {}
        self._watcher = SessionSampler("mariadb-sessions", self._look, self._look_if_connected)

    def read(self) -> Sequence[Sample]:
        """The growth of the counters, and the means of the looks, since the reading before."""
        now = _Reading(self._server, self._status, files=self._summaries is None)
        seen = self._watcher.take()
        self._waits.update(dict.fromkeys(name for look in seen for name in look.waiting))
        before, self._before = self._before, now
        interval_s = (now.monotonic_ns - before.monotonic_ns) / 1e9 if before else 0.0
        same = before is not None and mariadb_values.same_server(before.status, now.status, interval_s)
        values = [*session_sampler.activity(seen, self._waits), *mariadb_values.levels(now.status)]
        values += session_sampler.connections(
            now.status.get("threads_connected"), self._about["connections_limit"]
        )
        values += self._held_by(seen[-1])
        if before is not None and same:
            apart = self._version.log_apart
            values += mariadb_values.since(before.status, now.status, interval_s, log_apart=apart)
            files_s = (now.files_ns - before.files_ns) / 1e9
            values += mariadb_values.files(before.files, now.files, files_s, timed=self._timed)
            values = list(_reading_apart(_once(values)))
        values.append(Value("collector.cpu_s", "mariadb/looks", self._watcher.cpu_s()))
        return [Sample(now.time_ns, interval_s, host, *value) for host in self._hosts for value in values]

    def inventory(self) -> Mapping[str, Mapping[str, Any]]:
        """The server under ``database``. See collectors/README.md, "Inventory"."""
        rows = self._server.ask(mariadb_sql.SETTINGS)
        about = self._about
        role = str(about["role"])
        database = {
            "server": self._version.server,
            "version": about["version"],
            "role": role,
            "sees": "all sessions" if self._sees_all else f"sessions of {role} only",
            "standby": bool(about["standby"]),
            "connections_limit": about["connections_limit"],
            "settings": {row["Variable_name"]: str(row["Value"]) for row in rows},
        }
        why, remedy = self._summaries or (None, None)
        status = mariadb_values.numbers(self._server.ask(self._status))
        missing = mariadb_values.not_measured(
            status,
            role,
            sees_all=self._sees_all,
            log_apart=self._version.log_apart,
            summaries=why,
            remedy=remedy,
        )
        told = [asdict(each) for each in missing]
        return {
            host: {"tier": tier, "database": database, "not_measured": told}
            for host, tier in self._hosts.items()
        }

    def close(self) -> None:
        """Stop looking and close the connection."""
        self._watcher.stop()
        self._server.close()

    def _may(self, statement: str) -> bool:
        """Whether our user may ask this."""
        try:
            self._server.ask(statement)
        except RefusedError:
            return False
        return True

    def _look_for_summaries(self) -> tuple[tuple[str, str] | None, bool]:
        """(why files have no summaries and what to do, or None; whether times are taken)."""
        if not self._about["performance_schema"]:
            why = "performance_schema is off: this server counts all files of InnoDB together, without times"
            return (why, "say performance_schema=ON in the server's settings and start it again"), False
        role = mariadb_values.quoted(str(self._about["role"]))
        if not (self._may(mariadb_sql.SUMMARIES) and self._may(mariadb_sql.FILES)):
            why = f"{role} may not read performance_schema"
            return (why, f"run: GRANT SELECT ON performance_schema.* TO {role}"), False
        rows = self._server.ask(mariadb_sql.SUMMARIES)
        if not all(row["counted"] for row in rows):
            why = "the performance schema's instruments of files are off"
            remedy = "UPDATE performance_schema.setup_instruments SET ENABLED='YES', TIMED='YES'"
            return (why, f"run: {remedy} WHERE NAME LIKE 'wait/io/file/%'"), False
        return None, all(row["timed"] for row in rows)

    def _look(self) -> SessionSample:
        return mariadb_values.look(
            self._server.ask(mariadb_sql.SESSIONS), self._transactions(), self._server.session
        )

    def _look_if_connected(self) -> SessionSample | None:
        sessions = self._server.ask_if_connected(mariadb_sql.SESSIONS)
        if sessions is None:
            return None
        return mariadb_values.look(sessions, self._transactions(), self._server.session)

    def _transactions(self) -> Sequence[Mapping[str, Any]]:
        return self._server.ask(mariadb_sql.TRANSACTIONS) if self._sees_all else ()

    def _held_by(self, last: SessionSample) -> Iterator[Value]:
        """Who blocks whom, asked only while somebody waits; who once did is 0 from then on."""
        found: Mapping[str, float] = {}
        if last.waiting.get(f"{session_sampler.LOCK}row"):
            statement = mariadb_sql.BLOCKERS[self._version.server]
            sessions = self._server.ask(mariadb_sql.SESSIONS)
            found = mariadb_values.blockers(self._server.ask(statement), sessions, self._transactions())
            self._blockers.update(dict.fromkeys(found))
        for name in self._blockers:
            yield Value("db.sessions_blocked_by", name, found.get(name, 0.0))


class _Reading:
    """The counters, and when each answer came: a saturated server keeps a question waiting for seconds."""

    def __init__(self, server: Server, status: str, *, files: bool) -> None:
        self.status = mariadb_values.numbers(server.ask(status))
        self.time_ns, self.monotonic_ns = time.time_ns(), time.monotonic_ns()
        self.files = mariadb_values.by_kind(server.ask(mariadb_sql.FILES)) if files else {}
        self.files_ns = time.monotonic_ns()


def _once(values: Sequence[Value]) -> list[Value]:
    """Each series once: what the summaries of files say comes last, and stands."""
    return list({(each.metric, each.instance): each for each in values}.values())


def _reading_apart(values: Sequence[Value]) -> Iterator[Value]:
    """The values with those who read pages taken out of those who run: PROCESSLIST cannot tell them apart.

    A page that is not in the buffer is read by the session that wants it; read-ahead is not among these
    times. So the time spent in reads ÷ time is how many sessions waited for one on average.
    """
    reading = next((each.value for each in values if each[:2] == ("db.read_s_per_s", "data")), None)
    for each in values:
        if each.metric == "db.sessions_running" and reading is not None and each.value is not None:
            yield Value(each.metric, each.instance, max(0.0, each.value - reading))
        else:
            yield each
    if reading is not None:
        yield Value("db.sessions_waiting", READING, reading)
