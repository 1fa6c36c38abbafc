"""Maps SQL Server's wait types to kinds of waits."""

from __future__ import annotations

WAITS = (
    ("LCK_M_", "Lock:"),
    ("WRITELOG", "Log:"),
    ("LOGBUFFER", "Log:"),
    ("LOGMGR_RESERVE_APPEND", "Log:"),
    ("LOG_RATE_GOVERNOR", "Log:"),
    ("POOL_LOG_RATE_GOVERNOR", "Log:"),
    ("INSTANCE_LOG_RATE_GOVERNOR", "Log:"),
    ("HADR_THROTTLE_LOG_RATE_", "Log:"),
    ("HADR_SYNC_COMMIT", "Replica:"),
    ("PAGEIOLATCH_", "Data:"),
    ("ASYNC_IO_COMPLETION", "Data:"),
    ("PREEMPTIVE_OS_WRITEFILEGATHER", "Data:"),
    ("IO_COMPLETION", "Temp:"),
    ("PAGELATCH_", "Latch:"),
    ("LATCH_", "Latch:"),
    ("SOS_SCHEDULER_YIELD", "CPU:"),
    ("THREADPOOL", "CPU:"),
    ("CXPACKET", "Parallel:"),
    ("CXCONSUMER", "Parallel:"),
    ("CXSYNC_", "Parallel:"),
    ("RESOURCE_SEMAPHORE", "Memory:"),
    ("CMEMTHREAD", "Memory:"),
    ("MEMORY_ALLOCATION_EXT", "Memory:"),
    ("ASYNC_NETWORK_IO", "Client:"),
    ("OLEDB", "External:"),
    ("DTC", "External:"),
)
"""Begin of a wait's name -> kind of wait (Microsoft, "sys.dm_os_wait_stats"). Most other waits are those of
the server's own idle threads, which are not counted."""


def named(wait_type: str) -> str | None:
    """Return ``WRITELOG`` as ``Log:WRITELOG``; None if the wait is not in ``WAITS``."""
    return next((kind + wait_type for begins, kind in WAITS if wait_type.startswith(begins)), None)
