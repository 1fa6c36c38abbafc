"""The only file of these tests that names modules of the product: a function for what no command answers."""

from __future__ import annotations

import json
from pathlib import Path

from pinchpoint.probe.judge import judge
from pinchpoint.probe.record import load
from pinchpoint.probe.text import probe_text


def judged_probe(directory: Path) -> str:
    """The verdict on a recorded probe, reached anew: as text and as in probe.json."""
    probe = load(directory)
    verdict = judge(probe)
    return f"{probe_text(probe, verdict)}\n{json.dumps(verdict.to_json(), indent=1)}\n"
