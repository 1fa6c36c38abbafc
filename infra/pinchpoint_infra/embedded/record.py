"""Defines the specification and the state of an embedded farm."""

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
    """A farm cannot be started or stopped. The message is a sentence, with the end of a log if useful."""


class FarmInputError(FarmError):
    """The requested farm cannot be built, because the input is wrong. The environment is not the cause."""


@dataclass(frozen=True, slots=True)
class FarmSpec:
    """The specification of a farm.

    Attributes:
        identity: resolved path of the farm file, from which the id of the farm is derived.
        name: name of the farm.
        tiers: any of web, sql, search, nosql, files. web needs sql, which stores its content.
        corpus: folder with the documents; None: the documentation of this machine.
        documents: number of documents, reached with further copies if needed; None: all of a named corpus, a
            default number of another one.
        hosts: tier -> number of its hosts, if the number is not 1.
        disks: ``server.role`` -> emulated disk. Other roles are plain folders.
        cpus: server, or ``generator`` -> limit in cores.
        memory: server -> limit in bytes, including page cache.
        delays: server -> delay in front of its endpoint.
        networks: server -> bytes per second of the network interface in front of its endpoint.
        throttle: ``web`` -> how the tier refuses requests above a rate.
        settings: ``sql``, ``nosql`` -> further settings of the server, which override the farm's own.
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
        ratio: remaining speed, 0 to 1. It multiplies limits, and divides the time of an I/O or a round trip.
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
        server: name of the server (see ``pinchpoint_infra.servers``).
        name: name of the tier.
        host: name of the server's host in the farm.
        state: state of the server; ``crashed`` if it ended without being stopped.
        pid: first process of the server; None for a tier that is a folder.
        port: port on the loopback interface; None for a tier that is a folder.
        directory: folder with everything that the server created.
        log: log file.
        exit_status: exit status of a crashed tier; negative: the signal that killed it.
        log_tail: end of a crashed tier's log.
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
    """The state of a farm.

    Attributes:
        farm_id: id derived from the path of the farm file.
        state: state of the farm; ``broken`` if a tier crashed, its supervisor is gone, or files remain.
        directory: folder with everything that the farm created.
        tiers: states of the servers.
        endpoints: name -> url and options, as in farm.yaml's ``endpoints``; contains secrets.
        disks: server -> disk role -> folder.
        farm_cores: cores of the tiers.
        generator_cores: cores for load generators.
        content: facts about its documents.
        emulated: ``server.role`` -> emulated disk: device, mount, method, notes.
        limited: whether limits and delays are in force.
        slower: slowdown in force; None if there is none.
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
