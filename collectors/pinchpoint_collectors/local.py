"""Collector kind ``local``: this machine, on Linux read from /proc and /sys, once for all of its hosts."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.linux import cloud
from pinchpoint_collectors.linux.data_io import verify_data_io
from pinchpoint_collectors.linux.files import HERE, ReopenedFile, read_text
from pinchpoint_collectors.linux.machine import LinuxMachine
from pinchpoint_collectors.linux.processes import LocalProcessReader, ProcessTable
from pinchpoint_collectors.linux.sources import GrowingFile
from pinchpoint_collectors.linux.tiers import Tiers
from pinchpoint_collectors.options import tier_processes
from pinchpoint_collectors.processes import Process, children
from pinchpoint_collectors.record import Collector, NotMeasured, Sample, Watch
from pinchpoint_collectors.windows import local as windows


class LocalKind:
    """Collector kind ``local`` of farm.yaml.

    Options in farm.yaml: the tier's processes are given by ``process`` (a name or a list of names), with
    ``command_line`` only those whose command line contains this text, or by ``port`` (the server listens on
    it). ``verify: true`` is not an option for users: it writes to the folder, which only its creator may
    allow, so the harness sets it in ``Watch.options`` for folders of the embedded farm.
    """

    name = "local"
    options = frozenset({"process", "command_line", "port"})
    public = options

    def machine(self, _watch: Watch) -> str:
        """Return a constant: all local watches belong to this machine."""
        return "this machine"

    def check_options(self, watch: Watch) -> None:
        tier_processes(watch)

    def connect(self, watches: Sequence[Watch]) -> Collector:
        """Resolve disks and find processes. Raises ``CollectorError`` for an invalid disk or option."""
        if platform.system() not in ("Linux", "Windows"):
            raise CollectorError(
                f"collector kind 'local' reads Linux and Windows, and this is {platform.system()}; "
                "run Pinchpoint on Linux or Windows, or leave `collect` out: the host is then not seen"
            )
        hosts = [watch.host for watch in watches]
        for host in hosts:
            if hosts.count(host) > 1:
                raise CollectorError(
                    f"host {host!r} is watched by 'local' more than once; list `local` once for a host, "
                    "and give the hosts of different tiers different names (one machine may have many)"
                )
        return windows.connect(watches) if platform.system() == "Windows" else LocalCollector(watches)


class LocalCollector:
    """Watches this machine for all its hosts: one reading, repeated under the name of each host."""

    def __init__(self, watches: Sequence[Watch]) -> None:
        self._watches = tuple(watches)
        singles = LocalProcessReader()
        wanted = {
            watch.host: (watch.tier, processes)
            for watch in watches
            if (processes := tier_processes(watch)) is not None
        }
        self._tiers = Tiers(wanted, HERE, singles)
        self._machine = LinuxMachine(
            HERE, watches, singles.page_bytes, self._tiers, _why_missing, verify_data_io
        )
        self._files = [
            (source, ReopenedFile(source.path))
            for source in self._machine.sources
            if source.path not in self._machine.missing
        ]
        self._table = ProcessTable()
        self._table_before: dict[int, Process] | None = None
        self._table_ns = 0

    def read(self) -> Sequence[Sample]:
        """Return one reading of all sources (see ``record.Collector``)."""
        samples: list[Sample] = []
        for source, file in self._files:
            try:
                text = file.read()
            except OSError as error:
                raise CollectorError(f"{source.path} can no longer be read: {error.strerror}") from error
            # Each file has a time of its own, because with a saturated CPU much time may pass between two
            # files.
            samples += self._machine.samples(source.take(text, time.time_ns(), time.monotonic_ns()))
        if self._tiers.by_host:
            samples += self._read_tiers()
        return samples

    def inventory(self) -> Mapping[str, Mapping[str, Any]]:
        """Return facts about each host (docs/metrics.md, "Inventory")."""
        if self._tiers.by_host:
            self._tiers.find(self._table.read())
        placed = cloud.from_service()
        return {watch.host: {**self._machine.facts(watch), **placed} for watch in self._watches}

    def close(self) -> None:
        """Close the files. A second call does nothing."""
        for _, file in self._files:
            file.close()

    def _read_tiers(self) -> Iterator[Sample]:
        """Yield CPU and memory of the tiers, from one reading of all processes."""
        time_ns, now_ns = time.time_ns(), time.monotonic_ns()
        table = self._table.read()
        by_parent = children(table.values())
        before, self._table_before = self._table_before, table
        interval_s = 0.0 if before is None else (now_ns - self._table_ns) / 1e9
        self._table_ns = now_ns
        for host, tier in self._tiers.by_host.items():
            for value in tier.read(table, by_parent, before, interval_s):
                yield Sample(time_ns, interval_s, host, *value)


def _why_missing(source: GrowingFile) -> NotMeasured | None:
    try:
        text = read_text(source.path)
    except OSError as error:  # EOPNOTSUPP, too: a kernel setting can disable pressure files that exist
        return source.missing(str(error.strerror))
    source.understand(text)
    return None
