"""Which source a session works on next.

Sources take turns, so that all of them are crawled from the beginning on, whatever their sizes. Of a
source its documents come first, and a container now and then: so documents are fetched from the first page
on, and enumeration stays ahead of them without ever being all there is.

A source with a limit of workers has this many *places*; a session that has one works for that source until
nothing is left to take there.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .frontier import Frontier
from .records import LeasedItem, Turn

CONTAINER_EVERY = 16
"""One of this many turns at a source goes to a container before its documents: a page of a list, a folder,
holds more than that on average, so what is enumerated grows faster than it is fetched."""
_LOOK_EVERY_S = 1.0  # for a free place, by a session that has other work


@dataclass(frozen=True, slots=True)
class SourceShare:
    """What a session must know of a source to choose.

    Attributes:
        workers: at most this many sessions work on it; None: any number.
        pause_s: for this time no session should take an item of it.
    """

    workers: int | None
    pause_s: Callable[[], float]


class SourceTurns:
    """Chooses the items that one session works on next.

    Args:
        frontier: the session's.
        name: of the crawl's schema: places of two crawls on one server are different ones.
        sources: name -> what must be known of it.
        first: where this session begins: a number that differs from session to session.
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
        """Up to ``limit`` items of one source; none if nothing is available now."""
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
        self._look_at = 0.0  # it has no other work
        return []

    def pause_s(self) -> float:
        """How long until a source may be asked again, where none may be now; else 0."""
        return min((share.pause_s() for share in self._sources.values()), default=0.0)

    def forget(self) -> None:
        """The connection, and with it the place, was lost."""
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
        """Get a place at one of the limited sources, if there is one, and something to do."""
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
    """All sources, the one whose turn it is first."""
    start = turn % len(sources) if sources else 0
    return sources[start:] + sources[:start]


def _group(name: str, source: str) -> int:
    """A number of 32 bits with a sign, as locks of a session have."""
    number = zlib.crc32(f"{name}\n{source}".encode())
    return number - 2**32 if number >= 2**31 else number
