"""Series of machine and database exporters, as returned by Prometheus' HTTP API (``matrix``).

One query returns all series of a time range: ``/api/v1/query`` with
``{__name__=~"node_(cpu|disk|memory|...)_.*"}[1h]`` has every scrape; ``query_range`` has the last scrape at
each step, so its step must be the scrape interval.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

from pinchpoint_collectors.common import legible
from pinchpoint_collectors.common.legible import ForeignFileError
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.exporters import databases, means
from pinchpoint_collectors.exporters.means import NAME, Labels, Points, Series
from pinchpoint_collectors.exporters.query import matrix
from pinchpoint_collectors.exporters.tables import EXPORTERS, present, whose
from pinchpoint_collectors.imports.record import FileFacts, Settings
from pinchpoint_collectors.imports.times import ReadingTimes
from pinchpoint_collectors.record import Sample

_CONTAINER, _SUMS = "container_", frozenset({"", "POD"})
"""cAdvisor's series of a whole pod name no container, or the one that only keeps its network."""
_BEGINS = re.compile(r"[\ufeff\s]*\{\s*\"status\"\s*:\s*\"")


class NodeExporter:
    """Format ``node_exporter``."""

    name = "node_exporter"
    says = (
        "series of node_exporter, windows_exporter, or of the exporters of MySQL, PostgreSQL and Redis, from "
        "Prometheus' HTTP API (/api/v1/query with a range, or query_range), JSON"
    )

    def recognises(self, head: str) -> bool:
        """Recognised by the frame of the API's answers."""
        return _BEGINS.match(head) is not None

    def read(self, lines: Iterable[str], settings: Settings, facts: FileFacts) -> Iterator[Sample]:  # noqa: ARG002 -- its times are UTC
        """One sample per value and scrape; see ``Format.read``."""
        known = databases.NAMES.union(*(each.names for each in EXPORTERS))
        by_host: dict[str, list[Series]] = {}
        unused: dict[str, None] = {}
        for labels, points in _series(lines):
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


def _series(lines: Iterable[str]) -> Iterator[Series]:
    try:
        yield from matrix(legible.document(lines))
    except CollectorError as error:
        raise ForeignFileError(f"{error}; {legible.AS_IT_CAME}") from error


def _note_gaps(host: str, series: Iterable[Sequence[Points]], facts: FileFacts) -> None:
    """Note gaps between scrapes, from one series, because two jobs may scrape one host in turns."""
    pace = ReadingTimes()
    longest = max(({at for piece in pieces for at in piece} for pieces in series), key=len, default=set())
    for before_s, time_s in itertools.pairwise(sorted(longest)):
        pace.covered_s(before_s, time_s)
    pace.report(facts, host)


def _host(labels: Labels) -> str:
    """The scraped address without its port; for a container, its pod and its name."""
    if labels.get(NAME, "").startswith(_CONTAINER):
        named = labels.get("container") or labels.get("name") or ""
        return "/".join(filter(None, (labels.get("pod"), named)))
    return labels.get("nodename") or re.sub(r":\d+$", "", labels.get("instance", ""))
