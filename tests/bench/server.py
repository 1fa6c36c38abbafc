"""Start the benchmark's server with the table of sql-mix, on a fast disk or with an emulated log disk."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from bench.generator import SCENARIO, generate
from bench.load import Load, cores
from bench.pgbench import pgbench
from scenarios.sql_mix.server import Server, made_in
from scenarios.support import made

from pinchpoint_infra.disks import DiskSpec, support
from pinchpoint_infra.disks.emulated import EmulatedDisk, remove_all
from pinchpoint_infra.disks.way import DiskStack, choose
from pinchpoint_scenarios.contract import Endpoint

CLIENTS = 8
_FARM_ID = "be9c4d000001"
_LOG_ONLY = {"operations": {"log_append": 1}}


@dataclass(frozen=True, slots=True)
class Target:
    """A server with the table, and its setting for durable commits.

    Attributes:
        endpoint: the database as the scenarios address it.
        synchronous: the server's ``synchronous_commit`` for Pinchpoint and the peer: ``on`` or ``off``.
    """

    endpoint: Endpoint
    synchronous: str = "on"

    @property
    def url(self) -> str:
        """The database's URL for Pinchpoint and the peer, with the session settings."""
        return f"{self.endpoint.url}?options={quote(self.options)}"

    @property
    def options(self) -> str:
        """The server settings of each session."""
        return f"-csynchronous_commit={self.synchronous} -csearch_path=pinchpoint_{SCENARIO}"

    def ours(self, load: dict[str, object], seconds: int) -> Load:
        """Measure Pinchpoint: the real generator process, with recording."""
        endpoint = Endpoint("sql", self.url)
        return generate(load, seconds=seconds, cores=cores()[1], params=_LOG_ONLY, endpoint=endpoint)

    def peer(self, seconds: int, rate_per_s: float | None = None, clients: int = CLIENTS) -> Load:
        """Measure the peer on the load generator's core."""
        return pgbench(self.url, clients=clients, seconds=seconds, rate_per_s=rate_per_s)


@contextmanager
def free_disk() -> Iterator[Target]:
    """Start a server on the disk of /var/tmp, without an emulated limit."""
    with _folder() as place, _served(place, frozenset()) as target:
        yield target


@contextmanager
def slow_log(spec: DiskSpec) -> Iterator[Target]:
    """Start a server whose log is on an emulated disk with its limits active. Needs root."""
    way = choose(spec, support())
    if not isinstance(way, DiskStack):
        raise OSError(f"the disk cannot be emulated here: {way}")
    with _folder() as place:
        disk = EmulatedDisk(
            "sql.log", _FARM_ID, spec, way, place / "disk", place / "server" / "log", dict(os.environ)
        )
        try:
            disk.build()
            with _served(place / "server", frozenset({"log"})) as target:
                disk.apply(on=True, group=None)
                yield target
                disk.apply(on=False, group=None)
        finally:
            remove_all(_FARM_ID, place)
            disk.close()


@contextmanager
def _folder() -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(prefix="bench-", dir="/var/tmp"))  # on a disk; /tmp may be in memory
    place.chmod(0o755)
    try:
        yield place
    finally:
        shutil.rmtree(place)


@contextmanager
def _served(directory: Path, emulated: frozenset[str]) -> Iterator[Target]:
    directory.mkdir(exist_ok=True)
    server = _started(directory, emulated)
    try:
        scenario = made("sql-mix", {"sql": server.endpoint}, _LOG_ONLY, name=SCENARIO)
        scenario.prepare(lambda _: None)
        yield Target(server.endpoint)
        scenario.finish(keep_data=False)
    finally:
        server.remove()


def _started(directory: Path, emulated: frozenset[str]) -> Server:
    """Start the server; its processes inherit the cores of the thread that starts it."""
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores()[0])
    try:
        return made_in(directory, emulated)
    finally:
        os.sched_setaffinity(0, mine)
