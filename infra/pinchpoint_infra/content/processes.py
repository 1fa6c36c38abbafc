"""Runs work in child processes: reads untrusted documents within limits, and divides a corpus over the cores.

A document can crash the library that reads it, use all memory, or take hours. ``apart`` reads it in a child
process, so only the child fails. ``Workers`` divide a large piece of work, such as reading or loading a
corpus. Children end with this process even if it is killed, unlike those of ``concurrent.futures``.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from multiprocessing.connection import Connection
from types import TracebackType
from typing import ParamSpec, Self, TypeVar

from pinchpoint_infra.content.errors import ContentError, CostlyError

_CHILD = "pinchpoint_infra.content.child"
CPU_S, WITHIN_S = 10.0, 25.0
"""Limits in seconds for reading one document: CPU time and wall-clock time. A crawl waits 30 s for an
answer."""
MEMORY_BYTES = 2**30
_DOCUMENTS = 5_000
"""Number of documents that one child reads."""
_SLACK_S = 5.0
"""Seconds after the limit at which the parent ends a child that did not end by itself."""
OUT_OF_MEMORY = f"that needs more than {MEMORY_BYTES // 2**20:,} MiB of memory to be read"
_TIME = f"that takes more than {CPU_S:.0f} s of CPU time, or {WITHIN_S:.0f} s, to be read"
_MOST = 8
_AHEAD = 4
"""Number of parts per worker that are outstanding, or done and not yet collected."""

_P = ParamSpec("_P")
_T = TypeVar("_T")
Part = TypeVar("Part")
Result = TypeVar("Result")


class _EndedError(Exception):
    """A child ended with this exit status; None: it does not answer."""

    def __init__(self, status: int | None) -> None:
        super().__init__(status)
        self.status = status


class _Child:
    """A child process, which does one piece of work at a time."""

    def __init__(self, cores: Collection[int], *, limited: bool) -> None:
        ours, theirs = socket.socketpair()
        given = [str(theirs.fileno()), str(int(limited)), ",".join(map(str, sorted(cores)))]
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _CHILD, *given], stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
            )
        self._link = Connection(ours.detach())
        self.done = 0

    def ask(self, work: Callable[..., _T], *given: object, within_s: float | None = None) -> _T:
        """Return the result of the work, or raise its exception. Raises ``_EndedError`` if the child ends."""
        self.done += 1
        try:
            self._link.send((work, given))
            if not self._link.poll(within_s):
                raise _EndedError(None)
            fine, result = self._link.recv()
        except (EOFError, OSError) as error:
            raise _EndedError(self._process.wait()) from error
        if not fine:
            raise result
        t: _T = result
        return t

    def end(self) -> None:
        """Kill the process."""
        self._link.close()
        self._process.kill()
        self._process.wait()


class _Readers:
    """Child processes that read documents: one for each thread that asks at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Child] = []

    def ask(self, work: Callable[..., _T], *given: object) -> _T:
        with self._lock:
            child = self._idle.pop() if self._idle else _reader()
        try:
            return self._asked(child, work, *given)
        except CostlyError as error:
            if not error.memory or child.done == 1:
                raise
        # Earlier documents may have used most of the memory, so a new process reads this document.
        return self._asked(_reader(), work, *given)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for child in idle:
            child.end()

    def _asked(self, child: _Child, work: Callable[..., _T], *given: object) -> _T:
        keep = child.done + 1 < _DOCUMENTS
        try:
            return child.ask(work, *given, within_s=WITHIN_S + _SLACK_S)
        except _EndedError as error:
            keep = False
            raise _why_ended(error.status) from error
        except CostlyError:
            keep = False
            raise
        finally:
            if keep:
                with self._lock:
                    self._idle.append(child)
            else:
                child.end()


def _reader() -> _Child:
    return _Child(os.sched_getaffinity(0), limited=True)


def _why_ended(status: int | None) -> CostlyError:
    """Return why a reader ended: a lack of memory, or a document that crashed the library."""
    if status in (None, -signal.SIGPROF, -signal.SIGALRM):
        return CostlyError(_TIME)
    # a library without memory aborts, or the system kills the process
    if status in (-signal.SIGABRT, -signal.SIGKILL):
        return CostlyError(OUT_OF_MEMORY, memory=True)
    ended = signal.Signals(-status).name if status < 0 else f"exit status {status}"
    return CostlyError(f"that crashes the library that reads it ({ended})")


_READERS = _Readers()


def apart(work: Callable[_P, _T], *given: _P.args, **_: _P.kwargs) -> _T:
    """Run ``work`` (a function of a module) in a child and return its result or raise its exception.

    Thread-safe.

    Raises:
        CostlyError: the work exceeded a limit, or ended the child.
    """
    return _READERS.ask(work, *given)


def close() -> None:
    """End idle readers; later calls start new ones."""
    _READERS.close()


class Workers:
    """A pool of worker processes, one per core. On a machine with one core there are none.

    Args:
        cores: cores for the workers.
    """

    def __init__(self, cores: Collection[int]) -> None:
        self._cores = set(cores)
        self._all: list[_Child] = []
        self._idle: list[_Child] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Kill the workers and drop unfinished work."""
        self._end()

    def _end(self) -> None:
        for child in self._all:
            child.end()
        self._all, self._idle = [], []

    def each(
        self, work: Callable[[Part], Result], parts: Iterable[Part], *, worth_it: bool = True
    ) -> Generator[Result, None, None]:
        """Yield the result of ``work`` for every part, in the order of the parts.

        Args:
            work: function of a module. Its exceptions are raised here.
            parts: parts of the work. They are generated when needed, so that only parts in progress are in
                memory.
            worth_it: whether the work is large enough to start processes.
        """
        if not worth_it or len(self._cores) < 2:
            yield from map(work, parts)
            return
        most = min(_MOST, len(self._cores))
        waiting: deque[Future[Result]] = deque()
        with ThreadPoolExecutor(most) as threads:
            try:
                for part in parts:
                    waiting.append(threads.submit(self._asked, work, part))
                    if len(waiting) == _AHEAD * most:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:  # the caller may stop early, or a part may fail
                for future in waiting:
                    future.cancel()

    def _asked(self, work: Callable[[Part], Result], part: Part) -> Result:
        child: _Child | None
        try:
            child = self._idle.pop()
        except IndexError:  # all workers are busy
            child = _Child(self._cores, limited=False)
            self._all.append(child)
        try:
            return child.ask(work, part)
        except _EndedError as error:
            child = None
            raise ContentError(
                "a process that reads the corpus ended by itself "
                f"(exit status {error.status}): memory may be short"
            ) from error
        except ContentError:
            raise
        except Exception as error:
            raise ContentError(f"the corpus could not be read: {type(error).__name__}: {error}") from error
        finally:
            if child is not None:
                self._idle.append(child)


def parts(rows: Iterable[Part], size: int) -> Iterator[list[Part]]:
    """Yield the rows in lists of a given size. The last list may be shorter."""
    rest = iter(rows)
    while part := list(islice(rest, size)):
        yield part
