"""Measures once a second how long my_app takes to answer."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Collector, Sample, Watch

TIMEOUT_S = 0.8  # readings are made once a second


class MyAppKind:
    """Defines the collector kind ``my_app`` of farm.yaml. Its option is ``url``."""

    name = "my_app"
    options = frozenset({"url"})
    public = frozenset({"url"})  # the values of all other options are never shown

    def machine(self, watch: Watch) -> str:
        """Return a key: watches with the same key share one reading."""
        return str(watch.options.get("url"))

    def connect(self, watches: Sequence[Watch]) -> Collector:
        """Return a collector for all watches of one URL."""
        url = watches[0].options.get("url")
        if not isinstance(url, str) or not url.startswith(("http://", "https://")):
            raise CollectorError(f"my_app: url: found {url!r}; allowed: http://HOST or https://HOST")
        return MyAppCollector(url, [watch.host for watch in watches])


class MyAppCollector:
    """Requests the URL and measures the response time."""

    def __init__(self, url: str, hosts: Sequence[str]) -> None:
        self._url, self._hosts = url, hosts
        self._last_ns = time.time_ns()

    def read(self) -> Sequence[Sample]:
        """Yield one sample per host.

        The name of a metric ends in its unit: _s, _bytes, _per_s, _ratio (none: a count).
        """
        begin = time.perf_counter()
        answer_s: float | None
        try:
            with urllib.request.urlopen(self._url, timeout=TIMEOUT_S) as answer:  # noqa: S310 -- http, see connect
                answer.read()
            answer_s = time.perf_counter() - begin
        except OSError:
            answer_s = None  # not measured; never use 0 for that
        now_ns, before_ns = time.time_ns(), self._last_ns
        self._last_ns = now_ns
        interval_s = (now_ns - before_ns) / 1e9
        return [Sample(now_ns, interval_s, host, "my_app.answer_s", "", answer_s) for host in self._hosts]

    def inventory(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the facts about each host. It is called once."""
        return {host: {} for host in self._hosts}

    def close(self) -> None:
        """Do nothing: there is no connection to close."""
