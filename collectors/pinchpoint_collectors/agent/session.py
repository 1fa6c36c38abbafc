"""One connection to a host's ``pinchpoint-collect tail``: its clock, and what it sends."""

from __future__ import annotations

import json
import shlex
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import psutil

from pinchpoint_collectors.agent.codec import VERSION, Decoder, Reading
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Watch
from pinchpoint_collectors.remote import ssh
from pinchpoint_collectors.remote.clock import HostClock
from pinchpoint_collectors.remote.link import Link
from pinchpoint_collectors.remote.ssh import Address

_SAID_LINES = 20


class Session:
    """One ssh process. It waits for nothing by itself: ``wait`` does, for as long as it is told.

    Args:
        address: the host.
        command: ``pinchpoint-collect`` there.
        folder: its ring there.
        since_ns: only readings after this place in the ring; None: only those that are still to come.

    Raises:
        CollectorError: there is no ssh on this machine.
    """

    def __init__(self, address: Address, command: str, folder: str, since_ns: int | None) -> None:
        self.hello: dict[str, Any] | None = None
        self.readings: deque[Reading] = deque()
        self.inventories: dict[str, dict[str, Any]] = {}
        """By host: ``facts``, or ``error``."""
        self.clock = HostClock()
        self.tail_cpu_s = 0.0
        """CPU seconds of the tail there, when it last told its time."""
        self._address = address
        self._decoder = Decoder()
        self._asked_ns: dict[int, int] = {}
        self._number = 0
        self._said: deque[str] = deque(maxlen=_SAID_LINES)
        words = [
            command,
            "tail",
            "--follow",
            "--folder",
            folder,
            "--since",
            "now" if since_ns is None else str(since_ns),
        ]
        self._link = Link(ssh.argv(address, shlex.join(words)))

    def wait(self, until_s: float, enough: Callable[[], bool]) -> None:
        """Take what comes until it is enough, the link ends, or it is ``until_s`` (monotonic clock)."""
        self._take(0.0)
        while not enough() and not self._link.ended:
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                return
            self._take(left_s)

    def ask_time(self) -> None:
        """Ask for the host's time; the answer goes to its clock."""
        self._number += 1
        self._asked_ns[self._number] = time.time_ns()
        self._ask({"time": self._number})

    def ask_inventory(self, watch: Watch) -> None:
        """Ask what the host is, and where the disk roles of a watch lie there."""
        self._ask({"watch": {"host": watch.host, "tier": watch.tier, "disks": dict(watch.disks)}})

    @property
    def answered(self) -> bool:
        """Whether no question for the time is open."""
        return not self._asked_ns

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""
        return self._link.ended

    @property
    def received_bytes(self) -> int:
        """All that came, ssh's own protocol not counted."""
        return self._link.received_bytes

    def cpu_s(self) -> float | None:
        """CPU seconds of the ssh process here; None where it has ended."""
        try:
            used = psutil.Process(self._link.pid).cpu_times()
        except psutil.Error:
            return None
        return used.user + used.system

    def why_ended(self) -> str:
        """Why the link ended, with the remedy."""
        status = self._link.status()
        said = "\n".join([*self._said, self._link.errors])
        words = [line for line in said.splitlines() if line.startswith("pinchpoint-collect: ")]
        if words:
            return f"{self._address}: {words[-1]}"
        if status in (126, 127):
            return (
                f"{self._address}: no pinchpoint-collect is there (exit status {status}); install it by the "
                "role infra/ansible, say where it is with `command:`, or watch this host by `kind: ssh`"
            )
        if self.hello is not None and status != ssh.SSH_FAILED:
            return f"{self._address}: pinchpoint-collect was ended there (status {status})"
        return ssh.why(self._address, status, said)

    def close(self) -> None:
        """End it, here and on the host; what records there goes on. Safe to call twice."""
        self._link.close()

    def _ask(self, question: Mapping[str, Any]) -> None:
        self._link.write(json.dumps(question) + "\n")

    def _take(self, timeout_s: float) -> None:
        self._link.pump(timeout_s)
        now_ns = time.time_ns()
        for line in self._link.pieces():
            try:
                self._hear(line, now_ns)
            except (ValueError, KeyError) as error:
                if self.hello is None:
                    self._said.append(line)  # a banner
                    continue
                raise CollectorError(
                    f"{self._address}: pinchpoint-collect said what is not understood: {line[:80]!r}"
                ) from error
        self._said += self._link.error_lines()

    def _hear(self, line: str, now_ns: int) -> None:
        if line.startswith('{"at":'):
            self.readings.append(self._decoder.decode(line))
            return
        said = json.loads(line)
        if "hello" in said:
            self.hello = self._understood(said["hello"])
        elif "time" in said:
            self.clock.observe(self._asked_ns.pop(said["time"]), said["ns"], now_ns)
            self.tail_cpu_s = said["cpu_s"]
        else:
            self.inventories[said["inventory"]] = said

    def _understood(self, hello: dict[str, Any]) -> dict[str, Any]:
        if hello["version"] != VERSION:
            raise CollectorError(
                f"{self._address}: its pinchpoint-collect speaks version {hello['version']}, this one "
                f"{VERSION}; install the same release on both"
            )
        return hello
