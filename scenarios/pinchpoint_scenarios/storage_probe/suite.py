"""The record of a suite: a named list of jobs, how often, and on how large a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .cell import Job

Jobs = Callable[[float], Sequence[Job]]
"""Seconds per cell -> the suite's jobs, in order."""


@dataclass(frozen=True, slots=True)
class Suite:
    """What is measured under one name.

    Attributes:
        name: what ``--suite`` takes.
        about: one sentence for a person who chooses.
        jobs: its jobs, given how long a cell is measured (0 where ``seconds`` is None).
        repetitions: how often all of it is done where nothing else is asked for.
        seconds: how long a cell is measured, likewise; None: until its work is done, nobody knows before.
        pause_s: pause between two repetitions.
        size_bytes: size of the file; None: twice the machine's memory and a tenth more.
    """

    name: str
    about: str
    jobs: Jobs
    repetitions: int
    seconds: float | None
    pause_s: float = 0.0
    size_bytes: int | None = 2**30
