"""Judged figures declared in plan.yaml before a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.plan.samples import FARM, PLAN, REAL_FARM, write

from pinchpoint.base.errors import InputError
from pinchpoint.base.figures import FIGURES, part_of, split
from pinchpoint.plan import Compare, Plan, load, load_plan
from pinchpoint.plan.compare import disks_of, unfit

METRICS = ("scenario.orders.throughput_per_s", "disk.sql.log.write_latency_mean_s", "effort.orders.sql.cpu_s")


def test_what_is_judged_is_part_of_the_plan(tmp_path: Path) -> None:
    """Figures, margin and bound are part of the plan and survive JSON."""
    text = f"{PLAN}compare: {{metrics: [{', '.join(METRICS)}], margin: 10%, bound: 2}}\n"
    _, plan = load(*write(tmp_path, FARM, text))
    assert plan.compare == Compare(metrics=METRICS, margin_ratio=0.1, bound=2)
    assert Plan.from_json(plan.to_json()) == plan


def test_a_plan_need_not_declare_anything(tmp_path: Path) -> None:
    """A plan without a declaration has none in the manifest."""
    plan = load_plan(write(tmp_path)[1])
    assert plan.compare is None
    assert "compare" not in plan.to_json()


def test_seven_figures_are_too_many(tmp_path: Path) -> None:
    """More than six figures are refused, because each one makes a chance result likelier."""
    names = [
        f"cpu.{tier}.busy_{kind}_ratio"
        for tier in ("web", "sql", "search", "files")
        for kind in ("mean", "max")
    ]
    text = f"{PLAN}compare: {{metrics: [{', '.join(names[:7])}]}}\n"
    with pytest.raises(InputError, match=r"plan.yaml:5: compare.metrics: 7 figures; allowed: 6 at most"):
        load(*write(tmp_path, FARM, text))


def test_tiers_that_only_the_farm_knows_are_looked_up_there(tmp_path: Path) -> None:
    """Tiers and disks are looked up in the declared farm, not in an embedded one's."""
    good = f"{PLAN}compare: {{metrics: [disk.search.index.iops_mean, cpu.sql.busy_mean_ratio]}}\n"
    load(*write(tmp_path, REAL_FARM, good))
    bad = f"{PLAN}compare: {{metrics: [cpu.web.busy_mean_ratio]}}\n"
    with pytest.raises(InputError, match=r"farm.yaml has no tier web; allowed: search, sql"):
        load(*write(tmp_path, REAL_FARM, bad))


def test_a_farm_that_names_no_tier_lets_every_name_pass(tmp_path: Path) -> None:
    """A farm with endpoints only accepts every name, as its tiers are not known yet."""
    farm = "name: f\nenvironment: test\nendpoints: {sql: {url: 'postgresql://a@b/c'}}\n"
    text = f"{PLAN}compare: {{metrics: [cpu.web.busy_mean_ratio]}}\n"
    load(*write(tmp_path, farm, text))


@pytest.mark.parametrize("about", FIGURES)
def test_every_figure_can_be_declared(about: str) -> None:
    """Every figure can be declared by its whole name from a comparison."""
    thing = {"disk": "sql.log", "effort": "orders.sql", "source": "a.b", "cpu": "sql.sql1"}.get(
        about, "orders"
    )
    for figure in FIGURES[about]:
        load_of = {"model": "burst"} if "burst" in (about, figure.partition("_")[0]) else {"model": "steps"}
        assert unfit(f"{about}.{thing}.{figure}", {"orders": {"load": load_of}}) is None


@pytest.mark.parametrize(
    ("name", "parts", "part"),
    [
        ("disk.sql.sql2.log.iops_mean", ("disk", ("sql", "sql2", "log"), "iops_mean"), ("sql", "log")),
        ("cpu.sql.busy_mean_ratio", ("cpu", ("sql",), "busy_mean_ratio"), ("sql", None)),
        ("effort.orders.sql.cpu_s", ("effort", ("orders", "sql"), "cpu_s"), ("sql", None)),
        ("effort.orders.cpu_s", ("effort", ("orders",), "cpu_s"), (None, None)),
        ("source.a.b.rate_per_s", ("source", ("a", "b"), "rate_per_s"), (None, None)),
        ("nonsense", ("nonsense", ("",), ""), (None, None)),
    ],
)
def test_a_name_tells_what_it_speaks_of(
    name: str, parts: tuple[str, tuple[str, ...], str], part: tuple[str | None, str | None]
) -> None:
    """A name gives its area, owner, figure, tier and disk role."""
    assert split(name) == parts
    assert part_of(name) == part


def test_broken_farms_have_no_disks() -> None:
    """A malformed farm has no disks, and another check reports it."""
    assert disks_of({"tiers": 5, "embedded": [1]}) == {}
    assert disks_of({"tiers": {"sql": {"hosts": {"a": None, "b": {"disks": {"log": {}}}}}}}) == {
        "sql": {"log"}
    }
