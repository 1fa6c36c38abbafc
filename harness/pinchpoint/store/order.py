"""Orders a finished run's samples so that samples that are read together are adjacent.

Readers need all metrics of one disk, or one metric of all other instances. So disks are stored by device, and
the rest by metric. A group of rows then has few series and can be skipped as a whole. Times and intervals are
the same for all series of one reading; they stay adjacent and compress well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]

NAMES = ("host", "metric", "instance")
"""The columns that identify a series."""
_DISKS = "disk."
_DENSE = 2**22
"""The highest number of possible codes for which marking the used codes is faster than sorting."""


def with_dictionaries(samples: pa.Table) -> pa.Table:
    """The samples with their names as dictionaries."""
    for name in NAMES:
        if not pa.types.is_dictionary(samples[name].type):
            position = samples.schema.get_field_index(name)
            samples = samples.set_column(position, name, samples[name].dictionary_encode())
    return samples


def by_series(samples: pa.Table, most_rows: int) -> Iterator[Ints]:
    """The row numbers sorted by series, in groups; rows of one series keep their order.

    A group of at least half of ``most_rows`` ends where the disk or the metric changes.

    Args:
        samples: table of ``SAMPLES_SCHEMA`` in one chunk; names are dictionaries.
        most_rows: the highest number of rows in a group.
    """
    host, metric, instance = (_ranked(samples[name].chunk(0)) for name in NAMES)
    metrics = samples["metric"].chunk(0).dictionary.to_pylist()
    of_disks = np.array([name.startswith(_DISKS) for name in metrics])[samples["metric"].chunk(0).indices]
    first = np.where(of_disks, metric.size + instance.rank, metric.rank)
    codes = first.astype(np.int64)
    for of_disk, of_others in ((host, instance), (metric, host)):
        codes *= max(of_disk.size, of_others.size)
        codes += np.where(of_disks, of_disk.rank, of_others.rank)
    possible = (metric.size + instance.size) * max(host.size, instance.size) * max(metric.size, host.size)
    number, result = numbered(codes, possible)
    # Numpy sorts 16-bit numbers digit by digit, which is several times as fast.
    small = number.astype(np.uint16) if len(result) <= np.iinfo(np.uint16).max else number
    order = np.argsort(small, kind="stable")
    begin = 0
    for end in [*(np.flatnonzero(np.diff(first[order])) + 1).tolist(), len(order)]:
        if end - begin >= most_rows / 2 or end == len(order):
            yield from np.array_split(order[begin:end], math.ceil((end - begin) / most_rows))
            begin = end


class _Ranks(NamedTuple):
    """The rank of each row's name among all names, and the number of names."""

    rank: npt.NDArray[np.int32]
    size: int


def _ranked(column: pa.DictionaryArray) -> _Ranks:
    names = column.dictionary.to_pylist()
    rank = np.empty(len(names), dtype=np.int32)
    rank[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    return _Ranks(rank[column.indices.to_numpy()], len(names))


def numbered(codes: Ints, possible: int) -> tuple[Ints, Ints]:
    """(rank of each code among the used codes, the used codes in ascending order).

    Args:
        codes: whole numbers from 0, each below ``possible``.
        possible: the number of different codes that could occur.
    """
    if possible > _DENSE:
        result, number = np.unique(codes, return_inverse=True)
        return number, result
    there = np.zeros(possible, dtype=bool)
    there[codes] = True
    result = np.flatnonzero(there)
    rank = np.empty(possible, dtype=np.int64)  # only elements of used codes are written and read
    rank[result] = np.arange(len(result))
    return rank[codes], result
