"""``pinchpoint init``: what it writes is right as it is, and so is the part that is commented out."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from pinchpoint.base.errors import FarmUnavailable, InputError
from pinchpoint.cli.init import FARM, init
from pinchpoint.plan import load, load_farm

REAL_FARM_BEGINS = "# --- A real farm"


def run(directory: Path) -> str:
    """Run the command; its errors come through."""
    return CliRunner().invoke(init, [str(directory)], catch_exceptions=False, standalone_mode=False).stdout


def test_both_files_load(tmp_path: Path) -> None:
    """All five tiers, all three scenarios; what was written is printed, one path a line."""
    directory = tmp_path / "new" / "place"
    result = CliRunner().invoke(init, [str(directory)])
    assert result.exit_code == 0
    assert result.stdout == f"{directory / 'farm.yaml'}\n{directory / 'plan.yaml'}\n"
    farm, plan = load(directory / "farm.yaml", directory / "plan.yaml")
    assert farm.embedded is not None
    assert farm.embedded.tiers == ("web", "sql", "search", "nosql", "files")
    assert {planned.use for planned in plan.scenarios.values()} == {"full-crawl", "sql-mix", "nosql-burst"}


def test_the_real_farm_loads_once_uncommented(tmp_path: Path) -> None:
    """Following the file's own instruction gives a farm with every endpoint, for the same plan."""
    run(tmp_path)
    path = tmp_path / "farm.yaml"
    built, given = FARM.split(REAL_FARM_BEGINS)
    kept = [line for line in built.splitlines() if line.startswith(("name:", "environment:"))]
    path.write_text("\n".join(kept + [line.removeprefix("# ") for line in given.splitlines()[1:]]) + "\n")
    farm, _ = load(path, tmp_path / "plan.yaml")
    assert farm.embedded is None
    assert farm.offered == {"sharepoint", "sql", "nosql", "search", "files", "web"}
    assert farm.tiers["sql"].hosts["sql1"].disks["log"].resolved_limits is not None


def test_the_commented_content_loads_too(tmp_path: Path) -> None:
    """The embedded farm's own commented part."""
    path = tmp_path / "farm.yaml"
    lines = [f"  {line[4:]}" if line.startswith("  # ") else line for line in FARM.splitlines()]
    path.write_text("\n".join(lines) + "\n")
    farm = load_farm(path)
    assert farm.embedded is not None
    assert farm.embedded.content.corpus == tmp_path / "documents"
    assert farm.embedded.content.documents == 2000


@pytest.mark.parametrize("name", ["farm.yaml", "plan.yaml"])
def test_nothing_is_overwritten(tmp_path: Path, name: str) -> None:
    """A file that is there stays as it is, and the other one is not written either."""
    (tmp_path / name).write_text("mine")
    with pytest.raises(InputError) as raised:
        run(tmp_path)
    assert str(raised.value) == (
        f"{tmp_path / name}: exists already; nothing was written; move it away, or name another folder"
    )
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    """One sentence, exit status 2."""
    (tmp_path / "x").write_text("")
    with pytest.raises(InputError, match="is in the way"):
        run(tmp_path / "x")


def test_a_folder_that_may_not_be_written(closed_folder: Path) -> None:
    """One sentence, exit status 5."""
    with pytest.raises(FarmUnavailable, match="cannot be written"):
        run(closed_folder / "x")
