"""The disk that storage-probe works on: of this machine, or of another one that is reached over ssh."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.remote.ssh import OPTIONS, Address

from ..contract import Endpoint
from ..errors import EndpointUnreachable
from . import remote
from .folder import FOLDER, NotRemoved, check_room, claim
from .process import ToolOutput, run
from .tool import Tool, installed, resolved
from .tools import TOOLS


class MachineFacts(Protocol):
    """What is known of a disk's machine."""

    @property
    def memory_bytes(self) -> int:
        """The memory of the machine in bytes."""
        ...

    @property
    def root(self) -> bool:
        """Whether tools run as root there."""
        ...


class ProbedMachine(Protocol):
    """One machine, with a folder of the probe's own on the disk."""

    @property
    def folder(self) -> Path:
        """The folder, as it is called there."""
        ...

    @property
    def looked(self) -> MachineFacts:
        """The machine itself."""
        ...

    def tool(self, name: str) -> Tool:
        """The program there that does what a job asks of one of ``TOOLS``. Raises ToolMissing."""
        ...

    def run(self, tool: Tool, command: Sequence[str], stop: Callable[[], bool]) -> ToolOutput:
        """Run one of a tool's commands in the folder.

        Raises ToolMissing, ToolFailed, ProbeStopped as soon as ``stop`` says so, EndpointUnreachable,
        HostUnreachable.
        """
        ...

    def results(self) -> AbstractContextManager[Path]:
        """A folder of this machine with what the last command left beside its output."""
        ...


class LocalFacts:
    """A folder of this machine.

    Attributes:
        folder: the folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def host(self) -> str:
        """This machine's name."""
        return socket.gethostname()

    @property
    def device(self) -> str | None:
        """The block device below it; None without one (memory, a network share; it is gone)."""
        try:
            number = self.folder.stat().st_dev
        except OSError:
            return None
        link = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
        return link.resolve().name if link.exists() else None

    @property
    def memory_bytes(self) -> int:
        """This machine's memory."""
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

    @property
    def root(self) -> bool:
        """Whether we are root."""
        return os.geteuid() == 0


@dataclass(frozen=True, slots=True)
class LocalMachine:
    """This machine (a ``ProbedMachine``).

    Attributes:
        folder: the probe's own.
        looked: the disk it lies on.
    """

    folder: Path
    looked: LocalFacts

    def tool(self, name: str) -> Tool:
        return TOOLS[name]

    def run(self, tool: Tool, command: Sequence[str], stop: Callable[[], bool]) -> ToolOutput:
        try:
            return run(resolved(tool, command), self.folder, stop)
        except OSError as error:
            raise EndpointUnreachable(
                f"{self.folder}: {tool.program} cannot be started: {error.strerror}; is the disk still "
                "mounted?"
            ) from error

    @contextmanager
    def results(self) -> Iterator[Path]:
        yield self.folder


@contextmanager
def here(parent: Path, needed_bytes: int) -> Iterator[LocalMachine]:
    """This machine, with a folder of ours in ``parent`` that has room; it is gone afterwards.

    One that a killed probe left is removed first. Raises ForeignFolder, NoRoom, NotRemoved.
    """
    claimed = claim(parent)
    try:
        usage = shutil.disk_usage(claimed.path)
        check_room(str(claimed.path), needed_bytes, usage.free, usage.total)
        yield LocalMachine(claimed.path, LocalFacts(parent))
    finally:
        try:
            claimed.release()
        except NotRemoved:
            raise
        except BaseException:
            claimed.release()  # Ctrl-C in the midst of it: it raises once, and nothing is to be left
            raise


class DiskWithFolder(Protocol):
    """One disk of a plan, with a folder of ours on it from ``prepare`` to ``release``."""

    @property
    def words(self) -> str:
        """The probe's folder, for a person."""
        ...

    @property
    def memory_bytes(self) -> int | None:
        """The machine's memory; None: not known without asking the machine."""
        ...

    @property
    def machine(self) -> ProbedMachine:
        """The machine, once the disk is prepared, by this process or another one."""
        ...

    def check(self, tools: Sequence[Tool]) -> dict[str, str]:
        """Tool -> its version or name. Raises EndpointUnreachable, ToolMissing."""
        ...

    def look(self) -> remote.RemoteFacts | LocalFacts:
        """What is known of the disk. Raises EndpointUnreachable."""
        ...

    def prepare(self, needed_bytes: int) -> None:
        """Make the folder. Raises ForeignFolder, NoRoom, EndpointUnreachable, HostUnreachable."""
        ...

    def release(self) -> None:
        """Remove the folder. Safe to call again. Raises NotRemoved."""
        ...


class LocalDisk:
    """A folder on a disk of this machine (see ``ProbedDisk``)."""

    def __init__(self, folder: Path) -> None:
        self._facts = LocalFacts(folder)
        self._held = ExitStack()

    @property
    def words(self) -> str:
        return str(self._facts.folder / FOLDER)

    @property
    def memory_bytes(self) -> int | None:
        return self._facts.memory_bytes

    @property
    def machine(self) -> ProbedMachine:
        return LocalMachine(self._facts.folder / FOLDER, self._facts)

    def check(self, tools: Sequence[Tool]) -> dict[str, str]:
        parent = self._facts.folder
        if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
            raise EndpointUnreachable(
                f"storage-probe: {parent} is no folder that this user may write to; name another disk"
            )
        for tool in tools:
            installed(tool)
        return {tool.name: tool.name for tool in tools}

    def look(self) -> LocalFacts:
        return self._facts

    def prepare(self, needed_bytes: int) -> None:
        self._held.enter_context(here(self._facts.folder, needed_bytes))

    def release(self) -> None:
        self._held.close()


class SshDisk:
    """A disk of another machine (see ``ProbedDisk``).

    The process that prepares holds the folder there by a keeper (``remote``); sessions of other processes
    only run their tools in it.
    """

    def __init__(self, name: str, address: Address, path: str | None, device: str | None) -> None:
        self._name, self._address = name, address
        self._path, self._device = path, device
        self._held = ExitStack()
        self._there: remote.RemoteMachine | None = None

    @property
    def words(self) -> str:
        return f"{self._address}:{self._path or self._device}/{FOLDER}"

    @property
    def memory_bytes(self) -> int | None:
        return None

    @property
    def machine(self) -> ProbedMachine:
        return self._there or remote.Guest(self._address, self.look())

    def check(self, tools: Sequence[Tool]) -> dict[str, str]:
        self.look()
        try:
            return {
                tool.name: f"{remote.version(self._address, tool).splitlines()[0]} on {self._address}"
                for tool in tools
            }
        except remote.HostUnreachable as error:
            raise EndpointUnreachable(f"storage-probe: {error}") from error

    @cached_property
    def _looked(self) -> remote.RemoteFacts:
        return remote.look(self._address, self._path, self._device, self._name)

    def look(self) -> remote.RemoteFacts:
        try:
            return self._looked
        except (remote.HostUnreachable, remote.DiskNotThere) as error:
            raise EndpointUnreachable(f"storage-probe: {error}") from error

    def prepare(self, needed_bytes: int) -> None:
        self._there = self._held.enter_context(remote.there(self._address, self.look(), needed_bytes))

    def release(self) -> None:
        self._held.close()


def disk_of(name: str, endpoint: Endpoint) -> DiskWithFolder:
    """The disk that an endpoint is. Raises EndpointUnreachable where it is neither here nor over ssh."""
    options = endpoint.options
    if "address" in options:
        keys: dict[str, object] = {key: value for key, value in options.items() if key in OPTIONS}
        if "port" in keys:
            keys["port"] = int(options["port"])
        try:
            address = Address.of(keys)
        except CollectorError as error:
            raise EndpointUnreachable(f"storage-probe: {name}: {error}") from error
        return SshDisk(name, address, endpoint.url or None, options.get("device"))
    here = socket.gethostname()
    if options.get("host", here) != here:
        raise EndpointUnreachable(
            f"storage-probe: {name} is a disk of {options['host']}, and this load generator runs on "
            f"{here}; let a generator on that machine do it, or give params.folder"
        )
    return LocalDisk(Path(endpoint.url))
