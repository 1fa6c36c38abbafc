"""windows_exporter: what its series become (its documentation; names of 0.13 and of 0.30 on).

Latencies are of ``..._latency_seconds_total``, the sum behind ``Avg. Disk sec/Read`` and ``/Write``;
``read_seconds_total`` is the time in which the disk was busy reading, and no latency.
"""

from __future__ import annotations

from pinchpoint_collectors.exporters.means import Cpu, Exporter, Means
from pinchpoint_collectors.imports.perfmon_counters import PAGE_BYTES

_DISK = "windows_logical_disk"

WINDOWS = Exporter(
    name="windows_exporter",
    system="Windows",
    means={
        f"{_DISK}_reads_total": Means("disk.reads_per_s", "volume"),
        f"{_DISK}_writes_total": Means("disk.writes_per_s", "volume"),
        f"{_DISK}_read_bytes_total": Means("disk.read_bytes_per_s", "volume"),
        f"{_DISK}_write_bytes_total": Means("disk.write_bytes_per_s", "volume"),
        f"{_DISK}_read_latency_seconds_total": Means(
            "disk.read_latency_s", "volume", "latency", per=f"{_DISK}_reads_total"
        ),
        f"{_DISK}_write_latency_seconds_total": Means(
            "disk.write_latency_s", "volume", "latency", per=f"{_DISK}_writes_total"
        ),
        f"{_DISK}_requests_queued": Means("disk.outstanding", "volume", "gauge"),
        f"{_DISK}_idle_seconds_total": Means("disk.busy_ratio", "volume", "idle"),
        "windows_memory_available_bytes": Means("mem.available_bytes", kind="gauge"),
        "windows_memory_swap_pages_read_total": Means("mem.paged_in_bytes_per_s", scale=PAGE_BYTES),
        "windows_memory_swap_pages_written_total": Means("mem.paged_out_bytes_per_s", scale=PAGE_BYTES),
        "windows_system_processor_queue_length": Means("cpu.waiting_threads", kind="gauge"),
        "windows_net_bytes_received_total": Means("net.received_bytes_per_s", "nic"),
        "windows_net_bytes_sent_total": Means("net.sent_bytes_per_s", "nic"),
        "windows_net_packets_received_errors_total": Means(
            "net.errors_per_s", "nic", plus="windows_net_packets_outbound_errors_total"
        ),
        "windows_net_current_bandwidth_bytes": Means("net.speed_bytes_per_s", "nic", "gauge"),
    },
    # Privileged time holds that of interrupts and of deferred procedure calls.
    cpu=Cpu("windows_cpu_time_total", "core", modes=frozenset({"idle", "user", "privileged"})),
    memory=("windows_memory_physical_total_bytes", "windows_cs_physical_memory_bytes"),
    available="windows_memory_available_bytes",
    disks=f"{_DISK}_reads_total",
)
