"""Damage in any stored file gives sentences, and never exit status 70."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest
from harness.store.damage import call, commands, fault, files, kept, walk

from pinchpoint.base.errors import InputError
from pinchpoint.store.read import open_run

SEED = 20261128
COUNT = 40
"""Number of damaged files in the test; ``damage.py`` does thousands."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kept(tmp_path_factory.mktemp("kept"))


def test_what_is_not_damaged_is_read(whole: Path, tmp_path: Path) -> None:
    """Each document is read by its command without damage, so that damage has an effect."""
    again = tmp_path / "kept"
    shutil.copytree(whole, again)
    asked = {commands(again, file)[0] for file in files(again)}
    assert len(asked) > 8
    for command in asked:
        status, said = call(*command)
        assert status in (0, 1, 3), said


def test_damage_is_bad_input_or_harmless(whole: Path) -> None:
    """A seeded sample of damage gives an answer, or exit status 2 with the file's name."""
    faults = [
        f"{relative}: {what}: {command[0]}: {why}: {said}"
        for relative, what, command, status, said in walk(whole, COUNT, random.Random(SEED), 1)
        if (why := fault(relative, status, said))
    ]
    assert faults == []


@pytest.mark.parametrize("name", ["manifest.json", "events.jsonl", "operations.parquet", "samples.parquet"])
@pytest.mark.parametrize("what", ["pipe", "device", "large"])
def test_what_is_no_plain_file_is_not_read(whole: Path, tmp_path: Path, name: str, what: str) -> None:
    """A link to an endless device, a pipe, and a huge file are not read."""
    run = next(path.parent for path in sorted(whole.rglob("operations.parquet")))
    shutil.copytree(run, tmp_path / "run")
    file = tmp_path / "run" / name
    file.unlink()
    if what == "pipe":
        os.mkfifo(file)
    elif what == "device":
        file.symlink_to("/dev/zero")
    else:
        with file.open("wb") as empty:
            empty.truncate(2**33)
    with pytest.raises(InputError, match=rf"{name}: (is no plain file|8,589,934,592 bytes|cannot be read)"):
        open_run(tmp_path / "run")
