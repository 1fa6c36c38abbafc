"""A short part of ``make fuzz`` with a fixed seed: each damaged input is accepted or properly refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fuzz.kinds import Kind, kinds, workplace
from fuzz.run import Tally, fuzz

from pinchpoint.base.errors import InputError
from pinchpoint.plan import load
from pinchpoint.store.document import dotted

QUICK = ("plan", "script", "wire", "web", "tool", "collector", "capture")
"""Kinds whose inputs need no command."""
IMPORTS = ("import.perfmon", "import.blg", "import.result")
"""The imports that are fuzzed here; the tests of each format damage its files as well."""
CHOSEN = [kind for kind in kinds() if not kind.name.startswith("import.") or kind.name in IMPORTS]


@pytest.fixture(scope="module", autouse=True)
def place() -> Iterator[None]:
    with workplace():
        yield


@pytest.mark.parametrize("kind", CHOSEN, ids=lambda kind: kind.name)
def test_no_damage_raises_anything_else(kind: Kind) -> None:
    """A damaged input causes no traceback, no hang, and at most 1 GB of memory."""
    tally = Tally(kind.name)
    fuzz(kind, 1, 20 if kind.name.startswith(QUICK) else 2, tally)
    assert tally.faults == []
    assert tally.inputs


def test_a_tier_that_is_a_mapping_is_refused(tmp_path: Path) -> None:
    """A tier that is a mapping, as in ``[? , sql]``, is refused."""
    (tmp_path / "farm.yaml").write_text("name: f\nenvironment: test\nembedded:\n  tiers: [? , sql]\n")
    (tmp_path / "plan.yaml").write_text("name: p\nscenarios: {}\n")
    with pytest.raises(InputError, match=r"farm\.yaml:4"):
        load(tmp_path / "farm.yaml", tmp_path / "plan.yaml")


def test_a_field_name_in_a_message_cannot_steer_a_terminal() -> None:
    """A field name in another user's run may have any bytes; the message escapes them."""
    assert dotted(("hosts", "\x1b[2J", 0)) == "hosts.\\x1b[2J[0]"
