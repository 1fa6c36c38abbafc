"""Chooses the page or record of an operation: with equal probability, or some far more often."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from random import Random
from typing import Annotated

from pydantic import AfterValidator

Pick = Callable[[Random, int], int]
"""Draws a page from 0 to ``pages`` - 1."""

EVEN = "none"
ZIPFIAN = "zipfian"
_HOT = re.compile(r"(\d{1,2})/(\d{1,2})")
_SCATTER = 2_654_435_761
"""A prime above any number of pages. Multiplying by it, modulo the pages, visits each page once."""


def picker(skew: str) -> Pick:
    """Return a function that draws pages.

    Args:
        skew: ``none``; ``zipfian``: by ``zipfian_rank``; ``80/20``: 80 % of the operations use 20 % of the
            pages. Hot pages are scattered over the table, because adjacent ones would be read in one I/O.

    Raises:
        ValueError: names the allowed values.
    """
    if skew == EVEN:
        return _even
    if skew == ZIPFIAN:
        return _zipfian
    hot = _HOT.fullmatch(skew)
    if hot and (shares := (int(hot[1]), int(hot[2])))[0] > 0 < shares[1]:
        return _hot_spot(shares[0] / 100, shares[1] / 100)
    raise ValueError(
        f"{skew!r} is no skew; allowed: {EVEN}, {ZIPFIAN}, or two percentages such as 80/20 "
        "(80 % of the operations go to 20 % of the pages)"
    )


def _even(random: Random, pages: int) -> int:
    return int(random.random() * pages)


def zipfian_rank(random: Random, count: int) -> int:
    """Return a rank from 1 to ``count``, where k has a probability in proportion to 1/k^0.99, as in YCSB.

    The method is rejection-inversion (Hörmann and Derflinger, ACM TOMACS 6, 1996), which is exact and needs
    no table per count. The count may increase all the time.
    """
    last = _area(count + 0.5)
    while True:
        area = last + random.random() * (_FIRST - last)
        place = _place(area)
        rank = min(max(int(place + 0.5), 1), count)
        if rank - place <= _NEAR or area >= _area(rank + 0.5) - rank**-_EXPONENT:
            return rank


def _area(place: float) -> float:
    """Return the area below the curve 1/x^0.99 from 1 to a place."""
    return float(place ** (1 - _EXPONENT) - 1) / (1 - _EXPONENT)


def _place(area: float) -> float:
    """Return the place with an area: the inverse of ``_area``."""
    return float((1 + area * (1 - _EXPONENT)) ** (1 / (1 - _EXPONENT)))


_EXPONENT = 0.99
_FIRST = _area(1.5) - 1
_NEAR = 2 - _place(_area(2.5) - 2**-_EXPONENT)
"""A draw within this distance of a rank is never rejected, so the share of the rank need not be
calculated."""


def _zipfian(random: Random, pages: int) -> int:
    return zipfian_rank(random, pages) * _SCATTER % pages


def _hot_spot(share: float, of_pages: float) -> Pick:
    def pick(random: Random, pages: int) -> int:
        hot = math.ceil(pages * of_pages)
        if random.random() < share or hot == pages:
            return int(random.random() * hot) * _SCATTER % pages
        return (hot + int(random.random() * (pages - hot))) * _SCATTER % pages

    return pick


def _known(skew: str) -> str:
    picker(skew)
    return skew


Skew = Annotated[str, AfterValidator(_known)]
"""A field with the values of ``picker``."""
