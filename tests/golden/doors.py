"""Golden answers of functions that no command reaches; the only golden test that imports product modules.

``DOORS`` has one function for each file of ``golden_runs/inputs/``: it takes the input of a collector or an
importer, as JSON, and returns the result. Records become lists, so that an answer contains no field names.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch
from zoneinfo import ZoneInfo

import urllib3
from golden.commands import workplace
from infra.content.corpora import put
from infra.services.serving import serving
from infra.services.site import FILES, MODULE, TOKEN
from scenarios.reference import ReferenceConnection
from scenarios.sql_mix.helpers import ask
from scenarios.sql_mix.server import made_in
from scenarios.support import Recorder, made, quiet
from servers import postgres as postgres_server
from servers import valkey as valkey_server
from valkey import Valkey

from pinchpoint.base.errors import PinchpointError
from pinchpoint.fit.fit import fit
from pinchpoint.plan import load_plan
from pinchpoint.probe.judge import judge
from pinchpoint.probe.record import load
from pinchpoint.report.probe import probe_text
from pinchpoint_collectors.common.legible import ForeignFileError
from pinchpoint_collectors.databases import (
    cassandra,
    mariadb,
    mongodb,
    postgres,
    session_sampler,
    sqlserver,
    valkey,
)
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.exporters import means
from pinchpoint_collectors.exporters.tables import EXPORTERS
from pinchpoint_collectors.imports import registry
from pinchpoint_collectors.imports.checked import checked
from pinchpoint_collectors.imports.record import CsvMapping, FileFacts, MappedColumn, Settings
from pinchpoint_collectors.linux import (
    cgroups,
    diskstats,
    meminfo,
    mountinfo,
    net_dev,
    pressure,
    processes,
    stat,
    vmstat,
)
from pinchpoint_collectors.linux.inventory import core_list
from pinchpoint_collectors.linux.sources import machine_sources
from pinchpoint_collectors.linux_over_ssh import frame, hello
from pinchpoint_collectors.record import Watch
from pinchpoint_collectors.remote.clock import HostClock
from pinchpoint_collectors.ssh import LinuxHost
from pinchpoint_collectors.windows.reader import ScriptReader
from pinchpoint_collectors.windows.script import wanted
from pinchpoint_collectors.windows.stream import Arrived
from pinchpoint_infra.content.filling import ingest
from pinchpoint_scenarios.contract import Endpoint, Scenario
from pinchpoint_scenarios.databases import native
from pinchpoint_scenarios.databases.native import FastConnection
from pinchpoint_scenarios.errors import ScenarioError
from pinchpoint_scenarios.sql_replay import read_capture
from pinchpoint_scenarios.sql_replay.capture import at_once, sessions_of

_DOCUMENTS_S = 1_767_225_600


def judged_probe(directory: Path) -> str:
    """Compute the verdict on a recorded probe again, as text and as in probe.json."""
    probe = load(directory)
    verdict = judge(probe)
    return f"{probe_text(probe, verdict)}\n{json.dumps(verdict.to_json(), indent=1)}\n"


@contextmanager
def web_site(folder: Path) -> Iterator[urllib3.HTTPConnectionPool]:
    """Run the web tier of an embedded farm as a process, on a database with documents of a fixed age."""
    for path, content in FILES.items():
        put(folder / "corpus", path, content)
    for file in sorted((folder / "corpus").rglob("*"), reverse=True):
        os.utime(file, (_DOCUMENTS_S, _DOCUMENTS_S))
    with postgres_server() as url:
        ingest(folder / "corpus", None, url, None, lambda _: None)
        with serving(MODULE, folder, token=TOKEN, database_url=url) as service:
            yield service.http


# ---- scenarios and the servers they talk to ---------------------------------------------------------------

SQL_SCRIPT = """BEGIN;
INSERT INTO moved (at, note) VALUES (:account, :word);
UPDATE account SET balance = balance + 1 WHERE id = :account;
COMMIT;
SELECT balance FROM account WHERE id = :account;
"""
_TIMES = 12


@dataclasses.dataclass(frozen=True, slots=True)
class Logging:
    """A PostgreSQL that logs each statement.

    Attributes:
        endpoint: the database as the load test's user reaches it.
        log: path of the server's log; each entry begins with ``|``.
    """

    endpoint: Endpoint
    log: Path


@contextmanager
def logging_postgres(folder: Path) -> Iterator[Logging]:
    """Run a new server with two user tables in a database that a load test may change."""
    folder.chmod(0o755)
    server = made_in(folder)
    try:
        ask(server.endpoint, "CREATE TABLE account (id int PRIMARY KEY, balance int)")
        ask(server.endpoint, "CREATE TABLE moved (at int, note text)")
        ask(server.endpoint, "INSERT INTO account SELECT n, 0 FROM generate_series(1, 50) n")
        ask(server.admin, "COMMENT ON DATABASE loadtest IS 'pinchpoint.copy/1: of these tests'")
        for name, value in (("log_line_prefix", "|"), ("log_statement", "all")):
            ask(server.admin, f"ALTER SYSTEM SET {name} = '{value}'")
        ask(server.admin, "SELECT pg_reload_conf()")
        time.sleep(0.5)
        yield Logging(server.endpoint, server._tier.log)
    finally:
        server.remove()


@contextmanager
def logging_valkey() -> Iterator[tuple[Endpoint, list[str]]]:
    """Run a new server; yield its endpoint and the list of its commands, complete at the end of the block."""
    commands: list[str] = []
    with valkey_server() as url, Valkey.from_url(url) as client, client.monitor() as monitor:
        yield Endpoint("nosql", url), commands
        client.echo("no more")
        for found in monitor.listen():
            if "no more" in found["command"]:
                break
            commands.append(found["command"])


CONNECTIONS = {"fast": FastConnection, "psycopg": ReferenceConnection}
"""The driver of sql-mix for PostgreSQL, and the reference that it is compared with."""


def sql_mix(endpoint: Endpoint, driver: str, operation: str) -> None:
    """Run one session with one operation, from its preparation to its end."""
    params = {"operations": {operation: 1}, "scale": 0.1, "loaders": 1}
    with patch.object(native, "FastConnection", CONNECTIONS[driver]):
        _performed(made("sql-mix", {"sql": endpoint}, params))


def sql_script(server: Logging, folder: Path, script: str) -> None:
    """Run one session with a user's script."""
    (folder / "own.sql").write_text(script, encoding="utf-8")
    (folder / "words.csv").write_text("word\nred\nblue\n", encoding="utf-8")
    values = {"account": {"column": "account.id"}, "word": {"csv": str(folder / "words.csv")}}
    params = {"scripts": [str(folder / "own.sql")], "values": values}
    _performed(made("sql-script", {"sql": server.endpoint}, params))


def nosql_burst(endpoint: Endpoint, fields: int) -> None:
    """Run one session that writes records, from its preparation to its end."""
    params = {"fields": fields, "field_bytes": 20, "keys": 30}
    _performed(made("nosql-burst", {"nosql": endpoint}, params))


def _performed(driver: Scenario) -> None:
    driver.prepare(quiet)
    session = driver.session(0)
    for _ in range(_TIMES):
        session.perform(Recorder())
    session.close()
    driver.finish(keep_data=False)


# ---- collectors and importers ---------------------------------------------------------------------------


def answered(door: str, line: str) -> str:
    """Return a door's result for one recorded input, as JSON, or the error's text; ``case`` is a comment."""
    given = json.loads(line, object_hook=_object)
    given.pop("case", None)
    try:
        found = _plain(DOORS[door](**given))
    except (CollectorError, ForeignFileError, PinchpointError, ScenarioError, ValueError) as error:
        found = {"error": str(error)}
        if isinstance(error, ForeignFileError):
            found["line"] = error.line
    return json.dumps(found, sort_keys=True)


def _object(found: dict[str, Any]) -> Any:
    if "$time" in found:
        return datetime.fromisoformat(found["$time"])
    if "$pairs" in found:
        return {tuple(key) if isinstance(key, list) else key: value for key, value in found["$pairs"]}
    return found


def _plain(value: Any) -> Any:
    """Convert to JSON: records become lists of fields, mappings get text keys, sets are sorted."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Mapping):
        return {
            key if isinstance(key, str) else json.dumps(_plain(key)): _plain(of) for key, of in value.items()
        }
    if isinstance(value, set | frozenset):
        return sorted(map(_plain, value), key=json.dumps)
    if dataclasses.is_dataclass(value):
        return [_plain(getattr(value, field.name)) for field in dataclasses.fields(value)]
    if isinstance(value, Iterable):
        return [_plain(each) for each in value]
    raise TypeError(f"{type(value).__name__}: say in doors.py what of it belongs into an answer")


def _sessions(read: Callable[..., session_sampler.SessionSample]) -> Callable[..., Any]:
    """Return a function from the sessions of one moment to the metrics of an interval."""

    def found(**given: Any) -> Any:
        seen = read(**given)
        return [
            *session_sampler.activity([seen], sorted(seen.waiting)),
            *session_sampler.connections(seen.connections, 100),
        ]

    return found


def _imported(
    format: str,  # noqa: A002 -- as in the recorded inputs
    text: str,
    zone: str | None,
    start_s: float | None,
    every_s: float | None,
    mapping: dict[str, Any] | None = None,
) -> Any:
    """Import a file; return its samples, the facts of its hosts, and its notes."""
    columns = mapping and {name: MappedColumn(**column) for name, column in mapping["columns"].items()}
    settings = Settings(
        zone=ZoneInfo(zone) if zone else None,
        start_s=start_s,
        every_s=every_s,
        mapping=CsvMapping(**{**mapping, "columns": columns}) if mapping else None,
    )
    found = FileFacts()
    samples = registry.format_named(format).read(text.splitlines(keepends=True), settings, found)
    return [list(checked(samples, found, settings.mapping)), found.hosts, found.notes]


@contextmanager
def _written(files: Mapping[str, str]) -> Iterator[None]:
    """Write files to a temporary current directory; bytes that are not UTF-8 stay as recorded."""
    with workplace():
        for name, text in files.items():
            Path(name).write_bytes(text.encode("utf-8", "surrogateescape"))
        yield


def _captured(files: Mapping[str, str], paths: Sequence[str]) -> Any:
    """Read a capture; return its statements, its sessions' actions and their concurrency."""
    with _written(files):
        entries = list(read_capture([Path(path) for path in paths]))
    sessions = sessions_of(entries)
    return [entries, sessions, at_once(sessions)]


def _fitted(files: Mapping[str, str], sources: Sequence[str], zone: str | None, **asked: Any) -> Any:
    """Fit a plan to exports of a production server; return the plan's text and the messages."""
    told: list[str] = []
    with _written(files):
        plan = fit(sources, 1, told.append, ZoneInfo(zone) if zone else None, **asked)
        Path("plan.yaml").write_text(plan, encoding="utf-8")
        load_plan(Path("plan.yaml"))
    return [plan, told]


def _exported(exporter: str, host: str, series: Sequence[Any], usual_s: float | None) -> Any:
    """Convert an exporter's series to samples."""
    [known] = [one for one in EXPORTERS if one.name == exporter]
    return means.samples(known, host, [(labels, dict(points)) for labels, points in series], usual_s)


def _windows(hosts: Sequence[str], every_s: float, calls: Sequence[Any]) -> Any:
    """Convert lines of the Windows script to samples, gaps and facts of the machine."""
    reader = ScriptReader(hosts, wanted(), every_s)
    said = [
        reader.samples([(link, Arrived(received_ns, line)) for link, received_ns, line in lines])
        for lines in calls
    ]
    return [said, reader.incidents, reader.machine.facts()]


def _linux(
    cores: Sequence[int],
    devices: Mapping[str, Sequence[str]],
    speeds: Mapping[str, float | None],
    page_bytes: int,
    readings: Sequence[Any],
) -> Any:
    """Convert successive contents of /proc files to the metrics of each reading."""
    sources = {each.path: each for each in machine_sources(cores, devices, (), speeds, page_bytes)}
    return [
        [sources[path].take(text, time_ns, now_ns) for path, text, time_ns, now_ns in reading]
        for reading in readings
    ]


def _host(text: str) -> Any:
    """Convert a host's first answer over ssh to its inventory."""
    said = hello.parse(text)
    watch = Watch("sql1", "sql", {"data": "/var/lib/postgresql", "log": "/wal"})
    return [LinuxHost(said, [watch], HostClock()).facts(watch), said.missing]


DOORS: dict[str, Callable[..., Any]] = {
    "capture": _captured,
    "cassandra.levels": cassandra.levels,
    "cassandra.since": cassandra.since,
    "cgroup.cap_cores": cgroups.cap_cores,
    "cgroup.cap_cores_v1": cgroups.cap_cores_v1,
    "cgroup.parse": cgroups.groups,
    "cpu_list.parse": core_list,
    "diskstats.parse": diskstats.parse,
    "exporters.samples": _exported,
    "fit": _fitted,
    "frame.parse": frame.parse,
    "hello.parse": _host,
    **{f"imports.{name}": _imported for name in registry.names()},
    "linux.sources": _linux,
    "mariadb.blockers": mariadb.blockers,
    "mariadb.by_kind": mariadb.by_kind,
    "mariadb.files": mariadb.files,
    "mariadb.levels": mariadb.levels,
    "mariadb.look": _sessions(mariadb.session_sample),
    "mariadb.since": mariadb.since,
    "meminfo.parse": meminfo.parse,
    "memory.parse_v1": cgroups.memory_v1,
    "memory.parse_v2": cgroups.memory_v2,
    "mongodb.levels": mongodb.levels,
    "mongodb.since": mongodb.since,
    "mountinfo.parse": mountinfo.parse,
    "net_dev.parse": net_dev.parse,
    "postgres.files": postgres.files,
    "postgres.look": _sessions(postgres.session_sample),
    "postgres.totals": postgres.totals,
    "pressure.parse": pressure.parse,
    "process.parse": processes.parse,
    "sqlserver.blockers": sqlserver.blockers,
    "sqlserver.by_file": sqlserver.by_file,
    "sqlserver.by_name": sqlserver.by_name,
    "sqlserver.counters": sqlserver.counters,
    "sqlserver.cpu": sqlserver.cpu,
    "sqlserver.files": sqlserver.files,
    "sqlserver.levels": sqlserver.levels,
    "sqlserver.look": _sessions(sqlserver.session_sample),
    "sqlserver.waits": sqlserver.waits,
    "stat.parse": stat.parse,
    "valkey.levels": valkey.levels,
    "valkey.since": valkey.since,
    "vmstat.parse": vmstat.parse,
    "windows.reader": _windows,
}
