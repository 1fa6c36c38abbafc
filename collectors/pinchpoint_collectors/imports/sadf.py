"""Reads JSON of ``sadf -j`` from sar's daily files.

Disks have number, duration and queue of reads and writes together, but separate bytes. The size of memory is
missing; it is calculated from the used memory and its percentage.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from pinchpoint_collectors.common.legible import ForeignFileError, mapping, mappings
from pinchpoint_collectors.imports.record import FileFacts, Settings
from pinchpoint_collectors.imports.sysstat import (
    BEGINS,
    KIB,
    SECTOR_BYTES,
    Fields,
    Reported,
    available_of,
    cpu_values,
    host_blocks,
    latency,
    note_machine,
    number,
    scaled,
    total,
)
from pinchpoint_collectors.imports.times import zoned_s
from pinchpoint_collectors.record import Sample

_STAMP = "timestamp"
PAGES = {"x86_64": 4096, "i686": 4096}
"""Machine type -> length of a page of swap in bytes."""


_LONGEST_S = 366 * 86400.0
"""Longest interval in seconds. Older versions write 2**64 ms for the first record of a file."""


class Sadf:
    """Import format ``sadf``."""

    name = "sadf"
    says = "sar's daily file as JSON (sadf -j FILE -- -A)"

    def recognises(self, head: str) -> bool:
        """Return whether the file is recognised by the frame and by keys of sadf's hosts."""
        return BEGINS.match(head) is not None and '"file-date"' in head

    def read(self, lines: Iterable[str], settings: Settings, facts: FileFacts) -> Iterator[Sample]:
        """Yield one sample per value (see ``Format.read``)."""
        until_s: dict[str, float] = {}
        tables: dict[str, None] = {}
        is_used = False
        for block in host_blocks(lines, facts):
            host = note_machine(block, facts)
            last_s: float | None = None
            for statistics in mappings(block.get("statistics"), "statistics"):
                stamp = mapping(statistics.get(_STAMP), _STAMP)
                last_s = _time_s(stamp, last_s, settings, facts)
                time_ns, interval_s = round(last_s * 1e9), number(stamp, "interval")
                if not interval_s or interval_s > _LONGEST_S:
                    continue  # the first record after a restart covers no time
                if last_s <= until_s.get(host, -math.inf):
                    facts.note(f"records of {host} that are not later than the one before were ignored")
                    continue
                until_s[host] = last_s
                tables |= dict.fromkeys(each for each in statistics if each != _STAMP)
                for metric, instance, value, weight in values(statistics, block, interval_s, facts):
                    is_used = True
                    yield Sample(time_ns, interval_s, host, metric, instance, value, weight)
        if tables and not is_used:
            raise ForeignFileError(
                f"Pinchpoint uses none of its tables ({', '.join(tables)}); "
                "export CPU, memory, disks and network: sadf -j FILE -- -A"
            )


def _time_s(stamp: Fields, last_s: float | None, settings: Settings, facts: FileFacts) -> float:
    """Return the time of a record.

    With -j it is UTC unless local time was requested (-T, -t). Newer versions name the zone.
    """
    text = f"{stamp.get('date')}T{stamp.get('time')}"
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ForeignFileError(
            f'found the timestamp {text!r}; allowed: "date": "YYYY-MM-DD", "time": "HH:MM:SS", as '
            "sadf -j writes"
        ) from error
    named = stamp.get("tz") or stamp.get("timezone")
    utc = stamp.get("utc") == 1 or named == "UTC"
    if not utc and settings.zone is None:
        facts.zone_assumed = True
        facts.note(
            f"its times are local ones ({named or 'no zone is named'}); UTC was assumed: give --zone, or "
            "export with sadf without -t and -T, which writes UTC"
        )
    return zoned_s(moment, UTC if utc or settings.zone is None else settings.zone, last_s)


def values(statistics: Fields, block: Fields, interval_s: float, facts: FileFacts) -> Iterator[Reported]:
    """Yield the values of a record.

    Args:
        statistics: record.
        block: block of the machine; its type gives the page size.
        interval_s: seconds that the record covers.
        facts: receives facts (see ``record.FileFacts``).
    """
    for each in mappings(statistics.get("cpu-load") or statistics.get("cpu-load-all"), "cpu-load"):
        name = str(each.get("cpu"))
        instance = "" if name in {"all", "-1"} else name
        for metric, value in cpu_values(each):
            yield metric, instance, value, None
    if queue := mapping(statistics.get("queue"), "queue"):
        yield "cpu.run_queue", "", number(queue, "runq-sz"), None
        if "blocked" in queue:
            yield "cpu.blocked_threads", "", number(queue, "blocked"), None
    if paging := mapping(statistics.get("paging"), "paging"):
        yield "mem.major_faults_per_s", "", number(paging, "majflt"), None
    yield from _memory(statistics, block, facts)
    for disk in mappings(statistics.get("disk"), "disk"):
        yield from _disk(disk, interval_s)
    yield from _network(mapping(statistics.get("network"), "network"))
    yield from _pressure(mapping(statistics.get("psi"), "psi"))


def _memory(statistics: Fields, block: Fields, facts: FileFacts) -> Iterator[Reported]:
    memory = mapping(statistics.get("memory"), "memory")
    free, buffers, cached = (number(memory, name) for name in ("memfree", "buffers", "cached"))
    available = scaled(available_of(number(memory, "avail"), free, total(buffers, cached), facts), KIB)
    used, share = scaled(number(memory, "memused"), KIB), scaled(number(memory, "memused-percent"), 0.01)
    if memory:
        size = used / share if used is not None and share else None
        yield "mem.available_bytes", "", available, None
        yield "mem.available_ratio", "", available / size if available is not None and size else None, None
    swap = mapping(statistics.get("swap-pages"), "swap-pages")
    if not swap:
        return
    page = PAGES.get(str(block.get("machine")))
    if page is None:
        facts.note(f"the page size of {block.get('machine')} is unknown: paging was ignored")
        return
    yield "mem.paged_in_bytes_per_s", "", scaled(number(swap, "pswpin"), page), None
    yield "mem.paged_out_bytes_per_s", "", scaled(number(swap, "pswpout"), page), None


def _disk(disk: Fields, interval_s: float) -> Iterator[Reported]:
    device = str(disk.get("disk-device"))
    rate = number(disk, "tps")
    weight = None if rate is None else rate * interval_s
    values: dict[str, float | None] = {
        "transfers_per_s": rate,
        "read_bytes_per_s": _bytes(disk, "rkB", "rd_sec", SECTOR_BYTES),
        "write_bytes_per_s": _bytes(disk, "wkB", "wr_sec", SECTOR_BYTES),
        "outstanding": number(disk, "aqu-sz", "avgqu-sz"),
        "busy_ratio": scaled(number(disk, "util-percent"), 0.01),
    }
    for metric, value in values.items():
        yield f"disk.{metric}", device, value, None
    yield "disk.transfer_latency_s", device, latency(number(disk, "await"), rate), weight


def _bytes(fields: Fields, kib: str, older: str, older_bytes: float) -> float | None:
    """Return bytes. Older versions count sectors."""
    value = number(fields, kib)
    return scaled(number(fields, older), older_bytes) if value is None else value * KIB


_OF_HOST = (
    ("net-tcp", "oseg", "net.segments_sent_per_s"),
    ("net-etcp", "retrans", "net.retransmits_per_s"),
    ("net-nfs", "retrans", "net.nfs_retransmits_per_s"),
)
"""Table -> used column."""


def _network(network: Fields) -> Iterator[Reported]:
    for each in mappings(network.get("net-dev"), "net-dev"):
        interface = str(each.get("iface"))
        yield "net.received_bytes_per_s", interface, _bytes(each, "rxkB", "rxbyt", 1.0), None
        yield "net.sent_bytes_per_s", interface, _bytes(each, "txkB", "txbyt", 1.0), None
        used = scaled(number(each, "ifutil-percent", "ifutil"), 0.01)
        if used is not None:
            yield "net.used_ratio", interface, used, None
    for each in mappings(network.get("net-edev"), "net-edev"):
        errors = total(number(each, "rxerr"), number(each, "txerr"))
        yield "net.errors_per_s", str(each.get("iface")), errors, None
        drops = total(number(each, "rxdrop"), number(each, "txdrop"))
        if drops is not None:
            yield "net.drops_per_s", str(each.get("iface")), drops, None
    for name, field, metric in _OF_HOST:
        if fields := mapping(network.get(name), name):
            yield metric, "", number(fields, field), None


def _pressure(pressure: Fields) -> Iterator[Reported]:
    """Return pressure over the interval. Averages over 10, 60 and 300 seconds do not cover an interval."""
    for name, metric in (("psi-cpu", "cpu"), ("psi-io", "io"), ("psi-mem", "memory")):
        if fields := mapping(pressure.get(name), name):
            yield f"pressure.{metric}_ratio", "", scaled(number(fields, "some_avg", "some"), 0.01), None
