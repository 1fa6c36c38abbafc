"""A stand-in Windows machine behind WinRM: a runspace pool in which the script runs, and others beside it.

The logins, the envelopes and the server's half of the remoting protocol are those of the farm's stand-in.
"""

from __future__ import annotations

import base64
import re
import threading
import time
import uuid
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from collectors.windows.standin import Machine
from psrpcore import PSRPPayload, ServerPipeline, ServerRunspacePool, StreamType
from psrpcore.types import NETException
from pypsrp.wsman import NAMESPACES
from scenarios.full_crawl.native.farm import Farm
from scenarios.full_crawl.native.winrmfarm import (
    PASSWORD,
    USER,
    WinRmFarm,
    _command,
    _envelope,
    _fault,
    _tag,
    _text,
)

from pinchpoint_collectors.windows.script import script
from pinchpoint_collectors.windows.winrm import TIME

_TIME = re.compile(re.escape(TIME.format(asked=0)).replace("0", r"(\d+)", 1))
_NO_SHELL, _TIMED_OUT = 2150858843, 2150858793
_POWERSHELL = "http://schemas.microsoft.com/powershell/Microsoft.PowerShell"


class Shell:
    """One runspace pool: what runs in it, and what it has put out and nobody has fetched."""

    def __init__(self, host: WinRmHost) -> None:
        self.host = host
        self.pool = ServerRunspacePool()
        self.changed = threading.Condition()
        self.ended = False
        self.running: set[uuid.UUID] = set()
        self._out: defaultdict[uuid.UUID | None, bytes] = defaultdict(bytes)
        self._threads: list[threading.Thread] = []

    def receive(self, data: bytes, pipeline: uuid.UUID | None = None) -> None:
        """Take the client's messages, and do what they say."""
        with self.changed:
            if pipeline:
                ServerPipeline(self.pool, pipeline)
            self.pool.receive_data(PSRPPayload(data, StreamType.default, pipeline))
            while self.pool.next_event() is not None:
                pass
            if pipeline:
                self._run(self.pool.pipeline_table[pipeline])
            self._drain()

    def fetch(self, pipeline: uuid.UUID | None, within_s: float) -> bytes | None:
        """What was put out; None where nothing was in time."""
        with self.changed:
            self.changed.wait_for(lambda: self._out.get(pipeline), within_s)
            return self._out.pop(pipeline, None)

    def stop(self, pipeline: uuid.UUID) -> None:
        """End what runs in it."""
        with self.changed:
            self.running.discard(pipeline)
            self.changed.notify_all()

    def end(self) -> None:
        """End everything."""
        with self.changed:
            self.ended = True
            self.running.clear()
            self.changed.notify_all()
        for thread in self._threads:
            thread.join(10)

    def _run(self, pipeline: Any) -> None:
        (command,) = pipeline.metadata.commands
        pipeline.start()
        asked = _TIME.fullmatch(command.command_text)
        if command.command_text == script():
            ((name, request),) = command.parameters
            assert name == "Request"
            self.running.add(pipeline.pipeline_id)
            thread = threading.Thread(target=self._loop, args=(pipeline, str(request)), daemon=True)
            self._threads.append(thread)
            thread.start()
            return
        if asked:
            pipeline.write_output(self.host.machine.time(asked[1]))
        else:
            pipeline.write_error(NETException(Message=f"not understood: {command.command_text[:80]}"))
        pipeline.complete()

    def _loop(self, pipeline: Any, request: str) -> None:
        machine = self.host.machine
        self._say(pipeline, [*machine.hello(request)])
        while True:
            with self.changed:
                if pipeline.pipeline_id not in self.running:
                    return
            self._say(pipeline, [*machine.reading()])
            time.sleep(self.host.every_s)

    def _say(self, pipeline: Any, lines: list[str]) -> None:
        with self.changed:
            if not self.ended:
                for line in lines:
                    pipeline.write_output(line)
                self._drain()

    def _drain(self) -> None:
        while (payload := self.pool.data_to_send()) is not None:
            self._out[payload.pipeline_id] += payload.data
        self.changed.notify_all()


class WinRmHost(WinRmFarm):
    """The server.

    Args:
        machine: what the script says there.
        folder: for the certificate.
        tls: HTTPS, not HTTP.
        login: ``basic`` or ``ntlm``; the latter by a file that ``NTLM_USER_FILE`` names.
        every_s: seconds between two readings; each is told as a second.

    Attributes:
        idle: the idle times that sessions were opened with.
        cut: while set, requests are dropped with their connection.
    """

    def __init__(self, machine: Machine, folder: Path, *, tls: bool, login: str, every_s: float) -> None:
        self.machine = machine
        self.every_s = every_s
        self.hosts: dict[str, Shell] = {}
        self.idle: list[str] = []
        self.cut = threading.Event()
        super().__init__(Farm([]), folder, tls=tls, login=login)
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]  # what `cut` raises is wanted

    def options(self, **options: Any) -> dict[str, Any]:
        """What farm.yaml says of it."""
        login = {"user": USER, "password": PASSWORD, "auth": "basic", "tls": self.scheme == "winrm"}
        place = {"address": "127.0.0.1", "port": self._server.server_address[1]}
        ca = {"ca": str(self.ca)} if self.scheme == "winrm" else {}
        return {**place, **login, **ca, **options}

    def end(self) -> None:
        """Nothing is left of it."""
        for shell in self.hosts.values():
            shell.end()
        super().end()

    def forget(self) -> None:
        """Every session is gone, as after a restart of the service."""
        for shell in self.hosts.values():
            shell.end()
        self.hosts.clear()

    def answer(self, body: bytes) -> tuple[int, bytes]:
        """(HTTP status, body) for a request."""
        if self.cut.is_set():
            raise ConnectionResetError
        request = ET.fromstring(body)  # noqa: S314 - our own client has written it
        action = _text(request, "s:Header/wsa:Action").rpartition("/")[2]
        self.actions.append(action)
        if _text(request, "s:Header/wsman:ResourceURI") != _POWERSHELL:
            return 500, _fault(request, 2150858778, "there is no such session configuration")
        selector = request.find("s:Header/wsman:SelectorSet/wsman:Selector", NAMESPACES)
        shell = self.hosts.get(selector.text or "") if selector is not None else None
        if action != "Create" and shell is None:
            return 500, _fault(request, _NO_SHELL, "the shell was not found")
        steps: dict[str, Callable[[ET.Element, Any], ET.Element | None]] = {
            "Create": self._create,
            "Receive": _receive,
            "Command": _command,
            "Signal": _signal,
            "Delete": self._delete,
        }
        try:
            return 200, _envelope(request, steps[action](request, shell))
        except TimeoutError:
            return 500, _fault(request, _TIMED_OUT, "the operation timed out")

    def _create(self, request: ET.Element, _: None) -> ET.Element:
        made = request.find("s:Body/rsp:Shell", NAMESPACES)
        assert made is not None
        self.idle.append(made.findtext("rsp:IdleTimeOut", "", NAMESPACES))
        name = made.attrib["ShellId"]
        self.hosts[name] = shell = Shell(self)
        shell.receive(base64.b64decode(_text(made, "pwsh:creationXml")))
        created = ET.Element(_tag("wst", "ResourceCreated"))
        parameters = ET.SubElement(created, _tag("wsa", "ReferenceParameters"))
        selectors = ET.SubElement(parameters, _tag("wsman", "SelectorSet"))
        ET.SubElement(selectors, _tag("wsman", "Selector"), Name="ShellId").text = name
        return created

    def _delete(self, _: ET.Element, shell: Shell) -> None:  # type: ignore[override]  # another kind of shell
        shell.end()
        self.hosts = {name: one for name, one in self.hosts.items() if one is not shell}


def _receive(request: ET.Element, shell: Shell) -> ET.Element:
    stream = request.find("s:Body/rsp:Receive/rsp:DesiredStream", NAMESPACES)
    assert stream is not None
    given = stream.attrib.get("CommandId")
    within = re.fullmatch(r"PT([\d.]+)S", _text(request, "s:Header/wsman:OperationTimeout"))
    data = shell.fetch(uuid.UUID(given) if given else None, float(within[1]) if within else 20)
    if data is None:
        raise TimeoutError
    answer = ET.Element(_tag("rsp", "ReceiveResponse"))
    ET.SubElement(answer, _tag("rsp", "Stream"), Name="stdout").text = base64.b64encode(data).decode()
    return answer


def _signal(request: ET.Element, shell: Shell) -> ET.Element:
    signal = request.find("s:Body/rsp:Signal", NAMESPACES)
    assert signal is not None
    shell.stop(uuid.UUID(signal.attrib["CommandId"]))
    return ET.Element(_tag("rsp", "SignalResponse"))


@contextmanager
def winrm_host(
    machine: Machine, folder: Path, *, tls: bool = True, login: str = "basic", every_s: float = 0.1
) -> Iterator[WinRmHost]:
    """A machine behind WinRM."""
    server = WinRmHost(machine, folder, tls=tls, login=login, every_s=every_s)
    try:
        yield server
    finally:
        server.end()
