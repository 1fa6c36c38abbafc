"""The numbers of SharePoint's crawl history, in cultures whose decimal mark is a comma."""

from __future__ import annotations

import pytest
from collectors.imports.logs import CRAWL_HISTORY

from pinchpoint_collectors.imports.crawl_log import CrawlLog
from pinchpoint_collectors.imports.record import ForeignFileError, Found, Settings


def read(text: str) -> dict[tuple[str, str], float | None]:
    samples = CrawlLog().read(text.splitlines(keepends=True), Settings(), Found())
    return {(sample.metric, sample.instance): sample.value for sample in samples}


def history(rate: str, latency: str) -> str:
    """The crawl history with other means of its first crawl."""
    return CRAWL_HISTORY.replace('"12.8","381"', f'"{rate}","{latency}"').replace('"9.9"', '"9"')


@pytest.mark.parametrize(
    ("rate", "latency", "values"),
    [
        ("12,8", "1.234,5", (12.8, 1.2345)),
        ("12,8", "0,381", (12.8, 0.000381)),
        ("12,834", "381,5", (12.834, 0.3815)),
        ("12.834", "1,234.5", (12.834, 1.2345)),
        ("1,234,567", "1234", (1_234_567.0, 1.234)),
    ],
)
def test_the_decimal_mark_of_a_crawl_history(rate: str, latency: str, values: tuple[float, float]) -> None:
    """As the whole file tells: 12,834 beside 381,5 is no 12834."""
    series = read(history(rate, latency))
    names = ("search.reported_documents_per_s", "search.repository_latency_s")
    found = [series[name, "Local SharePoint sites"] for name in names]
    assert found == [pytest.approx(value) for value in values]


def test_a_crawl_s_mean_that_could_be_either_is_refused() -> None:
    """1,234 ms or 1.234 ms: the line, and how to write it."""
    with pytest.raises(ForeignFileError, match=r"found '1,234', whose comma .*; write the numbers") as caught:
        read(history("12", "1,234"))
    assert caught.value.line == 3
