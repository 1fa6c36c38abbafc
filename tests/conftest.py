"""Session-wide fixtures: the session fails if a test leaves a process, a mount or a file behind.

Every process that the tests start inherits a mark in its environment, and every temporary file is in the
session's own folder. Other programs on the machine are therefore never reported as leaks.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from javaservers import cassandra, mongo
from serverprocess import ServerProcess
from support import end_started
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from pinchpoint_collectors.linux import mountinfo
from pinchpoint_collectors.linux.disks import Disks

_MARK = "PINCHPOINT_TEST_SESSION"
_SESSION = uuid.uuid4().hex
_TEMP = Path(tempfile.mkdtemp(prefix="pinchpoint-tests-"))
_TEMP.chmod(0o755)  # as root, servers run as an unprivileged user, who must be able to reach the folder
# Emulated disks need a real disk; other sessions have folders there as well, so the name is specific.
_PLACES = (str(_TEMP), f"/var/tmp/pinchpoint-{_SESSION[:8]}-")

os.environ[_MARK] = _SESSION
# Let processes of the tests write compiled modules: without them, each `pinchpoint analyse` compiles for
# three seconds.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
os.environ["TMPDIR"] = str(_TEMP)
# Farms of the tests have their state in a folder apart from the user's farms.
os.environ["PINCHPOINT_STATE"] = str(_TEMP / "state")
tempfile.tempdir = str(_TEMP)


def _mounts() -> Iterator[str]:
    """Yield each mount below the folders of the tests."""
    path = Path("/proc/self/mountinfo")
    for line in path.read_text().splitlines() if path.exists() else ():
        if (place := line.split()[4]).startswith(_PLACES):
            yield f"mount {place}"


def _loop_devices() -> Iterator[str]:
    """Yield each loop device over a file of the tests."""
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        if (file := path.read_text().strip()).startswith(_PLACES):
            yield f"loop device over {file}"


def _control_groups() -> set[Path]:
    """Return the control groups of farms without processes; a running farm of another user has processes."""
    found = (path for path in Path("/sys/fs/cgroup").glob("**/pinchpoint*/*") if path.is_dir())
    return {path for path in found if not _text(path / "cgroup.procs")}


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return "gone meanwhile"


def _processes() -> list[str]:
    """Return the processes with the session's mark or with the session's folder as working directory."""
    found = []
    for process in psutil.process_iter():
        try:
            marked = process.environ().get(_MARK) == _SESSION or process.cwd().startswith(str(_TEMP))
            if marked and process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(f"process {process.pid}: {' '.join(process.cmdline())}")
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue  # the process has ended, or belongs to another user
    return found


def _left(groups: set[Path]) -> list[str]:
    """Return what the session has left on the machine; ``groups`` are control groups that existed before."""
    made = (f"control group {path}" for path in sorted(_control_groups() - groups))
    return [*_processes(), *_mounts(), *_loop_devices(), *made]


@pytest.fixture(autouse=True)
def nothing_goes_on() -> Iterator[None]:
    """End the commands that a failed test started, so that they do not disturb the next test."""
    yield
    end_started()


@pytest.fixture(scope="session", autouse=True)
def no_leaks() -> Iterator[None]:
    """Fail the session if a process, mount, loop device, control group or temporary file is left.

    Each worker process of the tests is a session of its own.
    """
    before = _control_groups()
    yield
    deadline = time.monotonic() + 5  # a killed process needs a moment to vanish and to release its files
    while (left := _left(before)) and time.monotonic() < deadline:
        time.sleep(0.1)
    left += [f"temporary file {path}" for path in _TEMP.iterdir() if not path.name.startswith("pytest-of-")]
    shutil.rmtree(_TEMP, ignore_errors=True)
    assert not left, "left behind:\n" + "\n".join(left)


def pytest_sessionfinish() -> None:
    """Remove the session's folder, also if no test ran."""
    shutil.rmtree(_TEMP, ignore_errors=True)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return two worker processes per core, at most eight, because tests mostly wait for servers."""
    return min(8, (os.cpu_count() or 1) * 2)


_TOGETHER = ("tests/scenarios/nosql_burst", "tests/scenarios/sql_servers")


def _together(nodeid: str) -> str | None:
    """Return the folder whose tests all run in one worker, if the test is in such a folder."""
    return next((folder for folder in _TOGETHER if nodeid.startswith(f"{folder}/")), None)


class _ByFile(LoadFileScheduling):  # type: ignore[misc]  # xdist ships no types
    """Give a file's tests to one worker, and a folder's tests to one worker if they share a slow server."""

    def _split_scope(self, nodeid: str) -> str:
        return _together(nodeid) or str(super()._split_scope(nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> _ByFile:
    """Schedule the tests in the order of collection."""
    config.option.loadscopereorder = False
    return _ByFile(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run folders of one worker first, then farm and scenario tests, so that long tests begin early."""
    long = {item.path for item in items if item.get_closest_marker("farm") or "scenarios" in item.path.parts}
    items.sort(key=lambda item: (_together(item.nodeid) is None, item.path not in long))


@pytest.fixture
def real_disk() -> Callable[[Path], str]:
    """Return a function from a folder to its whole disk; it skips the test if there is no disk."""

    def find(path: Path) -> str:
        place = Disks(mountinfo.parse(Path("/proc/self/mountinfo").read_text())).place(str(path))
        if place.device is None:
            pytest.skip(f"needs a test folder on a block device (pytest --basetemp=DIR): {place.why}")
        return place.device

    return find


@pytest.fixture(scope="session")
def cassandra_server() -> Iterator[ServerProcess]:
    """One Cassandra for all tests of a session; each test creates a keyspace of its own."""
    with cassandra() as server:
        yield server


@pytest.fixture(scope="session")
def mongo_server() -> Iterator[ServerProcess]:
    """One MongoDB-compatible server for all tests of a session; each test drops its data."""
    with mongo() as server:
        yield server
