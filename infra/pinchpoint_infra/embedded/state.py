"""Reads and writes the state file of a farm. Its supervisor writes it, and other processes read it."""

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
"""Name of the file with the requested limits: ``LimitsInForce`` without ``failure``. ``control`` writes
it."""


@dataclass(slots=True)
class TierState:
    """The supervisor's record of one server (see ``record.TierStatus``)."""

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
    """A request for limits and delays, and its result.

    Attributes:
        number: number of the request. An answer has the number of its request.
        hold: whether limits and delays are in force.
        failure: why the request failed; "" if it succeeded.
        live: whether the request only changes ``slower``. Otherwise all limits start from their initial
            state.
        slower: slowdown; None: no slowdown.
        until_s: end of the slowdown in UTC seconds, because the requester may be killed before that.
    """

    number: int = 0
    hold: bool = False
    failure: str = ""
    live: bool = False
    slower: Slower | None = None
    until_s: float = 0.0


@dataclass(slots=True)
class State:
    """The supervisor's record of a farm.

    Attributes:
        stage: stage of the start: ``starting``, ``up`` or ``failed``.
        message: current step, for the user.
        failure: why the farm failed: a sentence with the end of a log.
        input_at_fault: whether the request for the farm caused the failure.
        supervisor: process id and creation time.
        tiers: server -> state of the server.
        emulated: ``server.role`` -> emulated disk.
        limits: whether limits and delays are in force.
        warnings: sentences on differences from the requested farm.
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
        """Write the file atomically. Only its owner may read it, because it contains passwords."""
        _save(directory / STATE, self)


def load(directory: Path) -> State | None:
    """Return the state of the farm in a folder; None if the file is missing or not readable.

    The file may be empty after a power loss, or of another version of Pinchpoint. Such a farm is found and
    removed by its mark, like a farm without a state file.
    """
    try:
        return record(State, json.loads((directory / STATE).read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError):
        return None


def want(directory: Path, limits: LimitsInForce) -> None:
    """Send a request for limits to the supervisor. The answer appears in the state file."""
    _save(directory / WANTED, limits)


def wanted(directory: Path) -> LimitsInForce:
    """Return the requested limits of the farm."""
    try:
        return record(LimitsInForce, json.loads((directory / WANTED).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return LimitsInForce()


def _save(path: Path, content: State | LimitsInForce) -> None:
    partial = path.with_name(f"{path.name}.partial")
    partial.touch(mode=0o600)
    partial.write_text(json.dumps(asdict(content)), encoding="utf-8")
    partial.replace(path)
