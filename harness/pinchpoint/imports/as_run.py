"""Creates a run that has samples but no operations from recordings of other tools."""

from __future__ import annotations

import platform
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pinchpoint.base.errors import InputError
from pinchpoint.imports.places import HostPlaces
from pinchpoint.imports.reading import (
    NS,
    Gathered,
    TimeSpan,
    inventory,
    layered_disks,
    read_all,
    unknown_hosts,
    unknown_paths,
    unknown_roles,
)
from pinchpoint.imports.source import RecordingFile
from pinchpoint.store.compact import SampleGroups
from pinchpoint.store.schema import (
    COARSE_S,
    LONG_RUN_S,
    MANIFEST,
    OPERATIONS,
    OPERATIONS_SCHEMA,
    RUN_SCHEMA,
    SAMPLES,
    SAMPLES_SCHEMA,
)
from pinchpoint.store.write import free_path, writable, write_json
from pinchpoint_collectors.common.times import utc
from pinchpoint_collectors.imports.record import Settings
from pinchpoint_collectors.record import Sample

ROWS = 100_000


def tables(samples: Iterable[Sample]) -> Iterator[pa.Table]:
    """Yield the samples as tables of ``SAMPLES_SCHEMA``, each with at most ``ROWS`` rows."""
    waiting = iter(samples)
    while rows := list(islice(waiting, ROWS)):
        columns = zip(*rows, strict=True)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, SAMPLES_SCHEMA, strict=True)]
        yield pa.Table.from_arrays(arrays, schema=SAMPLES_SCHEMA)


LONGEST_S = 366 * 86400.0
"""Longest time range of an import, in seconds: an analysis needs memory for each step, even with few
series."""
MAX_CELLS = 30_000_000
"""Largest number of values (series x steps) of an import. An analysis keeps about 50 bytes for each value."""
_DISTRIBUTIONS = ("pinchpoint", "pinchpoint-collectors")


def import_as_run(
    sources: Sequence[RecordingFile], settings: Settings, places: HostPlaces, between: TimeSpan, out: Path
) -> Path:
    """Create a run from files of other tools.

    Args:
        sources: the files.
        settings: the user's options for the content of the files, such as the time zone.
        places: the user's options for the machines in the files.
        between: time range to import.
        out: the folder in which the run directory is made.

    Returns:
        The run directory. If the import fails, no run directory is left.

    Raises:
        InputError: a file is damaged, has no sample in the time range, or is too long to be analysed.
    """
    gathered = Gathered()
    with writable(out):
        out.mkdir(parents=True, exist_ok=True)
        making = Path(tempfile.mkdtemp(prefix=".import-", dir=out))
    try:
        with SampleGroups(making / SAMPLES) as file:
            for table in tables(read_all(sources, settings, places, between, gathered)):
                file.add(table)
        begin_s, end_s = _span(gathered, between)
        pq.write_table(OPERATIONS_SCHEMA.empty_table(), making / OPERATIONS)
        write_json(making / MANIFEST, _manifest(gathered, places, begin_s, end_s))
        making.chmod(0o755)
        return making.rename(free_path(out, sources[0].path.stem, begin_s))
    except OSError as error:
        raise InputError(
            f"{out}: cannot be written: {error.strerror or error}; free some space, or give --out"
        ) from error
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _span(gathered: Gathered, between: TimeSpan) -> tuple[float, float]:
    """Return the start and the end of the imported samples, in UTC seconds.

    Raises InputError if no sample was imported, or if the time range is too long to be analysed.
    """
    if gathered.span_s is None:
        spans = ", ".join(f"{read.source.path.name}: {span_words(read.span_s)}" for read in gathered.reads)
        raise InputError(f"--from, --to: nothing was recorded between them; the file covers {spans}")
    begin_s, end_s = gathered.span_s
    begin_s, end_s = max(begin_s, between.from_s or begin_s), min(end_s, between.to_s or end_s)
    length_s = end_s - begin_s
    if length_s > LONGEST_S:
        raise InputError(
            f"{span_words((begin_s, end_s))} is {length_s / 86400:,.0f} days; allowed: "
            f"{LONGEST_S / 86400:.0f} days at most; select a part with --from and --to"
        )
    steps = length_s / (COARSE_S if length_s > LONG_RUN_S else 1)
    if steps * len(gathered.series) > MAX_CELLS:
        hours = MAX_CELLS * COARSE_S / len(gathered.series) / 3600
        raise InputError(
            f"{span_words((begin_s, end_s))} with {len(gathered.series)} series is too much to be "
            f"analysed at once; select a part with --from and --to, {hours:.0f} hours at most"
        )
    return begin_s, end_s


def span_words(span_s: tuple[float, float] | None) -> str:
    """Return a time range as text: ``2026-11-01 10:00:00 UTC to 2026-11-01 11:00:00 UTC``."""
    if span_s is None:
        return "nothing"
    return " to ".join(datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC") for at in span_s)


def _manifest(gathered: Gathered, places: HostPlaces, begin_s: float, end_s: float) -> dict[str, Any]:
    hosts = inventory(gathered, places)
    names = [read.source.path.stem for read in gathered.reads]
    unknown = [
        *layered_disks(hosts, gathered, places),
        *unknown_paths(hosts, places),
        unknown_roles(hosts),
        unknown_hosts(hosts, places),
    ]
    return {
        "schema": RUN_SCHEMA,
        "state": "finished",
        "name": names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more",
        "seed": None,
        "started": utc(round(begin_s * NS)),
        "ended": utc(round(end_s * NS)),
        "plan": {},
        "farm": dict(places.farm) or {"name": ", ".join(hosts)},
        "endpoints": {},
        "phases": [{"name": "measure", "from": utc(round(begin_s * NS)), "to": utc(round(end_s * NS))}],
        "versions": {"python": platform.python_version(), **{name: version(name) for name in _DISTRIBUTIONS}},
        "hosts": hosts,
        "generators": [],
        "collectors": [],
        "imports": [read.shown() for read in gathered.reads],
        "content": {},
        "warnings": [*notes(gathered), *filter(None, unknown)],
    }


def notes(gathered: Gathered) -> list[str]:
    """Return the notes on all files; each note starts with the file name."""
    return [f"{read.source.path.name}: {note}" for read in gathered.reads for note in read.found.notes]
