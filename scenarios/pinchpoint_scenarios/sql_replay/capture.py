"""Defines a capture of a server: its statements as records, its sessions, and its files as text."""

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
        session: identity of the session in the log.
        database: database in which it ran.
        ended_s: end of the statement in seconds of any clock that all entries share.
        duration_s: duration on the captured server in seconds.
        text: text of the statement; None if the log lacks it.
        parameters: values of ``$1``, ``$2``, ...; None is null. None instead of a list: no parameters.
        left_out: why it cannot be replayed; None: it can be replayed.
        transaction: server's number of the transaction in which it ended; 0: none, or unknown.
        deduced: whether the statement is missing in the capture and was derived from others.
        begun: whether the entry was logged at the start of the statement. The end is a separate entry then.
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
        """Return the start of the statement in seconds."""
        return self.ended_s - self.duration_s


@dataclass(frozen=True, slots=True)
class Captured:
    """One statement of a session.

    Attributes:
        at_s: start of the statement in seconds since the start of the capture.
        think_s: pause of the session before it in seconds; 0 for the first statement. duration_s, text,
            parameters, prepared: as in ``LogEntry``.
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
        statements: statements of the session in order.
        left_out: cause -> number of its statements that cannot be replayed.
        deduced: number of statements that the capture lacks.
    """

    statements: list[Captured] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    deduced: int = 0

    @property
    def begins_s(self) -> float:
        """Return the start of its first statement in seconds since the start of the capture."""
        return self.statements[0].at_s if self.statements else 0.0

    @property
    def ends_s(self) -> float:
        """Return the end of its last statement in seconds since the start of the capture."""
        last = self.statements[-1] if self.statements else None
        return last.at_s + last.duration_s if last else 0.0


def sessions_of(entries: Iterable[LogEntry]) -> list[CapturedSession]:
    """Return the sessions of a capture, sorted by their begin."""
    ordered = sorted(entries, key=lambda entry: entry.ended_s)
    zero_s = min((entry.began_s for entry in ordered), default=0.0)
    sessions: dict[str, CapturedSession] = {}
    for entry in ordered:
        session = sessions.setdefault(entry.session, CapturedSession())
        if entry.left_out is not None or entry.text is None:
            session.left_out[entry.left_out or "no_text"] += 1
            continue
        began_s = entry.began_s - zero_s
        # The clock of a log has a resolution of a millisecond, so the next statement may seem to begin
        # earlier.
        think_s = max(0.0, began_s - session.ends_s) if session.statements else 0.0
        session.deduced += entry.deduced
        session.statements.append(
            Captured(began_s, think_s, entry.duration_s, entry.text, entry.parameters, entry.prepared)
        )
    return sorted(sessions.values(), key=lambda session: session.begins_s)


def at_once(sessions: Sequence[CapturedSession]) -> int:
    """Return the largest number of simultaneous sessions, from their first to their last statement."""
    edges = [(session.begins_s, 1) for session in sessions if session.statements]
    edges += [(session.ends_s, -1) for session in sessions if session.statements]
    most = now = 0
    for _, change in sorted(edges, key=lambda edge: (edge[0], -edge[1])):
        now += change
        most = max(most, now)
    return most


_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
LOST = "\N{REPLACEMENT CHARACTER}"
"""Replacement of a character that cannot be decoded."""
_LONGEST_FIELD = 2**28
"""Largest field of a CSV file in characters, because a statement may be long."""
XEL = "Management Studio exports the events of a .xel file as CSV"


@contextmanager
def opened(path: Path, *, errors: str = "strict", newline: str = "") -> Iterator[TextIO]:
    """Open the file as text: UTF-8, or UTF-16 if declared. Line breaks are kept. Raises ``ScenarioError``.

    Args:
        path: path of the file.
        errors: treatment of bytes that cannot be decoded (as for ``open``).
        newline: line separator; empty: any separator.
    """
    try:
        with path.open("rb") as binary:
            head = binary.read(4)
        encoding = next((name for bom, name in _BOMS if head.startswith(bom)), "utf-8")
        if head[:1] != b"\0" == head[1:2]:
            encoding = "utf-16-le"  # tools on Windows omit the byte order mark
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
"""Rows of a file, each with the number of its last line."""


def csv_rows(file: Iterable[str], path: Path, delimiter: str = ",") -> Rows:
    """Yield the rows of a CSV file. Raises ``ScenarioError``."""
    csv.field_size_limit(_LONGEST_FIELD)
    rows = csv.reader(file, delimiter=delimiter)
    try:
        for row in rows:
            yield rows.line_num, row
    except csv.Error as error:
        raise ScenarioError(f"{path}:{rows.line_num}: no CSV ({error})") from error


def with_header(rows: Rows, path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield ``FILE:LINE`` and each row by column names, from the first row. Raises ``ScenarioError``."""
    _, header = next(rows, (0, []))
    columns = [column.strip().lower() for column in header]
    for line, row in rows:
        place = f"{path}:{line}"
        if row and len(row) != len(columns):
            raise ScenarioError(f"{place}: {len(row)} columns; allowed: {len(columns)}, as in the header")
        if row:
            yield place, dict(zip(columns, row, strict=True))
