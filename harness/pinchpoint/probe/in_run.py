"""Reads the storage probes that ran as scenarios of a plan and left their events in the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pinchpoint.base.objects import JsonObject, object_at
from pinchpoint.plan import FarmDisk
from pinchpoint.probe import words
from pinchpoint.probe.record import LINE_S, DeclaredDisk, Options, Probe, ProbeLocation, Trial
from pinchpoint.probe.target import of_disk
from pinchpoint.store import tool_histogram
from pinchpoint.store.read import StoredRun
from pinchpoint_collectors.common.times import iso
from pinchpoint_scenarios.storage_probe import SUITES, Cell, CellSeries
from pinchpoint_scenarios.storage_probe.params import StorageProbeParams
from pinchpoint_scenarios.storage_probe.scenario import PROBE_FAILED, PROBED, StorageProbe

_FIGURES = (
    "seconds",
    "reads_per_s",
    "writes_per_s",
    "read_bytes_per_s",
    "write_bytes_per_s",
    "mean_s",
    "max_s",
)


def probes_of(run: StoredRun) -> Iterator[tuple[str, Probe]]:
    """(scenario name, probe) of each storage-probe scenario that attempted a measurement."""
    scenarios = object_at(run.manifest, "plan", "scenarios")
    for name, planned in scenarios.items():
        events = [
            event
            for event in run.events
            if event.get("event") in (PROBED, PROBE_FAILED) and event.get("scenario") == name
        ]
        if planned.get("use") == StorageProbe.use and events:
            yield name, _probe(run, object_at(planned, "params"), events)


def _probe(run: StoredRun, params: JsonObject, events: Sequence[JsonObject]) -> Probe:
    given, first = StorageProbeParams.model_validate(params), events[0]
    chosen = SUITES[first["suite"]].threaded(given.threads)
    cells: dict[Cell, list[Trial]] = {
        cell: [] for job in chosen.jobs(given.seconds or 0.0) for cell in job.cells
    }
    for event in events:
        cells.setdefault(Cell(**event["cell"]), []).append(_trial(event))
    farm = object_at(run.manifest, "farm")
    asked = max((len(trials) for trials in cells.values()), default=1)
    return Probe(
        suite=chosen.name,
        where=ProbeLocation(
            folder=first["folder"],
            host=str(first.get("host") or farm.get("name")),
            device=first.get("device"),
            farm=farm.get("name"),
            disk=first.get("disk"),
        ),
        options=Options(asked, given.seconds, first["size_bytes"], given.line or LINE_S, given.threads),
        declared=declared_of(farm, first.get("disk")),
        started=iso(first["started_s"]),
        ended=iso(events[-1]["started_s"]),
        state="finished" if all(cells.values()) else "interrupted",
        cells=cells,
        warnings=[
            "measured while the other scenarios ran: what the disk had left, not its limit",
            *words.in_memory(chosen, first["size_bytes"], first.get("memory_bytes", 0)),
        ],
    )


def declared_of(farm: JsonObject, disk: str | None) -> DeclaredDisk:
    """The limits that a manifest's farm declares for ``tier.role`` or ``tier.host.role``."""
    tier, *host, role = disk.split(".") if disk else ("", "")
    hosts = object_at(farm, "tiers", tier, "hosts")
    result = [
        of["disks"][role]
        for name, of in hosts.items()
        if role in object_at(of, "disks") and host in ([], [name])
    ]
    return of_disk(FarmDisk.model_validate(result[0]) if result else None)


def _trial(event: JsonObject) -> Trial:
    series, counts = event.get("series"), event.get("times_ns")
    course = (
        CellSeries(series["step_s"], tuple(series["iops"]), tuple(series["latency_s"])) if series else None
    )
    return Trial(
        number=event["trial"],
        started=iso(event["started_s"]),
        latency=tool_histogram.histogram(dict(counts)) if counts else None,
        series=course,
        failed=event.get("why"),
        **{name: event.get(name) for name in _FIGURES},
    )
