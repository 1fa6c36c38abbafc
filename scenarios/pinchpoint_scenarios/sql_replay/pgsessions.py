"""What the rows of a PostgreSQL log say together, session by session."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from .captured import Entry

NO_TEXT, NO_DURATION, FAILED = "no_text", "no_duration", "failed_when_captured"
PARAMETERS_CUT = "parameters_cut"
"""Causes of what cannot be made again."""
CUT = "..."
"""What a value ends in that was cut off, or that ends so itself."""
_LETTER_BYTES = 4
"""A value is cut between letters: by less than one of them shorter than ``log_parameter_max_length``."""

_COMMIT = re.compile(
    r"(?:\s|/\*(?:[^*]++|\*(?!/))*\*/|--[^\n]*+\n)*(?:commit|end)\b(?:\s+(?:work|transaction)\b)?(?!\s+prepared)",
    re.IGNORECASE | re.DOTALL,
)


def as_sent(entries: Iterable[Entry]) -> Iterator[Entry]:
    """The statements of a log's rows, each session's in the order in which they ended."""
    sessions: dict[str, list[Entry]] = {}
    longest = 0
    for entry in entries:
        sessions.setdefault(entry.session, []).append(entry)
        longest = max(longest, *_lengths(entry, cut=False))
    for several in sessions.values():
        several.sort(key=lambda entry: entry.ended_s)
        yield from _rolled_back(_joined(_whole(each, longest) for each in several))


def _lengths(entry: Entry, *, cut: bool) -> Iterator[int]:
    """Bytes of its values that end as if they were cut off, or of the others; at least a 0."""
    yield 0
    for value in entry.parameters or ():
        if value and value.endswith(CUT) is cut:
            yield len(value.encode())


def _whole(entry: Entry, longest: int) -> Entry:
    """With its values, where a longer one in the log is whole: then they end in dots themselves."""
    if (
        entry.left_out != PARAMETERS_CUT
        or max(_lengths(entry, cut=True)) - len(CUT) + _LETTER_BYTES > longest
    ):
        return entry
    return replace(entry, left_out=None)


def _joined(entries: Iterable[Entry]) -> Iterator[Entry]:
    """One entry for a statement that was logged when it began and, without its text, when it ended."""
    waiting: Entry | None = None
    for entry in entries:
        if waiting is not None and _ends(waiting, entry):
            yield _ended(waiting, entry)
            waiting = None
        elif entry.begun:
            if waiting is not None:
                yield _endless(waiting)
            waiting = entry
        else:
            yield entry
    if waiting is not None:
        yield _endless(waiting)


def _ends(begun: Entry, entry: Entry) -> bool:
    """Whether an entry tells of the same statement's end."""
    if entry.begun:
        return False
    return entry.left_out == NO_TEXT or (entry.left_out == FAILED and entry.text == begun.text)


def _ended(begun: Entry, end: Entry) -> Entry:
    if end.left_out == FAILED:
        return end
    return replace(begun, ended_s=end.ended_s, duration_s=end.duration_s, begun=False)


def _endless(begun: Entry) -> Entry:
    return replace(begun, begun=False, left_out=begun.left_out or NO_DURATION)


def _rolled_back(entries: Iterable[Entry]) -> Iterator[Entry]:
    """ROLLBACK where COMMIT ended a transaction in which something had failed: so did the server.

    What failed is not made again, so that COMMIT would keep what the capture's database never had. Within
    such a transaction nothing else succeeds before it ends.
    """
    failed = False
    for entry in entries:
        commit = _COMMIT.match(entry.text or "")
        if entry.left_out == FAILED:
            failed = commit is None
            yield replace(entry, text="ROLLBACK", left_out=None) if commit else entry
        elif entry.left_out == NO_DURATION:
            yield entry  # it may have failed
        else:
            rest = (entry.text or "")[commit.end() :] if commit else ""
            yield replace(entry, text=f"ROLLBACK{rest}") if commit and failed else entry
            failed = False
