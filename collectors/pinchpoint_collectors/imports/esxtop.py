r"""Reads tables of ``esxtop -b`` for an ESX host, in Performance Monitor's format with ESX counters.

The CPU is that of all cores (``Physical Cpu(_Total)\% Util Time``). The sum of the virtual CPUs' ready times
(``% Ready``) is the number of threads that waited for a core. Disks are devices and NFS volumes, or else
adapters; latency is that of a guest. Of network ports only uplinks (vmnic) count, because the others send
through them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pinchpoint_collectors.common import numerals
from pinchpoint_collectors.common.legible import ForeignFileError
from pinchpoint_collectors.imports import perfmon
from pinchpoint_collectors.imports.record import FileFacts, Settings
from pinchpoint_collectors.imports.times import ReadingTimes
from pinchpoint_collectors.record import Sample
from pinchpoint_collectors.windows.counters import TOTAL, Counter

_MIB = 1024.0 * 1024.0
_MBIT = 1e6 / 8
_OWN = ("Memory Overcommit (", r"\Physical Cpu(", r"\Group Cpu(", r"\Physical Disk SCSI Device(")
_WAYS = {"Read": "read", "Write": "write", "Command": "transfer"}
_DISK: Mapping[str, Counter] = {
    **{f"{way}s/sec": Counter(f"disk.{ours}s_per_s") for way, ours in _WAYS.items()},
    **{
        f"Average {whose} MilliSec/{way}": Counter(
            f"disk.{ours}_latency_s", scale=0.001, weight=f"{way}s/sec", rank=rank
        )
        for rank, whose in enumerate(("Guest", "Driver"))
        for way, ours in _WAYS.items()
    },
    "MBytes Read/sec": Counter("disk.read_bytes_per_s", scale=_MIB),
    "MBytes Written/sec": Counter("disk.write_bytes_per_s", scale=_MIB),
    "Active Commands": Counter("disk.outstanding", instant=True),
}
_ADAPTER = "Physical Disk Adapter"
_DEVICES = ("Physical Disk SCSI Device", "Physical Disk", "Physical Disk NFS Volume")
_COUNTERS: Mapping[str, Mapping[str, Counter]] = {
    "Physical Cpu": {
        "% Util Time": Counter("cpu.busy_ratio", scale=0.01),
        "% Processor Time": Counter("cpu.busy_ratio", scale=0.01, rank=1),
    },
    "Memory": {
        "Free MBytes": Counter("mem.available_bytes", scale=_MIB, instant=True),
        "Swap MBytes Read/sec": Counter("mem.paged_in_bytes_per_s", scale=_MIB),
        "Swap MBytes Write/sec": Counter("mem.paged_out_bytes_per_s", scale=_MIB),
        "Memctl Current MBytes": Counter("mem.ballooned_bytes", scale=_MIB, instant=True),
    },
    "Group Memory": {"Memctl MBytes": Counter("mem.ballooned_bytes", scale=_MIB, instant=True)},
    "Group Cpu": {
        "% Ready": Counter("cpu.stolen_cores", scale=0.01),
        "% Run": Counter("cpu.used_cores", scale=0.01),
    },
    **dict.fromkeys((*_DEVICES, _ADAPTER), _DISK),
    "Network Port": {
        "MBits Received/sec": Counter("net.received_bytes_per_s", scale=_MBIT),
        "MBits Transmitted/sec": Counter("net.sent_bytes_per_s", scale=_MBIT),
        "% Inbound Packets Dropped": Counter("net.received_dropped_ratio", scale=0.01),
        "% Outbound Packets Dropped": Counter("net.sent_dropped_ratio", scale=0.01),
    },
}
_UPLINK = re.compile(r"vmnic\d+")
_OF_MACHINES = ("Group Cpu", "Group Memory")
_READY = Counter("cpu.waiting_threads", scale=0.01)
_SHARE = Counter("mem.available_ratio", instant=True)
_IDLE = "idle"


class Esxtop:
    """Import format ``esxtop``."""

    name = "esxtop"
    says = "esxtop's batch mode, CSV (esxtop -b -a -d 15 -n 240)"

    def recognises(self, head: str) -> bool:
        """Return whether the start has the frame of Performance Monitor's logs and ESX counters."""
        return perfmon.Perfmon().recognises(head) and any(name in head.splitlines()[0] for name in _OWN)

    def read(self, lines: Iterable[str], settings: Settings, facts: FileFacts) -> Iterator[Sample]:
        """Yield one sample per known counter and row (see ``Format.read``)."""
        rows = perfmon.rows_of(lines)
        line, header = next(rows, (1, [""]))
        pace = ReadingTimes()
        clock = perfmon.clock_of(header[0], line, settings, pace, facts)
        paths = [perfmon.PATH.fullmatch(path.strip()) for path in header[1:]]
        known = [match.groupdict(default="") if match else {} for match in paths]
        columns = _columns(header[1:], known)
        if not columns:
            raise ForeignFileError(
                f"no counter was recognised; found {'; '.join(header[1:4]) or 'none at all'}; record "
                "with esxtop -b -a",
                line,
            )
        sums = _ColumnSums(known, len(header))
        host = columns[0].host
        facts.facts(host).update(os="VMware ESXi", data_io="kernel")
        cores = {one.instance for one in columns if one.means.metric == "cpu.busy_ratio" and one.instance}
        facts.facts(host)["cores"] = len(cores) or None
        readings = (
            (number, perfmon.local_of(row[0], number), [*row, *sums.cells(row)])
            for number, row in perfmon.whole_rows(rows, len(header), facts)
        )
        yield from perfmon.samples([*columns, *sums.columns(host)], readings, clock, pace, facts)


def _columns(paths: Sequence[str], known: Sequence[Mapping[str, str]]) -> list[perfmon.CounterColumn]:
    """Return the known counters; of several for one figure, the one with the lowest rank."""
    has_devices = any(each.get("object") in _DEVICES for each in known)
    best: dict[tuple[str, str, str], perfmon.CounterColumn] = {}
    places = {
        (each.get("object"), each.get("instance"), each.get("counter")): at
        for at, each in enumerate(known, 1)
    }
    for at, each in enumerate(known, 1):
        of, logged, counter = (each.get(name, "") for name in ("object", "instance", "counter"))
        means = _COUNTERS.get(of, {}).get(counter)
        instance = _instance(of, counter, logged)
        if means is None or instance is None or (of == _ADAPTER and has_devices):
            continue
        column = perfmon.CounterColumn(
            at, paths[at - 1], each["host"], logged, None, of, counter, means, instance
        )
        column.weight_at = places.get((of, logged, means.weight)) if means.weight else None
        key = column.host, means.metric, instance
        if key not in best or means.rank < best[key].means.rank:
            best[key] = column
    return list(best.values())


def _instance(of: str, counter: str, logged: str) -> str | None:
    """Return the instance in Pinchpoint's form; None for network ports of machines and idle worlds."""
    last = logged.rpartition(":")[2]
    if of == "Network Port":
        return last if "Dropped" in counter or _UPLINK.fullmatch(last) else None
    if of in _OF_MACHINES:
        return None if last == _IDLE else last
    return "" if logged.casefold() == TOTAL else logged


class _ColumnSums:
    """Calculates figures from several columns: CPUs that waited, and the share of free memory.

    Args:
        known: parts of each path.
        width: number of cells of a row.
    """

    def __init__(self, known: Sequence[Mapping[str, str]], width: int) -> None:
        self._width = width
        named = {(each.get("object"), each.get("counter")): at for at, each in enumerate(known, 1)}
        self._ready = [
            at
            for at, each in enumerate(known, 1)
            if each.get("object") == "Group Cpu"
            and each.get("counter") == "% Ready"
            and each["instance"].rpartition(":")[2] != _IDLE
        ]
        self._free, self._size = (named.get(("Memory", name)) for name in ("Free MBytes", "Machine MBytes"))

    def columns(self, host: str) -> list[perfmon.CounterColumn]:
        """Return further columns, after those of the file."""
        result = [("Group Cpu", _READY), ("Memory", _SHARE)]
        return [
            perfmon.CounterColumn(self._width + at, f"{of} together", host, "", None, of, "", means, "")
            for at, (of, means) in enumerate(result)
        ]

    def cells(self, row: Sequence[str]) -> tuple[str, str]:
        """Return values of the further columns; blank if a part is missing."""
        ready = [_number(row[at]) for at in self._ready]
        free, size = (_number(row[at]) if at else None for at in (self._free, self._size))
        return (
            repr(sum(one for one in ready if one is not None)) if ready and None not in ready else "",
            repr(free / size) if free is not None and size else "",
        )


def _number(text: str) -> float | None:
    try:
        return numerals.strict(text.strip())
    except ValueError:
        return None
