"""A probe's latency curve in farm.yaml: how it is read, refused and used by an analysis."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.analysis.build import Build

from pinchpoint.analysis import Verdict, analyse
from pinchpoint.base.errors import InputError
from pinchpoint.data.curve import expected_s, most_per_s
from pinchpoint.data.inputs import read_inputs
from pinchpoint.plan import Farm, load_farm

FARM = """name: dev
environment: test
endpoints: {{sql: {{url: "postgresql://loader@sql1/loadtest"}}}}
tiers: {{sql: {{hosts: {{sql1: {{disks: {{data: {{path: /srv/data, limits: {limits}}}}}}}}}}}}}
"""


def read(folder: Path, limits: str) -> Farm:
    file = folder / "farm.yaml"
    file.write_text(FARM.format(limits=limits))
    return load_farm(file)


def test_a_curve_is_read_and_kept(tmp_path: Path) -> None:
    """A curve is read in order of outstanding I/Os, also from a manifest."""
    farm = read(tmp_path, "{latency: {8: 16ms, 1: 2ms}}")
    limits = farm.tiers["sql"].hosts["sql1"].disks["data"].resolved_limits
    assert limits is not None
    assert limits.latency == ((1.0, 0.002), (8.0, 0.016))
    assert (limits.iops, limits.bytes_per_s) == (None, None)
    assert Farm.from_json(farm.to_json()).tiers == farm.tiers


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ("{latency: {}}", "latency"),
        ("{latency: 2ms}", "mean latency by I/Os outstanding"),
        ("{latency: {0: 2ms}}", "whole numbers from 1 on"),
        ("{latency: {1: 2}}", "a duration such as"),
        ("{latency: {1: 0s}}", "a latency of nothing"),
        ("{}", "limits that limit nothing"),
    ],
)
def test_what_is_no_curve_is_refused(tmp_path: Path, limits: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read(tmp_path, limits)


def test_between_two_depths_and_beyond() -> None:
    curve = ((1.0, 0.002), (4.0, 0.008))
    assert expected_s(curve, 0.3) == 0.002
    assert expected_s(curve, 2.0) == pytest.approx(0.004)
    assert expected_s(curve, 4.0) == pytest.approx(0.008)
    assert expected_s(curve, 5.0) is None
    assert expected_s((), 1.0) is None
    assert most_per_s(curve) == pytest.approx(500)


def judged(latency_s: float, curve: list[list[float]] | None) -> Verdict:
    """Return the verdict on users who read pages one at a time, with three outstanding."""
    build = (
        Build(measure_s=60).host("sql1", "sql", disks={"data": "sdc"}).cpu("sql1", busy=0.1, tier_share=0.1)
    )
    disks = build.manifest["farm"]["tiers"]["sql"]["hosts"]["sql1"]["disks"]
    disks["data"] |= {"limits": {"latency": curve} if curve else None}
    per_s = 3 / latency_s
    build.disk("sql1", "sdc", 0.0, latency_s, reads=per_s, noise=0.02, busy=0.97, pressure=0.8)
    build.sessions("sql1", 3, IO__DataFileRead=2.9)
    build.closed("orders", "sql-mix", 3).generator()
    return analyse(build.operations("orders", "point_read", per_s, latency_s, noise=0.02).run())


def test_a_disk_that_is_slower_than_it_was_probed_is_said() -> None:
    """30 ms with three outstanding against the probe's 5 ms give a warning with both; 5 ms give none."""
    curve = [[1.0, 0.005], [16.0, 0.006]]
    slow = [warning for warning in judged(0.030, curve).warnings if "the probe in farm.yaml found" in warning]
    assert len(slow) == 1
    assert "sql.data" in slow[0]
    assert not [one for one in judged(0.005, curve).warnings if "the probe in farm.yaml" in one]
    assert not [one for one in judged(0.030, None).warnings if "the probe in farm.yaml" in one]


def test_a_curve_is_no_cap() -> None:
    """A curve changes neither kind nor confidence, and gives no utilisation."""
    with_curve, without = judged(0.030, [[1.0, 0.028], [16.0, 0.03]]), judged(0.030, None)
    both = (with_curve.to_json(), without.to_json())
    assert both[0]["outcome"] == both[1]["outcome"]
    assert (both[0]["bottleneck"] or {}).get("kind") == (both[1]["bottleneck"] or {}).get("kind")
    build = Build().host("sql1", "sql", disks={"data": "sdc"})
    disks = build.manifest["farm"]["tiers"]["sql"]["hosts"]["sql1"]["disks"]
    disks["data"]["limits"] = {"latency": [[1.0, 0.002]]}
    disks["data"]["resolved_limits"] = {"latency": [[1.0, 0.002]]}
    [role] = read_inputs(build.closed("o", "sql-mix", 1).operations("o", "point_read", 5, 0.1).run()).disks
    assert role.limits is None
    assert role.curve == ((1.0, 0.002),)
