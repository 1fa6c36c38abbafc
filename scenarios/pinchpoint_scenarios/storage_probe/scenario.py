"""Runs a suite's jobs one after the other as the scenario storage-probe.

Each job is an operation of the run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, cast

from ..contract import DISK, OK, Filled, Intent, Params, Record, ScenarioContext, Sent, Target
from ..errors import EndpointUnreachable, ScenarioError
from .cell import Cell, CellFigures, Job, ProbePlace
from .folder import FOLDER
from .params import StorageProbeParams
from .place import DiskWithFolder, LocalDisk, disk_of
from .process import ProbeStopped, ToolOutput
from .remote import HostUnreachable
from .tool import ToolFailed, ToolMissing, answer, too_fast
from .tools import TOOLS

PROBED = "probed"
"""Name of the event for a measured cell."""
PROBE_FAILED = "probe_failed"
"""Name of the event for a cell that could not be measured; its field ``why`` has the reason."""
_FAILED = "tool_failed"


class StorageProbe:
    """Sends a suite's I/O to one disk while the other scenarios of the plan run.

    Jobs run one after the other under every load model, because simultaneous jobs would share the disk and
    neither result would describe it.
    """

    use: ClassVar[str] = "storage-probe"
    needs: ClassVar[frozenset[str]] = frozenset()
    writes: ClassVar[bool] = True
    ends: ClassVar[bool] = True
    params_model: ClassVar[type[Params]] = StorageProbeParams

    def __init__(self, context: ScenarioContext) -> None:
        self._context = context
        self._params = cast("StorageProbeParams", context.params)
        self._turn = threading.Lock()
        self._work = _work(self._params, context.repeat_s)

    def check(self) -> Mapping[str, Any]:
        """Check that the disk exists and is writable, and return the version of each tool."""
        tools = [TOOLS[name] for name in dict.fromkeys(job.tool for job in self._jobs())]
        return {name: {"server": said} for name, said in self._disk.check(tools).items()}

    def intent(self) -> Intent:
        """Return what the suite will write, without contacting a server."""
        params, jobs, folder = self._params, self._jobs(), self._disk.words
        size = self._size(self._disk.memory_bytes)
        uses_file = any(job.uses_file for job in jobs)
        sent = []
        for job in jobs:
            reads_only = all(cell.read_ratio == 1 for cell in job.cells)
            lasts = f"for {job.seconds:g} s" if job.seconds else "until its work is done"
            sent.append(
                Sent(
                    job.name,
                    f"{job.tool}, {lasts}, as fast as the disk answers",
                    1 / len(jobs),
                    0,
                    0 if reads_only else None,
                )
            )
        return Intent(
            (Target(str(Path(folder).parent), f"folder {FOLDER}, made anew"),),
            (Filled("file probe.data", None, size),) if uses_file else (),
            tuple(sent),
            f"the folder {folder}",
            at_most=len(jobs) * params.repetitions,
            notes=() if self._context.repeat_s == 0 else ("it begins anew until the plan's time is over",),
        )

    def prepare(self, progress: Callable[[str], None]) -> None:
        """Create the folder and write the whole file, because a first write to a block costs extra time."""
        size = self._size(self._disk.look().memory_bytes) or 0
        self._disk.prepare(size)
        first = [TOOLS[job.tool] for job in self._jobs() if job.uses_file]
        place = self._place(1)
        command = first[0].prepare(place) if first else []
        if command:
            progress(f"writing {size // 2**20:,} MiB to {self._disk.words}")
            result = self._disk.machine.run(first[0], command, lambda: False)
            if result.status:
                why = first[0].why(result.stdout, result.stderr)
                raise ScenarioError(f"storage-probe: {place.folder.parent}: {why}")

    def session(self, number: int) -> StorageProbeSession:  # noqa: ARG002 -- they all take the next job
        """Return a session that takes the next job in turn."""
        return StorageProbeSession(self)

    def finish(self, *, keep_data: bool) -> None:  # noqa: ARG002 -- the file has no further use
        """Remove the folder."""
        self._disk.release()

    def next_job(self, record: Record, stop: Callable[[], bool]) -> bool:
        """Run the next job alone. Returns False if no job is left."""
        if self._context.worker:
            return False  # one process runs all jobs: other processes would only wait
        with self._turn:
            result = next(self._work, None)
            if result is None:
                return False
            trial, pause_s, job = result
            if pause_s:
                _wait(pause_s, stop)
            self._perform(job, trial, record, stop)
        return True

    def _perform(self, job: Job, trial: int, record: Record, stop: Callable[[], bool]) -> None:
        started = time.time()
        begun_ns = time.perf_counter_ns()
        try:
            measured = self._measured(job, trial, stop)
        except ProbeStopped:
            return  # the run has ended: a partial job has no result
        except (ToolFailed, ToolMissing, HostUnreachable, EndpointUnreachable, OSError) as error:
            record(job.name, _FAILED, begun_ns, time.perf_counter_ns())
            for cell in job.cells:
                self._report(PROBE_FAILED, cell, trial, started, why=str(error))
            return
        moved = sum(
            (one.seconds or 0.0) * ((one.read_bytes_per_s or 0.0) + (one.write_bytes_per_s or 0.0))
            for one in measured.values()
        )
        record(job.name, OK, begun_ns, time.perf_counter_ns(), round(moved))
        for cell in job.cells:
            if cell in measured:
                self._report(PROBED, cell, trial, started, **_figures(measured[cell]))
            else:
                self._report(PROBE_FAILED, cell, trial, started, why=too_fast(job.tool, "size"))

    def _measured(self, job: Job, trial: int, stop: Callable[[], bool]) -> Mapping[Cell, CellFigures]:
        tool, place = TOOLS[job.tool], self._place(trial)
        result = ToolOutput("", "", 0)
        for command in tool.commands(job, place):
            result = self._disk.machine.run(tool, command, stop)
            if result.status:
                raise ToolFailed(f"{tool.program} failed: {tool.why(result.stdout, result.stderr)}")
        with self._disk.machine.results() as results:
            return answer(tool, job, replace(place, folder=results), result.stdout, result.stderr)

    def _report(self, event: str, cell: Cell, trial: int, started: float, **value: Any) -> None:
        """Write an event with the cell, the disk and the result."""
        try:
            looked = self._disk.look()
        except EndpointUnreachable:  # this process never reached the host
            return
        self._context.event(
            event,
            suite=self._params.suite,
            disk=self._named[0],
            folder=str(looked.folder),
            host=looked.host,
            device=looked.device,
            size_bytes=self._size(looked.memory_bytes),
            memory_bytes=looked.memory_bytes,
            cell=asdict(cell),
            name=cell.name,
            trial=trial,
            started_s=started,
            **value,
        )

    def _jobs(self) -> list[Job]:
        return list(self._params.chosen.jobs(self._params.seconds or 0.0))

    def _size(self, memory_bytes: int | None) -> int | None:
        """Return the size of the file in bytes; None if it depends on an unknown memory size."""
        given = self._params.size or self._params.chosen.size_bytes
        return given or (int(memory_bytes * 2.1) if memory_bytes is not None else None)

    def _place(self, trial: int) -> ProbePlace:
        looked = self._disk.look()
        return ProbePlace(
            folder=Path(looked.folder) / FOLDER,
            size_bytes=self._size(looked.memory_bytes) or 0,
            device=f"/dev/{looked.device}" if looked.device else None,
            memory_bytes=looked.memory_bytes,
            trial=trial,
            root=looked.root,
        )

    @property
    def _disk(self) -> DiskWithFolder:
        return self._named[1]

    @cached_property
    def _named(self) -> tuple[str | None, DiskWithFolder]:
        """Return ``tier.role`` of the disk (None if a folder was given), and the disk.

        Raises EndpointUnreachable if the farm has no such disk.
        """
        if self._params.folder is not None:
            return None, LocalDisk(Path(self._params.folder))
        disks = {
            name.removeprefix(DISK): endpoint
            for name, endpoint in self._context.endpoints.items()
            if name.startswith(DISK)
        }
        wanted = self._params.disk or (next(iter(disks)) if len(disks) == 1 else None)
        if wanted in disks:
            return wanted, disk_of(str(wanted), disks[str(wanted)])
        listed = ", ".join(sorted(disks)) or "none"
        what = f"has no disk {wanted!r}" if wanted else "has several disks, or none"
        raise EndpointUnreachable(
            f"storage-probe: the farm {what} on this machine or over ssh; say params.disk as one of: {listed}"
        )


class StorageProbeSession:
    """A session that takes the next job in turn.

    Args:
        probe: scenario whose jobs the session runs.
    """

    def __init__(self, probe: StorageProbe) -> None:
        self._probe = probe
        self._closed = threading.Event()

    def perform(self, record: Record) -> bool:
        """Run one job. Returns False if all jobs are done."""
        return self._probe.next_job(record, self._closed.is_set)

    def close(self) -> None:
        """Stop the current job at once. A second call does nothing."""
        self._closed.set()


def _figures(one: CellFigures) -> dict[str, Any]:
    """Return the figures as JSON.

    The histogram becomes pairs (nanoseconds, count), because JSON keys cannot be numbers.
    """
    figures = asdict(one)
    times = figures.pop("times_ns")
    return {**figures, "times_ns": sorted(times.items()) if times else None}


def _work(params: StorageProbeParams, repeat_s: float | None) -> Iterator[tuple[int, float, Job]]:
    """Yield repetition, pause before the job in seconds, and job.

    The suite is repeated until ``ScenarioContext.repeat_s`` is over.
    """
    begun = time.monotonic()
    trial = 0
    while trial == 0 or repeat_s is None or time.monotonic() - begun < repeat_s:
        for _ in range(params.repetitions):
            trial += 1
            for number, job in enumerate(params.chosen.jobs(params.seconds or 0.0)):
                pause_s = params.chosen.pause_s if trial > 1 and not number else 0.0
                yield trial, pause_s, job


def _wait(pause_s: float, stop: Callable[[], bool]) -> None:
    until = time.monotonic() + pause_s
    while not stop() and time.monotonic() < until:
        time.sleep(0.2)
