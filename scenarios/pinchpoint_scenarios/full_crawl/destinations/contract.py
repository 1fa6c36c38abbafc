"""The contract of a destination of crawled documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from ...contract import Endpoint


class Request(NamedTuple):
    """A request with the documents of several sessions.

    Attributes:
        outcome: ``ok`` or the name of the failure.
        start_ns: ``time.perf_counter_ns()`` at its begin.
        end_ns: the same when it was answered.
    """

    outcome: str
    start_ns: int
    end_ns: int


class Destination(Protocol):
    """One session's connection to a destination.

    Every method may raise ``Failure``. A repeated request (after a lost answer or a killed crawler) has the
    same effect as a single one.

    Attributes:
        takes_documents: False if documents are dropped: none is passed to it, and no stage is recorded.
    """

    takes_documents: bool

    def check(self) -> Mapping[str, Any]:
        """Connect without changing anything; return facts."""
        ...

    def reset(self) -> None:
        """Empty the index."""
        ...

    def add(self, source: str, url: str, content: bytes) -> None:
        """Index one document; it replaces the one with the same source and address.

        Raises ``Skipped`` with the reason if it is not a document.
        """
        ...

    def remove(self, source: str, url: str) -> None:
        """Remove one document from the index, if it is there."""
        ...

    def commit(self) -> None:
        """Make everything added findable."""
        ...

    def requests(self) -> Iterable[Request]:
        """This process's requests with documents of several sessions, each returned once.

        None if each session sends its own requests: then the time of ``add`` is the request's.
        """
        ...

    def close(self) -> None:
        """Close connections. Safe to call twice."""
        ...


class Service(Protocol):
    """The part of a destination that all sessions of one process share. Thread-safe."""

    def connect(self) -> Destination:
        """A session's own connection; opened at its first use."""
        ...

    @property
    def index(self) -> str:
        """The name of the index; "" if there is only one, or none."""
        ...

    @property
    def limit(self) -> int | None:
        """Most simultaneous requests of this process; None: one per session."""
        ...


Kind = Callable[[Endpoint, str, float], Service]
"""(endpoint, scenario's name, limit of a whole request in s) -> service.

Raises ``ScenarioError`` if the endpoint's options are invalid.
"""
