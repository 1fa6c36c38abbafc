"""Judged figures and their calls, from repeats, an A/A pair, and single runs."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from harness.comparison.example import LOG as LOG_DISK
from harness.comparison.example import TIMES, alike, run, two_sides

from pinchpoint.base.errors import InputError
from pinchpoint.comparison import ComparedRun, Comparison, Sides, compare, exit_status, sides_of
from pinchpoint.comparison.changes import Change
from pinchpoint.comparison.intervals import FigureCourse, Key, RatioOfSums
from pinchpoint.report.comparison import gather

NOISE = (1.0, 1.03, 0.98, 1.01, 0.97)
"""Relative throughput of five runs of one farm: a spread of 2 %."""
CRAWL, LOG = "scenario.crawl.throughput_per_s", "disk.sql.log.write_latency_mean_s"


def scaled(farm: str, factor: float, number: int, change: float = 1.0) -> ComparedRun:
    """Return a run whose crawl rate and log latency are multiplied by ``factor`` and ``change``."""
    one = run(farm)
    verdict: dict[str, Any] = deepcopy(dict(one.verdict))
    verdict["crawl"].pop(0)  # the source that failed on one side
    verdict["scenarios"]["crawl"]["throughput_per_s"] = 10 * factor * change
    for disk in verdict["disks"]:
        disk["write_latency_mean_s"] = 0.005 * factor * change
    return ComparedRun(f"runs/{farm}/{number}", one.manifest, verdict)


def repeated(change: float, noise: tuple[float, ...] = NOISE) -> Sides:
    """Return runs of dev and prod whose judged figures differ by ``change``."""
    return sides_of(
        [scaled("dev", each, at) for at, each in enumerate(noise)],
        [scaled("prod", each, at, change) for at, each in enumerate(reversed(noise))],
    )


def of(done: Comparison, name: str) -> Change:
    return next(one for one in done.changes if one.name == name)


def test_repeats_that_differ_are_better_or_worse() -> None:
    """Three times the throughput is better, three times the write latency worse, with intervals."""
    done = compare(repeated(3.0), ["disks"])
    crawl, log = of(done, CRAWL), of(done, LOG)
    assert (crawl.judged.call, log.judged.call) == ("better", "worse")
    assert (crawl.judged.interval, crawl.judged.confidence) == ("between_runs", "high")
    assert crawl.judged.ci95 is not None
    assert 2.8 < crawl.judged.ci95[0] < 3 < crawl.judged.ci95[1] < 3.2
    assert any(text.startswith(f"crawl 10/s → 30/s (3 {TIMES}, 2.9") for text in done.main_changes)
    assert exit_status(done, fail_on_worse=True) == 1
    assert exit_status(done) == 0


def test_of_a_run_that_is_no_valid_evidence_nothing_is_called() -> None:
    """With an invalid run among them, figures have intervals but no call."""
    sides = repeated(3.0)
    verdict = sides.other.runs[2].verdict
    assert isinstance(verdict, dict)
    verdict |= {"outcome": "invalid", "summary": "Late."}
    done = compare(sides, ["disks"])
    assert {one.judged.call for one in done.changes if one.judged.declared} == {"inconclusive"}
    assert of(done, CRAWL).judged.ci95 is not None
    assert exit_status(done, fail_on_worse=True) == 3


def test_repeats_that_are_alike_are_equivalent() -> None:
    """A ratio interval inside the margin is called equivalent."""
    done = compare(repeated(1.005), ["disks"])
    assert of(done, CRAWL).judged.call == "equivalent"
    assert exit_status(done, fail_on_worse=True) == 0


def test_without_a_change_there_is_nothing_to_put_down_to_anything() -> None:
    """With no significant change, the summary claims no cause, although only the disks differ."""
    sides = sides_of(repeated(1.0).base.runs, [scaled("prod", each, at) for at, each in enumerate(NOISE)])
    for one in sides.other.runs:
        assert isinstance(one.verdict, dict)
        one.verdict["bottleneck"] = LOG_DISK
    done = compare(sides, ["disks"], metrics=[CRAWL, LOG])
    assert done.claim.kind == "caused_by"
    assert "No significant change. A change could be attributed to disks" in done.summary
    assert gather(done.to_json()).claim_words == "No change"
    assert gather(compare(repeated(3.0), ["disks"]).to_json()).claim_words == "Caused by the studied factor"


def test_repeats_that_scatter_are_inconclusive() -> None:
    """A change of 20 % between runs that differ by half is inconclusive."""
    done = compare(repeated(1.2, (1.0, 1.6, 0.7, 1.3, 0.8)), ["disks"])
    assert of(done, CRAWL).judged.call == "inconclusive"


def test_a_figure_that_was_not_declared_is_shown_and_not_called() -> None:
    """Default figures are judged; other figures, such as a source's rate, are shown without a call."""
    done = compare(repeated(3.0), ["disks"])
    assert done.metrics == (
        CRAWL,
        LOG,
        "disk.sql.data.write_latency_mean_s",
        "scenario.crawl.service_p95_s",
    )
    other = of(done, "source.collab.rate_per_s")
    assert (other.judged.declared, other.judged.call, other.judged.p) == (False, None, None)
    assert other.judged.ci95 is not None


def test_figures_are_declared_by_name() -> None:
    """Figures are judged in the given order, each once; more I/O is "changed", not "better"."""
    names = ["disk.sql.log.iops_mean", CRAWL, CRAWL]
    sides = repeated(3.0)
    for number, one in enumerate(sides.other.runs):
        one.verdict["disks"][0]["iops_mean"] = 400 + number
    done = compare(sides, ["disks"], metrics=names)
    assert done.metrics == ("disk.sql.log.iops_mean", CRAWL)
    assert of(done, names[0]).judged.call == "changed"


def test_an_unknown_figure_and_too_many_are_refused() -> None:
    """An unknown figure and too many figures each give one sentence."""
    with pytest.raises(InputError, match=r"'crawl.throughput' is no figure.*nearest: scenario.crawl.through"):
        compare(two_sides(), metrics=["crawl.throughput"])
    names = [f"cpu.search.{number}" for number in range(7)]
    with pytest.raises(InputError, match="found 7; allowed: 6 at most"):
        compare(two_sides(), metrics=names)


def test_what_is_declared_counts_whether_it_was_measured_or_not() -> None:
    """Holm's correction counts all six declared figures, measured or not."""
    alone = of(compare(repeated(1.05), ["disks"], metrics=[CRAWL]), CRAWL).judged
    names = [CRAWL, *(f"source.{name}.failures" for name in ("collab", "profiles"))]
    names += [f"disk.sql.{role}.read_latency_mean_s" for role in ("log", "data")]
    names += ["scenario.crawl.service_p50_s"]
    sides = repeated(1.05)
    for side in sides:
        for one in side.runs:
            one.verdict["scenarios"]["crawl"]["service_p50_s"] = None
    six = of(compare(sides, ["disks"], metrics=names), CRAWL).judged
    assert alone.p is not None
    assert six.p == pytest.approx(min(1.0, 6 * alone.p))


def test_an_aa_run_that_is_no_evidence_is_no_measure_of_noise() -> None:
    """An invalid A/A run is left out of the noise floor, with a warning."""
    sides = repeated(1.25)
    again = [scaled("dev", each, 9 + at) for at, each in enumerate(NOISE)]
    late = scaled("dev", 1.0, 20, 0.5)
    late = replace(late, verdict={**late.verdict, "outcome": "invalid", "summary": "Late."})
    done = compare(sides, ["disks"], again=sides_of(sides.base.runs, [*again, late]))
    assert of(done, CRAWL).judged.call == "better"
    assert "runs/dev/20 is invalid and was left out of the A/A pair: Late." in done.warnings
    alone = compare(sides, ["disks"], again=sides_of(sides.base.runs, [late]))
    assert of(alone, CRAWL).judged.call == "better"
    assert any("No A/A pair (" in warning for warning in alone.warnings)


def test_an_aa_pair_that_differs_is_the_noise_floor() -> None:
    """A/A runs that differ by 25 % make a change of 25 % inconclusive."""
    sides = repeated(1.25)
    plain = compare(sides, ["disks"])
    assert of(plain, CRAWL).judged.call == "better"
    again = sides_of(sides.base.runs, [scaled("dev", each, 9 + at, 1.25) for at, each in enumerate(NOISE)])
    floored = compare(sides, ["disks"], again=again)
    judged = of(floored, CRAWL).judged
    assert judged.floor_ratio == pytest.approx(1.25)
    assert judged.margin_ratio == judged.floor_ratio
    assert judged.call == "inconclusive"
    assert of(compare(repeated(3.0), ["disks"], again=again), CRAWL).judged.call == "better"


def of_two_sql_hosts(one: ComparedRun, farm: str) -> ComparedRun:
    """Return the run with two SQL hosts named after the farm."""
    manifest, verdict = deepcopy(dict(one.manifest)), deepcopy(dict(one.verdict))
    names = [f"{farm}sql{number}" for number in (1, 2)]
    for each in (manifest["hosts"], manifest["farm"]["tiers"]["sql"]["hosts"]):
        each.update(dict.fromkeys(names, each.pop("sql1")))
    verdict["disks"] = [{**disk, "host": name} for disk in verdict["disks"] for name in names]
    return ComparedRun(one.directory, manifest, verdict)


def test_the_noise_floor_is_found_where_hosts_have_other_names_on_the_other_side() -> None:
    """The noise floor is found although figure names contain the hosts of both sides."""
    sides = repeated(1.25)
    again = [scaled("dev", each, 9 + at, 1.25) for at, each in enumerate(NOISE)]
    base, other, same = (
        [of_two_sql_hosts(one, farm) for one in runs]
        for runs, farm in ((sides.base.runs, "dev"), (sides.other.runs, "prod"), (again, "dev"))
    )
    name = "disk.sql.devsql1/prodsql1.log.write_latency_mean_s"
    done = compare(sides_of(base, other), ["disks"], metrics=[name], again=sides_of(base, same))
    assert of(done, name).judged.floor_ratio == pytest.approx(1.25)
    assert of(done, name).judged.call == "inconclusive"


def test_without_an_aa_pair_halves_of_a_side_tell_its_noise() -> None:
    """Without an A/A pair, the difference between a side's own runs is the noise floor."""
    done = compare(repeated(1.6, (1.0, 1.5, 1.02, 1.49, 1.01)), ["disks"])
    judged = of(done, CRAWL).judged
    assert judged.floor_ratio == pytest.approx(1.48, abs=0.02)
    assert judged.margin_ratio == judged.floor_ratio
    assert any("No A/A pair (" in warning for warning in done.warnings)


def test_three_runs_are_called_only_beyond_the_bound() -> None:
    """Three runs are called only beyond the bound, and never equivalent."""
    few = NOISE[:3]
    assert of(compare(repeated(3.0, few)), CRAWL).judged.call == "better"
    assert of(compare(repeated(3.0, few)), CRAWL).judged.confidence == "medium"
    assert of(compare(repeated(1.3, few)), CRAWL).judged.call == "inconclusive"
    assert of(compare(repeated(1.3, few), bound=1.1), CRAWL).judged.call == "better"
    assert of(compare(repeated(1.0, few)), CRAWL).judged.call == "inconclusive"


def test_a_figure_that_few_runs_measured_is_judged_as_few_runs_are() -> None:
    """A figure measured in three of five runs is judged as three runs are."""
    for change, call in ((1.0, "inconclusive"), (1.3, "inconclusive"), (3.0, "worse")):
        sides = repeated(change)
        for one in sides.other.runs[:2]:
            one.verdict["disks"][0]["write_latency_mean_s"] = None
        judged = of(compare(sides, ["disks"]), LOG).judged
        assert (judged.call, judged.margin_ratio) == (call, 1.5)
        assert judged.confidence == ("medium" if call == "worse" else None)


def test_a_farm_that_differs_from_itself_by_more_than_the_bound_is_the_measure() -> None:
    """An A/A pair that differs by a factor of 2 makes a change of 1.8 inconclusive."""
    few = NOISE[:3]
    sides = repeated(1.8, few)
    again = sides_of(sides.base.runs, [scaled("dev", each, 9 + at, 2.0) for at, each in enumerate(few)])
    assert of(compare(sides), CRAWL).judged.call == "better"
    assert of(compare(sides, again=again), CRAWL).judged.call == "inconclusive"


def test_a_side_of_imported_samples_is_held_against_a_run_by_disks_and_cpus() -> None:
    """A recording and a run are compared by the disks and CPUs that both have."""
    sides = alike()
    verdict = sides.base.runs[0].verdict
    assert isinstance(verdict, dict)
    verdict |= {"scenarios": {}, "crawl": []}
    sides.base.runs[0].manifest["plan"].clear()
    assert compare(sides).metrics[:2] == (LOG, "disk.sql.data.write_latency_mean_s")


def courses(level: float, seed: int) -> dict[Key, FigureCourse]:
    """Return a course of the crawl's throughput, second by second."""
    chance = np.random.default_rng(seed)
    course = RatioOfSums(level * (1 + 0.2 * chance.normal(size=120)), np.ones(120))
    return {("scenario", "crawl", None, None, "throughput_per_s"): course}


def single(change: float) -> Sides:
    """Return one run per side, with the courses within the runs."""
    runs = [scaled("dev", 1.0, 0), scaled("prod", 1.0, 0, change)]
    base, other = (
        ComparedRun(one.directory, one.manifest, one.verdict, courses(10 * times, seed))
        for one, times, seed in zip(runs, (1.0, change), (1, 2), strict=True)
    )
    return sides_of([base], [other])


def test_one_run_each_is_called_changed_where_no_run_differs_so_much() -> None:
    """One run each: 13 times is a change of medium confidence, and 1.4 times is inconclusive."""
    big, small = compare(single(13.0)), compare(single(1.4))
    judged = of(big, CRAWL).judged
    assert (judged.call, judged.confidence, judged.interval) == ("better", "medium", "within_run")
    assert of(small, CRAWL).judged.call == "inconclusive"
    assert of(small, CRAWL).judged.ci95 is not None
    assert any("only changes above 1.5 " in warning for warning in small.warnings)


def test_a_figure_without_a_course_has_a_reason_instead_of_an_interval() -> None:
    """A figure without a course has a reason instead of an interval, and is inconclusive."""
    judged = of(compare(single(13.0), ["disks"]), LOG).judged
    assert (judged.ci95, judged.call) == (None, "inconclusive")
    assert judged.why_no_interval is not None
    assert "repeat the runs" in judged.why_no_interval


def test_zero_has_no_interval() -> None:
    """A figure that is 0 in one of the runs has no interval, with the reason."""
    sides = repeated(1.0)
    for number, one in enumerate((*sides.base.runs, *sides.other.runs)):
        one.verdict["crawl"][0]["failures"] = number % 3
    judged = of(compare(sides), "source.collab.failures").judged
    assert (judged.ci95, judged.why_no_interval) == (None, "it is 0 in one of the runs")


def test_samples_alone_are_judged_by_disks_and_cpus() -> None:
    """For recordings the disks' write latency and the CPUs are judged."""
    sides = alike(outcome="inconclusive", bottleneck=None)
    for side in sides:
        verdict = side.runs[0].verdict
        assert isinstance(verdict, dict)
        verdict |= {"scenarios": {}, "crawl": []}
        side.runs[0].manifest["plan"].clear()
    done = compare(sides, ["disks"])
    assert done.metrics == (
        LOG,
        "disk.sql.data.write_latency_mean_s",
        "disk.sql.log.iops_mean",
        "disk.sql.data.iops_mean",
        "cpu.search.busy_mean_ratio",
    )
    assert done.capacity == ()
