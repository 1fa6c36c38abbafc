"""A capture's files, whatever wrote them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from ..errors import ScenarioError
from .captured import Entry
from .files import PGLOG, PGLOG_JSON, SLOW_LOG, kind_of
from .pglog import read_logs
from .pgsessions import as_sent
from .slowlog import read_slow_logs
from .xevents import entries_of, read_events


def _read_pglogs(paths: Sequence[Path]) -> Iterator[Entry]:
    return as_sent(read_logs(paths))


_LOGS: Mapping[str, Callable[[Sequence[Path]], Iterator[Entry]]] = {
    PGLOG: _read_pglogs,
    PGLOG_JSON: _read_pglogs,
    SLOW_LOG: read_slow_logs,
}
"""Kinds of files of which a capture has one -> how they are read; Extended Events are in files of two."""


def read_capture(paths: Sequence[Path]) -> Iterator[Entry]:
    """Every statement of a capture. Raises ``ScenarioError`` naming file and line of what is none."""
    kinds = {path: kind_of(path) for path in paths}
    for path, kind in kinds.items():
        first = paths[0]
        if kind != kinds[first] and {kind, kinds[first]} & _LOGS.keys():
            raise ScenarioError(
                f"{path}: {kind}, and {first} is {kinds[first]}; allowed: the files of one server's capture"
            )
    if read := _LOGS.get(kinds[paths[0]]):
        yield from read(paths)
    else:
        yield from entries_of(chain.from_iterable(read_events(path, kind) for path, kind in kinds.items()))
