"""Compares two sets of runs: their differences, the changed figures, the bottlenecks and the cause."""

from pinchpoint.comparison.comparison import SCHEMA, Comparison, check_factor, compare, exit_status
from pinchpoint.comparison.judged_figures import check_metrics
from pinchpoint.comparison.sides import ComparedRun, Side, Sides, read_again, read_sides, sides_of

__all__ = [
    "SCHEMA",
    "ComparedRun",
    "Comparison",
    "Side",
    "Sides",
    "check_factor",
    "check_metrics",
    "compare",
    "exit_status",
    "read_again",
    "read_sides",
    "sides_of",
]
