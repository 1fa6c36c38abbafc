"""Which pages are drawn: the shares are those that were asked for."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random

import pytest
from scipy.stats import chisquare

from pinchpoint_scenarios.skew import picker, zipfian_rank

PAGES, DRAWS = 1000, 50_000


def _drawn(skew: str, pages: int = PAGES, draws: int = DRAWS) -> Counter[int]:
    pick, random = picker(skew), Random(1)
    found = Counter(pick(random, pages) for _ in range(draws))
    assert set(found) <= set(range(pages))
    return found


def test_without_skew_every_page_comes_alike() -> None:
    """No page is drawn twice as often as the mean, and all are."""
    found = _drawn("none")
    assert len(found) == PAGES
    assert max(found.values()) < 2 * DRAWS / PAGES


@pytest.mark.parametrize(("skew", "share", "of_pages"), [("80/20", 0.8, 0.2), ("95/1", 0.95, 0.01)])
def test_a_hot_spot_gets_its_share(skew: str, share: float, of_pages: float) -> None:
    """The hottest pages have the share, the others share the rest alike, and hot ones are no neighbours."""
    hot = round(PAGES * of_pages)
    ranked = _drawn(skew).most_common()
    assert sum(count for _, count in ranked[:hot]) == pytest.approx(share * DRAWS, rel=0.02)
    cold = [count for _, count in ranked[hot:]]
    assert max(cold) < 3 * sum(cold) / (PAGES - hot) + 10
    pages = sorted(page for page, _ in ranked[:hot])
    assert sum(after - page == 1 for page, after in pairwise(pages)) < 0.5 * hot


def test_zipfian_falls_as_one_over_the_rank() -> None:
    """As YCSB's, to the power 0.99: the first page comes 13 % of the time, the tenth a tenth as often."""
    counts = [count for _, count in _drawn("zipfian").most_common()]
    shares = [rank**-0.99 for rank in range(1, PAGES + 1)]
    assert counts[0] / DRAWS == pytest.approx(shares[0] / sum(shares), rel=0.05)
    assert counts[9] / counts[0] == pytest.approx(shares[9], rel=0.15)
    assert sum(counts[:100]) / DRAWS == pytest.approx(sum(shares[:100]) / sum(shares), rel=0.03)


@pytest.mark.parametrize("count", [2, 5, 40])
def test_ranks_are_zipf_s(count: int) -> None:
    """Each rank as often as it should be, by chi-square at one in a thousand."""
    random, draws = Random(7), 20_000
    found = Counter(zipfian_rank(random, count) for _ in range(draws))
    shares = [rank**-0.99 for rank in range(1, count + 1)]
    wanted = [share / sum(shares) * draws for share in shares]
    assert chisquare([found[rank] for rank in range(1, count + 1)], wanted).pvalue > 0.001


@pytest.mark.parametrize("skew", ["none", "zipfian", "80/20", "99/99"])
@pytest.mark.parametrize("pages", [1, 2, 3, 7])
def test_few_pages_are_all_drawn_and_no_other(skew: str, pages: int) -> None:
    """No page is out of reach of any skew, and none beyond the table is drawn."""
    assert set(_drawn(skew, pages, 3000)) == set(range(pages))


@pytest.mark.parametrize("skew", ["", "zipf", "80", "0/20", "80/0", "100/20", "80/20/1", "-1/5"])
def test_what_is_no_skew_is_refused_with_what_is_allowed(skew: str) -> None:
    """The message shows the three forms."""
    with pytest.raises(ValueError, match=r"allowed: none, zipfian, or two percentages such as 80/20"):
        picker(skew)
