"""Run the system package's MariaDB in a folder of the test."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pymysql
from serverprocess import ServerProcess, running_process, server_directory
from support import require

from pinchpoint_infra.ports import free_port

PASSWORD = "se&cret/pass"
_PACKAGE = "mariadb-server"
_USER = "nobody"
_SETTINGS = (
    "--skip-name-resolve",
    "--bind-address=127.0.0.1",
    "--innodb-buffer-pool-size=64M",
    "--innodb-log-file-size=48M",
    "--innodb-flush-log-at-trx-commit=1",
    "--performance-schema=OFF",
    "--max-connections=60",
)


@dataclass(frozen=True)
class MariaDb:
    """A running MariaDB.

    Attributes:
        process: the server's process, which a test can kill and start again.
        port: TCP port; the user ``loader`` has all rights in databases named ``pinchpoint_...``.
    """

    process: ServerProcess
    port: int

    @property
    def url(self) -> str:
        """The database's URL as in farm.yaml."""
        return f"mysql+odbc://loader:{quote(PASSWORD, safe='')}@127.0.0.1:{self.port}/loadtest"

    def ask(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement as the server's administrator and return its rows."""
        with closing(self.connect()) as connection, connection.cursor() as cursor:
            cursor.execute(statement, values)
            return list(cursor.fetchall())

    def connect(self) -> pymysql.connections.Connection[pymysql.cursors.Cursor]:
        """Open a connection as the server's administrator."""
        return pymysql.connect(
            unix_socket=str(self.process.directory / "sock"), user="root", autocommit=True, connect_timeout=2
        )


@contextmanager
def mariadb(*settings: str) -> Iterator[MariaDb]:
    """Run a server with the user ``loader`` and the database ``loadtest``.

    Args:
        settings: further command-line options of the server.
    """
    install, program = require("mariadb-install-db", _PACKAGE), require("mariadbd", _PACKAGE)
    with server_directory() as directory:
        data = directory / "data"
        data.mkdir()
        user: Sequence[str] = ()
        if os.geteuid() == 0:
            directory.chmod(0o777)
            shutil.chown(data, _USER)
            user = (f"--user={_USER}",)
        subprocess.run(
            [
                *(
                    install,
                    "--no-defaults",
                    f"--datadir={data}",
                    *user,
                    "--skip-test-db",
                    "--skip-name-resolve",
                ),
                *("--auth-root-authentication-method=normal", f"--tmpdir={directory}"),
            ],
            check=True,
            capture_output=True,
            timeout=60,
        )
        port = free_port()
        command = [
            program,
            "--no-defaults",
            f"--datadir={data}",
            *user,
            f"--port={port}",
            *_SETTINGS,
            *settings,
        ]
        command += [f"--socket={directory}/sock", f"--pid-file={directory}/pid", f"--tmpdir={directory}"]
        process = ServerProcess("", command, directory, lambda: _answers(directory))
        server = MariaDb(process, port)
        with running_process(process):
            server.ask("CREATE DATABASE loadtest")
            server.ask("CREATE USER loader@'127.0.0.1' IDENTIFIED BY %s", PASSWORD)
            server.ask("GRANT ALL PRIVILEGES ON `pinchpoint\\_%%`.* TO loader@'127.0.0.1'")
            server.ask("GRANT SELECT ON loadtest.* TO loader@'127.0.0.1'")
            yield server


def _answers(directory: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(2)
        try:
            client.connect(str(directory / "sock"))
            return bool(client.recv(1))  # the server sends a greeting
        except OSError:
            return False
