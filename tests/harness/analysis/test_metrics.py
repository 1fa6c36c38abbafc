"""Every collected or imported metric feeds a measure of the analysis; any other metric is an error.

``NOT_JUDGED`` lists the metrics that feed no measure by design, with the reasons.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from collectors.test_bounds import all_metrics

import pinchpoint.analysis
import pinchpoint.analysis.recordings
from pinchpoint_collectors.exporters.tables import EXPORTERS
from pinchpoint_collectors.imports.mapped_csv import METRICS
from pinchpoint_collectors.windows.counters import LOGGED

AMOUNT = "says how much work there was, not that any waited"
STATE = "says what the server is doing; what that costs is judged by latency and waiting"
BESIDE = "the same waiting is judged by a figure beside it"
CACHE = "says how a cache is used; what a miss costs is judged as reads of the disk"
NOT_JUDGED: dict[str, str] = {
    "collector.*": "what it costs to collect, and the host's clock: no resource of the farm",
    "generator.others_ratio": "contention of the load generator's machine, by its name in linux/others.py",
    "db.aof.buffered_bytes": AMOUNT,
    "db.aof.bytes_per_s": AMOUNT,
    "db.aof.failing": STATE,
    "db.aof.pending_fsyncs": BESIDE,  # db.aof.wait_ratio
    "db.aof.rewriting": STATE,
    "db.buffer_dirty_ratio": CACHE,
    "db.buffer_ratio": CACHE,
    "db.cache_client_evictions_per_s": BESIDE,  # db.cache_wait_s_per_s
    "db.cache_hit_ratio": CACHE,
    "db.cache_ratio": CACHE,
    "db.checkpoint_age_bytes": BESIDE,  # db.checkpoint_age_ratio
    "db.checkpoint_*s_per_s": STATE,
    "db.clients_active": AMOUNT,
    "db.clients_blocked": "clients in commands that are meant to block (BLPOP)",
    "db.clients_memory_bytes": AMOUNT,
    "db.commit_log_wait_s": BESIDE,  # db.request_latency_s, and the disk's own
    "db.connections_made_per_s": AMOUNT,
    "db.disconnections_per_s": STATE,
    "db.expired_keys_per_s": AMOUNT,
    "db.flow_control_s_per_s": STATE,
    "db.hints_files": AMOUNT,
    "db.io_pending": BESIDE,  # disk.outstanding
    "db.journal.bytes_per_s": AMOUNT,
    "db.journal.syncs_per_s": AMOUNT,
    "db.main_thread.c*": BESIDE,  # db.main_thread.busy_ratio
    "db.memory_*_bytes": BESIDE,  # db.memory_ratio
    "db.pages_flushed_per_s": AMOUNT,
    "db.pool.blocked_per_s": BESIDE,  # db.pool.blocked
    "db.pool.completed_per_s": AMOUNT,
    "db.received_bytes_per_s": AMOUNT,
    "db.rollbacks_per_s": AMOUNT,
    "db.sent_bytes_per_s": AMOUNT,
    "db.sessions_blocked_by": "names who holds the locks; that sessions wait is db.lock_waiters",
    "db.snapshot_running": STATE,
    "db.statements_evicted_per_s": CACHE,
    "db.temp_*": AMOUNT,
    "db.tickets_wait_s_per_s": BESIDE,  # db.tickets_queued
    "db.wait*": BESIDE,  # db.sessions_waiting, by the same kinds of waiting
    "db.wal_*": AMOUNT,
    "db.write_concern_latency_s": "waiting for other members of the replica set, which are not in the farm",
    "disk.data_write_latency_s": "read as the way `disk.data_write` with its ending",
    "mem.*_hits_per_s": BESIDE,  # mem.refaulted_bytes_per_s
    "mem.reclaimed_bytes_per_s": BESIDE,
}
"""Metrics that feed no measure, with the reasons. A pattern stands for a group of metrics."""


class Source(NamedTuple):
    """Metric names in a source file of the analysis: whole strings, and patterns of f-strings."""

    texts: frozenset[str]
    patterns: tuple[re.Pattern[str], ...]

    def reads(self, metric: str) -> bool:
        """Return whether the file contains the metric's name, or composes it from parts it contains."""
        if metric in self.texts:
            return True
        matches = filter(None, (pattern.fullmatch(metric) for pattern in self.patterns))
        return any(
            all(part in self.texts or part.removesuffix("s") in self.texts for part in match.groups())
            for match in matches
        )


@cache
def sources(folder: str) -> tuple[Source, ...]:
    """Return the sources of all files in a package and its subpackages."""
    return tuple(_source(path.read_text(encoding="utf-8")) for path in Path(folder).rglob("*.py"))


def _source(text: str) -> Source:
    nodes = list(ast.walk(ast.parse(text)))
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    joined = (node for node in nodes if isinstance(node, ast.JoinedStr))
    return Source(frozenset(texts), tuple(_patterns(joined)))


def _patterns(joined: Iterator[ast.JoinedStr]) -> Iterator[re.Pattern[str]]:
    for node in joined:
        parts = [
            re.escape(str(part.value)) if isinstance(part, ast.Constant) else "(.+)" for part in node.values
        ]
        if re.match(r"(?:[a-z]+|\(\.\+\))\\\.", "".join(parts)):
            yield re.compile("".join(parts))


def folder_of(package: object) -> str:
    return str(Path(str(package.__file__)).parent)  # type: ignore[attr-defined]


def is_read(metric: str, folder: str) -> bool:
    return any(source.reads(metric) for source in sources(folder))


def reason(metric: str) -> str | None:
    return next((why for name, why in NOT_JUDGED.items() if fnmatchcase(metric, name)), None)


IMPORTED = sorted(
    {
        *METRICS,
        *(each.metric for counters in LOGGED.values() for each in counters.values()),
        *(each.metric for exporter in EXPORTERS for each in exporter.means.values()),
    }
)


def test_each_metric_that_is_collected_is_judged() -> None:
    """Every collected metric is used by the analysis or listed with a reason."""
    folder = folder_of(pinchpoint.analysis)
    assert [name for name in sorted(all_metrics()) if not (is_read(name, folder) or reason(name))] == []


def test_each_metric_that_is_imported_is_judged_in_a_recording() -> None:
    """Every imported metric is used by the analysis of recordings or listed with a reason."""
    folder = folder_of(pinchpoint.analysis.recordings)
    assert [name for name in IMPORTED if not (is_read(name, folder) or reason(name))] == []


@pytest.mark.parametrize("name", NOT_JUDGED)
def test_what_is_not_judged_is_there_and_is_not(name: str) -> None:
    """``NOT_JUDGED`` lists only metrics that exist and that the analysis does not use."""
    metrics = [metric for metric in all_metrics() if fnmatchcase(metric, name)]
    assert metrics
    assert not all(is_read(metric, folder_of(pinchpoint.analysis)) for metric in metrics)
