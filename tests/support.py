"""Helpers that tests of several folders share: the command line as a user calls it, and required programs."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any, NoReturn, TypeVar
from unittest.mock import patch

import pytest

from pinchpoint import cli
from pinchpoint.base import redact

T = TypeVar("T")
PINCHPOINT = Path(sys.executable).with_name("pinchpoint")


def disk_folder() -> str:
    """Return the name prefix of this session's folders on a real disk, which the leak check looks for."""
    return f"pinchpoint-{os.environ.get('PINCHPOINT_TEST_SESSION', '')[:8]}-"


@contextmanager
def untouched_folder() -> Iterator[Path]:
    """Yield a folder on a real disk; fail if its content has changed at the end."""
    folder = Path(tempfile.mkdtemp(prefix=disk_folder(), dir="/var/tmp"))
    try:
        yield folder
        left = [path.name for path in folder.iterdir()]
    finally:
        shutil.rmtree(folder)
    assert left == []


def missing(sentence: str) -> NoReturn:
    """Skip the test because a server or program is missing; in CI, fail it."""
    if os.environ.get("CI"):
        pytest.fail(sentence)
    pytest.skip(sentence)


def require(program: str, package: str) -> str:
    """Return the path of a required program; if it is missing, skip the test, or fail it in CI."""
    path = shutil.which(program)
    if path is None:
        missing(f"{program} is missing (Debian: {package})")
    return path


_IN_THIS_PROCESS = frozenset(
    {"analyse", "compare", "import", "init", "pack", "report", "runs", "schema", "unpack", "what-if"}
)
"""Commands that only read and write files; they run in this process, because each new process takes
seconds."""


def run_cli(
    *arguments: str | Path,
    timeout_s: float = 120,
    env: dict[str, str] | None = None,
    starts_nothing: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run ``pinchpoint`` as a user would; a nonzero exit status raises nothing.

    Set ``starts_nothing`` for a command that is refused or only reads: it runs in this process.
    """
    if starts_nothing or arguments[0] in _IN_THIS_PROCESS:
        return _in_this_process([str(each) for each in arguments], env or {})
    return subprocess.run(
        [PINCHPOINT, *arguments],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
        env=os.environ | (env or {}),
    )


def _in_this_process(arguments: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run one command through the entry point of the ``pinchpoint`` program."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with (
        patch.object(sys, "argv", ["pinchpoint", *arguments]),
        patch.dict(os.environ, env),
        patch.dict(redact._known, clear=True),  # as a new process, it knows no secrets of other tests
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        status = cli._status()
    said = [each.buffer.getvalue().decode() for each in (out, err)]
    return subprocess.CompletedProcess(arguments, status, *said)


def run_script(script: Path, *arguments: str, timeout_s: float = 60) -> dict[str, Any]:
    """Run a test script in a process of its own, which gevent patches, and return the JSON it prints."""
    done = subprocess.run(
        [sys.executable, script, *arguments],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


_STARTED: list[subprocess.Popen[str]] = []


def start_cli(*arguments: str | Path, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
    """Start ``pinchpoint`` in a session of its own, as from another terminal; it ends with the test."""
    process = subprocess.Popen(
        [PINCHPOINT, *arguments],
        env=os.environ | (env or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    _STARTED.append(process)
    return process


def end_started() -> None:
    """End each ``pinchpoint`` that a failed test left running, and close its pipes."""
    while _STARTED:
        process = _STARTED.pop()
        with process:  # closes the pipes, waits
            if process.poll() is None:
                process.terminate()
                try:
                    process.communicate(timeout=30)
                except subprocess.TimeoutExpired:
                    process.kill()


def wait_for_line(process: subprocess.Popen[str], words: str, timeout_s: float = 60) -> str:
    """Read stderr until a line contains ``words``; return all that was read."""
    assert process.stderr is not None
    read = ""
    deadline = time.monotonic() + timeout_s
    for line in process.stderr:
        read += line
        if words in line:
            return read
        assert time.monotonic() < deadline, f"no {words!r} within {timeout_s} s:\n{read}"
    raise AssertionError(f"ended without {words!r}:\n{read}")


def until(
    holds: Callable[[], T],
    words: str | Callable[[], str] = "it did not come about",
    *,
    within_s: float = 60,
    process: subprocess.Popen[Any] | None = None,
) -> T:
    """Wait until the function returns a true value, and return it; ``process`` must not end meanwhile."""
    deadline = time.monotonic() + within_s
    while not (found := holds()):
        late = time.monotonic() >= deadline
        if late or (process is not None and process.poll() is not None):
            said = words() if callable(words) else words
            ended = f"; it ended: {process.communicate()}" if process is not None and not late else ""
            pytest.fail(f"not within {within_s} s: {said}{ended}")
        time.sleep(0.02)
    return found


def end(
    process: subprocess.Popen[str], *signals: signal.Signals, timeout_s: float = 60
) -> tuple[int, str, str]:
    """Send the signals and wait; return (exit status, stdout, stderr)."""
    for number in signals:
        process.send_signal(number)
        time.sleep(0.2)
    out, err = process.communicate(timeout=timeout_s)
    return process.returncode, out, err


@contextmanager
def frozen(*pids: int) -> Iterator[None]:
    """Stop the processes, with all their threads, until the end of the block.

    A signal takes effect late: a thread stops only at its next return to user space, so the function waits.
    """
    _signal(pids, signal.SIGSTOP)
    try:
        deadline = time.monotonic() + 30
        while any(_threads_at_work(pid) for pid in pids):
            assert time.monotonic() < deadline, f"{pids} go on"
            time.sleep(0.01)
        yield
    finally:
        _signal(pids, signal.SIGCONT)


def _signal(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):  # the process has ended
            os.kill(pid, number)


def _threads_at_work(pid: int) -> bool:
    """Return True if a thread can run: its state, after the name in brackets, is neither stopped nor ended.

    An ended process stays a zombie while its parent is stopped.
    """
    found = []
    with suppress(OSError):
        found = [stat.read_text() for stat in Path(f"/proc/{pid}/task").glob("*/stat")]
    return any(line.rpartition(")")[2].split()[0] not in "TZX" for line in found)


def held(cap: float, within: float, measured: Callable[[], float]) -> None:
    """Assert that a limit holds: the median of one to five measurements is within ``within`` of it.

    A single measurement of two seconds can be far off on any disk: the kernel throttles in slices of 100 ms,
    of which one may be in or out, and a machine that stalls for a second lets through only half.
    """
    found = [measured()]
    while len(found) < 5 and abs(statistics.median(found) / cap - 1) > within:
        found.append(measured())
    assert abs(statistics.median(found) / cap - 1) <= within, f"{found}, where {cap} are let through"
