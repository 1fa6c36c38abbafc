"""Failed operations: a farm with too many gets no all-clear, whatever room it has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from pinchpoint.analysis.flows import Flow
from pinchpoint.analysis.objectives import objective_table
from pinchpoint.analysis.thresholds import FAILING
from pinchpoint.base import units
from pinchpoint.data.inputs import Inputs
from pinchpoint.data.operations import NO_ERRORS

OF_CONTENT = ("not_found", "permission", "authentication", "token_expired", "robots", "not_supported")
"""Outcomes that depend on the content and not on the load: a crawl of real content always has some."""

NAMED = 3
"""How many kinds of failures, and messages of the server, are listed for a scenario."""


def failures(inputs: Inputs, flow: Flow) -> Iterator[str]:
    """How the operations of a scenario ended, without those that never started."""
    outcomes = inputs.traffic.of(flow.load.scenario).whole().outcomes()
    yield from (kind for kind in outcomes if kind != "dropped")


def said_of(inputs: Inputs, flow: Flow) -> list[str]:
    """The server's messages for failed statements of a scenario, with file and line of each if known."""
    lines = [
        f"{event.get('said')}, {_place(event)}"
        for event in inputs.events
        if event.get("event") == "statement_failed" and event.get("scenario") == flow.load.scenario
    ]
    return lines[:NAMED]


def _place(event: Mapping[str, Any]) -> str:
    if "script" in event:
        return f"{PurePath(str(event['script'])).name}:{event.get('line')}"
    return str(event.get("operation"))


def failing_words(inputs: Inputs, flows: tuple[Flow, ...]) -> Iterator[str]:
    """Scenarios in which more operations fail than an objective allows, or too many without one."""
    errors = (row for row in objective_table(inputs) if row["metric"] == "errors_ratio")
    allowed = {row["scenario"] for row in errors if row["met"]}
    for flow in flows:
        if flow.load.scenario not in allowed:
            yield from _failing(inputs, flow)


def _failing(inputs: Inputs, flow: Flow) -> Iterator[str]:
    outcomes = inputs.traffic.of(flow.load.scenario).whole().outcomes()
    failed = {kind: n for kind, n in outcomes.items() if kind not in (*NO_ERRORS, *OF_CONTENT)}
    share = sum(failed.values()) / flow.finished if flow.finished else 0.0
    if share >= FAILING.value:
        named = sorted(failed, key=lambda kind: -failed[kind])[:NAMED]
        kinds = ", ".join([*named, *said_of(inputs, flow)])
        yield f"{units.percent(share)} of the operations of {flow.load.scenario} failed ({kinds})"
