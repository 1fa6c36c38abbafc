"""Network links with delay and packet loss between namespaces, in user space: some kernels lack netem.

A link is a pair of TUN devices and a process of this module that carries packets from one to the other. A
namespace belongs to a process; the namespace, its devices and its links end with the process.
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
    """Run the block's thread in a network namespace of its own; yield this process's id. Needs root."""
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
    """Create a network namespace with only a sleeping process in it; yield that process's id. Needs root."""
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
    """A link between two network namespaces.

    Attributes:
        carried, lost: number of packets in both directions; set when the link has ended.
    """

    def __init__(self) -> None:
        self.carried = self.lost = 0


@contextmanager
def lossy_link(
    near: str, near_address: str, far_pid: int, far: str, far_address: str, *, delay_s: float, loss: float
) -> Iterator[Link]:
    """Connect this thread's namespace with the namespace of another process.

    Args:
        near: name of the device in this namespace.
        near_address: address of the near device.
        far_pid: id of a process in the other namespace.
        far: name of the device in the other namespace.
        far_address: address of the far device.
        delay_s: one-way delay of each packet, in seconds.
        loss: ratio of packets that are lost, 0 to 1.
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
    """Carry packets until SIGTERM, then print the numbers of carried and lost packets."""
    own, near, there, far, delay, loss = sys.argv[1:]
    devices = _device(int(own), near), _device(int(there), far)
    other = {devices[0]: devices[1], devices[1]: devices[0]}
    chance = random.Random(near)  # a fixed seed: each run loses the same packets
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
                lost += 1  # the device is down: the test has cut the link
    print(json.dumps([carried, lost]), flush=True)


if __name__ == "__main__":
    main()
