"""Tiers that are only part of a host: their CPU with each reading; threads and caps as the host is asked."""

from __future__ import annotations

import operator
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from pinchpoint_collectors.linux.cgroups import CpuCaps
from pinchpoint_collectors.linux.memory_caps import MemoryCaps
from pinchpoint_collectors.linux.processes import Missing
from pinchpoint_collectors.linux.tiers import Tier
from pinchpoint_collectors.linux_over_ssh.asked import UPTIME, Asked, pattern
from pinchpoint_collectors.linux_over_ssh.hello import Hello
from pinchpoint_collectors.proc import process
from pinchpoint_collectors.proc.process import Process, children
from pinchpoint_collectors.record import Sample, Watch

_NS = 1_000_000_000
_STAT = re.compile(r"^\d+ \(.*\) \S( -?\d+){40,}$", re.MULTILINE)
"""A process may give itself a name with a line break: such a one is not recognised, and nobody's tier."""


def parse_all(text: str) -> dict[int, Process]:
    """Every process of a reading, by its id."""
    return {one.pid: one for one in (process.parse(found[0]) for found in _STAT.finditer(text))}


@dataclass(frozen=True, slots=True)
class _Look:
    """The host at the moment at which it is asked.

    Attributes:
        time_ns: of the reading before the question, by our clock.
        now_ns: the same by one that is never set.
        uptime_s: the same as the host's uptime.
        table: every process at that reading.
        members: by host, the tier's of them.
        paths: what was asked for.
        number: of the question.
    """

    time_ns: int
    now_ns: int
    uptime_s: float
    table: Mapping[int, Process]
    members: Mapping[str, Mapping[int, Process]]
    paths: Sequence[str] = ()
    number: int = 0


class Asks(Protocol):
    """What is needed of a ``Session``.

    Attributes:
        answers: of the host, by the question's number.
    """

    answers: dict[int, list[str]]

    def ask_files(self, patterns: Sequence[str]) -> int:
        """Ask for files; the question's number."""
        ...

    def wait(self, until_s: float, enough: Callable[[], bool]) -> None:
        """Take what comes until it is enough, or it is ``until_s`` (monotonic clock)."""
        ...


class TiersThere:
    """The tiers of one host that have processes of their own, from reading to reading.

    Every reading holds all processes; their threads and the files of their control groups are another
    question, asked once for each time that somebody reads, and answered with the next.

    Args:
        watches: the hosts that are this machine.
        hello: what it said of itself.
    """

    def __init__(self, watches: Sequence[Watch], hello: Hello) -> None:
        self._asked = Asked(hello)
        caps, memory_caps = CpuCaps(self._asked), MemoryCaps(self._asked)
        self._tiers = {
            watch.host: Tier(watch.tier, watch.processes, caps, memory_caps, self._asked)
            for watch in watches
            if watch.processes is not None
        }
        self._latest: _Look | None = None
        self._looked: _Look | None = None
        self._open: _Look | None = None
        self._answered: _Look | None = None
        self._answered_s = 0.0
        """The uptime at which the host read what it answered last."""

    def cpu(
        self, text: str, time_ns: int, now_ns: int, uptime_s: float, interval_s: float
    ) -> Iterator[Sample]:
        """The tiers' CPU since the reading before.

        Args:
            text: /proc/PID/stat of every process.
            time_ns: when it was read, by our clock.
            now_ns: the same by one that is never set.
            uptime_s: the same as the host's uptime.
            interval_s: seconds since the reading before.
        """
        before, table = self._latest, parse_all(text)
        by_parent = children(table.values())
        for host, tier in self._tiers.items():
            tier.follow(table, by_parent)
            self._asked.lacking = False
            cores = tier.cores_used()
            known = None if self._asked.lacking else cores
            for value in tier.cpu(before.table if before else None, interval_s, known):
                yield Sample(time_ns, interval_s, host, *value)
        members = {host: tier.members for host, tier in self._tiers.items()}
        self._latest = _Look(time_ns, now_ns, uptime_s, table, members)

    def go_on(self, session: Asks) -> list[Sample]:
        """Take the answer to what was asked, and ask anew. Never waits."""
        samples: list[Sample] = []
        if self._open is not None and self._open.number in session.answers:
            look, self._open = self._open, None
            samples = self._take(look, session.answers.pop(look.number))
        latest = self._latest
        if latest is not None and self._open is None and latest is not self._looked:
            pids = [pid for tier in self._tiers.values() for pid in tier.with_threads()]
            paths = [UPTIME, *self._asked.question()]
            threads = [f"/proc/{pid}/task/*/stat" for pid in pids]
            number = session.ask_files([*map(pattern, paths), *threads])
            self._open = replace(latest, paths=paths, number=number)
            self._looked = latest
        return samples

    def find(self, text: str) -> None:
        """Look for the tiers' processes ahead of the first reading; ``text`` as ``cpu`` takes it."""
        table = parse_all(text)
        for tier in self._tiers.values():
            tier.find(table)

    def prepare(self, session: Asks, until_s: float) -> None:
        """Ask for all that is told of the processes that were found, also several times.

        A process tells its group, and that its caps. Waits until then at most (monotonic clock).
        """
        while self._lacks_facts() and time.monotonic() < until_s:
            paths = [UPTIME, *self._asked.question()]
            number = session.ask_files([pattern(path) for path in paths])
            session.wait(until_s, partial(operator.contains, session.answers, number))
            if number not in session.answers:
                return
            self._asked.take(paths, session.answers.pop(number))

    def facts(self, host: str) -> dict[str, Any]:
        """Of one host's tier what the inventory has."""
        tier = self._tiers.get(host)
        return {
            "tier_cores": (tier.cores() or None) if tier else None,
            "tier_cap_cores": tier.cap_cores() if tier else None,
            "tier_cap_bytes": tier.cap_bytes() if tier else None,
        }

    def missing(self, host: str) -> Missing | None:
        """Why a host's tier has no processes; None where it has, or needs none."""
        tier = self._tiers.get(host)
        return tier.missing() if tier is not None else None

    def _lacks_facts(self) -> bool:
        self._asked.lacking = False
        for host in self._tiers:
            self.facts(host)
        return self._asked.lacking

    def _take(self, look: _Look, lines: Sequence[str]) -> list[Sample]:
        """Threads and memory since the answer before."""
        uptime_s = self._asked.take(look.paths, lines)
        if uptime_s is None:  # it could not read even that: the next question may do better
            return []
        before, self._answered = self._answered, look
        since_s, self._answered_s = self._answered_s, uptime_s
        interval_s = (look.now_ns - before.now_ns) / _NS if before else 0.0
        passed_s = uptime_s - since_s if before else 0.0
        time_ns = look.time_ns + round((uptime_s - look.uptime_s) * _NS)
        samples: list[Sample] = []
        for host, tier in self._tiers.items():
            table = before.table if before else None
            values = list(tier.threads(look.members[host], table, interval_s, passed_s))
            self._asked.lacking = False
            memory = list(tier.memory(passed_s))
            values += [] if self._asked.lacking else memory
            samples += [Sample(time_ns, passed_s, host, *value) for value in values]
        return samples
