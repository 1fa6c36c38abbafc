"""A simulated farm behind WinRM."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from psrpcore.types import NETException
from scenarios.full_crawl.native.farm import Farm, Session
from winrmserver import PASSWORD, USER, Shell, WinRmServer

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.full_crawl.native.link import script

CONFIGURATION = "PinchpointCrawl"


class FarmShell(Shell):
    """A runspace of the farm: after the script has arrived, it answers requests."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._loaded = False

    def run(self, pipeline: Any) -> None:
        (command,) = pipeline.metadata.commands
        pipeline.start()
        if command.is_script:
            self._loaded = command.command_text == script()
        elif not self._loaded or command.command_text != "Invoke-PinchpointRequest":
            text = f"The term '{command.command_text}' is not recognized as the name of a cmdlet"
            pipeline.write_error(NETException(Message=text))
        else:
            ((_, text),) = command.parameters
            for line in self._session.answer(str(text)):
                pipeline.write_output(line)
        pipeline.complete()


class WinRmFarm(WinRmServer):
    """The farm's server; see ``WinRmServer``.

    Args:
        farm: the farm that answers.
        folder: path for the certificate.
        tls: True: HTTPS; False: HTTP.
        login: kind of login.
    """

    def __init__(self, farm: Farm, folder: Path, *, tls: bool = True, login: str = "basic") -> None:
        super().__init__(lambda: FarmShell(farm.session()), folder, CONFIGURATION, tls=tls, login=login)

    def endpoint(self, **options: str) -> Endpoint:
        """Return the farm's endpoint."""
        login = {"auth": "basic", "user": USER, "password": PASSWORD, "configuration": CONFIGURATION}
        url = f"{'winrm' if self.tls else 'winrm+http'}://127.0.0.1:{self.port}"
        return Endpoint("crawler", url, {**login, "ca": str(self.ca), **options})


@contextmanager
def winrm_farm(farm: Farm, folder: Path, *, tls: bool = True, login: str = "basic") -> Iterator[WinRmFarm]:
    """Yield a farm behind WinRM."""
    server = WinRmFarm(farm, folder, tls=tls, login=login)
    try:
        yield server
    finally:
        server.end()
