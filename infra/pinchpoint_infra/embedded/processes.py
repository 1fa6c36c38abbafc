"""A farm's processes: found by their mark, ended for good."""

from __future__ import annotations

import contextlib
import ctypes
import time
from pathlib import Path

import psutil

from pinchpoint_infra.embedded.place import DISK_MARK, MARK

_GRACE_S = 8.0
_TITLED = ("postgres", "valkey-server")
_IPC_RMID = 0


def alive(pid: int | None, create_time: float | None) -> bool:
    """Whether this very process lives; a process id alone may have been given to another since."""
    if pid is None or create_time is None:
        return False
    try:
        process = psutil.Process(pid)
        same = abs(process.create_time() - create_time) < 0.5
        return same and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def of_farm(farm_id: str, directory: Path) -> list[psutil.Process]:
    """Every living process of a farm.

    PostgreSQL and Valkey overwrite their environment with their titles, so these are known by name and by
    standing in the farm's folder; a person's shell that stands there is neither.
    """
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):  # gone, or another user's
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            ours = process.environ().get(MARK) == farm_id
            if ours or (process.name() in _TITLED and Path(process.cwd()).is_relative_to(directory)):
                found.append(process)
    return found


def behind_disks(farm_id: str) -> list[psutil.Process]:
    """Every process behind a farm's emulated disks."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if process.environ().get(DISK_MARK) == farm_id:
                found.append(process)
    return found


def end_all(farm_id: str, directory: Path, spared: int) -> int:
    """End every process of a farm but ``spared``, gently first; how many there were."""
    ended = set()
    for attempt in range(3):
        processes = [process for process in of_farm(farm_id, directory) if process.pid != spared]
        if not processes:
            break
        ended |= {process.pid for process in processes}
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill() if attempt else process.terminate()
        psutil.wait_procs(processes, timeout=_GRACE_S)
        time.sleep(0.05)
    return len(ended)


def free_shared_memory(cluster: Path) -> bool:
    """Free the small System V segment of a PostgreSQL server that was killed; whether there was one.

    Its id is the last number of line 7 of postmaster.pid (PostgreSQL's documentation of the lock file).
    """
    try:
        lines = (cluster / "postmaster.pid").read_text().splitlines()
        segment = int(lines[6].split()[1])
    except (OSError, IndexError, ValueError):
        return False  # no such file: the server ended in order and freed it itself
    return bool(ctypes.CDLL(None).shmctl(segment, _IPC_RMID, None) == 0)
