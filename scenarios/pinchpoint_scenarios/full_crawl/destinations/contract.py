"""Contract of a destination of crawled documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from ...contract import Endpoint


class Request(NamedTuple):
    """A request with the documents of several sessions.

    Attributes:
        outcome: ``ok`` or the name of the failure.
        start_ns: ``time.perf_counter_ns()`` at the start of the request.
        end_ns: ``time.perf_counter_ns()`` at the answer.
    """

    outcome: str
    start_ns: int
    end_ns: int


class Destination(Protocol):
    """One session's connection to a destination.

    Every method may raise ``Failure``. A repeated request, such as after a lost answer or a killed crawler,
    has the same effect as a single request.

    Attributes:
        takes_documents: False if documents are dropped. In that case no document is passed to it, and no
            stage is recorded.
    """

    takes_documents: bool

    def check(self) -> Mapping[str, Any]:
        """Connect without changing anything. Returns facts."""
        ...

    def reset(self) -> None:
        """Empty the index."""
        ...

    def add(self, source: str, url: str, content: bytes) -> None:
        """Index one document. It replaces the document with the same source and address.

        Raises ``Skipped`` with the reason if it is not a document.
        """
        ...

    def remove(self, source: str, url: str) -> None:
        """Remove one document from the index, if it exists."""
        ...

    def commit(self) -> None:
        """Make all added documents searchable."""
        ...

    def requests(self) -> Iterable[Request]:
        """Return this process's requests with documents of several sessions, each request once.

        Returns None if each session sends its own requests. The time of ``add`` is then that of the request.
        """
        ...

    def close(self) -> None:
        """Close the connections. A second call does nothing."""
        ...


class Service(Protocol):
    """The part of a destination that all sessions of one process share. Several threads may use it."""

    def connect(self) -> Destination:
        """Return a connection for one session. It is opened at its first use."""
        ...

    @property
    def index(self) -> str:
        """Return the name of the index; "" if there is only one index or none."""
        ...

    @property
    def limit(self) -> int | None:
        """Return the largest number of simultaneous requests of this process; None: one per session."""
        ...


Kind = Callable[[Endpoint, str, float], Service]
"""Creates the service from endpoint, name of the scenario, and limit of a whole request in seconds.

Raises ``ScenarioError`` if the endpoint's options are invalid.
"""
