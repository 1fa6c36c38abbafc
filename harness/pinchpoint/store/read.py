"""Reads a run directory, and recovers a run whose controller was killed."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic_core import from_json

from pinchpoint.base.errors import InputError
from pinchpoint.store import compact, document, forms, rows, write
from pinchpoint.store.coarse import step_s
from pinchpoint.store.samples import Samples, in_file
from pinchpoint.store.schema import (
    EVENTS,
    JOURNAL,
    MANIFEST,
    OPERATIONS,
    OPERATIONS_SCHEMA,
    RUN_SCHEMA,
    SAMPLES,
)
from pinchpoint_collectors.common.times import utc

INCOMPLETE = (
    "incomplete: the controller ended without finishing this run (it was killed, or the machine stopped); "
    "what was measured until then is kept, at most the last second is missing"
)
_AGAIN = "copy the run directory anew"
STILL_RUNNING = "incomplete: this run is still going on; what is said here covers it up to now"


@dataclass(frozen=True, slots=True)
class StoredRun:
    """The content of a run directory; samples of a finished run stay in their file.

    Attributes:
        directory: the run directory.
        manifest: manifest.json as a dictionary (for its keys see docs/run-directory.md, "manifest.json").
        operations: table of ``OPERATIONS_SCHEMA``.
        samples: table of ``SAMPLES_SCHEMA``, or a dataset for a finished run (``store/samples.py``).
        events: lines of events.jsonl, oldest first: ``{"time": "...Z", "event": "...", ...}``.
    """

    directory: Path
    manifest: dict[str, Any]
    operations: pa.Table
    samples: Samples
    events: list[dict[str, Any]]


def open_run(directory: Path) -> StoredRun:
    """Read a run; if its controller was killed, recover the run first.

    Raises:
        InputError: the folder is not a run, has another schema version, or contains a damaged file.
    """
    manifest = read_manifest(directory)
    for table in (directory / OPERATIONS, directory / SAMPLES):
        if table.exists() and not table.is_file():
            raise InputError(f"{table}: is no plain file; {_AGAIN}")
    if manifest["state"] == "running":
        if write.is_being_written(directory):
            manifest.setdefault("warnings", []).append(STILL_RUNNING)
            operations, samples = compact.tables(directory / JOURNAL, step_s(manifest, utc()))
            return StoredRun(directory, manifest, operations, samples, _events(directory))
        if not (directory / JOURNAL).is_dir():  # a recovery without a journal would empty the two files
            raise InputError(
                f'{directory / MANIFEST}: state: found "running", and there is no journal; allowed of a run '
                f"without one: finished, interrupted; {_AGAIN}"
            )
        try:
            last_ns = compact.last_ns(directory / JOURNAL)
            ended = utc(last_ns) if last_ns else manifest["started"]
            for phase in manifest.get("phases", []):
                phase["to"] = phase["to"] or ended
            manifest.setdefault("warnings", []).append(INCOMPLETE)
            write.finish(directory, manifest, "interrupted", ended)
        except OSError as error:
            raise InputError(
                f"{directory}: cannot be recovered: {error}; make it readable and writable, and try again"
            ) from error
    elif (directory / JOURNAL).exists():
        # The controller was killed in its last step: the two files are complete, and only the journal is left
        # over.
        shutil.rmtree(directory / JOURNAL, ignore_errors=True)
    return StoredRun(
        directory,
        manifest,
        rows.read(directory / OPERATIONS, OPERATIONS_SCHEMA),
        in_file(directory / SAMPLES),
        _events(directory),
    )


def read_manifest(directory: Path) -> dict[str, Any]:
    """The content of manifest.json in a run directory. Raises InputError."""
    if not directory.is_dir():
        what = "is a file" if directory.is_file() else "does not exist"
        raise InputError(f"{directory}: {what}; give a run directory (`pinchpoint runs` lists them)")
    try:
        manifest: dict[str, Any] = document.read(directory / MANIFEST, forms.Manifest, RUN_SCHEMA, _AGAIN)
    except FileNotFoundError as error:
        raise InputError(
            f"{directory}: holds no {MANIFEST}, so it is no run directory; `pinchpoint runs` lists runs"
        ) from error
    return manifest


def _events(directory: Path) -> list[dict[str, Any]]:
    path = directory / EVENTS
    try:
        lines = document.content_of(path, _AGAIN).split(b"\n")
    except FileNotFoundError:
        return []
    if not _is_whole(lines[-1]):  # only the last line can be cut off by a kill
        lines.pop()
    return [
        document.parsed(line, forms.event_form, f"{path}:{number}", _AGAIN)[0]
        for number, line in enumerate(lines, 1)
    ]


def _is_whole(line: bytes) -> bool:
    try:
        from_json(line)
    except ValueError:
        return False
    return True
