"""The application's throughput on a probed disk: the right prediction, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from harness.analysis.build import Build
from harness.comparison.example import saved
from harness.probe.build import Disk, probe_of
from support import run_cli

from pinchpoint.analysis.model.commit import Sessions
from pinchpoint.analysis.model.network import Commit, Model, Users, solve
from pinchpoint.analysis.model.prediction import Prediction, Throughput, predict_change
from pinchpoint.analysis.model.settings import Setting
from pinchpoint.base.errors import InputError
from pinchpoint.forecast.predict import read_modelled_run
from pinchpoint.probe.disk import MeasuredDisk, measured_disk
from pinchpoint.probe.judge import judge
from pinchpoint.probe.record import save
from pinchpoint.probe.verdict import probe_content
from pinchpoint.store import tool_histogram
from pinchpoint.store.read import StoredRun
from pinchpoint_scenarios.storage_probe import Cell

USERS = 8
REST_S = 0.002


def committed(
    flush_s: float, users: int = USERS, rest_s: float = REST_S, pace_s: float = 0.0
) -> tuple[float, float]:
    """Return (commits, flushes) per second of users who only commit to a log of that latency."""
    log = Commit("log", flush_s, {"orders": 1.0}, pace_s)
    found = solve(Model((Users("orders", users, 0.0, rest_s),), (log,)))
    here = Sessions([users], [found.per_s["orders"]], [found.stays_s["log", "orders"]])
    return found.per_s["orders"], here.occupied_ratio(flush_s) / flush_s


def commits(flush_s: float, users: int = USERS, *, counted: bool = True) -> StoredRun:
    """Return a run of commits on such a log; ``counted``: the database counts and times flushes."""
    per_s, flushes = committed(flush_s, users)
    build = Build(measure_s=40).host("sql1", "sql", disks={"log": "sdb"})
    build.cpu("sql1", busy=0.05, tier_share=0.05)
    build.disk("sql1", "sdb", flushes, flush_s, noise=0.01, busy=0.9, outstanding_noise=0.01)
    if counted:
        build.metric("sql1", "db.fsyncs_per_s", flushes, "wal", 0.01)
        build.metric("sql1", "db.fsync_s_per_s", flushes * flush_s, "wal", 0.01)
    build.closed("orders", "sql-mix", users).generator()
    return build.operations("orders", "log_append", per_s, users / per_s, noise=0.01).run()


def reads(latency_s: float, users: int = 4, rest_s: float = 0.001, written_per_s: float = 0.0) -> StoredRun:
    """Return a run of single reads on a data disk of that latency, one after the other."""
    per_s = users / (latency_s + rest_s)
    build = Build(measure_s=40).host("sql1", "sql", disks={"data": "sdc"})
    build.cpu("sql1", busy=0.02, tier_share=0.02)
    rates = {"reads": per_s, "noise": 0.01, "busy": 0.9, "outstanding_noise": 0.01}
    build.disk("sql1", "sdc", written_per_s, latency_s, **rates)
    build.closed("orders", "sql-mix", users).generator()
    return build.operations("orders", "point_read", per_s, users / per_s, noise=0.01).run()


def probed(disk: Callable[[Cell, int], float]) -> MeasuredDisk:
    """Return the probe of a disk with that formula, as the prediction reads it."""
    return measured_disk(probe_of(disk, suite="database", repeat=3))


def setting(name: str, disk: MeasuredDisk) -> Setting:
    return Setting(name, name, "probe", disk, "PROBE")


def on(disk: Disk, run: StoredRun, name: str) -> Prediction:
    """Return the prediction for a disk with that formula."""
    return predict_change(read_modelled_run(run), [setting(name, probed(disk))])


def one_of(found: Prediction) -> Throughput:
    [one] = found.scenarios
    return one


@pytest.mark.parametrize("counted", [True, False], ids=["counted", "not counted"])
@pytest.mark.parametrize(
    ("there_s", "here_s"), [(0.0005, 0.010), (0.002, 0.0005), (0.002, 0.010), (0.010, 0.0005)]
)
def test_commits_on_another_log(there_s: float, here_s: float, counted: bool) -> None:
    """Throughput of commits measured on one log is predicted for a faster or slower one.

    A log that is never idle shows little of the users' own work, so the range is wide but right.
    """
    expected, _ = committed(here_s)
    found = one_of(on(Disk(here_s), commits(there_s, counted=counted), "sql.log"))
    assert found.then_per_s == pytest.approx(expected, rel=0.08 if there_s < 0.01 else 0.35)
    assert found.low_per_s <= expected <= found.high_per_s


def test_a_capped_log_is_shared_by_more_commits() -> None:
    """200 flushes/s carry far more than 200 commits/s, as waiting sessions share a flush."""
    found = on(Disk(0.0005, iops=200), commits(0.001), "sql.log")
    expected, _ = committed(0.0005, pace_s=1 / 200)
    assert one_of(found).then_per_s == pytest.approx(expected, rel=0.05)
    assert one_of(found).then_per_s > 400
    assert one_of(found).low_per_s <= expected <= one_of(found).high_per_s
    assert found.binds_then.how == "used_up"
    assert any("every measurement of the probe" in one for one in found.assumes)


def test_a_cap_that_lets_through_in_bursts() -> None:
    """Under a bursting cap half of the writes take 1 ms, and flushes are shared as without a cap."""
    probe = probe_of(Disk(0.001, iops=200), suite="database", repeat=3)
    bursts = tool_histogram.histogram({1_000_000: 60, 20_000_000: 40})
    for cell, trials in probe.cells.items():
        if cell.role == "log":
            trials[:] = [replace(trial, latency=bursts) for trial in trials]
    found = predict_change(read_modelled_run(commits(0.002)), [setting("sql.log", measured_disk(probe))])
    free, flushes = committed(0.001)
    assert one_of(found).then_per_s == pytest.approx(free * 200 / flushes, rel=0.08)


@pytest.mark.parametrize(("disk", "expected"), [(Disk(0.009), 4 / 0.010), (Disk(0.001), 4 / 0.002)])
def test_reads_on_another_disk(disk: Disk, expected: float) -> None:
    """By the interactive law, only the read's time changes on another disk."""
    found = on(disk, reads(0.004), "sql.data")
    assert one_of(found).then_per_s == pytest.approx(expected, rel=0.06)
    assert found.binds_then.name == "the data disk of sql"
    assert found.binds_then.how == "waited_for"


def test_reads_at_a_cap() -> None:
    """A cap of 150 IOPS limits single reads to 150 operations/s."""
    found = on(Disk(0.0005, iops=150), reads(0.004), "sql.data")
    assert one_of(found).then_per_s == pytest.approx(150, rel=0.05)
    assert found.binds_then.how == "used_up"


def test_what_is_written_by_itself_takes_its_part_of_a_cap() -> None:
    """40 background writes/s leave 110 of 150 IOPS for the users' reads."""
    run = reads(0.004, written_per_s=40)
    assert one_of(on(Disk(0.0005, iops=150), run, "sql.data")).then_per_s == pytest.approx(110, rel=0.05)


def test_the_same_disk_predicts_what_was_measured() -> None:
    found = one_of(on(Disk(0.004), reads(0.004), "sql.data"))
    assert found.then_per_s == pytest.approx(found.now_per_s, rel=0.03)
    assert found.low_per_s <= found.now_per_s <= found.high_per_s


def test_the_mix_of_every_disk_role() -> None:
    """I/Os and bytes per operation are found for each disk role."""
    build = Build(measure_s=40).host("sql1", "sql", disks={"log": "sdb", "data": "sdc"})
    build.cpu("sql1", busy=0.1, tier_share=0.1)
    build.disk("sql1", "sdb", 100, 0.002, noise=0.01).disk("sql1", "sdc", 50, 0.004, reads=150, noise=0.01)
    build.closed("orders", "sql-mix", 4).generator()
    base = read_modelled_run(build.operations("orders", "data_update", 100, 0.04, noise=0.01).run())
    settings = [setting(name, probed(Disk(0.002))) for name in ("sql.log", "sql.data")]
    by_role = {one.mix.disk: one.mix for one in predict_change(base, settings).exchanged}
    assert by_role["sql.log"].writes == pytest.approx(1, rel=0.03)
    assert by_role["sql.data"].reads == pytest.approx(1.5, rel=0.03)
    assert by_role["sql.data"].writes == pytest.approx(0.5, rel=0.03)
    assert by_role["sql.data"].bytes == pytest.approx(2 * 8192, rel=0.03)


def test_two_disks_of_the_farm_were_probed() -> None:
    """Two probed disks replace both disks of the run; either alone would predict more."""
    build = Build(measure_s=40).host("sql1", "sql", disks={"log": "sdb", "data": "sdc"})
    build.cpu("sql1", busy=0.05, tier_share=0.05)
    build.disk("sql1", "sdb", 100, 0.002, noise=0.01, busy=0.2)
    build.disk("sql1", "sdc", 0, 0.002, reads=200, noise=0.01, busy=0.4)
    build.closed("orders", "sql-mix", 1).generator()
    build.operations("orders", "log_append", 100, 1 / 300, noise=0.01)
    run = build.operations("orders", "point_read", 200, 1 / 300, noise=0.01).run()
    log, data = Disk(0.006), Disk(0.008)
    settings = [setting("sql.log", probed(log)), setting("sql.data", probed(data))]
    both = one_of(predict_change(read_modelled_run(run), settings)).then_per_s
    one, other = (one_of(on(*each)).then_per_s for each in ((log, run, "sql.log"), (data, run, "sql.data")))
    assert both < min(one, other)
    assert both == pytest.approx(1 / (1 / 300 + 0.004 / 3 + 2 * 0.006 / 3), rel=0.08)


def test_an_open_load_is_carried_or_not() -> None:
    """An offered load of 50/s is served by a disk that can, and not by one with a cap of 30."""
    build = Build(measure_s=40).host("sql1", "sql", disks={"data": "sdc"})
    build.cpu("sql1", busy=0.02, tier_share=0.02)
    build.disk("sql1", "sdc", 0.0, 0.004, reads=50, noise=0.01)
    build.open("orders", "sql-mix", 50).generator(orders=(50, 50))
    run = build.operations("orders", "point_read", 50, 0.006, noise=0.01).run()
    fine = on(Disk(0.010), run, "sql.data")
    assert one_of(fine).then_per_s == pytest.approx(50, rel=0.03)
    assert fine.binds_then.how == "nothing"
    assert one_of(fine).then_s == pytest.approx(0.012, rel=0.05)
    assert one_of(on(Disk(0.001, iops=30), run, "sql.data")).then_per_s == pytest.approx(30, rel=0.05)


def test_a_disk_that_answers_later_when_little_is_asked_is_believed() -> None:
    """A latency of 9 ms with one outstanding I/O and 6 ms with four is used as it is."""
    slow = {1: 9.0, 4: 6.0, 16: 6.0, 64: 12.0}

    def speed(cell: Cell, _trial: int) -> float:
        depth = cell.outstanding or 1
        return depth / (slow.get(depth, 6.0) / 1000)

    curve = probed(speed).answered(8192, 1.0).curve
    assert curve is not None
    assert curve.latency_s(1) == pytest.approx(0.009)
    assert curve.latency_s(8) == pytest.approx(0.006)


def refusing(build: Build) -> StoredRun:
    build.host("sql1", "sql", disks={"log": "sdb"}).cpu("sql1", busy=0.1).disk("sql1", "sdb", 50, 0.002)
    return build.operations("orders", "log_append", 50, 0.004).run()


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (
            lambda: refusing(Build().burst("orders", 10, 100, 20, 5)),
            "--set sql.log=PROBE: the load of .* is burst",
        ),
        (lambda: refusing(Build(measure_s=0).closed("orders", "sql-mix", 4)), "no measured load"),
    ],
    ids=["bursts", "nothing measured"],
)
def test_runs_that_cannot_be_carried_over(made: Callable[[], StoredRun], says: str) -> None:
    """A run that cannot be used gives a sentence with the reason and the requirement."""
    with pytest.raises(InputError, match=says):
        on(Disk(0.002), made(), "sql.log")


def test_a_probe_that_does_not_tell() -> None:
    """A probe without latencies (bonnie++, dd) is refused, and a suite with latencies is named."""
    with pytest.raises(InputError, match="--suite database"):
        measured_disk(probe_of(Disk(0.002), [], "bonnie"))
    deep = [cell for cell in probe_of(Disk(0.002), suite="iometer").cells if cell.outstanding == 32]
    disk = measured_disk(probe_of(Disk(0.002), deep))
    with pytest.raises(InputError, match=r"--set sql.log=PROBE: the probe of .* single writes"):
        predict_change(read_modelled_run(commits(0.002)), [setting("sql.log", disk)])


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a run and a probe, as the commands write them."""
    folder = tmp_path_factory.mktemp("farm")
    saved(commits(0.002), folder / "run")
    (folder / "probe").mkdir()
    probe = probe_of(Disk(0.005), suite="database", repeat=3)
    save(folder / "probe", probe_content(probe, judge(probe)))
    return folder


def test_the_command_prints_one_page_or_one_document(farm: Path) -> None:
    """The command takes a probe's directory or file, and prints text or one JSON document."""
    done = run_cli("what-if", farm / "run", "--set", f"sql.log={farm / 'probe'}")
    assert done.returncode == 0, done.stderr
    for words in (
        "sql.log = as",
        "With the probed disk:",
        "a flush is 1.0",
        "writes per operation",
        "Assumed:",
    ):
        assert words in done.stdout
    assert "None" not in done.stdout
    assert "nan" not in done.stdout
    assert len(done.stdout.splitlines()) < 60
    file = farm / "probe" / "probe.json"
    done = run_cli("what-if", farm / "run", "--set", f"sql.log={file}", "--set", "orders.users=16", "--json")
    content = json.loads(done.stdout)
    assert content["schema"] == "pinchpoint.what-if/1"
    assert [one["mix"]["disk"] for one in content["exchanged"]] == ["sql.log"]
    assert [one["name"] for one in content["changed"]] == ["sql.log", "orders.users"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["sql.log={probe}", "sql.log.latency=1ms"], "--set sql.log.latency: sql.log has a probe as well"),
        (["sql.log={run}"], "contains no probe.json, so it is not a probe; `pinchpoint probe` makes one"),
        (["sql.log={run}/manifest.json"], "is neither the directory of a probe nor a probe.json"),
        (["sql.log={probe}/none"], 'has no disk "'),
        (["sql.data={probe}"], 'this run does not have "sql.data"; allowed: sql.log'),
    ],
)
def test_what_is_no_probe_is_said(farm: Path, settings: list[str], words: str) -> None:
    """A path that is no probe gives exit status 2 and a sentence that begins with the setting."""
    given = [one.format(probe=farm / "probe", run=farm / "run") for one in settings]
    done = run_cli("what-if", farm / "run", *(part for one in given for part in ("--set", one)))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("--set sql.")
    assert words in done.stderr
