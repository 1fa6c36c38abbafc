"""The causal test of ``run --prove`` as people read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pinchpoint.base import units
from pinchpoint.base.wording import capitalised
from pinchpoint.report.tables import Column, Row, Table, number, share

RESULT: Mapping[str, str] = {
    "agrees": "Proved: {what} answers as the model says",
    "contradicts": "Contradicted: {what} does not answer as the model says",
    "undecided": "The test is undecided",
    "not_allowed": "Not proved: not allowed",
    "not_supported": "Not proved: not supported",
    "nothing_to_prove": "Not proved: nothing to prove",
    "failed": "Not proved: the test failed",
}


def sentence(verdict: Row) -> str:
    """What the test came to, with its reason; "" where none was wanted."""
    found = verdict.get("proof")
    if not found:
        return ""
    result = RESULT[found["result"]].format(what=_what(found))
    return f"{result}. {capitalised(found['why'].rstrip('.'))}."


def _what(found: Mapping[str, Any]) -> str:
    """What had to answer: of an open load that the farm keeps up with throughput is set by the schedule."""
    of = found.get("of") or {}
    return "the speed of operations" if of.get("name") == "operations_per_busy_s" else "throughput"


def proof(verdict: Row) -> Table:
    """What was made slower, what the model says of it, and what was measured."""
    found = verdict.get("proof") or {}
    tested = [found] if found.get("change") else []
    tested += [found["control"]] if tested and found["control"] else []
    scenario = found["of"]["scenario"] if tested else ""
    return Table(
        "proof",
        "What was made slower on purpose",
        (
            Column("what", "made slower"),
            share("left", "left of its speed"),
            share("predicted_ratio", "the model says"),
            share("measured_ratio", "measured"),
            Column("interval", "95 % interval"),
            number("sensitivity", "sensitivity"),
            Column("result", "result"),
        ),
        [_row(one) for one in tested],
        note=f"{capitalised(_what(found))} of {scenario} while it was slower, as a share of what it was "
        "between. Sensitivity: 1 is in proportion to its speed, 0 not at all. What stands second has room: "
        "nothing may change.",
        empty="",  # most runs are not proved, and the sentence says why one is not
    )


def _row(one: Mapping[str, Any]) -> dict[str, Any]:
    low, high = one["ci95"] or (None, None)
    return {
        **one,
        "what": one["change"]["what"],
        "left": one["change"]["capacity_ratio"],
        "interval": None if low is None else f"{units.percent(low)} to {units.percent(high)}",
    }
