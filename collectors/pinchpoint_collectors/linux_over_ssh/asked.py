"""Files of a host that are asked for as they are needed: what one look misses, the next question brings."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from pinchpoint_collectors.linux.files import Facts
from pinchpoint_collectors.linux.inventory import allowed_cores
from pinchpoint_collectors.linux_over_ssh.hello import Hello
from pinchpoint_collectors.proc import process
from pinchpoint_collectors.proc.process import Process, tops

UPTIME = "/proc/uptime"
"""Asked for with every question: it tells when the host read the rest."""
_SPECIAL = re.compile(r"[\s*?\[\]\\]")
_THREAD = re.compile(r"/proc/(\d+)/task/(\d+)/stat:(.*)", re.DOTALL)


class Asked:
    """The small files of single processes and control groups, as the host's last answer has them.

    Whoever looks through them (``CpuCaps``, ``MemoryCaps``) needs not know that they are far away: what is
    looked for is asked for with the next question, also what is known, as it changes.

    Args:
        hello: what the host told at first: what is there is not asked for again.

    Attributes:
        lacking: whether something was looked for that the host was not asked for yet; who looks resets it.
        ticks_per_s: see ``Singles``.
        page_bytes: likewise.
    """

    def __init__(self, hello: Hello) -> None:
        self.lacking = False
        self.ticks_per_s = hello.ticks_per_s
        self.page_bytes = hello.page_bytes
        self._told: Facts = hello.files
        self._wanted: dict[str, None] = {}  # a set that keeps its order
        self._answer: Mapping[str, str | None] = {}
        self._threads: Mapping[int, Mapping[int, Process]] = {}

    def fact(self, path: str) -> str | None:
        """See ``Facts``; None also where it is not known yet: then ``lacking`` is set."""
        told = self._told.fact(path)
        if told is not None:
            return told
        self._wanted[path] = None
        if path not in self._answer:
            self.lacking = True
        return self._answer.get(path)

    def threads(self, pid: int) -> Mapping[int, Process]:
        """See ``Singles``: as the last answer has them, where it was asked for them."""
        return self._threads.get(pid, {})

    def cores(self, members: Mapping[int, Process]) -> list[int]:
        """See ``Singles``; of children no others than their parents': they inherit them."""
        allowed: set[int] = set()
        for pid in tops(members):
            allowed |= set(allowed_cores(self.fact(f"/proc/{pid}/status") or ""))
        return sorted(allowed)

    def question(self) -> list[str]:
        """What was looked for since the question before."""
        wanted, self._wanted = list(self._wanted), {}
        return wanted

    def take(self, paths: Sequence[str], lines: Iterable[str]) -> float | None:
        """An answer of the host.

        Args:
            paths: what it was asked for.
            lines: each a path, a colon, and a line of that file.

        Returns:
            Its uptime when it read them (s); None where it did not tell.
        """
        threads: dict[int, dict[int, Process]] = defaultdict(dict)
        texts: dict[str, list[str]] = defaultdict(list)
        longest_first = sorted(paths, key=len, reverse=True)
        for line in lines:
            thread = _THREAD.match(line)
            if thread:
                threads[int(thread[1])][int(thread[2])] = process.parse(thread[3])
                continue
            # A control group's name may hold a colon: only what was asked for says where the path ends.
            path = next((one for one in longest_first if line.startswith(f"{one}:")), None)
            if path is not None:
                texts[path].append(line[len(path) + 1 :])
        self._threads = threads
        self._answer = {path: "\n".join(texts[path]).strip() or None for path in paths}
        uptime = self._answer.get(UPTIME)
        return float(uptime.split()[0]) if uptime else None


def pattern(path: str) -> str:
    """A path as one word of the shell there, which replaces patterns: a sign that is special is any one."""
    return _SPECIAL.sub("?", path)
