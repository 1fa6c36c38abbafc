"""node_exporter's series as Prometheus' HTTP API hands them out: ranges, ``resultType`` ``matrix``.

One query brings all of a time: ``/api/v1/query`` with ``{__name__=~"node_(cpu|disk|memory|...)_.*"}[1h]`` has
every scrape as it was; ``query_range`` has what was last scraped at each step, so that its step must be the
scrape interval. Counters become rates from one scrape to the next; one that went back (a restart) makes its
interval "not measured".
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pinchpoint_collectors.imports.record import ForeignFileError, Found, Settings
from pinchpoint_collectors.record import Sample

_BEGINS = re.compile(r"[\ufeff\s]*\{\s*\"status\"\s*:\s*\"")
PAGE_BYTES = 4096
GAP = 2.5
"""Scrapes further apart than so many usual intervals have a gap between them; it belongs to no value."""

LATEST_S = 1e10
AS_IT_CAME = "save the answer of Prometheus as it came"

Points = Mapping[float, float]
"""UTC seconds -> value."""


@dataclass(frozen=True, slots=True)
class _Means:
    """What a series of node_exporter becomes.

    Attributes:
        metric: ours.
        label: the label that is the instance; "": there is only one.
        kind: ``counter`` a rate of it, ``gauge`` as it is, ``latency`` its increase ÷ that of ``per``.
        scale: into base units.
        per: of a latency, the counter of its operations.
    """

    metric: str
    label: str = ""
    kind: Literal["counter", "gauge", "latency"] = "counter"
    scale: float = 1.0
    per: str = ""


MEANS: Mapping[str, _Means] = {
    "node_disk_reads_completed_total": _Means("disk.reads_per_s", "device"),
    "node_disk_writes_completed_total": _Means("disk.writes_per_s", "device"),
    "node_disk_flush_requests_total": _Means("disk.flushes_per_s", "device"),
    "node_disk_read_bytes_total": _Means("disk.read_bytes_per_s", "device"),
    "node_disk_written_bytes_total": _Means("disk.write_bytes_per_s", "device"),
    "node_disk_read_time_seconds_total": _Means(
        "disk.read_latency_s", "device", "latency", per="node_disk_reads_completed_total"
    ),
    "node_disk_write_time_seconds_total": _Means(
        "disk.write_latency_s", "device", "latency", per="node_disk_writes_completed_total"
    ),
    "node_disk_flush_requests_time_seconds_total": _Means(
        "disk.flush_latency_s", "device", "latency", per="node_disk_flush_requests_total"
    ),
    "node_disk_io_time_weighted_seconds_total": _Means("disk.outstanding", "device"),
    "node_disk_io_time_seconds_total": _Means("disk.busy_ratio", "device"),
    "node_memory_MemAvailable_bytes": _Means("mem.available_bytes", kind="gauge"),
    "node_vmstat_pswpin": _Means("mem.paged_in_bytes_per_s", scale=PAGE_BYTES),
    "node_vmstat_pswpout": _Means("mem.paged_out_bytes_per_s", scale=PAGE_BYTES),
    "node_procs_running": _Means("cpu.run_queue", kind="gauge"),
    "node_network_receive_bytes_total": _Means("net.received_bytes_per_s", "device"),
    "node_network_transmit_bytes_total": _Means("net.sent_bytes_per_s", "device"),
    "node_network_speed_bytes": _Means("net.speed_bytes_per_s", "device", "gauge"),
    "node_pressure_cpu_waiting_seconds_total": _Means("pressure.cpu_ratio"),
    "node_pressure_io_waiting_seconds_total": _Means("pressure.io_ratio"),
    "node_pressure_memory_waiting_seconds_total": _Means("pressure.memory_ratio"),
}
"""node_exporter's name -> what it becomes; CPUs and the size of memory are put together apart."""

CPU, MEMORY = "node_cpu_seconds_total", "node_memory_MemTotal_bytes"
_CPU_METRICS = {"idle": None, "iowait": "cpu.wait_ratio", "steal": "cpu.steal_ratio"}


class NodeExporter:
    """Format ``node_exporter``."""

    name = "node_exporter"
    says = (
        "node_exporter's series from Prometheus' HTTP API (/api/v1/query with a range, or query_range), JSON"
    )

    def recognises(self, head: str) -> bool:
        """By the frame of the API's answers."""
        return _BEGINS.match(head) is not None

    def read(self, lines: Iterable[str], settings: Settings, found: Found) -> Iterator[Sample]:  # noqa: ARG002 -- its times are UTC
        """One sample per value and scrape; see ``Format.read``."""
        by_host: dict[str, list[tuple[Mapping[str, str], Points]]] = {}
        unused: dict[str, None] = {}
        for labels, points in _series(lines):
            name = labels.get("__name__", "")
            if name not in MEANS and name not in {CPU, MEMORY}:
                unused[name or "a series without __name__ (the result of an expression)"] = None
                continue
            by_host.setdefault(_host(labels), []).append((labels, points))
        if not by_host:
            raise ForeignFileError(
                f"no series of node_exporter is there; found {', '.join(list(unused)[:5]) or 'nothing'}; ask "
                'for the raw ones: {__name__=~"node_(cpu|disk|memory|network|pressure|vmstat|procs)_.*"}[1h]'
            )
        if unused:
            found.note(f"{len(unused)} series have no counterpart here, such as {next(iter(unused))}")
        for host, series in by_host.items():
            found.facts(host).update(os="Linux")
            yield from _of_host(host, series, found)


def _series(lines: Iterable[str]) -> Iterator[tuple[Mapping[str, str], Points]]:
    try:
        content = json.loads("".join(lines))
    except json.JSONDecodeError as error:
        raise ForeignFileError(f"no JSON: {error.msg}; {AS_IT_CAME}", error.lineno) from error
    if not isinstance(content, dict) or content.get("status") != "success":
        why = content.get("error") if isinstance(content, dict) else None
        raise ForeignFileError(
            f"it is no answer but an error of Prometheus: {why or 'status is not success'}"
        )
    data = content.get("data")
    kind = data.get("resultType") if isinstance(data, dict) else None
    if not isinstance(data, dict) or kind != "matrix":
        raise ForeignFileError(
            f"found resultType {kind!r}; allowed: matrix: ask for a range, ...[1h] or query_range"
        )
    results = data.get("result")
    for result in results if isinstance(results, list) else ():
        labels = result.get("metric") if isinstance(result, dict) else None
        if not isinstance(labels, dict) or not all(isinstance(label, str) for label in labels.values()):
            raise ForeignFileError(f"found a series without its labels: {str(result)[:60]!r}; {AS_IT_CAME}")
        yield labels, _points(result.get("values") or ())


def _points(values: Iterable[Any]) -> Points:
    try:
        points = {float(time_s): float(value) for time_s, value in values}
    except (TypeError, ValueError) as error:
        raise ForeignFileError(f"found a value that is no [time, number]: {error}; {AS_IT_CAME}") from error
    if not all(0 < time_s < LATEST_S for time_s in points):
        raise ForeignFileError(f"found a time that is none in seconds since 1970; {AS_IT_CAME}")
    return points


def _host(labels: Mapping[str, str]) -> str:
    """The scraped address without its port."""
    return labels.get("nodename") or re.sub(r":\d+$", "", labels.get("instance", ""))


def _of_host(host: str, series: Sequence[tuple[Mapping[str, str], Points]], found: Found) -> Iterator[Sample]:
    named = {(labels["__name__"], labels.get("device", "")): points for labels, points in series}
    for (name, device), points in named.items():
        means = MEANS.get(name)
        if means is None:
            continue
        instance = device if means.label else ""
        if means.kind == "gauge":
            yield from _gauge(host, means, instance, points)
        elif means.kind == "latency":
            yield from _latency(host, means, instance, points, named.get((means.per, device), {}))
        else:
            for time_s, interval_s, more in increases(points):
                value = None if more is None else more / interval_s * means.scale
                yield Sample(round(time_s * 1e9), interval_s, host, means.metric, instance, value)
    cpus = [(labels, points) for labels, points in series if labels["__name__"] == CPU]
    yield from _cpus(host, cpus, found)
    yield from _memory(host, named, found)


def increases(points: Points) -> Iterator[tuple[float, float, float | None]]:
    """(time, seconds since the scrape before, by how much a counter rose); None where it went back.

    Intervals longer than ``GAP`` usual ones are left out: nobody knows when in them it rose.
    """
    times = sorted(points)
    steps = sorted(later - earlier for earlier, later in itertools.pairwise(times))
    usual = steps[len(steps) // 2] if steps else 0.0
    for earlier, later in itertools.pairwise(times):
        if later - earlier <= GAP * usual:
            more = points[later] - points[earlier]
            yield later, later - earlier, more if more >= 0 else None


def _gauge(host: str, means: _Means, instance: str, points: Points) -> Iterator[Sample]:
    for time_s, interval_s, _ in increases(points):
        value = (
            points[time_s] * means.scale if points[time_s] >= 0 else None
        )  # of an unknown speed it says -1
        yield Sample(round(time_s * 1e9), interval_s, host, means.metric, instance, value)


def _latency(host: str, means: _Means, instance: str, spent: Points, done: Points) -> Iterator[Sample]:
    counts = {time_s: more for time_s, _, more in increases(done)}
    for time_s, interval_s, seconds in increases(spent):
        count = counts.get(time_s)
        value = seconds / count if seconds is not None and count else None
        yield Sample(round(time_s * 1e9), interval_s, host, means.metric, instance, value, count)


def _cpus(host: str, series: Sequence[tuple[Mapping[str, str], Points]], found: Found) -> Iterator[Sample]:
    """Of each core and of all: 1 - idle - wait - steal, of the time all its states together took."""
    spent: dict[str, dict[str, dict[float, tuple[float, float | None]]]] = {}
    for labels, points in series:
        modes = spent.setdefault(labels.get("cpu", ""), {})
        modes[labels.get("mode", "")] = {at: (step, more) for at, step, more in increases(points)}
    cores = sorted(core for core in spent if core.isdecimal())
    if cores:
        found.facts(host).update(cores=len(cores), usable_cores=sorted(map(int, cores)))
    whole: dict[float, list[dict[str, float]]] = {}
    steps: dict[float, float] = {}
    for core, modes in spent.items():
        for time_s in modes.get("idle", {}):
            known = {mode: at[time_s] for mode, at in modes.items() if time_s in at}
            steps[time_s] = known["idle"][0]
            each = {mode: more for mode, (_, more) in known.items() if more is not None}
            if len(each) == len(known):
                whole.setdefault(time_s, []).append(each)
            yield from _ratios(host, core, time_s, steps[time_s], [each] if len(each) == len(known) else [])
    for time_s, step in steps.items():
        yield from _ratios(host, "", time_s, step, whole.get(time_s, []))


def _ratios(
    host: str, instance: str, time_s: float, interval_s: float, cores: Sequence[Mapping[str, float]]
) -> Iterator[Sample]:
    """Guest time is part of user time, so it is not added."""
    own = [{mode: more for mode, more in core.items() if not mode.startswith("guest")} for core in cores]
    all_s = sum(sum(core.values()) for core in own)
    shares: dict[str, float | None] = {
        "cpu.busy_ratio": None,
        "cpu.wait_ratio": None,
        "cpu.steal_ratio": None,
    }
    if all_s > 0:
        idle = {mode: sum(core.get(mode, 0.0) for core in own) / all_s for mode in _CPU_METRICS}
        shares |= {metric: idle[mode] for mode, metric in _CPU_METRICS.items() if metric}
        shares["cpu.busy_ratio"] = max(0.0, 1.0 - sum(idle.values()))
    for metric, value in shares.items():
        yield Sample(round(time_s * 1e9), interval_s, host, metric, instance, value)


def _memory(host: str, named: Mapping[tuple[str, str], Points], found: Found) -> Iterator[Sample]:
    total, left = named.get((MEMORY, ""), {}), named.get(("node_memory_MemAvailable_bytes", ""), {})
    if not total:
        return
    found.facts(host)["memory_bytes"] = round(max(total.values()))
    for time_s, interval_s, _ in increases(left):
        if total.get(time_s):
            ratio = left[time_s] / total[time_s]
            yield Sample(round(time_s * 1e9), interval_s, host, "mem.available_ratio", "", ratio)
