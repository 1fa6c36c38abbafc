"""Lists the figures that compare production with its replay: per second and per operation, never totals.

An operation on a database is a transaction that writes or a statement that reads. An operation on a store of
records is a record written or read.
"""

from __future__ import annotations

from collections.abc import Mapping

WRITES_PER_S = "writes_per_s"
READS_PER_S = "reads_per_s"
READS_PER_WRITE = "reads_per_write"
ROWS_PER_WRITE = "rows_per_write"
LOG_BYTES_PER_WRITE = "log_bytes_per_write"
PAGE_READS_PER_OPERATION = "page_reads_per_operation"
TEMP_BYTES_PER_OPERATION = "temp_bytes_per_operation"
LOG_WRITE_BYTES = "log_write_bytes"
LOG_IOS_PER_WRITE = "log_ios_per_write"
LOG_DISK_BYTES_PER_WRITE = "log_disk_bytes_per_write"
DATA_READ_BYTES = "data_read_bytes"
DATA_WRITE_BYTES = "data_write_bytes"
DATA_READS_PER_DATA_WRITE = "data_reads_per_data_write"
LOG_WRITE_LATENCY_S = "log_write_latency_s"
DATA_READ_LATENCY_S = "data_read_latency_s"
LOG_WAIT_S = "log_wait_s"
DATA_WAIT_S = "data_wait_s"
DISK_READ_BYTES = "disk_read_bytes"
DISK_WRITE_BYTES = "disk_write_bytes"
DISK_IO_BYTES = "disk_io_bytes"

RECORD_WRITES_PER_S = "record_writes_per_s"
RECORD_READS_PER_S = "record_reads_per_s"
RECORD_BASE_PER_S = "record_base_per_s"
RECORD_PEAK_PER_S = "record_peak_per_s"
RECORD_BURST_EVERY_S = "record_burst_every_s"
RECORD_READS_PER_WRITE = "record_reads_per_write"
RECORD_INSERT_RATIO = "record_insert_ratio"
RECORD_EXPIRING_RATIO = "record_expiring_ratio"
RECORD_LOG_BYTES_PER_WRITE = "record_log_bytes_per_write"
RECORD_RECEIVED_BYTES = "record_received_bytes"
RECORD_SERVER_S = "record_server_s"
RECORD_DURABLE_RATIO = "record_durable_ratio"

FIGURES: Mapping[str, str] = {
    WRITES_PER_S: "transactions that write",
    READS_PER_S: "statements that read",
    READS_PER_WRITE: "reading statements for a writing transaction",
    ROWS_PER_WRITE: "rows written by a writing transaction",
    LOG_BYTES_PER_WRITE: "bytes of the log for a writing transaction",
    PAGE_READS_PER_OPERATION: "pages read from the data files for an operation",
    TEMP_BYTES_PER_OPERATION: "temporary files for an operation",
    LOG_WRITE_BYTES: "size of a write to the log",
    LOG_IOS_PER_WRITE: "writes to the log's files for a writing transaction",
    LOG_DISK_BYTES_PER_WRITE: "bytes written to the log's files for a writing transaction",
    DATA_READ_BYTES: "size of a read from the data files",
    DATA_WRITE_BYTES: "size of a write to the data files",
    DATA_READS_PER_DATA_WRITE: "reads from the data files for a write to them",
    LOG_WRITE_LATENCY_S: "time of a write to the log, as the server waits for it",
    DATA_READ_LATENCY_S: "time of a read from the data files, as the server waits for it",
    LOG_WAIT_S: "one wait of a session for the log",
    DATA_WAIT_S: "one wait of a session for a page of the data files",
    DISK_READ_BYTES: "size of a read, all disks",
    DISK_WRITE_BYTES: "size of a write, all disks",
    DISK_IO_BYTES: "size of a read or write, all disks",
    RECORD_WRITES_PER_S: "records written",
    RECORD_READS_PER_S: "records read",
    RECORD_BASE_PER_S: "operations on records between bursts",
    RECORD_PEAK_PER_S: "operations on records in bursts",
    RECORD_BURST_EVERY_S: "from one burst to the next",
    RECORD_READS_PER_WRITE: "records read for a record written",
    RECORD_INSERT_RATIO: "new records, of those written",
    RECORD_EXPIRING_RATIO: "records that will expire, of those written",
    RECORD_LOG_BYTES_PER_WRITE: "bytes of the store's log for a record written",
    RECORD_RECEIVED_BYTES: "bytes sent to the store for an operation on records",
    RECORD_SERVER_S: "the server's time in commands for an operation on records",
    RECORD_DURABLE_RATIO: "acknowledged writes that are on the disk",
}
"""Name of the figure -> its meaning in words."""
