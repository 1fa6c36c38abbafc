"""Burst credits: rates above a disk's baseline, and rate changes that are not spent credits."""

from __future__ import annotations

import re

import numpy as np
import pytest
from harness.analysis.build import Build, Floats
from harness.analysis.verdicts import judged

P10 = {"iops": 500.0, "bytes_per_s": 100e6}
USERS = 32


def reading(
    rate: float, *, entry: str | None = "azure/p10", stripes: int = 1, seed: int = 1, **more: float
) -> Build:
    """Return users who read from a data disk declared as one P10 or several."""
    limits = {name: limit * stripes for name, limit in P10.items()}
    build = Build(60, seed=seed)
    build.host("sql1", "sql", cores=(0, 1), disks={"data": "sdc"}, limits={"data": limits} if entry else None)
    if entry:
        declared = build.manifest["farm"]["tiers"]["sql"]["hosts"]["sql1"]["disks"]["data"]
        declared |= {"profile": entry, "stripes": stripes}
    build.cpu("sql1", 0.2, 0.18, cores=(0, 1))
    return build.disk(
        "sql1", "sdc", 0, USERS / rate, reads=rate, **{"noise": 0.004, "busy": 1.0, "pressure": 0.9} | more
    )


def users(build: Build, rate: float) -> Build:
    build.metric("generator1", "generator.users", float(USERS), "orders", 0.0)
    build.closed("orders", "sql-mix", USERS).operations(
        "orders", "point_read", rate, USERS / rate, noise=0.004
    )
    return build.generator()


@pytest.mark.parametrize("stripes", [1, 2])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_disk_at_its_burst_s_limit_is_at_a_limit_and_declared_rightly(stripes: int, seed: int) -> None:
    """A P10 at 3,500 IOPS is at its burst limit, and the summary says how long full credits last."""
    rate = 3500.0 * stripes
    verdict = judged(users(reading(rate, stripes=stripes, seed=seed), rate))
    found = verdict.bottleneck
    assert found is not None, verdict.summary
    assert (found.kind, found.role, found.confidence) == ("disk_cap", "data", "medium"), found.why_not_more
    assert "of its burst's limit" in verdict.summary
    assert "full credits last 30 min" in verdict.summary
    assert not any("Correct the limit" in one.what for one in verdict.advice)
    assert "azure/p" in verdict.advice[0].what


def test_where_nothing_is_declared_the_limit_is_the_same() -> None:
    """The disk is at its limit without a declaration, too; the summary names the limit in I/Os."""
    verdict = judged(users(reading(3500.0, entry=None), 3500.0))
    assert verdict.bottleneck is not None
    assert (verdict.bottleneck.kind, verdict.bottleneck.role) == ("disk_cap", "data")
    assert "I/O limited to" in verdict.summary, "all I/Os are of one size: told in I/Os"


def test_an_all_clear_on_credits_says_that_they_end() -> None:
    """A farm served at 1,500 IOPS, three times the baseline, is warned that credits end."""
    build = reading(1500.0, noise=0.05, busy=0.6, pressure=0.3)
    build.open("orders", "sql-mix", 1500).operations("orders", "point_read", 1500, 0.004)
    verdict = judged(build.generator(orders=(1500.0, 1500.0)))
    assert verdict.outcome == "not_reached"
    assert re.search(r"Burst credits allowed sql\.data: it did 1,\d{3} IOPS", verdict.summary), (
        verdict.summary
    )
    assert "azure/p10 is 500 IOPS, 100 MB/s" in verdict.summary
    [row] = [row for row in verdict.demand if row["resource"] == "disk"]
    assert row["used_ratio"] == pytest.approx(1500 / 3500, rel=0.05)
    assert "its burst credits last" in row["assumes"]


def test_below_what_it_does_for_good_there_is_nothing_to_say() -> None:
    """At 400 of 500 IOPS there is no warning about credits."""
    build = reading(400.0, noise=0.05, busy=0.6, pressure=0.3)
    build.open("orders", "sql-mix", 400).operations("orders", "point_read", 400, 0.004)
    assert "credits" not in judged(build.generator(orders=(400.0, 400.0))).summary


def changing(rates: Floats, sizes: Floats) -> Build:
    """Return a log with another I/O rate and another I/O size in the second half."""
    build = Build(80, seed=1).host("sql1", "sql", cores=(0, 1), disks={"log": "sdb"})
    build.cpu("sql1", 0.1, 0.1, cores=(0, 1))
    build.disk("sql1", "sdb", rates, 8 / rates, 0.004, busy=1.0, pressure=0.9, size_bytes=sizes)  # type: ignore[arg-type]
    build.metric("generator1", "generator.users", 8.0, "orders", 0.0)
    build.closed("orders", "sql-mix", 8).operations(
        "orders", "log_append", rates / 2, 16 / rates, noise=0.004
    )
    return build.generator()


def halves(first: float, second: float) -> Floats:
    return np.where(np.arange(90) < 50, first, second)


@pytest.mark.parametrize(
    ("rates", "sizes"),
    [(halves(600, 150), halves(10e3, 40e3)), (halves(600, 600), halves(40e3, 10e3))],
    ids=["larger under a limit of bytes", "smaller under a limit of I/Os"],
)
def test_ios_of_another_size_are_no_credits_that_ran_out(rates: Floats, sizes: Floats) -> None:
    """A rate that falls because the I/O size changed is not reported as exhausted credits."""
    found = judged(changing(rates, sizes)).bottleneck
    assert found is not None
    assert (found.kind, found.role) == ("disk_cap", "log")


def test_larger_writes_after_credits_ran_out_are_no_reason_to_doubt_it() -> None:
    """Larger writes after the credits ended do not contradict exhausted credits."""
    found = judged(changing(halves(600, 100), halves(10e3, 20e3))).bottleneck
    assert found is not None
    assert (found.kind, found.role) == ("disk_burst_exhausted", "log")
