"""Tests of PostgreSQL addresses in each form, of poolers and standbys, and of a role's limits.

They run on a PostgreSQL of the system's package, its standby, and PgBouncer.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pyodbc
import pytest
from postgresserver import Server, older_postgres
from scenarios.support import Recorder, made
from support import missing, require

from pinchpoint_infra.ports import free_port
from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.errors import ScenarioError
from pinchpoint_scenarios.sql_script.marked_copy import MarkedCopy

OWN: dict[str, Any] = {"user": "nobody", "extra_groups": []} if os.geteuid() == 0 else {}


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Yield a folder for sockets and files of the servers."""
    with tempfile.TemporaryDirectory(prefix="server-", ignore_cleanup_errors=True) as made_here:
        path = Path(made_here)
        path.chmod(0o755)
        (path / "run").mkdir()
        if OWN:
            os.chown(path / "run", pwd.getpwnam("nobody").pw_uid, -1)
        yield path


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    with older_postgres(f"unix_socket_directories={folder / 'run'}") as found:
        yield found


@contextmanager
def running(command: list[str | Path], url: str, log: Path) -> Iterator[None]:
    """Start a server and wait until it answers."""
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, cwd="/", **OWN)
    try:
        until_s = time.monotonic() + 20
        while True:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until_s, log.read_text()
            try:
                psycopg.connect(url, connect_timeout=2).close()
                break
            except psycopg.OperationalError:
                time.sleep(0.1)
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(15)


def checked(url: str) -> dict[str, Any]:
    """Return the facts that sql-mix's check finds."""
    return dict(made("sql-mix", {"sql": Endpoint("sql", url)}).check()["sql"])


def _checked_as_copy(url: str) -> dict[str, Any]:
    """Return the facts that the check of sql-script and sql-replay finds."""
    return MarkedCopy(Endpoint("sql", url), "pinchpoint_test", empty_will_do=True).check()


def place(server: Server) -> tuple[str, str]:
    host, _, port = server.loader.partition("@")[2].partition("/")[0].partition(":")
    return host, port


FORMS = {
    "a socket": "postgresql://loader:sesame@/loadtest?host={folder}/run&port={port}",
    "host and name in the query": "postgresql://loader@/?host={host}&port={port}&dbname=loadtest",
    "a service": "postgresql:///?service=pinchpoint-test",
    "several hosts": "postgresql://loader:sesame@{host}:1,{host}:{port}/loadtest",
    "another scheme": "postgres://loader:sesame@{host}:{port}/loadtest",
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_libpq(form: str, server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each form of address reaches the server, and the password is found where libpq looks for it."""
    host, port = place(server)
    (folder / "pgpass").write_text(f"{host}:{port}:*:loader:sesame\n")
    (folder / "pgpass").chmod(0o600)
    service = f"[pinchpoint-test]\nhost={host}\nport={port}\nuser=loader\ndbname=loadtest\n"
    (folder / "services").write_text(service)
    monkeypatch.setenv("PGPASSFILE", str(folder / "pgpass"))
    monkeypatch.setenv("PGSERVICEFILE", str(folder / "services"))
    found = checked(FORMS[form].format(host=host, port=port, folder=folder))
    assert found["version"]
    assert found["warnings"] == []


def test_a_standby_is_refused_in_one_sentence(server: Server, folder: Path) -> None:
    """A real standby is refused with one sentence."""
    host, port = place(server)
    binaries = sorted(Path("/usr/lib/postgresql").glob("1[3-7]/bin/pg_basebackup"))
    tool, data, own_port = binaries[-1], folder / "run" / "standby", free_port()
    subprocess.run(
        [tool, "-d", server.admin, "-D", data, "-R", "-c", "fast", "--no-sync"],
        check=True, capture_output=True, cwd="/", **OWN,
    )  # fmt: skip
    command: list[str | Path] = [tool.with_name("postgres"), "-D", data, "-h", host, "-p", str(own_port)]
    command += ["-cunix_socket_directories=", "-cdynamic_shared_memory_type=mmap"]
    standby = server.loader.replace(f":{port}/", f":{own_port}/")
    said = []
    with running(command, standby, folder / "standby.log"):
        for check in (checked, _checked_as_copy):
            with pytest.raises(ScenarioError) as refused:
                check(standby)
            said.append(str(refused.value))
    wanted = (
        f"endpoint sql ({host}:{own_port}): the server is a standby: it takes no writes; "
        "name the server that does in farm.yaml"
    )
    assert said == [wanted, wanted]
    shutil.rmtree(data)


@contextmanager
def pooler(server: Server, folder: Path, mode: str) -> Iterator[str]:
    """Yield the address of a PgBouncer with this ``pool_mode`` in front of a server."""
    program, (host, port), own_port = require("pgbouncer", "pgbouncer"), place(server), free_port()
    where = f"host={host} port={port} dbname=loadtest user=loader password=sesame"
    own = f"listen_addr = {host}\nlisten_port = {own_port}\nauth_type = any\npool_mode = {mode}\n"
    text = f"[databases]\nloadtest = {where}\n[pgbouncer]\n{own}unix_socket_dir =\n"
    (folder / "pgbouncer.ini").write_text(text)
    pooled = server.loader.replace(f":{port}/", f":{own_port}/")
    with running([program, folder / "pgbouncer.ini"], pooled, folder / "pgbouncer.log"):
        yield pooled


def test_a_pooler_is_named_with_what_is_not_true_then(server: Server, folder: Path) -> None:
    """``check`` names a PgBouncer in session mode and the resulting limits."""
    with pooler(server, folder, "session") as pooled:
        (said,) = checked(pooled)["warnings"]
    assert "a connection pooler answers in place of the server" in said


@pytest.mark.parametrize("scheme", ["postgresql", "postgresql+odbc"])
def test_a_load_goes_through_a_pooler(server: Server, folder: Path, scheme: str) -> None:
    """Through a pooler all operations work over libpq and ODBC, and nothing is left in the database."""
    if scheme.endswith("odbc") and not any("PostgreSQL" in name for name in pyodbc.drivers()):
        missing("no ODBC driver for PostgreSQL is installed (Debian: odbc-postgresql)")
    with pooler(server, folder, "session") as pooled:
        url = pooled.replace("postgresql://", f"{scheme}://")
        driver = made("sql-mix", {"sql": Endpoint("sql", url)})
        driver.check()
        driver.prepare(lambda _: None)
        recorder = Recorder()
        session = driver.session(0)
        for _ in range(60):
            session.perform(recorder)
        session.close()
        driver.finish(keep_data=False)
    outcomes = {outcome for _, outcome in recorder.counts()}
    assert (len(recorder.rows) >= 60, outcomes) == (True, {"ok"}), recorder.counts()


def test_limits_of_a_role_are_said(server: Server) -> None:
    """A role's CONNECTION LIMIT and statement_timeout are reported."""
    host, port = place(server)
    server.ask("CREATE ROLE narrow LOGIN PASSWORD 'sesame' CONNECTION LIMIT 3")
    server.ask("ALTER ROLE narrow SET statement_timeout = '40ms'")
    url = f"postgresql://narrow:sesame@{host}:{port}/loadtest"
    with psycopg.connect(server.admin.replace("/postgres", "/loadtest"), autocommit=True) as admin:
        admin.execute("GRANT CREATE ON DATABASE loadtest TO narrow")
    limit, timeout = checked(url)["warnings"]
    assert "role narrow may have 3 connections at once (CONNECTION LIMIT)" in limit
    assert "statement_timeout is 40ms" in timeout
