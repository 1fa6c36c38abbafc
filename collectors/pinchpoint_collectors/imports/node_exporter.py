"""Reads series of machine and database exporters from answers of Prometheus' HTTP API (``matrix``).

One query returns all series of a time range: ``/api/v1/query`` with
``{__name__=~"node_(cpu|disk|memory|...)_.*"}[1h]`` has every scrape; ``query_range`` has the last scrape at
each step, so its step must be the scrape interval. The exporters' own text (``/metrics``) is read as well,
several scrapes in one file.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

from pinchpoint_collectors.common import legible, numerals
from pinchpoint_collectors.common.legible import ForeignFileError
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.exporters import databases, means
from pinchpoint_collectors.exporters.means import NAME, Labels, Points, Series
from pinchpoint_collectors.exporters.query import matrix
from pinchpoint_collectors.exporters.tables import EXPORTERS, present, whose
from pinchpoint_collectors.imports.record import FileFacts, Settings
from pinchpoint_collectors.imports.times import ReadingTimes, numbered_s
from pinchpoint_collectors.record import Sample

_CONTAINER, _SUMS = "container_", frozenset({"", "POD"})
"""Containers in cAdvisor's series of a whole pod: none, or the one that only keeps its network."""
_BEGINS = re.compile(r"[\ufeff\s]*\{\s*\"status\"\s*:\s*\"")
_EXPOSED = re.compile(r"[\ufeff\s]*# (?:HELP|TYPE) [a-zA-Z_:][\w:]* ")
_LINE = re.compile(r"(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})?\s+(?P<value>[-+.\w]+)(?:\s+\d+)?\s*")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_CLOCKS = ("node_time_seconds", "node_time")
"""Series with the clock of the machine at a scrape."""


class NodeExporter:
    """Import format ``node_exporter``."""

    name = "node_exporter"
    says = (
        "series of node_exporter, windows_exporter, or of the exporters of MySQL, PostgreSQL and Redis, from "
        "Prometheus' HTTP API (/api/v1/query with a range, or query_range), JSON; or what they serve, as text"
    )

    def recognises(self, head: str) -> bool:
        """Return whether the start is that of an answer of the API, or the lines above exporter series."""
        return (_BEGINS.match(head) or _EXPOSED.match(head)) is not None

    def read(self, lines: Iterable[str], settings: Settings, facts: FileFacts) -> Iterator[Sample]:
        """Yield one sample per value and scrape (see ``Format.read``)."""
        known = databases.NAMES.union(*(each.names for each in EXPORTERS))
        by_host: dict[str, list[Series]] = {}
        unused: dict[str, None] = {}
        for labels, points in _series(lines, settings, facts):
            older = labels.get(NAME, "")
            name, unit = present(older)
            if name not in known:
                unused[older or "a series without __name__ (the result of an expression)"] = None
                continue
            if labels.get("pod") and labels.get("container", "") in _SUMS and name.startswith(_CONTAINER):
                continue
            values = points if unit == 1 else {at: value * unit for at, value in points.items()}
            by_host.setdefault(_host(labels), []).append(({**labels, NAME: name}, values))
        if not by_host:
            raise ForeignFileError(
                f"it contains no series of node_exporter; found {', '.join(list(unused)[:5]) or 'nothing'}; "
                'query raw series: {__name__=~"node_(cpu|disk|memory|network|pressure|vmstat|procs)_.*"}[1h]'
            )
        if unused:
            facts.note(
                f"ignored {len(unused):,} series that Pinchpoint does not use, such as {next(iter(unused))}"
            )
        for host, series in by_host.items():
            exporter = whose({labels[NAME] for labels, _ in series})
            if exporter is not None:
                facts.facts(host).update(means.facts(exporter, series))
                _note_gaps(host, means.joined(exporter, series).values(), facts)
                yield from means.samples(exporter, host, series)
            facts.facts(host)
            yield from databases.samples(host, series)


def _series(lines: Iterable[str], settings: Settings, facts: FileFacts) -> Iterator[Series]:
    given = iter(lines)
    first = next((line for line in given if line.strip()), "")
    if _EXPOSED.match(first):
        yield from _exposed(given, settings, facts)
        return
    try:
        yield from matrix(legible.document(itertools.chain([first], given)))
    except CollectorError as error:
        raise ForeignFileError(f"{error}; {legible.AS_IT_CAME}") from error


def _exposed(lines: Iterable[str], settings: Settings, facts: FileFacts) -> Iterator[Series]:
    """Return the series of scrapes. A scrape begins when a series is repeated."""
    scrapes: list[dict[tuple[str, str], float]] = [{}]
    for match in filter(None, (_LINE.fullmatch(line.rstrip()) for line in lines)):
        key = match["name"], match["labels"] or ""
        try:
            value = numerals.strict(match["value"])
        except ValueError:
            continue  # NaN and infinity
        if key in scrapes[-1]:
            scrapes.append({})
        scrapes[-1][key] = value
    if len(scrapes) < 2:
        raise ForeignFileError(
            "it has a single scrape, and counters count since the start of the machine: scrape every 15 s"
        )
    clock = next(((name, "") for name in _CLOCKS if all((name, "") in each for each in scrapes)), None)
    if clock is not None:
        times = [each[clock] for each in scrapes]
    else:
        start_s, every_s = numbered_s(settings, facts)
        times = [start_s + number * every_s for number in range(len(scrapes))]
    points: dict[tuple[str, str], dict[float, float]] = {}
    for at, scrape in zip(times, scrapes, strict=True):
        for key, value in scrape.items():
            points.setdefault(key, {})[at] = value
    for (name, labels), values in points.items():
        yield {**dict(_LABEL.findall(labels)), NAME: name}, values


def _note_gaps(host: str, series: Iterable[Sequence[Points]], facts: FileFacts) -> None:
    """Report gaps between scrapes, from one series, because two jobs may scrape one host in turns."""
    pace = ReadingTimes()
    longest = max(({at for piece in pieces for at in piece} for pieces in series), key=len, default=set())
    for before_s, time_s in itertools.pairwise(sorted(longest)):
        pace.covered_s(before_s, time_s)
    pace.report(facts, host)


def _host(labels: Labels) -> str:
    """Return the scraped address without its port; for a container, its pod and its name."""
    if labels.get(NAME, "").startswith(_CONTAINER):
        named = labels.get("container") or labels.get("name") or ""
        return "/".join(filter(None, (labels.get("pod"), named)))
    return labels.get("nodename") or re.sub(r":\d+$", "", labels.get("instance", ""))
