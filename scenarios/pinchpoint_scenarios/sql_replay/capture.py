"""A capture of a server: its statements as records, its sessions, and its files as text."""

from __future__ import annotations

import codecs
import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from ..errors import ScenarioError


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One statement in a log.

    Attributes:
        session: the session's identity in the log.
        database: the database it ran in.
        ended_s: its end, in seconds of any clock that all entries share.
        duration_s: its duration on the captured server.
        text: the statement; None if the log lacks it.
        parameters: the values of ``$1``, ``$2``, ...; None is null. None instead of a list: no parameters.
        left_out: why it cannot be replayed; None: it can.
        transaction: the server's number of the transaction in which it ended; 0: none, or unknown.
        deduced: whether the statement is missing in the capture and was derived from others.
        begun: whether it was logged at its begin: its end is a separate entry.
        prepared: whether it was executed as a prepared statement.
    """

    session: str
    database: str
    ended_s: float
    duration_s: float
    text: str | None
    parameters: tuple[str | None, ...] | None = None
    left_out: str | None = None
    transaction: int = 0
    deduced: bool = False
    begun: bool = False
    prepared: bool = False

    @property
    def began_s(self) -> float:
        """When it began."""
        return self.ended_s - self.duration_s


@dataclass(frozen=True, slots=True)
class Captured:
    """One statement of a session.

    Attributes:
        at_s: its begin, in seconds since the begin of the capture.
        think_s: the session's pause before it; 0 for its first statement. duration_s, text, parameters,
            prepared: as in ``LogEntry``.
    """

    at_s: float
    think_s: float
    duration_s: float
    text: str
    parameters: tuple[str | None, ...] | None
    prepared: bool = False


@dataclass(slots=True)
class CapturedSession:
    """One session.

    Attributes:
        statements: its statements in order.
        left_out: cause -> number of its statements that cannot be replayed.
        deduced: number of statements that the capture lacks.
    """

    statements: list[Captured] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    deduced: int = 0

    @property
    def begins_s(self) -> float:
        """The begin of its first statement, in seconds since the begin of the capture."""
        return self.statements[0].at_s if self.statements else 0.0

    @property
    def ends_s(self) -> float:
        """The end of its last statement."""
        last = self.statements[-1] if self.statements else None
        return last.at_s + last.duration_s if last else 0.0


def sessions_of(entries: Iterable[LogEntry]) -> list[CapturedSession]:
    """The sessions of a capture, sorted by their begin."""
    ordered = sorted(entries, key=lambda entry: entry.ended_s)
    zero_s = min((entry.began_s for entry in ordered), default=0.0)
    sessions: dict[str, CapturedSession] = {}
    for entry in ordered:
        session = sessions.setdefault(entry.session, CapturedSession())
        if entry.left_out is not None or entry.text is None:
            session.left_out[entry.left_out or "no_text"] += 1
            continue
        began_s = entry.began_s - zero_s
        # A log's clock has a resolution of a millisecond: the next statement may seem to begin earlier.
        think_s = max(0.0, began_s - session.ends_s) if session.statements else 0.0
        session.deduced += entry.deduced
        session.statements.append(
            Captured(began_s, think_s, entry.duration_s, entry.text, entry.parameters, entry.prepared)
        )
    return sorted(sessions.values(), key=lambda session: session.begins_s)


def at_once(sessions: Sequence[CapturedSession]) -> int:
    """Largest number of simultaneous sessions, from their first to their last statement."""
    edges = [(session.begins_s, 1) for session in sessions if session.statements]
    edges += [(session.ends_s, -1) for session in sessions if session.statements]
    most = now = 0
    for _, change in sorted(edges, key=lambda edge: (edge[0], -edge[1])):
        now += change
        most = max(most, now)
    return most


_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
LOST = "\N{REPLACEMENT CHARACTER}"
"""The replacement of an undecodable character."""
_LONGEST_FIELD = 2**28
"""Largest field of a CSV file, in characters: a statement may be long."""
XEL = "Management Studio exports the events of a .xel file as CSV"


@contextmanager
def opened(path: Path, *, errors: str = "strict", newline: str = "") -> Iterator[TextIO]:
    """The file as text: UTF-8, or UTF-16 if declared; line breaks unchanged. Raises ``ScenarioError``.

    Args:
        path: the file.
        errors: the treatment of undecodable bytes (``open``).
        newline: the line separator, or, if empty, any.
    """
    try:
        with path.open("rb") as binary:
            head = binary.read(4)
        encoding = next((name for bom, name in _BOMS if head.startswith(bom)), "utf-8")
        if head[:1] != b"\0" == head[1:2]:
            encoding = "utf-16-le"  # Windows' tools omit its mark
        with path.open(newline=newline, encoding=encoding, errors=errors) as file:
            yield file
    except UnicodeDecodeError as error:
        raise ScenarioError(
            f"{path}: no text in UTF-8 or UTF-16 (byte {error.start}: {error.reason}); allowed: a log, or "
            f"events that were exported: {XEL}"
        ) from error
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read ({error.strerror}); check the path") from error


Rows = Iterator[tuple[int, list[str]]]
"""The rows of a file, each with the line of its end."""


def csv_rows(file: Iterable[str], path: Path, delimiter: str = ",") -> Rows:
    """The rows of a CSV file; raises ``ScenarioError``."""
    csv.field_size_limit(_LONGEST_FIELD)
    rows = csv.reader(file, delimiter=delimiter)
    try:
        for row in rows:
            yield rows.line_num, row
    except csv.Error as error:
        raise ScenarioError(f"{path}:{rows.line_num}: no CSV ({error})") from error


def with_header(rows: Rows, path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """``FILE:LINE`` and the row by column names, from the first row; raises ``ScenarioError``."""
    _, header = next(rows, (0, []))
    columns = [column.strip().lower() for column in header]
    for line, row in rows:
        place = f"{path}:{line}"
        if row and len(row) != len(columns):
            raise ScenarioError(f"{place}: {len(row)} columns; allowed: {len(columns)}, as in the header")
        if row:
            yield place, dict(zip(columns, row, strict=True))
