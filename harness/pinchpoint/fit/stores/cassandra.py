"""What a production Cassandra's node does with its rows, from outputs of ``nodetool tablestats``."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pinchpoint.base.errors import InputError
from pinchpoint.fit.figures import Figure, plain
from pinchpoint.fit.snapshots import seconds
from pinchpoint.fit.stores.record import Store, Stretch
from pinchpoint.fit.tables import CAPTURED

EXPORT = "{ date -u '+captured_at: %FT%TZ'; nodetool tablestats KEYSPACE; } > before.txt"
_READS, _WRITES = "Local read count", "Local write count"
_PARTITIONS, _PARTITION_BYTES = "Number of partitions (estimate)", "Compacted partition mean bytes"
_WANTED = (_READS, _WRITES, _PARTITIONS, _PARTITION_BYTES)
_LINE = re.compile(r"\s*([^:]+?)\s*:\s*(.*?)\s*")
_ROW_BYTES = 30
"""Of a row on the disk, beside its values: its key, its time, its flags (about)."""

_ALWAYS = (
    (
        "counted on one node, a write once for each copy it keeps: times the nodes, ÷ the copies is the "
        "cluster's"
    ),
    "new rows, ttl, bytes of the commit log and its durability, tablestats does not tell",
)


@dataclass(frozen=True, slots=True)
class TableStats:
    """One output of ``nodetool tablestats``.

    Attributes:
        at_s: when it was taken, UTC seconds.
        tables: ``keyspace.table`` -> its figures, of users' tables.
    """

    at_s: float
    tables: Mapping[str, Mapping[str, float]]


Pair = tuple[TableStats, TableStats]


def is_tablestats(text: str) -> bool:
    """Whether a text is what ``nodetool tablestats`` prints."""
    return re.search(r"^\s*Keyspace\s*:", text, re.MULTILINE) is not None and _WRITES in text


def read_tablestats(text: str, path: Path) -> list[TableStats]:
    """All outputs in a text, each behind the time it was taken.

    Raises:
        InputError: it does not say when it was taken, or a figure is none.
    """
    found: list[TableStats] = []
    tables: dict[str, dict[str, float]] = {}
    keyspace, table = "", ""
    for number, line in enumerate(text.splitlines(), 1):
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        name, value = match.groups()
        if name == CAPTURED:
            tables = {}
            found.append(TableStats(seconds(value, f"{path}:{number}: {CAPTURED}"), tables))
        elif not found and name in ("Keyspace", *_WANTED):
            raise InputError(
                f"{path}:{number}: nothing says when it was taken; needed as its first line: {CAPTURED}: "
                f"2026-11-20T09:00:00Z, as from {EXPORT}"
            )
        elif name == "Keyspace":
            keyspace, table = value, ""
        elif name.startswith("Table"):
            table = f"{keyspace}.{value}"
        elif name in _WANTED and table and not keyspace.startswith("system"):
            tables.setdefault(table, {})[name] = _number(value, f"{path}:{number}: {name}")
    return found


def _number(text: str, place: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise InputError(f"{place}: found {text!r}; allowed: a number, as nodetool writes it") from error


def store(outputs: Sequence[TableStats], names: str) -> Store:
    """What several outputs of one node tell together.

    Args:
        outputs: as ``nodetool tablestats`` gives them.
        names: where they come from, for people.

    Raises:
        InputError: there is one only, a node was restarted between all of them, or nothing happened.
    """
    ordered = sorted(outputs, key=lambda output: output.at_s)
    if len(ordered) < 2:
        raise InputError(
            f"{names}: 1 output of tablestats; needed: two, of before and after a busy time: {EXPORT}"
        )
    found = [(pair, stretch) for pair in itertools.pairwise(ordered) if (stretch := _stretch(*pair))]
    stretches = [stretch for _, stretch in found]
    if not stretches:
        raise InputError(
            f"{names}: counters went back between all of them: the node was restarted, or they are of "
            f"several nodes; take two of one node: {EXPORT}"
        )
    if not any(stretch.operations for stretch in stretches):
        raise InputError(f"{names}: no row was read or written between them; take them around a busy time")
    left = len(ordered) - 1 - len(stretches)
    notes = [f"{names}: {left} stretches were left out: the node was restarted in them"] if left else []
    return Store(
        family="cassandra",
        product="Cassandra",
        source=names,
        stretches=stretches,
        sizes=list(_sizes([pair for pair, _ in found], names)),
        keys=_keys(ordered[-1], names),
        notes=[*notes, *(f"{names}: {sentence}" for sentence in _ALWAYS)],
    )


def _stretch(before: TableStats, after: TableStats) -> Stretch | None:
    """None where a counter went back."""
    grown = dict.fromkeys((_READS, _WRITES), 0.0)
    for table, figures in after.tables.items():
        for name in grown:
            added = figures.get(name, 0.0) - before.tables.get(table, {}).get(name, 0.0)
            if added < 0:
                return None
            grown[name] += added
    if after.at_s <= before.at_s:
        return None
    return Stretch(before.at_s, after.at_s, sum(grown.values()), reads=grown[_READS], writes=grown[_WRITES])


def _sizes(pairs: Sequence[Pair], names: str) -> Iterator[Figure]:
    """The bytes of a partition, each table by how much is written to it.

    Args:
        pairs: outputs between which no counter went back, in the order of time.
        names: where they come from, for people.
    """
    weights: dict[str, float] = {}
    for before, after in pairs:
        for table, figures in after.tables.items():
            written = figures.get(_WRITES, 0.0) - before.tables.get(table, {}).get(_WRITES, 0.0)
            weights[table] = weights.get(table, 0.0) + written
    sizes = {table: figures.get(_PARTITION_BYTES, 0.0) for table, figures in pairs[-1][1].tables.items()}
    total = sum(weights[table] for table, size in sizes.items() if size)
    if total > 0:
        mean = sum(size * weights[table] for table, size in sizes.items()) / total
        yield Figure(
            mean - _ROW_BYTES,
            f"{names}: partitions of {plain(mean)} bytes on average, taken for one row each",
        )


def _keys(output: TableStats, names: str) -> Figure | None:
    total = sum(figures.get(_PARTITIONS, 0.0) for figures in output.tables.values())
    return Figure(total, f"{names}: partitions, as the node estimates them") if total else None
