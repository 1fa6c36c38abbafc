"""A set of runs: the order of the farms, the stored files, what ends a set, and its comparison."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import click
import pytest
from harness.analysis.build import Build
from harness.comparison.example import saved
from support import run_cli

from pinchpoint.analysis import analyse
from pinchpoint.base.errors import ExitStatus, FarmUnavailable, InputError, NotEvidenceError, PinchpointError
from pinchpoint.cli import run as run_command
from pinchpoint.cli import run_set, seeds
from pinchpoint.cli.compare import compare as compare_command
from pinchpoint.cli.run_set import compare_farms, run_members
from pinchpoint.cli.runs import runs as runs_command
from pinchpoint.plan import Farm, Plan, load
from pinchpoint.report import set_page
from pinchpoint.run.run_set import SET, Repeated, RunSet, SetFolder, is_set, load_set, new_set, turns
from pinchpoint.store.schema import MANIFEST, VERDICT
from pinchpoint.store.write import write_json

Member = tuple[Farm, Plan]
GONE = FarmUnavailable("the farm is gone")
PLAN = {
    "name": "orders",
    "scenarios": {"orders": {"use": "sql-mix", "load": {"model": "closed", "users": 8}}},
    "phases": {"warm_up": "1s", "measure": "2s"},
}


def member(folder: Path, name: str) -> Member:
    """Return a farm of that name and the plan, loaded from files."""
    folder.mkdir(parents=True, exist_ok=True)
    farm, plan = folder / f"{name}.yaml", folder / "plan.yaml"
    endpoint = {"sql": {"url": "postgresql://someone@localhost/nothing"}}
    farm.write_text(json.dumps({"name": name, "environment": "test", "endpoints": endpoint}))
    plan.write_text(json.dumps(PLAN))
    return load(farm, plan)


def maker(
    per_s: dict[str, float], fail_at: int = 0, failure: PinchpointError = GONE, cut_at: int = 0
) -> Callable[..., tuple[Path, ExitStatus]]:
    """Return a function that writes a run's directory with operations at the farm's rate.

    The run of number ``fail_at`` fails, and that of number ``cut_at`` is interrupted.
    """
    made = 0

    def run_one(farm: Farm, plan: Plan, folder: Path, **_: object) -> tuple[Path, ExitStatus]:
        nonlocal made
        made += 1
        if made == fail_at:
            raise failure
        rate = per_s[farm.name] * (1 + 0.01 * (made % 3))
        build = Build(measure_s=30, seed=made, state="interrupted" if made == cut_at else "finished")
        build.host("sql1", "sql").cpu("sql1", 0.3, 0.2)
        build.closed("orders", "sql-mix", 8)
        build.operations("orders", "log_append", rate, 8 / rate, noise=0.01).generator()
        build.manifest["farm"]["name"], build.manifest["plan"]["name"] = farm.name, plan.name
        build.manifest["seed"] = 1
        build.manifest["started"] = f"2026-01-01T00:00:{made:02}Z"
        stored = build.run()
        directory = saved(stored, folder / f"run{made}")
        write_json(directory / VERDICT, analyse(stored).to_json())
        return directory, ExitStatus.NOT_EVIDENCE if made == cut_at else ExitStatus.OBJECTIVES_MISSED

    return run_one


def test_farms_take_turns_and_every_second_round_goes_backwards() -> None:
    """Farms alternate, and every second round is reversed, so that a drift affects both sides equally."""
    places = [SetFolder("a", "a", "/a"), SetFolder("b", "b", "/b"), SetFolder("c", "c", "/c")]
    made = [(number, place.folder) for number, place in turns(places, 3)]
    assert "".join(folder for _, folder in made) == "abccbaabc"
    assert [number for number, _ in made] == [1, 1, 1, 2, 2, 2, 3, 3, 3]


def test_a_set_is_made_compared_and_read_back(tmp_path: Path) -> None:
    """Two farms and an A/A repetition, five runs each, give folders, set.json and a comparison."""
    members = [member(tmp_path / "files", name) for name in ("dev", "prod")]
    farms = [(farm.name, Path(farm.identity)) for farm, _ in members]
    made = new_set(tmp_path / "out", "orders", farms, Repeated(5, aa=True, factors=("disks",)))
    statuses = run_members(made, members, maker({"dev": 80.0, "prod": 240.0}))
    assert statuses == [ExitStatus.OBJECTIVES_MISSED] * 15
    (comparison,), _ = compare_farms(made, ["The disks are emulated."])
    content = json.loads((comparison / "comparison.json").read_text())
    assert content["warnings"][-1] == "The disks are emulated."
    assert "The disks are emulated." in (comparison / "report.html").read_text()
    rows = {row["name"]: row for row in content["changes"]}
    crawl = rows["scenario.orders.throughput_per_s"]
    assert (crawl["call"], crawl["interval"], crawl["confidence"]) == ("better", "between_runs", "high")
    assert 1 < crawl["floor_ratio"] < 1.02
    assert content["factors"] == ["disks"]
    assert comparison.parent == made.directory
    assert sorted(path.name for path in made.directory.iterdir() if path != comparison) == [
        "dev",
        "dev-again",
        "prod",
        SET,
    ]
    again = load_set(made.directory)
    assert again == made
    assert (again.state, len(again.runs), again.runs[0]["status"]) == ("finished", 15, 1)
    assert is_set(made.directory)
    assert not is_set(made.directory / "dev")


def test_three_farms_are_on_one_page(tmp_path: Path) -> None:
    """A set of three farms has one comparison, which the command repeats and the set's page lists."""
    members = [member(tmp_path / "files", name) for name in ("dev", "prod", "next")]
    farms = [(farm.name, Path(farm.identity)) for farm, _ in members]
    made = new_set(tmp_path / "out", "orders", farms, Repeated(5))
    run_members(made, members, maker({"dev": 80.0, "prod": 240.0, "next": 79.0}))
    (written,), status = compare_farms(made)
    content = json.loads((written / "comparison.json").read_text())
    assert [side["label"] for side in content["sides"]] == ["dev", "prod", "next"]
    [row] = [one for one in content["figures"] if one["name"] == "scenario.orders.throughput_per_s"]
    assert row["standing"] == ["worse", "best", "worse"]
    calls = {tuple(pair["sides"]): pair["call"] for pair in row["pairs"]}
    assert calls == {(0, 1): "better", (0, 2): "equivalent", (1, 2): "worse"}
    compare_command.main(["--json", "--out", str(tmp_path), str(made.directory)], standalone_mode=False)
    [again] = tmp_path.glob("comparison-dev-prod-next-*")
    assert json.loads((again / "comparison.json").read_text()) == content
    assert status == ExitStatus.FINE
    report = set_page.document(made).content["comparisons"]
    assert report == [content["summary"]]


def test_what_the_plan_declares_is_judged_at_the_end_of_its_set(tmp_path: Path) -> None:
    """The plan's declarations apply to the set's comparison without options."""
    members = [member(tmp_path / "files", name) for name in ("dev", "prod")]
    said = {"metrics": ["cpu.sql.busy_mean_ratio"], "bound": 2.0}
    make = maker({"dev": 80.0, "prod": 240.0})

    def run_one(farm: Farm, plan: Plan, folder: Path) -> tuple[Path, ExitStatus]:
        directory, status = make(farm, plan, folder)
        manifest = json.loads((directory / MANIFEST).read_text())
        manifest["plan"]["compare"] = said
        (directory / MANIFEST).write_text(json.dumps(manifest))
        return directory, status

    farms = [(farm.name, Path(farm.identity)) for farm, _ in members]
    made = new_set(tmp_path / "out", "orders", farms, Repeated(2))
    run_members(made, members, run_one)
    (comparison,), _ = compare_farms(made)
    content = json.loads((comparison / "comparison.json").read_text())
    assert (content["metrics"], content["metrics_by"]) == (said["metrics"], "plan")
    assert content["bound_ratio"] == 2.0


def test_the_command_takes_a_set_in_place_of_both_sides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``compare SET`` takes sides, A/A runs and factors from the set."""
    members = [member(tmp_path / "files", name) for name in ("dev", "prod")]
    farms = [(farm.name, Path(farm.identity)) for farm, _ in members]
    made = new_set(tmp_path / "out", "orders", farms, Repeated(2, aa=True, factors=("disks",)))
    run_members(made, members, maker({"dev": 80.0, "prod": 80.0}))
    capsys.readouterr()
    given = [str(made.directory), "--json", "--out", str(tmp_path / "compared")]
    assert compare_command.main(given, standalone_mode=False) == 0
    content = json.loads(capsys.readouterr().out)
    assert [content[side]["label"] for side in ("base", "other")] == ["dev", "prod"]
    assert [len(content[side]["runs"]) for side in ("base", "other")] == [2, 2]
    assert content["factors"] == ["disks"]
    assert all(row["floor_ratio"] for row in content["changes"] if row["declared"])
    with pytest.raises(InputError, match="--with: is missing"):
        compare_command.main([str(made.directory / "dev")], standalone_mode=False)
    both = [str(made.directory), "--with", str(made.directory / "prod")]
    with pytest.raises(InputError, match=r"is a set of runs; give one of its farms: .*/dev, .*/prod"):
        compare_command.main(both, standalone_mode=False)


def test_the_run_command_makes_a_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``run`` with two farms prints each run and the comparison; the last line is the set's directory."""
    for name in ("dev", "prod"):
        member(tmp_path, name)
    monkeypatch.setattr(run_command, "run_and_report", maker({"dev": 80.0, "prod": 240.0}))
    farms = [each for name in ("dev", "prod") for each in ("--farm", str(tmp_path / f"{name}.yaml"))]
    given = [str(tmp_path / "plan.yaml"), *farms, "--repeat", "2", "--out", str(tmp_path / "out")]
    assert run_command.run.main(given, standalone_mode=False) == ExitStatus.OBJECTIVES_MISSED
    said = capsys.readouterr().out
    assert said.index("dev, round 1 of 2:") < said.index("prod, round 1 of 2:")
    assert said.index("prod, round 2 of 2:") < said.index("dev, round 2 of 2:")
    assert re.search(r"2 runs of dev:\n  orders throughput: 8\d\S*/s \(8\S*/s to 8\S*/s\)", said)
    assert re.search(r"orders throughput +8", said)
    assert load_set(Path(said.splitlines()[-1])).state == "finished"


def test_one_farm_repeated_is_told_and_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One repeated farm shows how much its runs differ, without a comparison."""
    member(tmp_path, "dev")
    monkeypatch.setattr(run_command, "run_and_report", maker({"dev": 80.0}))
    given = [str(tmp_path / "plan.yaml"), "--farm", str(tmp_path / "dev.yaml"), "--repeat", "3"]
    assert run_command.run.main([*given, "--out", str(tmp_path / "out")], standalone_mode=False) == 1
    said = capsys.readouterr().out
    assert "3 runs of dev:" in said
    assert "Judged" not in said
    made = load_set(Path(said.splitlines()[-1]))
    with pytest.raises(InputError, match="is a set of one farm"):
        compare_command.main([str(made.directory)], standalone_mode=False)


def test_one_farm_with_itself_shows_no_change(tmp_path: Path) -> None:
    """--aa with one farm compares the farm with itself: five runs each are equivalent."""
    members = [member(tmp_path / "files", "dev")]
    farms = [("dev", Path(members[0][0].identity))]
    made = new_set(tmp_path / "out", "orders", farms, Repeated(5, aa=True))
    run_members(made, members, maker({"dev": 80.0}))
    (comparison,), status = compare_farms(made)
    content = json.loads((comparison / "comparison.json").read_text())
    rows = {row["name"]: row for row in content["changes"]}
    assert rows["scenario.orders.throughput_per_s"]["call"] == "equivalent"
    assert status == ExitStatus.FINE


def test_what_fails_ends_the_set_and_what_was_measured_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the third of six runs fails, two runs are kept, and set.json says "ended early"."""
    members = [member(tmp_path / "files", name) for name in ("dev", "prod")]
    farms = [(farm.name, Path(farm.identity)) for farm, _ in members]
    made = new_set(tmp_path / "out", "orders", farms, Repeated(3))
    statuses = run_members(made, members, maker({"dev": 80.0, "prod": 80.0}, fail_at=3))
    assert statuses == [ExitStatus.OBJECTIVES_MISSED] * 2 + [ExitStatus.ENVIRONMENT]
    again = load_set(made.directory)
    assert (again.state, len(again.runs)) == ("ended early", 2)
    assert again.ended is not None
    assert "the farm is gone\nprod: this run did not come to its end" in capsys.readouterr().err


def test_a_run_that_could_not_be_recorded_ends_the_set(tmp_path: Path) -> None:
    """A run that could not be recorded ends the set with its status."""
    members = [member(tmp_path / "files", "dev")]
    made = new_set(tmp_path / "out", "orders", [("dev", Path(members[0][0].identity))], Repeated(3))
    full = NotEvidenceError("the recorder failed: no space left")
    statuses = run_members(made, members, maker({"dev": 80.0}, fail_at=2, failure=full))
    assert statuses == [ExitStatus.OBJECTIVES_MISSED, ExitStatus.NOT_EVIDENCE]
    assert load_set(made.directory).state == "ended early"


def test_a_run_that_was_cut_short_ends_the_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run with a dead generator ends the set with exit status 3 and the set's directory last."""
    for name in ("dev", "prod"):
        member(tmp_path, name)
    monkeypatch.setattr(run_command, "run_and_report", maker({"dev": 80.0, "prod": 240.0}, cut_at=2))
    farms = [each for name in ("dev", "prod") for each in ("--farm", str(tmp_path / f"{name}.yaml"))]
    given = [str(tmp_path / "plan.yaml"), *farms, "--repeat", "2", "--out", str(tmp_path / "out")]
    assert run_command.run.main(given, standalone_mode=False) == ExitStatus.NOT_EVIDENCE
    said = capsys.readouterr()
    assert "prod: this run did not come to its end" in said.err
    made = load_set(Path(said.out.splitlines()[-1]))
    assert (made.state, [run["status"] for run in made.runs]) == ("ended early", [1, 3])


def test_a_set_that_cannot_be_compared_is_still_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the comparison fails, the reason is printed, and the last line is the set's directory."""

    def refused(made: RunSet) -> NoReturn:
        raise InputError("these runs cannot be compared")

    for name in ("dev", "prod"):
        member(tmp_path, name)
    monkeypatch.setattr(run_command, "run_and_report", maker({"dev": 80.0, "prod": 240.0}))
    monkeypatch.setattr(run_set, "compare_farms", refused)
    farms = [each for name in ("dev", "prod") for each in ("--farm", str(tmp_path / f"{name}.yaml"))]
    given = [str(tmp_path / "plan.yaml"), *farms, "--out", str(tmp_path / "out")]
    assert run_command.run.main(given, standalone_mode=False) == ExitStatus.BAD_INPUT
    said = capsys.readouterr()
    assert "these runs cannot be compared" in said.err
    assert len(load_set(Path(said.out.splitlines()[-1])).runs) == 2


def test_a_run_that_was_interrupted_ends_the_set(tmp_path: Path) -> None:
    """Ctrl-C in one run ends the set."""
    members = [member(tmp_path / "files", "dev")]
    made = new_set(tmp_path / "out", "orders", [("dev", Path(members[0][0].identity))], Repeated(3))

    def interrupted(*_: object) -> tuple[Path, ExitStatus]:
        return tmp_path / "run", ExitStatus.INTERRUPTED

    assert run_members(made, members, interrupted) == [ExitStatus.INTERRUPTED]
    assert load_set(made.directory).state == "ended early"


def test_farms_of_one_name_have_folders_of_their_own(tmp_path: Path) -> None:
    """Two farms of the same name have different folders."""
    farms = [("prod", tmp_path / "a.yaml"), ("prod", tmp_path / "b.yaml")]
    made = new_set(tmp_path, "orders", farms, Repeated(1, aa=True))
    assert [place.folder for place in made.places] == ["prod", "prod-again", "prod-2"]
    assert made.directory.name.startswith("set-orders-prod-")


def test_runs_lists_a_set_in_one_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``runs`` lists a set in one row with its runs and farms, and a damaged set as unreadable."""
    members = [member(tmp_path / "files", "dev")]
    farms = [("dev", Path(members[0][0].identity))]
    made = new_set(tmp_path / "runs", "orders", farms, Repeated(2))
    run_members(made, members, maker({"dev": 80.0}))
    (tmp_path / "runs" / "broken").mkdir()
    (tmp_path / "runs" / "broken" / SET).write_text("{")
    capsys.readouterr()
    runs_command.main([str(tmp_path / "runs")], standalone_mode=False)
    said = capsys.readouterr().out
    assert re.search(rf"{made.directory.name} +[\d-]+ [\d:]+ +set of 2 runs on dev", said)
    assert re.search(r"broken +cannot be read", said)


@pytest.mark.parametrize("repeat", [1, 2])
def test_the_demo_of_two_farms_is_a_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], repeat: int
) -> None:
    """The demo of two farms is a set, and its last line is the comparison's page."""
    members = [member(tmp_path / "files", name) for name in ("dev", "prod")]
    monkeypatch.setattr(seeds, "check_means", lambda _: None)
    monkeypatch.setattr(seeds, "run_and_report", maker({"dev": 80.0, "prod": 240.0}))
    seeds.run_all(members, tmp_path / "out", repeat)
    page = Path(capsys.readouterr().out.splitlines()[-1])
    assert page.name == "report.html"
    content = json.loads((page.parent / "comparison.json").read_text())
    assert content["factors"] == ["disks"]
    assert [len(content[side]["runs"]) for side in ("base", "other")] == [repeat, repeat]
    assert load_set(page.parent.parent).state == "finished"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read as JSON"),
        ('{"schema": "pinchpoint.set/9"}', "this version of Pinchpoint reads"),
        ('{"schema": "pinchpoint.set/1", "places": []}', "plan: missing"),
    ],
)
def test_a_damaged_set_is_said_so(tmp_path: Path, text: str, message: str) -> None:
    """A damaged set.json gives one sentence with the remedy."""
    (tmp_path / SET).write_text(text)
    with pytest.raises(InputError, match=message):
        load_set(tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--repeat", "2", "--resume"], "--resume: goes on with one run on one farm"),
        (["--factor", "disks"], "--factor, --metric: are for a set of runs"),
        (["--repeat", "2", "--factor", "disk"], "'disk' is nothing runs can differ in"),
        (
            ["--repeat", "2", "--metric", "scenario.order.throughput_per_s"],
            'unknown scenario "order".*nearest',
        ),
        (["--repeat", "2", "--metric", "scenario.orders.p95"], 'unknown scenario figure "p95"; allowed:'),
        (["--farm", "{farm}"], "--farm: the same file twice"),
        (["--repeat", "0"], "0 is not in the range"),
    ],
)
def test_options_that_do_not_fit_are_one_sentence(tmp_path: Path, options: list[str], message: str) -> None:
    """Unsuitable options give one sentence before anything starts."""
    member(tmp_path, "dev")
    farm = str(tmp_path / "dev.yaml")
    given = [option.format(farm=farm) for option in options]
    with pytest.raises((InputError, click.BadParameter), match=message):
        run_command.run.main(
            [str(tmp_path / "plan.yaml"), "--farm", farm, *given, "--out", str(tmp_path / "out")],
            standalone_mode=False,
        )
    assert not (tmp_path / "out").exists()


def test_problems_of_all_farms_are_said_at_once(tmp_path: Path) -> None:
    """The problems of all farm files are listed at once, with exit status 2."""
    member(tmp_path, "dev")
    for name in ("one", "two"):
        (tmp_path / f"{name}.yaml").write_text(json.dumps({"name": name, "environment": "mars"}))
    farms = [each for name in ("one", "two") for each in ("--farm", tmp_path / f"{name}.yaml")]
    done = run_cli("run", tmp_path / "plan.yaml", *farms, "--out", tmp_path / "out")
    assert done.returncode == 2
    named = {line.split(":")[0].rsplit("/")[-1] for line in done.stderr.splitlines()}
    assert named >= {"one.yaml", "two.yaml"}
    assert "Traceback" not in done.stderr
