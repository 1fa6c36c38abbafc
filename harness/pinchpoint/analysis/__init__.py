"""Computes the verdict of a stored run: the bottleneck with its evidence and confidence."""

from pinchpoint.analysis.analyse import analyse
from pinchpoint.analysis.verdict import (
    SCHEMA,
    Bottleneck,
    Confidence,
    Fact,
    Next,
    Outcome,
    Verdict,
    exit_status,
)

__all__ = [
    "SCHEMA",
    "Bottleneck",
    "Confidence",
    "Fact",
    "Next",
    "Outcome",
    "Verdict",
    "analyse",
    "exit_status",
]
