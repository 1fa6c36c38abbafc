"""The plan declares which figures are judged, unless the command line does."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from harness.comparison.example import TIMES, alike
from harness.comparison.test_judged_figures import CRAWL, LOG, of, repeated
from harness.plan.samples import PLAN, write
from support import run_cli

from pinchpoint.base.errors import InputError
from pinchpoint.comparison import ComparedRun, Sides, compare, sides_of
from pinchpoint.report.comparison import gather
from pinchpoint.report.terminal import comparison_text


def declaring(sides: Sides, base: dict[str, Any] | None, other: dict[str, Any] | None) -> Sides:
    """Return the sides with these declarations in their plans."""
    made = []
    for side, said in zip(sides, (base, other), strict=True):
        runs = []
        for run in side.runs:
            manifest = deepcopy(dict(run.manifest))
            if said is not None:
                manifest["plan"]["compare"] = said
            runs.append(ComparedRun(run.directory, manifest, run.verdict, run.courses))
        made.append(runs)
    return sides_of(made[0], made[1])


def test_the_plans_figures_are_judged_and_no_others() -> None:
    """Only the plan's figures are judged, in its order, and the document says that the plan chose."""
    said = {"metrics": [LOG, CRAWL]}
    done = compare(declaring(repeated(3.0), said, said), ["disks"])
    content = done.to_json()
    assert (content["metrics"], content["metrics_by"]) == ([LOG, CRAWL], "plan")
    assert of(done, LOG).judged.declared
    assert not of(done, "scenario.crawl.service_p95_s").judged.declared
    assert gather(content).tables["judged"].note.startswith("Declared in the plan. ")
    assert "Judged as the plan declares; " in comparison_text(content)


def test_the_command_goes_before_the_plan() -> None:
    """--metric, --margin and --bound each override the plan separately."""
    said = {"metrics": [LOG], "margin_ratio": 0.5, "bound": 9.0}
    sides = declaring(repeated(1.2), said, said)
    content = compare(sides, metrics=[CRAWL], bound=2.0).to_json()
    assert (content["metrics"], content["metrics_by"]) == ([CRAWL], "command")
    assert (content["margin_ratio"], content["bound_ratio"]) == (0.5, 2.0)
    assert compare(sides, margin=0.02).to_json()["margin_ratio"] == 0.02


def test_the_margin_decides_what_is_the_same() -> None:
    """A change of 20 % is better with a margin of 5 %, and equivalent with one of 50 %."""
    narrow, wide = ({"metrics": [CRAWL], "margin_ratio": each} for each in (0.05, 0.5))
    assert of(compare(declaring(repeated(1.2), narrow, narrow)), CRAWL).judged.call == "better"
    assert of(compare(declaring(repeated(1.2), wide, wide)), CRAWL).judged.call == "equivalent"


def test_plans_that_contradict_each_other_are_a_sentence() -> None:
    """Contradicting plans give a sentence with each side's declaration and the deciding option."""
    sides = declaring(alike(), {"metrics": [LOG]}, {"metrics": [CRAWL]})
    with pytest.raises(InputError) as refused:
        compare(sides)
    assert str(refused.value) == (
        "compare.metrics: the plans of these runs do not declare the same "
        f"(runs/dev: {LOG}; runs/prod: {CRAWL}); say with --metric what holds"
    )
    assert compare(sides, metrics=[LOG]).metrics == (LOG,)
    with pytest.raises(InputError, match=r"compare.margin: .*runs/dev: 0.1; runs/prod: 0.2.*--margin"):
        compare(declaring(alike(), {"margin_ratio": 0.1}, {"margin_ratio": 0.2}))
    turned = declaring(alike(), {"metrics": [LOG, CRAWL]}, {"metrics": [CRAWL, LOG]})
    assert compare(turned).metrics == (LOG, CRAWL)


def test_one_plan_that_declares_speaks_for_both_and_it_is_said() -> None:
    """If one side's plan declares figures, they apply to both, and a note says so."""
    done = compare(declaring(alike(), None, {"metrics": [CRAWL]}))
    assert done.metrics == (CRAWL,)
    assert any(
        "the judged figures are those of the other runs' plan; runs/dev" in one for one in done.warnings
    )


def test_a_declared_figure_that_was_not_measured_is_said_after_hours_of_load() -> None:
    """A declared figure that was not measured is a warning with the nearest name, not an error."""
    missing = "disk.sql.log.write_latency_mean"
    said = {"metrics": [CRAWL, missing]}
    done = compare(declaring(alike(), said, said))
    assert done.metrics == (CRAWL,)
    assert any(one.startswith(f"{missing} is declared by the plan, but") for one in done.warnings)


def test_what_is_judged_is_no_difference_in_the_work() -> None:
    """Different declarations and production figures are listed, and do not weaken the claim."""
    sides = declaring(alike(), {"metrics": [CRAWL]}, {"metrics": [CRAWL], "bound": 2.0})
    sides.other.manifests[0]["plan"]["production"] = {"writes_per_s": 5.0}
    done = compare(sides, ["disks"])
    listed = {one.difference.what: one.matters for one in done.confounders if one.difference.area == "plan"}
    assert listed == {"compare.bound": False, "production.writes_per_s": False}
    assert done.claim.kind == "caused_by"


def test_check_shows_what_a_plan_declares(tmp_path: Path) -> None:
    """``check`` shows the declared figures, the margin and the bound before a run."""
    said = f"compare: {{metrics: [scenario.orders.throughput_per_s, {LOG}], margin: 10%, bound: 2}}\n"
    farm, plan = write(tmp_path, plan=f"{PLAN}{said}")
    done = run_cli("check", plan, "--farm", farm, "--out", tmp_path, starts_nothing=True)
    assert done.returncode == 0, done.stderr
    assert (
        f"ok   compare: judged: scenario.orders.throughput_per_s, {LOG}; within 10 % the same; one run up to "
        f"2 {TIMES} the next" in done.stdout
    )
