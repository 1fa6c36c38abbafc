"""What delays and interfaces share: a process in front of endpoints that accepts changes."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any


class ProxyProcess:
    """The process, for a farm's supervisor.

    Args:
        module: what it runs, with ``config`` as JSON in its only argument; it answers each line of JSON on
            its stdin with one line.
        config: its settings at the start.
        log: where it writes what goes wrong.
        environment: that of its process.
    """

    def __init__(self, module: str, config: object, log: Path, environment: Mapping[str, str]) -> None:
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, json.dumps(config)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                env=environment,
                start_new_session=True,
            )
        self._name = module.rpartition(".")[2]
        self._log = log
        try:
            self.report({"apply": False})  # its answer says that it listens
        except ConnectionError:
            self.stop()
            raise

    def report(self, command: Mapping[str, Any]) -> None:
        """Give an order and wait until it is obeyed. Raises ConnectionError where the process has ended."""
        assert self._process.stdin is not None  # noqa: S101 -- it was started with pipes
        assert self._process.stdout is not None  # noqa: S101 -- likewise
        try:
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            words = self._log.read_text(errors="replace").strip().splitlines()[-1:]
            raise ConnectionError(f"the {self._name} proxy has ended: {' '.join(words) or 'without a word'}")

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.communicate(timeout=10)


def reset(connection: asyncio.StreamWriter) -> None:
    """Break a connection so that the other side sees it broken, not ended."""
    at_once = struct.pack("ii", 1, 0)  # linger: on, 0 seconds
    connection.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
    connection.transport.abort()


async def carry(
    to: tuple[str, int],
    to_client: asyncio.StreamWriter,
    pumps: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Iterable[Coroutine[Any, Any, None]]],
) -> None:
    """Serve one client until both sides have ended, or either breaks; the other side learns of it.

    Args:
        to: the server behind the proxy.
        to_client: the client's connection.
        pumps: given the server's, what moves bytes between both.
    """
    try:
        server, to_server = await asyncio.open_connection(*to)
    except OSError:
        reset(to_client)  # what is not there cannot be reached
        return
    try:
        async with asyncio.TaskGroup() as tasks:
            for pump in pumps(server, to_server):
                tasks.create_task(pump)
    except* OSError:
        reset(to_client)
        reset(to_server)
    finally:
        to_client.close()
        to_server.close()


async def serve(servers: Sequence[asyncio.Server], obey: Callable[[dict[str, Any]], None]) -> None:
    """Serve for ever; lines of JSON on stdin are commands, each answered when it is obeyed."""
    loop = asyncio.get_running_loop()
    commands = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    while line := await commands.readline():
        obey(json.loads(line))
        sys.stdout.write(line.decode())
        sys.stdout.flush()
    obey({"apply": False})  # its farm has no supervisor any more and waits to be removed
    await asyncio.gather(*(server.serve_forever() for server in servers))
