"""Defines the protocol of a session with a host over ssh."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable

import psutil

from pinchpoint_collectors.remote import ssh
from pinchpoint_collectors.remote.clock import HostClock
from pinchpoint_collectors.remote.ssh import Address

_SAID_LINES = 20


class SshSession(ABC):
    """One ssh process. Only ``wait`` waits, for the given time.

    Args:
        address: ssh address of the host.
        command: the command on the host.

    Raises:
        CollectorError: ssh is not installed on this machine.
    """

    def __init__(self, address: Address, command: str) -> None:
        self._address = address
        self._asked_ns: dict[int, int] = {}
        """Number of a request -> time at which it was sent. Answered requests are removed."""
        self._number = 0
        self._said: deque[str] = deque(maxlen=_SAID_LINES)
        self._link = ssh.start(address, command)

    def wait(self, until_s: float, enough: Callable[[], bool]) -> None:
        """Receive until ``enough`` is true, the link ends, or the monotonic time ``until_s`` is reached."""
        self._take(0.0)
        while not enough() and not self._link.ended:
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                return
            self._take(left_s)

    @property
    def answered(self) -> bool:
        """Return whether no request for the time is open."""
        return not self._asked_ns

    @property
    def ended(self) -> bool:
        """Return whether no more data will arrive."""
        return self._link.ended

    @property
    def received_bytes(self) -> int:
        """Return the number of received bytes, without ssh's own protocol."""
        return self._link.received_bytes

    def cpu_s(self) -> float | None:
        """Return the CPU seconds of the local ssh process; None if it has ended."""
        try:
            used = psutil.Process(self._link.pid).cpu_times()
        except psutil.Error:
            return None
        return used.user + used.system

    def close(self) -> None:
        """End the session, its local process and the process on the host. A second call does nothing."""
        self._link.close()

    def _next_question(self) -> int:
        """Return the number of a request for the time that is sent now."""
        self._number += 1
        self._asked_ns[self._number] = time.time_ns()
        return self._number

    @property
    @abstractmethod
    def greeted(self) -> bool:
        """Return whether the host has sent its facts."""

    @property
    @abstractmethod
    def has_reading(self) -> bool:
        """Return whether a reading with a time by the local clock has arrived."""

    @property
    @abstractmethod
    def wall(self) -> HostClock:
        """Return the host's clock of the day."""

    @abstractmethod
    def ask_time(self) -> None:
        """Request the time of the host.

        The answer updates its clock, and the request keeps the other end alive.
        """

    @abstractmethod
    def why_ended(self, silent_s: float = 0.0) -> str:
        """Return why the link ended, with the remedy.

        ``silent_s`` is the time without data before the end.
        """

    @abstractmethod
    def _take(self, timeout_s: float) -> None:
        """Receive for at most a number of seconds, until data has arrived."""


class SessionCost:
    """The resources that a session used since the last call."""

    def __init__(self) -> None:
        self._at_s = time.monotonic()
        self._cpu_s: float | None = 0.0
        self._bytes = 0

    def since(self, session: SshSession) -> tuple[float, float | None, float]:
        """Return seconds, CPU seconds of the ssh process (None: unknown), and bytes received."""
        at_s, cpu_s, received = time.monotonic(), session.cpu_s(), session.received_bytes
        passed_s = at_s - self._at_s
        used_s = None if cpu_s is None or self._cpu_s is None else cpu_s - self._cpu_s
        new = received - self._bytes
        self._at_s, self._cpu_s, self._bytes = at_s, cpu_s, received
        return passed_s, used_s, float(new)
