"""Wakes a greenlet at an exact time.

An event loop's own timers count in whole milliseconds: on an idle loop gevent wakes half a millisecond
late, 1.1 ms at p99, half of what a punctual generator may be late at all. A timerfd is a file the kernel
makes readable at the nanosecond asked for; the loop hears of it at once.
"""

from __future__ import annotations

import ctypes
import os
import time
from types import TracebackType
from typing import Self

import gevent

_CLOCK_MONOTONIC = 1  # what time.perf_counter_ns() reads on Linux
_CLOEXEC_NONBLOCK = os.O_CLOEXEC | os.O_NONBLOCK
_ABSTIME = 1
_READ = 1  # gevent's loop: wait until a file is readable


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


class Alarm:
    """One timer; for one greenlet at a time. Linux."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._file = self._libc.timerfd_create(_CLOCK_MONOTONIC, _CLOEXEC_NONBLOCK)
        if self._file < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        hub = gevent.get_hub()
        self._hub = hub
        self._watcher = hub.loop.io(self._file, _READ)

    def wait_until(self, counter_ns: int) -> None:
        """Return when ``time.perf_counter_ns()`` has reached ``counter_ns``."""
        while time.perf_counter_ns() < counter_ns:
            value = _Timespec(counter_ns // 1_000_000_000, counter_ns % 1_000_000_000)
            setting = _Itimerspec(_Timespec(0, 0), value)
            if self._libc.timerfd_settime(self._file, _ABSTIME, ctypes.byref(setting), None):
                raise OSError(ctypes.get_errno(), "timerfd_settime")
            self._hub.wait(self._watcher)
            os.read(self._file, 8)

    def close(self) -> None:
        """Give the timer back."""
        self._watcher.close()
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
