"""verdict.json beside a run: written by a new analysis, or read."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

from pinchpoint.analysis import Verdict, analyse
from pinchpoint.analysis.verdict import SCHEMA
from pinchpoint.analysis.verdict_forms import VerdictForm
from pinchpoint.base.errors import InputError
from pinchpoint.store import document
from pinchpoint.store.read import StoredRun, open_run
from pinchpoint.store.schema import VERDICT
from pinchpoint.store.write import write_json

_MAY_NOT = (errno.EACCES, errno.EPERM, errno.EROFS)
"""A run of another user, or on a read-only medium."""


def verdict_of(directory: Path) -> tuple[StoredRun, Verdict]:
    """Analyse a run anew and keep the verdict beside it, where we may write there.

    The verdict on a run in progress is not saved: it would be taken for that of the whole run.

    Raises:
        InputError: the folder is no run, or damaged.
    """
    run = open_run(directory)
    verdict = analyse(run)
    if run.manifest["state"] != "running":  # and alive: one that was killed has been mended
        try:
            write_json(directory / VERDICT, verdict.to_json())
        except OSError as error:
            if error.errno not in _MAY_NOT:
                raise InputError(f"{directory / VERDICT}: cannot be written: {error.strerror}") from error
    return run, verdict


def saved_verdict(directory: Path) -> dict[str, Any]:
    """The verdict that a history needs, analysed now if there is no verdict.json.

    Raises as ``verdict_of``.
    """
    again = f"`pinchpoint analyse {directory}` writes it anew"
    try:
        content: dict[str, Any] = document.read(directory / VERDICT, VerdictForm, SCHEMA, again)
    except FileNotFoundError:
        return verdict_of(directory)[1].to_json()
    return content
