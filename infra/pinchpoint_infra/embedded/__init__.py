"""The embedded farm: a real farm of real servers that Pinchpoint starts on this machine."""

from pinchpoint_infra.embedded.control import (
    down,
    down_by_id,
    known,
    launch,
    limit,
    slow,
    status,
    up,
    wait_up,
)
from pinchpoint_infra.embedded.record import (
    FarmError,
    FarmInputError,
    FarmSpec,
    FarmStatus,
    Slower,
    TierStatus,
)

__all__ = [
    "FarmError",
    "FarmInputError",
    "FarmSpec",
    "FarmStatus",
    "Slower",
    "TierStatus",
    "down",
    "down_by_id",
    "known",
    "launch",
    "limit",
    "slow",
    "status",
    "up",
    "wait_up",
]
