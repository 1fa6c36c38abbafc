"""Comparison of `local` and `ssh` for a tier on one host: CPU, busiest thread, limits."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from collectors.workers import Worker
from sshd_hosts import SshdHost, sshd_host

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.local import LocalKind
from pinchpoint_collectors.record import Collector, Sample, Watch
from pinchpoint_collectors.ssh import SshKind

MIB = 2**20
Span = tuple[float, float]
CPU, MEMORY = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup/memory")


@pytest.fixture(scope="module")
def host() -> Iterator[SshdHost]:
    with sshd_host() as found:
        yield found


@pytest.fixture
def worker() -> Iterator[Worker]:
    """Yield a worker process with a name of its own."""
    found = Worker()
    found.do(f"name pp-ssh-{os.getpid()}")
    yield found
    found.close()


@contextmanager
def both(host: SshdHost, worker: Worker) -> Iterator[tuple[Collector, Collector]]:
    """Yield a local and an ssh collector that watch the worker."""
    name = Path(f"/proc/{worker.pid}/comm").read_text().strip()
    here = LocalKind().connect([Watch("app1", "app", options={"process": name})])
    there = SshKind().connect([Watch("app1", "app", options=host.options(process=name))])
    try:
        yield here, there
    finally:
        here.close()
        there.close()


def watched(here: Collector, there: Collector, seconds: float) -> tuple[list[Sample], list[Sample]]:
    """Return the samples that both read in the same time."""
    mine: list[Sample] = []
    theirs: list[Sample] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        mine += here.read()
        theirs += there.read()  # waits about a second
        time.sleep(0.2)
    return mine, theirs


def mean(samples: Sequence[Sample], metric: str, instance: str, span: Span | None = None) -> float:
    """Return the mean over a time span (UTC s) or over all readings, weighted by covered time."""
    total = covered = 0.0
    for end, length_s, value in _covered(samples, metric, instance):
        part = length_s if span is None else min(end, span[1]) - max(end - length_s, span[0])
        if part > 0:
            total, covered = total + value * part, covered + part
    assert covered, f"{metric} {instance} was not measured"
    return total / covered


def common(mine: Sequence[Sample], theirs: Sequence[Sample], metric: str, instance: str) -> Span:
    """Return the time span that both cover, because the load outside it may differ."""
    spans = [_covered(each, metric, instance) for each in (mine, theirs)]
    begin = max(min(end - length for end, length, _ in each) for each in spans)
    return begin, min(max(end for end, _, _ in each) for each in spans)


def _covered(samples: Sequence[Sample], metric: str, instance: str) -> list[tuple[float, float, float]]:
    """Return (end, length, value) of each measured sample."""
    return [
        (each.time_ns / 1e9, each.interval_s, each.value)
        for each in samples
        if (each.metric, each.instance) == (metric, instance)
        and each.value is not None
        and each.interval_s > 0
    ]


def agree(mine: Sequence[Sample], theirs: Sequence[Sample], metric: str, instance: str) -> None:
    """Assert agreement within a fifth, because the span's ends lie within readings."""
    span = common(mine, theirs, metric, instance)
    here, there = (mean(each, metric, instance, span) for each in (mine, theirs))
    assert here > 0.05
    assert there == pytest.approx(here, rel=0.2), instance


def test_cpu_and_the_busiest_thread_agree(host: SshdHost, worker: Worker) -> None:
    """A busy thread's core share, and the tier's share of its cores, agree."""
    with both(host, worker) as (here, there):
        worker.begin("thread spinner 30")
        watched(here, there, 2.0)
        mine, theirs = watched(here, there, 4.0)
        facts, ours = there.inventory()["app1"], here.inventory()["app1"]
    for instance in ("tier:app", "thread:spinner"):
        agree(mine, theirs, "cpu.busy_ratio", instance)
    assert mean(theirs, "cpu.cores", "tier:app") == mean(mine, "cpu.cores", "tier:app")
    assert facts["tier_cores"] == ours["tier_cores"]
    assert facts["tier_cap_cores"] == ours["tier_cap_cores"]


@pytest.mark.root
def test_caps_and_what_they_leave_agree(host: SshdHost, worker: Worker) -> None:
    """With limits of half a core and 64 MiB, the limits and their use agree."""
    if os.geteuid() != 0 or not all((each / "tasks").exists() for each in (CPU, MEMORY)):
        pytest.skip(f"needs root and the version 1 controllers at {CPU} and {MEMORY}")
    groups = [each / f"pp-test-{os.getpid()}" for each in (CPU, MEMORY)]
    for group in groups:
        group.mkdir()
    try:
        (groups[0] / "cpu.cfs_quota_us").write_text("50000")
        (groups[1] / "memory.limit_in_bytes").write_text(str(64 * MIB))
        for group in groups:
            (group / "cgroup.procs").write_text(str(worker.pid))
        with both(host, worker) as (here, there):
            facts, ours = there.inventory()["app1"], here.inventory()["app1"]
            worker.begin("burn 30")
            watched(here, there, 2.0)
            mine, theirs = watched(here, there, 3.0)
        caps = ("tier_cores", "tier_cap_cores", "tier_cap_bytes")
        assert [facts[key] for key in caps] == [ours[key] for key in caps]
        assert facts["tier_cap_cores"] == 0.5
        assert facts["tier_cap_bytes"] == 64 * MIB
        assert mean(theirs, "cpu.cores", "tier:app") == 0.5
        agree(mine, theirs, "cpu.busy_ratio", "tier:app")
        left = [mean(each, "mem.available_bytes", "tier:app") for each in (mine, theirs)]
        assert left[1] == pytest.approx(left[0], abs=2 * MIB)
        names = [{each[3:5] for each in found if each.instance == "tier:app"} for found in (mine, theirs)]
        assert names[0] == names[1]
    finally:
        worker.close()
        for group in groups:
            for _ in range(50):  # the kernel frees the last pages shortly after the process has ended
                try:
                    group.rmdir()
                    break
                except OSError:
                    time.sleep(0.1)


@pytest.mark.slow  # waits until a link is given up and opened again
def test_after_a_cut_link_the_tier_is_measured_again(host: SshdHost, worker: Worker) -> None:
    """After a cut link a new session asks for all again, and sends nothing until it has it."""
    name = Path(f"/proc/{worker.pid}/comm").read_text().strip()
    collector = SshKind().connect([Watch("app1", "app", options=host.options(process=name))])
    try:
        collector.read()
        for one in host.sessions():
            one.kill()
        failed, end = 0, time.monotonic() + 40
        cores: list[float | None] = []
        while time.monotonic() < end and not (failed and cores and cores[-1] is not None):
            try:
                found = collector.read()
            except CollectorError:
                failed += 1
                time.sleep(0.2)
                continue
            if failed:
                cores += [each.value for each in found if each[3:5] == ("cpu.cores", "tier:app")]
    finally:
        collector.close()
    assert failed
    assert cores[-1] is not None
    assert len(set(cores) - {None}) == 1, "never another figure"
