"""The order of a finished run's samples: those that are asked for together lie together.

All that have the same instance (a device, a core, a thread) follow each other, host by host, metric by
metric, so that a group of rows holds few series and can be passed over as a whole. Stamps and intervals,
which all metrics of one reading share, stay near each other and take little room.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]

NAMES = ("host", "metric", "instance")
"""The columns that name a series."""
_SORTED_BY = ("instance", "host", "metric")
_DENSE = 2**22
"""Up to so many possible codes, marking those there are is faster than sorting them."""


def with_dictionaries(samples: pa.Table) -> pa.Table:
    """The same samples, their names as dictionaries."""
    for name in NAMES:
        if not pa.types.is_dictionary(samples[name].type):
            position = samples.schema.get_field_index(name)
            samples = samples.set_column(position, name, samples[name].dictionary_encode())
    return samples


def by_series(samples: pa.Table) -> Ints:
    """The row numbers in the order of series; those of one series stay as they are.

    Args:
        samples: of ``SAMPLES_SCHEMA``, names as dictionaries, in one chunk.
    """
    ranks: dict[str, Ints] = {}
    sizes: dict[str, int] = {}
    for name in _SORTED_BY:
        column = samples[name].chunk(0)
        places = np.argsort(np.array(column.dictionary.to_pylist(), dtype=object))
        rank = np.empty(len(places), dtype=np.int64)
        rank[places] = np.arange(len(places))
        ranks[name], sizes[name] = rank[column.indices.to_numpy()], len(places)
    number, found = numbered(*_codes(ranks, sizes))
    # Sixteen bits are sorted digit by digit, several times as fast.
    small = number.astype(np.uint16) if len(found) <= np.iinfo(np.uint16).max else number
    return np.argsort(small, kind="stable")


def _codes(ranks: Mapping[str, Ints], sizes: Mapping[str, int]) -> tuple[Ints, int]:
    """(one number for the three of each row, in their order; how many there can be)."""
    codes, possible = np.zeros(1, dtype=np.int64), 1
    for name, rank in ranks.items():
        codes, possible = codes * sizes[name] + rank, possible * sizes[name]
    return codes, possible


def numbered(codes: Ints, possible: int) -> tuple[Ints, Ints]:
    """(the rank of each code among those there are; these, in ascending order).

    Args:
        codes: from 0 on, each below ``possible``.
        possible: how many different ones there can be.
    """
    if possible > _DENSE:
        found, number = np.unique(codes, return_inverse=True)
        return number, found
    there = np.zeros(possible, dtype=bool)
    there[codes] = True
    found = np.flatnonzero(there)
    rank = np.empty(possible, dtype=np.int64)  # only what is there is written, and read
    rank[found] = np.arange(len(found))
    return rank[codes], found
