"""A comparison's directory: comparison.json and its reports; everything else is read from there alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pinchpoint.base.errors import InputError
from pinchpoint.comparison.comparison import SCHEMA, Comparison
from pinchpoint.comparison.kept import Kept
from pinchpoint.comparison.sides import Side
from pinchpoint.report import registry
from pinchpoint.store import document
from pinchpoint.store.write import free_path, write_json

COMPARISON = "comparison.json"


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
    path, again = directory / COMPARISON, "`pinchpoint compare` writes it anew from the runs"
    try:
        content: dict[str, Any] = document.read(path, Kept, SCHEMA, again)
    except FileNotFoundError as error:
        raise InputError(f"{path}: is missing; {again}") from error
    return content


def _slug(side: Side) -> str:
    """The side's farm as a part of a file's name."""
    return re.sub(r"[^A-Za-z0-9_.]+", "-", side.label.split(" (")[0]).strip("-.") or "unnamed"
