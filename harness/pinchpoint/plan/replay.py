"""What a plan may say of a capture that is replayed: who does what, and when, is in the capture."""

from __future__ import annotations

from collections.abc import Iterator

from pinchpoint.plan.document import Document
from pinchpoint.plan.problems import Problem

USE = "sql-replay"


def check_replay(plan: Document, name: str) -> Iterator[Problem]:
    """Users take captured sessions; a rate, or a pause of their own, would be another load."""
    if plan.at("scenarios", name, "use") != USE:
        return
    load = plan.at("scenarios", name, "load")
    if isinstance(load, dict) and (load.get("model") != "closed" or "think" in load):
        yield Problem(
            ("scenarios", name, "load"),
            "a load with a rate, steps or pauses of its own for a capture, which has its own",
            "needed: load: {model: closed, users: N}, N the sessions that are replayed at once",
        )
