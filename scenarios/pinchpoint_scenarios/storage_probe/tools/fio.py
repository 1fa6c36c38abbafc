"""Runs fio: asynchronous or synchronous I/O past the page cache, reported as JSON with full histograms."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from ..cell import FILE, Cell, CellFigures, CellSeries, Job, ProbePlace
from ..tool import ToolFailed, last_words

_LOG = "log"
"""Prefix of the names of fio's logs, which are written to the folder of the command."""
_PART = 2**20
"""The part of the file of each thread is a multiple of this size, which is the largest block."""
LONG_S = 3600.0
"""Duration in seconds above which the series of a job has steps of ten seconds instead of one."""
_SHORTEST_STEPS = 5
"""Smallest number of steps of a job's series."""
_NO_DIRECT = ("does not support direct", "Invalid argument", "Operation not supported")


class Fio:
    """Runs fio: ``libaio`` with a queue depth, or ``psync`` if each write is flushed before the next.

    Latencies are fio's ``lat``: the time from the start of an I/O to its end, including the wait for a place
    in the queue of the device. If each write is flushed, the file is opened with O_DSYNC, as SQL Server and
    PostgreSQL's ``open_datasync`` open their logs. The latency is then that of a commit.
    """

    name = program = package = "fio"

    def version(self) -> Sequence[str]:
        """Return the command that prints a version such as ``fio-3.33``."""
        return [self.program, "--version"]

    def prepare(self, place: ProbePlace) -> Sequence[str]:
        """Return the command that writes the whole file, because a first write to a block takes longer."""
        how = ["--rw=write", "--bs=1M", "--ioengine=libaio", "--iodepth=8", "--direct=1", "--end_fsync=1"]
        return [*self._begin("prepare", place), *how]

    def commands(self, job: Job, place: ProbePlace) -> Sequence[Sequence[str]]:
        """Return one call of fio."""
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
        """Return the figures in fio's JSON and in its two logs. The logs are removed."""
        step_s = _step_ms(job) / 1000
        logs = {name: _taken(place.folder / f"{_LOG}_{name}.log") for name in ("iops", "lat")}
        for name in ("slat", "clat"):
            (place.folder / f"{_LOG}_{name}.log").unlink(missing_ok=True)
        series = course(logs["iops"], logs["lat"], step_s)
        asked_s = None if job.cell.outstanding == 1 else job.seconds
        return {job.cell: measured(stdout, stderr, job.cell.block_bytes or 0, series, asked_s)}

    def why(self, stdout: str, stderr: str) -> str:
        """Return the reason of a failure; with a remedy if the file system has no direct I/O."""
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
    """Return the seconds before the measurement.

    The first I/Os meet an empty queue, and slow disks need time to fill their queue.
    """
    return min(max(0.2, (job.seconds or 0.0) / 5), 5.0)


def measured(
    stdout: str,
    stderr: str,
    block_bytes: int,
    series: CellSeries | None = None,
    asked_s: float | None = None,
) -> CellFigures:
    """Return the figures of the only job in fio's JSON. Raises ``ToolFailed``.

    ``asked_s`` is the requested duration in seconds; None for a single outstanding I/O. After that time fio
    waits for the outstanding I/Os. It adds their time and bytes but not their number, so its own rate is too
    low: 380 instead of 400 per second with 32 outstanding. The rate is therefore calculated over the
    requested time. With one outstanding I/O, fio counts the last I/O and its time: 18 I/Os of 116 ms in 2 s
    are 8.6 per second and not 9.
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
    """Return the only job in fio's JSON. Other text may stand before the JSON. Raises ``ToolFailed``."""
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
    """Return the rate and the latency over time from fio's logs.

    A log has lines ``time in ms, value, direction, ...`` for each step and direction. The I/Os per second of
    reads and writes are added, and latencies are means weighted by them. Returns None if the job was too
    short for a series.
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
    """Return step -> direction -> values of all threads."""
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
