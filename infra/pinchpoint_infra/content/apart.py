"""Read foreign documents in processes of their own, with limits of memory and time.

A document can crash the library that reads it, take all memory, or take hours. Here that ends a child, and is
the document's failure. A child (see ``reader``) reads up to ``_DOCUMENTS`` of them and ends with its parent.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import ParamSpec, TypeVar

from pinchpoint_infra.content.errors import CostlyError

_CHILD = "pinchpoint_infra.content.reader"
CPU_S, WITHIN_S = 10.0, 25.0
"""What reading one document may take: of CPU time, and by the clock. A crawl waits 30 s for its answer."""
MEMORY_BYTES = 2**30
_DOCUMENTS = 5_000
_SLACK_S = 5.0
"""A child ends itself; one that is stopped is ended this long after the limit."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


OUT_OF_MEMORY = f"that needs more than {MEMORY_BYTES // 2**20:,} MiB of memory to be read"
_TIME = f"that takes more than {CPU_S:.0f} s of CPU time, or {WITHIN_S:.0f} s, to be read"


class _Child:
    """One process, which does one thing at a time."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _CHILD, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        self._link = Connection(ours.detach())
        self.done = 0

    def ask(self, work: Callable[..., _T], *given: object) -> _T:
        """What it returns or raises. Raises ``CostlyError``: the child is gone then."""
        self.done += 1
        try:
            self._link.send((work, given))
            if not self._link.poll(WITHIN_S + _SLACK_S):
                raise CostlyError(_TIME)
            fine, result = self._link.recv()
        except (EOFError, OSError) as error:
            raise self._ended() from error
        if fine:
            found: _T = result
            return found
        raise result

    def end(self) -> None:
        """End it at once."""
        self._link.close()
        self._process.kill()
        self._process.wait()

    def _ended(self) -> CostlyError:
        """Why it has: it may have had too little memory left, or the document crashed it."""
        status = self._process.wait()
        if status in (-signal.SIGPROF, -signal.SIGALRM):
            return CostlyError(_TIME)
        if status in (-signal.SIGABRT, -signal.SIGKILL):  # a library without memory aborts; the system kills
            return CostlyError(OUT_OF_MEMORY, memory=True)
        ended = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        return CostlyError(f"that crashes the library that reads it ({ended})")


class _Pool:
    """One child for each thread that asks at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Child] = []

    def ask(self, work: Callable[..., _T], *given: object) -> _T:
        child = self._taken()
        try:
            return self._asked(child, work, *given)
        except CostlyError as error:
            if not error.memory or child.done == 1:
                raise
        # What it had read before may have left little: what is judged is this document alone.
        return self._asked(_Child(), work, *given)

    def close(self) -> None:
        """End all that have nothing to do."""
        with self._lock:
            idle, self._idle = self._idle, []
        for child in idle:
            child.end()

    def _taken(self) -> _Child:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return _Child()

    def _asked(self, child: _Child, work: Callable[..., _T], *given: object) -> _T:
        keep = False
        try:
            found = child.ask(work, *given)
            keep = True
        except CostlyError:
            raise
        except Exception:  # what the work raised is an answer, too
            keep = True
            raise
        else:
            return found
        finally:
            if keep and child.done < _DOCUMENTS:
                with self._lock:
                    self._idle.append(child)
            else:
                child.end()


_POOL = _Pool()


def apart(work: Callable[_P, _T], *given: _P.args, **_: _P.kwargs) -> _T:
    """What ``work`` (a function of a module) returns or raises, done by a child. Safe in several threads.

    Raises:
        CostlyError: it took too much, or ended the child.
    """
    return _POOL.ask(work, *given)


def close() -> None:
    """End the children that have nothing to do; who asks again gets others."""
    _POOL.close()
