"""Runs the jobs of a suite, the whole list repeatedly, and saves each figure at once."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pinchpoint.base import units
from pinchpoint.base.errors import FarmUnavailable
from pinchpoint.probe.machine import ProbedMachine
from pinchpoint.probe.record import Probe, State, Trial
from pinchpoint_collectors.common.times import utc
from pinchpoint_scenarios.storage_probe import (
    Cell,
    CellFigures,
    Job,
    ProbePlace,
    Suite,
    Tool,
    ToolFailed,
    ToolMissing,
)
from pinchpoint_scenarios.storage_probe.process import ProbeStopped
from pinchpoint_scenarios.storage_probe.tool import answer, too_fast
from pinchpoint_scenarios.storage_probe.tools.fio import settles

_SAVE_EVERY_S = 5.0
_PAUSE_STEP_S = 0.2
_START_S = 0.5
"""What starting and ending a tool takes, about."""


@dataclass(frozen=True, slots=True)
class ProbeProgress:
    """What the driver reports and asks while it works.

    Attributes:
        stop: whether the user wants to stop.
        say: takes a sentence.
        begins: takes the job that begins now and its trial.
        ended: takes the job that has ended.
        save: keeps the probe as it is.
    """

    stop: Callable[[], bool]
    say: Callable[[str], None]
    begins: Callable[[Job, int], None]
    ended: Callable[[Job], None]
    save: Callable[[Probe], None]


@dataclass(slots=True)
class SuiteDriver:
    """One suite on one disk.

    Args:
        suite: what is run.
        probe: what was measured until now; filled further.
        machine: where its tools run.
        watch: who gets the reports.
    """

    suite: Suite
    probe: Probe
    machine: ProbedMachine
    watch: ProbeProgress
    _saved: float = field(default=0.0, init=False)

    def run(self) -> None:
        """All that is not measured yet; ``probe.state`` then says how it ended. Raises FarmUnavailable."""
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
        """Of each workload the lowest and highest queue depth, then those of a bisection towards the line.

        Each job is measured before the next one is chosen; what a resumed probe has is used as it is.
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
            # The lowest may be above the line already, the highest below it: then nothing lies between.
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
        """Whether its mean latency is over the line; None where none was measured."""
        known = [one.mean_s for one in self.probe.cells[cell] if one.mean_s is not None]
        return known[-1] >= self.probe.options.line_s if known else None

    def _kept(self, jobs: Sequence[Job]) -> Sequence[Job]:
        """The jobs of the next repetition; what a bisection did not need is said and taken out."""
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
        """Tool -> why it cannot be used; keeps versions. Raises FarmUnavailable where none can."""
        found: dict[str, str] = {}
        for name in dict.fromkeys(job.tool for job in jobs):
            try:
                tool = self.machine.tool(name)
                said = self.machine.run(tool, tool.version(), lambda: False)
                self.probe.versions[tool.name] = version_of(said.stdout + said.stderr)
            except ToolMissing as error:
                found[name] = str(error)
                self.watch.say(str(error))
            except ToolFailed as error:
                raise FarmUnavailable(str(error)) from error
        if found and len(found) == len({job.tool for job in jobs}):
            raise FarmUnavailable("\n".join(found.values()))
        self.probe.warnings += [why for why in found.values() if why not in self.probe.warnings]
        return found

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
        found: Mapping[Cell, CellFigures] = {}
        if not missing:
            try:
                found = self._measured(job, trial)
            except ToolFailed as error:
                failed = str(error)
        for cell in job.cells:
            why = failed or too_fast(job.tool, "--size")
            one = (
                Trial.of(trial, started, found[cell]) if cell in found else Trial(trial, started, failed=why)
            )
            self.probe.cells[cell].append(one)
        self.watch.ended(job)
        if time.monotonic() - self._saved >= _SAVE_EVERY_S:
            self.watch.save(self.probe)
            self._saved = time.monotonic()

    def _measured(self, job: Job, trial: int) -> Mapping[Cell, CellFigures]:
        tool, place = self.machine.tool(job.tool), self._place(trial)
        stdout, stderr = self._called(tool, tool.commands(job, place))
        return answer(tool, job, replace(place, folder=self.machine.brought()), stdout, stderr)

    def _called(self, tool: Tool, commands: Sequence[Sequence[str]]) -> tuple[str, str]:
        """Run the commands one by one: what the last one said. Raises ToolFailed, FarmUnavailable."""
        stdout = stderr = ""
        for command in commands:
            said = self.machine.run(tool, command, self.watch.stop)
            stdout, stderr = said.stdout, said.stderr
            if said.status:
                why = tool.why(stdout, stderr)
                raise ToolFailed(
                    f"{self.probe.where.folder}: {tool.program} failed with exit status {said.status}: {why}"
                )
        return stdout, stderr

    def _place(self, trial: int) -> ProbePlace:
        device = self.probe.where.device
        return ProbePlace(
            folder=self.machine.folder,
            size_bytes=self.probe.options.file_bytes,
            device=f"/dev/{device}" if device else None,
            memory_bytes=self.machine.memory_bytes,
            trial=trial,
            root=self.machine.root,
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
    """The first line with a version's number in it; all of the first line where none has."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["not reported"]
    return next((line for line in lines if re.search(r"\d+\.\d+", line)), lines[0])


def sized(suite: Suite, size_bytes: int | None, memory_bytes: int) -> int:
    """The size of the file: as given, else the suite's own, else more than twice the memory (whole MiB)."""
    if size_bytes is not None:
        return size_bytes
    if suite.size_bytes is not None:
        return suite.size_bytes
    return int(memory_bytes * 2.1) // 2**20 * 2**20


def unmeasured(probe: Probe, jobs: Sequence[Job], trial: int) -> list[Job]:
    """What is still to be done of that repetition."""
    return [
        job
        for job in jobs
        if not any(one.number == trial for cell in job.cells for one in probe.cells.get(cell, ()))
    ]


def estimate(suite: Suite, probe: Probe) -> dict[str, Any]:
    """What it will take; of a probe that is gone on with, what is left.

    ``jobs``, and whether it is ``at_most`` that many; ``seconds`` of timed ones; ``pauses_s``; ``untimed``
    jobs; ``bytes`` of the file that is written before; ``size_bytes``: the most that lies on the disk at
    once. How long untimed work takes, and the writing of the file, depends on the disk: not known before.
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
    """The same probe, to be gone on with: what failed is tried again."""
    cells = {cell: [one for one in trials if one.failed is None] for cell, trials in probe.cells.items()}
    return replace(probe, state="running", ended=None, cells=cells)
