"""What all kinds that ask a server have in common: each library is an extra of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("kind", "library", "url"),
    [
        ("postgres", "psycopg", "postgresql://h/d"),
        ("valkey", "valkey", "valkey://h"),
        ("cassandra", "cassandra", "cassandra://h/k"),
        ("mongodb", "pymongo", "mongodb://h"),
        ("mariadb", "pymysql", "mysql://h"),
        ("sqlserver", "pyodbc", "mssql+odbc://h"),
        ("prometheus", "requests", "http://h"),
    ],
)
def test_without_its_library_the_remedy_is_the_extra(kind: str, library: str, url: str) -> None:
    """The package without its extra still has all other kinds."""
    program = (
        f"import sys; sys.modules[{library!r}] = None\n"
        "from pinchpoint_collectors.record import Watch\n"
        "from pinchpoint_collectors.registry import kind\n"
        "from pinchpoint_collectors.errors import CollectorError\n"
        "assert kind('local')\n"
        f"try: kind({kind!r}).connect([Watch('a', 'tier', options={{'url': {url!r}}})])\n"
        "except CollectorError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert f"run: pip install 'pinchpoint-collectors[{kind}]'" in done.stdout
