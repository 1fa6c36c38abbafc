"""Measure the CPU cost of recording one operation: note, collect once a second, count, encode, write."""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path
from statistics import median

from bench.pairs import PAIRS
from bench.rows import Row

from pinchpoint.loadgen.recorder import Recorder
from pinchpoint.store.journal import JournalWriter

_GOAL_US = 1.5
_SECONDS = 10
_PER_S = 10_000


def row() -> Row:
    """Return the row: the recorder's CPU time per operation, at ten thousand operations a second."""
    value = median(_once_us() for _ in range(PAIRS))
    return Row("recording one operation", value, "us", goal=_GOAL_US, met=value <= _GOAL_US)


def _once_us() -> float:
    chance = random.Random(1)
    # lognormal with a median of half a millisecond
    lengths_ns = [round(chance.lognormvariate(13.1, 0.4)) for _ in range(_PER_S)]
    recorder = Recorder()
    add = recorder.user("bench").add
    taken_s = 0.0
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        journal = JournalWriter(Path(folder), "bench")
        for second in range(_SECONDS):
            begins = recorder.counter_ns((1_000_000_000 + second) * 1_000_000_000)
            starts = [begins + number * (900_000_000 // _PER_S) for number in range(_PER_S)]
            before = time.process_time()
            for start, length in zip(starts, lengths_ns, strict=True):
                add("log_append", "ok", start, start + length, 200)
            seconds = recorder.take(1_000_000_000 + second + 1)
            rows = seconds.rows("bench")
            journal.write_operations(rows, time.time_ns())
            seconds.progress()
            taken_s += time.process_time() - before
            assert sum(row[6] for row in rows) == _PER_S
        journal.close()
    return taken_s / _SECONDS / _PER_S * 1e6
