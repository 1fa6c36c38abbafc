"""node_exporter: what its series become (its own documentation; from version 0.16 on)."""

from __future__ import annotations

from pinchpoint_collectors.exporters.means import Cpu, Exporter, Means

PAGE_BYTES = 4096

_READS, _WRITES = "node_disk_reads_completed_total", "node_disk_writes_completed_total"
_FLUSHES = "node_disk_flush_requests_total"

NODE = Exporter(
    name="node_exporter",
    system="Linux",
    means={
        _READS: Means("disk.reads_per_s", "device"),
        _WRITES: Means("disk.writes_per_s", "device"),
        _FLUSHES: Means("disk.flushes_per_s", "device"),
        "node_disk_read_bytes_total": Means("disk.read_bytes_per_s", "device"),
        "node_disk_written_bytes_total": Means("disk.write_bytes_per_s", "device"),
        "node_disk_read_time_seconds_total": Means("disk.read_latency_s", "device", "latency", per=_READS),
        "node_disk_write_time_seconds_total": Means("disk.write_latency_s", "device", "latency", per=_WRITES),
        "node_disk_flush_requests_time_seconds_total": Means(
            "disk.flush_latency_s", "device", "latency", per=_FLUSHES
        ),
        "node_disk_io_time_weighted_seconds_total": Means("disk.outstanding", "device"),
        "node_disk_io_time_seconds_total": Means("disk.busy_ratio", "device"),
        "node_memory_MemAvailable_bytes": Means("mem.available_bytes", kind="gauge"),
        "node_vmstat_pswpin": Means("mem.paged_in_bytes_per_s", scale=PAGE_BYTES),
        "node_vmstat_pswpout": Means("mem.paged_out_bytes_per_s", scale=PAGE_BYTES),
        "node_procs_running": Means("cpu.run_queue", kind="gauge"),
        "node_network_receive_bytes_total": Means("net.received_bytes_per_s", "device"),
        "node_network_transmit_bytes_total": Means("net.sent_bytes_per_s", "device"),
        "node_network_receive_errs_total": Means(
            "net.errors_per_s", "device", plus="node_network_transmit_errs_total"
        ),
        "node_network_speed_bytes": Means("net.speed_bytes_per_s", "device", "gauge"),
        "node_pressure_cpu_waiting_seconds_total": Means("pressure.cpu_ratio"),
        "node_pressure_io_waiting_seconds_total": Means("pressure.io_ratio"),
        "node_pressure_memory_waiting_seconds_total": Means("pressure.memory_ratio"),
    },
    cpu=Cpu("node_cpu_seconds_total", "cpu", shares={"iowait": "cpu.wait_ratio", "steal": "cpu.steal_ratio"}),
    memory=("node_memory_MemTotal_bytes",),
    available="node_memory_MemAvailable_bytes",
    disks=_READS,
)
