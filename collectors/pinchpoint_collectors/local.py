"""Kind ``local``: this machine, on Linux read from /proc and /sys, once for all hosts that are really it."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.linux import roles
from pinchpoint_collectors.linux.cgroups import CpuCaps
from pinchpoint_collectors.linux.data_io import DataIo, verify_data_io
from pinchpoint_collectors.linux.disks import Disks, Place
from pinchpoint_collectors.linux.files import read_text
from pinchpoint_collectors.linux.inventory import interfaces, machine_facts, usable_cores
from pinchpoint_collectors.linux.memory_caps import MemoryCaps
from pinchpoint_collectors.linux.processes import ProcessTable, SinglesHere
from pinchpoint_collectors.linux.sources import machine_sources
from pinchpoint_collectors.linux.tiers import Tier
from pinchpoint_collectors.proc import mountinfo
from pinchpoint_collectors.proc.process import Process, children
from pinchpoint_collectors.record import Collector, NotMeasured, Sample, Watch
from pinchpoint_collectors.tier_option import tier_processes
from pinchpoint_collectors.windows import local as windows


class LocalKind:
    """The kind ``local`` of farm.yaml.

    Its options there: ``process`` (a name or a list of names) or ``port`` (the server listens on it) say
    which processes are the tier's. ``verify: true`` is none of them: only who made a folder may have it
    written to, so the harness sets it in ``Watch.options`` for folders of the embedded farm.
    """

    name = "local"
    options = frozenset({"process", "port"})
    public = options

    def machine(self, _watch: Watch) -> str:
        """All local watches are about this machine."""
        return "this machine"

    def check_options(self, watch: Watch) -> None:
        """See ``record.Choosy``."""
        tier_processes(watch)

    def connect(self, watches: Sequence[Watch]) -> Collector:
        """Resolve disks and find processes. Raises ``CollectorError`` for a disk or option that is wrong."""
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
    """Watches this machine under the names of all its hosts: one reading, fanned out."""

    def __init__(self, watches: Sequence[Watch]) -> None:
        self._watches = tuple(watches)
        self._disks = Disks(mountinfo.parse(read_text("/proc/self/mountinfo")))
        self._places = {watch.host: roles.places(self._disks, watch) for watch in watches}
        tried: dict[tuple[str, str], DataIo] = {}
        self._data_io = {watch.host: _verify(watch, self._places[watch.host], tried) for watch in watches}
        self._devices = roles.devices(self._disks, self._places)
        self._speeds = interfaces()
        sources = machine_sources(
            usable_cores(),
            roles.counted(self._disks, self._devices),
            self._flushes_are_writes(),
            self._speeds,
            os.sysconf("SC_PAGE_SIZE"),
        )
        self._missing = {source: missing for source in sources if (missing := source.probe())}
        self._sources = [source for source in sources if source not in self._missing]
        self._table = ProcessTable()
        self._table_before: dict[int, Process] | None = None
        self._table_ns = 0
        caps, memory_caps, singles = CpuCaps(), MemoryCaps(), SinglesHere()
        self._tiers = {
            watch.host: Tier(watch.tier, processes, caps, memory_caps, singles)
            for watch in watches
            if (processes := tier_processes(watch)) is not None
        }

    def read(self) -> Sequence[Sample]:
        """One reading of everything. See ``record.Collector``."""
        samples: list[Sample] = []
        for source in self._sources:
            reading = source.read()
            for watch in self._watches:
                samples += [
                    Sample(reading.time_ns, reading.interval_s, watch.host, *value)
                    for value in reading.values
                ]
        if self._tiers:
            samples += self._read_tiers()
        return samples

    def inventory(self) -> Mapping[str, Mapping[str, Any]]:
        """Facts about each host. See collectors/README.md, "Inventory"."""
        machine = machine_facts()
        disks = {device: self._disks.facts(device) for device in self._devices}
        return {watch.host: self._host_facts(watch, machine, disks) for watch in self._watches}

    def close(self) -> None:
        """Give back the files. Safe to call twice."""
        for source in self._sources:
            source.close()

    def _read_tiers(self) -> Iterator[Sample]:
        """CPU and memory of the tiers, from one look at all processes."""
        time_ns, now_ns = time.time_ns(), time.monotonic_ns()
        table = self._table.read()
        by_parent = children(table.values())
        before, self._table_before = self._table_before, table
        interval_s = 0.0 if before is None else (now_ns - self._table_ns) / 1e9
        self._table_ns = now_ns
        for host, tier in self._tiers.items():
            for value in tier.read(table, by_parent, before, interval_s):
                yield Sample(time_ns, interval_s, host, *value)

    def _flushes_are_writes(self) -> set[str]:
        """Devices on which every role that was tried out said so."""
        answers: dict[str, set[str]] = {}
        for host, places in self._places.items():
            for role, place in places.items():
                answer = self._data_io[host].get(role)
                if place.device is not None and answer is not None:
                    answers.setdefault(place.device, set()).add(answer.counted)
        return {device for device, counted in answers.items() if counted == {"writes-flushes"}}

    def _host_facts(
        self, watch: Watch, machine: Mapping[str, Any], disks: Mapping[str, Any]
    ) -> dict[str, Any]:
        tier = self._tiers.get(watch.host)
        if tier is not None:
            tier.find(self._table.read())
        places = self._places[watch.host]
        return {
            "tier": watch.tier,
            **machine,
            "tier_cores": (tier.cores() or None) if tier else None,
            "tier_cap_cores": tier.cap_cores() if tier else None,
            "tier_cap_bytes": tier.cap_bytes() if tier else None,
            "disks": disks,
            "roles": {
                role: roles.role_facts(place, self._data_io[watch.host].get(role))
                for role, place in places.items()
            },
            "not_measured": [asdict(missing) for missing in self._not_measured(watch, tier)],
        }

    def _not_measured(self, watch: Watch, tier: Tier | None) -> Iterable[NotMeasured]:
        yield from self._missing.values()
        yield from roles.not_measured(self._places[watch.host], self._speeds)
        yield from roles.not_counted(self._disks, self._devices)
        missing = tier.missing() if tier else None
        if missing is not None:
            yield NotMeasured("cpu.busy_ratio", f"tier:{watch.tier}", missing.why, missing.remedy)


def _verify(
    watch: Watch, places: Mapping[str, Place], tried: dict[tuple[str, str], DataIo]
) -> dict[str, DataIo]:
    """What counts as a write, by role, where we may try it; each file system once (kept in ``tried``)."""
    answers = {}
    for role, place in places.items():
        folder = Path(place.given)
        if (
            not watch.options.get("verify")
            or place.device is None
            or place.mount is None
            or not folder.is_dir()
        ):
            continue
        where = (place.device, place.mount.mount_point)
        if where not in tried:
            tried[where] = verify_data_io(folder, place.device)
        answers[role] = tried[where]
    return answers
