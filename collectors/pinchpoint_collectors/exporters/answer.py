"""Prometheus' answers, taken apart (its documentation, "HTTP API"). Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.exporters.means import Points, Series
from pinchpoint_collectors.imports import numerals

_LATEST_S = 1e10


def data_of(content: object) -> dict[str, Any]:
    """What an answer holds. Raises ``CollectorError`` with what the server says where it is an error."""
    if not isinstance(content, dict) or content.get("status") != "success":
        why = content.get("error") if isinstance(content, dict) else None
        raise CollectorError(f"it is no answer but an error of Prometheus: {why or 'status is not success'}")
    data = content.get("data")
    return data if isinstance(data, dict) else {}


def partial(content: object) -> str | None:
    """Why an answer may lack series that are there, in the server's words; None where it is whole.

    ``warnings`` of Prometheus, Thanos and Mimir, which ask others; ``isPartial`` of VictoriaMetrics.
    """
    if not isinstance(content, dict):
        return None
    said = content.get("warnings")
    if isinstance(said, list) and said:
        return "; ".join(map(str, said[:3]))
    return "isPartial" if content.get("isPartial") is True else None


def matrix(content: object) -> Iterator[Series]:
    """The series of an answer to a query with a range. Raises ``CollectorError``."""
    data = data_of(content)
    kind = data.get("resultType")
    if kind != "matrix":
        raise CollectorError(
            f"found resultType {kind!r}; allowed: matrix: ask for a range, ...[1h] or query_range"
        )
    for labels, result in _results(data):
        yield labels, _points(result.get("values") or ())


def vector(content: object) -> Iterator[tuple[dict[str, str], float]]:
    """(labels, value) of an answer to a query without a range. Raises ``CollectorError``."""
    for labels, result in _results(data_of(content)):
        for value in _points([result.get("value") or ()]).values():
            yield labels, value


def _results(data: dict[str, Any]) -> Iterator[tuple[dict[str, str], dict[str, Any]]]:
    results = data.get("result")
    for result in results if isinstance(results, list) else ():
        labels = result.get("metric") if isinstance(result, dict) else None
        if not isinstance(labels, dict) or not all(isinstance(label, str) for label in labels.values()):
            raise CollectorError(f"found a series without its labels: {str(result)[:60]!r}")
        yield labels, result


def _points(values: Iterable[Any]) -> Points:
    try:
        points = {_number(time_s): _number(value) for time_s, value in values}
    except (TypeError, ValueError, OverflowError) as error:
        raise CollectorError(f"found a value that is no [time, number]: {error}") from error
    if not all(0 < time_s < _LATEST_S for time_s in points):
        raise CollectorError("found a time that is none in seconds since 1970")
    return {time_s: value for time_s, value in points.items() if math.isfinite(value)}


_WORDS = {"NaN": math.nan, "+Inf": math.inf, "-Inf": -math.inf, "Inf": math.inf}
"""What Prometheus writes of a value that is no number."""


def _number(given: Any) -> float:
    """A value as Prometheus writes it. Raises ``ValueError`` or ``TypeError`` for what is none."""
    if isinstance(given, str):
        return _WORDS[given] if given in _WORDS else numerals.strict(given)
    if isinstance(given, bool):
        raise TypeError("a truth value")
    return float(given)
