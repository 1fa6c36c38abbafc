"""Runs the script over OpenSSH: the system's ssh with its configuration, keys and known hosts."""

from __future__ import annotations

import re
import time

from pinchpoint_collectors.common.powershell import POWERSHELL, LinkLost, encoded, line_of, loader
from pinchpoint_collectors.remote import ssh
from pinchpoint_collectors.windows.script import script
from pinchpoint_collectors.windows.stream import Arrived

LOADER = loader("-Listen -Request ([Console]::In.ReadLine())")
"""Command that loads the script. The request to the script is on the next line."""
_WAIT_S = 1.0
_NO_POWERSHELL = re.compile(r"powershell.*(not found|not recognized)", re.IGNORECASE)


class SshLink:
    """A link to the script in PowerShell over the system's ssh.

    Args:
        address: ssh address of the machine.
        request: request to the script.

    Raises:
        CollectorError: ssh is not installed on this machine.
    """

    def __init__(self, address: ssh.Address, request: str) -> None:
        self._address = address
        self._process = ssh.start(address, POWERSHELL)
        self._said: list[str] = []
        self._process.write(f"{LOADER}\n{encoded(script())}\n{request}\n")

    @property
    def received_bytes(self) -> int:
        return self._process.received_bytes

    def receive(self) -> list[Arrived]:
        self._process.pump(_WAIT_S)
        now_ns = time.time_ns()
        arriveds = []
        for text in self._process.pieces():
            line = line_of(text)
            if line is None:
                self._said = [*self._said[-9:], text.strip()]
                continue
            if line["kind"] == "end":
                raise LinkLost(f"{self._address}: the script has ended: {line.get('why') or 'on request'}")
            arriveds.append(Arrived(now_ns, line))
        if not arriveds and self._process.ended:
            raise LinkLost(self._why())
        return arriveds

    def ask(self) -> None:
        """Send a line. Before the line ``ready``, PowerShell would read it."""
        if not self._process.write(f"time {time.time_ns()}\n"):
            raise LinkLost(self._why())

    def close(self) -> None:
        """Close the input of the script, which ends the script and the session."""
        self._process.close()

    def _why(self) -> str:
        status = self._process.status()
        answer = self._process.errors or "\n".join(self._said)
        if status in (126, 127) or _NO_POWERSHELL.search(answer):
            return (
                f"{self._address}: there is no PowerShell; is it a Windows machine? ({answer.strip()[-200:]})"
            )
        if status == 0:
            return f"{self._address}: the session has ended" + (
                f": {answer.strip()[-300:]}" if answer else ""
            )
        return ssh.why(self._address, status, answer)
