"""Helpers of the content tests: folders of documents as bytes."""

from __future__ import annotations

import os
from pathlib import Path


def put(root: Path, path: bytes, content: bytes) -> None:
    """Write a file below a folder; the name may have any bytes."""
    where = Path(os.fsdecode(os.fsencode(root) + b"/" + path))
    where.parent.mkdir(parents=True, exist_ok=True)
    where.write_bytes(content)


def in_folder(folder: Path) -> dict[bytes, bytes]:
    """Return every file below a folder: relative path -> content."""
    return {
        os.fsencode(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
