"""One standing farm for several cases, and one run of ``pinchpoint run`` against it.

The farm is started through the harness, because its lifeline then ends it with this process, however that
happens. The runs are the command a user calls, in a process of its own: what is judged is the product, and
nothing of one run can live on into the next.
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
"""What a run may need beside its phases: to make its data, to write its reports."""
JUDGED = (ExitStatus.FINE, ExitStatus.OBJECTIVES_MISSED, ExitStatus.NOT_EVIDENCE)
"""A run that ended so has a verdict; any other one went wrong."""


class Runnable(Protocol):
    """What is run: a case, or one farm of a pair.

    Attributes:
        folder: holds its farm.yaml and plan.yaml.
        plan: as Pinchpoint reads it.
    """

    @property
    def folder(self) -> Path: ...

    @property
    def plan(self) -> Plan: ...

    @property
    def load_s(self) -> float:
        """How long its plan loads the farm at most."""


class RunFailed(Exception):  # noqa: N818 -- what happened to the run
    """A run came to no verdict; one sentence, and its directory where it made one."""

    def __init__(self, why: str, directory: Path | None = None) -> None:
        super().__init__(why)
        self.directory = directory


class StandingFarm:
    """A farm that several cases use, at a path of its own (which is its identity).

    Args:
        folder: where its file and the runs lie.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "farm.yaml"
        self._count = 0
        self.log = folder / "run.log"

    def run(self, case: Runnable, *, burn: bool = False, neighbours: int = 0) -> Path:
        """Run a case's plan; the run's directory. Starts the farm unless it stands.

        Args:
            case: the case.
            burn: let a second program use up the farm's cores for a third of what is measured.
            neighbours: let so many programs use up every core of this machine, all the time.

        Raises:
            RunFailed: there is no verdict.
            PinchpointError: the farm could not be started.
        """
        # What a case declares is its own; how the farm is built is the same in all of its cases.
        shutil.copyfile(case.folder / "farm.yaml", self._file)
        found = embedded.up(load_farm(self._file), lambda _: None, lifeline=True)
        self._count += 1
        out = self._folder / f"run{self._count}"  # a folder of its own: what lies there is this run
        command: list[str | Path] = [PINCHPOINT, "run", case.folder / "plan.yaml"]
        command += ["--farm", self._file, "--out", out]
        noise = burning(out, found.farm_cores, case.plan.phases.measure.at_most_s) if burn else nullcontext()
        with noise, crowded(neighbours), self.log.open("w", encoding="utf-8") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is ours: the run ends when we end it
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
        """Remove the farm and all it made; safe when it is down. Raises FarmUnavailable."""
        if self._file.exists():
            embedded.down(self._file.resolve())

    def _last_words(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return " / ".join(lines[-3:]) or "without a word"


def end(process: subprocess.Popen[bytes]) -> None:
    """End a run that still goes on as two Ctrl-C do: it clears away what it made."""
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
    """A farm, not up yet; down at the end, whatever happens."""
    folder.mkdir(parents=True)
    farm = StandingFarm(folder)
    try:
        yield farm
    finally:
        farm.down()
