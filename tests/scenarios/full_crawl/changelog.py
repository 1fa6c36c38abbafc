"""A repository with a change log in memory, with only the methods of a source."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

from pinchpoint_scenarios.full_crawl import sources
from pinchpoint_scenarios.full_crawl.failures import Failure
from pinchpoint_scenarios.full_crawl.sources import Changes, Fetched, Grant, Item

ROOT = Item("container", "log://root")
PAGE = 2


class Log:
    """A repository and its source. ``documents``: address -> (identity, content); ``log``: the changes."""

    def __init__(self) -> None:
        self.documents: dict[str, tuple[str, bytes]] = {}
        self.log: list[tuple[str, str]] = []
        self.forgotten = 0
        self.fetched: list[str] = []
        self.enumerated = 0
        self.failing: set[str] = set()
        self.delay_s = 0.0

    def put(self, url: str, identity: str, content: bytes) -> None:
        """Add, change or move a document."""
        for old in [each for each, (known, _) in self.documents.items() if known == identity]:
            del self.documents[old]
        self.documents[url] = identity, content
        self.log.append(("changed", identity))

    def drop(self, url: str) -> None:
        """Delete a document."""
        identity, _ = self.documents.pop(url)
        self.log.append(("deleted", identity))

    def connect(self) -> Log:
        return self

    def pause_s(self) -> float:
        return 0.0

    def check(self) -> Mapping[str, Any]:
        return {"kind": "log"}

    def root(self) -> Item:
        return ROOT

    def turn(self, item: Item) -> AbstractContextManager[None]:
        return nullcontext()

    def host(self, item: Item) -> str:
        return ""

    def hold(self, host: str, seconds: float) -> None:
        """Do nothing: this source requests no pause."""

    def enumerate(self, container: Item) -> Sequence[Item]:
        self.enumerated += 1
        return [Item("document", url, identity=known) for url, (known, _) in self.documents.items()]

    def fetch(self, document: Item) -> Fetched:
        now_ns = time.perf_counter_ns()
        time.sleep(self.delay_s)
        self.fetched.append(document.url)
        if document.url in self.failing or document.url not in self.documents:
            raise Failure("not_found", permanent=True)
        _, content = self.documents[document.url]
        access = (Grant("everyone", "Read"), Grant("guests", "Read", allowed=False))
        return Fetched(content, now_ns, now_ns + 1000, access=access, links=("log://elsewhere", "log://a"))

    def token(self) -> str | None:
        return str(len(self.log))

    def changes(self, since: str) -> Changes:
        at = int(since)
        if at < self.forgotten:
            raise Failure("token_expired", permanent=True)
        page = self.log[at : at + PAGE]
        urls = {identity: url for url, (identity, _) in self.documents.items()}
        changed = [
            Item("document", urls[identity], identity=identity)
            for what, identity in page
            if what == "changed" and identity in urls
        ]
        deleted = [identity for what, identity in page if what == "deleted"]
        end = at + len(page)
        return Changes(tuple(changed), tuple(deleted), str(end), more=end < len(self.log))

    def close(self) -> None:
        """Do nothing: this source opens nothing."""


def in_place_of_folders(monkeypatch: pytest.MonkeyPatch, names: Iterable[str]) -> Log:
    """Replace each source of kind ``files`` by a log with a document of each name; return the log."""
    found = Log()
    monkeypatch.setitem(sources.KINDS, "files", lambda *_: found)
    for name in names:
        found.put(f"log://{name}", f"id-{name}", name.encode())
    return found
