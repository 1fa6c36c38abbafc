"""Lists the known exporters, with the metric of each of their series."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pinchpoint_collectors.exporters.means import CoreSeconds, Exporter, SeriesMeans

_PAGE_BYTES = 4096

_READS, _WRITES = "node_disk_reads_completed_total", "node_disk_writes_completed_total"
_FLUSHES = "node_disk_flush_requests_total"

NODE = Exporter(
    name="node_exporter",
    system="Linux",
    means={
        _READS: SeriesMeans("disk.reads_per_s", "device"),
        _WRITES: SeriesMeans("disk.writes_per_s", "device"),
        _FLUSHES: SeriesMeans("disk.flushes_per_s", "device"),
        "node_disk_read_bytes_total": SeriesMeans("disk.read_bytes_per_s", "device"),
        "node_disk_written_bytes_total": SeriesMeans("disk.write_bytes_per_s", "device"),
        "node_disk_read_time_seconds_total": SeriesMeans(
            "disk.read_latency_s", "device", "latency", per=_READS
        ),
        "node_disk_write_time_seconds_total": SeriesMeans(
            "disk.write_latency_s", "device", "latency", per=_WRITES
        ),
        "node_disk_flush_requests_time_seconds_total": SeriesMeans(
            "disk.flush_latency_s", "device", "latency", per=_FLUSHES
        ),
        "node_disk_io_time_weighted_seconds_total": SeriesMeans("disk.outstanding", "device"),
        "node_disk_io_time_seconds_total": SeriesMeans("disk.busy_ratio", "device"),
        "node_memory_MemAvailable_bytes": SeriesMeans("mem.available_bytes", kind="gauge"),
        "node_vmstat_pswpin": SeriesMeans("mem.paged_in_bytes_per_s", scale=_PAGE_BYTES),
        "node_vmstat_pswpout": SeriesMeans("mem.paged_out_bytes_per_s", scale=_PAGE_BYTES),
        "node_vmstat_pgmajfault": SeriesMeans("mem.major_faults_per_s"),
        "node_procs_running": SeriesMeans("cpu.run_queue", kind="gauge"),
        "node_procs_blocked": SeriesMeans("cpu.blocked_threads", kind="gauge"),
        "node_network_receive_bytes_total": SeriesMeans("net.received_bytes_per_s", "device"),
        "node_network_transmit_bytes_total": SeriesMeans("net.sent_bytes_per_s", "device"),
        "node_network_receive_errs_total": SeriesMeans(
            "net.errors_per_s", "device", plus="node_network_transmit_errs_total"
        ),
        "node_network_receive_drop_total": SeriesMeans(
            "net.drops_per_s", "device", plus="node_network_transmit_drop_total"
        ),
        "node_netstat_Tcp_RetransSegs": SeriesMeans("net.retransmits_per_s"),
        "node_netstat_Tcp_OutSegs": SeriesMeans("net.segments_sent_per_s"),
        "node_network_speed_bytes": SeriesMeans("net.speed_bytes_per_s", "device", "gauge"),
        "node_pressure_cpu_waiting_seconds_total": SeriesMeans("pressure.cpu_ratio"),
        "node_pressure_io_waiting_seconds_total": SeriesMeans("pressure.io_ratio"),
        "node_pressure_memory_waiting_seconds_total": SeriesMeans("pressure.memory_ratio"),
    },
    cpu=CoreSeconds(
        "node_cpu_seconds_total", "cpu", shares={"iowait": "cpu.wait_ratio", "steal": "cpu.steal_ratio"}
    ),
    memory=("node_memory_MemTotal_bytes",),
    available="node_memory_MemAvailable_bytes",
    disks=_READS,
)


_DISK = "windows_logical_disk"

WINDOWS = Exporter(
    name="windows_exporter",
    system="Windows",
    means={
        f"{_DISK}_reads_total": SeriesMeans("disk.reads_per_s", "volume"),
        f"{_DISK}_writes_total": SeriesMeans("disk.writes_per_s", "volume"),
        f"{_DISK}_read_bytes_total": SeriesMeans("disk.read_bytes_per_s", "volume"),
        f"{_DISK}_write_bytes_total": SeriesMeans("disk.write_bytes_per_s", "volume"),
        f"{_DISK}_read_latency_seconds_total": SeriesMeans(
            "disk.read_latency_s", "volume", "latency", per=f"{_DISK}_reads_total"
        ),
        f"{_DISK}_write_latency_seconds_total": SeriesMeans(
            "disk.write_latency_s", "volume", "latency", per=f"{_DISK}_writes_total"
        ),
        f"{_DISK}_requests_queued": SeriesMeans("disk.outstanding", "volume", "gauge"),
        f"{_DISK}_idle_seconds_total": SeriesMeans("disk.busy_ratio", "volume", "idle"),
        "windows_memory_available_bytes": SeriesMeans("mem.available_bytes", kind="gauge"),
        "windows_memory_swap_pages_read_total": SeriesMeans("mem.paged_in_bytes_per_s", scale=_PAGE_BYTES),
        "windows_memory_swap_pages_written_total": SeriesMeans(
            "mem.paged_out_bytes_per_s", scale=_PAGE_BYTES
        ),
        "windows_system_processor_queue_length": SeriesMeans("cpu.waiting_threads", kind="gauge"),
        "windows_net_bytes_received_total": SeriesMeans("net.received_bytes_per_s", "nic"),
        "windows_net_bytes_sent_total": SeriesMeans("net.sent_bytes_per_s", "nic"),
        "windows_net_packets_received_errors_total": SeriesMeans(
            "net.errors_per_s", "nic", plus="windows_net_packets_outbound_errors_total"
        ),
        "windows_net_packets_received_discarded_total": SeriesMeans(
            "net.drops_per_s", "nic", plus="windows_net_packets_outbound_discarded_total"
        ),
        "windows_net_current_bandwidth_bytes": SeriesMeans("net.speed_bytes_per_s", "nic", "gauge"),
    },
    # Privileged time includes interrupts and deferred procedure calls.
    cpu=CoreSeconds("windows_cpu_time_total", "core", modes=frozenset({"idle", "user", "privileged"})),
    memory=("windows_memory_physical_total_bytes", "windows_cs_physical_memory_bytes"),
    available="windows_memory_available_bytes",
    disks=f"{_DISK}_reads_total",
)


EXPORTERS: tuple[Exporter, ...] = (NODE, WINDOWS)


_MS = 0.001
_OLDER: Mapping[str, tuple[str, float]] = {
    "node_cpu": (NODE.cpu.name, 1.0),
    "node_disk_bytes_read": ("node_disk_read_bytes_total", 1.0),
    "node_disk_bytes_written": ("node_disk_written_bytes_total", 1.0),
    "node_disk_io_time_weighted": ("node_disk_io_time_weighted_seconds_total", _MS),
    "windows_os_physical_memory_free_bytes": (WINDOWS.available, 1.0),
    "windows_memory_physical_free_bytes": (WINDOWS.available, 1.0),
    **{name.replace("_seconds_total", "_ms"): (name, _MS) for name in NODE.means if "_seconds_total" in name},
    **{name.removesuffix("_total"): (name, 1.0) for name in NODE.names if "_seconds" not in name},
    **{name.removesuffix("_bytes"): (name, 1.0) for name in NODE.names if name.startswith("node_memory")},
}
"""Names before node_exporter 0.16 and of windows_exporter -> the current name, and the unit of the old
one."""


def present(name: str) -> tuple[str, float]:
    """Return the current name of a series, and the factor to its unit.

    wmi_exporter is an older windows_exporter.
    """
    plain = f"windows_{name.removeprefix('wmi_')}" if name.startswith("wmi_") else name
    return _OLDER.get(plain, (plain, 1.0))


def whose(names: Collection[str]) -> Exporter | None:
    """Return the exporter of most of these series; None if no exporter is known."""
    counts = {each.name: len(each.names & set(names)) for each in EXPORTERS}
    best = max(EXPORTERS, key=lambda each: counts[each.name])
    return best if counts[best.name] else None
