"""Trend over many runs of a plan: level changes with size and interval, and no false ones."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from harness.trend.histories import nightly, nights, one_run

from pinchpoint.base.errors import InputError
from pinchpoint.data.changes import find_levels
from pinchpoint.report import html
from pinchpoint.report.trend import sparkline, trend_text
from pinchpoint.report.trend_page import document
from pinchpoint.trend import FigureTrend, find_trend, read_histories
from pinchpoint.trend.trend import LEAST_RUNS, LEAST_SIDE, MATTERS


def lines(folder: Path, throughputs: list[float]) -> dict[str, FigureTrend]:
    found = find_trend(read_histories(nightly(folder, throughputs), "nightly"))
    return {line.key.metric: line for line in found.lines}


def test_a_fall_is_found_where_it_was_with_its_size(tmp_path: Path) -> None:
    """Fifteen nights at 200/s and ten at 160/s are a change to 80 %, with a higher p95."""
    found = lines(tmp_path, nights((200, 15), (160, 10)))
    [change] = found["throughput_per_s"].changes
    assert (change.at, change.after, change.first) == (15, "dev-14", "dev-15")
    assert change.started.startswith("2026-01-16")
    assert change.ratio == pytest.approx(0.8, rel=0.03)
    assert change.ci95 is not None
    assert change.ci95[0] < 0.8 < change.ci95[1]
    assert change.ci95[1] / change.ci95[0] < 1.08
    assert change.call == "worse"
    [slower] = found["service_p95_s"].changes
    assert slower.call == "worse"
    assert slower.ratio == pytest.approx(1.25, rel=0.03)
    assert found["throughput_per_s"].level == pytest.approx(160, rel=0.03)


def test_several_changes_are_told_apart(tmp_path: Path) -> None:
    """A fall and a rise are two changes, and the last state is better than before."""
    found = lines(tmp_path, nights((200, 12), (150, 12), (220, 12)))["throughput_per_s"]
    assert [change.at for change in found.changes] == [12, 24]
    assert [change.call for change in found.changes] == ["worse", "better"]
    assert not found.worse


def test_what_changed_in_the_last_nights_is_put_where_it_was(tmp_path: Path) -> None:
    """A clear change in the last two nights is dated to these nights."""
    folder = nightly(tmp_path, nights((100, 12), (50, 2)))
    (change,) = find_trend(read_histories(folder, "nightly")).lines[0].changes
    assert (change.after, change.first, change.call) == ("dev-11", "dev-12", "worse")


def test_steady_runs_have_no_change() -> None:
    """Of a hundred steady histories of thirty nights few raise an alarm."""
    alarms = 0
    for seed in range(100):
        values = np.array(nights((200, 30), spread=0.05, seed=seed))
        alarms += bool(find_levels(values, least=LEAST_RUNS, smallest=MATTERS, edge=LEAST_SIDE))
    assert alarms <= 8


def test_few_runs_are_no_history(tmp_path: Path) -> None:
    """Seven runs are too few, and the number of missing ones is stated."""
    line = lines(tmp_path, nights((200, 4), (100, 3)))["throughput_per_s"]
    assert line.changes == ()
    assert line.why_not == "7 runs, at least 8 are needed"


def test_a_small_change_is_found_and_not_called(tmp_path: Path) -> None:
    """A change of 9 % with a small spread is called, and one whose interval reaches 5 % is not."""
    clear = lines(tmp_path / "a", nights((200, 15), (182, 15), spread=0.01))["throughput_per_s"]
    assert [change.call for change in clear.changes] == ["worse"]
    unclear = lines(tmp_path / "b", nights((200, 15), (190, 15), spread=0.03))["throughput_per_s"]
    assert [change.call for change in unclear.changes] in ([], ["inconclusive"])


def test_what_is_no_run_of_the_plan_is_left_out_and_said(tmp_path: Path) -> None:
    """Invalid, interrupted and other runs are left out and listed; a changed plan is a warning."""
    nightly(tmp_path, nights((200, 10)))
    one_run(tmp_path / "bad", 11, 90, outcome="invalid")
    one_run(tmp_path / "cut", 12, 90, state="interrupted")
    one_run(tmp_path / "other", 13, 90, plan="weekly")
    one_run(tmp_path / "set" / "prod" / "a", 14, 400, farm="prod")
    one_run(tmp_path / "more", 15, 200, users=16)
    found = find_trend(read_histories(tmp_path, "nightly"))
    counts = {(line.key.farm, line.key.metric): len(line.entries) for line in found.lines}
    assert counts["dev", "throughput_per_s"] == 11
    assert counts["prod", "throughput_per_s"] == 1
    assert any("bad: invalid run" in text for text in found.left_out)
    assert any("cut: the run is not complete" in text for text in found.left_out)
    assert any("the plan changed between" in text for text in found.warnings)


def test_what_a_plan_declares_to_be_judged_is_no_other_plan(tmp_path: Path) -> None:
    """A plan with a later declaration of judged figures is still the same plan."""
    nightly(tmp_path, nights((200, 8)))
    path = one_run(tmp_path / "declared", 9, 200)
    manifest = json.loads(path.read_text())
    manifest["plan"]["compare"] = {"metrics": ["scenario.orders.throughput_per_s"]}
    path.write_text(json.dumps(manifest))
    assert find_trend(read_histories(tmp_path, "nightly")).warnings == ()


def test_a_plan_that_nobody_ran_is_bad_input(tmp_path: Path) -> None:
    """A plan without runs is bad input, with the existing plans and the nearest."""
    nightly(tmp_path, [200.0])
    with pytest.raises(
        InputError, match=r"contains no run of this plan; it contains runs of: nightly; nearest: nightly"
    ):
        read_histories(tmp_path, "nigthly")


def test_a_trend_reads_as_lines_and_as_a_page(tmp_path: Path) -> None:
    """A trend has a sparkline and a sentence; its page needs no network."""
    found = find_trend(read_histories(nightly(tmp_path, nights((200, 15), (160, 10))), "nightly"))
    text = trend_text(found)
    assert "throughput of orders on dev" in text
    assert "up to dev-14" in text
    assert "since dev-15" in text
    drawn = html.write(document(found))
    assert drawn.count("<svg") == 2
    assert "https://" not in drawn.replace("http://www.w3.org", "")
    assert "Worse: throughput of orders on dev" in drawn


def test_nothing_to_follow_is_no_steady_history(tmp_path: Path) -> None:
    """Invalid runs only give no table and no "no change", but a reason for each run."""
    for night in range(3):
        one_run(tmp_path / f"n{night}", night, 90, outcome="invalid")
    found = find_trend(read_histories(tmp_path, "nightly"))
    text = trend_text(found)
    assert "No trend: no run" in text
    assert "No change of level" not in text
    assert text.count("invalid run") == 3
    assert "No trend: no run" in html.write(document(found))


def test_a_night_in_which_nothing_was_done_is_said(tmp_path: Path) -> None:
    """A night without operations is a warning and does not end the line."""
    nightly(tmp_path, nights((200, 8)))
    path = one_run(tmp_path / "dark", 9, 200).with_name("verdict.json")
    verdict = json.loads(path.read_text())
    verdict["scenarios"]["orders"]["throughput_per_s"] = 0.0
    path.write_text(json.dumps(verdict))
    found = find_trend(read_histories(tmp_path, "nightly"))
    assert "dark: throughput_per_s of orders on dev was 0; it is not part of the trend" in found.warnings
    assert {len(line.entries) for line in found.lines} == {8, 9}


def dark(folder: Path, *nights_: int) -> None:
    """Write runs in which every operation failed."""
    for night in nights_:
        path = one_run(folder / f"dark-{night}", night, 200).with_name("verdict.json")
        verdict = json.loads(path.read_text())
        verdict["scenarios"]["orders"] |= {"throughput_per_s": 0.0, "service_p95_s": None}
        path.write_text(json.dumps(verdict))


def test_where_nothing_is_done_any_more_it_is_worse(tmp_path: Path) -> None:
    """If the newest nights did nothing, the trend is worse, and a nightly job fails."""
    nightly(tmp_path, nights((200, 5)))
    dark(tmp_path, 6, 7)
    found = find_trend(read_histories(tmp_path, "nightly"))
    assert [line.key.metric for line in found.worse] == ["throughput_per_s"]
    assert "throughput of orders on dev: 0 since dark-6" in trend_text(found)
    assert "0 since dark-6" in html.write(document(found))
    one_run(tmp_path / "light", 8, 200)
    assert find_trend(read_histories(tmp_path, "nightly")).worse == ()


def test_a_change_that_is_not_called_takes_none_back(tmp_path: Path) -> None:
    """A small unclear change after a fall of a fifth does not cancel the fall."""
    line = lines(tmp_path, nights((200, 15), (160, 15), (150, 20), spread=0.015))["throughput_per_s"]
    assert [one.call for one in line.changes] == ["worse", "inconclusive"]
    assert line.worse


def test_small_steps_add_up(tmp_path: Path) -> None:
    """Three falls of 6 %, unclear alone, are one called change together."""
    values = nights((200, 12), (188, 12), (177, 12), (166, 12), seed=2)
    line = lines(tmp_path, values)["throughput_per_s"]
    assert {one.call for one in line.changes} == {"inconclusive"}
    assert line.drift is not None
    assert line.drift.ratio == pytest.approx(0.83, abs=0.02)
    assert line.drift.call == "worse"
    assert line.worse


def test_two_like_steps_are_two_changes(tmp_path: Path) -> None:
    """Two equal steps are two changes, although the first cut falls between them."""
    line = lines(tmp_path, nights((200, 30), (160, 30), (120, 30)))["throughput_per_s"]
    assert [one.at for one in line.changes] == [30, 60]


def test_figures_that_never_differ_but_once_changed_for_certain(tmp_path: Path) -> None:
    """Exactly 200/s in ten nights and 150/s in ten more is worse, without variance."""
    [change] = lines(tmp_path, [200.0] * 10 + [150.0] * 10)["throughput_per_s"].changes
    assert change.ci95 == pytest.approx((0.75, 0.75))
    assert change.call == "worse"


def test_a_wild_night_neither_makes_a_change_nor_hides_one(tmp_path: Path) -> None:
    """One night at a tenth neither is a change nor hides a later fall by a fifth."""
    values = nights((200, 18), (160, 8))
    values[6] /= 10
    line = lines(tmp_path / "a", values)["throughput_per_s"]
    [change] = line.changes
    assert (change.at, change.call) == (18, "worse")
    assert change.ratio == pytest.approx(0.8, rel=0.03)
    assert [one.run for one in line.lone] == ["dev-06"]
    steady = nights((200, 26))
    steady[25] /= 10
    found = find_trend(read_histories(nightly(tmp_path / "b", steady), "nightly"))
    assert not any(one.changes for one in found.lines)
    assert "/s in dev-25" in trend_text(found)
    assert "dev-25" in html.write(document(found))
    assert not any(one.lone for one in lines(tmp_path / "c", nights((200, 10), (150, 10))).values())


def test_a_damaged_night_is_left_out_and_the_others_are_told(tmp_path: Path) -> None:
    """A damaged verdict leaves out its night, and one line says so."""
    nightly(tmp_path, nights((200, 8)))
    one_run(tmp_path / "broken", 9, 200).with_name("verdict.json").write_text("{")
    found = find_trend(read_histories(tmp_path, "nightly"))
    assert {len(line.entries) for line in found.lines} == {8}
    assert any("broken" in text and "cannot be read as JSON" in text for text in found.left_out)


def test_a_sparkline_spans_what_it_shows() -> None:
    """A sparkline spans lowest to highest, is flat for equal values, and has at most forty nights."""
    assert sparkline([1, 2, 3]) == "▁▅█"
    assert sparkline([5, 5]) == "▄▄"
    assert len(sparkline(list(range(100)))) == 40
