"""Runs a load generator as a child process of the controller: JSON lines on its pipes, its own journal.

The end of stdin means that the controller has ended; the generator then exits at once.
"""

from __future__ import annotations

import sys

try:
    from pinchpoint.loadgen import engine  # noqa: F401 -- first: see engine
except MemoryError:
    sys.exit("a load generator has too little memory to start")

# isort: split
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gevent.fileobject import FileObject
from gevent.threadpool import ThreadPool

from pinchpoint.loadgen.assignment import Assignment
from pinchpoint.loadgen.generator import GeneratorProcess, say_failed
from pinchpoint.loadgen.load_schedule import is_closed
from pinchpoint.loadgen.recorder import Seconds
from pinchpoint.store.journal import JournalWriter
from pinchpoint_collectors.record import Sample

_PUNCTUAL_NICE = -10


class Pipes:
    """The ``GeneratorLink`` of a local generator.

    Args:
        heard: file descriptor of the commands.
        text: file descriptor for messages.
    """

    def __init__(self, heard: int, text: int) -> None:
        self._lines = FileObject(heard, "rb", close=False)
        self._said = text
        # A real thread writes the journal, because a stalled disk must not stall the load.
        self._writer = ThreadPool(1)
        self._journal: JournalWriter | None = None
        self._worker = ""

    def assignment(self) -> Assignment:
        """The first command: the assignment."""
        given = Assignment(**json.loads(self._lines.readline()))
        self._worker = given.name
        self._journal = JournalWriter(Path(given.journal), given.name)
        return given

    def commands(self) -> Iterator[dict[str, Any]]:
        return (json.loads(line) for line in self._lines)

    def say(self, **message: Any) -> None:
        """Send a message (``GeneratorLink``). One write per line, so that lines of greenlets never mix."""
        try:
            os.write(self._said, json.dumps(message, default=str).encode() + b"\n")
        except BrokenPipeError:
            os._exit(1)  # without a controller this process ends

    def record(self, seconds: Seconds, samples: list[Sample], now_ns: int) -> None:
        written = self._writer.spawn(self._write, seconds, samples, now_ns).get()
        if isinstance(written, OSError):
            raise written
        self.say(type="second", progress=written)

    def close(self) -> None:
        if self._journal:
            self._journal.close()

    def _write(self, seconds: Seconds, samples: list[Sample], now_ns: int) -> dict[str, Any] | OSError:
        # An error is returned and not raised, because the thread pool would print its traceback.
        assert self._journal is not None  # noqa: S101 -- opened with the assignment
        try:
            self._journal.write_operations(seconds.rows(self._worker), now_ns)
            self._journal.write_samples(samples)
        except OSError as error:
            return error
        return seconds.progress()


def _pipes() -> tuple[int, int]:
    """The controller's pipes (to here, from here), unreachable for all other code of this process.

    A C library, or a child that a locustfile starts, may write to standard output and read standard input.
    """
    pipes = os.dup(0), os.dup(1)  # child processes inherit neither pipe
    with Path(os.devnull).open() as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    return pipes


def _take_place(assignment: Assignment) -> None:
    """Run on the assigned cores, with a lower priority than generators that have a schedule to keep.

    The users of a closed load start whenever the process gets a core. Operations of an open load are late if
    another process has the core, and Linux lets a process run on for some milliseconds. SCHED_IDLE gives the
    core up at once.
    """
    if assignment.cores:
        os.sched_setaffinity(0, assignment.cores)
    if all(is_closed(given["load"]) for given in assignment.scenarios.values()):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    elif os.geteuid() == 0:  # only root may raise its priority
        os.setpriority(os.PRIO_PROCESS, 0, _PUNCTUAL_NICE)


def main() -> None:
    """Entry of ``python -m pinchpoint.loadgen.local``."""
    link = Pipes(*_pipes())
    # A thread encodes the journal. With Python's switch interval of 5 ms it would delay the start of
    # operations.
    sys.setswitchinterval(0.0005)
    try:
        assignment = link.assignment()
        _take_place(assignment)
        generator = GeneratorProcess(assignment, link)
    except Exception as error:  # noqa: BLE001 -- reported to the controller, which reports it to the person
        say_failed(link, error)
        return
    generator.run()


if __name__ == "__main__":
    main()
