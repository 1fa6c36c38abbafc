"""``pinchpoint init --sql URL --nosql URL``: writes both files for reachable servers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from servers import postgres, valkey
from support import run_cli

from pinchpoint.plan import load


@pytest.fixture(scope="module")
def sql() -> Iterator[str]:
    with postgres() as url:
        yield url


@pytest.fixture(scope="module")
def nosql() -> Iterator[str]:
    with valkey() as url:
        yield url


def secret(url: str) -> str:
    return urlsplit(url).password or ""


def test_servers_that_answer(sql: str, nosql: str, tmp_path: Path) -> None:
    """The files have endpoints, hosts, collectors and scenarios; the password's variable is named."""
    done = run_cli("init", tmp_path / "new", "--sql", sql, "--nosql", nosql)
    assert done.returncode == 0, done.stderr
    assert "export SQL_PASSWORD=... NOSQL_PASSWORD=..." in done.stderr
    text = (tmp_path / "new" / "farm.yaml").read_text()
    assert "# scenario orders: sql: postgresql" in text
    assert secret(sql) not in text + done.stdout + done.stderr
    assert secret(nosql) not in text + done.stdout + done.stderr
    farm, plan = load(tmp_path / "new" / "farm.yaml", tmp_path / "new" / "plan.yaml")
    kinds = {tier: [one.kind for one in farm.tiers[tier].hosts[f"{tier}1"].collect] for tier in farm.tiers}
    assert kinds == {"sql": ["local", "postgres"], "nosql": ["local", "valkey"]}
    assert set(plan.scenarios) == {"orders", "burst"}
    assert len(plan.objectives) == 2


@pytest.mark.parametrize("way", ["pgpass", "environment", "variable"])
def test_passwords_from_elsewhere(way: str, sql: str, tmp_path: Path) -> None:
    """With .pgpass, PGPASSWORD or ${NAME} the URL is written as it was given."""
    (tmp_path / "pgpass").write_text(f"*:*:*:*:{secret(sql)}\n")
    (tmp_path / "pgpass").chmod(0o600)
    given = sql.replace(f":{secret(sql)}@", ":${MINE}@" if way == "variable" else "@")
    env = {
        "pgpass": {"PGPASSFILE": str(tmp_path / "pgpass")},
        "environment": {"PGPASSWORD": secret(sql)},
        "variable": {"MINE": secret(sql)},
    }[way]
    done = run_cli("init", tmp_path / "new", "--sql", given, env=env)
    assert done.returncode == 0, done.stderr
    assert f"url: {given}\n" in (tmp_path / "new" / "farm.yaml").read_text()
    # The server is also the plan's source; it has no statement statistics.
    fitted = run_cli("init", tmp_path / "fitted", "--from", given, "--over", "1s", env=env)
    assert "pg_stat_statements" in fitted.stderr


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        (("--sql", "postgresql://u:sesame9@127.0.0.1:1/d"), 5, "connection refused"),
        (("--sql", "postgresql://u:${NOT_SET_HERE}@h/d"), 2, "--sql: the environment variable NOT_SET_HERE"),
        (("--sql", "http://127.0.0.1/"), 2, '--sql: "http://127.0.0.1/" has the scheme "http"'),
        (("--sql", "postgresql://u@h/d?passkey=sesame9"), 2, "holds a secret beside the password"),
        (("--web", "http://127.0.0.1:1/"), 2, "add --sql URL"),
        (
            ("--from", "postgresql://u:${NOT_SET_HERE}@h/d"),
            2,
            "--from: the environment variable NOT_SET_HERE",
        ),
        (("--sql", "postgresql://h/d", "--template", "mixed"), 2, "give one of them"),
    ],
)
def test_what_does_not_answer_or_fit(
    options: tuple[str, ...], status: int, words: str, tmp_path: Path
) -> None:
    """A server that fails or does not fit gives option, reason and exit status, without a secret."""
    done = run_cli("init", tmp_path / "new", *options)
    assert done.returncode == status, done.stderr
    assert words in done.stderr
    assert "sesame9" not in done.stderr
    assert not (tmp_path / "new" / "farm.yaml").exists()


def test_the_template_of_postgresql_is_ready_once_it_is_filled_in(sql: str, tmp_path: Path) -> None:
    """The PostgreSQL template passes the checks once it has a server's URL, this host and a folder."""
    assert run_cli("init", tmp_path / "new", "--template", "postgresql").returncode == 0
    farm = tmp_path / "new" / "farm.yaml"
    for before, after in {
        "postgresql://loader:${SQL_PASSWORD}@sql1.example:5432/loadtest": sql,
        "kind: ssh, address: sql1.example": "kind: local",
        ', user: watcher, password: "${WATCHER_PASSWORD}"': "",
        "/var/lib/postgresql/wal": str(tmp_path),
        "/var/lib/postgresql": str(tmp_path),
    }.items():
        assert before in farm.read_text()
        farm.write_text(farm.read_text().replace(before, after))
    done = run_cli("check", tmp_path / "new", "--out", tmp_path, starts_nothing=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "scenario orders: sql: postgresql" in done.stdout
