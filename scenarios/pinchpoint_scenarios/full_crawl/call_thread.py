"""Runs blocking C code or kernel calls in a thread, so that other sessions are not blocked.

If gevent has patched the process, a blocking call would stop every session. gevent is only looked up and
never imported (as in ``fastpath.readiness``).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

T = TypeVar("T")


class CallThread:
    """Runs calls in a thread, one at a time, so that no session is delayed."""

    def __init__(self) -> None:
        monkey = sys.modules.get("gevent.monkey")
        patched = monkey is not None and monkey.is_module_patched("socket")
        self._pool: Any = import_module("gevent.threadpool").ThreadPool(1) if patched else None
        self.busy = False
        """Whether a call is in progress whose caller has ended."""

    def call(self, function: Callable[[], T]) -> T:
        """Run a function in the thread, and return its result or raise its exception."""
        if self._pool is None:
            return function()
        self.busy = True
        # The exception is returned as a value, because the pool would print its traceback.
        result, error = self._pool.spawn(_done, function).get()
        self.busy = False
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]  # gevent ships no types

    def close(self) -> None:
        """Let the thread end. A second call does nothing."""
        if self._pool is not None and not self.busy:
            self._pool.kill()


def _done(function: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return function(), None
    except Exception as error:  # noqa: BLE001 - raised again by whoever asked
        return None, error
