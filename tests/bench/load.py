"""What one measurement of a load found, whoever made the load."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_PUNCTUAL_NICE = -10
LIMIT_S = 120.0
"""How long a program of a peer may take."""


class BenchError(Exception):
    """A measurement that is none: the sentence says why."""


@dataclass(frozen=True, slots=True)
class Load:
    """A load over some seconds.

    Attributes:
        per_s: operations that succeeded, per second.
        cpu_us: CPU time of the process that made the load, per operation, in microseconds.
        times_us: service times, ascending: each operation's, or what each counter of a histogram stands for.
        counts: how many operations each of them is.
    """

    per_s: float
    cpu_us: float
    times_us: npt.NDArray[np.float64]
    counts: npt.NDArray[np.int64]

    def percentile_us(self, percent: float) -> float:
        """The smallest time that so many percent of the operations did not exceed."""
        reached = np.cumsum(self.counts)
        return float(self.times_us[np.searchsorted(reached, reached[-1] * percent / 100)])


def take_place(pid: int, *, punctual: bool) -> None:
    """Give the peer the place a generator takes (``loadgen.local``): its core, and who goes first there.

    Args:
        pid: the process.
        punctual: whether it has a schedule to keep.
    """
    os.sched_setaffinity(pid, cores()[1])
    if not punctual:
        os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))
    elif os.geteuid() == 0:
        os.setpriority(os.PRIO_PROCESS, pid, _PUNCTUAL_NICE)


def cores() -> tuple[list[int], list[int]]:
    """(the server's cores, the one of whoever makes the load): apart where there are two, as in a run."""
    have = sorted(os.sched_getaffinity(0))
    return (have[:-1], have[-1:]) if len(have) > 1 else (have, have)


def measured_run(
    command: Sequence[str], environment: Mapping[str, str] | None = None, within_s: float = LIMIT_S
) -> tuple[str, float]:
    """(what a program printed, the CPU seconds it took), in the place of a generator.

    Raises:
        BenchError: it failed, or did not end in time.
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
    """CPU seconds of all children that have been waited for."""
    times = os.times()
    return times.children_user + times.children_system


def figures(per_s: float, cpu_us: float) -> Load:
    """A load of which no service times are known."""
    return Load(per_s, cpu_us, np.empty(0), np.empty(0, dtype=np.int64))
