"""The specification and the state of an embedded farm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pinchpoint_infra.disks import DiskSpec
from pinchpoint_infra.faults.delay import DelayedEndpoint
from pinchpoint_infra.faults.throttle import ThrottledEndpoint

TierState = Literal["starting", "up", "crashed", "down"]
FarmState = Literal["down", "starting", "up", "broken"]


class FarmError(Exception):
    """A farm cannot be started or stopped; one sentence, with the end of a log if that explains it."""


class FarmInputError(FarmError):
    """The requested farm cannot be built: the input is wrong, not the environment."""


@dataclass(frozen=True, slots=True)
class FarmSpec:
    """The specification of a farm.

    Attributes:
        identity: the farm file's resolved path; the farm's id is derived from it.
        name: the farm's name.
        tiers: any subset of web, sql, search, nosql, files; web needs sql, which stores its content.
        corpus: the folder of documents for the farm; None: the machine's documentation.
        documents: their number, reached by further copies if needed; None: all of a named corpus, a default
            number of another one.
        hosts: tier -> the number of its hosts, where it is not one.
        disks: ``server.role`` -> the emulated disk; other roles are plain folders.
        cpus: server, or ``generator`` -> its limit in cores.
        memory: server -> its limit in bytes, including page cache.
        delays: server -> the delay in front of its endpoint.
        networks: server -> bytes per second of the network interface in front of its endpoint.
        throttle: ``web`` -> how it refuses requests above a rate.
        settings: ``sql``, ``nosql`` -> further settings of its server, which replace the farm's own.
        share_cores: whether the tiers may also use the load generators' cores.
    """

    identity: Path
    name: str
    tiers: tuple[str, ...]
    corpus: Path | None = None
    documents: int | None = None
    hosts: Mapping[str, int] = field(default_factory=dict)
    disks: Mapping[str, DiskSpec] = field(default_factory=dict)
    cpus: Mapping[str, float] = field(default_factory=dict)
    memory: Mapping[str, int] = field(default_factory=dict)
    delays: Mapping[str, DelayedEndpoint] = field(default_factory=dict)
    networks: Mapping[str, float] = field(default_factory=dict)
    throttle: Mapping[str, ThrottledEndpoint] = field(default_factory=dict)
    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    share_cores: bool = False


@dataclass(frozen=True, slots=True)
class Slower:
    """A temporary slowdown of one part of a running farm.

    Attributes:
        knob: ``disk``, ``cpu`` or ``delay``.
        name: ``server.role`` of a disk, or the server.
        ratio: the remaining speed, 0 to 1: limits are multiplied by it, times of an I/O or a round trip
            divided by it.
        cores: for ``cpu``, the number of cores that the ratio refers to.
    """

    knob: Literal["disk", "cpu", "delay"]
    name: str
    ratio: float
    cores: float | None = None


@dataclass(frozen=True, slots=True)
class TierStatus:
    """The state of one server of a tier.

    Attributes:
        server: its name; see ``pinchpoint_infra.servers``.
        name: the tier.
        host: name of its host in the farm.
        state: the tier's state; ``crashed`` if it ended without being stopped.
        pid: its first process; None for a tier that is a folder.
        port: its port on the loopback interface; None for a tier that is a folder.
        directory: all it made.
        log: its log file.
        exit_status: of a crashed tier; negative: the signal that killed it.
        log_tail: the end of a crashed tier's log.
    """

    server: str
    name: str
    host: str
    state: TierState
    pid: int | None
    port: int | None
    directory: str
    log: str
    exit_status: int | None = None
    log_tail: str = ""


@dataclass(frozen=True, slots=True)
class FarmStatus:
    """How a farm is.

    Attributes:
        farm_id: derived from the path of the farm file.
        state: ``broken`` if a tier crashed, its supervisor is gone, or files remain.
        directory: all it made.
        tiers: the servers of its tiers.
        endpoints: name -> url and options, as in farm.yaml's ``endpoints``; contains secrets.
        disks: server -> disk role -> its folder.
        farm_cores: the cores of its tiers.
        generator_cores: the cores left for load generators.
        content: its documents.
        emulated: ``server.role`` -> its emulated disk: device, mount, method, notes.
        limited: whether limits and delays are in force now.
        slower: the slowdown in force now, if any.
        warnings: sentences that a report of a run on this farm must show.
    """

    farm_id: str
    state: FarmState
    directory: str
    tiers: tuple[TierStatus, ...] = ()
    endpoints: Mapping[str, dict[str, str]] = field(default_factory=dict)
    disks: Mapping[str, dict[str, str]] = field(default_factory=dict)
    farm_cores: tuple[int, ...] = ()
    generator_cores: tuple[int, ...] = ()
    content: dict[str, Any] | None = None
    emulated: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    limited: bool = False
    slower: Slower | None = None
    warnings: tuple[str, ...] = ()
