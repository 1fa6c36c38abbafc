"""``pinchpoint init``: the written files are valid, and so are their commented parts."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from support import run_cli

from pinchpoint.base.errors import FarmUnavailable, InputError
from pinchpoint.cli import templates
from pinchpoint.cli.init import init
from pinchpoint.plan import guard, load, load_farm
from pinchpoint.plan.urls import variables


def run(directory: Path) -> str:
    """Return the command's output; its errors are raised."""
    return CliRunner().invoke(init, [str(directory)], catch_exceptions=False, standalone_mode=False).stdout


def test_both_files_load(tmp_path: Path) -> None:
    """The files have five tiers and three scenarios, and their paths are printed one per line."""
    directory = tmp_path / "new" / "place"
    result = CliRunner().invoke(init, [str(directory)])
    assert result.exit_code == 0
    assert result.stdout == f"{directory / 'farm.yaml'}\n{directory / 'plan.yaml'}\n"
    farm, plan = load(directory / "farm.yaml", directory / "plan.yaml")
    assert farm.embedded is not None
    assert farm.embedded.tiers == ("web", "sql", "search", "nosql", "files")
    assert {planned.use for planned in plan.scenarios.values()} == {"full-crawl", "sql-mix", "nosql-burst"}


@pytest.mark.parametrize("name", templates.names())
def test_each_template_loads(name: str, tmp_path: Path) -> None:
    """Each template loads with its variables set; the values to fill in are named on stderr."""
    done = CliRunner().invoke(init, [str(tmp_path / name), "--template", name])
    assert done.exit_code == 0, done.output
    plan_file, farms = tmp_path / name / "plan.yaml", []
    for written in done.stdout.splitlines():
        if (path := Path(written)) != plan_file:
            farm, plan = load(path, plan_file)
            farms.append(farm)
            guard(farm, plan)
            text = path.read_text()
            names = set(variables("\n".join(line.partition("#")[0] for line in text.splitlines())))
            assert all(f"{each}=" in done.stderr for each in names)
            assert ("that end in .example" in done.stderr) == (name != "embedded")
            assert f"check {path.parent}" in done.stderr
    assert len(farms) == (2 if name == "azure-dev-prod" else 1)
    listed = CliRunner().invoke(init, ["--template", "list"]).stdout
    assert next(line for line in listed.splitlines() if line.startswith(name)).endswith(".")


def test_the_farm_of_sharepoint_has_what_one_consists_of(tmp_path: Path) -> None:
    """The SharePoint farm has Windows hosts, two SQL Servers with disks, ODBC, and its four crawls."""
    for name in ("sharepoint", "azure-dev-prod"):
        CliRunner().invoke(init, [str(tmp_path / name), "--template", name])
    farm, plan = load(tmp_path / "sharepoint" / "farm.yaml", tmp_path / "sharepoint" / "plan.yaml")
    servers = farm.tiers["sql"].hosts
    assert len(servers) == 2
    assert all(
        set(server.disks) == {"log", "data", "tempdb"} and server.machine for server in servers.values()
    )
    for tier in ("web", "search", "sql"):
        hosts = farm.tiers[tier].hosts.values()
        assert all("windows" in [one.kind for one in host.collect] for host in hosts)
    assert farm.endpoints.named()["sql"].url.startswith("mssql+odbc://")
    params = plan.scenarios["crawl"].params
    assert params["drive"] == "native"
    assert len(params["native"]["content_sources"]) == 4
    both = tmp_path / "azure-dev-prod"
    dev, compared = load(both / "dev.yaml", both / "plan.yaml")
    prod, _ = load(both / "prod.yaml", both / "plan.yaml")
    assert compared.compare is not None
    log = [side.tiers["sql"].hosts["sql1"].disks["log"] for side in (dev, prod)]
    assert [(disk.profile, disk.stripes) for disk in log] == [("azure/s30", 4), ("azure/p30", None)]
    assert [side.tiers["sql"].hosts["sql1"].machine for side in (dev, prod)] == ["azure/d12", "azure/ds12"]


def test_an_unknown_template_lists_those_there_are(tmp_path: Path) -> None:
    """An unknown template gives exit status 2 and the nearest name, and nothing is written."""
    done = run_cli("init", tmp_path / "x", "--template", "sharpoint")
    assert done.returncode == 2
    assert "nearest: sharepoint" in done.stderr
    assert not (tmp_path / "x").exists()


def test_the_commented_content_loads_too(tmp_path: Path) -> None:
    """The commented part of the embedded farm loads, too."""
    path = tmp_path / "farm.yaml"
    given = templates.files("embedded")["farm.yaml"]
    lines = [f"  {line[4:]}" if line.startswith("  # ") else line for line in given.splitlines()]
    path.write_text("\n".join(lines) + "\n")
    farm = load_farm(path)
    assert farm.embedded is not None
    assert farm.embedded.content.corpus == tmp_path / "documents"
    assert farm.embedded.content.documents == 2000


@pytest.mark.parametrize("name", ["farm.yaml", "plan.yaml"])
def test_nothing_is_overwritten(tmp_path: Path, name: str) -> None:
    """An existing file is kept, and the other one is not written either."""
    (tmp_path / name).write_text("mine")
    with pytest.raises(InputError) as raised:
        run(tmp_path)
    assert str(raised.value) == (
        f"{tmp_path / name}: exists already; nothing was written; move it away, or name another folder"
    )
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    """A file in place of the folder gives one sentence and exit status 2."""
    (tmp_path / "x").write_text("")
    with pytest.raises(InputError, match="is in the way"):
        run(tmp_path / "x")


def test_a_folder_that_may_not_be_written(closed_folder: Path) -> None:
    """A folder without write access gives one sentence and exit status 5."""
    with pytest.raises(FarmUnavailable, match="cannot be written"):
        run(closed_folder / "x")
