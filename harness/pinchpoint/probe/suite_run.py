"""Runs one probe: estimate, safety checks, suite, files, verdict."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from pinchpoint.base import units
from pinchpoint.base.errors import ExitStatus, FarmUnavailable, InputError
from pinchpoint.base.interrupts import Interrupts
from pinchpoint.base.redact import masked
from pinchpoint.probe import record, words
from pinchpoint.probe.record import Options, Probe, State, Trial
from pinchpoint.probe.target import ProbeTarget, explained
from pinchpoint.probe.verdict import ProbeVerdict
from pinchpoint.store.write import free_path
from pinchpoint_collectors.common.times import utc
from pinchpoint_infra.catalogue import profile
from pinchpoint_scenarios.errors import ScenarioError
from pinchpoint_scenarios.storage_probe import (
    Cell,
    CellFigures,
    Job,
    ProbePlace,
    Suite,
    Tool,
    ToolFailed,
    ToolMissing,
    suite,
)
from pinchpoint_scenarios.storage_probe.params import LEAST_BYTES, UNTIMED
from pinchpoint_scenarios.storage_probe.place import ProbedMachine
from pinchpoint_scenarios.storage_probe.process import ProbeStopped, ToolOutput
from pinchpoint_scenarios.storage_probe.tool import answer, too_fast
from pinchpoint_scenarios.storage_probe.tools.fio import settles

# Progress of a probe on stderr: a live table on a terminal, else one line per measurement.

_ROWS = 24


class ProbeDisplay:
    """Shows the progress of a probe.

    Args:
        probe: the probe that the driver fills.
        jobs: number of planned measurements.
    """

    def __init__(self, probe: Probe, jobs: int) -> None:
        self._probe = probe
        self._jobs = jobs
        self._done = 0
        self._now = ""
        self._console = Console(stderr=True)
        self._live = Live(
            console=self._console, get_renderable=self._drawn, refresh_per_second=2, transient=True
        )

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._live.stop()

    def say(self, sentence: str) -> None:
        """Print a sentence that stays on the screen."""
        self._console.print(Text(masked(sentence)), highlight=False, soft_wrap=True)

    def begins(self, job: Job, trial: int) -> None:
        """Note the start of a job."""
        self._now = f"{job.name}, {trial} of {self._probe.options.repeat}"

    def ended(self, job: Job) -> None:
        """Note the end of a job, when each of its cells has one more trial."""
        self._done += 1
        if not self._console.is_terminal:
            for cell in job.cells:
                one = self._probe.cells[cell][-1]
                self.say(f"[{self._done}/{self._jobs}] {cell.name} ({one.number}): {reported(one)}")

    def _drawn(self) -> Group:
        made = Table(box=None, pad_edge=False)
        for title in ("", "I/Os per second", "bytes per second", "latency", "longest", "trial"):
            made.add_column(title, justify="left" if not title else "right", no_wrap=True)
        for cell, one in self._latest():
            made.add_row(
                Text(cell.name),
                units.per_second(one.iops),
                units.of_metric("_bytes_per_s", one.bytes_per_s),
                units.seconds(one.mean_s),
                units.seconds(one.max_s),
                str(one.number),
            )
        return Group(made, Text(f"{self._done} of {self._jobs} measured; now {self._now}"))

    def _latest(self) -> list[tuple[Cell, Trial]]:
        """The newest trial of each of the cells that were measured last."""
        rows = [(cell, trials[-1]) for cell, trials in list(self._probe.cells.items()) if trials]
        rows.sort(key=lambda row: row[1].started)
        return rows[-_ROWS:]


def reported(trial: Trial) -> str:
    """One trial in words."""
    if trial.failed:
        return f"not measured: {trial.failed}"
    words = [units.per_second(trial.iops)] if trial.iops is not None else []
    words += [units.of_metric("_bytes_per_s", trial.bytes_per_s)] if trial.bytes_per_s is not None else []
    words += [f"{units.seconds(trial.mean_s)} each"] if trial.mean_s is not None else []
    return ", ".join(words)


# Runs the jobs of a suite, repeats the whole list, and saves each result at once.

_SAVE_EVERY_S = 5.0
_PAUSE_STEP_S = 0.2
_START_S = 0.5
"""Approximate seconds to start and end a tool."""


@dataclass(frozen=True, slots=True)
class ProbeProgress:
    """Callbacks between the driver and its caller.

    Attributes:
        stop: returns whether the user wants to stop.
        say: receives a sentence for the user.
        begins: receives a job that begins, and the number of its trial.
        ended: receives a job that ended.
        save: saves the probe in its present state.
    """

    stop: Callable[[], bool]
    say: Callable[[str], None]
    begins: Callable[[Job, int], None]
    ended: Callable[[Job], None]
    save: Callable[[Probe], None]


@dataclass(slots=True)
class SuiteDriver:
    """Runs one suite on one disk.

    Args:
        suite: the suite to run.
        probe: the probe with the measurements so far; the driver adds further ones.
        machine: the machine that runs the tools.
        watch: the callbacks for progress.
    """

    suite: Suite
    probe: Probe
    machine: ProbedMachine
    watch: ProbeProgress
    _saved: float = field(default=0.0, init=False)

    def run(self) -> None:
        """Measure what is missing and set ``probe.state``. Raises FarmUnavailable."""
        probe = self.probe
        jobs = self.suite.jobs(probe.options.time_per_cell_s or 0.0)
        for job in jobs:
            for cell in job.cells:
                probe.cells.setdefault(cell, [])
        missing = self._missing(jobs)
        try:
            self._prepare([job for job in jobs if job.tool not in missing])
            for trial in range(1, probe.options.repeat + 1):
                left = unmeasured(probe, jobs, trial)
                if trial > 1 and left:
                    self._pause(self.suite.pause_s)
                for job in self._chosen(left, trial):
                    self._one(job, trial, missing.get(job.tool))
                jobs = self._kept(jobs)
            probe.state = "finished"
        except ProbeStopped:
            probe.state = "interrupted"
        except FarmUnavailable:
            if any(probe.cells.values()):
                self._end("interrupted")
            raise
        self._end(probe.state)
        if not any(one.failed is None for trials in probe.cells.values() for one in trials):
            self._nothing()

    def _chosen(self, left: Sequence[Job], trial: int) -> Iterator[Job]:
        """The jobs to run: all, or with a bisected suite the lowest, the highest and the bisecting ones.

        Each job is measured before the next one is chosen. A resumed probe uses its existing measurements.
        """
        if not self.suite.bisected or trial > 1:
            yield from left
            return
        workloads: dict[str, list[Cell]] = {}
        for cell in self.probe.cells:
            workloads.setdefault(cell.workload, []).append(cell)
        by_cell = {job.cell: job for job in left}
        for cells in workloads.values():
            ordered = sorted(cells, key=lambda cell: cell.outstanding or 0)
            low, high = 0, len(ordered) - 1
            for at in (low, high):
                yield from [by_cell[ordered[at]]] if ordered[at] in by_cell else []
            # If the lowest depth is above the line or the highest below it, there is no crossing between.
            if self._above(ordered[low]) is not False or self._above(ordered[high]) is not True:
                continue
            while high - low > 1:
                middle = (low + high) // 2
                yield from [by_cell[ordered[middle]]] if ordered[middle] in by_cell else []
                above = self._above(ordered[middle])
                if above is None:
                    break
                low, high = (low, middle) if above else (middle, high)

    def _above(self, cell: Cell) -> bool | None:
        """Whether the mean latency of a cell is at or above the line; None if no latency was measured."""
        known = [one.mean_s for one in self.probe.cells[cell] if one.mean_s is not None]
        return known[-1] >= self.probe.options.line_s if known else None

    def _kept(self, jobs: Sequence[Job]) -> Sequence[Job]:
        """The jobs of the next repetition, without the cells that a bisection did not need."""
        if not self.suite.bisected:
            return jobs
        left = [cell for cell, trials in self.probe.cells.items() if not trials]
        if not left:
            return jobs
        depths: dict[str, list[str]] = {}
        for cell in left:
            depths.setdefault(cell.workload, []).append(str(cell.outstanding))
            del self.probe.cells[cell]
        jobs = [job for job in jobs if job.cell in self.probe.cells]
        total = len(left) + len(jobs)
        each = "; ".join(f"{name}: {', '.join(own)}" for name, own in depths.items())
        self.probe.warnings.append(
            f"left out {len(left)} of {total} cells, as the queue depth at which the latency crosses "
            f"{units.seconds(self.probe.options.line_s)} was found without them: {each}"
        )
        return jobs

    def _end(self, state: State) -> None:
        self.probe.state, self.probe.ended = state, utc()
        self.watch.save(self.probe)

    def _missing(self, jobs: Sequence[Job]) -> dict[str, str]:
        """Tool -> why it is missing; saves the versions. Raises FarmUnavailable if all are missing."""
        result: dict[str, str] = {}
        for name in dict.fromkeys(job.tool for job in jobs):
            try:
                tool = self.machine.tool(name)
                said = self._ran(tool, tool.version(), lambda: False)
                self.probe.versions[tool.name] = version_of(said.stdout + said.stderr)
            except ToolMissing as error:
                result[name] = str(error)
                self.watch.say(str(error))
            except ToolFailed as error:
                raise FarmUnavailable(str(error)) from error
        if result and len(result) == len({job.tool for job in jobs}):
            raise FarmUnavailable("\n".join(result.values()))
        self.probe.warnings += [why for why in result.values() if why not in self.probe.warnings]
        return result

    def _prepare(self, jobs: Sequence[Job]) -> None:
        tools = [self.machine.tool(job.tool) for job in jobs if job.uses_file]
        place = self._place(1)
        command = tools[0].prepare(place) if tools else []
        if not command:
            return
        begun = time.monotonic()
        try:
            self._called(tools[0], [command])
        except ToolFailed as error:
            raise FarmUnavailable(str(error)) from error
        lasted = time.monotonic() - begun
        self.probe.prepared = {"bytes": place.size_bytes, "seconds": lasted}

    def _one(self, job: Job, trial: int, missing: str | None) -> None:
        self.watch.begins(job, trial)
        started, failed = utc(), missing
        figures: Mapping[Cell, CellFigures] = {}
        if not missing:
            try:
                figures = self._measured(job, trial)
            except ToolFailed as error:
                failed = str(error)
        for cell in job.cells:
            why = failed or too_fast(job.tool, "--size")
            one = (
                Trial.of(trial, started, figures[cell])
                if cell in figures
                else Trial(trial, started, failed=why)
            )
            self.probe.cells[cell].append(one)
        self.watch.ended(job)
        if time.monotonic() - self._saved >= _SAVE_EVERY_S:
            self.watch.save(self.probe)
            self._saved = time.monotonic()

    def _measured(self, job: Job, trial: int) -> Mapping[Cell, CellFigures]:
        tool, place = self.machine.tool(job.tool), self._place(trial)
        stdout, stderr = self._called(tool, tool.commands(job, place))
        with explained(), self.machine.results() as folder:
            return answer(tool, job, replace(place, folder=folder), stdout, stderr)

    def _ran(self, tool: Tool, command: Sequence[str], stop: Callable[[], bool]) -> ToolOutput:
        with explained():
            return self.machine.run(tool, command, stop)

    def _called(self, tool: Tool, commands: Sequence[Sequence[str]]) -> tuple[str, str]:
        """Run commands in sequence and return the last output. Raises ToolFailed, FarmUnavailable."""
        stdout = stderr = ""
        for command in commands:
            result = self._ran(tool, command, self.watch.stop)
            stdout, stderr = result.stdout, result.stderr
            if result.status:
                why = tool.why(stdout, stderr)
                raise ToolFailed(
                    f"{self.probe.where.folder}: {tool.program} failed with exit status "
                    f"{result.status}: {why}"
                )
        return stdout, stderr

    def _place(self, trial: int) -> ProbePlace:
        device = self.probe.where.device
        return ProbePlace(
            folder=self.machine.folder,
            size_bytes=self.probe.options.file_bytes,
            device=f"/dev/{device}" if device else None,
            memory_bytes=self.machine.looked.memory_bytes,
            trial=trial,
            root=self.machine.looked.root,
        )

    def _pause(self, pause_s: float) -> None:
        until = time.monotonic() + pause_s
        while (left := until - time.monotonic()) > 0:
            if self.watch.stop():
                raise ProbeStopped
            time.sleep(min(_PAUSE_STEP_S, left))

    def _nothing(self) -> None:
        why = dict.fromkeys(
            one.failed for trials in self.probe.cells.values() for one in trials if one.failed
        )
        if why:
            raise FarmUnavailable("nothing could be measured: " + "; ".join(map(str, why)))


def version_of(text: str) -> str:
    """The first line that contains a version number, else the first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["not reported"]
    return next((line for line in lines if re.search(r"\d+\.\d+", line)), lines[0])


def sized(suite: Suite, size_bytes: int | None, memory_bytes: int) -> int:
    """The size of the file in bytes: the given one, else the suite's, else 2.1 times the memory."""
    if size_bytes is not None:
        return size_bytes
    if suite.size_bytes is not None:
        return suite.size_bytes
    return int(memory_bytes * 2.1) // 2**20 * 2**20


def unmeasured(probe: Probe, jobs: Sequence[Job], trial: int) -> list[Job]:
    """The jobs that repetition number ``trial`` still has to run."""
    return [
        job
        for job in jobs
        if not any(one.number == trial for cell in job.cells for one in probe.cells.get(cell, ()))
    ]


def estimate(suite: Suite, probe: Probe) -> dict[str, Any]:
    """The estimated time of a probe, or of the rest of a resumed probe.

    Keys: ``jobs`` (number), ``at_most`` (whether that is an upper bound), ``seconds`` of timed jobs,
    ``pauses_s``, ``untimed`` (number of jobs without a fixed time), ``bytes`` of the file written first,
    ``size_bytes`` (the most bytes on the disk at one time). The time of untimed jobs and of writing the file
    depends on the disk and is not estimated.
    """
    options = probe.options
    jobs = suite.jobs(options.time_per_cell_s or 0.0)
    left = [unmeasured(probe, jobs, trial) for trial in range(1, options.repeat + 1)]
    each = [job.seconds + settles(job) + _START_S for some in left for job in some if job.seconds]
    many = sum(map(len, left))
    return {
        "jobs": many,
        "at_most": suite.bisected,
        "seconds": sum(each),
        "pauses_s": suite.pause_s * sum(map(bool, left[1:])),
        "untimed": many - len(each),
        "bytes": options.file_bytes if any(job.uses_file for job in jobs) else 0,
        "size_bytes": options.file_bytes,
    }


def resumed(probe: Probe) -> Probe:
    """The probe prepared for continuation; failed trials are repeated."""
    cells = {cell: [one for one in trials if one.failed is None] for cell, trials in probe.cells.items()}
    return replace(probe, state="running", ended=None, cells=cells)


def named(name: str) -> Suite:
    """The suite of a name. Raises InputError that lists all names."""
    try:
        return suite(name)
    except ScenarioError as error:
        raise InputError(f"--suite: {error}") from error


def begun(
    chosen: Suite,
    target: ProbeTarget,
    repeat: int | None,
    time_per_cell_s: float | None,
    size_bytes: int | None,
    line_s: float,
    threads: int = 1,
) -> Probe:
    """A probe without measurements; None takes the value of the suite. Raises InputError."""
    if time_per_cell_s is not None and chosen.seconds is None:
        raise InputError(f"--time-per-cell: {UNTIMED.format(suite=chosen.name)} --size")
    size = sized(chosen, size_bytes, target.memory_bytes)
    if size < LEAST_BYTES:
        least = units.bytes_(LEAST_BYTES)
        raise InputError(f"--size: {units.bytes_(size)} is too small; allowed: {least} or more")
    options = Options(
        repeat=repeat or chosen.repetitions,
        time_per_cell_s=time_per_cell_s or chosen.seconds,
        size_bytes=size,
        line_s=line_s,
        threads=threads,
    )
    probe = Probe(chosen.name, target.where, options, target.declared, utc())
    if target.where.device is None:
        probe.warnings.append(
            f"{target.where.folder} is not on a disk of this machine ({target.where.file_system}): "
            "memory or a network share is measured"
        )
    if target.where.machine:
        probe.warnings += words.machine_limits(profile(target.where.machine), target.declared)
    probe.warnings += words.in_memory(chosen, size, target.memory_bytes)
    return probe


def new_directory(parent: Path, probe: Probe) -> Path:
    """Make the probe's directory, such as ``probe-database-20260101T000000Z``. Raises InputError."""
    while True:
        wanted = free_path(parent, f"probe-{probe.suite}")
        try:
            parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):  # another process made the same name: try the next number
                wanted.mkdir()
                return wanted
        except OSError as error:
            raise InputError(
                f"{wanted}: cannot be created: {error.strerror}; give another with --out"
            ) from error


RenewVerdict = Callable[[Probe, Path], ProbeVerdict]
"""Judges a probe and writes its files into a directory."""


def run(
    target: ProbeTarget, probe: Probe, directory: Path, interrupts: Interrupts, renew_verdict: RenewVerdict
) -> ProbeVerdict:
    """Measure what is not measured yet, and return the verdict.

    Raises:
        FarmUnavailable: a tool is missing or failed, or the file does not fit on the disk.
        GuardError: the folder on the disk was not created by Pinchpoint.
    """
    chosen = suite(probe.suite).threaded(probe.options.threads)
    try:
        _measure(chosen, target, probe, directory, interrupts)
    except FarmUnavailable as error:
        if not any(one.failed is None for trials in probe.cells.values() for one in trials):
            raise
        renew_verdict(probe, directory)
        on = f"; after that is fixed, continue with `pinchpoint probe --resume {directory}`"
        left = "" if probe.state == "finished" else on
        raise FarmUnavailable(f"{error}\nthe measurements so far are in {directory}{left}") from error
    finally:
        interrupts.graceful = False
        with suppress(OSError):  # rmdir fails, and keeps the directory, if there are measurements in it
            directory.rmdir()
    return renew_verdict(probe, directory)


def _measure(
    chosen: Suite, target: ProbeTarget, probe: Probe, directory: Path, interrupts: Interrupts
) -> None:
    expected = estimate(chosen, probe)
    with ProbeDisplay(probe, expected["jobs"]) as shown:
        shown.say(words.estimate(expected))
        # an interrupt is graceful from before the folder is created until after it is removed
        interrupts.graceful = True
        with explained(), target.opened(expected["size_bytes"]) as machine:
            watch = ProbeProgress(
                stop=lambda: interrupts.requested,
                say=shown.say,
                begins=shown.begins,
                ended=shown.ended,
                save=lambda made: record.save(directory, made.to_json()),
            )
            SuiteDriver(chosen, probe, machine, watch).run()


def status(probe: Probe) -> ExitStatus:
    """The exit status of the command."""
    return ExitStatus.INTERRUPTED if probe.state == "interrupted" else ExitStatus.FINE


def to_resume(directory: Path, target: ProbeTarget) -> Probe:
    """Read an interrupted probe for its disk. Raises InputError if it cannot be continued."""
    probe = record.load(directory)
    if probe.state == "finished":
        raise InputError(f"--resume: {directory} is finished: nothing is left to measure")
    here = target.where
    if (here.host, here.folder) != (probe.where.host, probe.where.folder):
        raise InputError(
            f"--resume: {directory} was made in {probe.where.folder} on {probe.where.host}; figures of "
            f"{here.folder} on {here.host} do not belong to it"
        )
    return resumed(probe)
