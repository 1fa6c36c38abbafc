"""Processes that share a large piece of work: reading a corpus, loading it."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from itertools import islice
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any, Self, TypeVar

from pinchpoint_infra.content.errors import ContentError

_WORKER = "pinchpoint_infra.content.worker"
_MOST = 8
_AHEAD = 4
"""Per worker: so many parts of the work are given out or done before the first of them is taken back."""

Part = TypeVar("Part")
Result = TypeVar("Result")


class Workers:
    """So many processes as there are cores; none where there is only one.

    Args:
        cores: where they may run.
    """

    def __init__(self, cores: Collection[int]) -> None:
        self._cores = set(cores)
        self._links: dict[Connection, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End them at once: what they had not finished is not wanted any more."""
        self._end()

    def _end(self) -> None:
        for link, process in self._links.items():
            link.close()
            process.kill()
            process.wait()
        self._links = {}

    def each(
        self, work: Callable[[Part], Result], parts: Iterable[Part], *, worth_it: bool = True
    ) -> Generator[Result, None, None]:
        """``work`` of every part, in the order of the parts.

        Args:
            work: a function of a module; what it raises is raised here.
            parts: made one by one, as they are needed: no more of them are in memory than are being done.
            worth_it: whether there is so much to do that processes are started for it.
        """
        if not worth_it or len(self._cores) < 2:
            yield from map(work, parts)
            return
        self._start()
        waiting = ((position, (work, part)) for position, part in enumerate(parts))
        busy, done = dict[Connection, int](), dict[int, Result]()
        following = 0
        try:
            while True:
                self._hand_out(waiting, busy, len(done))
                if not busy:
                    return
                for link in wait(list(busy)):
                    assert isinstance(link, Connection)  # noqa: S101 -- it is one of those waited for
                    position = busy.pop(link)
                    done[position] = self._result(link)
                while following in done:
                    yield done.pop(following)
                    following += 1
        except GeneratorExit:  # who asked has enough: what is still under way is not the next work's
            for link in busy:
                with contextlib.suppress(EOFError):  # one that has ended is told when it is asked again
                    link.recv()
            raise
        except BaseException:
            self._end()
            raise

    def _hand_out(self, waiting: Iterator[tuple[int, Any]], busy: dict[Connection, int], held: int) -> None:
        """A part to each process that has none, while there are any and not too many results held back."""
        for link in self._links.keys() - busy.keys():
            if len(busy) + held >= _AHEAD * len(self._links):
                return
            position, task = next(waiting, (-1, None))
            if position < 0:
                return
            link.send(task)
            busy[link] = position

    def _start(self) -> None:
        for _ in range(min(_MOST, len(self._cores)) - len(self._links)):
            ours, theirs = socket.socketpair()
            cores = ",".join(map(str, sorted(self._cores)))
            with theirs:
                process = subprocess.Popen(
                    [sys.executable, "-m", _WORKER, str(theirs.fileno()), cores],
                    stdin=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                )
            self._links[Connection(ours.detach())] = process

    def _result(self, link: Connection) -> Any:
        try:
            fine, result = link.recv()
        except (EOFError, OSError) as error:
            status = self._links[link].wait()
            raise ContentError(
                f"a process that reads the corpus ended by itself (exit status {status}): memory may be short"
            ) from error
        if not fine:
            raise result
        return result


def parts(rows: Iterable[Part], size: int) -> Iterator[list[Part]]:
    """Rows in lists of so many, the last one shorter."""
    rest = iter(rows)
    while part := list(islice(rest, size)):
        yield part
