"""The contract of a content source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from ...contract import Endpoint
from ..params import FullCrawlParams

ItemKind = Literal["container", "document"]


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to crawl.

    Attributes:
        kind: a ``container`` is enumerated, a ``document`` is fetched.
        url: its address, unique within its source; ASCII.
        detail: what the source needs besides the address; opaque to others.
    """

    kind: ItemKind
    url: str
    detail: str = ""


class Source(Protocol):
    """A repository of documents. One instance belongs to one session."""

    def check(self) -> Mapping[str, Any]:
        """Reach it without changing anything; facts about it. Raises ``Failure``."""
        ...

    def root(self) -> Item:
        """The container everything else is found from."""
        ...

    def enumerate(self, container: Item) -> Sequence[Item]:
        """What lies directly in ``container``; one request. Raises ``Failure``."""
        ...

    def fetch(self, document: Item) -> bytes:
        """The bytes of ``document``. Raises ``Failure``, or ``Skipped`` with the reason."""
        ...

    def close(self) -> None:
        """Close connections. Safe to call twice."""
        ...


Kind = Callable[[Endpoint, FullCrawlParams], Source]
"""Makes a source; raises ``ScenarioError`` where the endpoint's options make no sense."""
