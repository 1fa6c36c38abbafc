"""``pinchpoint check`` on a farm without any reachable host."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support import PINCHPOINT


@pytest.fixture
def silent() -> Iterator[list[int]]:
    """Yield five ports with full queues, for which Linux drops a SYN as a firewall would."""
    with ExitStack() as stack:
        ports = []
        for _ in range(5):
            server = stack.enter_context(socket.socket())
            server.bind(("127.0.0.1", 0))
            server.listen(0)
            ports.append(server.getsockname()[1])
            for _ in range(4):
                waiting = stack.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex(("127.0.0.1", ports[-1]))
        yield ports


def test_unreachable_hosts_take_the_time_of_one(silent: list[int], tmp_path: Path) -> None:
    """All hosts are contacted concurrently, and each one has its line."""
    web, sql, nosql, search, host = silent
    collect = [
        {"kind": "ssh", "address": "127.0.0.1", "port": host},
        {"kind": "windows", "address": "127.0.0.1", "port": host, "user": "u", "password": "p"},
        {"kind": "postgres", "endpoint": "sql"},
    ]
    farm = {
        "name": "f",
        "environment": "test",
        "endpoints": {
            "sharepoint": {"url": f"http://127.0.0.1:{web}"},
            "sql": {"url": f"postgresql://u:p@127.0.0.1:{sql}/db"},
            "nosql": {"url": f"valkey://127.0.0.1:{nosql}/0"},
            "search": {"url": f"http://127.0.0.1:{search}"},
        },
        "tiers": {"sql": {"hosts": {"sql1": {"collect": collect}}}},
    }
    load = {"model": "closed", "users": 1}
    uses = ("full-crawl", "sql-mix", "nosql-burst")
    plan = {
        "name": "p",
        "scenarios": {use: {"use": use, "load": load} for use in uses},
        "phases": {"measure": "1m"},
    }
    (tmp_path / "farm.yaml").write_text(json.dumps(farm))
    (tmp_path / "plan.yaml").write_text(json.dumps(plan))
    came: dict[str, float] = {}
    command: list[str | Path] = [PINCHPOINT, "check", tmp_path, "--out", tmp_path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            came[line] = time.monotonic()
    assert process.returncode == 5
    failed = [line for line in came if line.startswith("FAIL")]
    assert len(failed) == len(collect) + len(uses), failed
    crawl = next(line for line in failed if "scenario full-crawl" in line)
    assert all(f"127.0.0.1:{port}" in crawl for port in (web, sql, search)), crawl
    # One after the other would take 36 s: the database gives up after 3 s, ssh after 5 s.
    began = min(came.values())
    assert max(came.values()) - began < 20
    times = sorted(came[line] for line in failed)
    assert times[-1] - times[0] > 1, "all lines came at the end"
