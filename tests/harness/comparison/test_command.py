"""``pinchpoint compare`` on run directories, as a user calls it."""

from __future__ import annotations

import json
import os
import re
from importlib.resources import files
from pathlib import Path

import pytest
from harness.analysis.build import Build, crawl_bound_by_search
from harness.comparison.example import saved
from support import run_cli

import pinchpoint_infra.embedded.tiers.files as share
from pinchpoint.base.errors import FarmUnavailable, InputError
from pinchpoint.cli import seeds
from pinchpoint.cli.compare import compare as command
from pinchpoint.cli.compare import spread
from pinchpoint.cli.seeds import SEEDS, Seed, seed_named
from pinchpoint.comparison import read_again, read_sides
from pinchpoint.plan import load, load_farm
from pinchpoint_infra.disks import DiskSupport


def crawl(seed: int = 1) -> Build:
    return crawl_bound_by_search(seed, measure_s=30)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write two runs (``one``, ``two``) and a set of two repeats (``set``); return their folder."""
    folder = tmp_path_factory.mktemp("runs")
    for name, seed in (("one", 1), ("two", 2), ("set/a", 3), ("set/b", 4)):
        build = crawl(seed)
        build.manifest["seed"] = 1
        build.manifest["farm"]["name"] = "prod" if name == "two" else "dev"
        saved(build.run(), folder / name)
    return folder


def test_two_runs_are_compared_and_the_last_line_is_where(runs: Path, tmp_path: Path) -> None:
    """comparison.json and report.html have a directory of their own; reports can be written again."""
    done = run_cli("compare", runs / "one", "--with", runs / "two", "--factor", "disks", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    directory = Path(done.stdout.splitlines()[-1])
    assert sorted(path.name for path in directory.iterdir()) == ["comparison.json", "report.html"]
    content = json.loads((directory / "comparison.json").read_text())
    assert content["bottleneck"]["moved"] is False
    assert content["base"]["runs"][0]["directory"] == str(runs / "one")
    again = run_cli("report", directory, "--format", "html,md,json", "--out", tmp_path / "again")
    assert again.returncode == 0, again.stderr
    names = ["report.html", "report.md", "report.json"]
    assert [Path(line).name for line in again.stdout.splitlines()] == names
    pages = (tmp_path / "again" / "report.html", directory / "report.html")
    # The chart library numbers all charts of a process.
    written, first = (re.sub(r"\bclip\d+", "", page.read_text()) for page in pages)
    assert written == first


def test_the_runs_themselves_are_left_as_they_were(runs: Path) -> None:
    """The runs are analysed again from their measurements, and nothing is written into them."""
    (runs / "one" / "verdict.json").write_text('{"outcome": "not_reached"}')
    sides = read_sides([runs / "one"], [runs / "two"])
    assert sides.base.verdicts[0]["outcome"] == "bottleneck"
    assert (runs / "one" / "verdict.json").read_text() == '{"outcome": "not_reached"}'
    assert not (runs / "two" / "verdict.json").exists()
    (runs / "one" / "verdict.json").unlink()


def test_directories_of_repeats_are_their_runs(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A directory of repeats stands for its runs, and --json prints exactly one document."""
    given = [str(runs / "set"), str(runs / "one"), "--with", str(runs / "two")]
    assert command.main([*given, "--json", "--out", str(tmp_path)], standalone_mode=False) == 0
    content = json.loads(capsys.readouterr().out)
    assert [len(content[side]["runs"]) for side in ("base", "other")] == [3, 1]
    assert {len(row["base_values"]) for row in content["changes"]} == {3}


def test_fail_on_worse_fails_where_something_got_worse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --fail-on worse, a figure three times slower gives exit status 1, and a faster one 0."""
    for name, per_s in (("fast", 240.0), ("slow", 80.0)):
        build = Build(measure_s=60, seed=len(name) * int(per_s)).host("sql1", "sql").cpu("sql1", 0.3, 0.2)
        build.closed("orders", "sql-mix", 8)
        build.operations("orders", "log_append", per_s, 8 / per_s, noise=0.01).generator()
        saved(build.run(), tmp_path / name)
    fast, slow = str(tmp_path / "fast"), str(tmp_path / "slow")
    given = ["--fail-on", "worse", "--out", str(tmp_path / "out"), "--json"]
    assert command.main([fast, "--with", slow, *given], standalone_mode=False) == 1
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["changes"]}
    assert rows["scenario.orders.throughput_per_s"]["call"] == "worse"
    assert rows["scenario.orders.service_p95_s"]["call"] == "worse"
    assert rows["scenario.orders.throughput_per_s"]["interval"] == "within_run"
    assert command.main([slow, "--with", fast, *given], standalone_mode=False) == 0


def test_metrics_and_the_bound_are_taken_from_the_command_line(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """--metric and --bound set what is judged, and how much one run may differ from the next."""
    name = "cpu.search.busy_mean_ratio"
    sides = [str(runs / "one"), "--with", str(runs / "two"), "--json", "--out", str(tmp_path)]
    assert command.main([*sides, "--metric", name, "--bound", "2"], standalone_mode=False) == 0
    content = json.loads(capsys.readouterr().out)
    assert (content["metrics"], content["bound_ratio"]) == ([name], 2.0)
    for bound in ("nan", "inf"):
        with pytest.raises(InputError, match=f"--bound: found {bound}; allowed: a number from 1 on"):
            command.main([*sides, "--bound", bound], standalone_mode=False)
    with pytest.raises(InputError, match="'cpu' is no figure of these runs; allowed:"):
        command.main([*sides, "--metric", "cpu"], standalone_mode=False)


def test_prices_and_the_margin_are_taken_from_the_command_line(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """--prices applies to runs without prices; an unreadable file gives one sentence."""
    prices = tmp_path / "prices.yaml"
    hosts = ", ".join(f"{tier}1: 50" for tier in ("web", "search", "sql", "nosql"))
    prices.write_text(f"currency: EUR\ndisks: {{sql.log: 20, sql.data: 30}}\nmachines: {{{hosts}}}\n")
    sides = [str(runs / "one"), "--with", str(runs / "two"), "--out", str(tmp_path)]
    assert command.main([*sides, "--prices", str(prices), "--margin", "10%"], standalone_mode=False) == 0
    said = capsys.readouterr().out
    content = json.loads((Path(said.splitlines()[-1]) / "comparison.json").read_text())
    assert [content["cost"][side]["per_month"] for side in ("base", "other")] == [250, 250]
    assert content["margin_ratio"] == 0.1
    with pytest.raises(InputError, match=r"--margin: .*allowed: a ratio such as 5% or 0\.05"):
        command.main([*sides, "--margin", "wide"], standalone_mode=False)
    with pytest.raises(InputError, match="--margin: found 0; allowed: more than 0"):
        command.main([*sides, "--margin", "0"], standalone_mode=False)
    prices.write_text("currency: EUR\ndisks: {azure/p31: 5}\n")
    with pytest.raises(InputError, match=r'prices.yaml:2: disks: .*unknown disk "azure/p31"'):
        command.main([*sides, "--prices", str(prices)], standalone_mode=False)


def test_a_comparison_of_an_older_version_is_said_so(runs: Path, tmp_path: Path) -> None:
    """A comparison of an older version gives one sentence with the remedy."""
    done = run_cli("compare", runs / "one", "--with", runs / "two", "--out", tmp_path)
    directory = Path(done.stdout.splitlines()[-1])
    content = json.loads((directory / "comparison.json").read_text())
    del content["cost"]
    (directory / "comparison.json").write_text(json.dumps(content))
    done = run_cli("report", directory, "--format", "md", "--out", tmp_path / "again")
    assert done.returncode == 2
    assert "comparison.json: cost: missing" in done.stderr
    assert "not as this version of Pinchpoint writes it; `pinchpoint compare` writes it anew" in done.stderr


def test_imported_samples_are_compared_by_their_disks_and_cpus(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Recordings are compared by disks and CPUs: a log ten times slower is worse."""
    for name, latency in (("before", 0.002), ("after", 0.02)):
        build = Build(measure_s=120).host("sql1", "sql", disks={"log": "sdc"}, cores=())
        build.cpu("sql1", 0.5).disk("sql1", "sdc", 100, latency)
        build.manifest |= {"plan": {}, "generators": []}
        build.manifest["farm"]["name"] = name
        saved(build.run(), tmp_path / name)
    given = [str(tmp_path / "before"), "--with", str(tmp_path / "after"), "--out", str(tmp_path), "--json"]
    assert command.main([*given, "--fail-on", "worse"], standalone_mode=False) == 1
    content = json.loads(capsys.readouterr().out)
    rows = {row["name"]: row for row in content["changes"]}
    assert rows["disk.sql.log.write_latency_mean_s"]["call"] == "worse"
    assert rows["cpu.sql.busy_mean_ratio"]["call"] == "inconclusive"
    assert content["what_if"]["why_none"]
    assert content["what_if"]["rows"] == []


def test_an_aa_pair_must_be_further_runs_of_the_base(runs: Path) -> None:
    """A/A runs must be further runs of the base farm, not the base itself."""
    sides = read_sides([runs / "one"], [runs / "two"])
    assert len(read_again(sides.base, [runs / "set"]).other.runs) == 2
    with pytest.raises(InputError, match="is one of the base's own runs"):
        read_again(sides.base, [runs / "one"])
    with pytest.raises(InputError, match="found runs of dev, prod"):
        read_again(sides.base, [runs / "two"])


def test_an_invalid_run_ends_with_3(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An invalid run ends with exit status 3: figures are shown, and no claim is made."""
    build = Build(measure_s=30).host("sql1", "sql").cpu("sql1", 0.2, 0.1).open("crawl", "sql-mix", 100)
    build.operations("crawl", "log_append", 50, 0.004).generator(cpu=0.99, crawl=(100.0, 50.0))
    invalid = saved(build.run(), tmp_path / "invalid")
    given = [str(runs / "one"), "--with", str(invalid), "--out", str(tmp_path)]
    assert command.main(given, standalone_mode=False) == 3
    assert "SURE   No conclusion: " in capsys.readouterr().out


def test_what_is_no_finished_run_is_refused_in_sentences(runs: Path, tmp_path: Path) -> None:
    """All directories that cannot be compared are named at once, with exit status 2."""
    (tmp_path / "empty").mkdir()
    interrupted, newer = crawl(), crawl()
    interrupted.manifest["state"] = "interrupted"
    newer.manifest["schema"] = "pinchpoint.run/9"
    paths = [
        tmp_path / "missing",
        tmp_path / "empty",
        saved(interrupted.run(), tmp_path / "interrupted"),
        saved(newer.run(), tmp_path / "newer"),
    ]
    done = run_cli("compare", *paths, "--with", runs / "two")
    assert done.returncode == 2
    said = done.stderr.splitlines()
    assert len(said) == 4
    words = ("does not exist", "holds no manifest.json", "was interrupted", '"pinchpoint.run/9"')
    assert all(word in line for word, line in zip(words, said, strict=True))
    assert "Traceback" not in done.stderr


def test_a_run_that_was_killed_is_not_touched(tmp_path: Path, runs: Path) -> None:
    """A killed run is refused before recovery, so that comparing changes no run."""
    build = crawl()
    build.manifest["state"] = "running"
    killed = saved(build.run(), tmp_path / "killed")
    before = (killed / "manifest.json").read_text()
    with pytest.raises(InputError, match="its work is not whole"):
        read_sides([killed], [runs / "two"])
    assert (killed / "manifest.json").read_text() == before


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (["a", "--with", "b"], ["a", "--with", "b"]),
        (["a", "b", "--with", "c", "d", "--json"], ["a", "b", "--with", "c", "--with", "d", "--json"]),
        (["--factor", "disks", "a", "--with", "c"], ["--factor", "disks", "a", "--with", "c"]),
        (["a", "--with=c", "--json"], ["a", "--with=c", "--json"]),
        (["a", "--with"], ["a", "--with"]),
        (["a", "--with", "b", "--aa", "c", "d"], ["a", "--with", "b", "--aa", "c", "--aa", "d"]),
    ],
)
def test_with_takes_every_argument_up_to_the_next_option(given: list[str], read: list[str]) -> None:
    """--with takes several directories, up to the next option."""
    assert spread(given) == read


EXAMPLES = Path(__file__).parents[3] / "infra" / "examples"


def test_the_farms_of_the_crawl_differ_in_their_sql_disks_alone() -> None:
    """The crawl's farm files Dev and Prod differ in their SQL disks only."""
    place = EXAMPLES / "crawl-dev-vs-prod"
    (dev, plan), (prod, same) = (
        load(place / f"{name}.yaml", place / "plan.yaml") for name in ("dev", "prod")
    )
    assert plan == same
    assert dev.embedded is not None
    assert prod.embedded is not None
    assert dev.embedded.model_copy(update={"disks": {}}) == prod.embedded.model_copy(update={"disks": {}})
    differing = {name for name, disk in dev.embedded.disks.items() if disk != prod.embedded.disks[name]}
    assert differing == {"sql.log", "sql.data"}
    assert dev.embedded.disks["sql.log"].latency_s == 0.035
    assert (
        dev.tiers["sql"].hosts["sql1"].disks["log"].resolved_limits
        != prod.tiers["sql"].hosts["sql1"].disks["log"].resolved_limits
    )


@pytest.mark.parametrize("name", ["dev", "prod"])
def test_the_ground_truth_of_the_crawl_is_of_its_farms(name: str) -> None:
    """The crawl's labelled cases have the example's SQL disks and limits, and measure for a minute.

    In Dev the search server has half a core, so that a minute shows no CPU limit.
    """
    case = EXAMPLES.parents[1] / "tests" / "ground_truth" / "cases" / f"seed-crawl-{name}" / "farm.yaml"
    ours, theirs = load_farm(EXAMPLES / "crawl-dev-vs-prod" / f"{name}.yaml"), load_farm(case)
    assert ours.tiers == theirs.tiers
    assert ours.embedded is not None
    assert theirs.embedded is not None
    for disk in ("sql.log", "sql.data"):
        assert ours.embedded.disks[disk] == theirs.embedded.disks[disk]
    own: dict[str, object] = {"disks": {}, "cpus": {}}
    assert ours.embedded.model_copy(update=own) == theirs.embedded.model_copy(update=own)


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.name)
def test_the_files_of_every_seed_are_read(seed: Seed) -> None:
    """The files of every seed load, and those in infra/examples are the ones in the wheel."""
    folder = EXAMPLES / seed.name
    plan = folder / "plan.yaml"
    farms = sorted(path for path in folder.glob("*.yaml") if path != plan)
    assert farms
    for farm in farms:
        found = load(farm, plan)[0] if plan.exists() else load_farm(farm)
        assert found.environment == "test"
    brought = files("pinchpoint_infra").joinpath("examples", seed.name)
    assert {path.name for path in folder.iterdir()} == {one.name for one in brought.iterdir()}


def test_a_seed_that_is_none_lists_all() -> None:
    with pytest.raises(InputError, match=r"there is no 'z'; allowed:\n  a, crawl-dev-vs-prod: a full crawl"):
        seed_named("z")


def test_a_seed_says_how_it_was_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each seed's page says what is emulated; the crawl's also says whether its share is real."""
    assert all(seed.notes[0] == seed.emulated for seed in SEEDS)
    monkeypatch.setattr(share, "missing_for_a_share", lambda: None)
    assert "real SMB share (Samba)" in seed_named("a").notes[1]
    monkeypatch.setattr(share, "missing_for_a_share", lambda: "an SMB share needs root rights")
    assert seed_named("a").notes[1].endswith("its link is not measured: an SMB share needs root rights.")


def test_without_means_for_disks_nothing_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without emulated disks both farms would be the same, so none starts: one sentence, no run.

    As root, a fake record stands for what an ordinary user's machine offers.
    """
    if os.geteuid() == 0:
        lacking = DiskSupport(None, None, fuse=False, missing={"loop": "no root rights"})
        monkeypatch.setattr(seeds, "support", lambda: lacking)
    place = EXAMPLES / "crawl-dev-vs-prod"
    paths = place / "dev.yaml", place / "plan.yaml"
    with pytest.raises(
        FarmUnavailable, match=r"lacks the means for disks of its own: no root .* as root on Linux"
    ):
        seeds.run_all([load(*paths)], tmp_path / "runs")
    assert not (tmp_path / "runs").exists()
