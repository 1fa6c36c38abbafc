"""How much room a PostgreSQL server's data has, where that can be known."""

from __future__ import annotations

import shutil
from pathlib import Path

import psycopg

from .postgresql import Connection

_WHERE = """SELECT current_setting('data_directory'),
    extract(epoch FROM (pg_stat_file('postmaster.pid')).modification)::float8,
    (SELECT pg_tablespace_location(dattablespace) FROM pg_database WHERE datname = current_database())"""


def free_bytes(connection: Connection) -> int | None:
    """Bytes free where the database's tables go; None where it cannot be known.

    PostgreSQL has no view of it. So it takes a server on this very host, and a user whom both the server lets
    see its files and the system its folder: what the two say about one file must agree.
    """
    try:
        found = connection.execute(_WHERE).fetchone()
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedFile):
        return None
    if found is None:
        return None
    directory, started, tablespace = found
    try:
        if abs((Path(directory) / "postmaster.pid").stat().st_mtime - started) >= 1:
            return None  # another host's folder of the same name
        return shutil.disk_usage(tablespace or directory).free
    except OSError:
        return None  # not this host's, or not for our eyes
