"""The contract of a content source.

A ``Repository`` is made once in every process that crawls: it keeps what all sessions of that process share,
above all when the next request may be made. ``connect`` gives each session a ``Source`` of its own.
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
        detail: what the source needs besides the address; opaque to others.
        version: changes whenever the item does (a time and a size, an ETag); opaque, compared for equality
            alone; "" if only a fetch shows it.
        identity: how the source knows it whatever its address is, as ``Changes.deleted`` names it; "" where
            its address is all there is.
        known: the version it was last indexed with, as far as that is known; "" where it is not.
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
        principal: as the source names it: a login name, a SID, ``uid:1000``.
        rights: what, as the source names it: ``Read``, ``Full Control``, ``r-x``.
        allowed: False if the entry takes rights away.
    """

    principal: str
    rights: str
    allowed: bool = True


class Fetched(NamedTuple):
    """A fetched document.

    Attributes:
        content: its bytes.
        start_ns: ``time.perf_counter_ns()`` when its bytes were asked for: repository latency begins.
        end_ns: likewise, when the last of them had come.
        url: its canonical address where that differs from the item's, else "".
        version: as ``Item.version``, as far as the answer has it.
        access: its access list; () if it is empty; None if the source does not report.
        links: the addresses it links to, in or out of the source, each once.
        found: further items to crawl because of it; some may be known already.
        unchanged: the source says that it is what ``Item.known`` is the version of, and gave nothing else.
        skipped: why it is not indexed (it moved, it asks for that, its address is not the canonical
            one), in words; "" where it is to be. ``found`` and ``links`` count all the same.
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
    """What changed in a source since a token: one page of its change log.

    Attributes:
        changed: what was added or changed (one identity under a new address has moved); documents to fetch,
            containers to enumerate.
        deleted: what is gone, by ``Item.identity``.
        token: where the log continues after this page.
        more: whether the log has more already.
    """

    changed: tuple[Item, ...]
    deleted: tuple[str, ...]
    token: str
    more: bool


class Source(Protocol):
    """One session's connection to a repository of documents. Every method may raise ``Failure``."""

    def check(self) -> Mapping[str, Any]:
        """Reach it without changing anything; facts about it."""
        ...

    def root(self) -> Item:
        """The container everything else is found from; contacts no server."""
        ...

    def turn(self, item: Item) -> AbstractContextManager[None]:
        """The right to make the next request for ``item``.

        Entering waits while politeness, a limit of the host or its ``Retry-After`` demand it; leaving makes
        room for the next. To be entered around every ``enumerate``, ``fetch`` and ``changes``, and timed as a
        stage of its own: this waiting is not the repository's latency.
        """
        ...

    def host(self, item: Item) -> str:
        """The host that is asked for ``item``, as ``turn`` names it; "" if there is only one."""
        ...

    def hold(self, host: str, seconds: float) -> None:
        """Send no request to a host for this time from this process: it asked one session for a pause."""
        ...

    def enumerate(self, container: Item) -> Sequence[Item]:
        """The items directly in ``container``, or on a page of it; the next page is one more container."""
        ...

    def fetch(self, document: Item) -> Fetched:
        """A document. Raises ``Skipped``, too, with the reason, if there is none."""
        ...

    def token(self) -> str | None:
        """The change token of now, for ``changes`` later on.

        None if the source keeps no change log: then all of it is enumerated again, an item whose
        ``version`` is the known one needs no fetch, and what is not found any more is gone.
        """
        ...

    def changes(self, since: str) -> Changes:
        """What changed since a token. Raises ``Failure("token_expired")`` where the log begins later."""
        ...

    def close(self) -> None:
        """Close connections. Safe to call twice."""
        ...


class Repository(Protocol):
    """What all sessions of one process share of a source. Safe to use from any of them."""

    def connect(self) -> Source:
        """A session's own connection; opened when it is first used."""
        ...

    def pause_s(self) -> float:
        """Seconds for which no session should take an item of it, because ``turn`` would wait; 0: none."""
        ...


Kind = Callable[[Endpoint, SourceParams, FullCrawlParams], Repository]
"""Makes a repository; raises ``ScenarioError`` where options make no sense."""


# The rate limit shared by sources on one host.


class PoliteSource:
    """A ``Source`` as far as its pace goes.

    Args:
        pace: when the host may be asked.
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
