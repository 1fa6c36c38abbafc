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
    """A farm cannot be started or stopped; one clear sentence, with the tail of a log where that helps."""


class FarmInputError(FarmError):
    """What was requested cannot be built: the input is wrong, not the environment."""


@dataclass(frozen=True, slots=True)
class FarmSpec:
    """The specification of a farm.

    Attributes:
        identity: the farm file's resolved path; the farm's id is derived from it.
        name: the farm's name.
        tiers: any subset of web, sql, search, nosql, files; web needs sql, which has its content.
        corpus: the folder of documents to fill it with; None: the machine's documentation.
        documents: this many, further copies of them where there are fewer; None: all of an explicit corpus, a
            sensible number of the other.
        disks: ``tier.role`` -> the emulated disk that plays it instead of a plain folder.
        cpus: tier, or ``generator`` -> the cores it may use.
        memory: tier -> the bytes it may use, page cache included.
        delays: tier -> the way to its endpoint.
        networks: tier -> bytes per second of the network interface in front of its endpoint.
        throttle: ``web`` -> how it refuses what comes too fast.
        settings: ``sql``, ``nosql`` -> its server's settings by name, beside and above the farm's own.
        share_cores: the tiers may use the load generators' cores as well.
    """

    identity: Path
    name: str
    tiers: tuple[str, ...]
    corpus: Path | None = None
    documents: int | None = None
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
    """One thing of a standing farm that is made slower than it is, for a while.

    Attributes:
        knob: ``disk``, ``cpu`` or ``delay``.
        name: ``tier.role`` of a disk, else the tier.
        ratio: what is left of its speed, 0 to 1: caps are multiplied by it, what an I/O or a round trip
            takes is divided by it.
        cores: of ``cpu``, the cores' worth of CPU that the ratio is of.
    """

    knob: Literal["disk", "cpu", "delay"]
    name: str
    ratio: float
    cores: float | None = None


@dataclass(frozen=True, slots=True)
class TierStatus:
    """How one tier is.

    Attributes:
        name: the tier.
        host: its host's name in the farm: the tier's name with a 1.
        state: how it is; ``crashed`` when it ended by itself.
        pid: its leading process; None for a tier that is a folder.
        port: where it listens on the loopback interface; None likewise.
        directory: all it made.
        log: its log file.
        exit_status: of a crashed one; negative: the signal that killed it.
        log_tail: the end of a crashed one's log.
    """

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
        farm_id: derived from its file's path.
        state: ``broken`` when a tier crashed, its supervisor is gone, or something was left behind.
        directory: all it made.
        tiers: its tiers.
        endpoints: name -> url and options, as farm.yaml's ``endpoints`` has them; holds secrets.
        disks: tier -> disk role -> the folder that plays it.
        farm_cores: the cores its tiers run on.
        generator_cores: the cores left for load generators.
        content: its documents.
        emulated: ``tier.role`` -> its emulated disk: device, mount, way, notes.
        limited: whether limits and delays hold at this moment.
        slower: what is slower than it was built at this moment, if anything.
        warnings: what a reader of a run against it must know.
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
