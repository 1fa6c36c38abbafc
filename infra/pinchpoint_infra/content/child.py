"""Runs pieces of work in a child process (see ``processes``).

``python -m pinchpoint_infra.content.child DESCRIPTOR LIMITED CORES`` runs the work that arrives on the
socket, on the given cores, until the parent closes the socket. The child never outlives its parent: a signal
without a handler ends it, in any library, if the parent closes the socket, or if a piece of work takes too
long and LIMITED is 1.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import signal
import sys
import traceback
from collections.abc import Iterator
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

from pinchpoint_infra.content.errors import ContentError, CostlyError
from pinchpoint_infra.content.processes import CPU_S, MEMORY_BYTES, OUT_OF_MEMORY, WITHIN_S


def _serve(link: Connection, *, limited: bool) -> None:
    while True:
        try:
            work, given = link.recv()
        except EOFError:
            return
        with _within_limits() if limited else contextlib.nullcontext(), _ended_with(link):
            try:
                answer = ForkingPickler.dumps((True, work(*given)))
            except MemoryError:
                answer = ForkingPickler.dumps((False, CostlyError(OUT_OF_MEMORY, memory=True)))
            except Exception as error:  # noqa: BLE001 -- raised by who asked
                if not (limited or isinstance(error, ContentError)):
                    traceback.print_exc()
                answer = ForkingPickler.dumps((False, error))
        link.send_bytes(answer)
        del answer, given


@contextlib.contextmanager
def _within_limits() -> Iterator[None]:
    """Let SIGPROF or SIGALRM end this process at the limits of CPU time and wall-clock time."""
    signal.setitimer(signal.ITIMER_PROF, CPU_S)
    signal.setitimer(signal.ITIMER_REAL, WITHIN_S)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)


@contextlib.contextmanager
def _ended_with(link: Connection) -> Iterator[None]:
    """Let SIGIO end this process when the socket is closed, because the parent may have been killed.

    The signal also arrives after the parent has read an answer, so the state of the socket is checked.

    PR_SET_PDEATHSIG is no alternative: it follows the parent's thread, not its process.
    """
    flags = fcntl.fcntl(link.fileno(), fcntl.F_GETFL)
    fcntl.fcntl(link.fileno(), fcntl.F_SETFL, flags | os.O_ASYNC)
    if link.poll(0):  # the socket is closed already: nothing else can arrive before the answer
        sys.exit(0)
    yield
    fcntl.fcntl(link.fileno(), fcntl.F_SETFL, flags)


def main() -> None:
    """Run the process."""
    descriptor, limited, cores = int(sys.argv[1]), sys.argv[2] == "1", sys.argv[3]
    os.sched_setaffinity(0, {int(core) for core in cores.split(",")})
    if limited:
        comm = Path("/proc/self/comm")
        if comm.exists():  # elsewhere than on Linux, the process has the name of the interpreter
            comm.write_text("pp-reader")
        with contextlib.suppress(ValueError, OSError):  # the system lacks this limit, or has a lower one
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the parent
    with contextlib.suppress(BrokenPipeError, ConnectionResetError), Connection(descriptor) as link:
        fcntl.fcntl(link.fileno(), fcntl.F_SETOWN, os.getpid())
        # Only the end of the connection can arrive before the answer.
        signal.signal(signal.SIGIO, lambda *_: os._exit(0) if link.poll(0) else None)
        _serve(link, limited=limited)


if __name__ == "__main__":
    main()
