"""What a plan may say of a crawl that the farm makes itself (``params: {drive: native}``)."""

from __future__ import annotations

from collections.abc import Iterator

from pinchpoint.plan.document import Document
from pinchpoint.plan.problems import Problem

NEEDS = frozenset({"crawler"})
"""The endpoints it needs, in place of those of a crawl that Pinchpoint drives."""


def is_native(plan: Document, name: str) -> bool:
    """Whether a scenario is a farm's own crawl."""
    return bool(plan.at("scenarios", name, "params", "drive") == "native")


def check_native(plan: Document, name: str) -> Iterator[Problem]:
    """The farm's own crawler decides what is crawled at once: one user starts it and looks on."""
    load = plan.at("scenarios", name, "load")
    if isinstance(load, dict) and not (load.get("model") == "closed" and load.get("users") == 1):
        yield Problem(
            ("scenarios", name, "load"),
            "a load for a crawl that the farm itself makes, at its own pace",
            "needed: load: {model: closed, users: 1}",
        )
