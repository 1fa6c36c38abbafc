"""The embedded farm: a real farm of real servers that Pinchpoint starts on this machine."""

from pinchpoint_infra.embedded.control import down, limit, status, up
from pinchpoint_infra.embedded.record import FarmError, FarmInputError, FarmSpec, FarmStatus, TierStatus

__all__ = [
    "FarmError",
    "FarmInputError",
    "FarmSpec",
    "FarmStatus",
    "TierStatus",
    "down",
    "limit",
    "status",
    "up",
]
