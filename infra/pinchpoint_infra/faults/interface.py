"""Emulates a network interface of a known speed in front of an endpoint by two tunnel devices.

``python -m pinchpoint_infra.faults.interface CONFIG`` takes a JSON object ``{"tier", "port", "to",
"bytes_per_s"}``: the tier, the port for clients on the loopback interface, the port behind the interface, and
the speed. The name of the interface consists of the tier and the process id, such as ``sql4711``. The process
reads JSON lines on stdin, ``{"apply": true}`` or false, and answers each with one line. Before the first line
and after the end of stdin, there is no limit of speed.

The path is: client -> 127.0.0.1:port -> [interface, its packets at its speed, a namespace of its own] ->
127.0.0.1:to

The interface is an interface of the kernel, with counters and a speed. Both devices and the namespace belong
to this process and disappear with it. Only root can create them, and only on Linux.
"""

from __future__ import annotations

import array
import asyncio
import ctypes
import fcntl
import ipaddress
import json
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from pinchpoint_infra.faults.proxy import ProxyProcess, carry, serve
from pinchpoint_infra.ports import free_port

BITS = 1_000_000 / 8
"""Bits per unit of the speed that an interface reports, which is a whole number of Mbit/s."""

_NETWORK = ipaddress.ip_network("198.18.0.0/15")  # addresses of RFC 2544 for benchmarks, which are not routed
_PAIRS = 2**16
_PORT = 5000
_PACKET_BYTES = 9000  # jumbo frames cause fewer packets and less work
_QUEUE = 16
_CHUNK_BYTES = 64 * 2**10

_LATE_S = 0.02
"""Largest delay of a thread that wakes up, in seconds, unless the machine is saturated."""

_TUNNEL = "/dev/net/tun"
_CLONE_NEWNET = 0x40000000
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
_SIOCSIFFLAGS, _IFF_UP, _IFF_RUNNING = 0x8914, 0x1, 0x40
_SIOCSIFADDR, _SIOCSIFDSTADDR, _SIOCSIFNETMASK = 0x8916, 0x8918, 0x891C
_SIOCSIFMTU, _SIOCSIFTXQLEN = 0x8922, 0x8943
_SIOCETHTOOL, _ETHTOOL_SSET = 0x8946, 0x2
_ETHTOOL_COMMAND = "IIIHBBBBBBIIHBBI8x"  # linux/ethtool.h, struct ethtool_cmd


def missing() -> str | None:
    """Return why this machine cannot create such an interface; None if it can."""
    if os.geteuid() != 0:
        return "no root rights (network interfaces need them)"
    return None if Path(_TUNNEL).exists() else f"no {_TUNNEL} (tunnel devices)"


class PacketRate:
    """The limit of the rate of packets in one direction.

    Args:
        bytes_per_s: largest rate while ``on``, in bytes per second.
    """

    def __init__(self, bytes_per_s: float) -> None:
        self._bytes_per_s = bytes_per_s
        self._free_at = 0.0
        self.on = False

    def wait_s(self, now: float, size_bytes: int) -> float:
        """Return the seconds until a packet of a given size has passed, after the packets before it."""
        if not self.on:
            return 0.0
        # A sender that woke up late sends faster, so that the mean speed is exact.
        begin = self._free_at if self._free_at > now - _LATE_S else now
        self._free_at = begin + size_bytes / self._bytes_per_s
        return self._free_at - now


class Interface:
    """Both ends of the path, and the listening socket at the far end.

    Args:
        name: name of the interface, at most 15 characters.
        bytes_per_s: speed in bytes per second.
    """

    def __init__(self, name: str, bytes_per_s: float) -> None:
        here, there = _addresses(os.getpid() % _PAIRS)
        speed = round(bytes_per_s / BITS)
        self.address = (there, _PORT)
        self.listener: socket.socket | None = None
        self._far: int | None = None
        self._failure: OSError | None = None
        # A thread can have a namespace of its own. What it opens there stays after the thread has ended.
        thread = threading.Thread(target=self._open_far_end, args=(name, there, here, speed))
        thread.start()
        thread.join()
        if self._failure or self._far is None:
            raise OSError(f"the far end of {name} could not be made: {self._failure}") from self._failure
        near = _device(name, here, there, speed)
        self._rates: tuple[PacketRate, PacketRate] = (PacketRate(bytes_per_s), PacketRate(bytes_per_s))
        for source, target, rate in ((near, self._far, self._rates[0]), (self._far, near, self._rates[1])):
            threading.Thread(target=_pass_on, args=(source, target, rate), daemon=True).start()

    def apply(self, *, on: bool) -> None:
        """Apply the speed, or remove it."""
        for rate in self._rates:
            rate.on = on

    def _open_far_end(self, name: str, mine: str, other: str, speed: int) -> None:
        try:
            if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "no network namespace of its own")  # noqa: TRY301 -- handled below
            self._far = _device(name, mine, other, speed)
            self.listener = socket.socket()
            self.listener.bind(self.address)
            self.listener.listen(1024)
        except OSError as error:
            self._failure = error


def _addresses(number: int) -> tuple[str, str]:
    first = _NETWORK.network_address + 2 * number
    return str(first), str(first + 1)


def _device(name: str, mine: str, other: str, speed_megabits: int) -> int:
    """Create a tunnel device in the namespace of the calling thread. Return the descriptor that keeps it."""
    device = os.open(_TUNNEL, os.O_RDWR)
    called = name.encode()
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", called, _IFF_TUN | _IFF_NO_PI))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for command, address in (
            (_SIOCSIFADDR, mine),
            (_SIOCSIFDSTADDR, other),
            (_SIOCSIFNETMASK, "255.255.255.255"),
        ):
            words = struct.pack("16sHH4s16x", called, socket.AF_INET, 0, socket.inet_aton(address))
            fcntl.ioctl(control, command, words)
        fcntl.ioctl(control, _SIOCSIFMTU, struct.pack("16si20x", called, _PACKET_BYTES))
        fcntl.ioctl(control, _SIOCSIFTXQLEN, struct.pack("16si20x", called, _QUEUE))
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH22x", called, _IFF_UP | _IFF_RUNNING))
        full_duplex = 1
        fields = (_ETHTOOL_SSET, 0, 0, speed_megabits & 0xFFFF, full_duplex, *(0,) * 7, speed_megabits >> 16)
        settings = array.array("B", struct.pack(_ETHTOOL_COMMAND, *fields, 0, 0, 0))
        fcntl.ioctl(control, _SIOCETHTOOL, struct.pack("16sP16x", called, settings.buffer_info()[0]))
    return device


def _pass_on(source: int, target: int, rate: PacketRate) -> None:
    """Move packets from one end to the other at the speed of the interface."""
    while True:
        packet = os.read(source, _PACKET_BYTES)
        if (wait_s := rate.wait_s(time.monotonic(), len(packet))) > 0:
            time.sleep(wait_s)
        os.write(target, packet)


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(_CHUNK_BYTES):
        target.write(data)
        await target.drain()
    target.write_eof()


class InterfaceProxy(ProxyProcess):
    """The process of one interface, as its supervisor sees it.

    Args:
        tier: tier of the endpoint, which is part of the name of the interface.
        to: port behind the interface.
        bytes_per_s: speed in bytes per second. For log and environment see ``ProxyProcess``.

    Attributes:
        port: port for clients.
    """

    def __init__(
        self, tier: str, to: int, bytes_per_s: float, log: Path, environment: Mapping[str, str]
    ) -> None:
        self.port = free_port()
        config = {"tier": tier, "port": self.port, "to": to, "bytes_per_s": bytes_per_s}
        super().__init__("pinchpoint_infra.faults.interface", config, log, environment)

    def apply(self, *, on: bool) -> None:
        """Apply the speed from now on, or remove it. Raises ConnectionError if the process has ended."""
        self.report({"apply": on})


async def _serve(config: dict[str, Any]) -> None:
    interface = Interface(f"{config['tier']}{os.getpid()}", config["bytes_per_s"])

    def way(to: tuple[str, int]) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
        async def connected(client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
            await carry(
                to,
                to_client,
                lambda server, to_server: (_copy(client, to_server), _copy(server, to_client)),
            )

        return connected

    servers = [
        await asyncio.start_server(way(interface.address), "127.0.0.1", config["port"], backlog=1024),
        await asyncio.start_server(way(("127.0.0.1", config["to"])), sock=interface.listener),
    ]
    await serve(servers, lambda command: interface.apply(on=command["apply"]))


if __name__ == "__main__":
    asyncio.run(_serve(json.loads(sys.argv[1])))
