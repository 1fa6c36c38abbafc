"""A simulated farm behind an SSH server, in place of ``powershell -Command -``."""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import asyncssh
from scenarios.full_crawl.native.farm import Farm
from support import require

from pinchpoint_collectors.common.powershell import POWERSHELL
from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.full_crawl.native.link import script

LOADER = (
    "& ([ScriptBlock]::Create([Text.Encoding]::UTF8.GetString("
    "[Convert]::FromBase64String([Console]::In.ReadLine())))) -Serve"
)
T = TypeVar("T")
PASSWORD = "p@ss 'word\" $HOME"


class SshFarm:
    """An SSH server.

    Args:
        farm: the farm that answers.
        folder: path for the client's key and the known hosts.

    Attributes:
        noise: text before the first answer, as a profile prints.
        faults: errors in the client's input that PowerShell would not accept.
    """

    def __init__(self, farm: Farm, folder: Path) -> None:
        self.farm = farm
        self.noise = ""
        self.faults: list[str] = []
        self._connections: list[asyncssh.SSHServerConnection] = []
        self._orphans: list[threading.Thread] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._host_key = asyncssh.generate_private_key("ssh-ed25519")
        key = asyncssh.generate_private_key("ssh-ed25519")
        self.key, self.known_hosts = folder / "key", folder / "known_hosts"
        key.write_private_key(str(self.key))
        self.key.chmod(0o600)
        self._authorized = asyncssh.import_authorized_keys(key.export_public_key().decode())
        self._server: asyncssh.SSHAcceptor | None = None
        self.port = 0
        self.open()

    def open(self) -> None:
        """Listen, on the same port as before if there was one."""
        self._server = self._do(self._listen())
        self.port = self._server.get_port()
        public = self._host_key.export_public_key().decode()
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {public}")

    def shut(self) -> None:
        """Stop listening and cut every connection."""
        assert self._server is not None
        self._loop.call_soon_threadsafe(self._server.close)
        self._do(self._server.wait_closed())
        self.cut()

    def cut(self) -> None:
        """Cut every connection, as a router without state does."""
        for connection in self._connections:
            self._loop.call_soon_threadsafe(connection.abort)
        self._connections.clear()

    def end(self) -> None:
        """Stop the server."""
        self.shut()
        for orphan in self._orphans:
            orphan.join(10)
        self._do(self._settle())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def endpoint(self, **options: str) -> Endpoint:
        """Return the endpoint, with a login by key unless an option differs."""
        given = {"known_hosts": str(self.known_hosts), "user": "loader"}
        login = {} if "password" in options else {"key": str(self.key)}
        return Endpoint("crawler", f"ssh://127.0.0.1:{self.port}", {**given, **login, **options})

    def _do(self, step: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(step, self._loop).result(10)

    async def _settle(self) -> None:
        """Wait for the tasks of cut connections, so that closing the loop gives no warnings."""
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _listen(self) -> asyncssh.SSHAcceptor:
        farm = self

        class Server(asyncssh.SSHServer):
            def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
                farm._connections.append(conn)

            def password_auth_supported(self) -> bool:
                return True

            def validate_password(self, username: str, password: str) -> bool:
                return (username, password) == ("loader", PASSWORD)

        return await asyncssh.create_server(
            Server,
            "127.0.0.1",
            self.port,
            server_host_keys=[self._host_key],
            authorized_client_keys=self._authorized,
            process_factory=self._serve,
            reuse_address=True,
        )

    async def _serve(self, process: asyncssh.SSHServerProcess[str]) -> None:
        session = self.farm.session()
        try:
            if process.command != POWERSHELL:
                self.faults.append(f"the command {process.command!r}")
            if (loader := await process.stdin.readline()) != f"{LOADER}\n":
                self.faults.append(f"the loader {loader!r}")
            sent = base64.b64decode(await process.stdin.readline()).decode()
            if sent != script():
                self.faults.append("a script that is not the script")
            process.stdout.write(self.noise)
            while not session.ended and (line := await process.stdin.readline()):
                process.stdout.write("".join(f"{answer}\r\n" for answer in session.answer(line)))
        except (asyncssh.Error, OSError, asyncio.CancelledError):
            pass  # the test has cut the link
        orphan = threading.Thread(target=session.orphan, daemon=True)
        orphan.start()
        self._orphans.append(orphan)
        process.exit(0)


@contextmanager
def ssh_farm(farm: Farm, folder: Path) -> Iterator[SshFarm]:
    """Yield a farm behind SSH, for the system's ssh client."""
    require("ssh", "openssh-client")
    server = SshFarm(farm, folder)
    try:
        yield server
    finally:
        farm.lease = None  # no session waits for another session to take over
        server.end()
    assert not server.faults
