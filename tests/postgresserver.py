"""Run a system package's PostgreSQL older than 18: created, started and removed for a test."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from support import require

from pinchpoint_infra.ports import free_port


class Server:
    """A running PostgreSQL: the URLs of its roles and its main process."""

    def __init__(self, admin: str, loader: str, monitor: str, pid: int) -> None:
        self.admin, self.loader, self.monitor, self.pid = admin, loader, monitor, pid

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement as the superuser and return its rows."""
        with psycopg.connect(self.admin, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def session(self) -> psycopg.Connection[Any]:
        """Open a session of the load test's user."""
        return psycopg.connect(self.loader, autocommit=True)


@contextmanager
def older_postgres(*more: str) -> Iterator[Server]:
    """Run the newest installed PostgreSQL below 18, in a folder that the user ``nobody`` can reach.

    Args:
        more: further server settings, such as ``shared_preload_libraries=pg_stat_statements``.
    """
    with tempfile.TemporaryDirectory(prefix="server-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        with _started(Path(folder), more) as server:
            yield server


@contextmanager
def _started(folder: Path, more: Sequence[str]) -> Iterator[Server]:
    initdb = _newest_initdb()
    user = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None
    data, port = folder / "data", free_port()
    data.mkdir(mode=0o700)
    if user is not None:
        os.chown(data, user, -1)
    password = folder / "password"
    password.write_text("sesame")
    own: dict[str, Any] = {"user": user, "extra_groups": [] if user is not None else None, "cwd": data}
    subprocess.run(
        [initdb, "-D", data, "-U", "admin", f"--pwfile={password}", "-A", "scram-sha-256", "--no-sync"],
        check=True, capture_output=True, **own,
    )  # fmt: skip
    settings = ("unix_socket_directories=", "track_io_timing=on", "dynamic_shared_memory_type=mmap")
    command = [str(initdb.with_name("postgres")), "-D", str(data), "-h", "127.0.0.1", "-p", str(port)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, *(f"-c{setting}" for setting in (*settings, *more))], stdout=log, stderr=log, **own
        )
    try:
        admin = f"postgresql://admin:sesame@127.0.0.1:{port}/postgres"
        _wait(admin, process, folder / "log")
        loaded = Server(admin, admin, admin, process.pid)
        loaded.ask("CREATE ROLE monitor LOGIN PASSWORD 'sesame' IN ROLE pg_read_all_stats")
        loaded.ask("CREATE ROLE loader LOGIN PASSWORD 'sesame'")
        loaded.ask("CREATE DATABASE loadtest OWNER loader")
        monitor, loader = (admin.replace("//admin", f"//{role}") for role in ("monitor", "loader"))
        yield Server(admin, loader.replace("/postgres", "/loadtest"), monitor, process.pid)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(15)


def _newest_initdb() -> Path:
    """Return initdb of the newest installed PostgreSQL below 18."""
    there = sorted(Path("/usr/lib/postgresql").glob("1[3-7]/bin/initdb"))
    return there[-1] if there else Path(require("initdb of PostgreSQL 13 to 17", "postgresql"))


def _wait(url: str, process: subprocess.Popen[Any], log: Path) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            psycopg.connect(url, connect_timeout=2).close()
        except psycopg.OperationalError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        else:
            return
