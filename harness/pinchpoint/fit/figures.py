"""The figures by which production and its replay are compared: per second and per operation, never totals.

An operation is a transaction that writes, or a statement that reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

WRITES_PER_S = "writes_per_s"
READS_PER_S = "reads_per_s"
READS_PER_WRITE = "reads_per_write"
ROWS_PER_WRITE = "rows_per_write"
LOG_BYTES_PER_WRITE = "log_bytes_per_write"
PAGE_READS_PER_OPERATION = "page_reads_per_operation"
TEMP_BYTES_PER_OPERATION = "temp_bytes_per_operation"
LOG_WRITE_BYTES = "log_write_bytes"
DISK_READ_BYTES = "disk_read_bytes"
DISK_WRITE_BYTES = "disk_write_bytes"

FIGURES: Mapping[str, str] = {
    WRITES_PER_S: "transactions that write",
    READS_PER_S: "statements that read",
    READS_PER_WRITE: "reading statements for a writing transaction",
    ROWS_PER_WRITE: "rows written by a writing transaction",
    LOG_BYTES_PER_WRITE: "bytes of the log for a writing transaction",
    PAGE_READS_PER_OPERATION: "pages read from the data files for an operation",
    TEMP_BYTES_PER_OPERATION: "temporary files for an operation",
    LOG_WRITE_BYTES: "size of a write to the log",
    DISK_READ_BYTES: "size of a read, all disks",
    DISK_WRITE_BYTES: "size of a write, all disks",
}
"""Name -> what it is, for people."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of production.

    Attributes:
        value: in base units.
        origin: where it comes from, in words.
    """

    value: float
    origin: str


Figures = dict[str, Figure]
"""Name (of ``FIGURES``) -> figure; what a source does not tell is not there."""
