"""From a stored run to a verdict: which resource gives way first, with the evidence and how sure it is."""

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
