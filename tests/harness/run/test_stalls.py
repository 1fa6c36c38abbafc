"""A run always ends when a server stops answering behind a link that still acknowledges packets."""

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
from stalling import FAULTS, StallingProxy, stalling_proxy
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
    """Yield a proxy before a server, and a run's command through it."""
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


def _saying(command: list[str | Path], words: str) -> subprocess.Popen[str]:
    process = start_cli(*command)
    try:
        wait_for_line(process, words)
    except BaseException:
        process.kill()
        raise
    return process


def test_a_run_ends_by_itself(stalling: tuple[StallingProxy, list[str | Path]]) -> None:
    """The server whose data could not be removed is named; the exit status is the environment's."""
    assert _ended(stalling, "measuring", "stalled") == 5


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["garbled", "half_closed", "reset"])
def test_an_answer_that_is_none_is_the_servers_fault(
    stalling: tuple[StallingProxy, list[str | Path]], fault: str
) -> None:
    """Random bytes, a close or a reset count as failed operations, not as a failed recorder."""
    assert _ended(stalling, "measuring", fault) in (1, 5)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_the_removal_ends_by_itself(stalling: tuple[StallingProxy, list[str | Path]], fault: str) -> None:
    """If the link fails during the removal, the data is removed or reported as left."""
    assert _ended(stalling, "removing the data", fault) in (0, 5)


@pytest.mark.slow
def test_a_link_that_stands_still_for_a_while_costs_no_run(
    stalling: tuple[StallingProxy, list[str | Path]],
) -> None:
    """A link that stalls for three seconds leaves the run complete."""
    assert _ended(stalling, "measuring", "stalled", for_s=3) in (0, 1, 3)


def _ended(
    stalling: tuple[StallingProxy, list[str | Path]], words: str, fault: str, for_s: float | None = None
) -> int:
    """Return the exit status of a run whose link fails one second after its message."""
    proxy, command = stalling
    process = _saying(command, words)
    try:
        if words == "measuring":
            time.sleep(1)
        getattr(proxy, fault).set()
        if for_s is not None:
            time.sleep(for_s)
            getattr(proxy, fault).clear()
        code, _, err = end(process, timeout_s=150)
    finally:
        process.kill()
    assert code != 5 or f"127.0.0.1:{proxy.port}" in err, err
    for never in ("Traceback", "internal error", "recorder"):
        assert never not in err, err
    return code


@pytest.mark.alone
def test_a_second_ctrl_c_ends_it(stalling: tuple[StallingProxy, list[str | Path]]) -> None:
    """A second Ctrl-C ends the run within 5 s, and names the server that may keep data."""
    proxy, command = stalling
    process = _saying(command, "measuring")
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
