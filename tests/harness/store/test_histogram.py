"""Stored histograms: the library's text, and sums without loss."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram

from pinchpoint.base.errors import InputError
from pinchpoint.store import histogram

HOUR_NS = 3600 * 10**9


def by_the_library(times_ns: list[int]) -> HdrHistogram:
    made = HdrHistogram(1, 3_600_000_000, 3)
    for spent in times_ns:
        made.record_value(min(max((spent + 500) // 1000, 1), 3_600_000_000))
    return made


@pytest.mark.parametrize("seed", range(5))
def test_the_text_is_the_librarys_own(seed: int) -> None:
    """The text equals the library's byte for byte over the whole range of times."""
    draw = random.Random(seed)
    times_ns = [0, 1, 499, 500, 1499, 1500, HOUR_NS - 1, HOUR_NS, HOUR_NS + 1, 100 * HOUR_NS]
    times_ns += [max(0, (1 << bits) * 1000 + by) for bits in range(32) for by in (-1000, -500, 0, 1000)]
    times_ns += [round(10 ** draw.uniform(2, 12.6)) for _ in range(500)]
    expected = by_the_library(times_ns)
    text = histogram.encoded(histogram.counted(np.array(times_ns)))
    assert text == expected.encode().decode()
    assert HdrHistogram.decode(text).get_total_count() == len(times_ns)


def test_one_time_is_a_histogram_too() -> None:
    """A single time is a valid histogram."""
    text = histogram.encoded(histogram.counted(np.array([1])))
    assert text == by_the_library([1]).encode().decode()
    assert histogram.summed([text]).tolist() == [0, 1]


def test_merging_is_adding() -> None:
    """Merging adds histograms of different lengths, and missing ones count as empty."""
    draw = random.Random(1)
    parts = [[round(10 ** draw.uniform(3, top)) for _ in range(200)] for top in (5, 9, 7)]
    texts = [histogram.encoded(histogram.counted(np.array(part))) for part in parts]
    whole = by_the_library([spent for part in parts for spent in part])
    assert histogram.merged([texts[0], None, texts[1], texts[2]]) == whole.encode().decode()
    assert histogram.merged([None, texts[0]]) == texts[0]
    assert histogram.merged([None]) is None
    assert histogram.merged([]) is None


@pytest.mark.parametrize("text", ["HISTgarbage", "SElTVA==", "not base64 at all!"])
def test_what_is_no_histogram_is_bad_input(text: str) -> None:
    """A text that is no histogram is bad input with file and column, without a traceback."""
    with pytest.raises(
        InputError, match=r"operations\.parquet: service, response: holds what is no histogram"
    ):
        histogram.entries([text])
