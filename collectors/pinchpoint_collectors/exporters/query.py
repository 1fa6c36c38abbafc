"""Builds queries for Prometheus and parses its answers (its documentation, "HTTP API"). Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pinchpoint_collectors.common import numerals
from pinchpoint_collectors.errors import CollectorError, OptionError
from pinchpoint_collectors.exporters.means import NAME, Labels, Points, Series
from pinchpoint_collectors.record import Watch

_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPECIAL = re.compile(r"([\\.+*?()|\[\]{}^$])")
_PORT = re.compile(r":\d+$")
_DURATION = re.compile(r"(\d+)(ms|[smhdwy])")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0, "y": 31536000.0}


@dataclass(frozen=True, slots=True)
class ExporterTarget:
    """An exporter as Prometheus scrapes it; None: the series do not report it."""

    job: str | None
    instance: str | None

    @classmethod
    def of(cls, labels: Mapping[str, str]) -> ExporterTarget:
        """Return the exporter, from the labels that its series have in common."""
        return cls(labels.get("job"), labels.get("instance"))

    def __str__(self) -> str:
        return f"{self.instance or 'the exporter'} (job {self.job})" if self.job else str(self.instance)


def only_target(where: str, value: Iterable[Labels]) -> ExporterTarget:
    """Return the exporter of these series. Raises ``CollectorError`` if there are several."""
    targets = sorted({ExporterTarget.of(labels) for labels in value}, key=str)
    if len(targets) > 1:
        shown = "; ".join(map(str, targets[:5]))
        raise CollectorError(
            f"{where}: several exporters fit: {shown}; say which with `instance:`, or `labels: {{job: ...}}`"
        )
    return targets[0]


def matchers(watch: Watch, where: str) -> str:
    """Return PromQL matchers that select the series of the host. Raises ``OptionError``."""
    labels = watch.options.get("labels", {})
    if not isinstance(labels, Mapping) or not all(_LABEL.fullmatch(str(name)) for name in labels):
        text = f"found {labels!r}; allowed: names and values, as {{job: node}}"
        raise OptionError("labels", text, where)
    result = [f"{name}={_quoted(str(value))}" for name, value in labels.items()]
    if "instance" in watch.options or not labels:
        result.append(_instance(str(watch.options.get("instance", watch.host))))
    return ",".join(result)


def selector(names: Iterable[str], of: str) -> str:
    """Return a selector for the series of these names that ``matchers`` select."""
    return f'{{{NAME}=~"{"|".join(sorted(names))}",{of}}}'


def duration_s(text: str) -> float | None:
    """Return ``1m30s`` in seconds; None if the text is no Prometheus duration."""
    if not text or _DURATION.sub("", text):
        return None
    return sum(int(number) * _SECONDS[unit] for number, unit in _DURATION.findall(text))


def shown(watch: Watch) -> str:
    """Return the address of the server without a login."""
    scheme, separator, rest = str(watch.options.get("url", "")).partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"


def _instance(given: str) -> str:
    """Return a matcher of an instance with its port, or, if it has none, with any port."""
    if _PORT.search(given):
        return f"instance={_quoted(given)}"
    escaped = _SPECIAL.sub(r"\\\1", given)
    return f"instance=~{_quoted(f'{escaped}(:[0-9]+)?')}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


_LATEST_S = 1e10


def data_of(content: object) -> dict[str, Any]:
    """Return the content of an answer. Raises ``CollectorError`` with the server's message for an error."""
    if not isinstance(content, dict) or content.get("status") != "success":
        why = content.get("error") if isinstance(content, dict) else None
        raise CollectorError(f"it is no answer but an error of Prometheus: {why or 'status is not success'}")
    data = content.get("data")
    return data if isinstance(data, dict) else {}


def partial(content: object) -> str | None:
    """Return why an answer may lack existing series, in the server's words; None if it is complete.

    The sources are ``warnings`` of Prometheus, Thanos and Mimir, which query other servers, and ``isPartial``
    of VictoriaMetrics.
    """
    if not isinstance(content, dict):
        return None
    answer = content.get("warnings")
    if isinstance(answer, list) and answer:
        return "; ".join(map(str, answer[:3]))
    return "isPartial" if content.get("isPartial") is True else None


def matrix(content: object) -> Iterator[Series]:
    """Return the series in an answer to a query with a range. Raises ``CollectorError``."""
    data = data_of(content)
    kind = data.get("resultType")
    if kind != "matrix":
        raise CollectorError(
            f"found resultType {kind!r}; allowed: matrix: ask for a range, ...[1h] or query_range"
        )
    for labels, result in _results(data):
        yield labels, _points(result.get("values") or ())


def vector(content: object) -> Iterator[tuple[dict[str, str], float]]:
    """Return labels and value in an answer to a query without a range. Raises ``CollectorError``."""
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
    points: dict[float, float] = {}
    try:
        for given_s, given in values:
            time_s, value = _number(given_s), _number(given)
            if not 0 < time_s < _LATEST_S:
                raise CollectorError("found a time that is none in seconds since 1970")
            if math.isfinite(value):
                points[time_s] = value
    except (TypeError, ValueError, OverflowError) as error:
        raise CollectorError(f"found a value that is no [time, number]: {error}") from error
    return points


_WORDS = {"NaN": math.nan, "+Inf": math.inf, "-Inf": -math.inf, "Inf": math.inf}
"""Words of Prometheus for values that are not numbers."""


def _number(given: Any) -> float:
    """Return a value of a Prometheus answer. Raises ``ValueError`` or ``TypeError`` if it is no value."""
    if isinstance(given, str):
        return _WORDS[given] if given in _WORDS else numerals.strict(given)
    if isinstance(given, bool):
        raise TypeError("a truth value")
    return float(given)
