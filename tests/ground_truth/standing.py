"""Keep one farm running for several cases, and run ``pinchpoint run`` on it.

The harness starts the farm, so that its lifeline ends the farm when this process ends for any reason. Each
run is the user's command in a process of its own: the product is judged, and no state of one run reaches the
next.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Protocol

from ground_truth.burner import burning, crowded

from pinchpoint.base.errors import ExitStatus
from pinchpoint.farm import embedded
from pinchpoint.plan import Plan, load_farm

PINCHPOINT = Path(sys.executable).with_name("pinchpoint")
BESIDE_LOAD_S = 300.0
"""Additional time limit of a run, in seconds: to make its data and write its reports."""
JUDGED = (ExitStatus.FINE, ExitStatus.OBJECTIVES_MISSED, ExitStatus.NOT_EVIDENCE)
"""Exit statuses of a run with a verdict; any other status is a failure."""


class Runnable(Protocol):
    """A case, or one farm of a pair.

    Attributes:
        folder: path of its farm.yaml and plan.yaml.
        plan: the parsed plan.
    """

    @property
    def folder(self) -> Path: ...

    @property
    def plan(self) -> Plan: ...

    @property
    def load_s(self) -> float:
        """The maximum time of the plan's load, in seconds."""


class RunFailed(Exception):  # noqa: N818 -- what happened to the run
    """A run has no verdict; the error has one sentence, and the run's directory if there is one."""

    def __init__(self, why: str, directory: Path | None = None) -> None:
        super().__init__(why)
        self.directory = directory


class StandingFarm:
    """A farm that several cases use, at a path of its own, which identifies the farm.

    Args:
        folder: path of the farm's file and its runs.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "farm.yaml"
        self._count = 0
        self.log = folder / "run.log"

    def run(self, case: Runnable, *, burn: bool = False, neighbours: int = 0) -> Path:
        """Start the farm if it is down, run a case's plan, and return the run's directory.

        Args:
            case: the case to run.
            burn: True: a second program saturates the farm's cores for a third of the measure phase.
            neighbours: number of programs on every core of this machine during the whole run.

        Raises:
            RunFailed: the run has no verdict.
            PinchpointError: the farm did not start.
        """
        # Each case has its own declarations; all cases of the farm have the same `embedded:` section.
        shutil.copyfile(case.folder / "farm.yaml", self._file)
        found = embedded.up(load_farm(self._file), lambda _: None, lifeline=True)
        self._count += 1
        out = self._folder / f"run{self._count}"  # a new folder, so that it contains only this run
        command: list[str | Path] = [PINCHPOINT, "run", case.folder / "plan.yaml"]
        command += ["--farm", self._file, "--out", out]
        noise = burning(out, found.farm_cores, case.plan.phases.measure.at_most_s) if burn else nullcontext()
        with noise, crowded(neighbours), self.log.open("w", encoding="utf-8") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C reaches only this process, which then ends the run
            )
            try:
                status = process.wait(case.load_s + BESIDE_LOAD_S)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                end(process)
        directory = next(out.iterdir(), None) if out.exists() else None
        if status is None:
            raise RunFailed(f"did not end within {case.load_s + BESIDE_LOAD_S:.0f} s", directory)
        if status not in JUDGED or directory is None:
            raise RunFailed(f"exit status {status}: {self._last_words()}", directory)
        return directory

    def down(self) -> None:
        """Stop and remove the farm; do nothing if it is down. Raises FarmUnavailable."""
        if self._file.exists():
            embedded.down(self._file.resolve())

    def _last_words(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return " / ".join(lines[-3:]) or "without a word"


def end(process: subprocess.Popen[bytes]) -> None:
    """End a run with two interrupts, as two Ctrl-C do: the run removes its data."""
    for _ in range(2):
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            time.sleep(0.5)
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def standing_farm(folder: Path) -> Iterator[StandingFarm]:
    """Yield a farm that is not yet started; stop it at the end in any case."""
    folder.mkdir(parents=True)
    farm = StandingFarm(folder)
    try:
        yield farm
    finally:
        farm.down()
