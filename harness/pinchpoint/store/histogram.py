"""HdrHistograms as they are stored: V2, base64; microseconds, three significant digits, 1 µs to 1 h.

The library counts values one by one and allots 188 KB for each histogram; a long run has hundreds of
thousands. Here the same counters are filled and added as arrays, as many as are in use; the library still
does the encoding, so every HdrHistogram reader understands the text.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from hdrh.codec import HdrPayload, decode, get_compression_cookie, payload_header_size
from hdrh.histogram import HdrHistogram

LOWEST_US = 1
HIGHEST_US = 3_600_000_000  # an hour
DIGITS = 3

Counts = npt.NDArray[np.int64]
"""The counters of a histogram, from its first to at least its last that is not 0."""

_EMPTY = HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS)
_COUNTERS: int = _EMPTY.counts_len
_HALF: int = _EMPTY.sub_bucket_half_count  # so many counters for each doubling of the values
_HALF_BITS: int = _EMPTY.sub_bucket_half_count_magnitude
_WORD_BYTES: int = _EMPTY.word_size
_HEADER = struct.Struct(">II")  # cookie, length of what follows


def counted(times_ns: npt.NDArray[np.int64]) -> Counts:
    """Count times in nanoseconds; those outside 1 µs to 1 h are held at the ends."""
    microseconds = np.clip((times_ns + 500) // 1000, LOWEST_US, HIGHEST_US)
    # frexp's exponent is the number of bits; values of up to 11 bits have a counter each.
    doubling = np.maximum(np.frexp(microseconds)[1].astype(np.int64) - _HALF_BITS - 1, 0)
    return np.bincount(doubling * _HALF + (microseconds >> doubling))


def values_us(counters: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(the lowest value that each of these counters stands for, how many values it stands for)."""
    doubling = np.maximum(counters // _HALF - 1, 0)
    return (counters - doubling * _HALF) << doubling, 1 << doubling


def encoded(counts: Counts) -> str:
    """The counters as text; the last of them must not be 0."""
    length = len(counts)
    holder: Any = HdrPayload(_WORD_BYTES, length)
    np.frombuffer(holder.counts, dtype=np.int64)[:] = counts
    about = holder.payload
    about.normalizing_index_offset = 0
    about.conversion_ratio_bits = 1
    about.significant_figures = DIGITS
    about.lowest_trackable_value = LOWEST_US
    about.highest_trackable_value = HIGHEST_US
    compressed: bytes = holder.compress(length)
    return base64.b64encode(_HEADER.pack(get_compression_cookie(), len(compressed)) + compressed).decode()


def summed(texts: Iterable[str]) -> Counts:
    """The counters of texts that ``encoded`` gave, added up."""
    # All in the same two arrays: 200 KB anew for each text cost more time than the text itself.
    total, one = np.zeros(_COUNTERS, dtype=np.int64), np.zeros(_COUNTERS, dtype=np.int64)
    length = 0
    for text in texts:
        payload = zlib.decompress(base64.b64decode(text)[_HEADER.size :])
        found = decode(payload, payload_header_size, one.ctypes.data, _COUNTERS, _WORD_BYTES)
        used = slice(found["min_nonzero_index"], found["max_nonzero_index"] + 1)
        total[used] += one[used]
        one[used] = 0
        length = max(length, used.stop)
    return total[:length]


def merged(texts: Iterable[str | None]) -> str | None:
    """The sum of encoded histograms; None where there is none."""
    given = [text for text in texts if text is not None]
    if len(given) <= 1:
        return given[0] if given else None
    return encoded(summed(given))
