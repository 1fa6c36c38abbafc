"""Lists the files in /proc about the whole machine that are read repeatedly, local or remote."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.linux import diskstats, meminfo, net_dev, pressure, stat, vmstat
from pinchpoint_collectors.record import NotMeasured
from pinchpoint_collectors.value import Value


@dataclass(frozen=True, slots=True)
class SourceReading:
    """Values read together, their time (UTC ns), and the time since the last reading (0 at the first)."""

    time_ns: int
    interval_s: float
    values: Sequence[Value]


class GrowingFile:
    """A file with counters, and the metrics of their growth.

    Args:
        path: path of the file.
        metrics: metrics that are not measured if the file is missing (``disk.*``).
        parse: pure parser of the text.
        values: returns values from the last record (None at the first reading), the current record, and the
            seconds between.
        remedy: how to make a missing file available; None if this is not possible.
    """

    def __init__(
        self,
        path: str,
        metrics: str,
        parse: Callable[[str], Any],
        values: Callable[[Any, Any, float], Iterator[Value]],
        remedy: str | None = None,
    ) -> None:
        self.path = path
        self.metrics = metrics
        self.remedy = remedy
        self._parse = parse
        self._values = values
        self._before: Any = None
        self._before_ns = 0

    def missing(self, why: str) -> NotMeasured:
        """Return the metrics that are not measured because the file is not readable."""
        return NotMeasured(self.metrics, "", f"{self.path}: {why}", self.remedy)

    def take(self, text: str, time_ns: int, now_ns: int) -> SourceReading:
        """Return the values since the last text.

        Args:
            text: text of the file.
            time_ns: time of the reading in UTC ns.
            now_ns: the same time by a monotonic clock.

        Raises:
            CollectorError: the file has an unknown format.
        """
        after = self.understand(text)
        interval_s = 0.0 if self._before is None else (now_ns - self._before_ns) / 1e9
        values = list(self._values(self._before, after, interval_s))
        self._before, self._before_ns = after, now_ns
        return SourceReading(time_ns, interval_s, values)

    def understand(self, text: str) -> Any:
        """Parse the file. Raises ``CollectorError`` if it has an unknown format."""
        try:
            return self._parse(text)
        except (ValueError, IndexError) as error:
            raise CollectorError(f"{self.path} is not written as this version expects: {error}") from error


def machine_sources(
    cores: Collection[int],
    devices: Mapping[str, Collection[str]],
    flushes_are_writes: Collection[str],
    speeds: Mapping[str, float | None],
    page_bytes: int,
) -> list[GrowingFile]:
    """Return all sources of the machine.

    Args:
        cores: usable cores.
        devices: disks to watch, each with its lines in /proc/diskstats.
        flushes_are_writes: disks whose flushes are counted as writes.
        speeds: interfaces to watch, with their speed in bytes/s.
        page_bytes: page size of the machine in bytes.
    """
    lines = {line: device for device, its in devices.items() for line in its}
    sources = [
        GrowingFile("/proc/stat", "cpu.*", stat.parse, lambda old, new, _s: stat.values(old, new, cores)),
        GrowingFile("/proc/meminfo", "mem.available_*", meminfo.parse_available, meminfo.values),
        GrowingFile(
            "/proc/vmstat",
            "mem.paged_*",
            vmstat.parse,
            lambda old, new, s: vmstat.values(old, new, s, page_bytes),
        ),
        GrowingFile(
            "/proc/diskstats",
            "disk.*",
            lambda text: diskstats.parse(text, lines),
            lambda old, new, s: diskstats.values(old, new, s, devices, flushes_are_writes),
        ),
        GrowingFile(
            "/proc/net/dev",
            "net.*",
            lambda text: net_dev.parse(text, speeds),
            lambda old, new, s: net_dev.values(old, new, s, speeds),
        ),
    ]
    return sources + [_pressure(resource) for resource in ("cpu", "io", "memory")]


def _pressure(resource: str) -> GrowingFile:
    return GrowingFile(
        f"/proc/pressure/{resource}",
        f"pressure.{resource}_ratio",
        pressure.parse,
        lambda old, new, s: pressure.values(old, new, s, resource),
        remedy="start a kernel built with CONFIG_PSI with the boot parameter psi=1",
    )
