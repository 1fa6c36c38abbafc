"""One connection to a host's ``pinchpoint-collect tail``: its clock, and what it sends."""

from __future__ import annotations

import json
import shlex
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from pinchpoint_collectors.agent.codec import VERSION, Decoder, Reading
from pinchpoint_collectors.common import legible
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Watch
from pinchpoint_collectors.remote import ssh
from pinchpoint_collectors.remote.clock import HostClock
from pinchpoint_collectors.remote.session import SshSession
from pinchpoint_collectors.remote.ssh import Address


class TailSession(SshSession):
    """One ``pinchpoint-collect tail``.

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
        self._clock = HostClock()
        self.tail_cpu_s = 0.0
        """CPU seconds of the tail there, when it last told its time."""
        self._decoder = Decoder()
        words = [
            command,
            "tail",
            "--follow",
            "--folder",
            folder,
            "--since",
            "now" if since_ns is None else str(since_ns),
        ]
        super().__init__(address, shlex.join(words))

    @property
    def greeted(self) -> bool:
        return self.hello is not None

    @property
    def has_reading(self) -> bool:
        return bool(self.readings) and self.wall.known

    def ask_time(self) -> None:
        self._ask({"time": self._next_question()})

    @property
    def wall(self) -> HostClock:
        return self._clock

    def ask_inventory(self, watch: Watch) -> None:
        """Ask what the host is, and where the disk roles of a watch lie there."""
        self._ask({"watch": {"host": watch.host, "tier": watch.tier, "disks": dict(watch.disks)}})

    def why_ended(self, silent_s: float = 0.0) -> str:  # noqa: ARG002 - ssh tells it by itself
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
        said = legible.loads(line)
        if "hello" in said:
            self.hello = self._understood(said["hello"])
        elif "time" in said:
            self._clock.observe(self._asked_ns.pop(said["time"]), said["ns"], now_ns)
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
