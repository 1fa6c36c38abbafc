"""A controller, three load workers and four observed hosts, each on its own machine behind a bad link.

Machines are network namespaces. Each link delays a packet by 40 ms each way and loses 2 % of the packets. The
store is beside the controller and counts the requested writes, so the true count is known.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from lossylinks import Link, lossy_link, other_network, own_network
from servers import open_redis
from sshd_hosts import SshdHost, sshd_hosts
from support import PINCHPOINT, end, require, start_cli, wait_for_line
from valkey import Valkey

from pinchpoint.loadgen.permits import TOKEN_VARIABLE
from pinchpoint.store.read import StoredRun, open_run

pytestmark = [
    pytest.mark.root,
    pytest.mark.alone,  # every reading has its time
    pytest.mark.slow,  # two minutes
    pytest.mark.timeout(420),
]

DELAY_S, LOSS = 0.04, 0.02
RATE, MEASURE_S, AGAIN_S = 60, 40, 8
SHARE = RATE / 3
PORT, MASTER_PORT = 6399, 5599  # every port is free in the test's own namespaces
TOKEN = "a-token-of-the-tests-and-of-nothing-else"


@dataclass
class Machines:
    """All machines, seen from the controller's namespace, in which this thread runs.

    Attributes:
        hosts: the observed hosts.
        workers: a process for each machine that produces load.
        links: all network links.
    """

    hosts: list[SshdHost]
    workers: list[int]
    links: list[Link]
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start_worker(self, number: int) -> subprocess.Popen[bytes]:
        """Start a load worker that takes part in successive runs."""
        master = f"10.77.{number}.1:{MASTER_PORT}"
        there = ("nsenter", f"--target={self.workers[number]}", "--net")
        process = subprocess.Popen(
            [*there, PINCHPOINT, "worker", "--master", master],
            env={**os.environ, TOKEN_VARIABLE: TOKEN},
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.started.append(process)
        return process


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the worker with its children, as a power failure would."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    if os.geteuid() != 0:
        pytest.skip("needs root: machines are network namespaces")
    for program, package in (("ip", "iproute2"), ("nsenter", "util-linux"), ("setpriv", "util-linux")):
        require(program, package)
    store_command = open_redis(PORT, tmp_path)
    links: list[Link] = []

    @contextmanager
    def cable(near: str, ours: str, pid: int, theirs: str) -> Iterator[None]:
        with lossy_link(near, ours, pid, "eth0", theirs, delay_s=DELAY_S, loss=LOSS) as link:
            links.append(link)
            yield

    with ExitStack() as stack:
        stack.enter_context(own_network())
        store = stack.enter_context(subprocess.Popen(store_command, stdout=subprocess.DEVNULL))
        stack.callback(store.kill)
        workers = []
        for number in range(3):
            workers.append(stack.enter_context(other_network()))
            stack.enter_context(cable(f"w{number}", f"10.77.{number}.1", workers[-1], f"10.77.{number}.2"))
        found = Machines(stack.enter_context(sshd_hosts(4, cable)), workers, links)
        try:
            yield found
        finally:
            for process in found.started:
                kill(process)
    assert all(link.carried for link in links)
    assert sum(link.lost for link in links) > 10, "the links were good"


def files(folder: Path, hosts: list[SshdHost]) -> list[str]:
    """Write plan and farm file, and return the run's arguments; each worker has its own link to the store."""
    watched = {
        f"web{at}": {"collect": [{"kind": "ssh", **host.options()}]} for at, host in enumerate(hosts, 1)
    }
    farm = {
        "name": "far",
        "environment": "test",
        "endpoints": {"nosql": {"url": f"redis://10.99.0.1:{PORT}/0"}},
        "tiers": {"nosql": {"hosts": {"kv1": {"collect": [{"kind": "local"}]}}}, "web": {"hosts": watched}},
    }
    load = {"model": "open", "rate": f"{RATE}/s", "arrivals": "constant"}
    plan = {
        "name": "far",
        "scenarios": {"burst": {"use": "nosql-burst", "load": load}},
        "phases": {"warm_up": "2s", "measure": f"{MEASURE_S}s"},
    }
    for name, content in (("farm.yaml", farm), ("plan.yaml", plan)):
        (folder / name).write_text(json.dumps(content))
    return [
        *("run", str(folder / "plan.yaml"), "--farm", str(folder / "farm.yaml")),
        *("--out", str(folder / "runs"), "--workers", "0"),
        *("--listen", f"0.0.0.0:{MASTER_PORT}", "--remote-workers", "3"),
    ]


def written(client: Valkey) -> int:
    """Return the writes that the store has performed since its start."""
    found: Any = client.info("commandstats")
    return int(found.get("cmdstat_hset", {"calls": 0})["calls"])


def counted(run: StoredRun) -> tuple[int, int]:
    """Return (successful operations, operations not started)."""
    rows = [row for row in run.operations.to_pylist() if row["operation"] != "/send"]
    assert {row["outcome"] for row in rows} <= {"ok", "dropped"}, rows
    ok = sum(row["count"] for row in rows if row["outcome"] == "ok")
    return ok, sum(row["dropped"] for row in rows)


def test_a_worker_is_killed_and_comes_back(machines: Machines, tmp_path: Path) -> None:
    """After a worker is killed, two do its share without double counts; restarted, it joins the next run."""
    # All workers use one address of the store, each with a route over its own link.
    subprocess.run(["ip", "addr", "add", "10.99.0.1/32", "dev", "lo"], check=True)
    for number, pid in enumerate(machines.workers):
        way = ["ip", "route", "add", "10.99.0.1/32", "dev", "eth0", "src", f"10.77.{number}.2"]
        subprocess.run(["nsenter", f"--target={pid}", "--net", *way], check=True)
    arguments = files(tmp_path, machines.hosts)
    client = Valkey(host="127.0.0.1", port=PORT)
    workers = [machines.start_worker(number) for number in range(3)]

    process = start_cli(*arguments, env={TOKEN_VARIABLE: TOKEN})
    before = written(client)
    wait_for_line(process, "measuring", 150)
    time.sleep(5)
    kill(workers[1])
    killed_s = time.time()
    workers[1] = machines.start_worker(1)
    status, out, err = end(process, timeout_s=150)
    assert status in (0, 3), err
    run = open_run(Path(out.splitlines()[-1]))
    performed = written(client) - before
    check_first(run, performed, killed_s)

    before = written(client)
    status, out, err = end(
        start_cli(*arguments, "--measure", f"{AGAIN_S}s", env={TOKEN_VARIABLE: TOKEN}), timeout_s=200
    )
    assert status in (0, 3), err
    again = open_run(Path(out.splitlines()[-1]))
    ok, dropped = counted(again)
    assert ok + dropped == pytest.approx(RATE * (2 + AGAIN_S), abs=1.5 * RATE)
    assert written(client) - before == ok
    assert len(again.manifest["generators"]) == 3
    assert not [warning for warning in again.manifest["warnings"] if "was lost" in warning]


def check_first(run: StoredRun, performed: int, killed_s: float) -> None:
    """Check the run in which a worker was killed."""
    connected = [one for one in run.events if one["event"] == "worker_connected"]
    assert len(connected) == 3
    assert min(one["round_trip_s"] for one in connected) >= 2 * DELAY_S
    [lost] = [one for one in run.events if one["event"] == "worker_lost"]
    assert lost["taken_over_after_s"] < 7
    warnings = run.manifest["warnings"]
    assert any("was lost" in each and "took over its share" in each for each in warnings), warnings
    assert any("waits for the next run" in each for each in warnings), warnings

    ok, dropped = counted(run)
    # Up to one second of the killed worker's writes had not been reported, besides those in flight.
    assert ok <= performed <= ok + 2 * SHARE + 10, (ok, performed)
    assert ok + dropped == pytest.approx(RATE * (2 + MEASURE_S), abs=1.5 * RATE)
    rows = [row for row in run.operations.to_pylist() if row["outcome"] == "ok"]
    seconds: dict[int, int] = {}
    for row in rows:
        if row["operation"] != "/send":
            seconds[row["time_s"]] = seconds.get(row["time_s"], 0) + row["count"]
    first, last = min(seconds), max(seconds)
    assert [at for at in range(first, last) if not seconds.get(at)] == [], "a lost second"
    after = [seconds[at] for at in range(int(killed_s) + 8, last)]
    assert sum(after) == pytest.approx(RATE * len(after), rel=0.1), seconds

    quality: dict[str, Any] = run.manifest["data_quality"]
    for number in range(1, 5):
        host = f"web{number}"
        gaps = quality[host]["ssh"]["gaps"]
        missed = sum(gap["missed"] for gap in gaps)
        assert missed <= 3, (host, gaps)
