"""From a stored run to a verdict: the bottleneck with its evidence and confidence."""

from pinchpoint.analysis.analyse import analyse
from pinchpoint.analysis.verdict import SCHEMA, Confidence, Fact, Next, Outcome, Suspect, Verdict, exit_status

__all__ = [
    "SCHEMA",
    "Confidence",
    "Fact",
    "Next",
    "Outcome",
    "Suspect",
    "Verdict",
    "analyse",
    "exit_status",
]
