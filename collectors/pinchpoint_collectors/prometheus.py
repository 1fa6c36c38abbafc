"""Collector kind ``prometheus``: a machine's exporter series from a Prometheus server.

Every scrape is fetched with its own time. Scrapes made while the server was not reachable are fetched
afterwards.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pinchpoint_collectors.common.times import utc
from pinchpoint_collectors.errors import CollectorError, OptionError
from pinchpoint_collectors.exporters import means, places, query
from pinchpoint_collectors.exporters.means import GAP, NAME, Series
from pinchpoint_collectors.exporters.tables import EXPORTERS, whose
from pinchpoint_collectors.record import Collector, Incident, NotMeasured, Sample, Watch
from pinchpoint_collectors.remote.clock import WARN_OFFSET_S, HostClock

if TYPE_CHECKING:
    from pinchpoint_collectors.exporters.server import Server

UP = "up"
"""Series of Prometheus itself: 1 for a successful scrape."""
_AT_ONCE_S = 3600.0
"""Longest time range of one query in seconds."""
_LOOK_BACK_S = 900.0
_LATE_S = 0.25
"""Usual time until a scrape is in the store, in seconds."""
_OVERDUE_S = 5.0
_NS = 1_000_000_000


class PrometheusKind:
    """Collector kind ``prometheus`` of farm.yaml.

    Options in farm.yaml: ``url``; ``instance`` (the exporter's scraped address, with or without port; by
    default the host's name) and ``labels`` (further labels of its series); ``token``, or ``user`` and
    ``password``; ``ca``.
    """

    name = "prometheus"
    options = frozenset({"url", "instance", "labels", "token", "user", "password", "ca"})
    public = frozenset({"url", "instance", "labels", "user", "ca"})

    def machine(self, watch: Watch) -> str:
        """Return a key for one exporter of one server."""
        return (
            f"{query.shown(watch)} {watch.options.get('instance', watch.host)} {watch.options.get('labels')}"
        )

    def check_options(self, watch: Watch) -> None:
        where = f"host {watch.host!r}, collector {self.name!r}"
        if not watch.options.get("url"):
            raise OptionError("url", "missing; needed: as in `url: http://prometheus.example:9090`", where)
        if watch.options.get("token") is not None and watch.options.get("user") is not None:
            raise OptionError("token", "given beside `user`; allowed: one of the two", where)
        query.matchers(watch, where)

    def connect(self, watches: Sequence[Watch]) -> Collector:
        """Find the exporter and its scrape interval. Raises ``CollectorError`` with the remedy."""
        first = watches[0]
        where = f"host {first.host!r}, collector {self.name!r}"
        self.check_options(first)
        where = f"{where} ({query.shown(first)})"
        try:
            from pinchpoint_collectors.exporters.server import Server  # noqa: PLC0415 -- an extra
        except ImportError as error:
            raise CollectorError(
                f"{where}: it needs requests, which is not installed here ({error}); "
                "run: pip install 'pinchpoint-collectors[prometheus]'"
            ) from error
        matchers = query.matchers(first, where)
        server = Server(where, str(first.options["url"]), first.options)
        try:
            return PrometheusCollector(watches, server, matchers, where)
        except CollectorError:
            server.close()
            raise


class PrometheusCollector:
    """Watches one exporter for all its hosts."""

    def __init__(self, watches: Sequence[Watch], server: Server, matchers: str, where: str) -> None:
        self._watches = tuple(watches)
        self._hosts = [watch.host for watch in watches]
        self._server = server
        self._where = where
        self._clock = HostClock()
        self._reported: list[Incident] = []
        self._warned = self._warned_partial = False
        known = {*places.INFORMS, *(name for each in EXPORTERS for name in each.names)}
        self._found = [labels for labels, _ in server.latest(query.selector(known, matchers))]
        self._names = {labels.get(NAME, "") for labels in self._found}
        exporter = whose(self._names)
        if exporter is None:
            raise CollectorError(f"{where}: {_nothing(matchers, server)}")
        self._exporter = exporter
        self._target = query.only_target(where, self._found)
        self._selector = query.selector([UP, *exporter.names], matchers)
        self._interval_s, self._interval_from = self._scrape_interval(matchers)
        self._before: dict[frozenset[tuple[str, str]], Series] = {}
        self._last_s: float | None = None  # time of the latest known scrape by the server's clock
        self._due_ns = 0
        self._down: str | None = None
        self._fetch()

    def read(self) -> Sequence[Sample]:
        """Return every scrape that was stored since the last reading, each with its own time."""
        if time.time_ns() >= self._due_ns:
            return self._fetch()
        if self._down is not None:
            raise CollectorError(self._down)
        return ()

    def incidents(self) -> Sequence[Incident]:
        """Return events: missing scrapes, and a clock with an offset."""
        reported, self._reported = self._reported, []
        return reported

    def inventory(self) -> Mapping[str, Mapping[str, Any]]:
        """Return facts about the machine from exporter and server (docs/metrics.md, "Inventory")."""
        there = places.layout(self._exporter, self._found)
        facts = means.facts(self._exporter, list(self._before.values())) | places.machine(self._found)
        result = {}
        for watch in self._watches:
            roles = {role: places.role(there, given) for role, given in watch.disks.items()}
            result[watch.host] = {
                "tier": watch.tier,
                **facts,
                "disks": places.disks(there, roles.values(), self._found),
                "roles": roles,
                "exporter": self._exporter.name,
                "scrape_interval_s": self._interval_s,
                "scrape_interval_from": self._interval_from,
                "clock": self._clock.facts(),
                "not_measured": [asdict(each) for each in self._not_measured(watch, roles)],
            }
        return result

    def close(self) -> None:
        """Close the connection."""
        self._server.close()

    # ---- fetching -------------------------------------------------------------------------------------

    def _fetch(self) -> list[Sample]:
        self._due_ns = 0  # after a failure at the next reading
        received_bytes = self._server.received_bytes
        asked = self._server.clock()
        self._clock.observe(*asked)
        now_s = asked[1] / _NS
        series = self._merged(self._since(now_s))
        samples = [] if self._last_s is None else list(self._samples(series))
        self._note_scrapes(series)
        self._warn_clock()
        self._warn_partial()
        self._down = self._why_down(now_s)
        if self._down is not None and not samples:
            raise CollectorError(self._down)
        size = float(self._server.received_bytes - received_bytes)
        kind = PrometheusKind.name
        samples += self._clock.samples(asked[2], self._interval_s, self._hosts, kind)
        samples += [
            Sample(asked[2], self._interval_s, host, "collector.received_bytes", kind, size)
            for host in self._hosts
        ]
        return samples

    def _since(self, now_s: float) -> Iterator[Series]:
        """Return scrapes since the latest known one; at first, those of two intervals."""
        begin_s = self._last_s if self._last_s is not None else now_s - GAP * self._interval_s
        while begin_s < now_s:
            until_s = min(now_s, begin_s + _AT_ONCE_S)
            yield from self._server.series(self._selector, until_s - begin_s, until_s)
            begin_s = until_s

    def _merged(self, fetched: Iterable[Series]) -> list[Series]:
        """Return the last known point and the new points of each series.

        The last one is kept for the next call.
        """
        new: dict[frozenset[tuple[str, str]], dict[float, float]] = {}
        for labels, points in fetched:
            new.setdefault(frozenset(labels.items()), {}).update(points)
        series: list[Series] = []
        for key, came in new.items():
            known = dict(self._before.get(key, ({}, {}))[1])
            points = known | {at: value for at, value in came.items() if at > max(known, default=0.0)}
            if points:
                last = max(points)
                self._before[key] = dict(key), {last: points[last]}
                series.append((dict(key), points))
        return series

    def _samples(self, series: Sequence[Series]) -> Iterator[Sample]:
        own = [each for each in series if each[0].get(NAME) != UP]
        for host in self._hosts:
            for sample in means.samples(self._exporter, host, own, self._interval_s):
                yield sample._replace(time_ns=self._clock.to_ours(sample.time_ns))

    def _note_scrapes(self, series: Iterable[Series]) -> None:
        """Record the time of the next scrape, and a gap for missing scrapes."""
        after = self._last_s or 0.0
        points = (points for labels, points in series if labels.get(NAME) == UP)
        scraped = sorted({at for each in points for at in each if at > after})
        if not scraped:
            return
        times = scraped if self._last_s is None else [self._last_s, *scraped]
        self._reported += [
            Incident.gap(
                self._ours_ns(earlier),
                self._ours_ns(later),
                round((later - earlier) / self._interval_s) - 1,
                self._interval_s,
                "Prometheus made no scrape meanwhile",
            )
            for earlier, later in itertools.pairwise(times)
            if later - earlier > GAP * self._interval_s
        ]
        self._last_s = scraped[-1]
        self._due_ns = self._ours_ns(self._last_s + self._interval_s + _LATE_S)

    # ---- what is wrong --------------------------------------------------------------------------------

    def _why_down(self, now_s: float) -> str | None:
        """Return why there are no scrapes; None if there are."""
        up = [points for labels, points in self._before.values() if labels.get(NAME) == UP]
        latest = {at: value for points in up for at, value in points.items()}
        if not latest or now_s - max(latest) > GAP * self._interval_s + _OVERDUE_S:
            since = f"since {utc(self._ours_ns(max(latest)))}" if latest else "at all"
            return (
                f"{self._where}: Prometheus has not scraped {self._target} {since}; look at its targets page"
            )
        if latest[max(latest)] == 0:
            answer = next((each.get("lastError") for each in self._own_targets()), None)
            why = f": {answer}" if answer else ""
            return (
                f"{self._where}: Prometheus does not reach {self._target}{why}; start the exporter there, or "
                "mend the way to it"
            )
        return None

    def _warn_clock(self) -> None:
        offset_s, error_s = self._clock.offset_ns / _NS, self._clock.error_ns / _NS
        if abs(offset_s) > WARN_OFFSET_S and not self._warned:
            self._warned = True
            self._reported.append(Incident("clock_offset", {"offset_s": offset_s, "error_s": error_s}))

    def _warn_partial(self) -> None:
        if self._server.partial is not None and not self._warned_partial:
            self._warned_partial = True
            why = f"{self._where}: its answers may lack something; it says: {self._server.partial}"
            self._reported.append(Incident("partial_answer", {"why": why}))

    def _not_measured(self, watch: Watch, roles: Mapping[str, Mapping[str, Any]]) -> Iterator[NotMeasured]:
        name = self._exporter.name
        for role, place in roles.items():
            if place["device"] is None:
                remedy = "say `device:` with one that the exporter counts"
                yield NotMeasured("disk.*", role, str(place["why"]), remedy)
        for series, becomes in self._exporter.means.items():
            if series not in self._names:
                yield NotMeasured(becomes.metric, "", f"{name} gives no series {series} here", None)
        yield NotMeasured(
            "cpu.busy_ratio",
            f"tier:{watch.tier}",
            f"{name} reports no single processes",
            "add a collector that does: kind ssh or local",
        )

    # ---- the scrape interval --------------------------------------------------------------------------

    def _scrape_interval(self, matchers: str) -> tuple[float, str]:
        """Return the interval in seconds and its source.

        It is the configured interval, or else the distance of scrapes.
        """
        for target in self._own_targets():
            seconds = query.duration_s(str(target.get("scrapeInterval", "")))
            if seconds:
                return seconds, "the server's targets"
        now_s = self._server.clock()[1] / _NS
        result = self._server.series(query.selector([UP], matchers), _LOOK_BACK_S, now_s)
        steps = sorted(
            later - earlier for _, points in result for earlier, later in itertools.pairwise(sorted(points))
        )
        if not steps:
            raise CollectorError(
                f"{self._where}: how often {self._target} is scraped is unknown: fewer than two scrapes "
                "in 15 minutes; wait for the next, or scrape it more often"
            )
        return steps[len(steps) // 2], "the distance of scrapes"

    def _own_targets(self) -> Iterator[Mapping[str, Any]]:
        for target in self._server.targets():
            if query.ExporterTarget.of(target.get("labels") or {}) == self._target:
                yield target

    def _ours_ns(self, time_s: float) -> int:
        """Return a time of the server's clock by the local clock."""
        return self._clock.to_ours(round(time_s * _NS))


def _nothing(matchers: str, server: Server) -> str:
    """Return why there is no exporter, with a list of what the server scrapes."""
    there = sorted({labels.get("instance", "") for labels, _ in server.latest(UP)})
    shown = ", ".join([*there[:10], *(["..."] if len(there) > 10 else [])]) or "nothing"
    names = " or ".join(each.name for each in EXPORTERS)
    return f"no series of {names} with {matchers}; it scrapes {shown}; correct `instance` or `labels`"
