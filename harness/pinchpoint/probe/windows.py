"""Runs a probe on a Windows machine with DiskSpd, over WinRM or ssh, and leaves nothing there.

One PowerShell session runs ``diskspd.ps1``, which makes the probe's folder and removes it at the end. If the
connection is lost, DiskSpd ends with its measurement, and the script then removes the folder. If the script
was killed, the next probe removes the folder.
"""

from __future__ import annotations

import base64
import contextlib
import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Protocol

from pypsrp.complex_objects import PSInvocationState
from pypsrp.powershell import DEFAULT_CONFIGURATION_NAME, PowerShell, RunspacePool

from pinchpoint.base.errors import FarmUnavailable, GuardError, InputError
from pinchpoint.base.objects import JsonObject
from pinchpoint.probe.record import ProbeLocation
from pinchpoint_collectors.common import winrm
from pinchpoint_collectors.common.powershell import POWERSHELL, Line, LinkLost, encoded, line_of, loader
from pinchpoint_collectors.common.process import PipedProcess
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.remote import ssh
from pinchpoint_collectors.windows.options import WinRm, transport
from pinchpoint_collectors.windows.winrm import connection
from pinchpoint_scenarios.storage_probe import Tool, ToolFailed, ToolMissing
from pinchpoint_scenarios.storage_probe.folder import FOLDER, check_room
from pinchpoint_scenarios.storage_probe.process import ProbeStopped, ToolOutput
from pinchpoint_scenarios.storage_probe.tools.diskspd import DiskSpd

_TOOL = "diskspd.exe"
_OPEN_S, _ANSWER_S, _LONGEST_S = 60.0, 60.0, 24 * 3600.0
_WAIT_S = 1
_PIECE = 48 * 1024
_IDLE_S = 60
"""Seconds without a request after which Windows ends a session; the shortest time that WinRM allows."""
_TOOLS: Mapping[str, Tool] = {"fio": DiskSpd()}
"""Tool of a job -> the equivalent program on Windows."""


@cache
def script() -> str:
    """The text of the PowerShell script."""
    return (files(__package__) / "diskspd.ps1").read_text("utf-8")


class ScriptRefused(Exception):  # noqa: N818 -- the machine's answer, which its reader words
    """The script refused a request; ``what`` is the code of the reason."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(why)
        self.what = what


class WindowsScriptSession(Protocol):
    """A session with the PowerShell script."""

    def ask(
        self, request: JsonObject, within_s: float, stop: Callable[[], bool] = lambda: False
    ) -> list[Line]:
        """Send one request and return the lines of its answer.

        Raises LinkLost, ScriptRefused, CollectorError (login refused), and ProbeStopped as soon as ``stop``
        is true.
        """
        ...

    def interrupt(self, folder: str) -> None:
        """End the DiskSpd process in the probe's folder below ``folder``, after ProbeStopped."""
        ...

    def close(self) -> None:
        """End the session. Safe to call twice."""
        ...


def _answer(lines: Sequence[Line]) -> list[Line]:
    *result, last = lines
    if last["kind"] == "error":
        raise ScriptRefused(str(last.get("what") or ""), str(last.get("why") or "no reason was given"))
    return result


class ScriptOverSsh:
    """A session over OpenSSH, with the system's ssh configuration, keys and known hosts."""

    def __init__(self, address: ssh.Address) -> None:
        self._address = address
        self._number = 0
        self._said: list[str] = []
        self._process: PipedProcess = ssh.start(address, POWERSHELL)
        self._process.write(f"{loader('-Serve')}\n{encoded(script())}\n", time.monotonic() + _OPEN_S)

    def ask(
        self, request: JsonObject, within_s: float, stop: Callable[[], bool] = lambda: False
    ) -> list[Line]:
        self._number += 1
        until = time.monotonic() + within_s
        self._process.write(json.dumps({**request, "id": self._number}) + "\n", until)
        lines: list[Line] = []
        while time.monotonic() < until:
            if stop():
                raise ProbeStopped
            self._process.pump(_WAIT_S)
            for text in self._process.pieces():
                line = line_of(text)
                if line is None:
                    self._said = [*self._said[-9:], text.strip()]
                    continue
                lines.append(line)
                if line["kind"] in ("done", "error") and line.get("id") in (self._number, None):
                    return _answer(lines)
            if self._process.ended:
                answer = self._process.errors or "\n".join(self._said)
                raise LinkLost(ssh.why(self._address, self._process.status(), answer))
        raise LinkLost(f"{self._address}: no answer within {within_s:.0f} s")

    def interrupt(self, folder: str) -> None:
        """End DiskSpd through a second session, because this one takes no request while DiskSpd runs."""
        with contextlib.suppress(LinkLost, ScriptRefused, CollectorError):
            other = ScriptOverSsh(self._address)
            try:
                other.ask({"do": "stop", "path": folder}, _ANSWER_S)
            finally:
                other.close()

    def close(self) -> None:
        self._process.close()


class WinRmSession:
    """A session over WinRM: one runspace holds the script, and each request is a pipeline in it."""

    def __init__(self, address: WinRm) -> None:
        self._address = address
        self._number = 0
        self._connection = connection(address, connection_timeout=30, operation_timeout=20, read_timeout=30)
        self._pool = RunspacePool(
            self._connection,
            configuration_name=address.configuration or DEFAULT_CONFIGURATION_NAME,
            no_profile=True,
            idle_timeout=_IDLE_S,
        )
        try:
            self._safely(self._pool.open)
            # Without a local scope, the functions of the script stay defined for later requests.
            self._run(PowerShell(self._pool).add_script(script(), use_local_scope=False), _OPEN_S)
        except BaseException:
            self.close()
            raise

    def ask(
        self, request: JsonObject, within_s: float, stop: Callable[[], bool] = lambda: False
    ) -> list[Line]:
        self._number += 1
        text = json.dumps({**request, "id": self._number})
        call = PowerShell(self._pool).add_cmdlet("Invoke-PinchpointRequest").add_argument(text)
        answer = self._run(call, within_s, stop)
        lines = [line for line in map(line_of, answer) if line is not None]
        if not lines or lines[-1]["kind"] not in ("done", "error"):
            raise LinkLost(f"{self._address}: the answer is not whole")
        return _answer(lines)

    def interrupt(self, folder: str) -> None:
        """Do nothing: stopping the pipeline has already ended DiskSpd."""

    def close(self) -> None:
        try:
            with contextlib.suppress(*winrm.CLOSING):  # if the connection is lost, Windows ends the session
                self._pool.close()
        finally:
            self._connection.close()

    def _run(self, call: PowerShell, within_s: float, stop: Callable[[], bool] = lambda: False) -> list[str]:
        until = time.monotonic() + within_s
        self._safely(call.begin_invoke)
        while call.state == PSInvocationState.RUNNING:
            if stop():
                self._safely(call.stop)  # the script then ends DiskSpd
                raise ProbeStopped
            if time.monotonic() > until:
                raise LinkLost(f"{self._address}: no answer within {within_s:.0f} s")
            self._safely(lambda: call.poll_invoke(timeout=_WAIT_S))
        if call.state != PSInvocationState.COMPLETED or call.had_errors:
            why = " ".join(" ".join(map(str, call.streams.error)).split())[:400]
            raise LinkLost(f"{self._address}: {why or 'the pipeline was stopped'}")
        self._safely(call.close)
        return [str(one) for one in call.output]

    def _safely(self, step: Callable[[], object]) -> None:
        try:
            winrm.step(step)
        except winrm.WinRmFailure as failure:
            why = failure.why.replace(self._address.password or "\0", "***")[:300]
            if failure.what in ("lost", "moved"):
                raise LinkLost(f"{self._address}: {why}") from failure
            remedy = {
                "refused": "the login was refused; correct user, password or auth: the user must be a member "
                "of Remote Management Users, or an administrator, on that machine",
                "untrusted": "its certificate is not trusted here; give the authority's file (ca:)",
                "kerberos": "a login by Kerberos needs the package pyspnego[kerberos]; or use auth: ntlm",
            }[failure.what]
            raise CollectorError(f"{self._address}: {remedy} ({why})") from failure


def session(options: JsonObject) -> WindowsScriptSession:
    """Open a session with the options of a host's collector. Raises LinkLost, CollectorError."""
    way = transport({key: value for key, value in options.items() if key != "diskspd"})
    return WinRmSession(way) if isinstance(way, WinRm) else ScriptOverSsh(way)


@dataclass(frozen=True, slots=True)
class WindowsDisk:
    """A disk of a Windows machine.

    Attributes:
        where: the disk, as in probe.json.
        memory_bytes: memory of the machine in bytes.
        free_bytes: free bytes of the volume.
        total_bytes: size of the volume in bytes.
        root: whether the login has administrator rights.
    """

    where: ProbeLocation
    memory_bytes: int
    free_bytes: int
    total_bytes: int
    root: bool


@contextmanager
def _worded(disk: str) -> Iterator[None]:
    """Turn failures of the connection into the errors of a command."""
    try:
        yield
    except (LinkLost, CollectorError) as error:
        raise FarmUnavailable(str(error)) from error
    except ScriptRefused as error:
        if error.what == "missing":
            raise InputError(f"{disk}: {error}; correct path: or device: in farm.yaml") from error
        raise FarmUnavailable(f"{disk}: {error}") from error


def look(options: JsonObject, path: str | None, device: str | None, farm: str, disk: str) -> WindowsDisk:
    """Read the facts about a disk. Raises InputError, FarmUnavailable."""
    with _worded(disk):
        opened = session(options)
        try:
            asked = {"do": "look", "path": path, "device": device}
            [result] = opened.ask(asked, _ANSWER_S)
        finally:
            opened.close()
    where = ProbeLocation(
        folder=str(result["folder"]),
        host=str(result["host"]),
        device=None if result["device"] is None else f"disk {result['device']}",
        file_system=result["file_system"],
        model=result["model"],
        farm=farm,
        disk=disk,
    )
    return WindowsDisk(
        where=where,
        memory_bytes=int(result["memory_bytes"]),
        free_bytes=int(result["free_bytes"]),
        total_bytes=int(result["total_bytes"]),
        root=bool(result["administrator"]),
    )


@dataclass(slots=True)
class Windows:
    """A Windows machine with the probe's folder on its disk; implements ``ProbedMachine``."""

    looked: WindowsDisk
    opened: WindowsScriptSession
    folder: Path = field(init=False)

    def __post_init__(self) -> None:
        self.folder = Path(f"{self.looked.where.folder.rstrip(chr(92))}{chr(92)}{FOLDER}")

    def tool(self, name: str) -> Tool:
        """DiskSpd for fio. Raises ToolMissing for any other tool, which does not run on Windows."""
        if name not in _TOOLS:
            raise ToolMissing(
                f"{name} is no program of Windows; use a suite that DiskSpd can run: crystaldiskmark, "
                "iometer, database or stability"
            )
        return _TOOLS[name]

    def run(self, tool: Tool, command: Sequence[str], stop: Callable[[], bool]) -> ToolOutput:
        """Run DiskSpd once."""
        asked = {"do": "run", "arguments": subprocess.list2cmdline(command[1:])}
        try:
            [answer] = self.opened.ask(asked, _LONGEST_S, stop)
        except ProbeStopped:
            self.opened.interrupt(self.looked.where.folder)
            raise
        except (LinkLost, CollectorError) as error:
            raise FarmUnavailable(str(error)) from error
        except ScriptRefused as error:
            if error.what == "gone":
                raise FarmUnavailable(f"{self.folder}: {error}; another process has removed it") from error
            raise ToolFailed(f"{tool.program}: {error}") from error
        return ToolOutput(str(answer["stdout"]), str(answer["stderr"]), int(answer["status"]))

    @contextmanager
    def results(self) -> Iterator[Path]:
        """An empty folder, because DiskSpd writes no result files."""
        with tempfile.TemporaryDirectory(prefix="pinchpoint-probe-") as copies:
            yield Path(copies)


@contextmanager
def there(
    options: JsonObject, looked: WindowsDisk, copied: Path | None, needed_bytes: int
) -> Iterator[Windows]:
    """Make the probe's folder on a Windows machine, after a check for room; remove it afterwards.

    Args:
        options: options of the host's collector; ``diskspd`` is the program's path on that machine.
        looked: the disk.
        copied: path of a local diskspd.exe to copy there; None to use the one on that machine.
        needed_bytes: the most bytes that the folder will contain.

    Raises GuardError if the folder exists but was not created by Pinchpoint, and FarmUnavailable.
    """
    where = looked.where
    check_room(f"{where.host}:{where.folder}", needed_bytes, looked.free_bytes, looked.total_bytes)
    with _worded(str(where.disk)):
        opened = session(options)
    try:
        with _worded(str(where.disk)):
            _open(opened, options, looked, copied)
        yield Windows(looked, opened)
    finally:
        with contextlib.suppress(LinkLost, ScriptRefused, CollectorError):
            opened.ask({"do": "bye"}, _ANSWER_S)
        opened.close()


def _open(
    opened: WindowsScriptSession, options: JsonObject, looked: WindowsDisk, copied: Path | None
) -> None:
    where = looked.where
    folder = f"{where.host}:{where.folder}\\{FOLDER}"
    asked = {
        "do": "open",
        "path": where.folder,
        "tool": options.get("diskspd") or _TOOL,
        "copied": bool(copied),
    }
    try:
        opened.ask(asked, _ANSWER_S)
    except ScriptRefused as error:
        if error.what == "theirs":
            raise GuardError(
                f"{folder}: exists already and was not created by Pinchpoint, so it is neither written to "
                "nor removed; move it away, or give another path"
            ) from error
        if error.what == "used":
            raise GuardError(
                f"{folder}: another probe uses it (process {error}); wait until it ends"
            ) from error
        if error.what == "no_tool":
            raise FarmUnavailable(
                f"{where.host}: DiskSpd was not found ({error}); give its path there in farm.yaml (diskspd: "
                "C:\\Tools\\diskspd.exe beside kind: windows), or give --copy-tool with a diskspd.exe of "
                "this machine"
            ) from error
        raise
    if copied is not None:
        content = copied.read_bytes()
        for at in range(0, len(content), _PIECE):
            piece = base64.b64encode(content[at : at + _PIECE]).decode()
            opened.ask({"do": "put", "data": piece}, _ANSWER_S)
