"""CPU of tiers that share a host, with each reading; threads and limits on request.

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
"""Part of every question: it shows when the host read the rest."""
_SPECIAL = re.compile(r"[\s*?\[\]\\]")
_THREAD = re.compile(r"/proc/(\d+)/task/(\d+)/stat:(.*)", re.DOTALL)
_STAT = re.compile(r"^\d+ \(.*\) \S( -?\d+){40,}$", re.MULTILINE)
"""A process name may contain a line break: such a process is not recognised and belongs to no tier."""


def parse_all(text: str) -> dict[int, Process]:
    """Every process of a reading, by its id."""
    return {one.pid: one for one in (parse(found[0]) for found in _STAT.finditer(text))}


class RequestedFiles:
    """The small files of single processes and control groups, from the host's last answer.

    ``CpuCaps`` and ``MemoryCaps`` read them like local files. Each file that is read is requested with the
    next question, also if it is known, because it may change.

    Args:
        hello: the host's first report; its files are not requested again.

    Attributes:
        lacking: whether a file was read that has not been requested yet; the reader resets it.
        ticks_per_s: see ``ProcessReader``.
        page_bytes: likewise.
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
        """The text of a file; None also if it is not known yet: then ``lacking`` is set."""
        reported = self._reported.fact(path)
        if reported is not None:
            return reported
        self._wanted[path] = None
        if path not in self._answer:
            self.lacking = True
        return self._answer.get(path)

    def threads(self, pid: int) -> Mapping[int, Process]:
        """The threads of a process, if the last answer has them."""
        return self._threads.get(pid, {})

    def cores(self, members: Mapping[int, Process]) -> list[int]:
        """The cores of a process; a child's file is not read: it inherits its parent's cores."""
        allowed: set[int] = set()
        for pid in tops(members):
            allowed |= set(allowed_cores(self.fact(f"/proc/{pid}/status") or ""))
        return sorted(allowed)

    def places(self, pids: Sequence[int]) -> Mapping[int, ServerMark]:
        """Nothing: not asked for."""
        return {pid: ServerMark() for pid in pids}

    def question(self) -> list[str]:
        """The paths that were read since the last question."""
        wanted, self._wanted = list(self._wanted), {}
        return wanted

    def take(self, paths: Sequence[str], lines: Iterable[str]) -> float | None:
        """An answer of the host.

        Args:
            paths: the requested paths.
            lines: each a path, a colon, and a line of that file.

        Returns:
            Returns its uptime at the time of reading (s); None if unknown.
        """
        threads: dict[int, dict[int, Process]] = defaultdict(dict)
        texts: dict[str, list[str]] = defaultdict(list)
        longest_first = sorted(paths, key=len, reverse=True)
        for line in lines:
            thread = _THREAD.match(line)
            if thread:
                threads[int(thread[1])][int(thread[2])] = parse(thread[3])
                continue
            # A control group's name may contain a colon: only the request shows where the path ends.
            path = next((one for one in longest_first if line.startswith(f"{one}:")), None)
            if path is not None:
                texts[path].append(line[len(path) + 1 :])
        self._threads = threads
        self._answer = {path: "\n".join(texts[path]).strip() or None for path in paths}
        uptime = self._answer.get(UPTIME)
        return float(uptime.split()[0]) if uptime else None


def pattern(path: str) -> str:
    """A path as one word of the host's shell, which expands patterns: a special character becomes ``?``."""
    return _SPECIAL.sub("?", path)


@dataclass(frozen=True, slots=True)
class _Look:
    """The state of the host at the time of a question.

    Attributes:
        time_ns: of the reading before the question, by our clock.
        now_ns: the same by a monotonic clock.
        uptime_s: the same as the host's uptime.
        table: every process of that reading.
        members: host -> processes of its tier.
        paths: what was requested.
        number: of the question.
    """

    time_ns: int
    now_ns: int
    uptime_s: float
    table: Mapping[int, Process]
    members: Mapping[str, Mapping[int, Process]]
    paths: Sequence[str] = ()
    number: int = 0


class FileSession(Protocol):
    """The required part of a ``Session``.

    Attributes:
        answers: of the host, by the question's number.
    """

    answers: dict[int, list[str]]

    def ask_files(self, patterns: Sequence[str]) -> int:
        """Ask for files; return the question's number."""
        ...

    def wait(self, until_s: float, enough: Callable[[], bool]) -> None:
        """Receive until ``enough`` is true, or it is ``until_s`` (monotonic clock)."""
        ...


class RemoteTiers(Tiers):
    """The tiers of one host with processes of their own, reading by reading.

    Every reading has all processes; their threads and the files of their control groups are a separate
    question, sent once per reading and answered with the next.

    Args:
        watches: the farm's hosts on this machine.
        hello: the host's first report.
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
        """The host's uptime at its last answer."""

    def cpu(
        self, text: str, time_ns: int, now_ns: int, uptime_s: float, interval_s: float
    ) -> Iterator[Sample]:
        """The tiers' CPU since the reading before.

        Args:
            text: /proc/PID/stat of every process.
            time_ns: time of the reading, by our clock.
            now_ns: the same by a monotonic clock.
            uptime_s: the same as the host's uptime.
            interval_s: seconds since the reading before.
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
        """Take the answer to the last question, and send the next one. Never waits."""
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
        """Ask for all details of the processes, in several rounds.

        A process shows its group, and the group its limits. Waits at most until then (monotonic clock).
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
        """Threads and memory since the answer before."""
        uptime_s = self._asked.take(look.paths, lines)
        if uptime_s is None:  # the host could not read even its uptime: the next question may succeed
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
