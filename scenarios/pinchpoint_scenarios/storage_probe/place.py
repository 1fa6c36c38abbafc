"""Provides the disk that storage-probe measures: on this machine, or on another machine over ssh."""

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
    """Facts about the machine of a disk."""

    @property
    def memory_bytes(self) -> int:
        """Return the memory of the machine in bytes."""
        ...

    @property
    def root(self) -> bool:
        """Return whether the tools run as root on the machine."""
        ...


class ProbedMachine(Protocol):
    """A machine with the probe's folder on the disk."""

    @property
    def folder(self) -> Path:
        """Return the path of the folder on the machine."""
        ...

    @property
    def looked(self) -> MachineFacts:
        """Return the facts about the machine."""
        ...

    def tool(self, name: str) -> Tool:
        """Return the tool on this machine that runs jobs for a name in ``TOOLS``. Raises ToolMissing."""
        ...

    def run(self, tool: Tool, command: Sequence[str], stop: Callable[[], bool]) -> ToolOutput:
        """Run a command of a tool in the folder.

        Raises ToolMissing, ToolFailed, EndpointUnreachable, HostUnreachable; ProbeStopped as soon as ``stop``
        returns True.
        """
        ...

    def results(self) -> AbstractContextManager[Path]:
        """Open a local folder with the files that the last command wrote."""
        ...


class LocalFacts:
    """Facts about a folder of this machine.

    Attributes:
        folder: path of the folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def host(self) -> str:
        """Return the name of this machine."""
        return socket.gethostname()

    @property
    def device(self) -> str | None:
        """Return the block device of the folder; None if there is none (memory, a network share)."""
        try:
            number = self.folder.stat().st_dev
        except OSError:
            return None
        link = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
        return link.resolve().name if link.exists() else None

    @property
    def memory_bytes(self) -> int:
        """Return the memory of this machine in bytes."""
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

    @property
    def root(self) -> bool:
        """Return whether this process runs as root."""
        return os.geteuid() == 0


@dataclass(frozen=True, slots=True)
class LocalMachine:
    """This machine as a ``ProbedMachine``.

    Attributes:
        folder: folder of the probe.
        looked: facts about the disk of the folder.
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
    """Create the probe's folder in ``parent``, yield this machine, and remove the folder at the end.

    The folder of a killed probe is removed first. Raises ForeignFolder, NoRoom, NotRemoved.
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
            claimed.release()  # Ctrl-C during the removal raises once, so the removal is repeated
            raise


class DiskWithFolder(Protocol):
    """A disk of a plan. The probe's folder is on it from ``prepare`` to ``release``."""

    @property
    def words(self) -> str:
        """Return the probe's folder as text for messages."""
        ...

    @property
    def memory_bytes(self) -> int | None:
        """Return the memory of the machine in bytes; None if only the machine can report it."""
        ...

    @property
    def machine(self) -> ProbedMachine:
        """Return the machine. This process or another one has prepared the disk before."""
        ...

    def check(self, tools: Sequence[Tool]) -> dict[str, str]:
        """Return tool -> its version or name. Raises EndpointUnreachable, ToolMissing."""
        ...

    def look(self) -> remote.RemoteFacts | LocalFacts:
        """Return the facts about the disk. Raises EndpointUnreachable."""
        ...

    def prepare(self, needed_bytes: int) -> None:
        """Create the folder. Raises ForeignFolder, NoRoom, EndpointUnreachable, HostUnreachable."""
        ...

    def release(self) -> None:
        """Remove the folder. A second call does nothing. Raises NotRemoved."""
        ...


class LocalDisk:
    """A disk of this machine as a ``DiskWithFolder``."""

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
    """A disk of another machine as a ``DiskWithFolder``.

    The process that calls ``prepare`` keeps the folder by a keeper process (see ``remote``). Sessions in
    other processes only run tools in the folder.
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
    """Return the disk of an endpoint.

    Raises EndpointUnreachable if the disk is neither on this machine nor reachable over ssh.
    """
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
