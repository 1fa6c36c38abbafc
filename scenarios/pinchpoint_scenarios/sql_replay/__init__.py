"""Scenario sql-replay: replays the sessions of a captured log on a copy of its database."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar, cast

from pydantic import Field, field_validator

from ..addresses import place, within
from ..contract import FileParams, Intent, Params, ScenarioContext, Sent, Target
from ..databases.contract import FailureReport, TextConnection
from ..errors import ScenarioError
from ..sql_script.marked_copy import MarkedCopy
from ..sql_script.values import delimiter_of
from ..sql_text import bare
from ..units import Seconds
from .capture import XEL, CapturedSession, LogEntry, at_once, opened, sessions_of
from .extended_events import read_events
from .pglog import read_logs
from .session import ReplaySession, Tape, verb
from .slowlog import read_slow_logs

# Parameters of sql-replay in a plan.


class SqlReplayParams(FileParams):
    """``params`` of sql-replay.

    Attributes:
        capture: log files, or exported events, of one server, relative to the plan's folder; any number of
            parts, in any order.
        database: in a log with several databases, the one to replay.
        speed: speed relative to the capture: 2 halves every pause.
        timeout_s: the server's time limit of a statement (outcome ``statement_timeout``).
    """

    capture: tuple[str, ...] = ()
    database: str | None = None
    speed: Annotated[float, Field(gt=0, le=1000)] = 1.0
    timeout_s: Seconds = 600.0

    @field_validator("capture", mode="before", json_schema_input_type=str | tuple[str, ...])
    @classmethod
    def _one_or_several(cls, capture: Any) -> Any:
        return [capture] if isinstance(capture, str) else capture

    @classmethod
    def placed(cls, given: Mapping[str, Any], directory: Path) -> dict[str, Any]:
        capture = given.get("capture")
        if isinstance(capture, str):
            capture = [capture]
        if not isinstance(capture, list | tuple):
            return dict(given)
        paths = [
            str(directory / Path(each).expanduser()) if isinstance(each, str) else each for each in capture
        ]
        return {**given, "capture": paths}

    def paths(self) -> tuple[str, ...]:
        return self.capture

    def read_files(self) -> None:
        """Check that the files exist. A log may be long, and is read when needed."""
        if not self.capture:
            raise ScenarioError("no capture is named; needed: capture, the log files of the server")
        for path in self.capture:
            if not Path(path).is_file():
                raise ScenarioError(f"{path}: there is no such file; check the path")


# The functions below detect the kind of capture files, and read all their statements.

_HEAD = 4096

_PGLOG, _PGLOG_JSON = "a PostgreSQL log as CSV", "a PostgreSQL log as JSON"
_XE_CSV = "Extended Events as CSV"
_SLOW_LOG = "an export of mysql.slow_log"
_SLOW_LOG_COLUMNS = {"start_time", "query_time", "thread_id", "db", "sql_text"}
_KINDS: Mapping[str, Callable[[Sequence[Path]], Iterator[LogEntry]]] = {
    _PGLOG: read_logs,
    _PGLOG_JSON: read_logs,
    _SLOW_LOG: read_slow_logs,
    _XE_CSV: read_events,
}
"""Kind of a capture's files -> function that reads them."""


def read_capture(paths: Sequence[Path]) -> Iterator[LogEntry]:
    """Return every statement of a capture. Raises ``ScenarioError`` with file and line for an invalid one."""
    kinds = {path: _kind_of(path) for path in paths}
    for path, kind in kinds.items():
        first = paths[0]
        if kind != kinds[first]:
            raise ScenarioError(
                f"{path}: {kind}, and {first} is {kinds[first]}; allowed: the files of one server's capture"
            )
    yield from _KINDS[kinds[paths[0]]](paths)


def _kind_of(path: Path) -> str:
    """Return the kind of a capture file, by its start. Raises ``ScenarioError``."""
    with opened(path, errors="replace") as file:
        head = file.read(_HEAD)
    if "\0" in head:
        raise ScenarioError(f"{path}: a binary file; allowed: a log, or events that were exported: {XEL}")
    if head.startswith("{"):
        return _PGLOG_JSON
    first = head.lstrip().partition("\n")[0]
    columns = {each.strip(' "\r').lower() for each in first.split(delimiter_of(first))}
    if first.startswith("<") or "event_data" in columns:
        raise ScenarioError(f"{path}: Extended Events as XML; allowed: as CSV: {XEL}")
    if columns >= _SLOW_LOG_COLUMNS:
        return _SLOW_LOG
    return _XE_CSV if {"name", "timestamp"} <= columns else _PGLOG


__all__ = ["SqlReplay", "SqlReplayParams"]

_VERIFY_S = 5.0
_TRIED = 200
"""Number of different statements of a capture that a check prepares."""
_SHOWN = 60
"""Number of letters of a refused statement in a message."""


class SqlReplay:
    """Replays the log of a server: its sessions, statements and pauses."""

    use: ClassVar[str] = "sql-replay"
    needs: ClassVar[frozenset[str]] = frozenset({"sql"})
    writes: ClassVar[bool] = True
    ends: ClassVar[bool] = True
    params_model: ClassVar[type[Params]] = SqlReplayParams

    def __init__(self, context: ScenarioContext) -> None:
        self._context = context
        self._params = cast("SqlReplayParams", context.params)
        self._params.read_files()
        self._copy = MarkedCopy(context.endpoints["sql"], f"pinchpoint_{context.name}", empty_will_do=False)
        self._report = FailureReport(context.event)
        self._reading = threading.Lock()
        self._tape: Tape | None = None

    @property
    def blocks(self) -> bool:
        """Return whether sessions wait inside C code, as with ODBC (``contract.Blocking``)."""
        return self._copy.blocks

    def check(self) -> Mapping[str, Any]:
        """Connect to the server and read the capture. Return facts about both."""
        server = self._copy.check()
        sessions = self._sessions()
        left_out = sum((session.left_out for session in sessions), Counter[str]())
        statements = sum(len(session.statements) for session in sessions)
        length_s = max((session.ends_s for session in sessions), default=0.0)
        if not statements:
            why = f" (left out: {dict(left_out)})" if left_out else ""
            raise ScenarioError(
                f"{', '.join(self._params.capture)}: no statement that could be replayed{why}; needed: a log "
                "written with log_min_duration_statement = 0 and in English (lc_messages = 'C'); of SQL "
                "Server, the events rpc_completed and sql_batch_completed; of MariaDB and MySQL, "
                "mysql.slow_log with long_query_time = 0"
            )
        users = at_once(sessions)
        capture = {
            "server": f"{statements} statements of {len(sessions)} sessions",
            "version": f"at most {users} at once, in {length_s / self._params.speed:.0f} s",
        }
        warnings = list(server["warnings"])
        warnings += self._unprepared(sessions)
        if left_out:
            listed = ", ".join(f"{cause} {count}" for cause, count in sorted(left_out.items()))
            warnings.append(f"of the capture is left out: {listed}")
        if deduced := sum(session.deduced for session in sessions):
            warnings.append(
                f"{deduced} begins and commits follow from transaction_id alone: what was rolled back is "
                "committed; capture begin_tran_completed, commit_tran_completed, rollback_tran_completed, too"
            )
        return {"sql": {**server, "warnings": warnings}, "capture": capture}

    def _unprepared(self, sessions: Iterable[CapturedSession]) -> list[str]:
        """Return the number of distinct statements that the copy cannot prepare, and the first of them."""
        texts = dict.fromkeys(one.text for session in sessions for one in session.statements)
        tried = list(islice((text for text in texts if ";" not in bare(text).rstrip("; \n")), _TRIED))
        asked = ((" ".join(text.split())[:_SHOWN], [self._copy.translated(text)]) for text in tried)
        refused = [said for said, _ in self._copy.refusals(asked)]
        if not refused:
            return []
        counts = f"{len(refused)} of {len(tried)} different statements"
        return [f"{counts} of the capture cannot be prepared here, the first: {refused[0]}"]

    def intent(self) -> Intent:
        """Return the statements of the capture by their first words.

        Reads the capture, contacts no server.
        """
        texts = [one.text for session in self._sessions() for one in session.statements]
        verbs = Counter(map(verb, texts))
        return Intent(
            (
                Target(
                    place(self._context.endpoints["sql"]),
                    within(self._context.endpoints["sql"], "marked as a copy"),
                ),
            ),
            (),
            tuple(
                Sent(word, f"{count:,} captured statements", count / len(texts), None, None)
                for word, count in verbs.most_common()
            ),
            "nothing: restore the copy before the next run",
            at_most=len(texts),
            notes=("captured SQL: how many rows a statement writes is not known",),
        )

    def prepare(self, progress: Callable[[str], None]) -> None:
        """Check that the database is a copy, and that no other run replays into it."""
        progress("looking whether the database is marked as a copy")
        self._copy.hold()

    def session(self, number: int) -> ReplaySession:
        """Open a session. The captured sessions that it replays depend on which users are free."""
        del number
        return ReplaySession(self._played(), self._copy, self._connection, self._params.speed, self._report)

    def finish(self, *, keep_data: bool) -> None:
        """Let other runs in. Replayed changes stay, so the copy must be restored before the next run."""
        del keep_data
        self._copy.release()

    @property
    def verify_within_s(self) -> float:
        return _VERIFY_S

    def verify(self) -> None:
        """Report the captured and the executed statements, and the causes of the difference."""
        self._context.event("replayed", **self._played().account())

    def _connection(self) -> TextConnection:
        return self._copy.connection(self._params.timeout_s)

    def _played(self) -> Tape:
        """Return the part of the capture for this process: every n-th session."""
        context = self._context
        with self._reading:
            if self._tape is None:
                mine = (
                    self._sessions()[context.worker :: context.workers]
                    if context.worker < context.workers
                    else []
                )
                self._tape = Tape(mine, context.repeat_s)
            return self._tape

    def _sessions(self) -> list[CapturedSession]:
        return sessions_of(self._entries())

    def _entries(self) -> Iterator[LogEntry]:
        wanted = self._params.database
        databases: set[str] = set()
        for entry in read_capture([Path(path) for path in self._params.capture]):
            databases.add(entry.database)
            if wanted in (None, entry.database):
                yield entry
        listed = ", ".join(sorted(databases))
        if wanted is None and len(databases) > 1:
            raise ScenarioError(f"the capture holds several databases: {listed}; name one: database: NAME")
        if wanted is not None and databases and wanted not in databases:
            raise ScenarioError(f"the capture holds nothing of database {wanted!r}; it has: {listed}")
