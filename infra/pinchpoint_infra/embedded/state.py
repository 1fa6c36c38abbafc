"""A farm's state file: written by its supervisor, read by others, always complete."""

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
    """One tier as its supervisor knows it; see ``record.TierStatus``."""

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
    """Whether limits and delays hold.

    Attributes:
        number: counts what was requested, so that an answer can be distinguished from the one before.
        hold: whether they hold.
        failure: why that could not be done; "" if it was.
        live: whether only ``slower`` was asked for; without it all limits begin anew.
        slower: what is slower than it was built; None: nothing.
        until_s: when that ends by itself, UTC seconds, because the requester may be dead by then.
    """

    number: int = 0
    hold: bool = False
    failure: str = ""
    live: bool = False
    slower: Slower | None = None
    until_s: float = 0.0


@dataclass(slots=True)
class State:
    """A farm as its supervisor knows it.

    Attributes:
        stage: ``starting``, ``up`` or ``failed``.
        message: its present step, for the user.
        failure: why it failed, one sentence with the tail of a log.
        input_at_fault: whether what was requested is why.
        supervisor: (process id, its create time).
        emulated: ``tier.role`` -> what its emulated disk is.
        limits: whether limits and delays hold at this moment.
        warnings: in what the farm differs from what was requested.
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
        """Write it atomically; only its owner may read it (it contains passwords)."""
        _save(directory / STATE, self)


def load(directory: Path) -> State | None:
    """The state of the farm in that folder; None if none was written yet, or none that can be read.

    A machine that lost its power may leave it empty, and another version of Pinchpoint writes another one:
    such a farm is found and removed by its mark, like one without a state file.
    """
    try:
        return record(State, json.loads((directory / STATE).read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError):
        return None


def want(directory: Path, limits: LimitsInForce) -> None:
    """Ask the supervisor for limits; it answers in the state."""
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
