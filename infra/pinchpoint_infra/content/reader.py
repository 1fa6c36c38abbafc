"""One of the processes that read documents with limits: see ``apart``.

``python -m pinchpoint_infra.content.reader DESCRIPTOR``: it does what comes over that socket until the other
end is closed. Where one document takes too long, a signal that nothing catches ends it, in any library.
"""

from __future__ import annotations

import contextlib
import resource
import signal
import sys
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler

from pinchpoint_infra.content.apart import CPU_S, MEMORY_BYTES, OUT_OF_MEMORY, WITHIN_S
from pinchpoint_infra.content.errors import CostlyError


def _serve(link: Connection) -> None:
    while True:
        try:
            work, given = link.recv()
        except EOFError:
            return
        signal.setitimer(signal.ITIMER_PROF, CPU_S)
        signal.setitimer(signal.ITIMER_REAL, WITHIN_S)
        try:
            answer = ForkingPickler.dumps((True, work(*given)))  # type: ignore[arg-type]
        except MemoryError:
            answer = ForkingPickler.dumps((False, CostlyError(OUT_OF_MEMORY, memory=True)))
        except Exception as error:  # noqa: BLE001 -- raised by who asked
            answer = ForkingPickler.dumps((False, error))
        link.send_bytes(answer)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        del answer, given


def main() -> None:
    """Entry of a reader."""
    with contextlib.suppress(ValueError, OSError):  # a system that knows no such limit, or allows less
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    with contextlib.suppress(BrokenPipeError, ConnectionResetError), Connection(int(sys.argv[1])) as link:
        _serve(link)


if __name__ == "__main__":
    main()
