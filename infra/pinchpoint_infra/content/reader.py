"""One of the processes that read documents with limits: see ``apart``.

``python -m pinchpoint_infra.content.reader DESCRIPTOR``: it does what comes over that socket until the other
end is closed. Where one document takes too long, or the other end is closed meanwhile, a signal that nothing
catches ends it, in any library.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import signal
import sys
from collections.abc import Iterator
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

from pinchpoint_infra.content.apart import CPU_S, MEMORY_BYTES, OUT_OF_MEMORY, WITHIN_S
from pinchpoint_infra.content.errors import CostlyError


def _serve(link: Connection) -> None:
    while True:
        try:
            work, given = link.recv()
        except EOFError:
            return
        with _limited(), _ended_with(link):
            try:
                answer = ForkingPickler.dumps((True, work(*given)))
            except MemoryError:
                answer = ForkingPickler.dumps((False, CostlyError(OUT_OF_MEMORY, memory=True)))
            except Exception as error:  # noqa: BLE001 -- raised by who asked
                answer = ForkingPickler.dumps((False, error))
        link.send_bytes(answer)
        del answer, given


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """SIGPROF or SIGALRM ends this process at the limit."""
    signal.setitimer(signal.ITIMER_PROF, CPU_S)
    signal.setitimer(signal.ITIMER_REAL, WITHIN_S)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)


@contextlib.contextmanager
def _ended_with(link: Connection) -> Iterator[None]:
    """SIGIO ends this process when the other end is closed: the process that asked may have been killed.

    PR_SET_PDEATHSIG would not do: it follows the thread that started this process, not the process.
    """
    flags = fcntl.fcntl(link.fileno(), fcntl.F_GETFL)
    fcntl.fcntl(link.fileno(), fcntl.F_SETFL, flags | os.O_ASYNC)
    if link.poll(0):  # closed already: nothing else comes before the answer
        sys.exit(0)
    yield
    fcntl.fcntl(link.fileno(), fcntl.F_SETFL, flags)


def main() -> None:
    """Entry of a reader."""
    comm = Path("/proc/self/comm")
    if comm.exists():  # elsewhere than on Linux the name is the interpreter's
        comm.write_text("pp-reader")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asks
    with contextlib.suppress(ValueError, OSError):  # a system that knows no such limit, or allows less
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    with contextlib.suppress(BrokenPipeError, ConnectionResetError), Connection(int(sys.argv[1])) as link:
        fcntl.fcntl(link.fileno(), fcntl.F_SETOWN, os.getpid())
        _serve(link)


if __name__ == "__main__":
    main()
