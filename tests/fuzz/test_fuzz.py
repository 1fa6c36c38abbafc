"""A short part of ``make fuzz`` with a fixed seed: each damaged input is accepted, or refused in words."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fuzz.kinds import Kind, kinds, workplace
from fuzz.run import Tally, fuzz

QUICK = ("plan", "script", "wire", "web", "tool", "collector", "capture")
"""Kinds whose inputs cost no command."""
IMPORTS = ("import.perfmon", "import.blg", "import.result")
"""Of the imports these: the tests of each format damage its files as well."""
CHOSEN = [kind for kind in kinds() if not kind.name.startswith("import.") or kind.name in IMPORTS]


@pytest.fixture(scope="module", autouse=True)
def place() -> Iterator[None]:
    with workplace():
        yield


@pytest.mark.parametrize("kind", CHOSEN, ids=lambda kind: kind.name)
def test_no_damage_raises_anything_else(kind: Kind) -> None:
    """No traceback, no hang, at most 1 GB; an input that was found otherwise is in build/fuzz/."""
    tally = Tally(kind.name)
    fuzz(kind, 1, 20 if kind.name.startswith(QUICK) else 2, tally)
    assert tally.faults == []
    assert tally.inputs
