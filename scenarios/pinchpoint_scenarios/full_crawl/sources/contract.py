"""Contract of a content source.

A ``Repository`` exists once in every process that crawls. It contains what the sessions share, above all when
the next request may be sent. ``connect`` gives each session a ``Source`` of its own.
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
        url: address, unique within the source, in ASCII.
        detail: further information about the item, which only the source interprets.
        version: text that changes whenever the item does (time and size, an ETag). It is only compared for
            equality; "" if only a fetch shows it.
        identity: id of the item in the source, as in ``Changes.deleted``; "" if its address is the only id.
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
        principal: name of the principal in the source: a login name, a SID, ``uid:1000``.
        rights: names of the rights in the source: ``Read``, ``Full Control``, ``r-x``.
        allowed: False if the entry takes rights away.
    """

    principal: str
    rights: str
    allowed: bool = True


class Fetched(NamedTuple):
    """A fetched document.

    Attributes:
        content: bytes of the document.
        start_ns: ``time.perf_counter_ns()`` at the request of the bytes, when the repository latency begins.
        end_ns: ``time.perf_counter_ns()`` at the last byte.
        url: canonical address if it differs from that of the item, else "".
        version: version as in ``Item.version``, if the answer has it.
        access: access list; () if empty; None if the source does not report it.
        links: link targets, inside or outside of the source, each once.
        found: further items to crawl; some may be known already.
        unchanged: whether the source reports that ``Item.known`` is the current version. It has sent nothing
            else then.
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
    """One page of a source's change log: the changes since a token.

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
        """Connect without changing anything. Returns facts."""
        ...

    def root(self) -> Item:
        """Return the container from which everything else is found. Contacts no server."""
        ...

    def turn(self, item: Item) -> AbstractContextManager[None]:
        """Return the right to make the next request for ``item``.

        Entering the context waits while politeness, a limit of the host or its ``Retry-After`` requires it.
        Leaving makes room for the next request. Enter it around every ``enumerate``, ``fetch`` and
        ``changes``, and record the time as a separate stage, because this wait is not repository latency.
        """
        ...

    def host(self, item: Item) -> str:
        """Return the host of ``item``, as ``turn`` names it; "" if there is only one host."""
        ...

    def hold(self, host: str, seconds: float) -> None:
        """Send no request to a host for this time from this process, because the host asked for a pause."""
        ...

    def enumerate(self, container: Item) -> Sequence[Item]:
        """Return the items in ``container``, or on a page of it. The next page is one more container."""
        ...

    def fetch(self, document: Item) -> Fetched:
        """Fetch a document. Raises ``Skipped`` with the reason if the item is not a document."""
        ...

    def token(self) -> str | None:
        """Return the current change token, for a later call of ``changes``.

        None means that the source has no change log. It is then enumerated completely, items with the known
        ``version`` are not fetched, and missing items are removed.
        """
        ...

    def changes(self, since: str) -> Changes:
        """Return the changes since a token. Raises ``Failure("token_expired")`` if the log begins later."""
        ...

    def close(self) -> None:
        """Close the connections. A second call does nothing."""
        ...


class Repository(Protocol):
    """The part of a source that all sessions of one process share. Several threads may use it."""

    def connect(self) -> Source:
        """Return a connection for one session. It is opened at its first use."""
        ...

    def pause_s(self) -> float:
        """Return the seconds for which no session should take an item, because ``turn`` would wait."""
        ...


Kind = Callable[[Endpoint, SourceParams, FullCrawlParams], Repository]
"""Creates a repository. Raises ``ScenarioError`` for invalid options."""


# The class below is the rate limit that sources on one host share.


class PoliteSource:
    """The request limits of a ``Source``.

    Args:
        pace: request limits of the host.
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
