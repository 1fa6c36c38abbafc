"""What all kinds that ask a server have in common, whatever answers: libraries, and words for farm.yaml."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Watch
from pinchpoint_collectors.registry import kind

KINDS = {
    "postgres": ("psycopg", "postgresql"),
    "valkey": ("valkey", "valkey"),
    "cassandra": ("cassandra", "cassandra"),
    "mongodb": ("pymongo", "mongodb"),
    "mariadb": ("pymysql", "mysql"),
    "sqlserver": ("pyodbc", "mssql+odbc"),
}
"""Kind -> its library, the scheme of its URLs."""


@pytest.mark.parametrize("name", [*KINDS, "prometheus"])
def test_without_its_library_the_remedy_is_the_extra(name: str) -> None:
    """The package without its extra still has all other kinds."""
    library, scheme = KINDS.get(name, ("requests", "http"))
    program = (
        f"import sys; sys.modules[{library!r}] = None\n"
        "from pinchpoint_collectors.record import Watch\n"
        "from pinchpoint_collectors.registry import kind\n"
        "from pinchpoint_collectors.errors import CollectorError\n"
        "assert kind('local')\n"
        f"try: kind({name!r}).connect([Watch('a', 'tier', options={{'url': '{scheme}://h/x'}})])\n"
        "except CollectorError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert f"run: pip install 'pinchpoint-collectors[{name}]'" in done.stdout


@pytest.mark.parametrize("options", [{}, {"url": "smb://127.0.0.1/x"}, {"url": "smb://h", "address": "h"}])
@pytest.mark.parametrize("name", KINDS)
def test_an_endpoint_of_another_kind_is_explained(name: str, options: dict[str, str]) -> None:
    """With what has to be said in farm.yaml."""
    said = (
        rf"host 'db1', collector '{name}': .* say `endpoint: NAME` .* {KINDS[name][1].replace('+', '.')}://"
    )
    with pytest.raises(CollectorError, match=said):
        kind(name).connect([Watch("db1", "sql", options=options)])


@pytest.mark.parametrize("name", [name for name in KINDS if "address" in kind(name).options])
def test_of_several_servers_the_watched_one_has_to_be_said(name: str) -> None:
    """Each tells of itself only."""
    url = f"{KINDS[name][1]}://watcher:se-cret@one.invalid,two.invalid/x"
    with pytest.raises(CollectorError, match=r"several nodes .* as in `address: one.invalid`") as caught:
        kind(name).connect([Watch("db1", "sql", options={"url": url})])
    assert "cret" not in str(caught.value)
