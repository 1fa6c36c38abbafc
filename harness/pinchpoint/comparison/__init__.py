"""Two sets of runs: what differs, what changed, whether the bottleneck moved, and what may be claimed."""

from pinchpoint.comparison.comparison import SCHEMA, Comparison, check_factor, compare, exit_status
from pinchpoint.comparison.sides import Run, Side, Sides, read_sides, sides_of

__all__ = [
    "SCHEMA",
    "Comparison",
    "Run",
    "Side",
    "Sides",
    "check_factor",
    "compare",
    "exit_status",
    "read_sides",
    "sides_of",
]
