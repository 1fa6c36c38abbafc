"""Around the whole session: nothing a test started or made may be left when it ends.

Every process the tests start inherits a mark in its environment, and every temporary file lies in a folder
of the session's own, so that what others do on the machine at the same time is never mistaken for a leak.
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
_TEMP.chmod(0o755)  # as root, servers run as an unprivileged user that must reach its folder
# Emulated disks are made on a real one, in folders that other sessions have there as well.
_PLACES = (str(_TEMP), f"/var/tmp/pinchpoint-{_SESSION[:8]}-")

os.environ[_MARK] = _SESSION
# Each process that tests start would compile all modules it imports: three seconds of a `pinchpoint analyse`.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
os.environ["TMPDIR"] = str(_TEMP)
# Farms of the tests lie apart from the user's own.
os.environ["PINCHPOINT_STATE"] = str(_TEMP / "state")
tempfile.tempdir = str(_TEMP)


def _mounts() -> Iterator[str]:
    """What is mounted where tests make their folders."""
    path = Path("/proc/self/mountinfo")
    for line in path.read_text().splitlines() if path.exists() else ():
        if (place := line.split()[4]).startswith(_PLACES):
            yield f"mount {place}"


def _loop_devices() -> Iterator[str]:
    """Those over files there."""
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        if (file := path.read_text().strip()).startswith(_PLACES):
            yield f"loop device over {file}"


def _control_groups() -> set[Path]:
    """Those of farms that no process is in: a farm of somebody else's that runs has some."""
    found = (path for path in Path("/sys/fs/cgroup").glob("**/pinchpoint*/*") if path.is_dir())
    return {path for path in found if not _text(path / "cgroup.procs")}


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return "gone meanwhile"


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


def _left(groups: set[Path]) -> list[str]:
    """Everything of this session's that is there still; ``groups`` were there before."""
    made = (f"control group {path}" for path in sorted(_control_groups() - groups))
    return [*_processes(), *_mounts(), *_loop_devices(), *made]


@pytest.fixture(autouse=True)
def nothing_goes_on() -> Iterator[None]:
    """A command that a failed test started does not disturb the next one."""
    yield
    end_started()


@pytest.fixture(scope="session", autouse=True)
def no_leaks() -> Iterator[None]:
    """Fails the session when a process, mount, loop device, control group or temporary file is left.

    Each process that runs tests is a session of its own.
    """
    before = _control_groups()
    yield
    deadline = time.monotonic() + 5  # a killed process takes a moment to vanish, and what held it open
    while (left := _left(before)) and time.monotonic() < deadline:
        time.sleep(0.1)
    left += [f"temporary file {path}" for path in _TEMP.iterdir() if not path.name.startswith("pytest-of-")]
    shutil.rmtree(_TEMP, ignore_errors=True)
    assert not left, "left behind:\n" + "\n".join(left)


def pytest_sessionfinish() -> None:
    """The session's folder goes also when nothing was run."""
    shutil.rmtree(_TEMP, ignore_errors=True)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two processes for each core: most of their time tests wait for servers; eight at most."""
    return min(8, (os.cpu_count() or 1) * 2)


_TOGETHER = ("tests/scenarios/nosql_burst", "tests/scenarios/sql_servers")


def _together(nodeid: str) -> str | None:
    """The folder whose tests one worker runs, of a test in one."""
    return next((folder for folder in _TOGETHER if nodeid.startswith(f"{folder}/")), None)


class _ByFile(LoadFileScheduling):  # type: ignore[misc]  # xdist ships no types
    """A file's tests to one worker, and a folder's where they share a server that takes long to start."""

    def _split_scope(self, nodeid: str) -> str:
        return _together(nodeid) or str(super()._split_scope(nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> _ByFile:
    """In the order of collection."""
    config.option.loadscopereorder = False
    return _ByFile(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Folders of one worker first, then files with farms and of scenarios: what is long begins early."""
    long = {item.path for item in items if item.get_closest_marker("farm") or "scenarios" in item.path.parts}
    items.sort(key=lambda item: (_together(item.nodeid) is None, item.path not in long))


@pytest.fixture
def real_disk() -> Callable[[Path], str]:
    """The whole disk a folder lies on; skips where none does (a test folder in memory or on an overlay)."""

    def find(path: Path) -> str:
        place = Disks(mountinfo.parse(Path("/proc/self/mountinfo").read_text())).place(str(path))
        if place.device is None:
            pytest.skip(f"needs a test folder on a block device (pytest --basetemp=DIR): {place.why}")
        return place.device

    return find


@pytest.fixture(scope="session")
def cassandra_server() -> Iterator[ServerProcess]:
    """One Cassandra for all tests of a session: each makes a keyspace of its own."""
    with cassandra() as server:
        yield server


@pytest.fixture(scope="session")
def mongo_server() -> Iterator[ServerProcess]:
    """One peer of MongoDB's for all tests of a session: each drops what it made."""
    with mongo() as server:
        yield server
