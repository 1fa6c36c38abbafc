"""Reads the SQL statement counters of databases before and after the measurement."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pinchpoint.run.preflight import Connected
from pinchpoint_collectors.common.times import utc
from pinchpoint_collectors.databases.top_statements import (
    Counted,
    CountsStatements,
    UncountedError,
    growth,
)
from pinchpoint_collectors.errors import CollectorError

MOST = 20
"""Number of statements that are kept for each database server."""
_WAIT_S = 5.0
"""Time limit for all answers at the end of the measurement, in seconds."""


class _ServerCounters(threading.Thread):
    """Reads the statement counters of one server in a thread."""

    def __init__(self, collector: CountsStatements, *, texts: bool) -> None:
        super().__init__(name="top-statements", daemon=True)
        self._collector, self._texts = collector, texts
        self.at = utc()
        self.found: Sequence[Counted] | None = None
        self.why, self.remedy = "the server had not answered when the measurement ended", None
        self.start()

    def run(self) -> None:
        """Read the counters. An exception of the driver becomes the reason for missing counters."""
        try:
            self.found = self._collector.statement_counts(texts=self._texts)
        except UncountedError as error:
            self.why, self.remedy = error.why, error.remedy  # type: ignore[assignment]
        except CollectorError as error:
            self.why = str(error)
        except Exception as error:  # noqa: BLE001 - a driver's own error costs the statements only
            self.why = f"{type(error).__name__}: {error}"


@dataclass(slots=True)
class _StatementServer:
    kind: str
    hosts: Sequence[str]
    collector: CountsStatements
    before: _ServerCounters | None = None
    after: _ServerCounters | None = None


class TopStatements:
    """Reads the statement counters of every database server twice.

    Args:
        connected: collectors of the run.
    """

    def __init__(self, connected: Sequence[Connected]) -> None:
        self._servers = [
            _StatementServer(one.kind, one.hosts, one.collector)
            for one in connected
            if isinstance(one.collector, CountsStatements)
        ]

    def begin(self) -> None:
        """Start the first reading. Returns at once."""
        for server in self._servers:
            server.before = _ServerCounters(server.collector, texts=False)

    def end(self) -> list[dict[str, Any]]:
        """Read the counters again. Return the manifest's ``statements``, with a row per server."""
        asked = [server for server in self._servers if server.before is not None]
        for server in asked:
            if server.before is not None and server.before.found is not None:
                server.after = _ServerCounters(server.collector, texts=True)
        until_s = time.monotonic() + _WAIT_S
        for server in asked:
            if server.after is not None:
                server.after.join(max(0.0, until_s - time.monotonic()))
        return [row for server in asked for row in _rows(server)]


def _rows(server: _StatementServer) -> list[dict[str, Any]]:
    about = {"kind": server.kind, "host": server.hosts[0]}
    before, after = server.before, server.after
    if before is None:
        return []
    last = before if before.found is None else after
    if before.found is None or after is None or after.found is None or last is None:
        failed = last or before
        return [{**about, "why": failed.why, "remedy": failed.remedy}]
    grown = growth(before.found, after.found)
    kept = [one._asdict() for one in grown[:MOST]]
    total = {"time_s": sum(one.time_s for one in grown), "calls": sum(one.calls for one in grown)}
    return [{**about, "from": before.at, "to": after.at, "count": len(grown), **total, "statements": kept}]
