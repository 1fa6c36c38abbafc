"""Reads and writes verdict.json beside a run."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import platformdirs

from pinchpoint.analysis import Verdict, analyse
from pinchpoint.analysis.verdict import SCHEMA
from pinchpoint.analysis.verdict_forms import VerdictForm
from pinchpoint.base.errors import InputError
from pinchpoint.store import document
from pinchpoint.store.read import StoredRun, open_run
from pinchpoint.store.schema import EVENTS, MANIFEST, OPERATIONS, SAMPLES, VERDICT
from pinchpoint.store.write import write_file, write_json

_MAY_NOT = (errno.EACCES, errno.EPERM, errno.EROFS)
"""Errors for a run of another user, or on a read-only medium."""
_CODE = ("pinchpoint", "pinchpoint_collectors", "pinchpoint_infra", "pinchpoint_scenarios")
_JUDGED = (MANIFEST, OPERATIONS, SAMPLES, EVENTS)
_REMEMBERED = 200
"""Most verdicts that are remembered as up to date; the latest are kept."""


def verdict_of(directory: Path) -> tuple[StoredRun, Verdict]:
    """The run and its new verdict, which is saved beside the run if the folder is writable.

    The verdict on a run in progress is not saved, because it would be taken for that of the whole run.

    Raises:
        InputError: the folder is no run, or the run is damaged.
    """
    run = open_run(directory)
    return run, _judged(run)


def current_verdict(directory: Path) -> tuple[StoredRun, dict[str, Any]]:
    """The run with the content of verdict.json, or of a new verdict if files or code have changed.

    Raises the errors of ``verdict_of``.
    """
    run = open_run(directory)
    with suppress(OSError):
        if run.manifest["state"] != "running" and _stamp(directory) in _up_to_date():
            content: dict[str, Any] = json.loads((directory / VERDICT).read_bytes())
            return run, content
    return run, _judged(run).to_json()


def saved_verdict(directory: Path) -> dict[str, Any]:
    """The verdict of a run for a history, analysed now if there is no verdict.json.

    Raises the errors of ``verdict_of``.
    """
    again = f"`pinchpoint analyse {directory}` writes it anew"
    try:
        content: dict[str, Any] = document.read(directory / VERDICT, VerdictForm, SCHEMA, again)
    except FileNotFoundError:
        return verdict_of(directory)[1].to_json()
    return content


def _judged(run: StoredRun) -> Verdict:
    verdict = analyse(run)
    if run.manifest["state"] != "running":  # a killed run was repaired and has another state
        try:
            write_json(run.directory / VERDICT, verdict.to_json())
        except OSError as error:
            if error.errno not in _MAY_NOT:
                raise InputError(f"{run.directory / VERDICT}: cannot be written: {error.strerror}") from error
        else:
            with suppress(OSError):  # without the stamp the next call judges the run again
                _remember(_stamp(run.directory))
    return verdict


# ---- stamps of verdicts that are up to date -------------------------------------------------------


def _stamp(directory: Path) -> str:
    """A hash of a verdict, of the state of the run's files, and of the code. Raises OSError."""
    stamp = sha256((directory / VERDICT).read_bytes())
    for path in (*(directory.resolve() / name for name in _JUDGED), *_code()):
        with suppress(FileNotFoundError):  # a run may have no events, for example
            state = path.stat()
            stamp.update(os.fsencode(f"{path} {state.st_size} {state.st_mtime_ns}\n"))
    return stamp.hexdigest()


def _code() -> Iterator[Path]:
    """The files of Pinchpoint's packages."""
    for package in _CODE:
        result = find_spec(package)
        for place in (result and result.submodule_search_locations) or ():
            for folder, folders, names in os.walk(place):
                folders[:] = sorted(set(folders) - {"__pycache__"})
                yield from (Path(folder, name) for name in sorted(names))


def _up_to_date() -> list[str]:
    with suppress(FileNotFoundError):
        return _remembered().read_text(encoding="ascii", errors="replace").split()
    return []


def _remember(stamp: str) -> None:
    path = _remembered()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, "\n".join([*_up_to_date()[1 - _REMEMBERED :], stamp]))


def _remembered() -> Path:
    return platformdirs.user_cache_path("pinchpoint") / "verdicts-up-to-date"
