"""Around the whole session: nothing a test started or made may be left when it ends.

Every process the tests start inherits a mark in its environment, and every temporary file lies in a folder
of the session's own, so that what others do on the machine at the same time is never mistaken for a leak.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from javaservers import cassandra, mongo
from serverprocess import ServerProcess

_MARK = "PINCHPOINT_TEST_SESSION"
_SESSION = uuid.uuid4().hex
_TEMP = Path(tempfile.mkdtemp(prefix="pinchpoint-tests-"))
_TEMP.chmod(0o755)  # as root, servers run as an unprivileged user that must reach its folder

os.environ[_MARK] = _SESSION
os.environ["TMPDIR"] = str(_TEMP)
# Farms of the tests lie apart from the user's own.
os.environ["PINCHPOINT_STATE"] = str(_TEMP / "state")
tempfile.tempdir = str(_TEMP)


def _mounts() -> set[str]:
    path = Path("/proc/self/mountinfo")
    return {line.split()[4] for line in path.read_text().splitlines()} if path.exists() else set()


def _loop_devices() -> set[str]:
    return {path.read_text().strip() for path in Path("/sys/block").glob("loop*/loop/backing_file")}


def _cgroups() -> set[str]:
    return {str(path) for path in Path("/sys/fs/cgroup").glob("**/pinchpoint*") if path.is_dir()}


def _processes() -> list[str]:
    """Processes with the session's mark, or standing in its folder (some overwrite their environment)."""
    found = []
    for process in psutil.process_iter():
        try:
            marked = process.environ().get(_MARK) == _SESSION or process.cwd().startswith(str(_TEMP))
            if marked and process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(f"process {process.pid}: {' '.join(process.cmdline())}")
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue  # gone meanwhile, or another user's: not ours
    return found


@pytest.fixture(scope="session", autouse=True)
def no_leaks() -> Iterator[None]:
    """Fails the session when a process, mount, loop device, cgroup or temporary file is left."""
    before = _mounts(), _loop_devices(), _cgroups()
    yield
    deadline = time.monotonic() + 5  # a killed process takes a moment to vanish
    while (left := _processes()) and time.monotonic() < deadline:
        time.sleep(0.1)
    for what, then, now in zip(
        ("mount", "loop device", "cgroup"), before, (_mounts(), _loop_devices(), _cgroups()), strict=True
    ):
        left += [f"{what} {name}" for name in sorted(now - then)]
    left += [f"temporary file {path}" for path in _TEMP.iterdir() if not path.name.startswith("pytest-of-")]
    shutil.rmtree(_TEMP, ignore_errors=True)
    assert not left, "left behind:\n" + "\n".join(left)


def pytest_sessionfinish() -> None:
    """The session's folder goes also when nothing was run."""
    shutil.rmtree(_TEMP, ignore_errors=True)


@pytest.fixture
def ordinary_user() -> list[str]:
    """A command prefix that runs what follows without root's rights; as an ordinary user, nothing."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv (package util-linux) is missing: cannot drop root's rights")
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


@pytest.fixture(scope="session")
def cassandra_server() -> Iterator[ServerProcess]:
    """One Cassandra for all tests of a session: each makes a keyspace of its own and drops it."""
    with cassandra() as server:
        yield server


@pytest.fixture(scope="session")
def mongo_server() -> Iterator[ServerProcess]:
    """One peer of MongoDB's for all tests of a session: each drops what it made."""
    with mongo() as server:
        yield server
