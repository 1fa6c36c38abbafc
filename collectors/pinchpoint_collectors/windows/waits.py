"""What SQL Server's wait types wait for."""

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
"""How a wait's name begins -> what is waited for (Microsoft, "sys.dm_os_wait_stats"). Of all others most are
the server's own threads with nothing to do: they are left out of the counters."""


def named(wait_type: str) -> str | None:
    """``WRITELOG`` as ``Log:WRITELOG``; None where it is none of ``WAITS``."""
    return next((kind + wait_type for begins, kind in WAITS if wait_type.startswith(begins)), None)
