"""Tests of a tier's CPU with processes of known CPU use."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from collectors.asking import only
from collectors.workers import Worker

from pinchpoint_collectors.linux.processes import ProcessTable, Roots
from pinchpoint_collectors.local import LocalKind
from pinchpoint_collectors.record import Collector, Processes, Sample, Watch

TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@pytest.fixture
def start() -> Iterator[Callable[..., Worker]]:
    """Yield a function that starts workers, which end with the test."""
    workers: list[Worker] = []

    def begin(*arguments: str) -> Worker:
        workers.append(Worker(*arguments))
        return workers[-1]

    yield begin
    for worker in workers:
        worker.close()


def connect(*watches: Watch) -> Collector:
    return LocalKind().connect(watches)


def cpu_s(collector: Collector, instance: str = "tier:app") -> float:
    """Return CPU seconds since the last reading: the ratio times its number of cores."""
    samples = collector.read()
    busy = only(samples, "cpu.busy_ratio", instance)
    assert busy.value is not None
    cores = only(samples, "cpu.cores", "tier:app").value if instance == "tier:app" else 1
    assert cores is not None
    return busy.value * busy.interval_s * cores


def watching(worker: Worker) -> Collector:
    collector = connect(Watch("app1", "app", processes=Processes(pids=(worker.pid,))))
    worker.do("burn 0")  # the worker has started, so that its start is not measured
    collector.read()
    return collector


def test_cpu_of_the_process_itself(start: Callable[..., Worker]) -> None:
    """0.3 s of CPU time are measured as 0.3 s, within a few clock ticks; an idle process as none."""
    worker = start()
    collector = watching(worker)
    worker.do("burn 0.3")
    assert cpu_s(collector) == pytest.approx(0.3, abs=0.05)
    time.sleep(0.05)
    assert cpu_s(collector) <= 2 * TICK_S


def test_cpu_of_a_child_that_came_and_went_between_readings(start: Callable[..., Worker]) -> None:
    """The CPU of a child between two readings, in a session of its own, is counted."""
    worker = start()
    collector = watching(worker)
    worker.do("child 0.3")
    assert cpu_s(collector) == pytest.approx(0.3, abs=0.05)


def test_cpu_of_a_child_seen_alive_and_reaped_later(start: Callable[..., Worker]) -> None:
    """CPU counted while a child lived is not counted again when its parent inherits it."""
    worker = start()
    collector = watching(worker)
    worker.do("hold 0.3")
    assert cpu_s(collector) == pytest.approx(0.3, abs=0.05)
    worker.do("end")
    assert cpu_s(collector) <= 3 * TICK_S
    worker.do("burn 0.1")
    assert cpu_s(collector) == pytest.approx(0.1, abs=0.05)


@pytest.mark.alone
def test_the_busiest_thread_by_its_name(start: Callable[..., Worker]) -> None:
    """The busiest thread has its name and its share of a core, and is followed when it is idle."""
    worker = start()
    collector = watching(worker)
    worker.do("burn 0.2")
    samples = collector.read()
    name = Path(f"/proc/{worker.pid}/comm").read_text().strip()
    busy = only(samples, "cpu.busy_ratio", f"thread:{name}")
    assert busy.value is not None
    assert busy.value * busy.interval_s == pytest.approx(0.2, abs=0.05)
    assert cpu_s(collector, f"thread:{name}") <= 2 * TICK_S


@pytest.mark.alone
def test_threads_are_told_apart(start: Callable[..., Worker]) -> None:
    """Of two threads of a process the busy one is named, with its own time."""
    worker = start()
    collector = connect(Watch("app1", "app", processes=Processes(pids=(worker.pid,))))
    worker.do("burn 0")
    worker.begin("thread spinner 0.6")
    deadline = time.monotonic() + 10
    found: list[Sample] = []
    while not found and time.monotonic() < deadline:
        time.sleep(0.1)
        found = [each for each in collector.read() if each.instance == "thread:spinner" and each.value]
    assert worker.answer() == "done"
    assert found[0].value is not None
    assert 0 < found[0].value < 1.5


def test_a_tree_found_by_its_port(start: Callable[..., Worker]) -> None:
    """A process that listens on the port is found, with its children."""
    worker = start("0")
    port = int(worker.answer())
    collector = connect(Watch("app1", "app", options={"port": port}))
    collector.read()
    worker.do("child 0.2")
    assert cpu_s(collector) == pytest.approx(0.2, abs=0.05)


def test_a_port_nobody_listens_on_until_later(start: Callable[..., Worker]) -> None:
    """A port without a listener is not measured, with reason and remedy, until the server starts."""
    first = start("0")
    port = int(first.answer())
    first.close()
    collector = connect(Watch("app1", "app", processes=Processes(port=port)))
    (missing,) = not_measured(collector, "tier:app")
    assert missing["why"] == f"no process listens on TCP port {port}"
    assert missing["remedy"]
    collector.read()
    second = start(str(port))
    assert second.answer() == str(port)
    values = [only(collector.read(), "cpu.busy_ratio", "tier:app").value for _ in range(12)]
    assert values[0] is None
    assert values[-1] is not None


def not_measured(collector: Collector, instance: str) -> list[dict[str, Any]]:
    entries = collector.inventory()["app1"]["not_measured"]
    return [entry for entry in entries if entry["instance"] == instance]


def test_a_tree_found_by_name_also_after_a_restart(start: Callable[..., Worker]) -> None:
    """After a restart CPU is not negative, and the new process counts from its start."""
    worker = start()
    worker.do("burn 0")
    name = f"pp-test-{os.getpid()}"
    worker.do(f"name {name}")
    collector = connect(Watch("app1", "app", options={"process": name}))
    collector.read()
    worker.do("burn 0.1")
    assert cpu_s(collector) == pytest.approx(0.1, abs=0.05)
    worker.close()
    assert only(collector.read(), "cpu.busy_ratio", "tier:app").value is None
    second = start()
    second.do("burn 0.1")
    second.do(f"name {name}")
    assert 0.1 - TICK_S <= cpu_s(collector) <= 0.3  # with its own start-up


def test_a_process_id_given_to_somebody_else_is_not_the_tier() -> None:
    """A reused process id, with a new start time, is not the tier."""
    table = ProcessTable().read()
    roots = Roots(Processes(pids=(os.getpid(),)))
    assert [found.pid for found in roots.find(table)] == [os.getpid()]
    table[os.getpid()] = table[os.getpid()]._replace(start=1)
    assert roots.find(table) == []
    assert roots.missing is not None


@pytest.mark.root
def test_a_listener_of_another_user_is_not_measured_with_the_remedy(start: Callable[..., Worker]) -> None:
    """For an ordinary user, another user's listener is not measured, with the remedy."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to be two users at once")
    worker = start("0")
    port = int(worker.answer())
    readable, writable = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setuid(65534)
        roots = Roots(Processes(port=port))
        found = roots.find(ProcessTable().read())
        os.write(writable, json.dumps([found, roots.missing]).encode())
        os._exit(0)
    os.close(writable)
    with os.fdopen(readable) as answer:
        found, missing = json.loads(answer.read())
    os.waitpid(pid, 0)
    assert found == []
    assert "this user may not see which" in missing[0]
    assert "process: NAME" in missing[1]


def test_the_ratio_is_of_the_cores_the_tier_may_use(start: Callable[..., Worker]) -> None:
    """One busy process pinned to one core is a ratio of 1, and the inventory names the core."""
    worker = start()
    core = min(os.sched_getaffinity(0))
    os.sched_setaffinity(worker.pid, {core})
    collector = watching(worker)
    assert collector.inventory()["app1"]["tier_cores"] == [core]
    worker.do("burn 0.3")
    samples = collector.read()
    cap = only(samples, "cpu.cores", "tier:app").value
    assert cap is not None
    assert 0 < cap <= 1  # less than one core if a control group limits it
    busy = only(samples, "cpu.busy_ratio", "tier:app")
    assert busy.value is not None
    assert busy.value * busy.interval_s * cap == pytest.approx(0.3, abs=0.05)


@pytest.mark.root
def test_a_control_groups_cap_is_the_tiers_limit(start: Callable[..., Worker]) -> None:
    """With a limit of half a core, `cpu.cores` is 0.5 and CPU use is a ratio of that."""
    controller = Path("/sys/fs/cgroup/cpu")
    if os.geteuid() != 0 or not (controller / "tasks").exists():
        pytest.skip("needs root and the version 1 cpu controller at /sys/fs/cgroup/cpu")
    group = controller / f"pp-test-{os.getpid()}"
    group.mkdir()
    worker = start()
    try:
        (group / "cpu.cfs_quota_us").write_text("50000")
        (group / "tasks").write_text(str(worker.pid))
        collector = watching(worker)
        assert collector.inventory()["app1"]["tier_cap_cores"] == 0.5
        worker.do("burn 0.3")
        samples = collector.read()
        assert only(samples, "cpu.cores", "tier:app").value == 0.5
        busy = only(samples, "cpu.busy_ratio", "tier:app")
        assert busy.value is not None
        assert busy.value * busy.interval_s * 0.5 == pytest.approx(0.3, abs=0.05)
    finally:
        worker.close()
        group.rmdir()
