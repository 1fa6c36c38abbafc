"""Runs a process in front of endpoints that accepts changes; delays and interfaces use it."""

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
    """The process, as its supervisor sees it.

    Args:
        module: module to run, with ``config`` as JSON in its only argument. It answers each JSON line on
            stdin with one line.
        config: settings at the start.
        log: file for errors.
        environment: environment variables of the process.
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
            self.report({"apply": False})  # an answer means that the process listens
        except ConnectionError:
            self.stop()
            raise

    def report(self, command: Mapping[str, Any]) -> None:
        """Send a command and wait for its answer. Raises ConnectionError if the process has ended."""
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
        """End the process."""
        self._process.terminate()
        self._process.communicate(timeout=10)


def reset(connection: asyncio.StreamWriter) -> None:
    """Break a connection, so that the other side sees a failure and not a normal end."""
    at_once = struct.pack("ii", 1, 0)  # SO_LINGER: on, 0 seconds
    connection.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
    connection.transport.abort()


async def carry(
    to: tuple[str, int],
    to_client: asyncio.StreamWriter,
    pumps: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Iterable[Coroutine[Any, Any, None]]],
) -> None:
    """Serve one client until both sides have closed their connections, or one side fails.

    Args:
        to: address of the server behind the proxy.
        to_client: connection to the client.
        pumps: returns functions that move the bytes, for the connection to the server.
    """
    try:
        server, to_server = await asyncio.open_connection(*to)
    except OSError:
        reset(to_client)  # without a server, the client's connection is closed
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
    """Serve without end. Each line of JSON on stdin is a command, and is answered when it is done."""
    loop = asyncio.get_running_loop()
    commands = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    while line := await commands.readline():
        obey(json.loads(line))
        sys.stdout.write(line.decode())
        sys.stdout.flush()
    obey({"apply": False})  # its farm has lost its supervisor and waits to be removed
    await asyncio.gather(*(server.serve_forever() for server in servers))
