"""Links between network namespaces that delay and lose packets, in user space: not every kernel has netem.

A link is a pair of TUN devices and a process of this module that carries packets from one to the other. A
namespace is that of a process: it, its devices and its links end with that process.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import json
import os
import random
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

_NEW_NET = 0x40000000  # CLONE_NEWNET
_SET_DEVICE = 0x400454CA  # TUNSETIFF
_TUN_WITHOUT_HEADER = 0x1001  # IFF_TUN | IFF_NO_PI
_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> None:
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _enter(namespace: int) -> None:
    _checked(_libc.setns(namespace, _NEW_NET))


@contextmanager
def own_network() -> Iterator[int]:
    """A network namespace for this thread and for what it starts meanwhile; yields its process id (root)."""
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        _checked(_libc.unshare(_NEW_NET))
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        yield os.getpid()
    finally:
        _enter(before)
        os.close(before)


@contextmanager
def other_network() -> Iterator[int]:
    """A namespace that no process but a sleeping one is in: that one's process id (root)."""
    inside = "ip link set lo up && echo ready && exec sleep infinity"
    with subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sh", "-c", inside], stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield process.pid
        finally:
            process.kill()


class Link:
    """A link that is up.

    Attributes:
        carried, lost: packets both ways; known once it has ended.
    """

    def __init__(self) -> None:
        self.carried = self.lost = 0


@contextmanager
def lossy_link(
    near: str, near_address: str, far_pid: int, far: str, far_address: str, *, delay_s: float, loss: float
) -> Iterator[Link]:
    """Connect this thread's namespace and another process's.

    Args:
        near: the name of the device here.
        near_address: its address.
        far_pid: a process of the other namespace.
        far: the name of the device there.
        far_address: its address.
        delay_s: how long each packet takes, each way.
        loss: the share of the packets that vanish.
    """
    link = Link()
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(f"/proc/{far_pid}/ns/net", os.O_RDONLY)
    command = [sys.executable, __file__, str(own), near, str(there), far, str(delay_s), str(loss)]
    with subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", *command], stdout=subprocess.PIPE, pass_fds=(own, there)
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n", f"no devices {near} and {far}"
            for inside, name, address, peer in (
                ([], near, near_address, far_address),
                (["nsenter", f"--target={far_pid}", "--net"], far, far_address, near_address),
            ):
                for words in (
                    ["address", "add", address, "peer", peer, "dev", name],
                    ["link", "set", name, "up"],
                ):
                    subprocess.run([*inside, "ip", *words], check=True)
            yield link
        finally:
            process.terminate()
            assert process.stdout is not None
            said = process.stdout.read()
            os.close(own)
            os.close(there)
            if said:
                link.carried, link.lost = json.loads(said)


def _device(namespace: int, name: str) -> int:
    _enter(namespace)
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, _SET_DEVICE, struct.pack("16sH", name.encode(), _TUN_WITHOUT_HEADER))
    return device


def main() -> None:
    """Entry: carry packets until SIGTERM, then say how many were carried, and how many lost."""
    own, near, there, far, delay, loss = sys.argv[1:]
    devices = _device(int(own), near), _device(int(there), far)
    other = {devices[0]: devices[1], devices[1]: devices[0]}
    chance = random.Random(near)  # the same packets at every run
    due: list[tuple[float, int, int, bytes]] = []
    carried = lost = 0
    over = False

    def end(*_: object) -> None:
        nonlocal over
        over = True

    signal.signal(signal.SIGTERM, end)
    print("ready", flush=True)
    while not over:
        wait_s = max(0.0, due[0][0] - time.monotonic()) if due else 0.5
        for device in select.select(devices, [], [], wait_s)[0]:
            packet = os.read(device, 65536)
            if chance.random() < float(loss):
                lost += 1
            else:
                heapq.heappush(due, (time.monotonic() + float(delay), carried, other[device], packet))
                carried += 1
        while due and due[0][0] <= time.monotonic():
            _, _, device, packet = heapq.heappop(due)
            try:
                os.write(device, packet)
            except OSError:
                lost += 1  # the device is down: the link is cut
    print(json.dumps([carried, lost]), flush=True)


if __name__ == "__main__":
    main()
