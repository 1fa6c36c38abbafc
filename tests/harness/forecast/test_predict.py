"""A prediction: throughput with its interval, the bottleneck, the assumptions, and what is unknown."""

from __future__ import annotations

import json

import pytest
from harness.analysis.build import Build
from harness.analysis.disks import Capped, Distant, commits, reads
from harness.forecast.farms import LENGTH_S, cpu, data, log, overloaded, predict_other

from pinchpoint.base.errors import InputError, NotEvidenceError
from pinchpoint.forecast import predict
from pinchpoint.forecast.other_side import predict_beside
from pinchpoint.forecast.text import prediction_text


def test_twice_the_cores_for_who_needs_cores() -> None:
    """Eight users on one saturated core get nearly twice the throughput from two cores."""
    run = cpu(0.98, 100, 8, 0.08).run()
    found = predict(run, ["search.cpu=2"])
    [one] = found.scenarios
    assert one.now_per_s == pytest.approx(100, rel=0.03)
    assert one.ratio == pytest.approx(2, rel=0.1)
    assert found.binds_now.how == "used_up"
    assert found.binds_now.name == "the CPU of search"


def test_more_cores_bring_nothing_to_who_thinks() -> None:
    """More cores gain nothing for users who mostly think."""
    run = cpu(0.10, 20, 10, 0.01, think_s=0.49).run()
    [one] = predict(run, ["search.cpu=8"]).scenarios
    assert one.ratio == pytest.approx(1, abs=0.03)
    assert one.low_per_s <= one.then_per_s <= one.high_per_s


@pytest.mark.slow  # fifteen seconds of simulation; a machine's cap as the next limit is tested below
def test_after_a_cap_the_cpu_binds() -> None:
    """After the data disk's cap of 300 IOPS is raised, the CPU limits."""
    build = data(reads(Capped(300), LENGTH_S, 16), 16, limits={"iops": 300.0})
    build.samples = [row for row in build.samples if row[3] != "cpu.busy_ratio"]
    build.cpu("sql1", 0.33, 0.33, cores=(0, 1))
    found = predict(build.run(), ["sql.data.iops=20000", "sql.data.latency=200us"])
    assert found.binds_now.name == "the data disk of sql"
    assert found.binds_then.name == "the CPU of sql"
    assert found.scenarios[0].ratio == pytest.approx(3, rel=0.1)


def test_other_programs_leave_half_of_the_cores_to_who_wants_them() -> None:
    """Cores used by other processes do not prevent a disk's cap from doubling, and are reported."""
    build = data(reads(Capped(300), LENGTH_S, 16), 16, limits={"iops": 300.0})
    build.samples = [row for row in build.samples if row[3] != "cpu.busy_ratio"]
    build.cpu("sql1", 0.99, 0.05, cores=(0, 1))
    found = predict(build.run(), ["sql.data.iops=600"])
    assert found.scenarios[0].ratio == pytest.approx(2, rel=0.05)
    assert any("is used by other processes" in text for text in found.warnings)


def test_a_machine_s_cap_is_what_ends_it() -> None:
    """A DS12's 128 MB/s limit the throughput whatever its disks can do."""
    run = _on_machine().run()
    found = predict(run, ["sql.data=azure/p80", "sql.data.latency=500us"])
    assert "azure/ds12" in found.binds_then.name
    larger = predict(run, ["sql.data=azure/p80", "sql.data.latency=500us", "sql.machine=azure/ds14"])
    assert larger.scenarios[0].then_per_s > 1.5 * found.scenarios[0].then_per_s


def _on_machine() -> Build:
    """Return reads of 64 KiB at a disk's cap of 60 MB/s on a machine with its own cap."""
    found = reads(Capped(915), LENGTH_S, 32)
    found.bytes *= 8
    build = data(found, 32, limits={"bytes_per_s": 60e6})
    build.manifest["farm"]["tiers"]["sql"]["hosts"]["sql1"]["machine"] = "azure/ds12"
    build.manifest["hosts"]["sql1"]["disks"] = {"loop1": {}, "sdc": {}}
    return build


def test_an_open_load_is_done_or_not() -> None:
    """500/s are served with shorter times on a faster log, and a higher rate can be set."""
    run = log(commits(Distant(0.004, 0.0002), LENGTH_S, rate_per_s=500), rate_per_s=500).run()
    found = predict(run, ["sql.log.latency=1ms"])
    [one] = found.scenarios
    assert one.then_per_s == pytest.approx(one.now_per_s, rel=0.01)
    assert one.kept_up is True
    assert one.then_s is not None
    assert one.then_s < 0.5 * one.now_s
    assert found.binds_then.how == "nothing"
    more = predict(run, ["orders.rate=1000/s"])
    assert more.scenarios[0].then_per_s == pytest.approx(1000, rel=0.03)


def test_of_a_rate_that_could_not_be_kept_up_no_more_is_done_than_is_asked_for() -> None:
    """300/s offered to a disk that does 200/s: ten times the disk serves 300/s, no more."""
    found = reads(Capped(200), LENGTH_S, users=100)
    run = overloaded(found, 300, {"iops": 200.0}).run()
    enough = predict(run, ["sql.data.iops=2000", "sql.data.latency=1ms"])
    [one] = enough.scenarios
    assert one.now_per_s == pytest.approx(200, rel=0.03)
    assert one.then_per_s == pytest.approx(300, rel=0.03)
    assert one.high_per_s == pytest.approx(300, rel=0.03)
    assert one.kept_up is True
    assert one.then_s is not None
    assert one.then_s < 0.02
    assert enough.binds_then.how == "nothing"
    more = predict(run, ["sql.data.iops=250"])
    assert more.scenarios[0].then_per_s == pytest.approx(250, rel=0.03)
    assert (more.scenarios[0].kept_up, more.scenarios[0].then_s) == (False, None)
    less = predict(run, ["orders.rate=150/s"]).scenarios[0]
    assert less.then_per_s == pytest.approx(150, rel=0.03)
    assert less.kept_up is True
    with pytest.raises(InputError, match=r"orders\.users.*nearest: orders\.rate"):
        predict(run, ["orders.users=200"])


def test_a_latency_that_was_never_seen_is_assumed_and_said() -> None:
    """The latency behind a capped disk's queue is assumed, which is stated and widens the interval."""
    run = log(commits(Capped(240), LENGTH_S, users=8), 8, limits={"iops": 240.0}).run()
    found = predict(run, ["sql.log.iops=5000"])
    assert any("sql.log.latency" in text for text in found.assumes)
    [one] = found.scenarios
    assert one.high_per_s > 1.5 * one.low_per_s
    known = predict(run, ["sql.log.iops=5000", "sql.log.latency=1ms"])
    assert not any("sql.log.latency" in text for text in known.assumes)


def test_another_type_may_answer_sooner_and_no_catalogue_says_so() -> None:
    """A P30 in place of a log of 35 ms is assumed to be as slow, as the catalogue has no latency."""
    build = log(commits(Distant(0.035, 0.001), LENGTH_S, users=8), 8, limits={"iops": 2000.0})
    build.manifest["farm"]["tiers"]["sql"]["hosts"]["sql1"]["disks"]["log"]["profile"] = "azure/s30"
    run = build.run()
    found = predict(run, ["sql.log=azure/p30"])
    [one] = found.scenarios
    assert one.then_per_s == pytest.approx(one.now_per_s, rel=0.01)
    assert one.high_per_s > 10 * one.now_per_s
    assert any("the catalogue has no latency for sql.log" in text for text in found.assumes)
    told = predict(run, ["sql.log=azure/p30", "sql.log.latency=3ms"])
    assert not any("no catalogue" in text for text in told.assumes)
    assert told.scenarios[0].high_per_s < 1.3 * told.scenarios[0].then_per_s
    more = predict(run, ["sql.log=azure/s30", "sql.log.stripes=4"])
    assert not any("no catalogue" in text for text in more.assumes), "the same type, only more of it"


def test_beside_every_setting_stands_what_the_run_had() -> None:
    """The run's own value stands beside each setting: type, stripes, and limits by I/Os and bytes."""
    build = log(commits(Capped(480), LENGTH_S, users=8), 8, limits={"iops": 480.0})
    disk = build.manifest["farm"]["tiers"]["sql"]["hosts"]["sql1"]["disks"]["log"]
    disk |= {"profile": "azure/p4", "stripes": 4}
    run = build.run()
    words = {one.name: one.before for one in predict(run, ["sql.log=azure/p30", "sql.log.stripes=2"]).changed}
    assert words == {"sql.log": "4 x azure/p4 (480 IOPS)", "sql.log.stripes": "4"}
    words = {
        one.name: one.before for one in predict(run, ["sql.log.iops=900", "sql.log.bytes=9MB/s"]).changed
    }
    assert set(words.values()) == {"4 x azure/p4 (480 IOPS)"}


def test_throughput_and_time_are_told_from_the_run_s_own() -> None:
    """For closed users without think time, predicted throughput and time satisfy N = X R."""
    [one] = predict(log(commits(Capped(240), LENGTH_S, users=8), 8).run(), ["sql.log.iops=480"]).scenarios
    assert one.now_s == pytest.approx(8 / one.now_per_s, rel=0.02)
    assert one.then_s == pytest.approx(8 / one.then_per_s, rel=0.001)


def test_nothing_set_is_the_run_itself() -> None:
    """Without a setting the model gives the measured throughput."""
    found = predict(log(commits(Distant(0.01, 0.0003), LENGTH_S, users=8), 8).run(), [])
    [one] = found.scenarios
    assert one.ratio == 1
    assert found.changed == ()
    assert found.binds_now.name == "the log disk of sql"
    assert found.warnings == ()


def test_what_was_not_measured_is_refused_with_the_reason() -> None:
    """Settings of an unmeasured disk or CPU are refused with the reason."""
    build = log(commits(Distant(0.01, 0.0003), LENGTH_S, users=8), 8)
    build.samples = [row for row in build.samples if row[4] != "sdc" and row[3] != "cpu.busy_ratio"]
    with pytest.raises(InputError) as refused:
        predict(build.run(), ["sql.data=azure/p30", "sql.cpu=4"])
    assert len(refused.value.problems) == 2
    assert all("was not measured" in line or "were not measured" in line for line in refused.value.problems)


def test_stripes_of_what_nobody_knows_cannot_be_told() -> None:
    """Stripes of a disk without a known limit are refused, with the setting to use instead."""
    run = log(commits(Distant(0.01, 0.0003), LENGTH_S, users=8), 8).run()
    with pytest.raises(
        InputError, match=r"sql\.log\.stripes=4: the limits of sql\.log are unknown.*sql\.log\.iops"
    ):
        predict(run, ["sql.log.stripes=4"])


def test_a_run_that_is_no_evidence_predicts_nothing() -> None:
    """An invalid run gives no prediction."""
    build = log(commits(Distant(0.01, 0.0003), LENGTH_S, users=8), 8)
    build.samples = [row for row in build.samples if row[3] != "generator.cpu_ratio"]
    build.metric("generator1", "generator.cpu_ratio", 0.99, noise=0.005)
    with pytest.raises(NotEvidenceError, match="run is invalid"):
        predict(build.run(), [])


def test_a_prediction_is_plain_json_and_text() -> None:
    """A prediction is valid JSON with a schema and finite numbers, and has a text for each part."""
    run = log(commits(Capped(240), LENGTH_S, users=8), 8, limits={"iops": 240.0}).run()
    found = predict(run, ["sql.log=azure/p30"])
    content = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert content["schema"] == "pinchpoint.what-if/1"
    assert content["changed"][0]["after"] == "azure/p30 (5,000 IOPS, 200 MB/s)"
    text = prediction_text(found)
    for words in (
        "sql.log = azure/p30",
        "in this run: 240 IOPS",
        "Now: the bottleneck is the log disk of sql",
        "Assumed:",
    ):
        assert words in text


def test_the_other_side_is_put_into_the_base_s_model() -> None:
    """Predictions between sides set disks, cores and users where they differ, and nothing else."""
    ours = log(commits(Capped(240), LENGTH_S, users=8), 8, limits={"iops": 240.0}).run()
    again = log(commits(Capped(240), LENGTH_S, users=8, seed=3), 8, limits={"iops": 240.0}, seed=3).run()
    theirs = log(commits(Distant(0.002, 0.0002), LENGTH_S, users=12), 12).run()
    names = [one.name for one in predict_other(ours, theirs).changed]
    assert names == ["sql.log.iops", "sql.log.latency", "orders.users"]
    back = predict_other(theirs, ours)
    assert [one.name for one in back.changed] == ["sql.log.iops", "orders.users"]
    hasty, calm = (
        cpu(busy, per_s, 8, 0.01, think_s=think_s).run()
        for busy, per_s, think_s in ((0.8, 800, 0), (0.08, 80, 0.09))
    )
    [pause] = predict_other(hasty, calm).changed
    assert (pause.name, pause.before, pause.after) == ("crawl.think", "0 s", "90 ms")
    same = predict_other(ours, again)
    assert same.changed == ()
    assert same.scenarios[0].ratio == 1


def test_a_comparison_s_what_if_is_a_row_per_scenario() -> None:
    """A comparison's what-if has a row per scenario with measurement, prediction and error."""
    ours = log(commits(Distant(0.012, 0.0003), LENGTH_S, users=8), 8).run()
    theirs = log(commits(Distant(0.003, 0.0003), LENGTH_S, users=8, seed=2), 8, seed=2).run()
    found = predict_beside(ours, theirs)
    [row] = found["rows"]
    assert row["scenario"] == "orders"
    assert abs(row["error_ratio"]) < 0.10
    assert row["interval_per_s"][0] < row["measured_per_s"] < row["interval_per_s"][1]
    assert any("sql.log.latency" in note for note in found["notes"])
    held = "Predicted: orders waits longest for the log disk of sql"
    assert any(held in note for note in found["notes"])
    assert found["why_none"] is None
    nothing = predict_beside(Build().host("sql1", "sql").cpu("sql1", 0.5).run(), theirs)
    assert nothing["rows"] == []
    assert "no measured load" in nothing["why_none"]


def test_what_binds_then_is_said_as_what_if_says_it() -> None:
    """For a rate that both disks serve, the text says that nothing limits, as in the command."""
    ours, theirs = (
        log(commits(Distant(each_s, 0.0002), LENGTH_S, rate_per_s=500), rate_per_s=500).run()
        for each_s in (0.004, 0.001)
    )
    notes = predict_beside(ours, theirs)["notes"]
    assert "Predicted: no bottleneck, the whole offered load is served." in notes


def test_users_against_a_rate_are_said_not_to_be_compared() -> None:
    """Users on one side and a rate on the other are reported as not comparable."""
    users = log(commits(Distant(0.004, 0.0002), LENGTH_S, users=8), 8).run()
    rate = log(commits(Distant(0.004, 0.0002), LENGTH_S, rate_per_s=500), rate_per_s=500).run()
    notes = " ".join(predict_beside(users, rate)["notes"])
    assert "the load of orders (users in the base, a rate on the other side)" in notes
    assert "Nothing that was measured" not in notes
    back = " ".join(predict_beside(rate, users)["notes"])
    assert "(a rate in the base, users on the other side)" in back
