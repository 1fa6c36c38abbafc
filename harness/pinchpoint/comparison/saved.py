"""A comparison's directory: comparison.json and its reports; everything else is read from there alone."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pinchpoint.base.errors import InputError
from pinchpoint.comparison.comparison import SCHEMA, Comparison
from pinchpoint.comparison.sides import Side
from pinchpoint.report import registry
from pinchpoint.store.write import free_path, write_json

COMPARISON = "comparison.json"
_SINCE = ("cost", "metrics_by", "gains")
"""Keys that comparisons did not always have."""


def directory_for(parent: Path, comparison: Comparison) -> Path:
    """A directory's path that is not taken: ``comparison-dev-prod-20260101T000000Z``."""
    names = "-".join(_slug(side) for side in comparison.sides)
    return free_path(parent, f"comparison-{names}")


def beside(base: Sequence[Path]) -> Path:
    """The folder that holds the first run of the base."""
    return base[0].absolute().parent


def save(comparison: Comparison, directory: Path) -> Path:
    """Make the directory and write comparison.json into it; its path. Raises InputError."""
    path = directory / COMPARISON
    try:
        directory.mkdir(parents=True)
        write_json(path, comparison.to_json())
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written: {error.strerror}; give another folder with --out"
        ) from error
    return path


def write_reports(content: Mapping[str, Any], formats: Sequence[str], out: Path) -> list[Path]:
    """Write a comparison's reports into a folder; their paths. Raises InputError."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        return [registry.write_comparison(content, name, out) for name in formats]
    except OSError as error:
        raise InputError(
            f"{out}: cannot be written: {error.strerror}; give another folder with --out"
        ) from error


def is_comparison(directory: Path) -> bool:
    """Whether a directory holds a comparison rather than a run."""
    return (directory / COMPARISON).exists()


def load(directory: Path) -> dict[str, Any]:
    """comparison.json's content. Raises InputError."""
    path = directory / COMPARISON
    again = "; `pinchpoint compare` writes it anew from the runs"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as JSON: {error}{again}") from error
    found = content.get("schema") if isinstance(content, dict) else type(content).__name__
    if found != SCHEMA:
        raise InputError(
            f"{path}: schema: found {found!r}; this version of Pinchpoint reads {SCHEMA!r}{again}"
        )
    missing = [key for key in _SINCE if key not in content]
    if missing:
        raise InputError(f"{path}: holds no {missing[0]}, so it was written by an older version{again}")
    result: dict[str, Any] = content
    return result


def _slug(side: Side) -> str:
    """The side's farm as a part of a file's name."""
    return re.sub(r"[^A-Za-z0-9_.]+", "-", side.label.split(" (")[0]).strip("-.") or "unnamed"
