"""A PostgreSQL server of a test that can stop, restart and administer it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scenarios.sql_mix.helpers import ask
from support import until

from pinchpoint_infra.embedded.removal import free_shared_memory
from pinchpoint_infra.embedded.tiers.sql import Sql
from pinchpoint_scenarios.contract import Endpoint


class Server:
    """A server that keeps its port and its data over restarts.

    Args:
        tier: the prepared tier of the embedded farm.
    """

    def __init__(self, tier: Sql) -> None:
        self._tier = tier
        self._process: subprocess.Popen[bytes] | None = None
        self.user = tier.user

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint as the load test's user."""
        return Endpoint("sql", self._tier.endpoint()["url"])

    @property
    def admin(self) -> Endpoint:
        """The same database as the server's superuser."""
        return Endpoint("sql", self._tier._url("admin", self._tier._admin, "loadtest"))

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        assert self._process is None
        command = self._tier.command()
        with self._tier.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self._tier.directory / "data",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                user=self._tier.user,
                extra_groups=[] if self._tier.user is not None else None,
            )
        until(self._tier.is_ready, self._tier.log.read_text, process=self._process)

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: SIGINT closes sessions ("fast"), SIGQUIT acts like a crash ("immediate")."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def remove(self) -> None:
        """Stop the server and free its shared memory."""
        self.stop(signal.SIGQUIT)
        free_shared_memory(self._tier.cluster)

    def free_bytes(self) -> int:
        """Return the free bytes on the disk of its data."""
        return shutil.disk_usage(self._tier.cluster).free


def made_in(directory: Path, emulated: frozenset[str] = frozenset()) -> Server:
    """Return a running server in this folder, with the farm's roles and databases.

    Args:
        directory: path of an empty folder, or of one with mounted disks named after their roles.
        emulated: roles of these disks.
    """
    tier = Sql(directory, {})
    tier.emulated = emulated
    tier.prepare()
    server = Server(tier)
    try:
        server.start()
        tier.when_ready()
    except BaseException:
        server.remove()
        raise
    return server


@contextmanager
def small_tablespace(server: Server, size_mib: int) -> Iterator[None]:
    """Create a tablespace ``small`` of this size for ``loader``, and remove it afterwards. Needs root."""
    assert server.user is not None
    with tempfile.TemporaryDirectory(prefix="small-") as folder:
        place = Path(folder)
        place.chmod(0o755)
        disk = place / "disk"
        disk.mkdir()
        options = f"size={size_mib}m,uid={server.user},mode=0700"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(disk)], check=True, timeout=10)
        try:
            ask(server.admin, f"CREATE TABLESPACE small LOCATION '{disk}'")
            ask(server.admin, "GRANT CREATE ON TABLESPACE small TO loader")
            yield
        finally:
            ask(server.admin, "DROP TABLESPACE IF EXISTS small")
            subprocess.run(["umount", "-l", str(disk)], check=True, timeout=10)
