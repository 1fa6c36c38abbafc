"""Kind ``valkey``: a Valkey's or Redis' own view of its main thread, its append-only file and its clients."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pinchpoint_collectors.databases import valkey_values
from pinchpoint_collectors.databases.server_kind import ServerKind
from pinchpoint_collectors.databases.valkey_values import Spike
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.proc.value import Value
from pinchpoint_collectors.record import Collector, Sample, Watch

if TYPE_CHECKING:
    from pinchpoint_collectors.databases.valkey_connection import Answer, Server

OLDEST = 5


class ValkeyKind(ServerKind):
    """The kind ``valkey`` of farm.yaml: Valkey of any version, Redis from 5 on."""

    name = "valkey"
    product = "Valkey or Redis"
    schemes = ("valkey", "redis", "valkeys", "rediss")
    package = "valkey"

    def _connect(self, watches: Sequence[Watch], where: str) -> Collector:
        from pinchpoint_collectors.databases.valkey_connection import Server  # noqa: PLC0415 -- an extra

        options = watches[0].options
        server = Server(where, str(options["url"]), options.get("user"), options.get("password"))
        try:
            return ValkeyCollector(watches, server, where)
        except CollectorError:
            server.close()
            raise


class ValkeyCollector:
    """Watches one server: its counters and the delays it noted, at each reading."""

    def __init__(self, watches: Sequence[Watch], server: Server, where: str) -> None:
        self._hosts = {watch.host: watch.tier for watch in watches}
        self._server = server
        first = server.read()
        self._about = first.info
        _refuse_others(self._about, where)
        self._sees_latency = first.events is not None
        self._told: dict[str, Spike | None]
        self._begin(first)
        self._before: _Reading | None = None

    def read(self) -> Sequence[Sample]:
        """What holds now, and what happened since the reading before."""
        now = _Reading(self._server.read(self._told, sees_latency=self._sees_latency))
        before, self._before = self._before, now
        interval_s = (now.monotonic_ns - before.monotonic_ns) / 1e9 if before else 0.0
        values = list(valkey_values.levels(now.info))
        # Counters begin anew with the server, and are another's where an address moved to a replica.
        if before is not None and before.info["run_id"] == now.info["run_id"]:
            values += valkey_values.since(before.info, now.info, interval_s)
            values += self._spikes(now.answer)
        elif before is not None:
            self._begin(now.answer)
        # Of a kind first noted now, the history comes with the next reading.
        self._told |= dict.fromkeys((now.answer.events or frozenset()) - self._told.keys())
        return [Sample(now.time_ns, interval_s, host, *value) for host in self._hosts for value in values]

    def inventory(self) -> Mapping[str, Mapping[str, Any]]:
        """The server under ``database``. See collectors/README.md, "Inventory"."""
        notes_delays = self._server.notes_delays() if self._sees_latency else None
        about = self._about
        database = {
            "server": about.get("server_name", "redis"),
            "version": str(about.get("valkey_version", about["redis_version"])),
            "role": self._server.user,
            "standby": about["role"] != "master",
            "connections_limit": about.get("maxclients"),
            "append_only": bool(about["aof_enabled"]),
            "settings": valkey_values.settings(about),
        }
        missing = [asdict(each) for each in valkey_values.not_measured(
            about, self._server.user, sees_latency=self._sees_latency, notes_delays=notes_delays
        )]  # fmt: skip
        return {
            host: {"tier": tier, "database": database, "not_measured": missing}
            for host, tier in self._hosts.items()
        }

    def close(self) -> None:
        """Close the connection."""
        self._server.close()

    def _begin(self, answer: Answer) -> None:
        """Take note of the newest delay of each kind: what is older than we are is not ours to tell."""
        histories = self._server.read(answer.events).histories if answer.events else {}
        self._told = {name: history[-1] for name, history in histories.items() if history}

    def _spikes(self, answer: Answer) -> Iterator[Value]:
        """A delay of a kind once seen is sent from then on: null while there are none."""
        for name, history in answer.histories.items():
            yield Value("db.spike_s", name, valkey_values.longest(history, self._told[name]))
            if history:
                self._told[name] = history[-1]


class _Reading:
    """What the server said at one instant: when its answer came, as it answers one after the other."""

    def __init__(self, answer: Answer) -> None:
        self.answer, self.info = answer, answer.info
        self.time_ns, self.monotonic_ns = time.time_ns(), time.monotonic_ns()


def _refuse_others(info: valkey_values.Info, where: str) -> None:
    """Servers that merely speak the protocol, and versions we do not know. Raises CollectorError."""
    absent = [name for name in valkey_values.NEEDED if name not in info]
    if absent:
        raise CollectorError(
            f"{where}: what it says of itself (INFO) has no {', '.join(absent)}; collector kind 'valkey' "
            f"knows Valkey, and Redis from {OLDEST} on: leave this collector out"
        )
    if int(str(info["redis_version"]).partition(".")[0]) < OLDEST:
        raise CollectorError(
            f"{where}: the server is Redis {info['redis_version']}; collector kind 'valkey' knows "
            f"Valkey, and Redis from {OLDEST} on: upgrade the server, or leave this collector out"
        )
