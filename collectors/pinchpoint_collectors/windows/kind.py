"""Kind ``windows``: a Windows machine with nothing of ours on it, over WinRM or OpenSSH."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Collector, Watch
from pinchpoint_collectors.remote import ssh
from pinchpoint_collectors.remote.machine import each_once, say_the_same
from pinchpoint_collectors.windows.classes import wanted
from pinchpoint_collectors.windows.collector import WindowsCollector
from pinchpoint_collectors.windows.link import Link
from pinchpoint_collectors.windows.openssh import SshLink
from pinchpoint_collectors.windows.options import (
    OF_TIER,
    OPTIONS,
    PUBLIC,
    WinRm,
    interval_s,
    sought,
    sql_server,
    transport,
)
from pinchpoint_collectors.windows.reader import KIND
from pinchpoint_collectors.windows.script import request
from pinchpoint_collectors.windows.stream import Stream


class WindowsKind:
    """The kind ``windows`` of farm.yaml; its options are described in collectors/README.md."""

    name = KIND
    options = OPTIONS
    public = PUBLIC

    def machine(self, watch: Watch) -> str:
        """Watches of one address are about one machine."""
        keys = sorted((OPTIONS - {"password", "interval", *OF_TIER}) & watch.options.keys())
        return " ".join(f"{key}={watch.options[key]}" for key in keys)

    def check_options(self, watch: Watch) -> None:
        """See ``record.Choosy``."""
        transport(watch.options)
        interval_s(watch.options)
        sql_server(watch.options)
        sought(watch.options)

    def connect(self, watches: Sequence[Watch]) -> Collector:
        """Log in, start the script, and wait for its first reading.

        Raises ``CollectorError``: an option is wrong, the machine cannot be reached, or it refuses us.
        """
        first = watches[0]
        where = f"host {first.host!r}, collector {self.name!r}"
        each_once(watches, self.name)
        say_the_same(watches, ("interval",), where)
        try:
            address, every_s = transport(first.options), interval_s(first.options)
            asked = wanted(sql_server=sql_server(first.options))
            of_tiers = {
                watch.host: found for watch in watches if (found := sought(watch.options)) is not None
            }
        except CollectorError as error:
            raise CollectorError(f"{where}: {error}") from error
        open_link = _opener(address, request(asked, every_s, of_tiers.values()), where)
        return WindowsCollector(watches, Stream(first.host, open_link), asked, every_s, where, of_tiers)


def _opener(address: WinRm | ssh.Address, asked: str, where: str) -> Callable[[threading.Event], Link]:
    if isinstance(address, ssh.Address):
        if sys.platform == "win32":
            raise CollectorError(
                f"{where}: transport: ssh works from Linux and macOS only; say `transport: winrm`"
            )
        return lambda _: SshLink(address, asked)
    try:
        from pinchpoint_collectors.windows.winrm import WinRmLink  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise CollectorError(
            f"{where}: WinRM needs pypsrp, which is not installed here ({error}); run: pip install "
            "'pinchpoint-collectors[windows]', or say `transport: ssh`"
        ) from error
    return lambda ending: WinRmLink(address, asked, ending)
