"""Circular block bootstrap: resamples a time series in blocks, which keeps its autocorrelation."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt


def block_length(count: int) -> int:
    """The number of values per block: √n, at least five; counters are correlated over a few seconds only."""
    return min(count, max(5, round(math.sqrt(count))))


def block_rows(count: int, resamples: int, random: np.random.Generator) -> npt.NDArray[np.int64]:
    """The row numbers of each resample of ``count`` rows, one resample per line (Politis, Romano 1992)."""
    length = block_length(count)
    blocks = -(-count // length)
    starts = random.integers(0, count, (resamples, blocks, 1))
    rows = (starts + np.arange(length)) % count
    return rows.reshape(resamples, -1)[:, :count].astype(np.int64)
