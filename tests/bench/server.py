"""The server of the benchmark, with sql-mix' table: on a free disk, or its log on an emulated one."""

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
    """A server with the table, and how its commits wait for the disk.

    Attributes:
        endpoint: the database.
        synchronous: ``on`` or ``off``: the server's ``synchronous_commit`` for both peers.
    """

    endpoint: Endpoint
    synchronous: str = "on"

    @property
    def url(self) -> str:
        """For both: the schema is found, commits are synchronous or not."""
        return f"{self.endpoint.url}?options={quote(self.options)}"

    @property
    def options(self) -> str:
        """The server's settings for a session of either."""
        return f"-csynchronous_commit={self.synchronous} -csearch_path=pinchpoint_{SCENARIO}"

    def ours(self, load: dict[str, object], seconds: int) -> Load:
        """The real generator process, recording included."""
        endpoint = Endpoint("sql", self.url)
        return generate(load, seconds=seconds, cores=cores()[1], params=_LOG_ONLY, endpoint=endpoint)

    def peer(self, seconds: int, rate_per_s: float | None = None, clients: int = CLIENTS) -> Load:
        """The peer's, in the same place."""
        return pgbench(self.url, clients=clients, seconds=seconds, rate_per_s=rate_per_s)


@contextmanager
def free_disk() -> Iterator[Target]:
    """A server whose disk is whatever lies under /var/tmp, which no program here slows down."""
    with _folder() as place, _served(place, frozenset()) as target:
        yield target


@contextmanager
def slow_log(spec: DiskSpec) -> Iterator[Target]:
    """A server whose log lies on an emulated disk, its limits in force. Needs root."""
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
    place = Path(tempfile.mkdtemp(prefix="bench-", dir="/var/tmp"))  # a disk; /tmp may be memory
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
    """The server's processes inherit the cores of whoever starts them."""
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores()[0])
    try:
        return made_in(directory, emulated)
    finally:
        os.sched_setaffinity(0, mine)
