"""A run always ends: servers stop answering behind links that still acknowledge, in every kind of server."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from javaservers import cassandra, mongo
from mariadbserver import mariadb
from servers import postgres, valkey
from stalling import StallingProxy, stalling_proxy
from support import end, start_cli, wait_for_line

pytestmark = [pytest.mark.farm, pytest.mark.timeout(300)]

SQL = {"use": "sql-mix", "load": {"model": "closed", "users": 2}, "params": {"operations": {"log_append": 1}}}
NOSQL = {"use": "nosql-burst", "load": {"model": "closed", "users": 2}}


@contextmanager
def _postgres() -> Iterator[str]:
    with postgres() as url:
        yield url


@contextmanager
def _postgres_by_odbc() -> Iterator[str]:
    with postgres() as url:
        yield url.replace("postgresql://", "postgresql+odbc://", 1)


@contextmanager
def _mariadb() -> Iterator[str]:
    with mariadb() as server:
        yield server.url


@contextmanager
def _cassandra() -> Iterator[str]:
    with cassandra() as server:
        parts = urlsplit(server.url)
        profile = ExecutionProfile(request_timeout=60)
        cluster = Cluster(
            [parts.hostname], port=parts.port, execution_profiles={EXEC_PROFILE_DEFAULT: profile}
        )
        with cluster:
            cluster.connect().execute(
                "CREATE KEYSPACE loadtest WITH replication = "
                "{'class': 'SimpleStrategy', 'replication_factor': 1}"
            )
        yield server.url


@contextmanager
def _mongo() -> Iterator[str]:
    with mongo() as server:
        yield server.url


SERVERS: dict[str, tuple[str, dict[str, Any], Callable[[], Any]]] = {
    "postgresql": ("sql", SQL, _postgres),
    "postgresql by ODBC": ("sql", SQL, _postgres_by_odbc),
    "mariadb": ("sql", SQL, _mariadb),
    "valkey": ("nosql", NOSQL, valkey),
    "cassandra": ("nosql", NOSQL, _cassandra),
    "mongodb": ("nosql", NOSQL, _mongo),
}


@pytest.fixture(
    params=[
        pytest.param(name, marks=[pytest.mark.slow] if number else []) for number, name in enumerate(SERVERS)
    ]
)
def stalling(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[StallingProxy, list[str | Path]]]:
    """A proxy before a server, and the command of a run through it."""
    name, scenario, server = SERVERS[request.param]
    with ExitStack() as stack:
        url = stack.enter_context(server())
        port = urlsplit(url).port
        proxy = stack.enter_context(stalling_proxy(port))
        farm, plan = tmp_path / "farm.yaml", tmp_path / "plan.yaml"
        endpoint = {name: {"url": url.replace(f":{port}", f":{proxy.port}", 1)}}
        farm.write_text(json.dumps({"name": "stalling", "environment": "test", "endpoints": endpoint}))
        phases = {"warm_up": "1s", "measure": "6s"}
        plan.write_text(json.dumps({"name": "stalls", "scenarios": {"work": scenario}, "phases": phases}))
        yield proxy, ["run", plan, "--farm", farm, "--out", tmp_path / "runs"]


def _measuring(command: list[str | Path]) -> subprocess.Popen[str]:
    process = start_cli(*command)
    try:
        wait_for_line(process, "measuring")
    except BaseException:
        process.kill()
        raise
    return process


def test_a_run_ends_by_itself(stalling: tuple[StallingProxy, list[str | Path]]) -> None:
    """The data that could not be removed is named with its server; the exit status is the environment's."""
    proxy, command = stalling
    process = _measuring(command)
    try:
        time.sleep(1)
        proxy.stalled.set()
        code, _, err = end(process, timeout_s=150)
    finally:
        process.kill()
    assert code == 5, err
    assert f"127.0.0.1:{proxy.port}" in err, err
    assert "Traceback" not in err


@pytest.mark.slow
def test_garbage_is_the_servers_fault(stalling: tuple[StallingProxy, list[str | Path]]) -> None:
    """Random bytes in place of answers are failed operations and a failed farm, not a failed recorder."""
    proxy, command = stalling
    process = _measuring(command)
    try:
        time.sleep(1)
        proxy.garbled.set()
        code, _, err = end(process, timeout_s=150)
    finally:
        process.kill()
    assert code in (1, 5), err
    assert "recorder" not in err, err
    assert "Traceback" not in err


@pytest.mark.alone
def test_a_second_ctrl_c_ends_it(stalling: tuple[StallingProxy, list[str | Path]]) -> None:
    """Within 5 s, and says what may be left on which server."""
    proxy, command = stalling
    process = _measuring(command)
    try:
        proxy.stalled.set()
        wait_for_line(process, "removing the data")
        time.sleep(0.5)
        begun_s = time.monotonic()
        code, _, err = end(process, signal.SIGINT, signal.SIGTERM, timeout_s=20)
    finally:
        process.kill()
    assert time.monotonic() - begun_s < 5.5, err
    assert code == 130, err
    assert f"127.0.0.1:{proxy.port}" in err, err
    assert "left on the farm" in err, err
