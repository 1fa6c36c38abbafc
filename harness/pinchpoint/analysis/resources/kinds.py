"""The kinds of resources that are neither CPU nor disk: a new one is a module and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from pinchpoint.analysis.resources.base import ResourceType, Shared
from pinchpoint.analysis.resources.dependency import Dependency
from pinchpoint.analysis.resources.lock import Lock
from pinchpoint.analysis.resources.memory import Memory
from pinchpoint.analysis.resources.network import Network
from pinchpoint.analysis.resources.pool import Pool

SHARED: Mapping[ResourceType, Shared] = {
    "memory": Memory(),
    "network": Network(),
    "pool": Pool(),
    "lock": Lock(),
    "dependency": Dependency(),
}
"""In the order in which they are looked for."""
