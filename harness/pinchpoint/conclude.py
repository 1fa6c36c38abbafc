"""From a run directory to its verdict and reports."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

from pinchpoint.analysis import Verdict, analyse
from pinchpoint.analysis.kept import Kept
from pinchpoint.analysis.verdict import SCHEMA
from pinchpoint.base.errors import InputError
from pinchpoint.store import document
from pinchpoint.store.read import StoredRun, open_run
from pinchpoint.store.schema import VERDICT
from pinchpoint.store.write import what_is_kept, write_json

_MAY_NOT = (errno.EACCES, errno.EPERM, errno.EROFS)
"""A run of somebody else's, or on a medium that is read only."""


def verdict_of(directory: Path) -> tuple[StoredRun, Verdict]:
    """Analyse a run anew and keep the verdict beside it, where we may write there.

    That on a run which is still going on is not kept: it would be shown for the one on the whole run.

    Raises:
        InputError: the folder is no run, or damaged.
    """
    run = open_run(directory)
    verdict = analyse(run)
    if run.manifest["state"] == "running":  # and alive: of one that was killed this has been mended
        return run, verdict
    try:
        write_json(directory / VERDICT, verdict.to_json())
    except OSError as error:
        if error.errno in _MAY_NOT:
            return run, verdict
        raise InputError(f"{directory / VERDICT}: cannot be written: {error.strerror}") from error
    write_probes(run)
    return run, verdict


def write_probes(run: StoredRun) -> None:
    """The probes that were scenarios of the plan, judged in folders of their own. Raises InputError."""
    if not any(event.get("event") in ("probed", "probe_failed") for event in run.events):
        return
    from pinchpoint.probe import in_run  # noqa: PLC0415 -- its charts take a second, and most runs probe nothing

    try:
        in_run.write_probes(run)
    except OSError as error:
        raise InputError(f"{run.directory}: cannot be written: {error.strerror}") from error


def cut_off(directory: Path, error: InputError) -> str:
    """Why a run that has just been measured came to no verdict or report, and what of it is kept."""
    cause = error.__cause__ if isinstance(error.__cause__, OSError) else None
    why = str(error) if directory.is_dir() else f"{directory}: the folder is gone"
    return f"{why}. {what_is_kept(directory, cause)}"


def verdict_content(directory: Path) -> dict[str, Any]:
    """Of the verdict that lies beside a run what a history needs; only where there is none it is reached now.

    Raises:
        InputError: the folder is no run, or damaged.
    """
    path = directory / VERDICT
    again = f"`pinchpoint analyse {directory}` writes it anew"
    try:
        content: dict[str, Any] = document.read(path, Kept, SCHEMA, again)
    except FileNotFoundError:
        return verdict_of(directory)[1].to_json()
    return content


def write_reports(run: StoredRun, verdict: dict[str, Any], formats: list[str], out: Path) -> list[Path]:
    """Write the reports into a folder; their paths. Raises InputError."""
    from pinchpoint.report import registry  # noqa: PLC0415 -- charts take a second, and a verdict needs none

    try:
        out.mkdir(parents=True, exist_ok=True)
        return [registry.write(run, verdict, name, out) for name in formats]
    except OSError as error:
        raise InputError(
            f"{out}: cannot be written: {error.strerror}; give another folder with --out"
        ) from error
