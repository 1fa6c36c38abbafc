"""Whatever a farm made is removed: processes, shared memory, disks, folder."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import psutil

from pinchpoint_infra.disks import DiskError
from pinchpoint_infra.disks.emulated import remove_all
from pinchpoint_infra.embedded import processes
from pinchpoint_infra.embedded.place import remove_empty_parents
from pinchpoint_infra.embedded.record import FarmError
from pinchpoint_infra.faults import caps


def remove(farm_id: str, directory: Path) -> list[str]:
    """Remove all of a farm; sentences of what was there. Raises FarmError.

    The process that calls it may carry the farm's mark itself (its supervisor does): it is spared.
    """
    done = []
    spared = os.getpid()
    ended = processes.end_all(farm_id, directory, spared)
    if ended:
        done.append(f"ended {ended} process{'es' if ended > 1 else ''}")
    if processes.free_shared_memory(directory / "sql" / "data" / "cluster"):
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
    """They end by themselves when they are unmounted; one that was never mounted does not."""
    left = processes.behind_disks(farm_id)
    _, alive = psutil.wait_procs(left, timeout=3)
    for process in alive:
        process.send_signal(signal.SIGKILL)
    return [f"ended {len(alive)} processes behind disks"] if alive else []
