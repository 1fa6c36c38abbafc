"""Handles Ctrl-C and servers that stop answering. It defines what ends a run, and within which time.

The first Ctrl-C (or SIGTERM) stops the run and keeps its results, the second one ends the process. The first
one never interrupts the removal of data. ``END_S`` after the second one the process ends in any case: a
thread counts the signals, so a main thread blocked in a driver cannot prevent it.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from types import FrameType
from typing import Self, TypeVar

from pinchpoint.base.errors import ExitStatus

T = TypeVar("T")
END_S = 4.0
"""Time for clean-up after the second Ctrl-C, in seconds; then the process ends."""
ASK_S = 10.0
"""Interval of checking that the servers of a long step answer, and the time limit of an answer."""
_ASKS = 2
"""Number of consecutive failed checks after which a server counts as not answering. A single failure may come
from a saturated server."""
_NAMING_S = 0.5
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_STOPPING = b"\nstopping: what was measured is kept and reported; Ctrl-C again stops at once\n"
_ENDING = b"\nending: what was started is cleared away and kept first; Ctrl-C again ends within 5 s\n"


class Interrupted(BaseException):
    """The user wants to stop now: nothing was measured yet, or Ctrl-C was pressed a second time."""


class NoAnswer(BaseException):
    """A server stopped answering; the text names the server."""


class Interrupts:
    """Handles SIGINT and SIGTERM during a run, and restores the earlier handlers at the end.

    While ``graceful`` is false, the first signal raises ``Interrupted``. While it is true, the first signal
    only sets ``requested``, and the next signal raises. After that, and after ``shield``, signals only set
    ``requested``, so that no exception interrupts the removal of data.

    Attributes:
        left: returns sentences about data that remain on the servers. It is called when the process ends at
            once.
    """

    def __init__(self) -> None:
        self.requested = False
        self.graceful = False
        self.left: Callable[[], list[str]] = list
        self._shielded = False
        self._before: dict[int, object] = {}
        self._no_answer = ""
        self._over = threading.Event()
        self._pipe = (-1, -1)

    def __enter__(self) -> Self:
        for number in _SIGNALS:
            self._before[number] = signal.signal(number, self._handle)
        self._before[signal.SIGUSR1] = signal.signal(signal.SIGUSR1, self._give_up)
        self._pipe = os.pipe()
        os.set_blocking(self._pipe[1], False)
        signal.set_wakeup_fd(self._pipe[1], warn_on_full_buffer=False)
        threading.Thread(target=self._count, name="interrupts", daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        signal.set_wakeup_fd(-1)
        os.close(self._pipe[1])  # ends the thread, which then closes its end
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what signal() itself returned

    def shield(self) -> None:
        """Let no signal raise from now on: only the removal of data and the saving of results remain."""
        self._shielded = True

    @contextlib.contextmanager
    def while_answering(
        self, ask: Callable[[], None], places: Callable[[], str], ask_s: float = ASK_S
    ) -> Iterator[None]:
        """Run a step that may take long, and check meanwhile that its servers answer.

        Args:
            ask: connects to the servers over separate connections, in another thread. It raises for an
                unreachable server.
            places: returns the names of the servers.
            ask_s: interval of the checks and time limit of an answer, in seconds.

        Raises ``NoAnswer`` within the step after two consecutive failures.
        """
        done = threading.Event()
        watcher = threading.Thread(
            target=self._ask, args=(ask, places, ask_s, done), name="asking", daemon=True
        )
        watcher.start()
        try:
            yield
        finally:
            done.set()
            self._no_answer = ""

    def _ask(
        self, ask: Callable[[], None], places: Callable[[], str], ask_s: float, done: threading.Event
    ) -> None:
        why, failed = "", 0
        while not done.wait(ask_s):
            try:
                within(ask_s, ask)
            except TimeoutError as error:
                why, failed = f"{places()}: {error}", failed + 1
            except Exception as error:  # noqa: BLE001 - whatever a driver raises: it was not reached
                why, failed = str(error), failed + 1
            else:
                failed = 0
            if failed < _ASKS or done.is_set():
                continue
            self._no_answer = why
            give_up_s = time.monotonic() + ask_s
            while time.monotonic() < give_up_s:
                os.kill(
                    os.getpid(), signal.SIGUSR1
                )  # the exception ends the present wait of the main thread and later waits
                if done.wait(1.0):
                    return
            self._end_now(f"{why}; its driver does not return", ExitStatus.ENVIRONMENT)

    def _handle(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 -- signal's signature
        if self._shielded:
            self.requested = True
            _write(_ENDING)
            return
        if self.graceful and not self.requested:
            self.requested = True
            _write(_STOPPING)
            return
        self.requested = self._shielded = True
        raise Interrupted

    def _give_up(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 -- as above
        if self._no_answer:
            raise NoAnswer(self._no_answer)

    def _count(self) -> None:
        """Count the signals, also while the main thread cannot handle them."""
        with os.fdopen(self._pipe[0], "rb", buffering=0) as pipe:
            count = 0
            while got := pipe.read(1):
                count += got[0] in _SIGNALS
                if count == 2:
                    if not self._over.wait(END_S):
                        self._end_now("Ctrl-C again", ExitStatus.INTERRUPTED)
                    return

    def _end_now(self, why: str, status: ExitStatus) -> None:
        """End this process. Load generators and an embedded farm notice that and end by themselves."""
        lines = [f"\nended at once: {why}"]
        try:
            result = within(_NAMING_S, self.left)
        except Exception:  # noqa: BLE001 - a scenario that must ask the server that hangs
            lines.append("what it made on the farm may be left there: `run --dry-run` names every place")
        else:
            lines += [f"left on the farm: {place}" for place in result]
        lines.append("the next run of this plan on this farm removes it")
        _write(("\n".join(lines) + "\n").encode(errors="replace"))
        os._exit(status)


def begun(call: Callable[[], T]) -> Future[T]:
    """Start a call in a daemon thread and return its future.

    ``Thread.start`` waits until the thread runs, which takes for ever without memory. This function does not
    wait.
    """
    result: Future[T] = Future()

    def work() -> None:
        try:
            result.set_result(call())
        except BaseException as error:  # noqa: BLE001 - it is raised again where the call was made
            result.set_exception(error)

    _thread.start_new_thread(work, ())
    return result


def within(seconds: float, call: Callable[[], T]) -> T:
    """Run a call in a thread. Return its result, or raise its exception.

    Raises ``TimeoutError`` if the call does not end in time; the thread of the call continues.
    """
    result = begun(call)
    try:
        return result.result(seconds)
    except TimeoutError:
        if result.done():
            raise  # the call itself raised the error
        raise TimeoutError(f"no answer within {seconds:g} s") from None


def _write(line: bytes) -> None:
    # Python's own stream is not used, because the signal may arrive while it is in use.
    with contextlib.suppress(OSError):  # the terminal may be closed
        os.write(2, line)
