"""Measures which load this machine can generate now, by its available CPU and the delay of its timers."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass

from pinchpoint.base import units
from pinchpoint_collectors.environment import child_environment

_SPIN_S = 1.5
_TIMER_S = 1.5
_PAUSE_S = 0.005
_LATE_S = 0.005
"""Delay in seconds up to which an operation counts as sent in time (``analysis.thresholds.SEND_LAG_S``)."""
_CORES = 2
"""Cores that the demo keeps busy at full load: one for its servers, one for its load generators."""
_FULL = 0.9
"""Ratio from which the load is not reduced, because two calibrations differ by up to 10 %."""
_LEAST = 0.05

_SPIN = """
import sys, time
end_s = time.monotonic() + float(sys.argv[1])
began_s, began_cpu_s = time.monotonic(), time.process_time()
while time.monotonic() < end_s:
    pass
print((time.process_time() - began_cpu_s) / (time.monotonic() - began_s))
"""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The result of a calibration.

    Attributes:
        cores: number of requested cores: the number that the demo uses, or all cores.
        left_cores: number of cores that were available.
        late_s: 99th percentile of the delay of a timer, in seconds.
    """

    cores: int
    left_cores: float
    late_s: float

    @property
    def load_ratio(self) -> float:
        """Return the share of the demo's load that this machine can generate, at most 1."""
        by_cpu = self.left_cores / self.cores
        by_timer = _LATE_S / self.late_s if self.late_s > 0 else 1.0
        least = min(by_cpu, by_timer)
        return 1.0 if least >= _FULL else max(_LEAST, least)

    def words(self) -> str:
        """Return the result as the start of a sentence."""
        return (
            f"this machine gave {self.left_cores:.1f} of the {self.cores} cores that the demo asked for, and "
            f"woke a timer {units.seconds(self.late_s)} late (p99)"
        )


def calibrate() -> Calibration:
    """Measure the machine, which takes three seconds."""
    cores = min(_CORES, len(os.sched_getaffinity(0)))
    late_s = _timer_late_s()
    spinning = [
        subprocess.Popen(
            [sys.executable, "-S", "-c", _SPIN, str(_SPIN_S)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=child_environment(),
        )
        for _ in range(cores)
    ]
    try:
        got = [float(one.communicate(timeout=20 * _SPIN_S)[0]) for one in spinning]
    except (subprocess.TimeoutExpired, ValueError):
        got = []  # a process that does not end leaves nothing behind
    finally:
        for one in spinning:
            one.kill()
            one.communicate()
    return Calibration(cores, sum(got), late_s)


def _timer_late_s() -> float:
    late = []
    end_s = time.monotonic() + _TIMER_S
    while (now_s := time.monotonic()) < end_s:
        time.sleep(_PAUSE_S)
        late.append(time.monotonic() - now_s - _PAUSE_S)
    late.sort()
    return late[int(len(late) * 0.99)]
