"""Encodes, decodes and adds HdrHistograms: V2, base64; microseconds, three significant digits, 1 µs to 1 h.

The library counts values one by one and allocates 188 KB for each histogram; a long run has hundreds of
thousands. This module fills and adds only the used counters, as arrays. The library still encodes the text,
so every HdrHistogram reader understands it.
"""

from __future__ import annotations

import base64
import struct
import zlib
from binascii import a2b_base64
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from hdrh.codec import HdrPayload, get_compression_cookie, payload_header_size
from hdrh.histogram import HdrHistogram

from pinchpoint.base.errors import InputError
from pinchpoint.store.schema import OPERATIONS

LOWEST_US = 1
HIGHEST_US = 3_600_000_000  # one hour
DIGITS = 3

Ints = npt.NDArray[np.int64]
Counts = Ints
"""The counters of a histogram, from the first counter to at least the last that is not 0."""

_EMPTY = HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS)
_COUNTERS: int = _EMPTY.counts_len
_HALF: int = _EMPTY.sub_bucket_half_count  # number of counters for each doubling of the values
_HALF_BITS: int = _EMPTY.sub_bucket_half_count_magnitude
_WORD_BYTES: int = _EMPTY.word_size
_MORE = 128
_TEXTS = 250  # texts decoded together: the arrays of a batch fit into a processor's caches
_THREADS = 2
_HEADER = struct.Struct(">II")  # cookie, length of the rest
_LENGTH = slice(4, 8)  # place of the counters' length in the payload's header
_LONGEST_PAYLOAD = payload_header_size + 9 * _COUNTERS


def counted(times_ns: npt.NDArray[np.int64]) -> Counts:
    """The counters of times in nanoseconds; times outside 1 µs to 1 h count as 1 µs or 1 h."""
    microseconds = np.clip((times_ns + 500) // 1000, LOWEST_US, HIGHEST_US)
    # The exponent of frexp is the number of bits; values of up to 11 bits have a counter each.
    doubling = np.maximum(np.frexp(microseconds)[1].astype(np.int64) - _HALF_BITS - 1, 0)
    return np.bincount(doubling * _HALF + (microseconds >> doubling))


def values_us(counters: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(lowest value of each counter, number of values that each counter covers); values in microseconds."""
    doubling = np.maximum(counters // _HALF - 1, 0)
    return (counters - doubling * _HALF) << doubling, 1 << doubling


def encoded(counts: Counts) -> str:
    """The counters as text; the last counter must not be 0."""
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


_ABOUT = zlib.decompress(base64.b64decode(encoded(np.ones(1, np.int64)))[_HEADER.size :])[
    :payload_header_size
]
"""The header of every histogram that this module writes, without the length of the counters."""


def checked_count(text: str) -> int:
    """The number of values in a histogram text from another machine, which is not trusted.

    Raises:
        ValueError: the text is not in the form that ``encoded`` writes.
    """
    data = base64.b64decode(text, validate=True)
    reader = zlib.decompressobj()
    try:
        payload = reader.decompress(data[_HEADER.size :], _LONGEST_PAYLOAD)
    except zlib.error as error:
        raise ValueError("holds what is no histogram") from error
    about, numbers = payload[:payload_header_size], payload[payload_header_size:]
    length = struct.pack(">I", len(numbers))
    expected = _ABOUT[: _LENGTH.start] + length + _ABOUT[_LENGTH.stop :]
    if not reader.eof or reader.unused_data or len(data) < _HEADER.size or about != expected:
        raise ValueError("holds what is no histogram")
    counter = total = number = shift = 0
    for byte in numbers:
        number |= (byte & (_MORE - 1)) << shift
        shift += 7
        if byte >= _MORE:
            if shift > 63:
                raise ValueError("holds a count beyond all bounds")
            continue
        value = (number >> 1) ^ -(number & 1)
        counter += max(-value, 1)
        total += max(value, 0)
        number = shift = 0
    if shift or counter > _COUNTERS:
        raise ValueError("holds more counters than a histogram has, or half of one")
    return total


def summed(texts: Iterable[str]) -> Counts:
    """The sum of the counters of texts from ``encoded``."""
    _, counters, counts = entries(texts)
    # Counts up to 2^53 are exact as floats.
    return np.bincount(counters, counts).astype(np.int64)


Entries: TypeAlias = tuple[Ints, npt.NDArray[np.uint16], npt.NDArray[np.unsignedinteger[Any]]]


def entries(texts: Iterable[str]) -> Entries:
    """(offset of each text's counters, index of each counter that is not 0, its count), of all texts.

    The offsets end with the total number of counters. A text of a thousand operations has some hundreds of
    counters, so counts use the smallest number type that holds the largest count.
    """
    lengths, counters, counts = [np.zeros(1, np.int64)], [np.empty(0, np.uint16)], [np.empty(0, np.uint8)]
    for length, counter, count in _all_decoded(list(texts)):
        lengths.append(length)
        counters.append(counter)
        counts.append(count)
    return np.cumsum(np.concatenate(lengths)), np.concatenate(counters), np.concatenate(counts)


def _all_decoded(texts: Sequence[str]) -> Iterator[Entries]:
    """Decode texts in batches of ``_TEXTS``, in two threads: most of the work releases Python's lock."""
    some = [texts[first : first + _TEXTS] for first in range(0, len(texts), _TEXTS)]
    if len(some) <= 1:
        yield from map(_decoded, some)
        return
    with ThreadPoolExecutor(_THREADS) as pool:
        yield from pool.map(_decoded, some)


def _decoded(texts: Sequence[str]) -> Entries:
    """(number of counters that are not 0 in each text, index of each such counter, its count), of all texts.

    The payload of a text is a row of numbers in ZigZag LEB128: seven bits a byte, the lowest first; the
    eighth bit says that more bytes follow. A positive number is the count of the next counter, -n means that
    the next n counters are 0, and 0 means that one counter is 0 (HdrHistogram V2). The library decodes one
    text at a time into all 23,552 counters, which is slower.
    """
    try:
        payloads = [zlib.decompress(a2b_base64(text)[_HEADER.size :])[payload_header_size:] for text in texts]
    except (ValueError, zlib.error) as error:
        raise InputError(
            f"{OPERATIONS}: service, response: holds what is no histogram: {error}; this is not as "
            "Pinchpoint wrote it: copy the run directory anew"
        ) from error
    data = np.frombuffer(b"".join(payloads), dtype=np.uint8)
    # Nearly all numbers have one byte, so a byte array is enough; the few longer numbers are handled apart.
    more = np.flatnonzero(data >= _MORE)
    last = data[data < _MORE]
    where, longer = _longer(data[more], more - np.arange(len(more)), last)
    number = _signed(last).view(np.int8)
    number[where] = np.sign(longer)
    steps = np.maximum(-number, 1).astype(np.int32)
    steps[where] = np.maximum(-longer, 1)
    counter = np.cumsum(steps, dtype=np.int32)
    counter -= steps
    used = np.flatnonzero(number > 0)
    count = number[used].astype(np.int64)
    positive = longer > 0
    count[np.searchsorted(used, where[positive])] = longer[positive]
    # The index of the counters starts at 0 in each text.
    ends = np.cumsum([0, *map(len, payloads)])
    begins = ends - np.searchsorted(more, ends)
    lengths = np.diff(np.searchsorted(used, begins))
    first = counter[np.minimum(begins[:-1], len(counter) - 1)]
    counter = counter[used] - np.repeat(first, lengths)
    return lengths, counter.astype(np.uint16), count.astype(np.min_scalar_type(count.max(initial=0)))


def _longer(more: npt.NDArray[np.uint8], of: Ints, last: npt.NDArray[np.uint8]) -> tuple[Ints, Ints]:
    """(position among all numbers, value) of the numbers with more than one byte.

    Args:
        more: all bytes of these numbers except the last byte of each.
        of: the position of the number to which each byte of ``more`` belongs.
        last: the last byte of every number.
    """
    begins = np.flatnonzero(np.diff(of, prepend=-1))
    if not len(begins):
        return begins, begins
    where, lengths = of[begins], np.diff(begins, append=len(of))
    place = np.arange(len(of)) - np.repeat(begins, lengths)
    low = np.bitwise_or.reduceat((more & (_MORE - 1)).astype(np.int64) << 7 * place, begins)
    return where, _signed(low | last[where].astype(np.int64) << 7 * lengths)


def _signed(number: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Decode ZigZag: 0, 1, 2, 3, 4 stand for 0, -1, 1, -2, 2."""
    return (number >> 1) ^ -(number & 1)


def merged(texts: Iterable[str | None]) -> str | None:
    """The sum of encoded histograms as text; None if there is no histogram."""
    given = [text for text in texts if text is not None]
    if len(given) <= 1:
        return given[0] if given else None
    return encoded(summed(given))
