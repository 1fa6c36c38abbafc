"""Finds and removes everything that a farm created: processes, shared memory, disks, folder."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from pinchpoint_infra.disks import DiskError
from pinchpoint_infra.disks.emulated import remove_all
from pinchpoint_infra.embedded.place import DISK_MARK, MARK, remove_empty_parents
from pinchpoint_infra.embedded.record import FarmError
from pinchpoint_infra.faults import caps

_GRACE_S = 8.0
_TITLED = ("postgres", "valkey-server")
_IPC_RMID = 0
_SEGMENTS = Path("/proc/sysvipc/shm")


def alive(pid: int | None, create_time: float | None) -> bool:
    """Return whether a process still runs. Its id may belong to another process by now."""
    if pid is None or create_time is None:
        return False
    try:
        process = psutil.Process(pid)
        same = abs(process.create_time() - create_time) < 0.5
        return same and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def of_farm(farm_id: str, directory: Path) -> list[psutil.Process]:
    """Return every living process of a farm.

    PostgreSQL and Valkey overwrite their environment with their titles, so they are recognised by name and by
    a working directory in the farm's folder. A user's shell there has neither the name nor the mark.
    """
    result = []
    for process in psutil.process_iter():
        # the process is gone or belongs to another user
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            ours = process.environ().get(MARK) == farm_id
            if ours or (process.name() in _TITLED and Path(process.cwd()).is_relative_to(directory)):
                result.append(process)
    return result


def behind_disks(farm_id: str) -> list[psutil.Process]:
    """Return every process behind the emulated disks of a farm."""
    result = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if process.environ().get(DISK_MARK) == farm_id:
                result.append(process)
    return result


def end_all(farm_id: str, directory: Path, spared: int) -> int:
    """End every process of a farm except ``spared``, first by SIGTERM. Return their number."""
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
    """Free the System V segment of a killed PostgreSQL server. Return whether there was one.

    Line 7 of postmaster.pid has the key and the id of the segment, and line 1 the process id of the server
    (PostgreSQL's documentation of the lock file). After a reboot, the id may belong to the memory of another
    database. Therefore only memory with this key that this process created is freed.
    """
    try:
        lines = (cluster / "postmaster.pid").read_text().splitlines()
        server = int(lines[0])
        key, segment = (int(number) for number in lines[6].split())
    except (OSError, IndexError, ValueError):
        return False  # the file is missing: the server ended normally and freed its segment
    if (key % 2**32, segment, server) not in _segments():
        return False
    return bool(ctypes.CDLL(None).shmctl(segment, _IPC_RMID, None) == 0)


def _segments() -> Iterator[tuple[int, int, int]]:
    """Yield key, id and creating process of every System V shared memory segment of this machine."""
    for line in _SEGMENTS.read_text().splitlines()[1:] if _SEGMENTS.exists() else ():
        key, segment, _permissions, _size, maker = line.split()[:5]
        yield int(key) % 2**32, int(segment), int(maker)  # the file contains keys as signed numbers


def remove(farm_id: str, directory: Path) -> list[str]:
    """Remove a farm. Return sentences on what was removed. Raises FarmError.

    The calling process is not ended, because it may have the mark of the farm itself, as the supervisor does.
    """
    done = []
    spared = os.getpid()
    ended = end_all(farm_id, directory, spared)
    if ended:
        done.append(f"ended {ended} process{'es' if ended > 1 else ''}")
    if free_shared_memory(directory / "sql" / "data" / "cluster"):
        done.append("freed the shared memory of a PostgreSQL server that was killed")
    try:
        done += remove_all(farm_id, directory)
    except DiskError as error:
        raise FarmError(f"cannot free the emulated disks of {directory}: {error}") from error
    done += _end_behind_disks(farm_id)
    try:
        done += caps.remove_all(farm_id)
    except OSError as error:
        raise FarmError(f"cannot remove the control groups of farm {farm_id}: {error}") from error
    if directory.exists():
        try:
            shutil.rmtree(directory)
        except OSError as error:
            raise FarmError(
                f"cannot remove {directory}: {error.strerror or error}; remove it by hand"
            ) from error
        done.append(f"removed {directory}")
        remove_empty_parents(directory)
    return done


def _end_behind_disks(farm_id: str) -> list[str]:
    """End the processes of disks.

    They end by themselves when unmounted, except those that were never mounted.
    """
    left = behind_disks(farm_id)
    _, alive = psutil.wait_procs(left, timeout=3)
    for process in alive:
        process.send_signal(signal.SIGKILL)
    return [f"ended {len(alive)} processes behind disks"] if alive else []
