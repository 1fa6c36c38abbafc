"""Kind ``mongodb``: a MongoDB server's own view of its journal, its tickets, its cache and its clients."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pinchpoint_collectors.databases import mongodb_values
from pinchpoint_collectors.databases.server_kind import NodeKind
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Collector, Sample, Watch

if TYPE_CHECKING:
    from pinchpoint_collectors.databases.mongodb_connection import Member


class MongodbKind(NodeKind):
    """The kind ``mongodb`` of farm.yaml: MongoDB from 4.2 on."""

    name = "mongodb"
    product = "MongoDB"
    schemes = ("mongodb", "mongodb+srv")
    package = "pymongo"

    def _connect(self, watches: Sequence[Watch], where: str) -> Collector:
        from pinchpoint_collectors.databases.mongodb_connection import Member  # noqa: PLC0415 -- an extra

        options = watches[0].options
        address = str(options["address"]) if "address" in options else None
        member = Member(where, address, str(options["url"]), options.get("user"), options.get("password"))
        try:
            return MongodbCollector(watches, member)
        except CollectorError:
            member.close()
            raise


class MongodbCollector:
    """Watches one member: its ``serverStatus``, at each reading."""

    def __init__(self, watches: Sequence[Watch], member: Member) -> None:
        self._hosts = {watch.host: watch.tier for watch in watches}
        self._member = member
        self._version = member.version()
        self._about = member.status()
        self._before: _Reading | None = None

    def read(self) -> Sequence[Sample]:
        """What holds now, and what happened since the reading before."""
        now = _Reading(self._member)
        before, self._before = self._before, now
        interval_s = (now.monotonic_ns - before.monotonic_ns) / 1e9 if before else 0.0
        values = list(mongodb_values.levels(now.status))
        if before is not None and mongodb_values.same_server(before.status, now.status):
            values += mongodb_values.since(before.status, now.status, interval_s)
        return [Sample(now.time_ns, interval_s, host, *value) for host in self._hosts for value in values]

    def inventory(self) -> Mapping[str, Mapping[str, Any]]:
        """The server under ``database``. See collectors/README.md, "Inventory"."""
        connections = self._about["connections"]
        free = connections.get("available")
        database = {
            "server": str(self._about["process"]),
            "version": self._version,
            "role": self._member.user,
            "storage_engine": self._about.get("storageEngine", {}).get("name"),
            "connections_limit": None if free is None else connections["current"] + free,
            "settings": self._member.settings(),
        }
        missing = [asdict(each) for each in mongodb_values.not_measured(self._about)]
        return {
            host: {"tier": tier, "database": database, "not_measured": missing}
            for host, tier in self._hosts.items()
        }

    def close(self) -> None:
        """Close the connection."""
        self._member.close()


class _Reading:
    """What the server said at one instant."""

    def __init__(self, member: Member) -> None:
        self.status = member.status()
        self.time_ns, self.monotonic_ns = time.time_ns(), time.monotonic_ns()
