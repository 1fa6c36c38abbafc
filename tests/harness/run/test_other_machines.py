"""Load from other machines: over a link that is cut, and with a worker that does not connect."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from servers import open_redis, valkey
from support import PINCHPOINT, end, require, run_cli, wait_for_line

from pinchpoint.loadgen.permits import TOKEN_VARIABLE
from pinchpoint.store.read import open_run
from pinchpoint_infra.ports import free_port

pytestmark = pytest.mark.farm

HERE, THERE = "10.231.77.1", "10.231.77.2"
RATE = 60
TOKEN = "a-token-of-the-tests-and-of-nothing-else"
NAMESPACES = "/run/netns"
PORT, MASTER_PORT = 6399, 5599  # every port is free in the test's own namespaces


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


class Machines:
    """Two hosts and their link; servers and controller are on ``here``."""

    def __init__(self) -> None:
        mark = f"pp{os.getpid()}"
        self.here, self.there = f"{mark}a", f"{mark}b"
        # The first namespace turns the directory into a bind mount, which is_mount() does not detect.
        self._mounted = f" {NAMESPACES} " in Path("/proc/self/mountinfo").read_text()

    def make(self) -> None:
        """Create two namespaces and their link."""
        for name in (self.here, self.there):
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        peer = ("peer", "name", "cable", "netns", self.there)
        ip("link", "add", "cable", "netns", self.here, "type", "veth", *peer)
        for name, address in ((self.here, HERE), (self.there, THERE)):
            ip("-n", name, "address", "add", f"{address}/24", "dev", "cable")
            ip("-n", name, "link", "set", "cable", "up")

    def cut(self) -> None:
        """Drop all packets on the link, without notice to either side."""
        ip("-n", self.here, "link", "set", "cable", "down")

    def remove(self) -> None:
        """Remove the namespaces and their link."""
        for name in (self.here, self.there):
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)
        if not self._mounted:
            subprocess.run(["umount", NAMESPACES], check=False, capture_output=True)

    @contextmanager
    def start(self, where: str, *command: str | Path) -> Iterator[subprocess.Popen[str]]:
        """Start a program on one of the hosts, and end it at the test's end."""
        process = subprocess.Popen(
            ["ip", "netns", "exec", where, *command],
            env={**os.environ, TOKEN_VARIABLE: TOKEN},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    if os.geteuid() != 0:
        pytest.skip("needs root: hosts of its own are network namespaces")
    require("ip", "iproute2")
    store = open_redis(PORT, tmp_path, "--bind", HERE, "--appendfsync", "always")
    found = Machines()
    try:
        found.make()
        with found.start(found.here, *store):
            yield found
    finally:
        found.remove()


def files(folder: Path, measure_s: int) -> tuple[Path, Path]:
    farm = {
        "name": "far",
        "environment": "test",
        "endpoints": {"nosql": {"url": f"redis://{HERE}:{PORT}/0"}},
        "tiers": {"nosql": {"hosts": {"kv1": {"collect": [{"kind": "local"}]}}}},
    }
    load = {"model": "open", "rate": f"{RATE}/s", "arrivals": "constant"}
    plan = {
        "name": "far",
        "scenarios": {"burst": {"use": "nosql-burst", "load": load}},
        "phases": {"warm_up": "2s", "measure": f"{measure_s}s"},
    }
    for name, content in (("farm.yaml", farm), ("plan.yaml", plan)):
        (folder / name).write_text(json.dumps(content))
    return folder / "farm.yaml", folder / "plan.yaml"


@pytest.mark.root
@pytest.mark.slow  # twenty-five seconds; test_pool has workers that die and freeze
def test_the_link_to_a_worker_is_cut(machines: Machines, tmp_path: Path) -> None:
    """After the cut the other worker takes the whole load within 5 s, and the lost one stops."""
    farm, plan = files(tmp_path, 14)
    run = (PINCHPOINT, "run", plan, "--farm", farm, "--out", tmp_path / "runs", "--workers", "1")
    more = ("--listen", f"{HERE}:{MASTER_PORT}", "--remote-workers", "1")
    far = (PINCHPOINT, "worker", "--master", f"{HERE}:{MASTER_PORT}", "--once")
    with (
        machines.start(machines.there, *far) as worker,
        machines.start(machines.here, *run, *more) as process,
    ):
        said = wait_for_line(process, "measuring")
        time.sleep(3)
        machines.cut()
        begun = time.monotonic()
        assert worker.wait(15) == 5
        assert time.monotonic() - begun < 8
        status, out, err = end(process, timeout_s=90)
    assert status in (0, 3), said + err
    found = open_run(Path(out.splitlines()[-1]))
    [lost] = [event for event in found.events if event["event"] == "worker_lost"]
    assert lost["taken_over_after_s"] < 6
    assert any("was lost" in warning for warning in found.manifest["warnings"])
    rows = [row for row in found.operations.to_pylist() if row["operation"] != "/send"]
    done = {
        worker: sum(r["count"] for r in rows if r["worker"] == worker)
        for worker in ("generator1", "generator2")
    }
    assert min(done.values()) > RATE
    measured = [row for row in rows if row["outcome"] == "ok"]
    last = max(row["time_s"] for row in measured)
    final = [row for row in measured if last - 4 <= row["time_s"] < last]
    assert sum(row["count"] for row in final) == pytest.approx(4 * RATE, rel=0.1), [
        (row["time_s"] - last, row["worker"], row["count"]) for row in measured
    ]
    assert {row["worker"] for row in final} == {"generator1"}
    assert sum(row["dropped"] for row in rows) > 0
    [_, far_off] = found.manifest["generators"]
    assert far_off["worker"] == "generator2"
    assert abs(far_off["clock_offset_s"]) < 0.01


def test_nobody_comes(tmp_path: Path) -> None:
    """Workers need an address, and an address a number of workers; each mistake has its remedy."""
    farm, plan = files(tmp_path, 2)
    for given, remedy in (
        (("--remote-workers", "2"), "add --listen"),
        (("--listen", HERE), "--remote-workers"),
    ):
        done = run_cli("run", plan, "--farm", farm, *given, starts_nothing=True)
        assert done.returncode == 2
        assert remedy in done.stderr
    done = run_cli("worker", "--master", "nowhere:port", starts_nothing=True)
    assert done.returncode == 2
    assert "'nowhere:port'" in done.stderr


_IMPATIENT = """
import sys
from pinchpoint import cli
from pinchpoint.run import controller
controller._GATHER_S = 0.2
sys.exit(cli._status())
"""


@pytest.mark.farm
def test_no_worker_comes(tmp_path: Path) -> None:
    """If no worker connects, exit status 5 and no run folder."""
    farm, plan = tmp_path / "farm.yaml", tmp_path / "plan.yaml"
    with valkey() as url:
        farm.write_text(
            json.dumps({"name": "f", "environment": "test", "endpoints": {"nosql": {"url": url}}})
        )
        burst = {"use": "nosql-burst", "load": {"model": "closed", "users": 2}}
        plan.write_text(json.dumps({"name": "p", "scenarios": {"burst": burst}, "phases": {"measure": "5s"}}))
        listen = ("--listen", f"127.0.0.1:{free_port()}", "--workers", "1", "--remote-workers", "1")
        done = subprocess.run(
            [sys.executable, "-c", _IMPATIENT, "run", plan, "--farm", farm,
             "--out", tmp_path / "runs", *listen],
            capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip
    assert done.returncode == 5, done.stderr
    assert "0 of 1 workers joined within" in done.stderr
    assert not list((tmp_path / "runs").glob("*"))
