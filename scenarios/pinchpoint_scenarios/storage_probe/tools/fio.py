"""fio: asynchronous or synchronous I/O past the page cache, reported as JSON with whole histograms."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from ..cell import FILE, Cell, CellFigures, CellSeries, Job, ProbePlace
from ..tool import ToolFailed, last_words

_LOG = "log"
"""What the names of its logs begin with; they lie in the folder it runs in."""
_PART = 2**20
"""A thread's part of the file is a whole number of these: as large as the largest block."""
LONG_S = 3600.0
"""From so long on a job's course is kept in steps of ten seconds instead of one."""
_SHORTEST_STEPS = 5
"""A job's course has at least this many steps."""
_NO_DIRECT = ("does not support direct", "Invalid argument", "Operation not supported")


class Fio:
    """One thread, ``libaio`` at a depth or ``psync`` where each write is on the disk before the next.

    Latencies are fio's ``lat``: from the moment the I/O is made to its end, waiting for a place in the
    device's queue included. Where each write is flushed it is opened with O_DSYNC, as SQL Server and
    PostgreSQL's ``open_datasync`` write their logs: the time is that of a commit.
    """

    name = program = package = "fio"

    def version(self) -> Sequence[str]:
        """``fio-3.33``."""
        return [self.program, "--version"]

    def prepare(self, place: ProbePlace) -> Sequence[str]:
        """The command that writes the whole file: blocks that were never written would cost extra later."""
        how = ["--rw=write", "--bs=1M", "--ioengine=libaio", "--iodepth=8", "--direct=1", "--end_fsync=1"]
        return [*self._begin("prepare", place), *how]

    def commands(self, job: Job, place: ProbePlace) -> Sequence[Sequence[str]]:
        """One call of fio."""
        cell = job.cell
        if job.seconds is None or cell.block_bytes is None or cell.read_ratio is None:
            raise ValueError(f"a job for fio needs seconds, a block size and a share of reads: {job}")
        engine = ["--ioengine=libaio", f"--iodepth={(cell.outstanding or 1) // job.threads}"]
        if job.flush_each:
            engine = ["--ioengine=psync", "--sync=dsync"]
        how = [
            f"--rw={_way(cell)}",
            f"--bs={cell.block_bytes}",
            "--direct=1",
            *engine,
            "--time_based",
            f"--runtime={round(job.seconds * 1000)}ms",
            f"--ramp_time={round(settles(job) * 1000)}ms",
            f"--randseed={place.trial}",
            "--norandommap",
            "--lat_percentiles=1",
            "--clat_percentiles=0",
        ]
        if 0 < cell.read_ratio < 1:
            how.append(f"--rwmixread={round(cell.read_ratio * 100)}")
        if cell.random_ratio and cell.random_ratio < 1:
            how.append(f"--percentage_random={round(cell.random_ratio * 100)}")
        if job.flush_every:
            how.append(f"--fdatasync={job.flush_every}")
        if job.threads > 1:
            part = place.size_bytes // job.threads // _PART * _PART
            how += [f"--numjobs={job.threads}", "--group_reporting=1"]
            how += [f"--size={part}", f"--offset_increment={part}"]
        logs = [f"--write_iops_log={_LOG}", f"--write_lat_log={_LOG}", f"--log_avg_msec={_step_ms(job)}"]
        return [[*self._begin("cell", place), *how, *logs, "--per_job_logs=0"]]

    def read(self, job: Job, place: ProbePlace, stdout: str, stderr: str) -> Mapping[Cell, CellFigures]:
        """The figures in fio's JSON and its two logs, which are removed."""
        step_s = _step_ms(job) / 1000
        logs = {name: _taken(place.folder / f"{_LOG}_{name}.log") for name in ("iops", "lat")}
        for name in ("slat", "clat"):
            (place.folder / f"{_LOG}_{name}.log").unlink(missing_ok=True)
        series = course(logs["iops"], logs["lat"], step_s)
        asked_s = None if job.cell.outstanding == 1 else job.seconds
        return {job.cell: measured(stdout, stderr, job.cell.block_bytes or 0, series, asked_s)}

    def why(self, stdout: str, stderr: str) -> str:
        """The reason of a failure, with the remedy where the file system has no direct I/O."""
        words = last_words(stderr, stdout.partition("{")[0])
        if any(sign in words for sign in _NO_DIRECT):
            return (
                f"{words} (a file system without direct I/O, such as tmpfs: its page cache would be "
                "measured, not a disk; give a folder on a disk)"
            )
        return words

    def _begin(self, name: str, place: ProbePlace) -> list[str]:
        return [
            self.program,
            f"--name={name}",
            f"--filename={FILE}",
            f"--size={place.size_bytes}",
            "--output-format=json+",
            "--eta=never",
            "--thread",
        ]


def settles(job: Job) -> float:
    """Seconds before what is measured: the first I/Os meet an empty queue; slow disks fill theirs slowly."""
    return min(max(0.2, (job.seconds or 0.0) / 5), 5.0)


def measured(
    stdout: str,
    stderr: str,
    block_bytes: int,
    series: CellSeries | None = None,
    asked_s: float | None = None,
) -> CellFigures:
    """What fio's JSON says of its one job. Raises ``ToolFailed``.

    Rates are I/Os over the time that was asked for: after it fio waits for those still going on, which it
    does not count then, but whose time and bytes it does (with 32 outstanding at 400 a second it reports
    380). One at a time (``asked_s`` None) the last I/O that began in that time is counted, and fio's own time
    ends
    with it: 18 of 116 ms each in 2 s are 8.6 a second, not 9.
    """
    result = job_of(stdout, stderr)
    ways = [result["read"], result["write"]]
    times: dict[int, int] = {}
    for way in ways:
        for value, count in (way["lat_ns"].get("bins") or {}).items():
            times[int(value)] = times.get(int(value), 0) + int(count)
    ran_s = max(float(way["runtime"]) for way in ways) / 1000
    seconds = ran_s if asked_s is None else min(ran_s, asked_s)
    counts = [int(way["lat_ns"]["N"]) for way in ways]
    total_ns = sum(way["lat_ns"]["mean"] * count for way, count in zip(ways, counts, strict=True))
    reads, writes = (way["total_ios"] / seconds if seconds else 0.0 for way in ways)
    return CellFigures(
        seconds=seconds,
        reads_per_s=reads,
        writes_per_s=writes,
        read_bytes_per_s=reads * block_bytes,
        write_bytes_per_s=writes * block_bytes,
        times_ns=times or None,
        mean_s=total_ns / sum(counts) / 1e9 if any(counts) else None,
        max_s=max(way["lat_ns"]["max"] for way in ways) / 1e9 if any(counts) else None,
        series=series,
    )


def job_of(stdout: str, stderr: str) -> Mapping[str, Any]:
    """The only job of fio's JSON; notes may stand before it. Raises ``ToolFailed``."""
    begins = stdout.find("{\n")
    try:
        [job] = json.loads(stdout[begins:])["jobs"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ToolFailed(
            f"fio did not print the JSON that was expected: {last_words(stderr, stdout)}"
        ) from error
    if job["error"]:
        raise ToolFailed(f"fio: error {job['error']}: {last_words(stderr, stdout[:begins])}")
    result: Mapping[str, Any] = job
    return result


def course(iops_log: str, latency_log: str, step_s: float) -> CellSeries | None:
    """The course of a job from fio's logs: ``time in ms, value, direction, ...``, one line per step and way.

    I/Os per second of reads and writes are added; latencies are means weighted by them. None where fio logged
    nothing (a job shorter than a step).
    """
    rates = _by_step(iops_log, step_s)
    times = _by_step(latency_log, step_s)
    if len(rates) < _SHORTEST_STEPS:
        return None
    latencies: list[float | None] = []
    for step in sorted(rates):
        done = {way: sum(values) for way, values in rates[step].items()}
        known = {way: mean(values) for way, values in times.get(step, {}).items() if done.get(way)}
        weight = sum(done[way] for way in known)
        total = sum(value * done[way] for way, value in known.items())
        latencies.append(total / weight / 1e9 if weight else None)
    iops = tuple(sum(map(sum, rates[step].values())) for step in sorted(rates))
    return CellSeries(step_s, iops, tuple(latencies))


def _by_step(log: str, step_s: float) -> dict[int, dict[str, list[float]]]:
    """Step -> direction -> each thread's value."""
    result: dict[int, dict[str, list[float]]] = {}
    for line in log.splitlines():
        time_ms, value, way, *_ = (part.strip() for part in line.split(","))
        of_step = result.setdefault(round(float(time_ms) / 1000 / step_s), {})
        of_step.setdefault(way, []).append(float(value))
    return result


def _taken(path: Path) -> str:
    if not path.exists():
        return ""
    text = path.read_text(encoding="utf-8")
    path.unlink()
    return text


def _way(cell: Cell) -> str:
    random = bool(cell.random_ratio)
    if cell.read_ratio == 1:
        return "randread" if random else "read"
    if cell.read_ratio == 0:
        return "randwrite" if random else "write"
    return "randrw" if random else "rw"


def _step_ms(job: Job) -> int:
    return 10_000 if (job.seconds or 0) > LONG_S else 1000
