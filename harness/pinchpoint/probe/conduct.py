"""Runs one probe: estimate, safety checks, suite, files, verdict."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pinchpoint.base import units
from pinchpoint.base.errors import ExitStatus, FarmUnavailable, InputError
from pinchpoint.base.interrupts import Interrupts
from pinchpoint.probe import driver, record, words
from pinchpoint.probe.driver import ProbeProgress, SuiteDriver
from pinchpoint.probe.record import Options, Probe
from pinchpoint.probe.shown import Shown
from pinchpoint.probe.target import ProbeTarget
from pinchpoint.probe.verdict import ProbeVerdict
from pinchpoint.store.write import free_path
from pinchpoint_collectors.common.times import utc
from pinchpoint_infra.catalogue import profile
from pinchpoint_scenarios.errors import ScenarioError
from pinchpoint_scenarios.storage_probe import Suite, suite
from pinchpoint_scenarios.storage_probe.params import LEAST_BYTES, UNTIMED


def named(name: str) -> Suite:
    """The suite of that name. Raises InputError that lists all."""
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
    """A probe of which nothing is measured yet; None: as the suite has it. Raises InputError."""
    if time_per_cell_s is not None and chosen.seconds is None:
        raise InputError(f"--time-per-cell: {UNTIMED.format(suite=chosen.name)} --size")
    size = driver.sized(chosen, size_bytes, target.memory_bytes)
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
    """A directory for it, made: ``probe-database-20260101T000000Z``. Raises InputError."""
    while True:
        wanted = free_path(parent, f"probe-{probe.suite}")
        try:
            parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):  # another one of this instant: the next number
                wanted.mkdir()
                return wanted
        except OSError as error:
            raise InputError(
                f"{wanted}: cannot be created: {error.strerror}; give another with --out"
            ) from error


Conclude = Callable[[Probe, Path], ProbeVerdict]
"""Judges a probe and writes its files into a directory."""


def run(
    target: ProbeTarget, probe: Probe, directory: Path, interrupts: Interrupts, conclude: Conclude
) -> ProbeVerdict:
    """Measure what is not measured yet, and conclude.

    Raises:
        FarmUnavailable: a tool is missing or failed, or the file does not fit.
        GuardError: what would be written to is not ours.
    """
    chosen = suite(probe.suite).threaded(probe.options.threads)
    try:
        _measure(chosen, target, probe, directory, interrupts)
    except FarmUnavailable as error:
        if not any(one.failed is None for trials in probe.cells.values() for one in trials):
            raise
        conclude(probe, directory)
        on = f"; after that is fixed, continue with `pinchpoint probe --resume {directory}`"
        left = "" if probe.state == "finished" else on
        raise FarmUnavailable(f"{error}\nthe measurements so far are in {directory}{left}") from error
    finally:
        interrupts.graceful = False
        with suppress(OSError):  # it holds figures; without any it goes
            directory.rmdir()
    return conclude(probe, directory)


def _measure(
    chosen: Suite, target: ProbeTarget, probe: Probe, directory: Path, interrupts: Interrupts
) -> None:
    expected = driver.estimate(chosen, probe)
    with Shown(probe, expected["jobs"]) as shown:
        shown.say(words.estimate(expected))
        interrupts.graceful = True  # from before the folder is there until it is gone
        with target.opened(expected["size_bytes"]) as machine:
            watch = ProbeProgress(
                stop=lambda: interrupts.requested,
                say=shown.say,
                begins=shown.begins,
                ended=shown.ended,
                save=lambda made: record.save(directory, made.to_json()),
            )
            SuiteDriver(chosen, probe, machine, watch).run()


def status(probe: Probe) -> ExitStatus:
    """How the command ends."""
    return ExitStatus.INTERRUPTED if probe.state == "interrupted" else ExitStatus.FINE


def to_resume(directory: Path, target: ProbeTarget) -> Probe:
    """A probe that was interrupted, on its disk. Raises InputError where it is none to go on with."""
    probe = record.load(directory)
    if probe.state == "finished":
        raise InputError(f"--resume: {directory} is finished: nothing is left to measure")
    here = target.where
    if (here.host, here.folder) != (probe.where.host, probe.where.folder):
        raise InputError(
            f"--resume: {directory} was made in {probe.where.folder} on {probe.where.host}; figures of "
            f"{here.folder} on {here.host} do not belong to it"
        )
    return driver.resumed(probe)
