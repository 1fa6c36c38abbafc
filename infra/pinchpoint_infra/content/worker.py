"""One of the processes that share a large piece of work: see ``workers``.

``python -m pinchpoint_infra.content.worker DESCRIPTOR CORES``: it runs on those cores and does what comes
over that socket until the socket's other end is closed, so it never outlives who started it.
"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from multiprocessing.connection import Connection

from pinchpoint_infra.content.errors import ContentError


def _serve(link: Connection) -> None:
    while True:
        try:
            work, part = link.recv()
        except EOFError:
            return
        try:
            answer = True, work(part)
        except ContentError as error:
            answer = False, error
        except Exception as error:  # noqa: BLE001 -- told to who asked, and in full to the log
            traceback.print_exc()
            answer = False, ContentError(f"the corpus could not be read: {type(error).__name__}: {error}")
        link.send(answer)


def main() -> None:
    """Entry of a worker."""
    os.sched_setaffinity(0, {int(core) for core in sys.argv[2].split(",")})
    with contextlib.suppress(BrokenPipeError, ConnectionResetError), Connection(int(sys.argv[1])) as link:
        _serve(link)  # who started it may be gone: then nobody wants the rest


if __name__ == "__main__":
    main()
