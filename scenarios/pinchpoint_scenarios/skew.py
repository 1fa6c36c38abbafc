"""Which page of a table, or which record, an operation goes to: all alike, or some far more often."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from random import Random
from typing import Annotated

from pydantic import AfterValidator

Pick = Callable[[Random, int], int]
"""Draws one of ``pages`` pages, counted from 0."""

EVEN = "none"
ZIPFIAN = "zipfian"
_HOT = re.compile(r"(\d{1,2})/(\d{1,2})")
_SCATTER = 2_654_435_761
"""A prime above any number of pages: multiplying by it, modulo the pages, visits each page once."""


def picker(skew: str) -> Pick:
    """How pages are drawn.

    Args:
        skew: ``none``; ``zipfian``: by ``zipfian_rank``; ``80/20``: 80 % of the operations go to 20 % of the
            pages. Hot pages lie scattered over the table, for neighbours would be read in one go.

    Raises:
        ValueError: naming what is allowed.
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
    """A rank from 1 to ``count``: k in proportion to log(1 + 1/k), which is 1/k but for the first few."""
    # The distribution's inverse: P(rank <= k) = ln(k + 1) / ln(count + 1).
    return min(int(math.exp(random.random() * math.log(count + 1))), count)


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
"""A field that takes what ``picker`` takes."""
