"""A MariaDB from the system's package for tests."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql
from pymysql.cursors import DictCursor
from serverprocess import ServerProcess, running_process, server_directory
from support import missing

from pinchpoint_infra.ports import free_port

WATCHER, LOADER, PLAIN = "watcher", "loader", "plain"
"""Users: the README's watcher, the load test's user, and a user without rights. The password of all is
sesame."""


@dataclass(frozen=True)
class MariaDb:
    """A running server."""

    process: ServerProcess
    port: int
    socket: Path

    def url(self, user: str) -> str:
        """Return the server's URL as in farm.yaml."""
        return f"mysql://{user}:sesame@127.0.0.1:{self.port}/loadtest"

    @contextmanager
    def session(self, user: str = LOADER, **more: Any) -> Iterator[pymysql.cursors.DictCursor]:
        """Yield a cursor with autocommit."""
        with (
            pymysql.connect(
                host="127.0.0.1", port=self.port, user=user, password="sesame",
                database=None if user in (WATCHER, PLAIN) else "loadtest", autocommit=True,
                cursorclass=DictCursor, **more,
            ) as connection,
            connection.cursor() as cursor,
        ):  # fmt: skip
            yield cursor

    def admin(self, *statements: str) -> None:
        """Run statements as the superuser."""
        with (
            pymysql.connect(unix_socket=str(self.socket), user="root", autocommit=True) as connection,
            connection.cursor() as cursor,
        ):
            for statement in statements:
                cursor.execute(statement)


def _program(name: str) -> str:
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
    return found or missing(f"{name} is missing (Debian: mariadb-server)")


@contextmanager
def mariadb(*options: str) -> Iterator[MariaDb]:
    """Run a server with three users; ``options`` come last on its command line."""
    install, program, port = _program("mariadb-install-db"), _program("mariadbd"), free_port()
    as_root = ["--user=root"] if os.geteuid() == 0 else []
    with server_directory() as folder:
        data, place = folder / "data", folder / "s"
        subprocess.run(
            [install, "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal",
             "--skip-test-db", "--skip-name-resolve", *as_root],
            check=True, capture_output=True, timeout=60,
        )  # fmt: skip
        command = [
            *(program, "--no-defaults", *as_root, f"--datadir={data}", f"--socket={place}"),
            *(f"--port={port}", "--bind-address=127.0.0.1", f"--pid-file={folder / 'pid'}"),
            *("--skip-name-resolve", "--innodb-buffer-pool-size=8M", "--innodb-log-file-size=16M"),
            *options,
        ]
        process = ServerProcess("", command, folder, lambda: _answers(place))
        with running_process(process):
            server = MariaDb(process, port, place)
            server.admin(
                "CREATE DATABASE loadtest",
                *(
                    f"CREATE USER {user}@'127.0.0.1' IDENTIFIED BY 'sesame'"
                    for user in (WATCHER, LOADER, PLAIN)
                ),
                f"GRANT ALL ON loadtest.* TO {LOADER}@'127.0.0.1'",
                f"GRANT PROCESS ON *.* TO {WATCHER}@'127.0.0.1'",
                f"GRANT SELECT ON performance_schema.* TO {WATCHER}@'127.0.0.1'",
            )
            yield server


def _answers(place: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as tried:  # the library would leave its own socket open
        return tried.connect_ex(str(place)) == 0
