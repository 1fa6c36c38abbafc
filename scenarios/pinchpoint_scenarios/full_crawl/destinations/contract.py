"""The contract of a destination: where crawled documents go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from ...contract import Endpoint


class Request(NamedTuple):
    """A request that carried the documents of several sessions.

    Attributes:
        outcome: ``ok`` or the name of the failure.
        start_ns: ``time.perf_counter_ns()`` when it was begun.
        end_ns: likewise, when it had been answered.
    """

    outcome: str
    start_ns: int
    end_ns: int


class Destination(Protocol):
    """One session's connection to what takes the documents.

    Every method may raise ``Failure``. Repeated requests (an attempt whose answer was lost, a document whose
    crawler was killed) leaves what doing it once leaves.

    Attributes:
        takes_documents: False if they go nowhere: none is given to it, and no stage of it is recorded.
    """

    takes_documents: bool

    def check(self) -> Mapping[str, Any]:
        """Reach it without changing anything; facts about it."""
        ...

    def reset(self) -> None:
        """Empty the index."""
        ...

    def add(self, source: str, url: str, content: bytes) -> None:
        """Have one document indexed, in place of the one of that source and address.

        Raises ``Skipped`` with the reason where it is no document.
        """
        ...

    def remove(self, source: str, url: str) -> None:
        """Take one document out of the index; nothing where it is not there."""
        ...

    def commit(self) -> None:
        """Make everything added findable."""
        ...

    def requests(self) -> Iterable[Request]:
        """Requests of this process that carried documents of several sessions, each returned once.

        None if each session asks for itself: then the time of ``add`` is the request's.
        """
        ...

    def close(self) -> None:
        """Close connections. Safe to call twice."""
        ...


class Service(Protocol):
    """What all sessions of one process share of a destination. Safe to use from any of them."""

    def connect(self) -> Destination:
        """A session's own connection; opened when it is first used."""
        ...

    @property
    def index(self) -> str:
        """The name of the index there; "" where there is only one, or none."""
        ...

    @property
    def limit(self) -> int | None:
        """The most requests of this process at the same time; None: one for every session."""
        ...


Kind = Callable[[Endpoint, str, float], Service]
"""(endpoint, scenario's name, limit of a whole request in s) -> service.

Raises ``ScenarioError`` where the endpoint's options make no sense.
"""
