"""A capture's files, whatever wrote them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from ..errors import ScenarioError
from .captured import Entry
from .files import PGLOG, SLOW_LOG, kind_of
from .pglog import read_log
from .pgsessions import as_sent
from .slowlog import read_slow_log
from .xevents import entries_of, read_events

_LOGS: Mapping[str, Callable[[Path], Iterator[Entry]]] = {PGLOG: read_log, SLOW_LOG: read_slow_log}
"""Kinds of files that are read one by one -> how; Extended Events are a kind of their own."""


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
        entries = chain.from_iterable(map(read, paths))
        yield from as_sent(entries) if read is read_log else entries
    else:
        yield from entries_of(chain.from_iterable(read_events(path, kind) for path, kind in kinds.items()))
