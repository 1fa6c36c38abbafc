"""Collects facts about a Windows machine for the inventory, from the script's first lines and its classes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pinchpoint_collectors.common.powershell import Line
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import NotMeasured, Watch
from pinchpoint_collectors.windows.disks import Storage, WindowsPlace, is_watched
from pinchpoint_collectors.windows.reading import CounterClass
from pinchpoint_collectors.windows.script import CounterObject

_KIB, _MIB = 1024, 1024**2
_VIRTUAL = (
    ("VMware", ""),
    ("Xen", ""),
    ("QEMU", ""),
    ("Red Hat", ""),
    ("innotek GmbH", "VirtualBox"),
    ("Microsoft Corporation", "Virtual WindowsMachine"),
    ("Amazon EC2", ""),
    ("Google", ""),
    ("Nutanix", ""),
    ("oVirt", ""),
)
"""Makers and models of virtual machines. A hypervisor alone is no sign of one, because Windows itself may run
on its own hypervisor (parent of Hyper-V, virtualisation-based security)."""

NOT_OF_WINDOWS = (
    NotMeasured("cpu.steal_ratio", "", "Windows does not report what its hypervisor keeps from it", None),
    NotMeasured("cpu.wait_ratio", "", "Windows has no such time", None),
    NotMeasured("cpu.run_queue", "", "Windows counts those that wait: cpu.waiting_threads", None),
    NotMeasured("disk.flush*", "", "Windows does not count flushes", None),
    NotMeasured("pressure.*", "", "Windows has no such figures", None),
)

REBUILD = (
    "rebuild them on that machine as an administrator: lodctr /R, then winmgmt /resyncperf; a user who is no "
    "administrator must be a member of Performance Monitor Users"
)
_REMEDIES: Mapping[str, tuple[str, str]] = {
    "volumes": ("roles' file systems", "ask as a user who may (an administrator)"),
    "disks": ("disks' models", "ask as a user who may (an administrator)"),
    "caches": ("disks' write caches", "none before Windows Server 2019; else ask as an administrator"),
    "sql_servers": ("SQL Server's version", "let the user read the registry's key of SQL Server"),
    "cloud": ("region and machine type", "allow the instance metadata service; or declare them in farm.yaml"),
    "host": ("the machine's facts", "ask as a user who may use WMI (Remote Management Users)"),
}


@dataclass(slots=True)
class WindowsMachine:
    """A machine as described by the first lines of the script.

    Attributes:
        said: line ``host``; empty if it is missing.
        storage: disks of the machine.
        sql_servers: lines ``sql_server``.
        cloud: line ``cloud``; empty if the machine is not in a cloud.
        unknown: missing fact -> reason.
    """

    said: Line = field(default_factory=dict)
    storage: Storage = field(default_factory=Storage)
    sql_servers: list[Line] = field(default_factory=list)
    cloud: Line = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)

    def take(self, line: Line) -> None:
        """Process one line of the script."""
        kind = line["kind"]
        if kind == "host":
            self.said = line
        elif kind == "sql_server":
            self.sql_servers.append(line)
        elif kind == "cloud":
            self.cloud = line
        elif kind == "unknown":
            self.unknown[str(line.get("what"))] = str(line.get("why"))
        else:
            self.storage.take(line)

    @property
    def memory_bytes(self) -> int | None:
        """Return the memory that Windows may use in bytes; None if unknown."""
        kib = self.said.get("memory_kib")
        return int(kib) * _KIB if kib else None

    @property
    def cores(self) -> int | None:
        """Return the number of logical processors; None if unknown."""
        cores = self.said.get("cores")
        return int(cores) if cores else None

    def facts(self) -> dict[str, Any]:
        """Return the facts that are equal for all hosts on this machine (docs/metrics.md, "Inventory")."""
        answer, cores = self.said, self.cores
        paging = answer.get("paging_mib")
        return {
            "machine_id": f"{answer['uuid']} {answer['hostname']}" if answer.get("uuid") else None,
            "hostname": answer.get("hostname"),
            "cpu_model": _words(answer.get("cpu_model")),
            "cores": cores,
            "usable_cores": list(range(cores)) if cores else [],
            "memory_bytes": self.memory_bytes,
            "swap_bytes": None if paging is None else int(paging) * _MIB,
            "kernel": answer.get("kernel"),
            "os": _words(answer.get("os")),
            "virtualisation": self._virtualisation(),
            "clock_source": None,
            "sql_servers": [
                {
                    **{name: one.get(name) for name in ("instance", "version", "edition")},
                    **{name: one[name] for name in ("data", "log", "tempdb") if one.get(name)},
                }
                for one in self.sql_servers
            ],
            **{name: self.cloud[name] for name in ("region", "zone", "machine_type") if self.cloud.get(name)},
        }

    def host(
        self, tier: str, places: Mapping[str, WindowsPlace], watched: Collection[str | None]
    ) -> dict[str, Any]:
        """Return the inventory of one host, except for metrics that are not measured.

        Args:
            tier: tier of the host.
            places: role -> device.
            watched: volumes with a role of any host.
        """
        storage = self.storage
        devices = [*storage.physical, *(one for one in storage.logical if is_watched(one, watched))]
        return {
            "tier": tier,
            **self.facts(),
            "tier_cores": None,
            "tier_cap_cores": None,
            "tier_cap_bytes": None,
            "disks": {device: storage.facts(device) for device in devices},
            "roles": {role: self.role(place) for role, place in places.items()},
        }

    def role(self, place: WindowsPlace) -> dict[str, Any]:
        """Return the facts of a disk role. Windows counts only writes with data as writes, and no flushes."""
        volume = self.storage.volumes.get(place.volume or "", {})
        return {
            "given": place.given,
            "device": place.device,
            "mount_point": place.mount_point,
            "file_system": volume.get("file_system"),
            "allocation_unit_bytes": volume.get("block_bytes"),
            "mount_options": None,
            "data_io": "kernel",
            "why": place.why,
        }

    def _virtualisation(self) -> str | None:
        maker, model = (str(self.said.get(key) or "") for key in ("manufacturer", "model"))
        virtual = any(maker.startswith(name) and kind in model for name, kind in _VIRTUAL)
        return f"{maker} {model}".strip() if virtual else None


def not_measured(
    machine: WindowsMachine,
    wanted: Iterable[CounterObject],
    classes: Sequence[CounterClass],
    places: Collection[tuple[str, WindowsPlace]],
) -> Iterator[dict[str, Any]]:
    """Return all metrics that this machine does not provide, with reason and remedy.

    Args:
        machine: the machine.
        wanted: classes that were requested.
        classes: requested classes that the machine has.
        places: role and device of a host.
    """
    yield from (asdict(one) for one in (*NOT_OF_WINDOWS, *_missing(wanted, classes)))
    for what, why in machine.unknown.items():
        name, remedy = _REMEDIES.get(what, (what, "see what the machine says"))
        yield asdict(NotMeasured(name, "", why, remedy))
    for role, place in places:
        if place.device is None:
            remedy = "correct `device:` (a letter, as L:) or `path:` in farm.yaml"
            yield asdict(NotMeasured("disk.*", role, f"{place.given}: {place.why}", remedy))


def _missing(wanted: Iterable[CounterObject], classes: Sequence[CounterClass]) -> Iterator[NotMeasured]:
    result = {one.wanted.object: one for one in classes}
    for asked in wanted:
        counted = result.get(asked.object)
        if counted is None and asked.needed:
            why = (
                f"Windows has no counters of {asked.object}: they are damaged, or this user may not see them"
            )
            for metric in sorted({means.metric for means in asked.counters.values()}):
                yield NotMeasured(metric, "", why, REBUILD)
        elif counted is not None:
            yield from _missing_of(counted)


def _missing_of(counted: CounterClass) -> Iterator[NotMeasured]:
    used = {means.metric for _, means in counted.counters}
    for metric in sorted({means.metric for means in counted.wanted.counters.values()} - used):
        odd = [
            f"{name} is of type {kind or 'none'}"
            for name, kind in counted.unknown.items()
            if name in counted.wanted.counters and counted.wanted.counters[name].metric == metric
        ]
        why = f"{counted.name}: " + (
            f"{odd[0]}, which is not understood" if odd else "it has no such counter"
        )
        yield NotMeasured(metric, counted.sql_instance or "", why, None if odd else REBUILD)


def role_places(watch: Watch, storage: Storage, where: str) -> dict[str, WindowsPlace]:
    """Return role -> device of one host.

    Raises:
        CollectorError: Windows has no counters for the disk. If it counts no disk at all, the disk is not
            measured.
    """
    places = {role: storage.place(given) for role, given in watch.disks.items()}
    for role, place in places.items():
        if place.device is None and storage.logical:
            raise CollectorError(
                f"{where}: host {watch.host!r}, role {role!r}: {place.why}; correct `device:` (a letter, as "
                "L:) or `path:`. A drive whose root the user may not read has no counters for that user"
            )
    return places


def _words(text: Any) -> str | None:
    """Return the name of a processor without repeated spaces."""
    return " ".join(str(text).split()) if text else None
