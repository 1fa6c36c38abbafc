"""``pinchpoint worker``: nothing of it lives on after it, to take part in runs that nobody lent it to."""

from __future__ import annotations

import signal
import socket
import subprocess
import time

import psutil
import pytest
from support import end, start_cli


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_what_ends_a_worker_ends_its_child(how: signal.Signals) -> None:
    """At once where the worker can see to it; after SIGKILL its child sees that it is alone."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # bound and never listening: no master answers there
        worker = start_cli("worker", "--master", f"127.0.0.1:{free.getsockname()[1]}")
        child = _child(worker)
        status, _, err = end(worker, how)
        assert status == (-signal.SIGKILL if how is signal.SIGKILL else 130), err
        assert "Traceback" not in err
        psutil.wait_procs([child], timeout=0 if how is not signal.SIGKILL else 60)
        assert not child.is_running()


def _child(worker: subprocess.Popen[str]) -> psutil.Process:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if children := psutil.Process(worker.pid).children():
            return children[0]
        time.sleep(0.05)
    raise AssertionError("started no process for a run")
