"""Reads the samples of other tools' files and gives the samples the names of the farm's hosts."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pinchpoint.base.errors import InputError
from pinchpoint.base.objects import JsonObject
from pinchpoint.imports.places import HostPlaces, ImportedDisk, same
from pinchpoint.imports.source import RecordingFile
from pinchpoint_collectors import bounds
from pinchpoint_collectors.common import legible
from pinchpoint_collectors.common.legible import ForeignFileError
from pinchpoint_collectors.common.times import utc
from pinchpoint_collectors.imports.checked import checked
from pinchpoint_collectors.imports.record import FileFacts, Settings
from pinchpoint_collectors.record import Sample

# The functions below find virtual devices (LVM, RAID, multipath, loop), which repeat the I/O of physical
# disks. A recording does not contain the layers of devices, so the device names decide. If both layers were
# counted, one slow disk would appear as two suspects.

_WHOLE = re.compile(r"(sd|vd|xvd|hd|dasd)[a-z]+|nvme\d+n\d+|mmcblk\d+|pmem\d+|d?rbd\d+")
"""Names of physical disks on Linux."""
_NUMBERED = re.compile(r"dev(\d+)-(\d+)")
"""Name of a device in sar: the major and the minor number of the kernel (listed in its ``devices.txt``)."""
_STEP = 16
"""Minor numbers per disk of the drivers in ``_DISKS`` and virtio: the disk first, then its partitions."""
_DISKS = frozenset({8, *range(65, 72), *range(128, 136), 202})
"""Major numbers of the drivers of physical disks: sd and xvd."""
_MANY = 259
"""Major number of NVMe devices. Disks and partitions share it, and their minor numbers are assigned
dynamically."""
_GIVEN_OUT = range(234, 255)
"""Major numbers that the kernel assigns when a driver is loaded: virtio disks and device mapper use them."""
_ON_OTHERS = frozenset({7, 9})
"""Major numbers of the drivers of virtual devices: loop and md."""
_SHOWN = 5
"""Largest number of device names in a message."""


def counted_once(disks: Collection[str], named: Collection[str]) -> set[str]:
    """Return the disks of a Linux host that the analysis uses, so that each I/O is counted on one disk only.

    Args:
        disks: all disks in the files.
        named: disks with a role from the user. If one of them is a virtual device, only the named disks are
            used.
    """
    numbers = _numbers(disks)
    whole = {disk for disk in disks if _WHOLE.fullmatch(disk) or _is_disk(disk, numbers)}
    if not whole or whole == set(disks):
        return set(disks)
    return set(named) if set(named) - whole else whole


def left_out_words(host: str, left: Sequence[str]) -> str:
    """Return the warning about the devices that are not used."""
    unknown = [disk for disk in left if (number := _number(disk)) and not _is_known(number[0])]
    uncertain = f" (the number does not show whether {_shown(unknown)} does)" if unknown else ""
    return (
        f"{host}: {_shown(left)} ignored: virtual devices (loop, LVM, RAID) repeat the I/O of the disks "
        f"below{uncertain}. To use one, name every disk to use: --disk {host}:{(unknown or left)[0]}=sql.log"
    )


def _shown(names: Sequence[str]) -> str:
    return ", ".join([*names[:_SHOWN], *(["..."] if len(names) > _SHOWN else [])])


def _number(disk: str) -> tuple[int, int] | None:
    """Return the major and the minor number of a disk; None if the disk has another kind of name."""
    match = _NUMBERED.fullmatch(disk)
    return (int(match[1]), int(match[2])) if match else None


def _numbers(disks: Collection[str]) -> dict[int, set[int]]:
    """Return major number -> minor numbers of the devices."""
    numbers: dict[int, set[int]] = {}
    for disk in disks:
        if number := _number(disk):
            numbers.setdefault(number[0], set()).add(number[1])
    return numbers


def _is_disk(disk: str, numbers: dict[int, set[int]]) -> bool:
    number = _number(disk)
    if number is None:
        return False
    driver, device = number
    if driver in _GIVEN_OUT:
        # Device mapper numbers its devices consecutively. If there are several devices and all numbers are
        # multiples of 16, the devices are virtio disks.
        return len(numbers[driver]) > 1 and all(each % _STEP == 0 for each in numbers[driver])
    return driver == _MANY or (driver in _DISKS and device % _STEP == 0)


def _is_known(driver: int) -> bool:
    return driver in _DISKS or driver in _ON_OTHERS


NS = 1e9
EARLIEST_NS = 315_532_800 * 10**9
OVERLAP_S = 1.0
"""Overlap of two files that is accepted, in seconds: some recorders write whole seconds."""

_LINUX = "Linux"

Key = tuple[str, str, str]
"""Host, metric and instance of a series."""


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """A time range in UTC seconds. None as begin or end: the range is not limited there.

    A sample is in the range if the middle of its interval is in the range.
    """

    from_s: float | None = None
    to_s: float | None = None

    def has(self, sample: Sample) -> bool:
        """Return whether a sample is in the range."""
        middle_s = sample.time_ns / NS - sample.interval_s / 2
        return (self.from_s is None or middle_s >= self.from_s) and (
            self.to_s is None or middle_s < self.to_s
        )


@dataclass(slots=True)
class Read:
    """What was read from one file.

    Attributes:
        machines: host -> name of the machine in the file.
        span_s: start of the first interval and end of the last interval of all samples, in UTC seconds.
        kept: number of imported samples.
        outside: number of samples outside the time range.
        series: imported series -> begin of its first interval and end of its last interval, in UTC seconds.
    """

    source: RecordingFile
    found: FileFacts = field(default_factory=FileFacts)
    machines: dict[str, str] = field(default_factory=dict)
    span_s: tuple[float, float] | None = None
    kept: int = 0
    outside: int = 0
    series: dict[Key, tuple[float, float]] = field(default_factory=dict)

    def shown(self) -> dict[str, Any]:
        """Return the manifest's entry about the file."""
        begin_s, end_s = self.span_s or (0.0, 0.0)
        return {
            "file": self.source.path.name,
            "kind": self.source.format.name,
            "bytes": self.source.size_bytes,
            "sha256": self.source.sha256,
            "from": utc(round(begin_s * NS)),
            "to": utc(round(end_s * NS)),
            "samples": self.kept,
            "hosts": self.machines,
            "zone_assumed": self.found.zone_assumed,
            "utc_offset_s": self.found.utc_offset_s,
            "notes": list(self.found.notes),
        }


@dataclass(slots=True)
class Gathered:
    """What was read from all files together.

    Attributes:
        reads: contents of each file.
        span_s: start of the first and end of the last imported interval, in UTC seconds.
        series: imported series.
        disks: host -> disk -> whether the disk did any I/O.
    """

    reads: list[Read] = field(default_factory=list)
    span_s: tuple[float, float] | None = None
    series: set[Key] = field(default_factory=set)
    disks: dict[str, dict[str, bool]] = field(default_factory=dict)

    def take(self, sample: Sample) -> None:
        """Add an imported sample to ``span_s`` and ``series``."""
        self.span_s = _wider(self.span_s, sample)
        self.series.add((sample.host, sample.metric, sample.instance))

    def see(self, sample: Sample) -> None:
        """Add the disk of a sample to ``disks``. The sample need not be imported."""
        if sample.metric.startswith("disk."):
            disks = self.disks.setdefault(sample.host, {})
            disks[sample.instance] = disks.get(sample.instance, False) or bool(sample.value)


def _wider(span_s: tuple[float, float] | None, sample: Sample) -> tuple[float, float]:
    end_s = sample.time_ns / NS
    begin_s = end_s - sample.interval_s
    return (begin_s, end_s) if span_s is None else (min(span_s[0], begin_s), max(span_s[1], end_s))


def read_all(
    sources: Sequence[RecordingFile],
    settings: Settings,
    places: HostPlaces,
    between: TimeSpan,
    gathered: Gathered,
    hosts: Sequence[str] = (),
    wanted: Callable[[Sample], bool] = lambda _: True,
) -> Iterator[Sample]:
    """Yield the samples of all files, one file after the other.

    Args:
        sources: the files.
        settings: the user's options for the content of the files.
        places: the user's options for the machines in the files.
        between: time range to import.
        gathered: what was read is added here. It is complete after the last sample.
        hosts: the hosts of the target run.
        wanted: returns whether a sample in the time range is imported.

    Raises:
        InputError: a file is damaged, or does not name its machine.
    """
    for source in sources:
        read = Read(source)
        gathered.reads.append(read)
        try:
            placed = _placed(source.samples(settings, read.found), source)
            for sample in checked(placed, read.found, settings.mapping):
                for ours in _ours(sample, read, places, hosts):
                    read.span_s = _wider(read.span_s, ours)
                    if not between.has(ours):
                        read.outside += 1
                        continue
                    gathered.see(ours)
                    if wanted(ours):
                        read.kept += 1
                        key = ours.host, ours.metric, ours.instance
                        read.series[key] = _wider(read.series.get(key), ours)
                        gathered.take(ours)
                        yield ours
        except ForeignFileError as error:
            raise source.said(error) from error
        if read.span_s is None:
            raise InputError(f"{source.path}: it contains no sample; record for longer")
        if settings.zone:
            begins = datetime.fromtimestamp(read.span_s[0], settings.zone)
            read.found.utc_offset_s = int((begins.utcoffset() or timedelta()).total_seconds())
        if source.is_guessed and not "".join([*read.machines.values(), *read.found.notes]).isascii():
            read.found.note(
                f"the encoding of western Windows ({source.encoding}) was assumed; if names are not "
                "legible, give --encoding"
            )
        _once(read, gathered.reads[:-1])


def _once(read: Read, earlier: Sequence[Read]) -> None:
    """Raises InputError if two files have the same series at the same time: it would be counted twice."""
    for other in earlier:
        for key in read.series.keys() & other.series.keys():
            begin_s = max(read.series[key][0], other.series[key][0])
            end_s = min(read.series[key][1], other.series[key][1])
            if end_s - begin_s > OVERLAP_S:
                raise InputError(
                    f"{read.source.path}: has {' '.join(key).strip()} of {utc(round(begin_s * NS))} to "
                    f"{utc(round(end_s * NS))}, which {other.source.path} has too; import one of the "
                    "two, or export them without overlap"
                )


def _placed(samples: Iterable[Sample], source: RecordingFile) -> Iterator[Sample]:
    """Yield the samples. Raises InputError if a time is not plausible, or if an interval is too long."""
    latest_ns = time.time_ns() + bounds.AHEAD_NS
    for sample in samples:
        at_ns, interval_s = sample.time_ns, sample.interval_s
        if not (EARLIEST_NS < at_ns < latest_ns and 0 < interval_s <= bounds.LONGEST_INTERVAL_S):
            raise InputError(
                f"{source.path}: a value at {at_ns / NS:.0f} s since 1970 that covers {interval_s:g} s; "
                f"allowed: times from 1980 to {time.gmtime(latest_ns / NS).tm_year}, that cover "
                f"{bounds.LONGEST_INTERVAL_S / bounds.DAY_S:.0f} days at most; check the recorder's "
                "clock and the format of the times"
            )
        yield sample


def _ours(sample: Sample, read: Read, places: HostPlaces, hosts: Sequence[str]) -> Iterator[Sample]:
    """Yield the sample with the name of its host.

    For available memory, yield also its ratio if the memory size of the host is known.
    """
    host = _host(sample.host, read, places, hosts)
    ours = sample._replace(host=host, instance=legible.text(sample.instance))
    yield ours
    if ours.metric == "mem.available_bytes":
        memory = places.memory_of(host)
        if memory:
            share = None if ours.value is None else ours.value / memory
            yield ours._replace(metric="mem.available_ratio", value=share)


def _host(machine: str, read: Read, places: HostPlaces, hosts: Sequence[str]) -> str:
    known = next((host for host, name in read.machines.items() if name == machine), None)
    if known is not None:
        return known
    try:
        host = places.host_of(machine, hosts)
    except InputError as error:
        raise InputError(f"{read.source.path}: {error}") from error
    if host in read.machines:
        raise InputError(
            f"{read.source.path}: it is of several machines ({read.machines[host]}, {machine}), so --host "
            "cannot name them all; leave it out, or import them one by one"
        )
    read.machines[host] = machine
    return host


def inventory(gathered: Gathered, places: HostPlaces) -> dict[str, dict[str, Any]]:
    """Return the facts of each host in the form of a collector's inventory (docs/metrics.md)."""
    hosts: dict[str, dict[str, Any]] = {}
    for read in gathered.reads:
        for host, machine in read.machines.items():
            facts = dict(read.found.hosts.get(machine) or {})
            data_io = facts.pop("data_io", "not verified")
            known = hosts.setdefault(host, {"roles": {}, "disks": {}, "not_measured": []})
            known |= {key: value for key, value in facts.items() if value is not None}
            known["hostname"] = machine or host
            if known.get("cores") and not known.get("usable_cores"):
                known["usable_cores"] = list(range(known["cores"]))
            if memory := places.memory_of(host):
                known["memory_bytes"] = memory
            there = {metric for name, metric, _ in gathered.series if name == host}
            known["not_measured"] = [row for row in known["not_measured"] if row["metric"] not in there]
            judged = _judged(host, known, gathered, places)
            for disk, active in gathered.disks.get(host, {}).items():
                role = places.role_of(host, disk)
                if disk in judged and (active or role):
                    known["disks"][disk] = {}
                    known["roles"].setdefault(role.role if role else disk, _role(disk, data_io, role))
    for host, facts in hosts.items():
        facts["tier"] = places.tier_of(host) or host
        _add_missing(host, facts, places)
    return hosts


def _judged(host: str, facts: JsonObject, gathered: Gathered, places: HostPlaces) -> set[str]:
    """Return the disks of a host that the analysis uses."""
    disks = gathered.disks.get(host, {})
    if facts.get("os") != _LINUX:
        return set(disks)
    return counted_once(disks, {disk for disk in disks if places.role_of(host, disk)})


def layered_disks(hosts: Mapping[str, JsonObject], gathered: Gathered, places: HostPlaces) -> Iterator[str]:
    """Yield warnings about virtual devices that are ignored because they repeat the I/O of other disks."""
    for host, facts in hosts.items():
        left = [
            disk
            for disk in gathered.disks.get(host, {})
            if disk not in _judged(host, facts, gathered, places)
        ]
        if left:
            yield left_out_words(host, left)


def _role(disk: str, data_io: str, role: ImportedDisk | None) -> dict[str, Any]:
    why = None if role else "the role is not known"
    return {"given": disk if role else None, "device": disk, "data_io": data_io, "why": why}


def _add_missing(host: str, facts: dict[str, Any], places: HostPlaces) -> None:
    """Add the roles that the user gave for disks that are not in the files."""
    there = ", ".join(facts["disks"]) or "none"
    for (name, disk), role in places.roles.items():
        if name.casefold() == host.casefold() and role.role not in facts["roles"]:
            why = f"the files have no disk {disk} of this host; they have {there}"
            facts["roles"][role.role] = {"given": disk, "device": None, "data_io": "unknown", "why": why}


def unknown_hosts(hosts: Iterable[str], places: HostPlaces) -> str:
    """Return a warning about hosts in options that no file contains; ``""`` if there are none."""
    there = list(hosts)
    unknown = sorted(name for name in places.named if not any(same(name, host) for host in there))
    if not unknown:
        return ""
    return (
        f"--disk, --tier, --memory: no file is of {', '.join(unknown)}, so the option has no effect; the "
        f"files are of {', '.join(there)}"
    )


def unknown_paths(hosts: Mapping[str, JsonObject], places: HostPlaces) -> Iterator[str]:
    """Yield warnings about paths in farm.yaml for which the files name no disk."""
    for (name, path), role in places.paths.items():
        host = next((host for host in hosts if same(host, name)), None)
        if host is not None and role.role not in hosts[host]["roles"]:
            disks = ", ".join(hosts[host]["disks"]) or "none"
            yield (
                f"{host}: the files do not show on which disk {path} ({role.role}) is; they contain "
                f"{disks}. Give --disk {host}:DISK={role.tier}.{role.role}"
            )


def unknown_roles(hosts: dict[str, dict[str, Any]]) -> str:
    """Return a warning about disks without a known role; ``""`` if there are none."""
    unknown = {
        host: disks
        for host, facts in hosts.items()
        if (disks := [r["device"] for r in facts["roles"].values() if r["device"] and r["given"] is None])
    }
    if not unknown:
        return ""
    host, [disk, *_] = next(iter(unknown.items()))
    each = "; ".join(f"{name} {', '.join(disks)}" for name, disks in unknown.items())
    return (
        f"the role of these disks is not known, so the general latency limit was used: {each}. Give each "
        f"role with --disk {shlex.quote(f'{host}:{disk}=sql.log')}, or a farm.yaml with --farm"
    )
