"""Measure one load, made by Pinchpoint or by a peer, and hold its result."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_PUNCTUAL_NICE = -10
LIMIT_S = 120.0
"""Time limit of a peer program, in seconds."""


class BenchError(Exception):
    """A measurement failed; the message states the reason."""


@dataclass(frozen=True, slots=True)
class Load:
    """The measured result of one load.

    Attributes:
        per_s: operations that succeeded, per second.
        cpu_us: CPU time of the process that made the load, per operation, in microseconds.
        times_us: service times in microseconds, ascending: one per operation or one per histogram bucket.
        counts: number of operations per entry of ``times_us``.
    """

    per_s: float
    cpu_us: float
    times_us: npt.NDArray[np.float64]
    counts: npt.NDArray[np.int64]

    def percentile_us(self, percent: float) -> float:
        """Return the smallest time that at least this percentage of the operations did not exceed."""
        reached = np.cumsum(self.counts)
        return float(self.times_us[np.searchsorted(reached, reached[-1] * percent / 100)])


def take_place(pid: int, *, punctual: bool) -> None:
    """Give a peer process the core and the priority of a load generator (``loadgen.local``).

    Args:
        pid: the peer's process id.
        punctual: True if the peer has a schedule to keep, as an open load does.
    """
    os.sched_setaffinity(pid, cores()[1])
    if not punctual:
        os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))
    elif os.geteuid() == 0:
        os.setpriority(os.PRIO_PROCESS, pid, _PUNCTUAL_NICE)


def cores() -> tuple[list[int], list[int]]:
    """Return (the server's cores, the load generator's core); the two are separate if there are two cores."""
    have = sorted(os.sched_getaffinity(0))
    return (have[:-1], have[-1:]) if len(have) > 1 else (have, have)


def measured_run(
    command: Sequence[str], environment: Mapping[str, str] | None = None, within_s: float = LIMIT_S
) -> tuple[str, float]:
    """Run a program on a load generator's core; return (its output, its CPU seconds).

    Raises:
        BenchError: the program failed or did not end in time.
    """
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | dict(environment or {}),
    ) as process:
        take_place(process.pid, punctual=False)
        before = _children_s()
        try:
            said, wrong = process.communicate(timeout=within_s)
        except subprocess.TimeoutExpired as error:
            process.kill()
            raise BenchError(f"{command[0]} did not end within {within_s:g} s") from error
        cpu_s = _children_s() - before
    if process.returncode:
        raise BenchError(f"{' '.join(command[:3])} failed: {wrong.strip()[-300:]}")
    return said, cpu_s


def _children_s() -> float:
    """Return the CPU seconds of all child processes that have ended and been waited for."""
    times = os.times()
    return times.children_user + times.children_system


def figures(per_s: float, cpu_us: float) -> Load:
    """Return a load without service times."""
    return Load(per_s, cpu_us, np.empty(0), np.empty(0, dtype=np.int64))
