"""Finds the processes of this machine and of its tiers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import psutil

from pinchpoint_collectors.linux.files import read_text
from pinchpoint_collectors.processes import Process, lives, tops
from pinchpoint_collectors.record import Processes

KERNEL_NAME_LETTERS = 15
_READINGS_PER_FULL_SCAN = 60
_READINGS_PER_PORT_SEARCH = 10
UNSEEN = (FileNotFoundError, ProcessLookupError, PermissionError)
"""Errors for a process that has ended since the listing, or that hidepid=1 hides because it is another
user's."""
_HIDDEN = (
    "/proc hides other users' processes there (hidepid): watch as root, as the server's user, or as one of "
    "the group that its mount option gid names"
)


def parse(text: str) -> Process:
    """Parse /proc/PID/stat, or a thread's /proc/PID/task/TID/stat.

    The name is in parentheses and may contain spaces and parentheses.
    """
    head, _, tail = text.rpartition(")")
    pid, _, name = head.partition(" (")
    # tail starts with field 3 of proc(5): state, ppid, ...; utime is field 14.
    f = tail.split()
    return Process(
        int(pid), int(f[1]), name, int(f[19]), int(f[17]), int(f[11]) + int(f[12]), int(f[13]) + int(f[14])
    )


class ProcessTable:
    """All processes except kernel threads. They are read once for all tiers."""

    def __init__(self) -> None:
        self._kernel_threads: set[int] = set()
        self._readings = 0

    def read(self) -> dict[int, Process]:
        """Return id -> process.

        /proc is read directly, because psutil takes ten times the time per process.
        """
        if self._readings % _READINGS_PER_FULL_SCAN == 0:  # the id may belong to another process now
            self._kernel_threads.clear()
        self._readings += 1
        pids = {int(name) for name in os.listdir("/proc") if name.isdigit()}  # noqa: PTH208 - no Path per process
        self._kernel_threads &= pids
        table = {}
        for pid in pids - self._kernel_threads:
            result = _read(f"/proc/{pid}/stat")
            if result is not None:
                table[pid] = result
        kthreadd = table.get(2)
        if kthreadd is not None and kthreadd.name == "kthreadd" and kthreadd.parent == 0:
            self._kernel_threads.update(pid for pid, result in table.items() if result.parent == 2)
        return {pid: result for pid, result in table.items() if pid not in self._kernel_threads}


class ServerMark(NamedTuple):
    """Properties that distinguish servers with the same name.

    Attributes:
        ports: TCP ports on which the server listens.
        directory: working directory; PostgreSQL, MariaDB and Redis use their data directory. None: unknown.
    """

    ports: Sequence[int] = ()
    directory: str | None = None


class ProcessReader(Protocol):
    """Reads details of single processes.

    Attributes:
        ticks_per_s: clock ticks per second of CPU times.
        page_bytes: page size of the machine in bytes.
    """

    ticks_per_s: int
    page_bytes: int

    def threads(self, pid: int) -> Mapping[int, Process]:
        """Return the threads of a process by id; none after its end. ``own`` is the time of the thread."""
        ...

    def cores(self, members: Mapping[int, Process]) -> list[int]:
        """Return the cores that at least one of these processes may use, in order."""
        ...

    def places(self, pids: Sequence[int]) -> Mapping[int, ServerMark]:
        """Return ports and working directories of processes, as far as this user may see them."""
        ...


class LocalProcessReader:
    """Reads the processes of this machine."""

    def __init__(self) -> None:
        self.ticks_per_s = os.sysconf("SC_CLK_TCK")
        self.page_bytes = os.sysconf("SC_PAGE_SIZE")

    def threads(self, pid: int) -> dict[int, Process]:
        return read_threads(pid)

    def cores(self, members: Mapping[int, Process]) -> list[int]:
        allowed: set[int] = set()
        for pid in members:
            try:
                allowed |= os.sched_getaffinity(pid)
            except ProcessLookupError:  # the process ended since it was listed
                continue
        return sorted(allowed)

    def places(self, pids: Sequence[int]) -> Mapping[int, ServerMark]:
        return {pid: ServerMark(sorted(_ports(pid)), _directory(pid)) for pid in pids}


def _ports(pid: int) -> set[int]:
    try:
        connections = psutil.Process(pid).net_connections("tcp")
    except psutil.Error:
        return set()
    return {one.laddr.port for one in connections if one.status == psutil.CONN_LISTEN}


def _directory(pid: int) -> str | None:
    try:
        return os.readlink(f"/proc/{pid}/cwd")  # noqa: PTH115 - as the kernel says it
    except OSError:
        return None


def read_threads(pid: int) -> dict[int, Process]:
    """Return the threads of a process by id; none after its end. ``own`` is the time of the thread."""
    try:
        tids = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - no Path object per thread and second
    except UNSEEN:
        return {}
    threads = {tid: _read(f"/proc/{pid}/task/{tid}/stat") for tid in tids}
    return {int(tid): thread for tid, thread in threads.items() if thread is not None}


def _read(path: str) -> Process | None:
    try:
        return parse(read_text(path))
    except UNSEEN:
        return None


def _command_line(pid: int) -> str:
    try:
        return read_text(f"/proc/{pid}/cmdline").replace("\0", " ")
    except UNSEEN:
        return ""


class Missing(NamedTuple):
    """Why the processes of a tier were not found, and the remedy."""

    why: str
    remedy: str


def _sees_all(table: Mapping[int, Process]) -> bool:
    """Return whether other users' processes are visible: the first process always exists."""
    return 1 in table


class Roots:
    """Finds the root processes of a tier, also after the server was restarted."""

    def __init__(self, wanted: Processes) -> None:
        self._wanted = wanted
        self._names = {name[:KERNEL_NAME_LETTERS] for name in wanted.names}
        self._starts: dict[int, int] = {}
        self._owner: Process | None = None
        self._searches = 0
        self.missing: Missing | None = None

    def find(self, table: Mapping[int, Process]) -> list[Process]:
        """Return the root processes of the tier. If there are none, ``missing`` says why."""
        if self._wanted.pids:
            process = self._by_pid(table)
        elif self._wanted.names:
            process = self._by_name(table)
        else:
            process = self._by_port(table)
        if process:
            self.missing = None
        return process

    def _by_pid(self, table: Mapping[int, Process]) -> list[Process]:
        there = [table[pid] for pid in self._wanted.pids if pid in table]
        ids = ", ".join(map(str, self._wanted.pids))
        remedy = "start the tier before the run" if _sees_all(table) else _HIDDEN
        self.missing = Missing(f"no process with id {ids} runs", remedy)
        # The id of an ended process is used again, so the start time identifies the process.
        return [found for found in there if self._starts.setdefault(found.pid, found.start) == found.start]

    def _by_name(self, table: Mapping[int, Process]) -> list[Process]:
        names = ", ".join(self._wanted.names)
        remedy = "start it before the run, or give `process:` a name as `ps -e -o comm` shows it"
        self.missing = Missing(
            f"no process named {names} runs there",
            remedy if _sees_all(table) else f"{remedy}; {_HIDDEN}",
        )
        named = [found for found in table.values() if found.name in self._names]
        if not self._wanted.command_line:
            return self._that_answers(named)
        self.missing = Missing(
            f"no process named {names} has {self._wanted.command_line!r} in its command line",
            "give `command_line:` a text that `ps -e -o args` shows for it",
        )
        return [found for found in named if self._wanted.command_line in _command_line(found.pid)]

    def _that_answers(self, named: list[Process]) -> list[Process]:
        """Return the server that listens on the tier's endpoint; all servers if none does."""
        own = {found.pid: found for found in named}
        first = tops(own)
        if self._wanted.port is None or len(first) < 2:
            return named
        if self._owner is None or not lives(self._owner, own):
            listens = (pid for pid in first if self._wanted.port in _ports(pid))
            self._owner = next((own[pid] for pid in listens), None)
        return [self._owner] if self._owner else named

    def _by_port(self, table: Mapping[int, Process]) -> list[Process]:
        if self._owner is not None:
            now = table.get(self._owner.pid)
            if now is not None and now.start == self._owner.start:
                return [now]
            self._owner, self._searches = None, 0
        if self._searches % _READINGS_PER_PORT_SEARCH == 0:  # a search opens every file of every process
            self._owner = self._port_owner(table)
        self._searches += 1
        return [self._owner] if self._owner else []

    def _port_owner(self, table: Mapping[int, Process]) -> Process | None:
        port = self._wanted.port
        owners = [
            connection.pid
            for connection in psutil.net_connections("tcp")
            if connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port
        ]
        for pid in owners:
            if pid is not None and pid in table:
                return table[pid]
        if owners:
            self.missing = Missing(
                f"a process listens on TCP port {port}, but this user may not see which process",
                "run Pinchpoint as root or as the server's user, or say `process: NAME`",
            )
        else:
            self.missing = Missing(
                f"no process listens on TCP port {port}",
                "start the server before the run, or correct `port:`",
            )
        return None
