"""A simulated Windows machine behind WinRM, with a runspace pool in which the script runs."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from collectors.windows.standin import Machine
from psrpcore.types import NETException
from winrmserver import PASSWORD, USER, Shell, WinRmServer

from pinchpoint_collectors.windows.script import script
from pinchpoint_collectors.windows.winrm import TIME

_TIME = re.compile(re.escape(TIME.format(asked=0)).replace("0", r"(\d+)", 1))


class HostShell(Shell):
    """A runspace of the machine: one pipeline runs the script, another returns the time."""

    def __init__(self, machine: Machine, every_s: float) -> None:
        super().__init__()
        self._machine = machine
        self._every_s = every_s
        self._threads: list[threading.Thread] = []

    def run(self, pipeline: Any) -> None:
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
            pipeline.write_output(self._machine.time(asked[1]))
        else:
            pipeline.write_error(NETException(Message=f"not understood: {command.command_text[:80]}"))
        pipeline.complete()

    def end(self) -> None:
        super().end()
        for thread in self._threads:
            thread.join(10)

    def _loop(self, pipeline: Any, request: str) -> None:
        self._say(pipeline, [*self._machine.hello(request)])
        while True:
            with self.changed:
                if pipeline.pipeline_id not in self.running:
                    return
            self._say(pipeline, [*self._machine.reading()])
            time.sleep(self._every_s)

    def _say(self, pipeline: Any, lines: list[str]) -> None:
        with self.changed:
            if not self.ended:
                for line in lines:
                    pipeline.write_output(line)
                self.drain()


class WinRmHost(WinRmServer):
    """The simulated machine's server; see ``WinRmServer``.

    Args:
        machine: the machine that produces the script's lines.
        folder: path for the certificate.
        tls: True: HTTPS; False: HTTP.
        login: kind of login.
        every_s: real seconds between two readings; each reading counts as one second.
    """

    def __init__(self, machine: Machine, folder: Path, *, tls: bool, login: str, every_s: float) -> None:
        self.machine = machine
        configuration = "Microsoft.PowerShell"
        super().__init__(lambda: HostShell(machine, every_s), folder, configuration, tls=tls, login=login)

    def options(self, **options: Any) -> dict[str, Any]:
        """Return the ``collect`` entry of farm.yaml."""
        login = {"user": USER, "password": PASSWORD, "auth": "basic", "tls": self.tls}
        ca = {"ca": str(self.ca)} if self.tls else {}
        return {"address": "127.0.0.1", "port": self.port, **login, **ca, **options}


@contextmanager
def winrm_host(
    machine: Machine, folder: Path, *, tls: bool = True, login: str = "basic", every_s: float = 0.1
) -> Iterator[WinRmHost]:
    """Yield a machine behind WinRM."""
    server = WinRmHost(machine, folder, tls=tls, login=login, every_s=every_s)
    try:
        yield server
    finally:
        server.end()
