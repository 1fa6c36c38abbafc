"""A probe's disk on another machine over ssh (``storage_probe.remote``), with a command's errors."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pinchpoint.base.errors import FarmUnavailable, GuardError, InputError
from pinchpoint.probe.record import Where
from pinchpoint_collectors.remote.ssh import Address
from pinchpoint_scenarios.storage_probe import Tool, remote
from pinchpoint_scenarios.storage_probe.folder import NoRoom, NotOurs
from pinchpoint_scenarios.storage_probe.process import ToolOutput


@contextmanager
def _explained() -> Iterator[None]:
    """What goes wrong there, as errors of a command."""
    try:
        yield
    except remote.DiskNotThere as error:
        raise InputError(str(error)) from error
    except NotOurs as error:
        raise GuardError(str(error)) from error
    except (remote.HostUnreachable, NoRoom) as error:
        raise FarmUnavailable(str(error)) from error


@dataclass(frozen=True, slots=True)
class RemoteDisk:
    """A disk of another machine.

    Attributes:
        facts: what is known of it.
        where: the same as in probe.json.
    """

    facts: remote.RemoteFacts
    where: Where


def look(address: Address, path: str | None, device: str | None, farm: str, disk: str) -> RemoteDisk:
    """What is known of the disk there. Raises InputError, FarmUnavailable."""
    with _explained():
        found = remote.look(address, path, device, disk)
    where = Where(
        folder=str(found.folder),
        host=found.host,
        device=found.device,
        file_system=found.file_system,
        model=found.model,
        farm=farm,
        disk=disk,
    )
    return RemoteDisk(found, where)


@dataclass(frozen=True, slots=True)
class SshMachine:
    """Another machine, with a folder of ours (see ``ProbedMachine``).

    Attributes:
        there: the machine.
        copies: a folder of this machine for what tools leave behind there.
    """

    there: remote.There
    copies: Path

    @property
    def folder(self) -> Path:
        """The probe's own folder, there."""
        return self.there.folder

    @property
    def memory_bytes(self) -> int:
        """The machine's."""
        return self.there.memory_bytes

    @property
    def root(self) -> bool:
        """Whether we are root there."""
        return self.there.root

    def tool(self, name: str) -> Tool:
        """The one of that name."""
        return self.there.tool(name)

    def run(self, tool: Tool, command: Sequence[str], stop: Callable[[], bool]) -> ToolOutput:
        with _explained():
            return self.there.run(tool, command, stop)

    def brought(self) -> Path:
        """Logs of the last command, copied; they are removed there."""
        with _explained():
            return self.there.brought(self.copies)


@contextmanager
def there(address: Address, looked: RemoteDisk, needed_bytes: int) -> Iterator[SshMachine]:
    """The machine, with a folder of ours that has room; it is gone afterwards.

    Raises GuardError where the folder there is not ours, FarmUnavailable.
    """
    with (
        tempfile.TemporaryDirectory(prefix="pinchpoint-probe-") as copies,
        _explained(),
        remote.there(address, looked.facts, needed_bytes) as found,
    ):
        yield SshMachine(found, Path(copies))
