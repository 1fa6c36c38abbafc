"""Advice for disks at a limit, with and without a catalogue type, and for exhausted burst credits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.analysis.build import Build
from harness.analysis.test_capacity import MB, two_disks, with_machine
from harness.analysis.verdicts import first, judged

from pinchpoint_infra.catalogue import profile


def log_on(name: str | None, writes: float, cpu: float = 0.3, stripes: int = 1, **more: Any) -> Build:
    """Return commits at that write rate on a log disk of a catalogue type (None: withheld)."""
    build = Build(seed=2)
    caps = profile(name) if name else None
    limits: dict[str, dict[str, float]] = {}
    if caps is not None and caps.iops and caps.bytes_per_s:
        limits["log"] = {"iops": caps.iops * stripes, "bytes_per_s": caps.bytes_per_s * stripes}
    build.host("sql1", "sql", cores=(0, 1), disks={"log": "sdc"}, limits=limits)
    build.manifest["farm"]["tiers"]["sql"]["hosts"]["sql1"]["disks"]["log"] |= {
        "profile": name,
        "stripes": stripes,
    }
    build.cpu("sql1", cpu, cpu, cores=(0, 1))
    build.disk("sql1", "sdc", writes, 8 / writes, 0.004, busy=1.0, pressure=0.85, **more)
    build.closed("orders", "sql-mix", 8).operations("orders", "log_append", writes / 2, 16 / writes)
    return build.generator()


def test_a_larger_type_of_the_series_and_stripes_lift_a_cap() -> None:
    """A P10 at 500 IOPS with 30 % CPU: the gain is up to 3.3 x, which a P20 or 4 striped P10 provide."""
    verdict = judged(with_machine(log_on("azure/p10", 500), "azure/ds12"))
    larger, striped = verdict.advice
    assert larger.target == "sql.log"
    assert "on azure/p20 (2,300 IOPS, 150 MB/s) instead of azure/p10 (500 IOPS, 100 MB/s)" in larger.what
    assert "the machine azure/ds12 is limited to 12,800 IOPS, 128 MB/s for all its disks" in larger.what
    assert larger.gain_ratio == pytest.approx(1 / 0.3 - 1, rel=0.1)
    assert larger.limit_next == "the CPU of sql"
    assert larger.source is not None
    assert larger.source["entry"] == "azure/p10, azure/p20"
    assert larger.source["source"] == profile("azure/p20").source
    assert larger.source["date"] == profile("azure/p20").date
    assert "over 4 x azure/p10 (2,000 IOPS, 400 MB/s)" in striped.what
    assert "the machine azure/ds12 is limited to 12,800 IOPS" in striped.what
    assert larger.text not in verdict.summary, "advice stands once"


def test_a_type_that_does_not_suffice_limits_again() -> None:
    """An S30 with 5 % CPU: the S series ends at 2,000 IOPS, so the advice names another series."""
    verdict = judged(log_on("azure/s30", 500, cpu=0.06))
    advice = first(verdict)
    assert "azure/s30 (500 IOPS, 60 MB/s)" in advice.what
    assert advice.gain_ratio is not None
    room = profile(advice.what.split(" on ")[1].split(" ")[0]).iops
    assert room is not None
    assert room >= 500 / 0.065


def test_striping_counts_the_stripes_there_are() -> None:
    """Four S30 declared as one disk of 2,000 IOPS: the advice is five or more stripes."""
    verdict = judged(log_on("azure/s30", 2000, cpu=0.7, stripes=4))
    texts = [one.what for one in verdict.advice]
    assert any("instead of 4 x azure/s30 (2,000 IOPS, 240 MB/s)" in text for text in texts)
    assert any("over 6 x azure/s30" in text for text in texts)


def test_an_unknown_cap_is_said_with_the_probe_that_tells() -> None:
    """A disk with an undeclared limit is described by its observed rate, and the advice is to probe it."""
    verdict = judged(log_on(None, 500))
    assert verdict.bottleneck is not None
    faster, unknown = verdict.advice
    assert "(I/O limited to 50" in faster.what
    assert "for 1,670 IOPS" in faster.what
    assert faster.set == ("sql.log.iops=1670",)
    assert faster.source is None
    assert "pinchpoint probe --farm farm.yaml --suite database" in unknown.what
    assert unknown.gain_ratio is None
    assert "the limits of sql.log are not known" in unknown.assumes


def test_a_wrong_declaration_is_to_be_corrected() -> None:
    """A disk declared as a P30 but held at 500 IOPS gets no advice from the catalogue's P30 entry."""
    verdict = judged(log_on("azure/p30", 500))
    assert all("azure/p" not in one.what for one in verdict.advice)
    assert any(one.what.startswith("Correct the limit of sql.log in farm.yaml") for one in verdict.advice)


def test_a_machine_at_its_cap_wants_the_next_machine() -> None:
    """A machine at its disk limit needs the next machine type; other disks gain nothing."""
    advice = first(judged(two_disks(128 * MB)))
    assert advice.target == "sql1"
    assert "azure/ds14 (51,200 IOPS, 512 MB/s for all its disks)" in advice.what
    assert "faster or more disks alone do not help" in advice.what
    assert advice.set == ("sql.machine=azure/ds14",)
    assert advice.source is not None
    assert "azure/ds12, azure/ds14" in advice.source["entry"]


def test_spent_credits_want_a_baseline() -> None:
    """A P10 that fell from 3,500 to 500 IOPS needs a type whose baseline is the burst's rate."""
    level = np.where(np.arange(130) < 60, 3500.0, 500.0)
    build = Build(measure_s=120, seed=1).host(
        "sql1",
        "sql",
        cores=(0, 1),
        disks={"log": "loop1"},
        limits={"log": {"iops": 500.0, "bytes_per_s": 100e6}},
    )
    build.manifest["farm"]["tiers"]["sql"]["hosts"]["sql1"]["disks"]["log"]["profile"] = "azure/p10"
    build.cpu("sql1", 0.05, cores=(0, 1))
    build.disk("sql1", "loop1", level, 8 / level, 0.004, busy=1.0, pressure=0.9)
    build.closed("orders", "sql-mix", 8).operations("orders", "log_append", level / 2, 16 / level)
    verdict = judged(build.generator())
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.kind == "disk_burst_exhausted"
    advice = first(verdict)
    assert "azure/p30 (5,000 IOPS, 200 MB/s), with a baseline of at least 3," in advice.what
    assert "full credits of azure/p10 are 5,400,000 I/Os above its 500 IOPS" in advice.what


def test_spent_credits_of_bytes_want_a_baseline_of_bytes() -> None:
    """A P10 that fell from 170 to 100 MB/s needs a type with a higher baseline in bytes, not in I/Os."""
    build = Build(measure_s=120).host("sql1", "sql", cores=(0, 1), disks={"log": "loop1"})
    caps = {"iops": 500.0, "bytes_per_s": 100e6}
    build.manifest["farm"]["tiers"]["sql"]["hosts"]["sql1"]["disks"]["log"] |= {
        "profile": "azure/p10",
        "resolved_limits": caps,
    }
    io, size = build.noisy(400.0, 0.08), np.where(np.arange(130) < 60, 170e6, 100e6)
    for metric, level, noise in (
        ("writes_per_s", io, 0.0),
        ("reads_per_s", 0.0, 0.0),
        ("write_bytes_per_s", size, 0.002),
        ("read_bytes_per_s", 0.0, 0.0),
        ("outstanding", 8.0, 0.05),
        ("busy_ratio", 1.0, 0.001),
    ):
        build.metric("sql1", f"disk.{metric}", level, "loop1", noise)
    build.metric("sql1", "disk.write_latency_s", 8 / io, "loop1", 0.0, io).cpu("sql1", 0.05, cores=(0, 1))
    build.metric("sql1", "pressure.io_ratio", 0.9).closed("orders", "sql-mix", 8)
    verdict = judged(build.operations("orders", "log_append", io, 8 / io, noise=0.0).generator())
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.kind == "disk_burst_exhausted"
    larger, striped = (one.what for one in verdict.advice)
    assert larger.startswith("Put sql.log on azure/p30 (5,000 IOPS, 200 MB/s), with a baseline of at least ")
    assert larger.endswith("170 MB per second, the rate it reached on burst credits")
    assert "with a baseline of 170 MB per second" in striped


def test_what_credits_carried_is_gained_from_what_came_after_them() -> None:
    """3,500 IOPS used half of the cores, so a disk that sustains 3,500 gives seven times 500."""
    level = np.where(np.arange(130) < 60, 3500.0, 500.0)
    build = Build(measure_s=120, seed=1).host("sql1", "sql", cores=(0, 1), disks={"log": "loop1"})
    used = level / 7000
    build.cpu("sql1", used, used, cores=(0, 1))
    build.disk("sql1", "loop1", level, 8 / level, 0.004, busy=1.0, pressure=0.9)
    build.closed("orders", "sql-mix", 8).operations("orders", "log_append", level / 2, 16 / level)
    verdict = judged(build.generator())
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.kind == "disk_burst_exhausted"
    assert first(verdict).gain_ratio == pytest.approx(6.0, rel=0.1)
    assert first(verdict).limit_next == "the log disk of sql"
    assert verdict.next is not None
    assert verdict.next.gain_ratio == pytest.approx(13.0, rel=0.1)
    assert verdict.headroom_ratio == 0.0
    assert verdict.headroom.now_per_s == pytest.approx(250, rel=0.1)


@pytest.mark.parametrize("log_s", [0.001, 0.05])
def test_a_probe_is_held_against_its_own_disk_alone(log_s: float) -> None:
    """A disk's probe warns where that disk is slow in the run as well, and never for another disk."""
    build = Build().host("sql1", "sql", cores=(0, 1), disks={"log": "sdc", "data": "sdd"})
    disks = build.manifest["farm"]["tiers"]["sql"]["hosts"]["sql1"]["disks"]
    disks["log"]["limits"] = {"iops": 5000.0, "latency": [[1, 0.001], [64, 0.001]]}
    build.cpu("sql1", 0.2, 0.2, cores=(0, 1)).disk("sql1", "sdc", 100, log_s, outstanding_noise=0.0)
    build.disk("sql1", "sdd", 200, 0.05, busy=1.0).open("orders", "sql-mix", 100)
    build.operations("orders", "log_append", 100, 0.06)
    verdict = judged(with_machine(build.generator(orders=(100.0, 100.0)), "azure/ds12"))
    said = [warning for warning in verdict.warnings if "where the probe in farm.yaml found" in warning]
    assert [warning.split(":")[0] for warning in said] == (["sql.log"] if log_s > 0.01 else [])


def test_a_machine_that_does_more_than_its_type_limits_nothing() -> None:
    """5,000 IOPS on a machine type with at most 4,000: the type is reported as wrong, not as a limit."""
    verdict = judged(with_machine(log_on("azure/p30", 5000), "azure/d2s_v3"))
    assert all("d2s_v3" not in one.text for one in verdict.advice)
    assert (first(verdict).gain_ratio or 0.0) > 0.3
    [said] = [warning for warning in verdict.warnings if "d2s_v3" in warning]
    assert said.startswith("sql1: its disks did 5,0")
    assert "more than azure/d2s_v3 does (4,000 IOPS, 200 MB/s): correct its machine in farm.yaml" in said
    assert "Burst credits carried" not in verdict.summary


def test_what_is_a_little_beyond_its_limit_comes_next() -> None:
    """With saturated cores and a data disk at 101 % of its limit, more cores gain nothing."""
    disks = {"log": "sdb", "data": "sdc"}
    build = Build().host("sql1", "sql", cores=(0, 1), disks=disks, limits={"data": {"iops": 500.0}})
    build.cpu("sql1", 0.985, 0.97, cores=(0, 1), pressure=0.9).disk("sql1", "sdb", 60, 0.001, busy=0.1)
    build.disk("sql1", "sdc", 506, 0.004, 0.002, busy=0.9, pressure=0.1)
    build.closed("orders", "sql-mix", 8).operations("orders", "data_update", 250, 0.032, noise=0.02)
    verdict = judged(build.generator())
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.kind == "cpu", verdict.summary
    assert verdict.next is not None
    assert (verdict.next.role, verdict.next.gain_ratio) == ("data", 0.0)
    assert first(verdict).gain_ratio == pytest.approx(0.0, abs=0.001)
    assert (
        "no change in the throughput of orders; then the data disk of sql is the bottleneck"
        in first(verdict).text
    )
