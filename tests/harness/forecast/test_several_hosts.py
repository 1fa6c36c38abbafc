"""Tiers with several hosts on either side: paired, or left out of the model with a note."""

from __future__ import annotations

import math

import pytest
from harness.analysis.disks import Distant, commits
from harness.forecast.farms import LENGTH_S, log

from pinchpoint.analysis.model.measured import Measured
from pinchpoint.analysis.model.parts import Bound, CoresPart, DiskPart, Part
from pinchpoint.data.inputs import Limits
from pinchpoint.forecast.other_side import between, predict_beside


def disk(host: str, each_s: float, iops: float | None = None, *, idle: bool = False) -> DiskPart:
    """Return a host's log disk, which operations wait for unless it is idle."""
    waits = {} if idle else {"orders": 1.0}
    return DiskPart(
        key=f"disk:{host}",
        name="the log disk of sql",
        target="sql.log",
        host=host,
        profile=None,
        stripes=1,
        attached="network",
        caps=Limits(iops=iops),
        io={},
        bytes={},
        each_s=each_s,
        seen_s=each_s,
        waits=waits,
        waited_s={},
        commits={},
    )


def cores(host: str, count: float, *tiers: str, allowance: bool = False) -> CoresPart:
    """Return the CPU of a host for these tiers; ``allowance``: as a quota."""
    key = f"{'allowance' if allowance else 'cpu'}:{host}"
    return CoresPart(
        key, f"the CPU of {host}", tiers or ("search",), host, count, {}, {}, allowance=allowance
    )


def machine(host: str, name: str, cap: str = "uncached") -> Bound:
    """Return a machine's disk limits: cached or uncached."""
    return Bound(f"disk:{host}:{cap}", name, name, (host,), ("sql",), {}, caps=Limits(iops=3200.0))


def side(*parts: Part, **unmeasured: str) -> Measured:
    """Return a farm without loads; ``sql_log="why"`` is a log that was not measured."""
    named = {name.replace("_", "."): why for name, why in unmeasured.items()}
    return Measured(seen=(), parts=parts, unmeasured=named, left_out=(), loads=())


PRIMARY = disk("sql1", 0.012, 500)
UNLIKE = "(several hosts that differ in different ways)"


@pytest.mark.parametrize(
    ("ours", "theirs", "settings"),
    [
        (
            [PRIMARY, disk("sql2", 0.012, 500)],
            [disk("sql1", 0.003, 500), disk("sql2", 0.003, 500)],
            {"sql.log.latency": 0.003},
        ),
        # A log without waiting operations: its latency changes nothing.
        (
            [PRIMARY, disk("sql2", 0.020, 500, idle=True)],
            [disk("sql1", 0.003, 900), disk("sql2", 0.040, 900, idle=True)],
            {"sql.log.iops": 900, "sql.log.latency": 0.003},
        ),
        # Hosts are the same in any order.
        ([PRIMARY, disk("sql2", 0.002)], [PRIMARY, disk("sql2", 0.002)], {}),
        ([PRIMARY, disk("sql2", 0.002)], [disk("sql2", 0.002), PRIMARY], {}),
        ([PRIMARY, disk("sql2", 0.002)], [disk("prod1", 0.012, 500), disk("prod2", 0.002)], {}),
        (
            [PRIMARY, disk("sql2", 0.012, 500)],
            [disk("sql1", 0.012), disk("sql2", 0.012)],
            {"sql.log.iops": math.inf},
        ),
        ([cores("search1", 2), cores("search2", 2)], [cores("a", 4), cores("b", 4)], {"search.cpu": 4}),
        (
            [machine("sql1", "azure/ds12"), machine("sql1", "azure/ds12", "cached")],
            [machine("sql1", "azure/ds14"), machine("sql1", "azure/ds14", "cached")],
            {"sql.machine": "azure/ds14"},
        ),
        (
            [machine("sql1", "azure/ds12"), machine("sql2", "azure/ds14")],
            [machine("sql1", "azure/ds12"), machine("sql2", "azure/ds14")],
            {},
        ),
    ],
)
def test_hosts_that_differ_alike_are_set_at_once(
    ours: list[Part], theirs: list[Part], settings: dict[str, float | str]
) -> None:
    """Hosts that differ in the same way are paired and set together, without a note."""
    found = between(side(*ours), side(*theirs))
    assert {one.name: one.value for one in found.settings} == settings
    assert len(found.settings) == len(settings)
    assert found.unset == ()


@pytest.mark.parametrize(
    ("ours", "theirs", "untold"),
    [
        (
            [PRIMARY, disk("sql2", 0.012, 500)],
            [disk("sql1", 0.003, 500), disk("sql2", 0.012, 500)],
            f"sql.log {UNLIKE}",
        ),
        # The standby has a lower limit there, and a setting would apply to the primary as well.
        (
            [PRIMARY, disk("sql2", 0.012, 500, idle=True)],
            [disk("sql1", 0.012, 900), disk("sql2", 0.012, 500, idle=True)],
            f"sql.log {UNLIKE}",
        ),
        (
            [PRIMARY],
            [disk("sql1", 0.003, 500), disk("sql2", 0.003, 500)],
            "sql.log (1 in the base, 2 on the other side)",
        ),
        (
            [cores("search1", 2), cores("search2", 2)],
            [cores("search1", 2), cores("search2", 8)],
            f"search.cpu {UNLIKE}",
        ),
        (
            [cores("search1", 2), cores("search2", 2)],
            [cores("search1", 4)],
            "search.cpu (2 in the base, 1 on the other side)",
        ),
        (
            [cores("box", 2, "search", "sql")],
            [cores("box", 2, "search", "sql"), cores("box", 0.5, "search", allowance=True)],
            (
                "search.cpu (a CPU limit of the tier on the other side, a CPU shared by several tiers in "
                "the base)"
            ),
        ),
        (
            [machine("sql1", "azure/ds12"), machine("sql2", "azure/ds12")],
            [machine("sql1", "azure/ds12"), machine("sql2", "azure/ds14")],
            f"sql.machine {UNLIKE}",
        ),
    ],
)
def test_hosts_that_do_not_differ_alike_are_not_put_into_the_model(
    ours: list[Part], theirs: list[Part], untold: str
) -> None:
    """Hosts that differ in other ways are not set, and a note says so."""
    found = between(side(*ours), side(*theirs))
    assert found.settings == ()
    assert found.unset == (untold,)


@pytest.mark.parametrize(("name", "unseen"), [("the base", 0), ("the other side", 1)])
def test_what_a_host_does_not_tell_is_not_told_by_another(name: str, unseen: int) -> None:
    """A log or CPU that was not measured on one host of either side is not set."""
    parts = [(PRIMARY, cores("sql1", 2, "sql")), (disk("sql1", 0.003, 500), cores("sql1", 4, "sql"))]
    why = {"sql_log": "its I/O was not measured", "sql_cpu": "not measured"}
    found = between(*(side(*each, **(why if at == unseen else {})) for at, each in enumerate(parts)))
    assert found.settings == ()
    assert found.unset == (
        f"sql.log (a host of {name}: its I/O was not measured)",
        f"sql.cpu (a host of {name}: not measured)",
    )


def test_a_standby_nobody_looked_at_does_not_prevent_a_prediction() -> None:
    """An unmeasured log of the base's second host does not prevent a prediction; a note names it."""
    build = log(commits(Distant(0.012, 0.0003), LENGTH_S, users=8), 8)
    build.host("sql2", "sql", machine="machine-b", cores=(0, 1), disks={"log": "sdd"})
    build.cpu("sql2", 0.03, 0.02, cores=(0, 1))
    theirs = log(commits(Distant(0.003, 0.0003), LENGTH_S, users=8, seed=2), 8, seed=2).run()
    ours = build.run()
    found = predict_beside(ours, theirs)
    assert found["why_none"] is None
    assert [row["scenario"] for row in found["rows"]] == ["orders"]
    assert any("sql.log (a host of the base" in note for note in found["notes"])
    assert not any("are the same on both sides" in note for note in found["notes"])
