"""The way to one host: opened, lost, and opened again."""

from __future__ import annotations

import time
from collections.abc import Sequence

from pinchpoint_collectors.common.backoff import Backoff
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.linux_over_ssh.host import Host
from pinchpoint_collectors.linux_over_ssh.session import Session
from pinchpoint_collectors.record import Watch
from pinchpoint_collectors.remote.ssh import Address

CONNECT_S = 20.0
"""From nothing to a host's first words, jump hosts included."""
ASK_S = 10.0
"""How often a host is asked for its time; that also tells it that we are still there."""
_FIRST_QUESTIONS = 5
_SILENT_S = 2.5
"""Beyond this, nothing that came is a failure; before, the next reading will have it."""
_GIVE_UP_S = 20.0
"""ssh notices a dead link by itself before; this is for a loop that stands still behind a link that lives."""


class Connection:
    """At most one session with a host at a time. Nothing here waits longer than it is told.

    Args:
        address: where the host is.
        script: what runs there.
        watches: what is watched there.
    """

    def __init__(self, address: Address, script: str, watches: Sequence[Watch]) -> None:
        self.why = ""
        """Why the last session ended, or could not be opened."""
        self._address = address
        self._script = script
        self._watches = watches
        self._backoff = Backoff(1.0, 30.0, jitter=0.0)
        self._session: Session | None = None
        self._host: Host | None = None
        self._opening: Session | None = None
        self._opened_s = self._came_s = self._ask_at_s = 0.0
        self._questions = 0

    def open(self, patience_s: float) -> tuple[Session, Host]:
        """The session there is, else a new one. Raises ``CollectorError`` while there is none."""
        if self._session is not None and self._host is not None:
            return self._session, self._host
        now_s = time.monotonic()
        if self._opening is None:
            if not self._backoff.due:
                raise CollectorError(self.why)
            self._opening, self._opened_s = Session(self._address, self._script), now_s
        try:
            return self._greeted(self._opening, now_s + patience_s)
        except _NotYetError:
            raise
        except CollectorError as error:
            self._opening.close()
            self._opening = None
            self._backoff.failed()
            self.why = str(error)
            raise

    def ask(self) -> None:
        """Ask for the time where that is due: some times at the begin, then now and then."""
        now_s = time.monotonic()
        if self._session is not None and self._session.answered and now_s >= self._ask_at_s:
            self._session.ask_time()
            self._questions += 1
            self._ask_at_s = now_s if self._questions < _FIRST_QUESTIONS else now_s + ASK_S

    def came(self) -> None:
        """A reading came."""
        self._came_s = time.monotonic()
        self._backoff.succeeded()

    def nothing_came(self) -> None:
        """Raises ``CollectorError`` where that is more than a reading that is late."""
        silent_s = time.monotonic() - self._came_s
        if self._session is not None and self._session.ended:
            self._lose(self._session.why_ended(silent_s))
        if silent_s > _GIVE_UP_S:
            self._lose(f"{self._address}: nothing came for {silent_s:.0f} s, though the link stands")
        if silent_s > _SILENT_S:
            raise CollectorError(
                f"{self._address}: nothing came for {silent_s:.0f} s; the link is slow or cut, or the host "
                "stands still"
            )

    def close(self) -> None:
        """End what runs on the host, and the link. Safe to call twice; ``open`` opens it again."""
        for session in (self._session, self._opening):
            if session is not None:
                session.close()
        self._session = self._opening = None

    def _greeted(self, opening: Session, until_s: float) -> tuple[Session, Host]:
        opening.wait(until_s, lambda: opening.hello is not None)
        if opening.hello is not None:
            return self._begin(opening, Host(opening.hello, self._watches, opening.stamps))
        if opening.ended:
            raise CollectorError(opening.why_ended())
        if time.monotonic() - self._opened_s >= CONNECT_S:
            raise CollectorError(f"{self._address}: its shell said nothing within {CONNECT_S:.0f} s")
        raise _NotYetError(f"{self.why or self._address}; connecting again")

    def _begin(self, session: Session, host: Host) -> tuple[Session, Host]:
        if self._host is not None and self._host.machine_id != host.machine_id:
            self.why = f"{self._address}: the machine was started anew"
        self._session, self._host, self._opening = session, host, None
        self._ask_at_s, self._questions = 0.0, 0
        self._came_s = time.monotonic()
        return session, host

    def _lose(self, why: str) -> None:
        self.close()
        self._backoff.failed()
        self.why = why
        raise CollectorError(why)


class _NotYetError(CollectorError):
    """It has not failed yet."""
