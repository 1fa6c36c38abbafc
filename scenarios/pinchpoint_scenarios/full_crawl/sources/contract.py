"""The contract of a content source.

A ``Repository`` exists once in every process that crawls, for what its sessions share, above all when the
next request may be sent. ``connect`` gives each session its own ``Source``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from ...contract import Endpoint
from ..params import FullCrawlParams, SourceParams
from ..politeness import RequestLimits

ItemKind = Literal["container", "document"]


class Item(NamedTuple):
    """One thing to crawl.

    Attributes:
        kind: a ``container`` is enumerated, a ``document`` is fetched.
        url: its address, unique within its source; ASCII.
        detail: the source's further information about the item; opaque to others.
        version: changes whenever the item does (time and size, an ETag); only compared for equality; "" if
            only a fetch shows it.
        identity: the source's id of the item, as in ``Changes.deleted``; "" if its address is the only id.
        known: the indexed version, if known; "" if not.
    """

    kind: ItemKind
    url: str
    detail: str = ""
    version: str = ""
    identity: str = ""
    known: str = ""


@dataclass(frozen=True, slots=True)
class Grant:
    """One entry of an access list.

    Attributes:
        principal: the source's name of it: a login name, a SID, ``uid:1000``.
        rights: the source's name of them: ``Read``, ``Full Control``, ``r-x``.
        allowed: False if the entry takes rights away.
    """

    principal: str
    rights: str
    allowed: bool = True


class Fetched(NamedTuple):
    """A fetched document.

    Attributes:
        content: its bytes.
        start_ns: ``time.perf_counter_ns()`` at the request of its bytes: repository latency begins.
        end_ns: the same at their end.
        url: its canonical address if that differs from the item's, else "".
        version: as ``Item.version``, if the answer has it.
        access: its access list; () if empty; None if the source does not report it.
        links: its link targets, inside or outside of the source, each once.
        found: further items to crawl; some may be known already.
        unchanged: the source reports that ``Item.known`` is the present version, and sent nothing else.
        skipped: why it is not indexed (a redirect, a noindex, another canonical address), in words; "" if it
            is indexed. ``found`` and ``links`` count in any case.
    """

    content: bytes
    start_ns: int
    end_ns: int
    url: str = ""
    version: str = ""
    access: tuple[Grant, ...] | None = None
    links: tuple[str, ...] = ()
    found: tuple[Item, ...] = ()
    skipped: str = ""
    unchanged: bool = False


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes in a source since a token: one page of its change log.

    Attributes:
        changed: added and changed items (one identity under a new address has moved); documents to fetch,
            containers to enumerate.
        deleted: removed items, by ``Item.identity``.
        token: token for continuing after this page.
        more: whether the log already has more.
    """

    changed: tuple[Item, ...]
    deleted: tuple[str, ...]
    token: str
    more: bool


class Source(Protocol):
    """One session's connection to a repository of documents. Every method may raise ``Failure``."""

    def check(self) -> Mapping[str, Any]:
        """Connect without changing anything; return facts."""
        ...

    def root(self) -> Item:
        """The container from which everything else is found; contacts no server."""
        ...

    def turn(self, item: Item) -> AbstractContextManager[None]:
        """The right to make the next request for ``item``.

        Entering waits while politeness, a limit of the host or its ``Retry-After`` require it; leaving makes
        room for the next request. Enter it around every ``enumerate``, ``fetch`` and ``changes``, and time it
        as a separate stage: this wait is not repository latency.
        """
        ...

    def host(self, item: Item) -> str:
        """The host of ``item``, as ``turn`` names it; "" if there is only one."""
        ...

    def hold(self, host: str, seconds: float) -> None:
        """Send no request to a host for this time from this process, because one session got a pause."""
        ...

    def enumerate(self, container: Item) -> Sequence[Item]:
        """The items directly in ``container``, or on a page of it; the next page is one more container."""
        ...

    def fetch(self, document: Item) -> Fetched:
        """A document. Raises ``Skipped`` with the reason if the item is not one."""
        ...

    def token(self) -> str | None:
        """The change token of now, for ``changes`` later on.

        None if the source has no change log: then it is enumerated completely, items with the known
        ``version`` are not fetched, and missing items are removed.
        """
        ...

    def changes(self, since: str) -> Changes:
        """The changes since a token. Raises ``Failure("token_expired")`` if the log begins later."""
        ...

    def close(self) -> None:
        """Close connections. Safe to call twice."""
        ...


class Repository(Protocol):
    """The part of a source that all sessions of one process share. Thread-safe."""

    def connect(self) -> Source:
        """A session's own connection; opened at its first use."""
        ...

    def pause_s(self) -> float:
        """Seconds for which no session should take an item, because ``turn`` would wait; 0: none."""
        ...


Kind = Callable[[Endpoint, SourceParams, FullCrawlParams], Repository]
"""Creates a repository; raises ``ScenarioError`` for invalid options."""


# The rate limit shared by sources on one host.


class PoliteSource:
    """The request limits of a ``Source``.

    Args:
        pace: when the host may be queried.
    """

    def __init__(self, pace: RequestLimits) -> None:
        self._pace = pace

    def turn(self, item: Item) -> AbstractContextManager[None]:
        del item
        return self._pace.turn("")

    def host(self, item: Item) -> str:
        del item
        return ""

    def hold(self, host: str, seconds: float) -> None:
        self._pace.hold(host, seconds)
