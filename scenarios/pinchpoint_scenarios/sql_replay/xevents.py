"""Files of SQL Server's Extended Events, as the statements its applications sent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby
from pathlib import Path

from ..databases.servers.contract import MSSQL
from ..sql_script.leaving import leaves
from .captured import Entry
from .files import opened
from .rpc import Handles, handed_over, resets
from .xe_csv import csv_events
from .xe_event import BEGIN, COMMIT, LOGOUT, MANAGED, PARTS, WHOLE, Event, entry_of

_LITERAL = re.compile(r"'(?:[^']|'')*'")
_VARIABLE = re.compile(r"(?<![@\w])@\w")
_BULK = re.compile(r"(?i)\s*insert\s+bulk\b")
_TEMPORARY = re.compile(r"(?i)\b(?:create\s+table|into)\s+\[?#")
_OWN_TRANSACTION = re.compile(r"(?i)\b(?:begin\s+tran|commit|rollback|implicit_transactions)")


def read_events(paths: Sequence[Path]) -> Iterator[Entry]:
    """The statements of a capture's events, each session's in the order in which they ended.

    Raises ``ScenarioError`` naming file and line of what is no event.
    """
    yield from _entries_of(chain.from_iterable(map(_events, paths)))


def _events(path: Path) -> Iterator[Event]:
    with opened(path) as file:
        yield from csv_events(file, path)


def _entries_of(events: Iterable[Event]) -> list[Entry]:
    """The statements of events.

    Where batches and calls were captured, single statements are parts of those, and left alone; where they
    were not, each is one by itself.
    """
    found: list[tuple[str, Entry]] = []
    whole = False
    for event in events:
        entry = entry_of(event)
        if entry is None or (whole and event.name in PARTS):
            continue
        if event.name in WHOLE and not whole:
            whole = True
            found = [each for each in found if each[0] not in PARTS]
        found.append((event.name, _judged(entry, part=event.name in PARTS)))
    deduce = not any(name in MANAGED for name, _ in found)
    sessions: dict[str, list[Entry]] = {}
    for _, entry in found:
        sessions.setdefault(entry.session, []).append(entry)
    return [entry for entries in sessions.values() for entry in _as_sent(entries, deduce=deduce)]


def _judged(entry: Entry, *, part: bool) -> Entry:
    """The entry; with why it cannot be made again, where its text says that."""
    text = entry.text or ""
    if entry.left_out is None and _BULK.match(text):
        return replace(entry, left_out="bulk_data_not_captured")
    if entry.left_out is None and part and _VARIABLE.search(_LITERAL.sub("", text)):
        return replace(entry, left_out="variables_not_captured")
    return entry


def _as_sent(entries: list[Entry], *, deduce: bool) -> Iterator[Entry]:
    """One session's entries as they can be made again."""
    handles = Handles()
    by_time = sorted(entries, key=lambda each: each.ended_s)
    ordered = [_staying(handles.replayable(each)) for each in by_time]
    if deduce and not any(_OWN_TRANSACTION.search(each.text or "") for each in ordered):
        ordered = list(_with_transactions(ordered))
    return _by_connection(ordered)


def _staying(entry: Entry) -> Entry:
    """The entry; left out where it, or what it hands over to be executed, leaves the database."""
    text = entry.text or ""
    texts = (text, handed_over(text) or "")
    if entry.left_out is None and any(leaves(each, (MSSQL,)) is not None for each in texts):
        return replace(entry, left_out="changes_database")
    return entry


def _by_connection(entries: Iterable[Entry]) -> Iterator[Entry]:
    """With a session of its own for each connection: the server gives a session's number to the next one.

    So, too, for what follows a pool's reset of one that had temporary tables: the reset drops them, nobody
    but a driver can ask for it, and a connection of its own has none either.
    """
    number, temporary = 0, False
    for entry in entries:
        if entry.left_out == LOGOUT:
            number, temporary = number + 1, False
            continue
        yield replace(entry, session=f"{entry.session}/{number}") if number else entry
        text = entry.text or ""
        if resets(text) and temporary:
            number, temporary = number + 1, False
        else:
            temporary = temporary or _TEMPORARY.search(text) is not None


def _with_transactions(entries: Sequence[Entry]) -> Iterator[Entry]:
    """With a begin and a commit around what shares a transaction's number.

    A driver's own requests to begin and end one are events of their own, which were not captured. What was
    rolled back is committed then: nothing says which it was.
    """
    before_s = float("-inf")
    for number, group in groupby(entries, key=lambda each: each.transaction):
        run = list(group)
        made = [each for each in run if each.left_out is None]
        if number and len(made) > 1:
            first, last = made[0], made[-1]
            begun_s = max(first.began_s, before_s)
            yield replace(first, text=BEGIN, ended_s=begun_s, duration_s=0.0, deduced=True)
            yield from run
            yield replace(last, text=COMMIT, duration_s=0.0, deduced=True)
        else:
            yield from run
        before_s = run[-1].ended_s
