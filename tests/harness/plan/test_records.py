"""Both files become immutable records in base units, which JSON restores unchanged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness.plan.samples import FARM, REAL_FARM, WHOLE_PLAN, write
from pydantic import ValidationError

from pinchpoint.base.errors import ExitStatus, GuardError, InputError, gravest
from pinchpoint.plan import (
    Burst,
    Closed,
    DeclaredLimits,
    Farm,
    Objective,
    Open,
    Plan,
    ending_scenarios,
    guard,
    load,
    load_farm,
    load_plan,
    with_phases,
)


def test_a_plan_is_in_base_units(tmp_path: Path) -> None:
    """A plan's units become seconds, per second and ratios, and defaults are filled in."""
    _, plan = load(*write(tmp_path, REAL_FARM, WHOLE_PLAN))
    assert plan.scenarios["crawl"].load == Closed(model="closed", users=32, think_s=0.25)
    assert plan.scenarios["orders"].load == Open(model="open", rate_per_s=200.0, arrivals="poisson")
    assert plan.scenarios["orders"].params == {"preset": "log-heavy"}
    assert plan.scenarios["burst"].load == Burst(
        model="burst", base_per_s=50.0, peak_per_s=2000.0, every_s=60.0, for_s=10.0
    )
    assert (plan.phases.warm_up.at_most_s, plan.phases.cool_down_s) == (10.0, 30.0)
    measure = plan.phases.measure
    assert (measure.until, measure.at_least_s, measure.at_most_s) == ("done", 40.0, 43_200.0)
    assert plan.objectives[0] == Objective(scenario="orders", p95_s=0.05)
    assert plan.objectives[1] == Objective(scenario="crawl", errors_ratio=0.01)
    assert plan.seed == 7
    assert ending_scenarios(plan) == ["crawl"]


def test_what_a_plan_leaves_out_has_a_default(tmp_path: Path) -> None:
    """A plan of four lines has the defaults: seed 1, short warm-up, no cool-down, no objectives."""
    plan = load_plan(write(tmp_path)[1])
    assert plan.to_json() == {
        "name": "p",
        "seed": 1,
        "scenarios": {
            "orders": {
                "use": "sql-mix",
                "load": {"model": "closed", "users": 1, "think_s": 0.0},
                "params": {},
            }
        },
        "phases": {
            "warm_up": {"at_most_s": 5.0, "auto": False},
            "measure": {"at_most_s": 1.0, "at_least_s": 0.0},
            "cool_down_s": 0.0,
        },
        "objectives": [],
        "stop_when": [],
    }


def test_a_farm_knows_its_hosts_disks_and_endpoints(tmp_path: Path) -> None:
    """A farm has base units, unexpanded variables, and paths absolute from the file's folder."""
    path, _ = write(tmp_path, REAL_FARM)
    farm = load_farm(path)
    assert farm.identity == path.resolve()
    assert farm.offered == {"sharepoint", "sql", "nosql", "search", "files"}
    sql1 = farm.tiers["sql"].hosts["sql1"]
    assert sql1.disks["log"].limits == DeclaredLimits(iops=5000, bytes_per_s=200e6, io_unit_bytes=8192)
    assert sql1.disks["data"].limits == "unknown"
    assert sql1.disks["data"].resolved_limits is None
    index = farm.tiers["search"].hosts["app3"].disks["index"]
    assert index.resolved_limits == DeclaredLimits(
        iops=5000, bytes_per_s=200e6
    )  # the catalogue's limit without burst
    assert (sql1.collect[0].kind, sql1.collect[0].options) == ("local", {"process": "postgres"})
    assert farm.endpoints.named()["sql"].given == {"url": "postgresql://loader:${PGPASSWORD}@sql1/loadtest"}
    assert farm.endpoints.named()["files"].given == {"url": str(tmp_path / "documents")}
    assert farm.endpoints.named()["search"].given == {"url": "http://app3:8200", "kind": "pinchpoint"}


def test_striped_disks_are_declared_by_one_of_them(tmp_path: Path) -> None:
    """Stripes multiply a profile's limits; the attachment is kept, also in a manifest."""
    disks = "{log: {device: md0, profile: azure/s30, stripes: 4, attached: cached}}"
    hosts = f"sql1: {{machine: azure/d12, disks: {disks}}}"
    tiers = f"{{sql: {{hosts: {{{hosts}}}}}}}"
    text = f"name: f\nenvironment: test\nendpoints: {{files: {{path: docs}}}}\ntiers: {tiers}\n"
    farm = load_farm(write(tmp_path, text)[0])
    log = farm.tiers["sql"].hosts["sql1"].disks["log"]
    assert log.resolved_limits == DeclaredLimits(iops=2000, bytes_per_s=240e6)
    assert (log.stripes, log.attached) == (4, "cached")
    assert Farm.model_validate(json.loads(farm.model_dump_json())) == farm
    with pytest.raises(InputError, match="stripes without a profile"):
        load_farm(write(tmp_path, text.replace("profile: azure/s30, ", ""))[0])


@pytest.mark.parametrize(
    ("collect", "disk", "fits"),
    [
        ("[{kind: postgres}]", "{profile: azure/p30}", True),
        ("[{kind: sqlserver}]", "{limits: {iops: 500}}", True),
        ("[{kind: mariadb}]", "{limits: unknown}", True),
        ("[{kind: mariadb}]", "{}", False),
        ("[{kind: valkey}]", "{profile: azure/p30}", False),
        ("[{kind: postgres}, {kind: local}]", "{profile: azure/p30}", False),
        ("[]", "{profile: azure/p30}", False),
    ],
)
def test_a_disk_without_a_place_is_one_of_a_managed_database(
    tmp_path: Path, collect: str, disk: str, fits: bool
) -> None:
    """A disk without a device is allowed for a managed database only; a host with a collector needs one."""
    host = f"db1: {{machine: azure/d12, collect: {collect}, disks: {{log: {disk}}}}}"
    tiers = f"{{sql: {{hosts: {{{host}}}}}}}"
    text = f"name: f\nenvironment: test\nendpoints: {{files: {{path: docs}}}}\ntiers: {tiers}\n"
    path = write(tmp_path, text)[0]
    if fits:
        assert load_farm(path).tiers["sql"].hosts["db1"].disks["log"].device is None
    else:
        with pytest.raises(InputError, match="a disk without a place"):
            load_farm(path)


def test_the_embedded_farm_offers_what_its_tiers_are(tmp_path: Path) -> None:
    """An embedded farm's endpoints follow from its tiers, and its corpus from the file's folder."""
    built = "embedded: {tiers: [sql, files], content: {corpus: ../docs, documents: 9}}"
    text = f"name: f\nenvironment: test\n{built}\n"
    farm = load_farm(write(tmp_path, text)[0])
    assert farm.embedded is not None
    assert farm.offered == {"sql", "files"}
    assert farm.embedded.content.corpus == tmp_path / "../docs"
    assert farm.embedded.content.documents == 9
    assert farm.endpoints.named() == {}


@pytest.mark.parametrize("text", [FARM, REAL_FARM])
def test_a_farm_comes_back_from_its_json(tmp_path: Path, text: str) -> None:
    """A farm is restored from a manifest's JSON without its file."""
    path, _ = write(tmp_path, text)
    farm = load_farm(path)
    path.unlink()
    assert Farm.from_json(json.loads(json.dumps(farm.to_json()))) == farm


def test_a_plan_comes_back_from_its_json(tmp_path: Path) -> None:
    """A plan is restored from JSON, with both forms of measure."""
    for text in (WHOLE_PLAN, WHOLE_PLAN.replace("{until: done, at_least: 40s, at_most: 12h}", "10m")):
        plan = load_plan(write(tmp_path, plan=text)[1])
        assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


def test_records_are_frozen_and_hide_secrets(tmp_path: Path) -> None:
    """Records are immutable, and their text shows no password."""
    farm = load_farm(write(tmp_path, REAL_FARM)[0])
    with pytest.raises(ValidationError):
        farm.name = "other"  # type: ignore[misc]
    assert "secret" not in repr(farm)


def test_json_is_yaml(tmp_path: Path) -> None:
    """A JSON file with tabs, escapes and a BOM is accepted like YAML."""
    text = '\ufeff{\n\t"name": "f",\n\t"environment": "te\\u0073t",\n\t"embedded": {"tiers": ["sql"]}\n}\n'
    assert load_farm(write(tmp_path, text)[0]).environment == "test"


def test_anchors_and_merge_keys_work(tmp_path: Path) -> None:
    """Anchors and merge keys work, and a field's own value takes precedence."""
    plan = load_plan(
        write(
            tmp_path,
            plan="name: p\nscenarios:\n"
            "  a: &a {use: sql-mix, load: {model: closed, users: 1}}\n"
            "  b: {<<: *a, load: {model: closed, users: 2}}\n"
            "phases: {measure: 1s}\n",
        )[1]
    )
    assert [planned.load for planned in plan.scenarios.values()] == [
        Closed(model="closed", users=1),
        Closed(model="closed", users=2),
    ]


def test_an_anchor_may_be_used_again(tmp_path: Path) -> None:
    """A reused anchor gives no warning."""
    farm = load_farm(write(tmp_path, FARM + "tiers: {x: {hosts: {a: &a {}, b: &a {}, c: *a}}}\n")[0])
    assert list(farm.tiers["x"].hosts) == ["a", "b", "c"]


def test_the_guard_keeps_writing_scenarios_off_production(tmp_path: Path) -> None:
    """Production with a writing scenario starts nothing and gives the guard's exit status."""
    farm, plan = load(*write(tmp_path, FARM.replace("environment: test", "environment: production")))
    with pytest.raises(GuardError, match=r"farm f is production.*orders \(sql-mix\)") as raised:
        guard(farm, plan)
    assert raised.value.exit_status is ExitStatus.GUARD
    guard(*load(*write(tmp_path)))


def test_the_gravest_status_wins() -> None:
    """Exit statuses have DESIGN.md's order: 130, 4, 3, 5, 1; none is 0."""
    ordered = [
        ExitStatus.INTERRUPTED,
        ExitStatus.GUARD,
        ExitStatus.NOT_EVIDENCE,
        ExitStatus.ENVIRONMENT,
        ExitStatus.OBJECTIVES_MISSED,
        ExitStatus.FINE,
    ]
    for position, status in enumerate(ordered):
        assert gravest(reversed(ordered[position:])) is status
    assert gravest([]) is ExitStatus.FINE
    assert InputError("a", "b").exit_status == 2
    assert str(InputError("a", "b")) == "a\nb"


def test_the_command_line_s_phases_take_the_place_of_the_plan_s(tmp_path: Path) -> None:
    """Phases on the command line replace the plan's for one run; others stay."""
    _, plan = load(*write(tmp_path, REAL_FARM, WHOLE_PLAN))
    changed = with_phases(plan, "30s", "auto")
    assert changed.phases.measure.to_json() == {"at_most_s": 30.0, "at_least_s": 0.0}
    assert changed.phases.warm_up.auto
    assert changed.phases.cool_down_s == plan.phases.cool_down_s == 30.0
    assert with_phases(plan, None, "2s").phases.measure == plan.phases.measure
    assert with_phases(plan, None, None) == plan


@pytest.mark.parametrize(
    ("measure", "warm_up", "said"),
    [
        ("30", None, '--measure: "30" has no unit'),
        ("0s", None, '--measure: found the text "0s"; allowed: more than 0 s'),
        ("auto", None, '--measure: "auto" is not a duration'),
        (None, "3 x", '--warm-up: "3 x" has the unknown unit "x"'),
        (None, "soon", "250ms, 10s, 10m or 1h30m, or auto"),
    ],
)
def test_a_phase_that_is_no_duration_is_refused(measure: str | None, warm_up: str | None, said: str) -> None:
    """A phase that is no duration is refused with option, value, and what is allowed."""
    plan = Plan.from_json({"name": "p", "scenarios": {"a": {"use": "sql-mix", "load": CLOSED}},
                           "phases": {"measure": {"at_most_s": 1.0}}})  # fmt: skip
    with pytest.raises(InputError) as error:
        with_phases(plan, measure, warm_up)
    assert said in str(error.value)


CLOSED = {"model": "closed", "users": 1, "think_s": 0.0}
