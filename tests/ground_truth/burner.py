"""Programs that use CPU: for a third of the measure phase, or on all cores during the whole run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

BURN = """\
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
while os.getppid() == int(sys.argv[2]):
    pass
"""
"""Saturates one core; ends when its parent process ends for any reason."""
PART = 3
"""Number of parts of the measure phase; the programs run during the second."""
_LOOK_S = 0.25


@contextmanager
def burning(out: Path, cores: Sequence[int], measure_s: float) -> Iterator[None]:
    """Start the block; when the run below ``out`` measures, saturate its cores for a third of the phase.

    Args:
        out: path of the folder with the run's directory and no other run.
        cores: numbers of the farm's cores.
        measure_s: length of the measure phase in seconds.
    """
    over = threading.Event()
    thread = threading.Thread(target=_burn, args=(out, cores, measure_s, over))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def crowded(neighbours: int) -> Iterator[None]:
    """During the block, run this many programs on every core of this machine."""
    burners = [_burner(core) for core in sorted(os.sched_getaffinity(0)) for _ in range(neighbours)]
    try:
        yield
    finally:
        _end(burners)


def _burner(core: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", BURN, str(core), str(os.getpid())])


def _end(burners: Sequence[subprocess.Popen[bytes]]) -> None:
    for burner in burners:
        burner.kill()
        burner.wait()


def _burn(out: Path, cores: Sequence[int], measure_s: float, over: threading.Event) -> None:
    begun = None
    while begun is None:
        if over.wait(_LOOK_S):
            return
        begun = measuring_since(out)
    since_s = (datetime.now(UTC) - begun).total_seconds()
    if over.wait(max(0.0, measure_s / PART - since_s)):
        return
    burners = [_burner(core) for core in cores]
    try:
        over.wait(measure_s / PART)
    finally:
        _end(burners)


def measuring_since(out: Path) -> datetime | None:
    """Return the start of the measure phase of the run below that folder; None before its start."""
    for manifest in out.glob("*/manifest.json"):
        phases = json.loads(manifest.read_text(encoding="utf-8")).get("phases") or ()
        for phase in phases:
            if phase.get("name") == "measure" and phase.get("from"):
                return datetime.fromisoformat(phase["from"])
    return None
