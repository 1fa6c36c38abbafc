"""A run directory, read back; one whose controller was killed is recovered first."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pinchpoint.base.errors import InputError
from pinchpoint.store import compact, shape, write
from pinchpoint.store.coarse import step_s
from pinchpoint.store.samples import Samples, columns, in_file, missing
from pinchpoint.store.schema import (
    EVENTS,
    JOURNAL,
    MANIFEST,
    OPERATIONS,
    OPERATIONS_SCHEMA,
    RUN_SCHEMA,
    SAMPLES,
)

INCOMPLETE = (
    "incomplete: the controller ended without finishing this run (it was killed, or the machine stopped); "
    "what was measured until then is kept, at most the last second is missing"
)
STILL_RUNNING = "incomplete: this run is still going on; what is said here covers it up to now"


@dataclass(frozen=True, slots=True)
class StoredRun:
    """Everything a run directory holds; its samples may be left in their file.

    Attributes:
        directory: where it lies.
        manifest: manifest.json as a dictionary (its keys: harness/README.md, "manifest.json").
        operations: the table of ``OPERATIONS_SCHEMA``.
        samples: a table of ``SAMPLES_SCHEMA``, or of a finished run a dataset (``store/samples.py``).
        events: the lines of events.jsonl, oldest first: ``{"time": "...Z", "event": "...", ...}``.
    """

    directory: Path
    manifest: dict[str, Any]
    operations: pa.Table
    samples: Samples
    events: list[dict[str, Any]]


def open_run(directory: Path) -> StoredRun:
    """Read a run; recover it first when its controller was killed.

    Raises:
        InputError: the folder is no run, is of another schema version, or a file in it is damaged.
    """
    manifest = read_manifest(directory)
    if manifest["state"] == "running":
        if write.is_being_written(directory):
            manifest.setdefault("warnings", []).append(STILL_RUNNING)
            operations, samples = compact.tables(directory / JOURNAL, step_s(manifest, write.utc()))
            return StoredRun(directory, manifest, operations, samples, _events(directory))
        _recover(directory, manifest)
    elif (directory / JOURNAL).exists():
        # Killed in the last step: the two files are complete, only the clearing away was not.
        shutil.rmtree(directory / JOURNAL, ignore_errors=True)
    return StoredRun(
        directory,
        manifest,
        _table(directory / OPERATIONS, OPERATIONS_SCHEMA),
        in_file(directory / SAMPLES),
        _events(directory),
    )


def read_manifest(directory: Path) -> dict[str, Any]:
    """The manifest of a run directory. Raises InputError."""
    path = directory / MANIFEST
    if not directory.is_dir():
        raise InputError(f"{directory}: is no directory; give a run directory (`pinchpoint runs` lists them)")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(
            f"{directory}: holds no {MANIFEST}, so it is no run directory; `pinchpoint runs` lists runs"
        ) from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as JSON: {error}") from error
    if not isinstance(manifest, dict) or manifest.get("schema") != RUN_SCHEMA:
        found = manifest.get("schema") if isinstance(manifest, dict) else type(manifest).__name__
        raise InputError(f"{path}: schema: found {found!r}; this version of Pinchpoint reads {RUN_SCHEMA!r}")
    if manifest.get("state") not in ("running", "finished", "interrupted"):
        raise InputError(
            f"{path}: state: found {manifest.get('state')!r}; allowed: running, finished, interrupted"
        )
    if not isinstance(manifest.get("started"), str):
        raise InputError(f"{path}: started: missing, or no time; this is not as Pinchpoint wrote it")
    wrong = list(shape.faults(manifest))
    if wrong:
        told = "\n".join(f"{path}: {each}" for each in wrong)
        raise InputError(f"{told}\n{path}: this is not as Pinchpoint wrote it; copy the run directory anew")
    return manifest


def _recover(directory: Path, manifest: dict[str, Any]) -> None:
    last_ns = compact.last_ns(directory / JOURNAL)
    ended = write.utc(last_ns) if last_ns else manifest["started"]
    for phase in manifest.get("phases", []):
        phase["to"] = phase["to"] or ended
    manifest.setdefault("warnings", []).append(INCOMPLETE)
    try:
        write.finish(directory, manifest, "interrupted", ended)
    except OSError as error:
        raise InputError(
            f"{directory}: cannot be recovered: {error}; make it writable and try again"
        ) from error


def _events(directory: Path) -> list[dict[str, Any]]:
    try:
        text = (directory / EVENTS).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return []
    events = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            event = json.loads(line)
        except ValueError as error:
            if number == text.count("\n") + 1:  # cut off by a kill: the one line that may be half
                break
            raise InputError(f"{directory / EVENTS}:{number}: is no JSON: {error}") from error
        if not isinstance(event, dict):
            raise InputError(f"{directory / EVENTS}:{number}: is no event: found {line[:60]!r}")
        events.append(event)
    return events


def _table(path: Path, schema: pa.Schema) -> pa.Table:
    try:
        found = pq.read_schema(path)
        if not found.equals(schema):  # what is missing would be read as null, and no row be counted
            raise InputError(f"{path}: cannot be read: {columns(found, schema)}")
        return pq.read_table(path, schema=schema, page_checksum_verification=True)
    except FileNotFoundError as error:
        raise missing(path) from error
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
