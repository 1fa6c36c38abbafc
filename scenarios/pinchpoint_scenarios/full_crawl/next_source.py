"""Chooses the source that a session works on next.

Sources take turns, so that all are crawled from the start, whatever their sizes. Within a source, documents
come first, and containers come at intervals. Documents are therefore fetched from the first page on, and
enumeration stays ahead without delaying them.

A source with a limit of workers has the same number of *places*. A session with a place works for that source
until no item is left.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .frontier import Frontier
from .records import LeasedItem, Turn

CONTAINER_EVERY = 16
"""Number of turns at a source of which one goes to a container before documents. A page of a list or a folder
has more items on average, so enumeration stays ahead of fetching."""
_LOOK_EVERY_S = 1.0  # wait for a free place, in a session with other work


@dataclass(frozen=True, slots=True)
class SourceShare:
    """The properties of a source that determine its turns.

    Attributes:
        workers: largest number of sessions that work on the source; None: unlimited.
        pause_s: returns the seconds for which no session should take an item of the source.
    """

    workers: int | None
    pause_s: Callable[[], float]


class SourceTurns:
    """Chooses the next items of one session.

    Args:
        frontier: queue of the session.
        name: name of the crawl's schema, so that two crawls on one server have separate places.
        sources: name -> properties of the source.
        first: number of the source with which this session begins; it differs between sessions.
    """

    def __init__(self, frontier: Frontier, name: str, sources: Mapping[str, SourceShare], first: int) -> None:
        self._frontier = frontier
        self._groups = {source: _group(name, source) for source in sources}
        self._sources = sources
        self._open = [source for source, share in sources.items() if share.workers is None]
        self._limited = [source for source, share in sources.items() if share.workers is not None]
        self._turn = first
        self._mine: tuple[str, int] | None = None
        self._look_at = 0.0

    def take(self, limit: int) -> list[LeasedItem]:
        """Return up to ``limit`` items of one source; none if no item is available now."""
        self._turn += 1
        if self._mine is not None:
            if taken := self._take([self._mine[0]], limit):
                return taken
            self._leave()
        if self._limited and time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + _LOOK_EVERY_S
            if taken := self._take_place(limit):
                return taken
        if taken := self._take(_from(self._open, self._turn), limit):
            return taken
        self._look_at = 0.0  # the session has no other work
        return []

    def pause_s(self) -> float:
        """Return the seconds until a source may be queried again; 0 if one may be queried now."""
        return min((share.pause_s() for share in self._sources.values()), default=0.0)

    def forget(self) -> None:
        """Forget the place, because the connection was lost."""
        self._mine = None

    def _take(self, sources: list[str], limit: int) -> list[LeasedItem]:
        containers_first = self._turn // max(1, len(sources)) % CONTAINER_EVERY == 0
        turns: list[Turn] = [
            (source, leaf)
            for source in sources
            if not self._sources[source].pause_s()
            for leaf in ((False, True) if containers_first else (True, False))
        ]
        return self._frontier.take(turns, limit) if turns else []

    def _take_place(self, limit: int) -> list[LeasedItem]:
        """Take a place at a limited source with work, if one is free."""
        for source in _from(self._limited, self._turn):
            places = self._sources[source].workers or 0
            if self._sources[source].pause_s():
                continue
            place = self._frontier.place(self._groups[source], places)
            if place is None:
                continue
            self._mine = source, place
            if taken := self._take([source], limit):
                return taken
            self._leave()
        return []

    def _leave(self) -> None:
        if self._mine is not None:
            (source, place), self._mine = self._mine, None
            self._frontier.leave(self._groups[source], place)


def _from(sources: list[str], turn: int) -> list[str]:
    """Yield all sources, beginning with the one whose turn it is."""
    start = turn % len(sources) if sources else 0
    return sources[start:] + sources[:start]


def _group(name: str, source: str) -> int:
    """Return a signed number of 32 bits, as locks of a session need."""
    number = zlib.crc32(f"{name}\n{source}".encode())
    return number - 2**32 if number >= 2**31 else number
