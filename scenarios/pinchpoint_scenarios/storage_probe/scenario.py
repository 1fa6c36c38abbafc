"""storage-probe in a plan: a suite's jobs, one after the other, each an operation of the run."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, cast

from ..contract import OK, Endpoint, Filled, Intent, Params, Record, ScenarioContext, Sent, Target
from ..errors import EndpointUnreachable, ScenarioError
from .cell import Cell, CellFigures, Job, ProbePlace
from .folder import FOLDER, Claimed, check_space, claim
from .params import StorageProbeParams
from .process import ProbeStopped, ToolOutput, run
from .tool import ToolFailed, ToolMissing, answer, installed, resolved, too_fast
from .tools import TOOLS

DISK = "disk:"
"""What the names of endpoints begin with that are disks of this machine (``disk:sql.log``): their ``url`` is
a folder on the disk, their option ``host`` the machine's name."""
PROBED = "probed"
"""The event of a cell that was measured."""
PROBE_FAILED = "probe_failed"
"""The event of one that was tried and not measured; ``why`` says why not."""
_FAILED = "tool_failed"


class StorageProbe:
    """Sends a suite's I/O to one disk while the rest of the plan goes on.

    Its jobs follow each other whatever the load model: figures of a disk that two share are neither's.
    """

    use: ClassVar[str] = "storage-probe"
    needs: ClassVar[frozenset[str]] = frozenset()
    writes: ClassVar[bool] = True
    ends: ClassVar[bool] = True
    params_model: ClassVar[type[Params]] = StorageProbeParams

    def __init__(self, context: ScenarioContext) -> None:
        self._context = context
        self._params = cast("StorageProbeParams", context.params)
        self._claimed: Claimed | None = None
        self._turn = threading.Lock()
        self._work = _work(self._params, context.repeat_s)

    def check(self) -> Mapping[str, Any]:
        """The disk is here, and may be written to; each program's version."""
        parent = self._parent()
        if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
            raise EndpointUnreachable(
                f"storage-probe: {parent} is no folder that this user may write to; name another disk"
            )
        found: dict[str, Any] = {}
        for name in dict.fromkeys(job.tool for job in self._jobs()):
            installed(TOOLS[name])
            found[name] = {"server": name}
        return found

    def intent(self) -> Intent:
        """What the suite will write; contacts no server."""
        params, jobs, size = self._params, self._jobs(), self._size()
        folder = self._parent() / FOLDER
        uses_file = any(job.uses_file for job in jobs)
        sent = []
        for job in jobs:
            reads_only = all(cell.read_ratio == 1 for cell in job.cells)
            lasts = f"for {job.seconds:g} s" if job.seconds else "until its work is done"
            room = f", up to {job.room_bytes:,} bytes beside the file" if job.room_bytes else ""
            sent.append(
                Sent(
                    job.name,
                    f"{job.tool}, {lasts}{room}, as fast as the disk answers",
                    1 / len(jobs),
                    0,
                    0 if reads_only else None,
                )
            )
        return Intent(
            (Target(str(folder.parent), f"folder {FOLDER}, made anew"),),
            (Filled("file probe.data", None, size),) if uses_file else (),
            tuple(sent),
            f"the folder {folder}",
            at_most=len(jobs) * params.repetitions,
            notes=() if self._context.repeat_s == 0 else ("it begins anew until the plan's time is over",),
        )

    def prepare(self, progress: Callable[[str], None]) -> None:
        """Make the folder, and write the file whole: new blocks would cost extra later."""
        parent = self._parent()
        check_space(parent, max(self._size(), *(job.room_bytes for job in self._jobs())))
        self._claimed = claim(parent)
        first = [TOOLS[job.tool] for job in self._jobs() if job.uses_file]
        place = self._place(1)
        command = first[0].prepare(place) if first else []
        if command:
            progress(f"writing {self._size() // 2**20:,} MiB to {place.folder}")
            said = run(resolved(first[0], command), place.folder, lambda: False)
            if said.status:
                raise ScenarioError(f"storage-probe: {parent}: {first[0].why(said.stdout, said.stderr)}")

    def session(self, number: int) -> StorageProbeSession:  # noqa: ARG002 -- they all take the next job
        """One that takes the next job when it is its turn."""
        return StorageProbeSession(self)

    def finish(self, *, keep_data: bool) -> None:  # noqa: ARG002 -- the file has no further use
        """Remove the folder."""
        if self._claimed is not None:
            self._claimed.release()

    def next_job(self, record: Record, stop: Callable[[], bool]) -> bool:
        """Do the next job, alone; False where none is left."""
        if self._context.worker:
            return False  # one process does them all: the others would only wait for it
        with self._turn:
            found = next(self._work, None)
            if found is None:
                return False
            trial, pause_s, job = found
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
            return  # the run has ended: half a job is none
        except (ToolFailed, ToolMissing, OSError) as error:
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
        said = ToolOutput("", "", 0)
        for command in tool.commands(job, place):
            said = run(resolved(tool, command), place.folder, stop)
            if said.status:
                raise ToolFailed(f"{tool.program} failed: {tool.why(said.stdout, said.stderr)}")
        return answer(tool, job, place, said.stdout, said.stderr)

    def _report(self, event: str, cell: Cell, trial: int, started: float, **found: Any) -> None:
        """An event: which cell of which disk, and what was found."""
        disk, folder = self._disk()
        device = _device(folder)
        self._context.event(
            event,
            suite=self._params.suite,
            disk=disk,
            folder=str(folder),
            host=socket.gethostname(),
            device=Path(device).name if device else None,
            size_bytes=self._size(),
            memory_bytes=_memory_bytes(),
            cell=asdict(cell),
            name=cell.name,
            trial=trial,
            started_s=started,
            **found,
        )

    def _jobs(self) -> list[Job]:
        return list(self._params.chosen.jobs(self._params.seconds or 0.0))

    def _size(self) -> int:
        return self._params.size or self._params.chosen.size_bytes or int(_memory_bytes() * 2.1)

    def _place(self, trial: int) -> ProbePlace:
        folder = self._parent() / FOLDER
        return ProbePlace(folder, self._size(), _device(folder), _memory_bytes(), trial)

    def _parent(self) -> Path:
        """The folder on the disk. Raises EndpointUnreachable where the farm has no such disk here."""
        return self._disk()[1]

    def _disk(self) -> tuple[str | None, Path]:
        """(``tier.role``, None of a folder that was named; the folder on it). Raises likewise."""
        if self._params.folder is not None:
            return None, Path(self._params.folder)
        disks = {
            name.removeprefix(DISK): endpoint
            for name, endpoint in self._context.endpoints.items()
            if name.startswith(DISK)
        }
        wanted = self._params.disk or (next(iter(disks)) if len(disks) == 1 else None)
        if wanted in disks:
            return wanted, _on_this_machine(str(wanted), disks[str(wanted)])
        listed = ", ".join(sorted(disks)) or "none"
        what = f"has no disk {wanted!r} on this machine" if wanted else "has several disks, or none"
        raise EndpointUnreachable(f"storage-probe: the farm {what}; say params.disk as one of: {listed}")


class StorageProbeSession:
    """Takes the next job when it is its turn.

    Args:
        probe: whose jobs.
    """

    def __init__(self, probe: StorageProbe) -> None:
        self._probe = probe
        self._closed = threading.Event()

    def perform(self, record: Record) -> bool:
        """Do one job; False where all is measured."""
        return self._probe.next_job(record, self._closed.is_set)

    def close(self) -> None:
        """A job that is going on ends now. Safe to call twice."""
        self._closed.set()


def _figures(one: CellFigures) -> dict[str, Any]:
    """As JSON has it, whose keys are no numbers: the histogram as pairs (nanoseconds, how many)."""
    figures = asdict(one)
    times = figures.pop("times_ns")
    return {**figures, "times_ns": sorted(times.items()) if times else None}


def _work(params: StorageProbeParams, repeat_s: float | None) -> Iterator[tuple[int, float, Job]]:
    """(repetition, pause before it, job), over and over as long as ``ScenarioContext.repeat_s`` says."""
    begun = time.monotonic()
    trial = 0
    while trial == 0 or repeat_s is None or time.monotonic() - begun < repeat_s:
        for _ in range(params.repetitions):
            trial += 1
            for number, job in enumerate(params.chosen.jobs(params.seconds or 0.0)):
                pause_s = params.chosen.pause_s if trial > 1 and not number else 0.0
                yield trial, pause_s, job


def _on_this_machine(name: str, disk: Endpoint) -> Path:
    here = socket.gethostname()
    if disk.options.get("host", here) != here:
        raise EndpointUnreachable(
            f"storage-probe: {name} is a disk of {disk.options['host']}, and this load generator runs on "
            f"{here}; let a generator on that machine do it, or give params.folder"
        )
    return Path(disk.url)


def _device(folder: Path) -> str | None:
    """The block device the folder lies on; None where there is none (memory, a network share; it is gone)."""
    try:
        number = folder.stat().st_dev
    except OSError:
        return None
    link = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    return f"/dev/{link.resolve().name}" if link.exists() else None


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _wait(pause_s: float, stop: Callable[[], bool]) -> None:
    until = time.monotonic() + pause_s
    while not stop() and time.monotonic() < until:
        time.sleep(0.2)
