"""A run directory, read back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class StoredRun:
    """Everything a run directory holds, in memory.

    Attributes:
        directory: where it lies.
        manifest: manifest.json as a dictionary (its keys: harness/README.md, "manifest.json").
        operations: the table of ``OPERATIONS_SCHEMA``.
        samples: the table of ``SAMPLES_SCHEMA``.
        events: the lines of events.jsonl, oldest first: ``{"time": "...Z", "event": "...", ...}``.
    """

    directory: Path
    manifest: dict[str, Any]
    operations: pa.Table
    samples: pa.Table
    events: list[dict[str, Any]]
