"""A pool of generators: shared load, and workers that die or hang, local and remote."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.loadgen.crews import OPEN, RATE, TOKEN, crew, elsewhere
from servers import valkey
from support import until

from pinchpoint_infra.ports import free_port

CLOSED = {"model": "closed", "users": 6, "think_s": 0.1}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with valkey() as nosql:
        yield nosql


def test_two_workers_do_what_one_does(url: str, tmp_path: Path) -> None:
    """Two workers each do half of the rate, without failures or drops."""
    with crew(tmp_path, url, OPEN, 2) as both:
        both.start()
        both.check_workers(4)
        lasted_s = both.end()
        found = both.done()
    assert found["failed"] == []
    assert found["dropped"] == 0
    assert found["ok"] == pytest.approx(RATE * lasted_s, abs=0.5 * RATE)
    assert found["workers"]["g0"] == pytest.approx(found["workers"]["g1"], abs=2)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_worker_that_dies_or_freezes_is_replaced(url: str, tmp_path: Path, how: signal.Signals) -> None:
    """Within 5 s the other worker takes over, and the operations missed meanwhile count as dropped."""
    with crew(tmp_path, url, OPEN, 2) as both:
        both.start()
        both.check_workers(2)
        os.kill(both.pool.local_pids[0], how)
        noticed_s = both.check_workers(until=lambda: bool(both.events_of("worker_lost")))
        assert noticed_s < 5
        both.check_workers(3)
        lasted_s = both.end()
        found = both.done()
    assert both.pool.failures() == []
    [lost] = both.events_of("worker_lost")
    assert lost["worker"] == "g0"
    assert lost["taken_over_after_s"] == pytest.approx(noticed_s, abs=1.2)
    assert found["ok"] + found["dropped"] == pytest.approx(RATE * lasted_s, abs=1.5 * RATE)
    if how is signal.SIGSTOP:
        assert found["dropped"] >= RATE / 2 * 3


def test_the_last_one_that_dies_fails_the_run(url: str, tmp_path: Path) -> None:
    """If the last worker dies, the run is invalid, with the reason."""
    with crew(tmp_path, url, OPEN, 1) as alone:
        alone.start()
        alone.check_workers(1)
        os.kill(alone.pool.local_pids[0], signal.SIGKILL)
        alone.check_workers(until=lambda: bool(alone.pool.failures()))
    [(worker, kind, why)] = alone.pool.failures()
    assert (worker, kind) == ("g0", "recorder")
    assert "no other worker could take over" in why


@pytest.mark.alone
@pytest.mark.slow  # nine seconds; the test before it has workers that die
def test_the_users_of_a_closed_load_go_on_elsewhere(url: str, tmp_path: Path) -> None:
    """Six users on two workers are six users on the remaining one."""
    with crew(tmp_path, url, CLOSED, 2) as both:
        both.start()
        both.check_workers(2.5)
        assert both.users() == 6
        os.kill(both.pool.local_pids[1], signal.SIGKILL)
        both.check_workers(until=lambda: bool(both.events_of("worker_lost")))
        both.check_workers(5)
        assert both.users() == 6
        both.end()


@pytest.mark.slow
@pytest.mark.alone
def test_workers_of_other_machines_take_part_from_the_begin_alone(url: str, tmp_path: Path) -> None:
    """Remote workers join only before the load; one dies, one is late, and the load stays the same."""
    port = free_port()
    with crew(tmp_path, url, OPEN, 1, port) as mixed, elsewhere(port) as first:
        with elsewhere(port) as second:
            assert mixed.pool.wait_joined(2, lambda: False, 90) == 2
            mixed.start()
            mixed.check_workers(4)
            second.kill()
            assert mixed.check_workers(until=lambda: bool(mixed.events_of("worker_lost"))) < 5
        with elsewhere(port) as late:
            assert late.stdout is not None
            # Before the begin it may report that it has joined.
            assert any("waits for the next run" in line for line in iter(late.stdout.readline, ""))
            assert mixed.events_of("worker_late") == [{"machine": socket.gethostname()}]
            mixed.check_workers(2)
            lasted_s = mixed.end()
            assert late.wait(15) == 0
            assert late.stdout.read() == ""
        assert first.wait(15) == 0
        found = mixed.done()
    assert found["failed"] == []
    assert sorted(found["workers"]) == ["g0", "generator2", "generator3"]
    assert min(found["workers"].values()) > RATE / 3
    assert found["ok"] + found["dropped"] == pytest.approx(RATE * lasted_s, abs=1.5 * RATE)
    assert abs(mixed.events_of("worker_connected")[0]["clock_offset_s"]) < 0.01  # one machine, so one clock


@pytest.mark.slow
@pytest.mark.alone
def test_a_worker_that_is_killed_as_the_load_ends_costs_no_run(url: str, tmp_path: Path) -> None:
    """A worker killed at the end of the load is detected in time, and the run stays complete."""
    port = free_port()
    with crew(tmp_path, url, OPEN, 1, port) as mixed, elsewhere(port) as far:
        assert mixed.pool.wait_joined(1, lambda: False, 90) == 1
        mixed.start()
        mixed.check_workers(4)
        far.kill()
        lasted_s = mixed.end()
        at_most_s = time.monotonic() - mixed.begun_s
    assert mixed.pool.failures() == []
    [lost] = mixed.events_of("worker_lost")
    assert lost["taken_over_after_s"] < 6
    found = mixed.done()
    assert found["failed"] == []
    assert RATE * (lasted_s - 1.5) < found["ok"] + found["dropped"] < RATE * (at_most_s + 1)


def test_who_is_lost_while_others_are_waited_for_is_forgotten(url: str, tmp_path: Path) -> None:
    """A worker that is lost before the begin is forgotten, and another one replaces it."""
    port = free_port()
    with crew(tmp_path, url, OPEN, 1, port) as some, elsewhere(port) as patient:
        with elsewhere(port):
            assert some.pool.wait_joined(2, lambda: False, 90) == 2
        until(lambda: some.pool.wait_joined(3, lambda: False, 0.2) != 2)
        assert some.pool.wait_joined(2, lambda: False, 1.5) == 1
        with elsewhere(port):
            assert some.pool.wait_joined(2, lambda: False, 90) == 2
        assert patient.poll() is None


def test_a_worker_of_another_version_is_refused(tmp_path: Path, url: str) -> None:
    """A worker of another version ends with a sentence and exit status 5, unseen by the run."""
    port = free_port()
    script = (
        "import sys; import importlib.metadata as m; real = m.version\n"
        "m.version = lambda name: '0.0.1' if name == 'pinchpoint' else real(name)\n"
        "from pinchpoint.loadgen import remote; remote.main()"
    )
    with crew(tmp_path, url, OPEN, 1, port) as one:
        done = subprocess.run(
            [sys.executable, "-c", script, "127.0.0.1", str(port)],
            input=json.dumps({"token": TOKEN}), capture_output=True, text=True, timeout=90, check=False,
        )  # fmt: skip
        assert done.returncode == 5, done.stderr
        assert "this is 0.0.1" in done.stdout
        assert one.events_of("worker_connected") == []


def test_a_port_that_is_taken_is_said(url: str, tmp_path: Path) -> None:
    """A port in use is an environment error with address and port."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with crew(tmp_path, url, OPEN, 1, port) as one:
            one.pool.wait_joined(1, lambda: False, 60)
            [(_, kind, why)] = one.pool.failures()
    assert kind == "environment"
    assert f"cannot listen on 127.0.0.1:{port}" in why
