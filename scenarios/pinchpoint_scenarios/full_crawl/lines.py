"""What the crawl database is told, as JSON: a whole batch is one parameter of one statement.

orjson writes it: a page names a dozen others, and what is written of an address is the same in every page, so
it is written once (``orjson.Fragment``).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import orjson

from .keys import key_of
from .memo import Memo
from .records import Done, plain
from .sources import Item

_SOURCES, _REMEMBERED = 32, 2**15
"""Of so many sources, so many addresses each that pages link to: a quarter of a kilobyte an address."""


def as_json(value: Any) -> str:
    """As text, which every driver takes."""
    return orjson.dumps(value).decode()


def done_lines(done: Sequence[Done]) -> str:
    """What became of items, as ``CrawlSql.finish`` takes it."""
    now_ns = time.perf_counter_ns()
    return as_json([_line(each, now_ns) for each in done])


def found_lines(source: str, items: Iterable[Item], kind: str = "") -> str:
    """Items that may be new, as ``CrawlSql.add`` takes them.

    Args:
        source: whose they are.
        items: themselves.
        kind: what they are in the queue; "": what they are.
    """
    keys = _keys(source)
    return as_json(
        [
            {
                "key": keys[item.url],
                "kind": kind or item.kind,
                "url": item.url,
                "detail": _storable(item.detail),
                "version": plain(item.version),
                "identity": _storable(item.identity),
            }
            for item in items
        ]
    )


def _line(done: Done, now_ns: int) -> dict[str, Any]:
    taken, result = done.taken, done.result
    line: dict[str, Any] = {
        "id": taken.id, "state": result.state, "reason": result.reason, "attempts": result.attempts,
        "bytes": result.size_bytes, "version": result.version, "address": result.url,
        "ago_s": (now_ns - done.end_ns) / 1e9, "latency_s": result.latency_s, "index_s": result.index_s,
    }  # fmt: skip
    access, links = result.access, result.links
    if result.state == "deleted":  # nobody may see it, and it leads nowhere
        access, links = (), ()
    if access is not None:
        line["grants"] = [
            {
                "principal": _storable(each.principal),
                "rights": _storable(each.rights),
                "allowed": each.allowed,
            }
            for each in access
        ]
    if links is not None:
        targets = _targets(taken.source)
        line["targets"] = [targets[url] for url in links]
    if result.failures:
        line["failures"] = [
            {"stage": each.stage, "failure": each.failure, "message": plain(each.message)}
            for each in result.failures
        ]
    return line


@lru_cache(maxsize=_SOURCES)
def _keys(source: str) -> Memo[str, str]:
    return Memo(lambda url: key_of(source, url), _REMEMBERED)


@lru_cache(maxsize=_SOURCES)
def _targets(source: str) -> Memo[str, orjson.Fragment]:
    keys = _keys(source)

    def target(url: str) -> orjson.Fragment:
        # As text: what orjson gives keeps the kilobyte it was written in.
        return orjson.Fragment(orjson.dumps({"target": keys[url], "url": url}).decode())

    return Memo(target, _REMEMBERED)


def _storable(text: str) -> str:
    """A name of the source's, as any database takes it: no NUL, no half of a surrogate pair."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
