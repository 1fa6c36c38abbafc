"""Computes the endpoints and collectors of a farm that is ready for load.

Only this module distinguishes the two ways to describe a farm; later code sees no difference.
"""

from __future__ import annotations

import fcntl
import importlib
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from pinchpoint.base.errors import FarmUnavailable, InputError
from pinchpoint.plan import Collect, Farm, FarmHost
from pinchpoint.plan.endpoints import expanded, filled
from pinchpoint_collectors import registry as collector_kinds
from pinchpoint_collectors.common import valkey_urls
from pinchpoint_collectors.record import Processes, Watch
from pinchpoint_collectors.remote.ssh import OPTIONS
from pinchpoint_scenarios.contract import DISK

TIER_ENDPOINT = {"web": "sharepoint"}
"""Tier -> the endpoint of the tier, if the endpoint has another name."""

_WATCHED_BY = {"postgresql": "postgres", "valkey": "valkey"}
"""Scheme of a server's URL -> the kind of collector that reads the server."""


_SQL = ("postgresql", "mssql", "mysql", "mariadb")
_PORTS = {
    "postgresql": 5432,
    "postgresql+odbc": 5432,
    "mssql+odbc": 1433,
    "mysql+odbc": 3306,
    "mariadb+odbc": 3306,
    **dict.fromkeys((*valkey_urls.SERVER, *valkey_urls.CLUSTER), 6379),
    "cassandra": 9042,
    "scylla": 9042,
    "mongodb": 27017,
    "http": 80,
    "https": 443,
}
"""Scheme of an endpoint -> the port of the server if the URL names none."""


@dataclass(frozen=True, slots=True)
class Crash:
    """An embedded tier that ended without being stopped.

    Attributes:
        tier: name of the tier.
        host: name of the host.
        server: name of the server: the tier, or ``tier.host`` if the tier has several hosts.
        ended: how the process ended: ``exit status 1``, ``ended by SIGKILL``.
        log_tail: the end of the tier's log; may be empty.
    """

    tier: str
    host: str
    server: str
    ended: str
    log_tail: str

    @property
    def words(self) -> str:
        """The crash in words."""
        log = f"; the end of its log:\n{self.log_tail}" if self.log_tail.strip() else "; its log is empty"
        return f"tier {self.server} crashed ({self.ended}){log}"


@dataclass(frozen=True, slots=True)
class ReadyFarm:
    """The parts of a farm that a run needs.

    Attributes:
        endpoints: name -> options of the endpoint, with ``${ENV}`` unexpanded.
        watches: (kind of collector, what to watch) for every collector of every host.
        generator_cores: cores for load generators; empty: the system chooses.
        content: the content that an embedded farm was filled with; None for a declared farm.
        warnings: sentences about the farm that a reader of the run must know.
        crashed: returns every embedded tier that has ended without being stopped.
        limit: puts the limits and delays of an embedded farm in force (True) or lifts them (False).
        confine: puts a load generator (its process id) under the farm's CPU cap for generators, if there is
            one.
        disk_events: returns the events of emulated disks since the last call.
    """

    endpoints: dict[str, dict[str, str]]
    watches: list[tuple[str, Watch]]
    generator_cores: tuple[int, ...] = ()
    content: dict[str, Any] | None = None
    warnings: list[str] = field(default_factory=list)
    crashed: Callable[[], list[Crash]] = list
    limit: Callable[[bool], None] = lambda _: None
    confine: Callable[[int], None] = lambda _: None
    disk_events: Callable[[], list[dict[str, Any]]] = list


@contextmanager
def ready_farm(farm: Farm, progress: Callable[[str], None]) -> Iterator[ReadyFarm]:
    """The farm while it is up: an embedded farm is started if needed, and stopped only if started here.

    Raises:
        FarmUnavailable: an embedded tier does not start, this installation has no embedded farm, or another
            process drives the farm.
    """
    with claimed(farm, progress):
        if farm.embedded is None:
            yield _declared(farm)
            return
        with embedded().embedded_farm(farm, progress) as status:
            yield _embedded(farm, status)


@contextmanager
def claimed(farm: Farm, say: Callable[[str], None]) -> Iterator[None]:
    """Lock the farm: a second run or probe would load what the first measures, and lift its limits.

    The farm's file is locked, so the lock ends with this process in any case. If the file system has no
    locks, ``say`` gets a sentence.
    """
    with farm.identity.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise FarmUnavailable(
                f"farm {farm.name} ({farm.identity}): another run or probe is going on with it here; "
                "wait until it has ended, or give this one a farm.yaml of its own"
            ) from error
        except OSError as error:
            say(
                f"farm {farm.name} ({farm.identity}): cannot be locked ({error.strerror}); see to it that no "
                "other run or probe drives it meanwhile"
            )
        yield


def standing_farm(farm: Farm) -> ReadyFarm | None:
    """The farm if it is up; None for an embedded farm that is down. Starts nothing."""
    if farm.embedded is None:
        return _declared(farm)
    status = embedded().standing(farm)
    return _embedded(farm, status) if status else None


def embedded() -> ModuleType:
    """The module that starts and stops embedded farms. Raises FarmUnavailable if it is not installed."""
    try:
        return importlib.import_module("pinchpoint.farm.embedded")
    except ModuleNotFoundError as error:
        raise FarmUnavailable(
            f"the embedded farm is not installed here ({error.name} is missing); "
            "install pinchpoint[farm], or name servers that are running under endpoints:"
        ) from error


def _embedded(farm: Farm, status: Any) -> ReadyFarm:
    watches = [
        (
            "local",
            Watch(
                host=tier.host,
                tier=tier.name,
                disks=status.disks.get(tier.server, {}),
                processes=Processes(pids=(tier.pid,)) if tier.pid else None,
                options={"verify": True},  # the folders are ours, so the write test may run there
            ),
        )
        for tier in status.tiers
    ]
    # A server that is read from inside has a login for this, which scenarios do not get.
    endpoints = _given(farm) | {name: dict(given) for name, given in status.endpoints.items()}
    endpoints |= _disks(
        {
            f"{server}.{role}": status.emulated.get(f"{server}.{role}", {}).get("mount", folder)
            for server, roles in status.disks.items()
            for role, folder in roles.items()
        }
    )
    monitors = {name: url for name, given in endpoints.items() if (url := given.pop("monitor", None))}
    watches += [
        (_WATCHED_BY[urlsplit(url).scheme], Watch(tier.host, tier.name, options={"url": url}))
        for tier in status.tiers
        if (url := monitors.get(tier.name))
    ]
    shared = set(status.generator_cores) == set(status.farm_cores)  # with a single core pinning has no use
    return ReadyFarm(
        endpoints=endpoints,
        watches=watches,
        generator_cores=() if shared else status.generator_cores,
        content=status.content,
        warnings=list(status.warnings),
        crashed=lambda: embedded().crashed_tiers(farm.identity),
        limit=lambda hold: embedded().limit(farm.identity, hold=hold),
        confine=embedded().confine_generator(farm, status),
        disk_events=embedded().disk_events(status),
    )


def _declared(farm: Farm) -> ReadyFarm:
    endpoints = _given(farm)
    watches = [
        (
            collect.kind,
            replace(
                _watch(endpoints, tier, name, host, _options(endpoints, tier, name, collect)),
                required=collect.required,
            ),
        )
        for tier, declared in farm.tiers.items()
        for name, host in declared.hosts.items()
        for collect in host.collect
    ]
    endpoints |= _probed_disks(farm, endpoints)
    usable = sorted(os.sched_getaffinity(0))
    # The generator gets a core of its own. The servers of a declared farm are not pinned, even on this
    # machine.
    return ReadyFarm(endpoints, watches, tuple(usable[-1:]) if len(usable) > 1 else ())


def _probed_disks(farm: Farm, endpoints: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """Disks of this machine and of hosts over ssh, with the host's name if the tier has several hosts."""
    result: dict[str, dict[str, str]] = {}
    for tier, declared in farm.tiers.items():
        for name, host in declared.hosts.items():
            kinds = {collect.kind: collect for collect in host.collect}
            for role, disk in host.disks.items():
                target = f"{tier}.{role}" if len(declared.hosts) == 1 else f"{tier}.{name}.{role}"
                if disk.path and "local" in kinds:
                    result |= _disks({target: disk.path})
                elif "ssh" in kinds and (disk.path or disk.device):
                    given = _options(endpoints, tier, name, kinds["ssh"])
                    way = {key: str(value) for key, value in given.items() if key in OPTIONS}
                    device = {"device": disk.device} if disk.device and not disk.path else {}
                    result[f"{DISK}{target}"] = {"url": disk.path or "", "host": name, **way, **device}
    return result


def _disks(folders: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Disks of this machine as endpoints for probes."""
    host = socket.gethostname()
    return {f"{DISK}{name}": {"url": folder, "host": host} for name, folder in folders.items()}


def _given(farm: Farm) -> dict[str, dict[str, str]]:
    """The endpoints of servers that are already running, also of those beside an embedded farm."""
    return {name: dict(endpoint.given) for name, endpoint in farm.endpoints.named().items()}


def _options(endpoints: dict[str, dict[str, str]], tier: str, host: str, collect: Collect) -> dict[str, Any]:
    """A collector's options with ``${ENV}`` expanded, and with the ``url`` and login of its endpoint.

    Raises InputError if a variable is not set.
    """
    own = dict(collect.options)
    here = f"tiers.{tier}.hosts.{host}.collect.{collect.kind}"
    if "endpoint" not in collector_kinds.kind(collect.kind).options:
        values, unfit = filled(own, os.environ, collector_kinds.kind(collect.kind).public)
        if unfit:
            raise InputError(*(f"{here}.{key}: {why}" for key, why in unfit.items()))
        return values
    name = own.get("endpoint", TIER_ENDPOINT.get(tier, tier))
    if name not in endpoints:
        return own  # the collector reports the missing endpoint
    login = {key: str(own[key]) for key in ("user", "password") if key in own}
    endpoint, unfit = expanded(name, endpoints[name] | login, os.environ)
    if unfit:
        raise InputError(
            *(f"{here if key in login else f'endpoints.{name}'}.{key}: {why}" for key, why in unfit.items())
        )
    return {**own, **endpoint.options, "url": endpoint.url}


def _watch(
    endpoints: dict[str, dict[str, str]], tier: str, name: str, host: FarmHost, options: dict[str, Any]
) -> Watch:
    places = {role: disk.device or disk.path for role, disk in host.disks.items()}
    answers = TIER_ENDPOINT.get(tier, tier)
    # A tier may have several servers with the process name of a collector. An SQL endpoint identifies one of
    # them.
    several = "process" in options and not _asked_by_sql(endpoints.get(answers))
    return Watch(
        host=name,
        tier=tier,
        disks={role: place for role, place in places.items() if place},
        processes=None if several or "port" in options else _listener(answers, endpoints.get(answers)),
        options=options,
    )


def _asked_by_sql(endpoint: dict[str, str] | None) -> bool:
    return endpoint is not None and endpoint.get("url", "").startswith(_SQL)


def _listener(name: str, endpoint: dict[str, str] | None) -> Processes | None:
    """The processes that listen on an endpoint's port on this machine; None for another endpoint."""
    if endpoint is None:
        return None
    result, unfit = expanded(name, endpoint, os.environ)
    url = urlsplit("" if unfit else result.url)  # the user of an unfit endpoint reports the error
    if url.hostname not in ("127.0.0.1", "::1", "localhost") or "," in url.netloc:
        return None
    if url.scheme in valkey_urls.SENTINEL:  # sentinels name the server and are not the server
        return None
    port = url.port or _PORTS.get(url.scheme)
    return Processes(port=port) if port else None
