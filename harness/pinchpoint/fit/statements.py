"""Holds the statistics of each statement of a server, and classifies its kind of work."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

PAGE_BYTES = 8192
_SCAN_PAGES = 64
"""Pages per call (half a megabyte) from which a query counts as a scan, not as a look-up."""
_SORT_BYTES = 2**20
"""Bytes of temporary files per call from which a query counts as a sort; sql-mix's smallest spill."""
_BATCH_ROWS = 2

_NOISE = re.compile(r"\s+|--[^\n]*\n|/\*.*?\*/|\((?=@)(?:[^()]|\([^()]*\))*\)", re.DOTALL)
"""Matches text before a statement's first word: comments, and SQL Server's list of parameters."""
_WORD = re.compile(r"\(*\s*([A-Za-z]+)")
_CHANGES = frozenset({"update", "delete", "merge"})
_QUERIES = frozenset({"select", "with", "values", "table", "execute", "fetch"})
COMMITS = frozenset({"commit", "end"})
TRANSACTIONAL = COMMITS | {"begin", "start", "rollback", "abort", "savepoint", "release"}
"""First words of statements that begin, end or divide transactions."""
_COPIED_OUT = re.compile(r"\bto\s+(?:stdout\b|program\b|')", re.IGNORECASE)
_CALLS = frozenset({"select", "with", "values", "call", "do", "exec", "execute"})
_LOCK_LOG_BYTES = 80.0
"""Log bytes per row above which a query wrote rows: a row lock takes 54 on PostgreSQL 18, a write takes
more."""
_TARGET = r"""(?:top\s*\([^)]*\)\s*)?(?:only\s+)?[\w."\[\]#@]+"""
_CHANGED = re.compile(
    rf"\b(?:update\s+{_TARGET}(?:\s+(?:as\s+)?\w+)?\s+set|delete\s+(?:from\s+)?{_TARGET}"
    r"|merge\s+(?!join\b|union\b)[\w\[\"])",
    re.IGNORECASE,
)
"""Matches words that change rows, after a WITH or within it."""


class StatementKind(StrEnum):
    """The kind of work of a statement."""

    APPEND = "append"
    BATCH = "batch"
    CHANGE = "change"
    LOAD = "load"
    LOOK = "look"
    SCAN = "scan"
    SORT = "sort"
    CONTROL = "control"


WRITING = (StatementKind.APPEND, StatementKind.BATCH, StatementKind.CHANGE, StatementKind.LOAD)
READING = (StatementKind.LOOK, StatementKind.SCAN, StatementKind.SORT)


@dataclass(frozen=True, slots=True)
class StatementActivity:
    """The activity of one statement between two snapshots.

    Attributes:
        text: the statement without constants.
        calls: number of executions.
        rows: rows returned or changed.
        log_bytes: bytes written to the log.
        pages: pages accessed, of which ``pages_read`` came from the data files.
        temp_bytes: bytes written to temporary files.
        page_images: whole pages written to the log, which happens at the first change after a checkpoint;
            None if not reported.
        nested: whether the statement ran within another one, whose counters include its cost.
    """

    text: str
    calls: float
    rows: float
    log_bytes: float
    pages: float
    pages_read: float
    temp_bytes: float
    page_images: float | None = None
    nested: bool = False

    @property
    def word(self) -> str:
        """The first word of the statement, in lower case."""
        at = 0
        while noise := _NOISE.match(self.text, at):
            at = noise.end()
        match = _WORD.match(self.text, at)
        return match[1].lower() if match else ""

    @property
    def kind(self) -> StatementKind:
        """The kind of the statement, from its first word and the cost of one call."""
        word = self.word
        if word == "insert" or (word in _QUERIES and self.log_bytes and _inserts(self.text)):
            return StatementKind.APPEND if self.rows < _BATCH_ROWS * self.calls else StatementKind.BATCH
        if word in _CHANGES or (word == "with" and self.log_bytes and _CHANGED.search(self.text)):
            return StatementKind.CHANGE
        if word in ("copy", "bulk") and self.log_bytes and not _COPIED_OUT.search(self.text):
            return StatementKind.LOAD
        if word not in _QUERIES:
            return StatementKind.CONTROL
        if self.temp_bytes >= _SORT_BYTES * self.calls:
            return StatementKind.SORT
        return StatementKind.SCAN if self.pages >= _SCAN_PAGES * self.calls else StatementKind.LOOK

    @property
    def calls_what_writes(self) -> bool:
        """Whether the statement writes rows through a function or procedure: a query logs only locks."""
        own_bytes = self.log_bytes - PAGE_BYTES * (self.page_images or 0.0)
        locks = _LOCK_LOG_BYTES * max(self.calls, self.rows)
        return self.word in _CALLS and self.kind not in WRITING and own_bytes > locks > 0


def _inserts(text: str) -> bool:
    return re.search(r"\binsert\s+into\b", text, re.IGNORECASE) is not None


@dataclass(slots=True)
class Sum:
    """Totals of the statements of one kind."""

    calls: float = 0.0
    rows: float = 0.0
    log_bytes: float = 0.0
    pages: float = 0.0
    pages_read: float = 0.0
    temp_bytes: float = 0.0
    page_images: float = 0.0


def by_kind(statements: Iterable[StatementActivity]) -> dict[StatementKind, Sum]:
    """The totals of each kind."""
    sums: dict[StatementKind, Sum] = defaultdict(Sum)
    for each in statements:
        total = sums[each.kind]
        total.calls += each.calls
        total.rows += each.rows
        total.log_bytes += each.log_bytes
        total.pages += each.pages
        total.pages_read += each.pages_read
        total.temp_bytes += each.temp_bytes
        total.page_images += each.page_images or 0.0
    return sums
