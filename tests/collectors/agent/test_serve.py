"""Tests of the description that a host with an agent returns."""

from __future__ import annotations

from typing import Any

import pytest

from pinchpoint_collectors.agent import command
from pinchpoint_collectors.agent.collector import _unseen
from pinchpoint_collectors.local import LocalKind


@pytest.mark.parametrize("error", [PermissionError(1, "Operation not permitted"), ValueError("not a number")])
def test_whatever_goes_wrong_is_the_answer(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Any error becomes the reply; otherwise the tail would end and look like a cut link."""

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(LocalKind, "connect", fail)
    said = command._answer({"watch": {"host": "sql1", "tier": "sql", "disks": {}}}, {})
    assert said == {"inventory": "sql1", "error": f"{type(error).__name__}: {error}"}


def test_a_disk_that_is_not_counted_is_not_said_to_be_missing_in_the_configuration() -> None:
    """A disk whose I/O is not counted has one reason and one remedy; naming it in `disks` would not help."""
    roles = {"log": {"device": "sdb", "given": "sdb"}, "data": {"device": "dm-0", "given": "/data"}}
    told = {"metric": "disk.*", "instance": "sdb", "why": "iostats is 0", "remedy": "echo 1"}
    facts: dict[str, Any] = {"roles": roles, "not_measured": [told]}
    assert [each["instance"] for each in _unseen(facts, {"sda"})] == ["dm-0"]
    assert [each["instance"] for each in _unseen({**facts, "not_measured": []}, {"sda"})] == ["sdb", "dm-0"]
