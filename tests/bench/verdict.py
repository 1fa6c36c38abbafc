"""Measure time and memory of a verdict on eight hours of twenty hosts: ``make bench SUITE=verdict``.

A run of 115 million samples, and runs of a tenth and a third of it, are written to a temporary folder (1.2 GB
at most, removed afterwards). The command analyses each run in a process of its own, imports and verdict.json
included. The peer is DuckDB's mean and 95th percentile of each series, on the same file directly afterwards.
Both have two cores. A verdict that does not name the disk at its limit is an error.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench import long_run
from bench.load import BenchError
from bench.rows import Row

from pinchpoint.store.schema import SAMPLES, VERDICT

WHOLE_S = 8 * 3600
PARTS = {"tenth": WHOLE_S // 10, "third": WHOLE_S // 3, "whole": WHOLE_S}
GOAL_S, GOAL_GB, GOAL_LINEAR = 8.0, 1.2, 1.3
_REPORT_S, _REPORT_MB = 10.0, 3.0
"""Goals of the whole run. The linear goal bounds the time per further sample above a third of the run,
divided by the time per further sample below a third."""
_MINUTE_S, _TRIES = 60, 3
_START_GOALS_S = (0.3, 1.5, 2.0)
_COMMAND = Path(sys.executable).with_name("pinchpoint")
_CORES = 2
_EXPECTED = {"kind": "disk_cap", "tier": "sql", "host": "sql1", "role": "log"}

_PEER = """
import duckdb, sys
connection = duckdb.connect(config={"threads": 2, "memory_limit": "2GB"})
connection.execute(
    "SELECT host, metric, instance, avg(value), approx_quantile(value, 0.95) "
    "FROM read_parquet(?) GROUP BY ALL",
    [sys.argv[1]],
).fetchall()
"""


class LeasedItem(NamedTuple):
    """Resources that a process used: elapsed seconds, CPU seconds, and peak memory in bytes."""

    wall_s: float
    cpu_s: float
    memory_bytes: float


def rows(parts: Sequence[str] = tuple(PARTS)) -> Iterator[Row]:
    """Yield the rows of each part, the smallest first, then the row of the time per further sample.

    Raises:
        BenchError: a process failed, or the verdict is wrong.
    """
    yield from _start()
    taken: dict[str, tuple[int, LeasedItem]] = {}
    for part in parts:
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            run = Path(folder) / "run"
            samples = long_run.write_run(run, PARTS[part])
            ours = _taken([_COMMAND, "analyse", run, "--json"])
            _check(run)
            peer = _taken([sys.executable, "-c", _PEER, run / SAMPLES])
            name = f"{int(samples / 1e6)}m"
            yield from _rows_of(name, ours, peer, whole=part == "whole")
            report = _taken([_COMMAND, "report", run, "--format", "html", "--out", folder])
            yield from _report_rows(name, report, Path(folder), whole=part == "whole")
        taken[part] = samples, ours
    if len(taken) == len(PARTS):
        yield _linear(*(_per_sample(taken, *pair) for pair in (("tenth", "third"), ("third", "whole"))))


def _start() -> Iterator[Row]:
    """Yield the rows of frequent commands: the help, the verdict of a minute, its report."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        run = Path(folder) / "run"
        long_run.write_run(run, _MINUTE_S)
        commands: dict[str, list[str | Path]] = {
            "pinchpoint --help": ["--help"],
            "verdict of a run of one minute": ["analyse", run],
            "page of a run of one minute": ["report", run, "--format", "html", "--out", folder],
        }
        for (name, arguments), goal_s in zip(commands.items(), _START_GOALS_S, strict=True):
            value = statistics.median(_taken([_COMMAND, *arguments]).wall_s for _ in range(_TRIES))
            yield Row(name, value, "s", goal=goal_s, met=value <= goal_s)


def _linear(early: float, late: float) -> Row:
    """Return the row of the time per further sample at the end, divided by the time at the beginning."""
    name = "verdict, time per further sample, last to first"
    if min(early, late) <= 0:
        why = "a longer run took less time than a shorter one: something else was going on here"
        return Row(name, None, "x", goal=GOAL_LINEAR, met=False, note=why)
    return Row(name, late / early, "x", goal=GOAL_LINEAR, met=late / early <= GOAL_LINEAR)


def _per_sample(taken: Mapping[str, tuple[int, LeasedItem]], less: str, more: str) -> float:
    """Return seconds per further sample of the larger part, which excludes each verdict's fixed cost."""
    (few, quick), (many, slow) = taken[less], taken[more]
    return (slow.wall_s - quick.wall_s) / (many - few)


def _rows_of(name: str, ours: LeasedItem, peer: LeasedItem, *, whole: bool) -> Iterator[Row]:
    ratio = ours.wall_s / peer.wall_s
    note = f"CPU time: {ours.cpu_s:.1f} s, the peer's {peer.cpu_s:.1f} s"
    goal_s, goal_gb = (GOAL_S, GOAL_GB) if whole else (None, None)
    size = ours.memory_bytes / 1e9
    yield Row(
        f"verdict_{name}_s", ours.wall_s, "s", "duckdb", peer.wall_s, ratio,
        goal_s, met=goal_s is None or ours.wall_s <= goal_s, note=note,
    )  # fmt: skip
    yield Row(f"verdict_{name}_gb", size, "GB", goal=goal_gb, met=goal_gb is None or size <= goal_gb)


def _report_rows(name: str, taken: LeasedItem, folder: Path, *, whole: bool) -> Iterator[Row]:
    """Yield the rows of the report: its time and its size."""
    size = (folder / "report.html").stat().st_size / 1e6
    note = f"{taken.memory_bytes / 1e9:.2f} GB"
    for unit, value, goal in (("s", taken.wall_s, _REPORT_S), ("MB", size, _REPORT_MB)):
        met = not whole or value <= goal
        yield Row(
            f"report_{name}_{unit.lower()}", value, unit, goal=goal if whole else None, met=met, note=note
        )


def _taken(command: Sequence[str | Path]) -> LeasedItem:
    """Run a command on two cores, discard its output, and return what it used. Raises BenchError."""
    cores = sorted(os.sched_getaffinity(0))[:_CORES]
    with tempfile.TemporaryFile() as errors:
        begun = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        os.sched_setaffinity(process.pid, cores)
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.monotonic() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            said = errors.read().decode(errors="replace")[-500:]
            raise BenchError(
                f"{Path(command[0]).name} {command[1]}: exit status {process.returncode}: {said}"
            )
    return LeasedItem(wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024.0)


def _check(run: Path) -> None:
    found = json.loads((run / VERDICT).read_text(encoding="utf-8"))["bottleneck"] or {}
    named = {key: found.get(key) for key in _EXPECTED}
    if named != _EXPECTED:
        raise BenchError(f"the verdict is wrong: it names {named}, the truth is {_EXPECTED}")
