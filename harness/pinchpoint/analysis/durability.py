"""Counts lost acknowledged writes, from the events of scenarios that read their writes back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pinchpoint.data.inputs import Inputs

READ_BACK = "writes_read_back"
"""The event of a generator that has read its writes back; nosql-burst describes the fields."""
WORKER_LOST = "worker_lost"
"""The event of a dead load worker, with the fields ``worker`` and ``scenarios``."""
_COUNTS = ("acknowledged", "records", "confirmed", "missing", "different", "expired")
_EXAMPLES = 5


def writes_table(inputs: Inputs, scenario: str) -> dict[str, Any] | None:
    """Writes read back, over all generators of a scenario; None if the scenario read none back.

    The keys are those of the event: ``acknowledged`` writes, ``records`` read back, and of these
    ``confirmed``, ``missing``, ``different`` and ``expired``; ``examples`` of records that are missing or
    different; ``not_read``: one reason for each generator that was lost or did not read all of its writes
    back.
    """
    checks = [
        event
        for event in inputs.events
        if event.get("event") == READ_BACK and event.get("scenario") == scenario
    ]
    if not checks:
        return None
    row: dict[str, Any] = {name: sum(int(event.get(name) or 0) for event in checks) for name in _COUNTS}
    row["sample"] = "all" if all(event.get("sample") == "all" for event in checks) else "sample"
    row["examples"] = [item for event in checks for item in event.get("examples") or ()][:_EXAMPLES]
    row["not_read"] = [str(event["not_read"]) for event in checks if event.get("not_read")]
    row["not_read"] += [
        f"load generator {event['worker']} was lost with its list of writes"
        for event in inputs.events
        if event.get("event") == WORKER_LOST and scenario in event.get("scenarios", ())
    ]
    return row


def losses(inputs: Inputs) -> Iterator[str]:
    """A sentence for every scenario with lost acknowledged writes, or with writes that were not read back."""
    for load in inputs.loads:
        row = writes_table(inputs, load.scenario)
        if row is not None:
            yield from loss(load.scenario, row)


def loss(scenario: str, row: Mapping[str, Any]) -> Iterator[str]:
    """Warnings about lost writes of one scenario, from its ``writes_table``."""
    gone = row["missing"] + row["different"]
    if gone:
        examples = ", ".join(str(item) for item in row["examples"])
        yield (
            f"{scenario}: acknowledged writes are lost: {row['missing']:,} missing and {row['different']:,} "
            f"different of {row['records']:,} records read back (such as record {examples})"
        )
    for why in row["not_read"]:
        yield f"{scenario}: acknowledged writes were not all read back: {why}"
