"""The hold of a run on a scenario's data in a store; others are refused until ``--take-over``."""

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
    """The entry in a store that names the run which owns a scenario's data. Raises the store's own errors."""

    def enter(self, holder: str, *, over: bool) -> str | None:
        """Enter ``holder``, with ``over`` in place of the present one; None if entered, else the present one.

        Of two that are not entered yet at most one succeeds.
        """
        ...

    def leave(self, holder: str) -> str | None:
        """Remove ``holder`` and no other; return the holder in its place, or None."""
        ...


class Hold:
    """One run's hold: taken by the process that makes the data, and removes them.

    Args:
        endpoint: the store's.
        what: what is owned, for a sentence: ``the table pinch_orders``.

    Attributes:
        held: whether it has to be released.
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
        """Keep other runs out until ``release``; raises ``ScenarioError`` where another run holds it.

        ``over``: whoever holds it has ended without saying so, and is struck out.
        """
        self._made, self._lost = False, ""
        other = entry.enter(self._holder, over=over)
        if other is not None:
            raise self.refusal(_who(other))
        self._made = self.held = True

    def have(self, entry: HoldEntry) -> bool:
        """Whether what this run made since ``take`` is its own still: then it holds it, or does once more.

        False also where it never took it: what lies there is another run's.
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
        """What it was entered in is no more."""
        self.held = False

    def release(self, entry: HoldEntry) -> None:
        """Let other runs in, from now on. Safe to call twice.

        Raises ``ScenarioError`` where another one got in before: what this run found may be its doing.
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
        """The sentence for a run that is kept out by another one."""
        return ScenarioError(
            f"{self._place}: another run ({who}) is using {self._what}; wait until it has ended, or give the "
            "scenario another name in the plan; if it was killed: pinchpoint run --take-over"
        )


def _who(holder: str) -> str:
    """Its process, its machine and its start, without what only distinguishes it from others."""
    return holder.partition(" #")[0]
