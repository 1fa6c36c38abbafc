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

from support import require

from pinchpoint_infra.embedded.processes import free_shared_memory
from pinchpoint_infra.embedded.tiers.contract import Tier, free_port
from pinchpoint_infra.embedded.tiers.nosql import NoSql
from pinchpoint_infra.embedded.tiers.sql import Sql


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
    program = require("redis-server", "redis-server")
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="server-") as folder:
        settings = ("--save", "", "--appendonly", "yes", "--appendfsync", "always", "--requirepass", "sesame")
        command = [program, "--bind", "127.0.0.1", "--port", str(port), "--dir", folder, *settings]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            try:
                yield f"redis://:sesame@127.0.0.1:{port}/0"
            finally:
                process.terminate()
