"""Runs a TCP proxy that adds latency and limits bandwidth in front of an endpoint.

``python -m pinchpoint_infra.faults.delay CONFIG`` takes a JSON list of ``{"port", "to", "delay"}``: the port
on which the proxy listens on the loopback interface, the port behind it, and the ``DelayedEndpoint``. The
process reads JSON lines on stdin and answers each with one line: ``{"apply": true}`` or false, or
``{"speed_ratio": RATIO, "way": POSITION}``. Before the first line and after the end of stdin, bytes pass at
once.

The TCP handshake and acknowledgements are local and have no delay. Instead, the first bytes of each side wait
one round trip, which is the time of the handshake.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pinchpoint_infra.faults.proxy import ProxyProcess, carry, serve
from pinchpoint_infra.ports import free_port

_CHUNK_BYTES = 64 * 2**10
_CHUNKS = 256
"""Largest number of chunks in flight per connection and direction (16 MiB) before the sender must wait."""


@dataclass(frozen=True, slots=True)
class DelayedEndpoint:
    """The delay and the bandwidth of the path to an endpoint.

    Attributes:
        round_trip_s: round-trip time in seconds. Half of it is added in each direction.
        bytes_per_s: bandwidth of each direction for all connections together, in bytes per second; None: no
            limit.
    """

    round_trip_s: float = 0.0
    bytes_per_s: float | None = None

    def at(self, ratio: float) -> DelayedEndpoint:
        """Return the same delay at a share of its speed."""
        narrower = None if self.bytes_per_s is None else self.bytes_per_s * ratio
        return DelayedEndpoint(self.round_trip_s / ratio, narrower)


class Pipe:
    """One direction of the path to an endpoint, shared by all its connections."""

    def __init__(self, delay: DelayedEndpoint) -> None:
        self.delay = delay
        self._free_at = 0.0
        self.on = False

    def arrives_at(self, now: float, size_bytes: int) -> float:
        """Return when bytes sent now arrive: after all earlier bytes, and after half a round trip."""
        if not self.on:
            return now
        if self.delay.bytes_per_s is not None:
            self._free_at = max(now, self._free_at) + size_bytes / self.delay.bytes_per_s
        return max(now, self._free_at) + self.delay.round_trip_s / 2


class DelayedPath:
    """The path to one endpoint and back."""

    def __init__(self, delay: DelayedEndpoint, port: int) -> None:
        self._delay = delay
        self._port = port
        self._there, self._back = Pipe(delay), Pipe(delay)

    def apply(self, *, on: bool) -> None:
        """Apply the delay from now on, or remove it."""
        self._there.on = self._back.on = on

    def slow_to(self, ratio: float) -> None:
        """Set the speed of the path: at 0.8 a round trip takes 1.25 times as long; 1: as configured."""
        self._there.delay = self._back.delay = self._delay.at(ratio)

    async def carry(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        """Serve one client until both sides have closed their connections, or one side fails."""
        opened_at = asyncio.get_running_loop().time()
        opened_at += self._there.delay.round_trip_s if self._there.on else 0.0

        def pumps(
            server: asyncio.StreamReader, to_server: asyncio.StreamWriter
        ) -> Iterator[Coroutine[Any, Any, None]]:
            for source, target, pipe in (
                (client, to_server, self._there),
                (server, to_client, self._back),
            ):
                under_way: _UnderWay = asyncio.Queue(_CHUNKS)
                yield _take(source, pipe, opened_at, under_way)
                yield _deliver(under_way, target)

        await carry(("127.0.0.1", self._port), to_client, pumps)


_UnderWay = asyncio.Queue[tuple[float, bytes]]
"""Arrival time and bytes; empty bytes: the end of the connection."""


async def _take(source: asyncio.StreamReader, pipe: Pipe, opened_at: float, under_way: _UnderWay) -> None:
    """Read continuously while earlier bytes are in flight, because a delay must not reduce the rate."""
    now = asyncio.get_running_loop().time
    data = b"first"
    while data:
        data = await source.read(_CHUNK_BYTES)
        await under_way.put((pipe.arrives_at(max(opened_at, now()), len(data)), data))


async def _deliver(under_way: _UnderWay, target: asyncio.StreamWriter) -> None:
    now = asyncio.get_running_loop().time
    while True:
        arrives_at, data = await under_way.get()
        if (left_s := arrives_at - now()) > 0:
            await asyncio.sleep(left_s)
        if not data:
            target.write_eof()
            return
        target.write(data)
        await target.drain()


class DelayProxy(ProxyProcess):
    """The process of the proxy, as its supervisor sees it.

    Args:
        ways: (port behind the proxy, delay), one per endpoint. For log and environment see ``ProxyProcess``.

    Attributes:
        ports: ports for clients in the same order.
    """

    def __init__(
        self, ways: Sequence[tuple[int, DelayedEndpoint]], log: Path, environment: Mapping[str, str]
    ) -> None:
        self.ports = [free_port() for _ in ways]
        config = [
            {"port": port, "to": to, "delay": asdict(delay)}
            for port, (to, delay) in zip(self.ports, ways, strict=True)
        ]
        super().__init__("pinchpoint_infra.faults.delay", config, log, environment)

    def apply(self, *, on: bool) -> None:
        """Apply the delays from now on, or remove them. Raises ConnectionError if the process has ended."""
        self.report({"apply": on})

    def slow_to(self, position: int, ratio: float) -> None:
        """Slow one path down (see ``DelayedPath.slow_to``). Raises the same errors as ``apply``."""
        self.report({"speed_ratio": ratio, "way": position})


async def _serve(config: list[dict[str, Any]]) -> None:
    ways = [DelayedPath(DelayedEndpoint(**entry["delay"]), entry["to"]) for entry in config]
    servers = [
        await asyncio.start_server(way.carry, "127.0.0.1", entry["port"], backlog=1024)
        for way, entry in zip(ways, config, strict=True)
    ]

    def obey(command: dict[str, Any]) -> None:
        match command:
            case {"apply": on}:
                for way in ways:
                    way.apply(on=on)
            case {"speed_ratio": ratio, "way": position}:
                ways[position].slow_to(ratio)

    await serve(servers, obey)


if __name__ == "__main__":
    asyncio.run(_serve(json.loads(sys.argv[1])))
