"""Measures the CPU of tiers that share a host at each reading, and threads and limits on request.

A file that is missing at one reading is requested with the next.
"""

from __future__ import annotations

import operator
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from pinchpoint_collectors.linux.files import Facts
from pinchpoint_collectors.linux.inventory import allowed_cores
from pinchpoint_collectors.linux.processes import ServerMark, parse
from pinchpoint_collectors.linux.tiers import Tiers
from pinchpoint_collectors.linux_over_ssh.hello import Hello
from pinchpoint_collectors.processes import Process, children, tops
from pinchpoint_collectors.record import Sample, Watch

_NS = 1_000_000_000
UPTIME = "/proc/uptime"
"""Part of every request, because it shows when the host read the rest."""
_SPECIAL = re.compile(r"[\s*?\[\]\\]")
_THREAD = re.compile(r"/proc/(\d+)/task/(\d+)/stat:(.*)", re.DOTALL)
_STAT = re.compile(r"^\d+ \(.*\) \S( -?\d+){40,}$", re.MULTILINE)
"""Pattern of a line. A process whose name contains a line break is not recognised and belongs to no tier."""


def parse_all(text: str) -> dict[int, Process]:
    """Return id -> process of a reading."""
    return {one.pid: one for one in (parse(found[0]) for found in _STAT.finditer(text))}


class RequestedFiles:
    """The small files of single processes and control groups, from the last answer of the host.

    ``CpuCaps`` and ``MemoryCaps`` read them like local files. Each file that is read is requested with the
    next question, also if it is known, because it may change.

    Args:
        hello: first report of the host. Its files are not requested again.

    Attributes:
        lacking: whether a file was read that has not been requested yet. The reader resets it.
        ticks_per_s: clock ticks per second (see ``ProcessReader``).
        page_bytes: page size in bytes (see ``ProcessReader``).
    """

    def __init__(self, hello: Hello) -> None:
        self.lacking = False
        self.ticks_per_s = hello.ticks_per_s
        self.page_bytes = hello.page_bytes
        self._reported: Facts = hello.files
        self._wanted: dict[str, None] = {}  # a dict as an ordered set
        self._answer: Mapping[str, str | None] = {}
        self._threads: Mapping[int, Mapping[int, Process]] = {}

    def fact(self, path: str) -> str | None:
        """Return the text of a file. It is None if it is not known yet; ``lacking`` is set then."""
        reported = self._reported.fact(path)
        if reported is not None:
            return reported
        self._wanted[path] = None
        if path not in self._answer:
            self.lacking = True
        return self._answer.get(path)

    def threads(self, pid: int) -> Mapping[int, Process]:
        """Return the threads of a process, if the last answer has them."""
        return self._threads.get(pid, {})

    def cores(self, members: Mapping[int, Process]) -> list[int]:
        """Return the cores of a process.

        The file of a child is not read, because it inherits the cores of its parent.
        """
        allowed: set[int] = set()
        for pid in tops(members):
            allowed |= set(allowed_cores(self.fact(f"/proc/{pid}/status") or ""))
        return sorted(allowed)

    def places(self, pids: Sequence[int]) -> Mapping[int, ServerMark]:
        """Return nothing: places are not requested."""
        return {pid: ServerMark() for pid in pids}

    def question(self) -> list[str]:
        """Return the paths that were read since the last request."""
        wanted, self._wanted = list(self._wanted), {}
        return wanted

    def take(self, paths: Sequence[str], lines: Iterable[str]) -> float | None:
        """Process an answer of the host.

        Args:
            paths: requested paths.
            lines: lines with a path, a colon, and a line of that file.

        Returns:
            Returns the uptime at the time of reading in seconds; None if unknown.
        """
        threads: dict[int, dict[int, Process]] = defaultdict(dict)
        texts: dict[str, list[str]] = defaultdict(list)
        longest_first = sorted(paths, key=len, reverse=True)
        for line in lines:
            thread = _THREAD.match(line)
            if thread:
                threads[int(thread[1])][int(thread[2])] = parse(thread[3])
                continue
            # The name of a control group may contain a colon, so only the request shows where the path ends.
            path = next((one for one in longest_first if line.startswith(f"{one}:")), None)
            if path is not None:
                texts[path].append(line[len(path) + 1 :])
        self._threads = threads
        self._answer = {path: "\n".join(texts[path]).strip() or None for path in paths}
        uptime = self._answer.get(UPTIME)
        return float(uptime.split()[0]) if uptime else None


def pattern(path: str) -> str:
    """Return a path as one word of the host's shell.

    The shell expands patterns, so special characters become ``?``.
    """
    return _SPECIAL.sub("?", path)


@dataclass(frozen=True, slots=True)
class _Look:
    """The state of the host at the time of a request.

    Attributes:
        time_ns: time of the reading before the request by the local clock.
        now_ns: the same time by a monotonic clock.
        uptime_s: the same time as uptime of the host in seconds.
        table: all processes of that reading.
        members: host -> processes of its tier.
        paths: requested paths.
        number: number of the request.
    """

    time_ns: int
    now_ns: int
    uptime_s: float
    table: Mapping[int, Process]
    members: Mapping[str, Mapping[int, Process]]
    paths: Sequence[str] = ()
    number: int = 0


class FileSession(Protocol):
    """The part of a ``Session`` that is needed.

    Attributes:
        answers: number of a request -> answer of the host.
    """

    answers: dict[int, list[str]]

    def ask_files(self, patterns: Sequence[str]) -> int:
        """Request files. Return the number of the request."""
        ...

    def wait(self, until_s: float, enough: Callable[[], bool]) -> None:
        """Receive until ``enough`` is true or the monotonic time ``until_s`` is reached."""
        ...


class RemoteTiers(Tiers):
    """The tiers of one host with processes of their own, from reading to reading.

    Every reading contains all processes. Their threads and the files of their control groups are requested
    separately, once per reading, and processed with the next.

    Args:
        watches: hosts of the farm on this machine.
        hello: first report of the host.
    """

    def __init__(self, watches: Sequence[Watch], hello: Hello) -> None:
        self._asked = RequestedFiles(hello)
        wanted = {
            watch.host: (watch.tier, watch.processes) for watch in watches if watch.processes is not None
        }
        super().__init__(wanted, self._asked, self._asked)
        self._latest: _Look | None = None
        self._looked: _Look | None = None
        self._open: _Look | None = None
        self._answered: _Look | None = None
        self._answered_s = 0.0
        """Uptime of the host at its last answer in seconds."""

    def cpu(
        self, text: str, time_ns: int, now_ns: int, uptime_s: float, interval_s: float
    ) -> Iterator[Sample]:
        """Yield the CPU of the tiers since the last reading.

        Args:
            text: /proc/PID/stat of all processes.
            time_ns: time of the reading by the local clock.
            now_ns: the same time by a monotonic clock.
            uptime_s: the same time as uptime of the host in seconds.
            interval_s: seconds since the last reading.
        """
        before, table = self._latest, parse_all(text)
        by_parent = children(table.values())
        for host, tier in self.by_host.items():
            tier.follow(table, by_parent)
            self._asked.lacking = False
            cores = tier.cores_used()
            known = None if self._asked.lacking else cores
            for value in tier.cpu(before.table if before else None, interval_s, known):
                yield Sample(time_ns, interval_s, host, *value)
        members = {host: tier.members for host, tier in self.by_host.items()}
        self._latest = _Look(time_ns, now_ns, uptime_s, table, members)

    def go_on(self, session: FileSession) -> list[Sample]:
        """Process the answer to the last request, and send the next one. Never waits."""
        samples: list[Sample] = []
        if self._open is not None and self._open.number in session.answers:
            look, self._open = self._open, None
            samples = self._take(look, session.answers.pop(look.number))
        latest = self._latest
        if latest is not None and self._open is None and latest is not self._looked:
            pids = [pid for tier in self.by_host.values() for pid in tier.with_threads()]
            paths = [UPTIME, *self._asked.question()]
            threads = [f"/proc/{pid}/task/*/stat" for pid in pids]
            number = session.ask_files([*map(pattern, paths), *threads])
            self._open = replace(latest, paths=paths, number=number)
            self._looked = latest
        return samples

    def prepare(self, session: FileSession, until_s: float) -> None:
        """Request all details of the processes, in several rounds.

        A process shows its group, and the group its limits. Waits at most until a monotonic time.
        """
        while self._lacks_facts() and time.monotonic() < until_s:
            paths = [UPTIME, *self._asked.question()]
            number = session.ask_files([pattern(path) for path in paths])
            session.wait(until_s, partial(operator.contains, session.answers, number))
            if number not in session.answers:
                return
            self._asked.take(paths, session.answers.pop(number))

    def _lacks_facts(self) -> bool:
        self._asked.lacking = False
        for host in self.by_host:
            self.facts(host)
        return self._asked.lacking

    def _take(self, look: _Look, lines: Sequence[str]) -> list[Sample]:
        """Yield threads and memory since the last answer."""
        uptime_s = self._asked.take(look.paths, lines)
        if uptime_s is None:  # the host could not even read its uptime; the next request may succeed
            return []
        before, self._answered = self._answered, look
        since_s, self._answered_s = self._answered_s, uptime_s
        interval_s = (look.now_ns - before.now_ns) / _NS if before else 0.0
        passed_s = uptime_s - since_s if before else 0.0
        time_ns = look.time_ns + round((uptime_s - look.uptime_s) * _NS)
        samples: list[Sample] = []
        for host, tier in self.by_host.items():
            table = before.table if before else None
            values = list(tier.threads(look.members[host], table, interval_s, passed_s))
            self._asked.lacking = False
            memory = list(tier.memory(passed_s))
            values += [] if self._asked.lacking else memory
            samples += [Sample(time_ns, passed_s, host, *value) for value in values]
        return samples
