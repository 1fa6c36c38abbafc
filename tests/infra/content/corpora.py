"""What the tests of content have in common: folders of documents, by bytes."""

from __future__ import annotations

import os
from pathlib import Path


def put(root: Path, path: bytes, content: bytes) -> None:
    """A file below a folder, whatever the bytes of its name."""
    where = Path(os.fsdecode(os.fsencode(root) + b"/" + path))
    where.parent.mkdir(parents=True, exist_ok=True)
    where.write_bytes(content)


def in_folder(folder: Path) -> dict[bytes, bytes]:
    """Every file below a folder: relative path -> bytes."""
    return {
        os.fsencode(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
