"""Logs of whole days as recordings, and the verdicts on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.imports.days import between

from pinchpoint.analysis.saved import verdict_of
from pinchpoint.imports import HostPlaces, import_as_run, open_source, read_places
from pinchpoint.imports.reading import TimeSpan
from pinchpoint_collectors.imports.record import Settings

DISKS = ("SQL1:L:=sql.log", "SQL1:M:=sql.data")
BUSY_AT_NIGHT = between(1.0, 3.5, 97.0, 20.0)


def places(*disks: str, host: str | None = None, memory: tuple[str, ...] = ()) -> HostPlaces:
    return read_places(host, disks, ["APP3=search"], memory, None)


def written(folder: Path, text: str, name: str = "farm.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode("cp1252"))
    return path


def imported(
    folder: Path, text: str, where: HostPlaces | None = None, name: str = "farm.csv", **settings: Any
) -> Path:
    source = open_source(written(folder, text, name), None)
    return import_as_run([source], Settings(**settings), where or places(*DISKS), TimeSpan(), folder / "runs")


def judged(
    folder: Path, text: str, where: HostPlaces | None = None, name: str = "farm.csv"
) -> dict[str, Any]:
    _, verdict = verdict_of(imported(folder, text, where, name))
    return verdict.to_json()
