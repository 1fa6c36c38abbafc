"""From a probe and a run to what the application would get done: what must come out, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from harness.analysis.build import Build
from harness.probe.build import Disk, probe_of

from pinchpoint.cli.probe import probe as command
from pinchpoint.errors import InputError
from pinchpoint.probe import conduct
from pinchpoint.probe.bridge.disk import Curve, probed_disk
from pinchpoint.probe.bridge.forecast import Prediction, predict
from pinchpoint.probe.bridge.mix import mix_of
from pinchpoint.probe.bridge.model import Circle, Work, group_commit, throughput
from pinchpoint.probe.bridge.told import prediction_text
from pinchpoint.probe.judge import judge
from pinchpoint.probe.record import Probe, save
from pinchpoint.store.read import StoredRun
from pinchpoint_scenarios.storage_probe import Cell

USERS = 8
REST_S = 0.002


def committed(flush_s: float, users: int = USERS, rest_s: float = REST_S) -> tuple[float, float]:
    """(commits, flushes) per second of users who commit and nothing else, on a log of that latency."""
    work = Work(rest_s, 0.0, 0, 1.0, 1.0, 0.0, 0.0)
    per_s = throughput(Circle(work, users, 0.0, flush_s, lambda _: 0.0))
    return per_s, group_commit(users, rest_s, flush_s).flushes_per_s


def commits(flush_s: float, users: int = USERS, *, counted: bool = True) -> StoredRun:
    """A run of commits on a log of that latency; ``counted``: the database counts its flushes."""
    per_s, flushes = committed(flush_s, users)
    build = Build(measure_s=40).host("sql1", "sql", disks={"log": "sdb"})
    build.cpu("sql1", busy=0.05, tier_share=0.05)
    build.disk("sql1", "sdb", flushes, flush_s, noise=0.01, busy=0.9, outstanding_noise=0.01)
    if counted:
        build.metric("sql1", "db.fsyncs_per_s", flushes, "wal", 0.01)
    build.closed("orders", "sql-mix", users).generator()
    return build.operations("orders", "log_append", per_s, users / per_s, noise=0.01).run()


def reads(latency_s: float, users: int = 4, rest_s: float = 0.001) -> StoredRun:
    """A run of single reads on a data disk of that latency, one after the other."""
    per_s = users / (latency_s + rest_s)
    build = Build(measure_s=40).host("sql1", "sql", disks={"data": "sdc"})
    build.cpu("sql1", busy=0.02, tier_share=0.02)
    build.disk("sql1", "sdc", 0.0, latency_s, reads=per_s, noise=0.01, busy=0.9, outstanding_noise=0.01)
    build.closed("orders", "sql-mix", users).generator()
    return build.operations("orders", "point_read", per_s, users / per_s, noise=0.01).run()


def on(disk: Disk, run: StoredRun, name: str) -> Prediction:
    """The prediction for a disk of that formula."""
    return predict(probed_disk(probe_of(disk, suite="database", repeat=3)), mix_of(run, name))


@pytest.mark.parametrize("counted", [True, False], ids=["counted", "not counted"])
@pytest.mark.parametrize(
    ("there_s", "here_s"), [(0.0005, 0.010), (0.002, 0.0005), (0.002, 0.010), (0.010, 0.0005)]
)
def test_commits_on_another_log(there_s: float, here_s: float, counted: bool) -> None:
    """Measured on one log, predicted on another, faster or slower: what the same users get done there.

    A log that is never idle tells little of what users do in between: the range then is wide, and holds.
    """
    expected, _ = committed(here_s)
    found = on(Disk(here_s), commits(there_s, counted=counted), "sql.log")
    assert found.per_s == pytest.approx(expected, rel=0.08 if there_s < 0.01 else 0.35)
    assert found.low <= expected <= found.high


def test_a_capped_log_is_shared_by_more_commits() -> None:
    """200 flushes a second carry far more than 200 commits: who comes meanwhile shares them."""
    found = on(Disk(0.0005, iops=200), commits(0.001), "sql.log")
    expected = group_commit(USERS, REST_S, 0.0005, 1 / 200).per_s
    assert found.low <= expected <= found.high
    assert found.per_s == pytest.approx(expected, rel=0.3)
    assert found.per_s > 400
    assert any("a cap held the probe's single writes" in one for one in found.assumes)


@pytest.mark.parametrize(("disk", "expected"), [(Disk(0.009), 4 / 0.010), (Disk(0.001), 4 / 0.002)])
def test_reads_on_another_disk(disk: Disk, expected: float) -> None:
    """The interactive law: the rest stays, the read takes what it takes there."""
    found = on(disk, reads(0.004), "sql.data")
    assert found.per_s == pytest.approx(expected, rel=0.06)
    assert found.limited_by == "reads"


def test_reads_at_a_cap() -> None:
    """150 a second are all there is, one per operation."""
    found = on(Disk(0.0005, iops=150), reads(0.004), "sql.data")
    assert found.per_s == pytest.approx(150, rel=0.05)
    assert found.limited_by in ("cap", "reads")


def test_the_same_disk_predicts_what_was_measured() -> None:
    run = reads(0.004)
    found = on(Disk(0.004), run, "sql.data")
    assert found.ratio == pytest.approx(1, abs=0.03)
    assert found.low <= found.mix.per_s <= found.high


def test_the_mix_of_every_disk_role() -> None:
    """I/Os and bytes per operation, by role: as they were put in."""
    build = Build(measure_s=40).host("sql1", "sql", disks={"log": "sdb", "data": "sdc"})
    build.cpu("sql1", busy=0.1, tier_share=0.1)
    build.disk("sql1", "sdb", 100, 0.002, noise=0.01).disk("sql1", "sdc", 50, 0.004, reads=150, noise=0.01)
    build.closed("orders", "sql-mix", 4).generator()
    mix = mix_of(build.operations("orders", "data_update", 100, 0.04, noise=0.01).run(), "sql.data")
    by_role = {one.disk: one for one in mix.disks}
    assert by_role["sql.log"].writes == pytest.approx(1, rel=0.03)
    assert by_role["sql.data"].reads == pytest.approx(1.5, rel=0.03)
    assert by_role["sql.data"].writes == pytest.approx(0.5, rel=0.03)
    assert by_role["sql.data"].bytes == pytest.approx(2 * 8192, rel=0.03)
    assert by_role["sql.log"].commit_path
    assert not by_role["sql.data"].commit_path
    assert mix.commits == 1


def test_an_open_load_is_carried_or_not() -> None:
    """50 a second offered: a disk that can carries them, one with a cap of 30 does not."""
    build = Build(measure_s=40).host("sql1", "sql", disks={"data": "sdc"})
    build.cpu("sql1", busy=0.02, tier_share=0.02)
    build.disk("sql1", "sdc", 0.0, 0.004, reads=50, noise=0.01)
    build.open("orders", "sql-mix", 50).generator(orders=(50, 50))
    run = build.operations("orders", "point_read", 50, 0.006, noise=0.01).run()
    fine = on(Disk(0.010), run, "sql.data")
    assert fine.per_s == pytest.approx(50, rel=0.03)
    assert fine.limited_by == "load"
    assert fine.response_s == pytest.approx(0.012, rel=0.05)
    assert on(Disk(0.001, iops=30), run, "sql.data").per_s == pytest.approx(30, rel=0.05)


def test_latency_between_depths_lies_between_regulator_and_device() -> None:
    curve = Curve("w", ((1, 100, 0.01), (4, 200, 0.02)), 0.02)
    assert curve.latency_s(50) == 0.01
    assert curve.latency_s(150, 0.0) == pytest.approx(0.01)
    assert 0.01 < curve.latency_s(150, 0.5) < curve.latency_s(150, 1.0) < 0.02
    assert curve.latency_s(201) == float("inf")


def test_a_cell_that_met_something_else_does_not_bend_the_curve() -> None:
    """One at a time took 12 ms, four at a time 6: the machine was busy then, the disk answers in 6."""
    slow = {1: 12.0, 4: 6.0, 16: 6.0, 64: 12.0}

    def speed(cell: Cell, _trial: int) -> float:
        depth = cell.outstanding or 1
        return depth / (slow.get(depth, 6.0) / 1000)

    curve = probed_disk(probe_of(speed, suite="database")).reads(8192, 1.0)
    latencies = [point[2] for point in curve.points]
    assert latencies == sorted(latencies)
    assert curve.latency_s(100) == pytest.approx(0.006)


def refusing(build: Build) -> StoredRun:
    build.host("sql1", "sql", disks={"log": "sdb"}).cpu("sql1", busy=0.1).disk("sql1", "sdb", 50, 0.002)
    return build.operations("orders", "log_append", 50, 0.004).run()


@pytest.mark.parametrize(
    ("made", "disk", "says"),
    [
        (lambda: refusing(Build().burst("orders", 10, 100, 20, 5)), "sql.log", "one steady load"),
        (lambda: commits(0.002), "sql.data", r"no disk 'sql.data'; measured there: sql.log"),
        (lambda: refusing(Build(measure_s=0).closed("orders", "sql-mix", 4)), "sql.log", "--predict"),
    ],
    ids=["bursts", "another disk", "nothing measured"],
)
def test_runs_that_cannot_be_carried_over(made: Callable[[], StoredRun], disk: str, says: str) -> None:
    """Each is a sentence that says what was found and what is needed."""
    with pytest.raises(InputError, match=says):
        mix_of(made(), disk)


def test_a_probe_that_does_not_tell() -> None:
    """bonnie++ and dd tell no latency: the suite that does is named."""
    probe = probe_of(Disk(0.002), [], "bonnie")
    with pytest.raises(InputError, match="--suite database"):
        probed_disk(probe)
    deep = [cell for cell in probe_of(Disk(0.002), suite="iometer").cells if cell.outstanding == 32]
    with pytest.raises(InputError, match="writes one at a time"):
        predict(probed_disk(probe_of(Disk(0.002), deep)), mix_of(commits(0.002), "sql.log"))


def saved(folder: Path, run: StoredRun, probe: Probe) -> tuple[Path, Path]:
    """(probe's directory, run's directory) as the commands write them."""
    there, here = folder / "run", folder / "probe"
    there.mkdir()
    here.mkdir()
    (there / "manifest.json").write_text(json.dumps(run.manifest))
    pq.write_table(run.samples, there / "samples.parquet")
    pq.write_table(run.operations, there / "operations.parquet")
    save(here, conduct.content(probe, judge(probe)))
    return here, there


def test_the_command_prints_one_page_or_one_document(tmp_path: Path) -> None:
    """Text with the arithmetic, or JSON; an option that makes a probe is refused beside it."""
    probe = probe_of(Disk(0.005), suite="database", repeat=3)
    here, there = saved(tmp_path, commits(0.002), probe)
    asked = [str(here), "--predict", str(there), "--disk", "sql.log"]
    text = CliRunner().invoke(command, asked)
    assert text.exit_code == 0, text.output
    for words in ("would get", "The arithmetic:", "8 users", "It holds where", "sql.log"):
        assert words in text.output
    assert len(text.output.splitlines()) < 60
    content = json.loads(CliRunner().invoke(command, [*asked, "--json"]).output)
    assert content["schema"] == "pinchpoint.prediction/1"
    assert content["low_per_s"] <= content["throughput_per_s"] <= content["high_per_s"]
    assert content["mix"]["disk"]["disk"] == "sql.log"
    with pytest.raises(InputError, match="--predict: found --suite"):
        command.main([*asked, "--suite", "database"], standalone_mode=False)


def test_what_is_told_has_no_holes() -> None:
    """Reads alone, commits alone: no None, no nan, every part of the time."""
    for found in (on(Disk(0.003), commits(0.001), "sql.log"), on(Disk(0.003), reads(0.001), "sql.data")):
        text = prediction_text(found)
        assert "None" not in text
        assert "nan" not in text
        assert np.isfinite(found.per_s)
