"""Progress of a probe on stderr: a live table on a terminal, else a line per figure."""

from __future__ import annotations

from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from pinchpoint.base import units
from pinchpoint.base.redact import masked
from pinchpoint.probe.record import Probe, Trial
from pinchpoint_scenarios.storage_probe import Cell, Job

_ROWS = 24


class Shown:
    """Draws a probe while it is filled.

    Args:
        probe: the one that the driver fills.
        jobs: how many measurements there will be.
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
        """A sentence that stays."""
        self._console.print(Text(masked(sentence)), highlight=False, soft_wrap=True)

    def begins(self, job: Job, trial: int) -> None:
        """A job begins."""
        self._now = f"{job.name}, {trial} of {self._probe.options.repeat}"

    def ended(self, job: Job) -> None:
        """A job has ended; its cells have one trial more."""
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
        """The newest figure of the cells that were measured last."""
        rows = [(cell, trials[-1]) for cell, trials in list(self._probe.cells.items()) if trials]
        rows.sort(key=lambda row: row[1].started)
        return rows[-_ROWS:]


def reported(one: Trial) -> str:
    """One figure as a line says it."""
    if one.failed:
        return f"not measured: {one.failed}"
    words = [units.per_second(one.iops)] if one.iops is not None else []
    words += [units.of_metric("_bytes_per_s", one.bytes_per_s)] if one.bytes_per_s is not None else []
    words += [f"{units.seconds(one.mean_s)} each"] if one.mean_s is not None else []
    return ", ".join(words)
