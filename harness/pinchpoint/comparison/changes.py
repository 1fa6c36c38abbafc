"""What changed: the figures of sources, disks, tiers and scenarios, both sides beside each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pinchpoint.comparison.hosts import Place, Places
from pinchpoint.comparison.sides import Sides
from pinchpoint.comparison.values import Better, Call, Pair, pair

About = Literal["source", "disk", "cpu", "scenario"]
Row = Mapping[str, Any]

SOURCE: Mapping[str, Better | None] = {
    "count": None,
    "failures": "lower",
    "duration_s": "lower",
    "rate_per_s": "higher",
    "repository_latency_s": "lower",
}
DISK: Mapping[str, Better | None] = {
    "write_latency_mean_s": "lower",
    "write_latency_max_s": "lower",
    "read_latency_mean_s": "lower",
    "iops_mean": None,
    "iops_max": None,
}
CPU: Mapping[str, Better | None] = {"busy_mean_ratio": None, "busy_max_ratio": None}


@dataclass(frozen=True, slots=True)
class Change:
    """One figure of one thing, on both sides.

    Attributes:
        about: what kind of thing it is.
        metric: the figure; its ending is its unit.
        pair: its values.
        source: the crawl source, where it is one.
        scenario: the scenario, where it is one.
        tier: the tier, of a disk or CPU.
        place: the host, likewise.
        role: the disk's role.
        better: which way is better; None: neither (more I/O is not better by itself).
        ci95: the ratio's 95 % interval; None: not known.
        call: what may be said of it.
    """

    about: About
    metric: str
    pair: Pair
    source: str | None = None
    scenario: str | None = None
    tier: str | None = None
    place: Place | None = None
    role: str | None = None
    better: Better | None = None
    ci95: tuple[float, float] | None = None
    call: Call = "inconclusive"


def changes(sides: Sides, places: Places) -> tuple[Change, ...]:
    """Every figure of both sides: sources, disks, CPUs, scenarios, in this order."""
    return (*_sources(sides), *_disks(sides, places), *_cpus(sides, places), *_scenarios(sides))


class _Rows:
    """The rows of one of the verdicts' tables, by what they are about, run by run."""

    def __init__(self, sides: Sides, read: Callable[[Row, str], Iterator[tuple[Any, Row]]]) -> None:
        self._labels = sides.base.label, sides.other.label
        self._base = [dict(read(verdict, "base")) for verdict in sides.base.verdicts]
        self._other = [dict(read(verdict, "other")) for verdict in sides.other.verdicts]

    def __iter__(self) -> Iterator[Any]:
        return iter(dict.fromkeys(key for rows in (*self._base, *self._other) for key in rows))

    def pair(self, key: Any, metric: str, unlike: str | None = None) -> Pair:
        base, other = ([rows.get(key, {}).get(metric) for rows in side] for side in (self._base, self._other))
        return pair(base, other, self._labels, unlike)

    def all(self, key: Any, column: str) -> list[Any]:
        """A column's values in every run that has the row."""
        return [rows[key].get(column) for rows in (*self._base, *self._other) if key in rows]

    def unlike(self, key: Any, column: str, what: str) -> str | None:
        """Why the runs' figures are not the same quantity, where a column says so."""
        kinds = sorted({str(kind) for kind in self.all(key, column)})
        return f"{what} ({' and '.join(kinds)}), so there is no ratio" if len(kinds) > 1 else None


def _sources(sides: Sides) -> Iterator[Change]:
    rows = _Rows(sides, lambda verdict, _: ((row["source"], row) for row in verdict.get("crawl") or ()))
    for source in rows:
        ended = all(rows.all(source, "complete"))
        for metric, better in SOURCE.items():
            cut = None
            if not ended and metric in ("count", "failures", "duration_s"):
                cut = "not every crawl of it ended, so there is no ratio"
            yield Change("source", metric, rows.pair(source, metric, cut), source=source, better=better)


def _disks(sides: Sides, places: Places) -> Iterator[Change]:
    def read(verdict: Row, side: str) -> Iterator[tuple[Any, Row]]:
        for row in verdict.get("disks") or ():
            yield (places.of(row["tier"], row["host"], side), row["role"]), row

    rows = _Rows(sides, read)
    for place, role in rows:
        counted = rows.unlike((place, role), "iops_source", "I/O is counted in two ways")
        for metric, better in DISK.items():
            found = rows.pair((place, role), metric, counted if metric.startswith("iops") else None)
            yield Change("disk", metric, found, tier=place.tier, place=place, role=role, better=better)


def _cpus(sides: Sides, places: Places) -> Iterator[Change]:
    def read(verdict: Row, side: str) -> Iterator[tuple[Any, Row]]:
        for row in verdict.get("cpus") or ():
            yield places.of(row["tier"], row["host"], side), row

    rows = _Rows(sides, read)
    for place in rows:
        mixed = rows.unlike(place, "of", "it is a share of two different things")
        for metric, better in CPU.items():
            found = rows.pair(place, metric, mixed)
            yield Change("cpu", metric, found, tier=place.tier, place=place, better=better)


def _scenarios(sides: Sides) -> Iterator[Change]:
    rows = _Rows(sides, lambda verdict, _: iter((verdict.get("scenarios") or {}).items()))
    for name in rows:
        kind = time_kind(rows.all(name, "response_p95_s"))
        metrics: dict[str, Better] = {"throughput_per_s": "higher"}
        metrics |= {f"{kind}_p50_s": "lower", f"{kind}_p95_s": "lower"}
        for metric, better in metrics.items():
            yield Change("scenario", metric, rows.pair(name, metric), scenario=name, better=better)


def time_kind(response: Sequence[float | None]) -> str:
    """``response`` where every run has response times, else ``service``: one kind for both sides."""
    return "response" if response and all(value is not None for value in response) else "service"


def of(found: Sequence[Change], **wanted: Any) -> Change | None:
    """The first change with these attributes."""
    return next((one for one in found if all(getattr(one, k) == v for k, v in wanted.items())), None)
