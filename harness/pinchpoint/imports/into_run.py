"""Adds samples of other tools to an existing run. Only samples from the time of the run are added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq

from pinchpoint.base.clock import seconds_of
from pinchpoint.base.errors import InputError
from pinchpoint.base.objects import object_at
from pinchpoint.imports.as_run import notes, span_words, tables
from pinchpoint.imports.places import HostPlaces, ImportedDisk, address_names
from pinchpoint.imports.reading import (
    Gathered,
    Key,
    Read,
    TimeSpan,
    inventory,
    layered_disks,
    read_all,
    unknown_hosts,
    unknown_roles,
)
from pinchpoint.imports.source import RecordingFile
from pinchpoint.store import samples as recorded
from pinchpoint.store.compact import SampleGroups
from pinchpoint.store.read import StoredRun, open_run
from pinchpoint.store.schema import MANIFEST, SAMPLES
from pinchpoint.store.write import write_json
from pinchpoint_collectors.imports.record import Settings
from pinchpoint_collectors.record import Sample

HALF_HOUR_S = 1800
SHIFTS_S = [sign * half * HALF_HOUR_S for half in range(1, 29) for sign in (1, -1)]
"""Possible errors of a time zone in seconds, smallest first: half hours, up to fourteen hours either way."""


def import_into_run(
    directory: Path, sources: Sequence[RecordingFile], settings: Settings, places: HostPlaces
) -> int:
    """Add the samples of other tools' files to a finished run.

    Series that the run already has are not changed. Samples from outside the run's time are left out. The
    samples file is replaced as a whole before the manifest is written: if the command is killed in between,
    the same command completes the import.

    Returns:
        The number of added samples.

    Raises:
        InputError: the folder is not a finished run; or a file is damaged, was imported before, or has no
            sample from the time of the run.
    """
    run = open_run(directory)
    if run.manifest["state"] == "running":
        raise InputError(f"{directory}: this run is still running; import into it after it has ended")
    there = {each["sha256"] for each in run.manifest.get("imports") or ()}
    again = [source for source in sources if source.sha256 in there]
    if again:
        raise InputError(
            *(
                f"{source.path}: is already imported into {run.directory.name}; nothing was changed"
                for source in again
            )
        )
    between = TimeSpan(*_span_s(run))
    places = _of_run(run, places)
    known, gathered = _series(run), Gathered()
    left: set[Key] = set()

    def wanted(sample: Sample) -> bool:
        key = sample.host, sample.metric, sample.instance
        if key in known:
            left.add(key)
        return key not in known

    hosts = list(run.manifest.get("hosts") or ())
    partial = directory / f"{SAMPLES}.partial"
    try:
        with SampleGroups(partial) as file:
            with pq.ParquetFile(directory / SAMPLES) as own:
                for group in range(own.num_row_groups):
                    file.add(own.read_row_group(group))
            for table in tables(read_all(sources, settings, places, between, gathered, hosts, wanted)):
                file.add(table)
        _check(gathered, between, left)
        partial.replace(directory / SAMPLES)
        write_json(directory / MANIFEST, _added(run.manifest, gathered, places, left))
    except OSError as error:
        raise InputError(f"{directory}: cannot be written: {error.strerror or error}") from error
    finally:
        partial.unlink(missing_ok=True)
    return sum(read.kept for read in gathered.reads)


def _span_s(run: StoredRun) -> tuple[float, float]:
    """Return the start of the first phase and the end of the run, in UTC seconds."""
    starts = [seconds_of(phase["from"]) for phase in run.manifest.get("phases") or ()]
    ended = run.manifest.get("ended")
    extent = recorded.extent(run.samples)
    begin_s = min(starts) if starts else seconds_of(run.manifest["started"])
    return begin_s, seconds_of(ended) if ended else extent[1] if extent else begin_s


def _of_run(run: StoredRun, places: HostPlaces) -> HostPlaces:
    """Add the tiers, addresses and disks of the run's own farm to the user's options."""
    tiers, roles = dict(places.tiers), dict(places.roles)
    addresses: list[tuple[str, str]] = []
    for tier, its in object_at(run.manifest, "farm", "tiers").items():
        for host, facts in object_at(its, "hosts").items():
            tiers.setdefault(host, tier)
            given = [collect.get("address") for collect in (facts or {}).get("collect") or ()]
            addresses += [(host, str(address)) for address in given if address]
            for role, disk in object_at(facts, "disks").items():
                if (disk or {}).get("device"):
                    roles.setdefault((host, disk["device"]), ImportedDisk(tier, role))
    return replace(places, tiers=tiers, roles=roles, names={**address_names(addresses), **places.names})


def _series(run: StoredRun) -> set[Key]:
    connection = duckdb.connect()
    recorded.show(run.samples, connection)
    rows = connection.execute("SELECT DISTINCT host, metric, instance FROM samples").fetchall()
    return {(host, metric, instance) for host, metric, instance in rows}


def _check(gathered: Gathered, between: TimeSpan, left: set[Key]) -> None:
    """Raises InputError if the time zone of a file is unknown, or if no file covers the time of the run."""
    if gathered.series or left:
        unknown = [read.source.path for read in gathered.reads if read.found.zone_assumed]
        if unknown:
            raise InputError(
                *(
                    f"{path}: has no time zone, so it cannot be aligned with the run: give --zone, such "
                    "as --zone Europe/Berlin, --zone +02:00 or --zone UTC"
                    for path in unknown
                )
            )
        return
    begin_s, end_s = between.from_s or 0.0, between.to_s or 0.0
    raise InputError(
        *(
            f"{read.source.path}: does not cover the time of the run: it covers "
            f"{span_words(read.span_s)}, the run "
            f"{span_words((begin_s, end_s))}{_hint(read, begin_s, end_s)}"
            for read in gathered.reads
        )
    )


def _hint(read: Read, begin_s: float, end_s: float) -> str:
    """Return a hint if a shift by a time zone would make the file cover the run; otherwise ``""``."""
    if read.span_s is None:
        return ""
    first_s, last_s = read.span_s
    for shift_s in SHIFTS_S:
        if first_s + shift_s <= begin_s and last_s + shift_s >= end_s:
            hours = shift_s / 3600
            assumed = " (UTC was assumed for its times)" if read.found.zone_assumed else ""
            return (
                f"; {hours:+g} h would make it fit{assumed}: give its time zone with --zone, such as "
                "--zone Europe/Berlin or --zone +02:00"
            )
    return ""


def _added(
    manifest: dict[str, Any], gathered: Gathered, places: HostPlaces, left: set[Key]
) -> dict[str, Any]:
    """Return the manifest with the imported facts added. Facts that a host already has are not changed."""
    hosts = dict(object_at(manifest, "hosts"))
    new = inventory(gathered, places)
    for host, facts in new.items():
        own = object_at(hosts, host)
        joined = {**facts, **{key: value for key, value in own.items() if value is not None}}
        roles = object_at(own, "roles")
        placed = {role.get("device") for role in roles.values()}
        fresh = {name: role for name, role in facts["roles"].items() if role["device"] not in placed}
        joined["roles"], joined["disks"] = {**fresh, **roles}, {**facts["disks"], **object_at(own, "disks")}
        hosts[host] = joined
    lines = [*notes(gathered)]
    if left:
        lines.append(
            f"ignored {len(left):,} series of the imported files, because the run already has them, "
            f"such as {' '.join(min(left))}"
        )
    unknown = [
        *layered_disks(new, gathered, places),
        unknown_roles({host: hosts[host] for host in new if host not in object_at(manifest, "hosts")}),
        unknown_hosts(hosts, places),
    ]
    return {
        **manifest,
        "hosts": hosts,
        "imports": [*(manifest.get("imports") or ()), *(read.shown() for read in gathered.reads)],
        "warnings": [*(manifest.get("warnings") or ()), *lines, *filter(None, unknown)],
    }
