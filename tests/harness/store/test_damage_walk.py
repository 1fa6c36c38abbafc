"""Whatever is damaged in what Pinchpoint kept, a command says so in sentences, and never ends with 70."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from harness.store.damage import call, commands, fault, files, kept, walk

SEED = 20261128
COUNT = 40
"""Files, each damaged in one place and read by one command; by hand thousands (``damage.py``)."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kept(tmp_path_factory.mktemp("kept"))


def test_what_is_not_damaged_is_read(whole: Path, tmp_path: Path) -> None:
    """Else damage would change nothing: every document is one that its command reads."""
    again = tmp_path / "kept"
    shutil.copytree(whole, again)
    asked = {commands(again, file)[0] for file in files(again)}
    assert len(asked) > 8
    for command in asked:
        status, said = call(*command)
        assert status in (0, 1, 3), said


def test_damage_is_bad_input_or_harmless(whole: Path) -> None:
    """A seeded sample over all files, places and commands: an answer, or status 2 that names the file."""
    faults = [
        f"{relative}: {what}: {command[0]}: {why}: {said}"
        for relative, what, command, status, said in walk(whole, COUNT, random.Random(SEED), 1)
        if (why := fault(relative, status, said))
    ]
    assert faults == []
