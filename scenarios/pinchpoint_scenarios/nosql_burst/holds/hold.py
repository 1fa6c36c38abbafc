"""A hold on what a scenario has in a store. It ends with its owner: who is killed does not renew it."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol
from uuid import uuid4

from ...addresses import place
from ...contract import Endpoint
from ...errors import ScenarioError

LEASE_S = 10
"""So many seconds after it was renewed last a hold ends by itself."""
RENEW_EVERY_S = 3.0
_LOOK_EVERY_S = 0.25
_STEP_S = 1.0  # stores that count whole seconds, by clocks of several nodes, may be off by so much


@dataclass(frozen=True, slots=True)
class Other:
    """Another run that is entered.

    Attributes:
        holder: which one, as it has entered itself.
        left_s: after so long its entry ends, unless it is renewed.
    """

    holder: str
    left_s: float


class Lease(Protocol):
    """Where a store has it entered who holds what one scenario has there. Raises the store's own errors."""

    def take(self, holder: str, for_s: int) -> Other | None:
        """Enter ``holder`` for so long from now on, or once more; None: done. Else who is entered.

        Of two that are not entered yet at most one succeeds.
        """
        ...

    def leave(self, holder: str) -> None:
        """Strike ``holder`` out, and nobody else."""
        ...

    def close(self) -> None:
        """Let go of the connection; the next call opens it again. Safe to call twice."""
        ...


class Hold:
    """One run's hold: taken by the process that makes the data and removes them, renewed by a thread of it.

    Args:
        lease: where it is entered.
        endpoint: the store's.
        what: is held, for a sentence: ``the table pinch_orders``.
        failures: the store's errors.
    """

    def __init__(
        self, lease: Lease, endpoint: Endpoint, what: str, failures: tuple[type[BaseException], ...]
    ) -> None:
        self._lease = lease
        self._place = place(endpoint)
        self._what = what
        self._failures = failures
        self._holder = f"process {os.getpid()} on {socket.gethostname()} #{uuid4().hex}"
        self._made = False
        self._lost: Other | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self, progress: Callable[[str], None]) -> None:
        """Keep other runs out until ``release``; one that was killed is waited for until its hold ends.

        Raises ``ScenarioError`` where another run holds it and lives, or one of the store's errors.
        """
        self._made, self._lost = False, None
        try:
            if (other := self._enter()) is not None:
                self._outlive(other, progress)
        except BaseException:
            self.pause()
            self._lease.close()
            raise
        self._made = True
        self._renewed_from_now_on()

    def have(self) -> bool:
        """Whether what this run made since ``take`` is its own still: then it holds it, or does once more.

        False also where it never took it: what lies there is another run's. Waits for nobody.
        """
        if not self._made or self._lost is not None:
            return False
        other = self._enter()
        if other is None:
            self._renewed_from_now_on()
        elif self._thread is not None:
            self._lost = other
        return other is None

    def pause(self) -> None:
        """Renew it no more: what it is entered in is about to be dropped. Safe to call twice."""
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None

    def release(self) -> None:
        """Let other runs in, from now on. Safe to call twice.

        Raises ``ScenarioError`` where another one got in before: what this run found may be its doing.
        """
        held = self._thread is not None
        self.pause()
        lost, self._lost = self._lost, None
        try:
            if held:
                with suppress(*self._failures):  # in a store that is away it ends by itself
                    self._lease.leave(self._holder)
        finally:
            self._lease.close()
        if lost is not None:
            raise ScenarioError(
                f"{self._place}: another run ({_who(lost)}) has taken {self._what} over, as this one had not "
                f"renewed its hold for {LEASE_S} s; what lies there is that run's, and acknowledged writes "
                "that this one misses may be its doing; run again when it has ended"
            )

    def refusal(self, who: str) -> ScenarioError:
        """The sentence for a run that is kept out by another one."""
        return ScenarioError(
            f"{self._place}: another run ({who}) is using {self._what}; wait until it has ended, or give the "
            "scenario another name in the plan"
        )

    def _enter(self) -> Other | None:
        return self._lease.take(self._holder, LEASE_S)

    def _outlive(self, other: Other, progress: Callable[[str], None]) -> None:
        """Wait until the hold is ours, as the other one has ended; raises ``refusal`` where it is renewed."""
        progress(
            f"another run ({_who(other)}) holds {self._what}; whether it lives is seen in {LEASE_S} s at most"
        )
        until = time.monotonic() + LEASE_S + 2 * _STEP_S
        while time.monotonic() < until:
            time.sleep(_LOOK_EVERY_S)
            now = self._enter()
            if now is None:
                return
            if now.holder != other.holder or now.left_s > other.left_s + _STEP_S:
                raise self.refusal(_who(now))
            other = Other(now.holder, min(now.left_s, other.left_s))
        raise self.refusal(_who(other))

    def _renewed_from_now_on(self) -> None:
        if self._thread is None:
            self._stop = threading.Event()
            self._thread = threading.Thread(target=self._renew, name="hold", daemon=True)
            self._thread.start()

    def _renew(self) -> None:
        while not self._stop.wait(RENEW_EVERY_S):
            try:
                self._lost = self._enter()
            except self._failures:
                continue  # who else wants it reaches the store no better; it is entered again when it is back
            if self._lost is not None:
                return


def _who(other: Other) -> str:
    """Its process and its machine, without what only tells it from others."""
    return other.holder.partition(" #")[0]
