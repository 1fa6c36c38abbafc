"""A capture's files, whatever wrote them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from ..errors import ScenarioError
from .captured import Entry
from .files import PGLOG, PGLOG_JSON, SLOW_LOG, XE_CSV, kind_of
from .pglog import read_logs
from .pgsessions import as_sent
from .slowlog import read_slow_logs
from .xevents import read_events


def _read_pglogs(paths: Sequence[Path]) -> Iterator[Entry]:
    return as_sent(read_logs(paths))


_KINDS: Mapping[str, Callable[[Sequence[Path]], Iterator[Entry]]] = {
    PGLOG: _read_pglogs,
    PGLOG_JSON: _read_pglogs,
    SLOW_LOG: read_slow_logs,
    XE_CSV: read_events,
}
"""Kind of a capture's files -> how they are read."""


def read_capture(paths: Sequence[Path]) -> Iterator[Entry]:
    """Every statement of a capture. Raises ``ScenarioError`` naming file and line of what is none."""
    kinds = {path: kind_of(path) for path in paths}
    for path, kind in kinds.items():
        first = paths[0]
        if kind != kinds[first]:
            raise ScenarioError(
                f"{path}: {kind}, and {first} is {kinds[first]}; allowed: the files of one server's capture"
            )
    yield from _KINDS[kinds[paths[0]]](paths)
