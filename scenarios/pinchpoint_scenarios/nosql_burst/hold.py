"""Reserves a scenario's data in a store for one run. Other runs are refused until ``--take-over``."""

from __future__ import annotations

import os
import socket
from datetime import UTC, datetime
from typing import Protocol
from uuid import uuid4

from ..addresses import place
from ..contract import Endpoint
from ..errors import ScenarioError


class HoldEntry(Protocol):
    """The entry in a store that names the run that reserved the data. Raises the store's own errors."""

    def enter(self, holder: str, *, over: bool) -> str | None:
        """Enter ``holder`` in place of ``over``. Return None if entered, else the present holder.

        Of two runs that enter at the same time, at most one succeeds.
        """
        ...

    def leave(self, holder: str) -> str | None:
        """Remove ``holder`` and no other. Return the present holder, or None."""
        ...


class Hold:
    """The reservation of one run, made by the process that creates and removes the data.

    Args:
        endpoint: endpoint of the store.
        what: name of the data for a message: ``the table pinch_orders``.

    Attributes:
        held: whether the reservation must be released.
    """

    def __init__(self, endpoint: Endpoint, what: str) -> None:
        self._place = place(endpoint)
        self._what = what
        since = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        self._holder = f"process {os.getpid()} on {socket.gethostname()}, since {since} #{uuid4().hex}"
        self._made = False
        self._lost = ""
        self.held = False

    def take(self, entry: HoldEntry, *, over: bool = False) -> None:
        """Keep other runs out until ``release``. Raises ``ScenarioError`` if another run has the data.

        ``over`` is a holder that has ended without releasing; it is replaced.
        """
        self._made, self._lost = False, ""
        other = entry.enter(self._holder, over=over)
        if other is not None:
            raise self.refusal(_who(other))
        self._made = self.held = True

    def have(self, entry: HoldEntry) -> bool:
        """Return whether the data that this run created since ``take`` still belong to it.

        It is also False if this run never reserved the data, because they then belong to another run.
        """
        if not self._made:
            return False
        other = entry.enter(self._holder, over=False)
        if other is None:
            self.held = True
        elif self.held:
            self._lost = other
        return other is None

    def dropped(self) -> None:
        """Record that the object with the entry was dropped."""
        self.held = False

    def release(self, entry: HoldEntry) -> None:
        """Release the reservation for other runs. A second call does nothing.

        Raises ``ScenarioError`` if another run replaced the entry before, because it may have changed the
        data.
        """
        lost = self._lost
        if self.held and not lost:
            lost = entry.leave(self._holder) or ""
        self.held, self._lost = False, ""
        if lost:
            self._made = False
            raise ScenarioError(
                f"{self._place}: another run ({_who(lost)}) has taken {self._what} over (--take-over); what "
                "lies there is that run's, and acknowledged writes that this one misses may be its doing; "
                "run again when it has ended"
            )

    def refusal(self, who: str) -> ScenarioError:
        """Return the message for a run that is kept out by another one."""
        return ScenarioError(
            f"{self._place}: another run ({who}) is using {self._what}; wait until it has ended, or give the "
            "scenario another name in the plan; if it was killed: pinchpoint run --take-over"
        )


def _who(holder: str) -> str:
    """Return process, machine and start of a holder, without its random part."""
    return holder.partition(" #")[0]
