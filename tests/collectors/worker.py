"""A process that uses CPU on command; tests use it in place of a tier's server.

It reads commands from stdin, one per line, and answers each with a line on stdout when done. ``burn SECONDS``
uses CPU in this process; ``child SECONDS`` in a child that it waits for; ``hold SECONDS`` in a child that
stays alive; ``end`` ends and waits for that child; ``thread NAME SECONDS`` uses CPU in a thread; ``name
NAME`` changes the process name. With an argument it listens on that TCP port (0: any), and its first answer
is the port.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path


def burn(seconds: float) -> None:
    """Use this much CPU time in this thread."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def burn_named(name: str, seconds: float) -> None:
    """Use this much CPU time in a thread that has this name in the kernel."""
    Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(name)
    burn(seconds)


def fork_and_burn(seconds: float, *, stay: bool) -> int:
    """Use CPU in a child with a session of its own, as PostgreSQL does; return its id afterwards."""
    readable, writable = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        burn(seconds)
        os.write(writable, b"x")
        if stay:
            signal.pause()
        os._exit(0)
    os.read(readable, 1)
    os.close(readable)
    os.close(writable)
    return pid


def main() -> None:
    """Serve commands until stdin ends."""
    if len(sys.argv) > 1:
        listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
        print(listener.getsockname()[1], flush=True)
    held = 0
    for line in sys.stdin:
        command, *words = line.split()
        if command == "burn":
            burn(float(words[0]))
        elif command == "child":
            os.waitpid(fork_and_burn(float(words[0]), stay=False), 0)
        elif command == "hold":
            held = fork_and_burn(float(words[0]), stay=True)
        elif command == "end":
            os.kill(held, signal.SIGKILL)
            os.waitpid(held, 0)
        elif command == "name":
            Path("/proc/self/comm").write_text(words[0])
        elif command == "thread":
            thread = threading.Thread(target=burn_named, args=(words[0], float(words[1])))
            thread.start()
            thread.join()
        print("done", flush=True)


if __name__ == "__main__":
    main()
