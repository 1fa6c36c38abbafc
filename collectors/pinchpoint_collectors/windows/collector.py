"""Collector ``windows``: a Windows machine without installed software, over WinRM or OpenSSH.

The collector converts the lines of its script to samples.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.options import each_once, say_the_same
from pinchpoint_collectors.record import Collector, Incident, Sample, Watch
from pinchpoint_collectors.remote import ssh
from pinchpoint_collectors.windows.machine import not_measured, role_places
from pinchpoint_collectors.windows.openssh import SshLink
from pinchpoint_collectors.windows.options import (
    OF_TIER,
    OPTIONS,
    PUBLIC,
    WinRm,
    interval_s,
    sought,
    sql_server,
    transport,
)
from pinchpoint_collectors.windows.reader import KIND, ScriptReader
from pinchpoint_collectors.windows.script import CounterObject, ProcessSelector, request, wanted
from pinchpoint_collectors.windows.stream import Received, ScriptLink, Stream
from pinchpoint_collectors.windows.tiers import WindowsTiers

FIRST_S = 60.0
"""Time limit of the first reading in seconds: a busy machine needs long to search all its classes."""
_SILENT_INTERVALS = 5.0
_SILENT_S = 5.0
_IDLE_S = 20.0
"""Seconds without a reading after which there is no gap, because no reading was due (a run prepares its
data)."""
_NS = 1_000_000_000


class WindowsCollector:
    """Converts the readings of one machine to samples of its hosts.

    Args:
        watches: hosts of the farm on this machine.
        stream: link to the machine, open or opening.
        wanted: classes that the script is asked for.
        every_s: seconds between two readings.
        where: name of the machine in messages.
        sought: host -> processes of its tier, for hosts that name some.

    Raises:
        CollectorError: the machine is not reachable, or does not answer.
    """

    def __init__(
        self,
        watches: Sequence[Watch],
        stream: Stream,
        wanted: Sequence[CounterObject],
        every_s: float,
        where: str,
        sought: Mapping[str, ProcessSelector] | None = None,
    ) -> None:
        self._watches = tuple(watches)
        self._hosts = tuple(watch.host for watch in watches)
        self._stream = stream
        self._wanted = tuple(wanted)
        self._every_s = every_s
        self._where = where
        tiers = {watch.host: watch.tier for watch in watches}
        self._tiers = WindowsTiers({host: (tiers[host], each) for host, each in (sought or {}).items()})
        self._reader = ScriptReader(self._hosts, wanted, every_s, self._tiers)
        self._heard_ns = time.monotonic_ns()
        self._read_s = time.monotonic()
        self._asked_ns: int | None = None
        self._received_bytes, self._cpu_s = (0, 0), (0.0, 0.0)
        try:
            self._held = self._until(lambda: self._reader.has_read, FIRST_S)
            storage = self._reader.machine.storage
            places = [place for watch in watches for place in role_places(watch, storage, where).values()]
            self._reader.devices = frozenset(place.device for place in places)
            self._inventory = self._facts()
        except BaseException:
            stream.close()
            raise

    def read(self) -> Sequence[Sample]:
        """Return the samples since the last reading, with the machine's own times."""
        now_s = time.monotonic()
        idle, self._read_s = now_s - self._read_s > _IDLE_S, now_s
        if not self._reader.measured:
            samples = self._until(lambda: self._reader.measured, _SILENT_S + 3 * self._every_s)
        else:
            samples = self._taken(self._stream.take())
        samples, self._held = [*self._held, *samples], []
        if idle:
            self._reader.incidents = [one for one in self._reader.incidents if one.event != "gap"]
        return [*samples, *self._about(time.time_ns())]

    def incidents(self) -> Sequence[Incident]:
        reported, self._reader.incidents = self._reader.incidents, []
        return reported

    def inventory(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the inventory of the machine at the time of connecting."""
        return self._inventory

    def close(self) -> None:
        self._stream.close()

    def _facts(self) -> dict[str, dict[str, Any]]:
        reader, result = self._reader, {}
        for watch in self._watches:
            places = role_places(watch, reader.machine.storage, self._where)
            result[watch.host] = {
                **reader.machine.host(watch.tier, places, reader.devices),
                "clock": reader.clock.facts(),
                "not_measured": [
                    *not_measured(reader.machine, self._wanted, reader.classes, places.items()),
                    *(asdict(one) for one in self._tiers.missing(watch.host)),
                ],
            }
        return result

    def _until(self, enough: Callable[[], bool], within_s: float) -> list[Sample]:
        """Receive lines until a condition is true. Raises ``CollectorError`` if it is not true in time."""
        samples: list[Sample] = []
        until = time.monotonic() + within_s
        while not enough():
            left_s = until - time.monotonic()
            if left_s <= 0:
                raise CollectorError(
                    f"{self._where}: the machine did not say what it was asked for within {within_s:g} s; is "
                    "it overloaded? Run `Get-CimClass Win32_PerfRawData_*` there and see how long that takes"
                )
            self._stream.wait(left_s)
            samples += self._taken(self._stream.take())
        return samples

    def _taken(self, taken: Received) -> list[Sample]:
        """Return the samples of received lines.

        Raises ``CollectorError`` with the reason if there are none.
        """
        self._received_bytes = self._received_bytes[0], taken.received_bytes
        self._cpu_s = self._cpu_s[0], taken.cpu_s
        if taken.lines:
            self._heard_ns = time.monotonic_ns()
        self._reader.lost = taken.lost
        samples = self._reader.samples(taken.lines)
        silent_s = (time.monotonic_ns() - self._heard_ns) / _NS
        why = taken.error
        if why is None and self._reader.measured and silent_s > self._patience_s:
            why = f"nothing has come for {silent_s:.0f} s; look at the network, and whether it hangs"
        if why is not None and not samples:
            raise CollectorError(f"{self._where}: {why}")
        return samples

    @property
    def _patience_s(self) -> float:
        return max(_SILENT_S, _SILENT_INTERVALS * self._every_s)

    def _about(self, now_ns: int) -> list[Sample]:
        """Return the cost of the collector on this machine, and the error of the machine's clock."""
        received, spent = self._received_bytes, self._cpu_s
        self._received_bytes, self._cpu_s = (received[1], received[1]), (spent[1], spent[1])
        interval = 0.0 if self._asked_ns is None else (now_ns - self._asked_ns) / _NS
        self._asked_ns = now_ns
        own = (
            ("collector.received_bytes", KIND, float(received[1] - received[0])),
            ("collector.cpu_s", f"{KIND}/client", spent[1] - spent[0]),
        )
        samples = [Sample(now_ns, interval, host, *one) for host in self._hosts for one in own]
        return [*samples, *self._reader.clock.samples(now_ns, interval, self._hosts, KIND)]


class WindowsKind:
    """Collector kind ``windows`` of farm.yaml. docs/collectors.md describes its options."""

    name = KIND
    options = OPTIONS
    public = PUBLIC

    def machine(self, watch: Watch) -> str:
        """Return the address: watches of one address belong to one machine."""
        keys = sorted((OPTIONS - {"password", "interval", *OF_TIER}) & watch.options.keys())
        return " ".join(f"{key}={watch.options[key]}" for key in keys)

    def check_options(self, watch: Watch) -> None:
        transport(watch.options)
        interval_s(watch.options)
        sql_server(watch.options)
        sought(watch.options)

    def connect(self, watches: Sequence[Watch]) -> Collector:
        """Log in, start the script, and wait for its first reading.

        Raises ``CollectorError`` if an option is wrong, or the machine is not reachable or refuses the login.
        """
        first = watches[0]
        where = f"host {first.host!r}, collector {self.name!r}"
        each_once(watches, self.name)
        say_the_same(watches, ("interval",), where)
        try:
            address, every_s = transport(first.options), interval_s(first.options)
            asked = wanted(sql_server=sql_server(first.options))
            of_tiers = {
                watch.host: result for watch in watches if (result := sought(watch.options)) is not None
            }
        except CollectorError as error:
            raise CollectorError(f"{where}: {error}") from error
        open_link = _opener(address, request(asked, every_s, of_tiers.values()), where)
        return WindowsCollector(watches, Stream(first.host, open_link), asked, every_s, where, of_tiers)


def _opener(address: WinRm | ssh.Address, asked: str, where: str) -> Callable[[threading.Event], ScriptLink]:
    if isinstance(address, ssh.Address):
        if sys.platform == "win32":
            raise CollectorError(
                f"{where}: transport: ssh works from Linux and macOS only; say `transport: winrm`"
            )
        return lambda _: SshLink(address, asked)
    try:
        from pinchpoint_collectors.windows.winrm import WinRmLink  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise CollectorError(
            f"{where}: WinRM needs pypsrp, which is not installed here ({error}); run: pip install "
            "'pinchpoint-collectors[windows]', or say `transport: ssh`"
        ) from error
    return lambda ending: WinRmLink(address, asked, ending)
