"""Kind ``postgres``: a PostgreSQL server's own view of its waits, locks, disks and connections (13 to 18)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pinchpoint_collectors.databases import looks, postgres_sql, postgres_values
from pinchpoint_collectors.databases.looks import Look, Watcher
from pinchpoint_collectors.databases.server_kind import NodeKind
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.proc.value import Value
from pinchpoint_collectors.record import Collector, NotMeasured, Sample, Watch

if TYPE_CHECKING:
    from pinchpoint_collectors.databases.postgres_connection import Server


class PostgresKind(NodeKind):
    """The kind ``postgres`` of farm.yaml: one server, also a standby, by its ``address``."""

    name = "postgres"
    product = "PostgreSQL"
    schemes = ("postgresql", "postgres")
    package = "psycopg"
    counts_files = True

    def _connect(self, watches: Sequence[Watch], where: str) -> Collector:
        from pinchpoint_collectors.databases.postgres_connection import Server  # noqa: PLC0415 -- an extra

        options = watches[0].options
        server = Server(where, self._url(watches[0]), options.get("user"), options.get("password"))
        try:
            return PostgresCollector(watches, server)
        except CollectorError:
            server.close()
            raise

    def _address(self, watch: Watch) -> str | None:
        """A URL without a host means the socket of this machine."""
        of_ours = urlsplit(str(watch.options.get("url", ""))).scheme in self.schemes
        return super()._address(watch) or ("local socket" if of_ours else None)


class PostgresCollector:
    """Watches one server: its counters at each reading, its sessions ten times a second in between."""

    def __init__(self, watches: Sequence[Watch], server: Server) -> None:
        self._hosts = {watch.host: watch.tier for watch in watches}
        self._server = server
        self._about = server.ask(postgres_sql.ABOUT)[0]
        self._statements = postgres_sql.counters(self._about["number"])
        self._before: _Reading | None = None
        self._waits: dict[str, None] = {}  # a set that keeps its order
        self._watcher = Watcher("postgres-looks", self._look, self._look_if_connected)

    def read(self) -> Sequence[Sample]:
        """The growth of the counters, and the means of the looks, since the reading before."""
        now = _Reading(self._server, self._statements)
        seen = self._watcher.take()
        self._waits.update(dict.fromkeys(name for look in seen for name in look.waiting))
        before, self._before = self._before, now
        # Counters begin anew with the server.
        same = before is not None and before.totals["started"] == now.totals["started"]
        interval_s = (now.monotonic_ns - before.monotonic_ns) / 1e9 if before else 0.0
        values = list(looks.activity(seen, self._waits))
        values += looks.connections(looks.counted(seen), self._about["connections_limit"])
        if before is not None and same:
            values += postgres_values.totals(before.totals, now.totals, interval_s)
            values += postgres_values.files(before.files, now.files, (now.files_ns - before.files_ns) / 1e9)
        values.append(Value("collector.cpu_s", "postgres/looks", self._watcher.cpu_s()))
        return [Sample(now.time_ns, interval_s, host, *value) for host in self._hosts for value in values]

    def inventory(self) -> Mapping[str, Mapping[str, Any]]:
        """The server under ``database``. See collectors/README.md, "Inventory"."""
        settings = {row["name"]: row["current_setting"] for row in self._server.ask(postgres_sql.SETTINGS)}
        about = self._about
        database = {
            "server": "postgresql",
            "version": about["version"],
            "role": about["role"],
            "sees": "all sessions" if about["sees_all"] else f"sessions of role {about['role']} only",
            "standby": about["standby"],
            "connections_limit": about["connections_limit"],
            "settings": settings,
        }
        missing = [asdict(each) for each in self._not_measured(settings)]
        return {
            host: {"tier": tier, "database": database, "not_measured": missing}
            for host, tier in self._hosts.items()
        }

    def close(self) -> None:
        """Stop looking and close the connection."""
        self._watcher.stop()
        self._server.close()

    def _look(self) -> Look:
        return postgres_values.look(self._server.ask(postgres_sql.ACTIVITY))

    def _look_if_connected(self) -> Look | None:
        rows = self._server.ask_if_connected(postgres_sql.ACTIVITY)
        return None if rows is None else postgres_values.look(rows)

    def _not_measured(self, settings: Mapping[str, str]) -> Iterator[NotMeasured]:
        yield from postgres_sql.not_measured(self._about["number"])
        for setting, instances in (("track_io_timing", ("data", "temp")), ("track_wal_io_timing", ("wal",))):
            if settings.get(setting) == "off":
                for instance in instances:
                    yield NotMeasured(
                        "db.*_s", instance, f"{setting} is off", f"run: ALTER SYSTEM SET {setting} = on; "
                        "SELECT pg_reload_conf()",
                    )  # fmt: skip
        if not self._about["sees_all"]:
            role = self._about["role"]
            quoted = role.replace('"', '""')
            yield NotMeasured(
                "db.sessions_*",
                "",
                f"what sessions of other roles than {role} do is hidden from it: only its own are counted",
                f'run: GRANT pg_read_all_stats TO "{quoted}"',
            )


class _Reading:
    """The counters, and when each answer came: a saturated server keeps a question waiting for seconds."""

    def __init__(self, server: Server, statements: postgres_sql.Counters) -> None:
        self.totals = server.ask(statements.totals)[0]
        self.time_ns, self.monotonic_ns = time.time_ns(), time.monotonic_ns()
        self.files, self.files_ns = server.ask(statements.files), time.monotonic_ns()
