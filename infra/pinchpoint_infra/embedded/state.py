"""A farm's state file: written by its supervisor, read by other processes, always complete."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pinchpoint_infra.codec import record
from pinchpoint_infra.embedded.record import Slower

STATE = "state.json"
SPEC = "spec.json"
WANTED = "limits.json"
"""The requested limits of the farm: ``LimitsInForce`` without ``failure``; written by ``control``."""


@dataclass(slots=True)
class TierState:
    """One server of a tier in its supervisor's records; see ``record.TierStatus``."""

    tier: str
    host: str
    state: str = "starting"
    pid: int | None = None
    create_time: float | None = None
    port: int | None = None
    directory: str = ""
    log: str = ""
    exit_status: int | None = None
    log_tail: str = ""
    disks: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LimitsInForce:
    """The request for limits and delays, and its result.

    Attributes:
        number: count of requests, which distinguishes an answer from the last one.
        hold: whether limits and delays are in force.
        failure: why the request failed; "" on success.
        live: whether only ``slower`` was requested; otherwise all limits start from their initial state.
        slower: the slowdown; None: none.
        until_s: end of the slowdown, UTC seconds, because the requester may be killed before.
    """

    number: int = 0
    hold: bool = False
    failure: str = ""
    live: bool = False
    slower: Slower | None = None
    until_s: float = 0.0


@dataclass(slots=True)
class State:
    """A farm in its supervisor's records.

    Attributes:
        stage: ``starting``, ``up`` or ``failed``.
        message: the present step, for the user.
        failure: why the farm failed, one sentence with the end of a log.
        input_at_fault: whether the requested farm is the cause.
        supervisor: (process id, creation time).
        tiers: server -> its state.
        emulated: ``server.role`` -> its emulated disk.
        limits: whether limits and delays are in force now.
        warnings: differences from the requested farm.
    """

    stage: str = "starting"
    message: str = ""
    failure: str = ""
    input_at_fault: bool = False
    supervisor: tuple[int, float] | None = None
    tiers: dict[str, TierState] = field(default_factory=dict)
    endpoints: dict[str, dict[str, str]] = field(default_factory=dict)
    content: dict[str, Any] | None = None
    emulated: dict[str, dict[str, Any]] = field(default_factory=dict)
    limits: LimitsInForce = LimitsInForce()
    warnings: list[str] = field(default_factory=list)
    farm_cores: list[int] = field(default_factory=list)
    generator_cores: list[int] = field(default_factory=list)

    def save(self, directory: Path) -> None:
        """Write the file atomically; only its owner may read it (it contains passwords)."""
        _save(directory / STATE, self)


def load(directory: Path) -> State | None:
    """The state of the farm in this folder; None if the file is missing or not readable.

    The file may be empty after a power loss, or of another version of Pinchpoint: such a farm is found and
    removed by its mark, like one without a state file.
    """
    try:
        return record(State, json.loads((directory / STATE).read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError):
        return None


def want(directory: Path, limits: LimitsInForce) -> None:
    """Send the supervisor a request for limits; the state file will have the answer."""
    _save(directory / WANTED, limits)


def wanted(directory: Path) -> LimitsInForce:
    """The requested limits of the farm."""
    try:
        return record(LimitsInForce, json.loads((directory / WANTED).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return LimitsInForce()


def _save(path: Path, content: State | LimitsInForce) -> None:
    partial = path.with_name(f"{path.name}.partial")
    partial.touch(mode=0o600)
    partial.write_text(json.dumps(asdict(content)), encoding="utf-8")
    partial.replace(path)
