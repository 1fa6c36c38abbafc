"""The local collector against this machine: what it says must agree with what was really done."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pinchpoint_collectors import local
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.linux.data_io import DataIo, verify_data_io
from pinchpoint_collectors.linux.processes import ProcessTable, Roots
from pinchpoint_collectors.local import LocalKind, tier_processes
from pinchpoint_collectors.proc.diskstats import SECTOR_BYTES
from pinchpoint_collectors.record import Collector, Processes, Sample, Watch

TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class Worker:
    """A stand-in server: see worker.py."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("worker.py")), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid

    def answer(self) -> str:
        """The next line it says."""
        assert self._process.stdout
        return self._process.stdout.readline().strip()

    def do(self, command: str) -> None:
        """Have it done before going on."""
        assert self._process.stdin
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        assert self.answer() == "done"

    def close(self) -> None:
        """End it and its pipes."""
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def start() -> Iterator[Callable[..., Worker]]:
    """Starts workers that end with the test."""
    workers: list[Worker] = []

    def begin(*arguments: str) -> Worker:
        workers.append(Worker(*arguments))
        return workers[-1]

    yield begin
    for worker in workers:
        worker.close()


def connect(*watches: Watch) -> Collector:
    return LocalKind().connect(watches)


def only(samples: Sequence[Sample], metric: str, instance: str) -> Sample:
    (found,) = (each for each in samples if (each.metric, each.instance) == (metric, instance))
    return found


def cpu_s(collector: Collector, instance: str = "tier:app") -> float:
    """CPU seconds since the reading before: the ratio times the cores it is a ratio of."""
    samples = collector.read()
    busy = only(samples, "cpu.busy_ratio", instance)
    assert busy.value is not None
    cores = only(samples, "cpu.cores", "tier:app").value if instance == "tier:app" else 1
    assert cores is not None
    return busy.value * busy.interval_s * cores


def watching(worker: Worker) -> Collector:
    collector = connect(Watch("app1", "app", processes=Processes(pids=(worker.pid,))))
    worker.do("burn 0")  # it is up: its own start is not part of what is measured
    collector.read()
    return collector


def test_cpu_of_the_process_itself(start: Callable[..., Worker]) -> None:
    """0.3 s burnt are 0.3 s seen, to a few clock ticks; then nothing is nothing."""
    worker = start()
    collector = watching(worker)
    worker.do("burn 0.3")
    assert cpu_s(collector) == pytest.approx(0.3, abs=0.05)
    time.sleep(0.05)
    assert cpu_s(collector) <= 2 * TICK_S


def test_cpu_of_a_child_that_came_and_went_between_readings(start: Callable[..., Worker]) -> None:
    """No reading ever saw the child, which had a session of its own; its time is there."""
    worker = start()
    collector = watching(worker)
    worker.do("child 0.3")
    assert cpu_s(collector) == pytest.approx(0.3, abs=0.05)


def test_cpu_of_a_child_seen_alive_and_reaped_later(start: Callable[..., Worker]) -> None:
    """What was counted while it lived is not counted again when its parent inherits it."""
    worker = start()
    collector = watching(worker)
    worker.do("hold 0.3")
    assert cpu_s(collector) == pytest.approx(0.3, abs=0.05)
    worker.do("end")
    assert cpu_s(collector) <= 3 * TICK_S
    worker.do("burn 0.1")
    assert cpu_s(collector) == pytest.approx(0.1, abs=0.05)


def test_the_busiest_thread_by_its_name(start: Callable[..., Worker]) -> None:
    """Its name and its time of one core; followed from then on, also when idle."""
    worker = start()
    collector = watching(worker)
    worker.do("burn 0.2")
    samples = collector.read()
    name = Path(f"/proc/{worker.pid}/comm").read_text().strip()
    busy = only(samples, "cpu.busy_ratio", f"thread:{name}")
    assert busy.value is not None
    assert busy.value * busy.interval_s == pytest.approx(0.2, abs=0.05)
    assert cpu_s(collector, f"thread:{name}") <= 2 * TICK_S


def test_threads_are_told_apart(start: Callable[..., Worker]) -> None:
    """Two threads of one process: the busy one's name leads, with its time alone."""
    worker = start()
    collector = connect(Watch("app1", "app", processes=Processes(pids=(worker.pid,))))
    worker.do("burn 0")
    assert worker._process.stdin
    worker._process.stdin.write("thread spinner 0.6\n")
    worker._process.stdin.flush()
    deadline = time.monotonic() + 10
    found: list[Sample] = []
    while not found and time.monotonic() < deadline:
        time.sleep(0.1)
        found = [each for each in collector.read() if each.instance == "thread:spinner" and each.value]
    assert worker.answer() == "done"
    assert found[0].value is not None
    assert 0 < found[0].value < 1.5


def test_a_tree_found_by_its_port(start: Callable[..., Worker]) -> None:
    """Whoever listens, with its children; nothing else needs to be known."""
    worker = start("0")
    port = int(worker.answer())
    collector = connect(Watch("app1", "app", options={"port": port}))
    collector.read()
    worker.do("child 0.2")
    assert cpu_s(collector) == pytest.approx(0.2, abs=0.05)


def test_a_port_nobody_listens_on_until_later(start: Callable[..., Worker]) -> None:
    """Not measured with reason and remedy; found when the server comes up."""
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
    """The old process's end is no negative CPU; the new one is the tier's from its start."""
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
    assert 0.1 - TICK_S <= cpu_s(collector) <= 0.3  # with its own start


def test_a_process_id_given_to_somebody_else_is_not_the_tier() -> None:
    """The start time decides: a table where the id has a new start finds nobody."""
    table = ProcessTable().read()
    roots = Roots(Processes(pids=(os.getpid(),)))
    assert [found.pid for found in roots.find(table)] == [os.getpid()]
    table[os.getpid()] = table[os.getpid()]._replace(start=1)
    assert roots.find(table) == []
    assert roots.missing is not None


@pytest.mark.root
def test_a_listener_of_another_user_is_not_measured_with_the_remedy(start: Callable[..., Worker]) -> None:
    """An ordinary user sees that somebody listens, not who: said so, not guessed."""
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
    """Pinned to one core, one busy process is a full tier; the inventory says which core."""
    worker = start()
    core = min(os.sched_getaffinity(0))
    os.sched_setaffinity(worker.pid, {core})
    collector = watching(worker)
    assert collector.inventory()["app1"]["tier_cores"] == [core]
    worker.do("burn 0.3")
    samples = collector.read()
    cap = only(samples, "cpu.cores", "tier:app").value
    assert cap is not None
    assert 0 < cap <= 1  # less than one where a control group caps it, too
    busy = only(samples, "cpu.busy_ratio", "tier:app")
    assert busy.value is not None
    assert busy.value * busy.interval_s * cap == pytest.approx(0.3, abs=0.05)


@pytest.mark.root
def test_a_control_groups_cap_is_the_tiers_limit(start: Callable[..., Worker]) -> None:
    """Half a core: `cpu.cores` says 0.5 and a process that wants all it can get is at its limit."""
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
        assert (only(samples, "cpu.busy_ratio", "tier:app").value or 0) > 0.8
    finally:
        worker.close()
        group.rmdir()


def sectors_written(device: str) -> int:
    return int(Path(f"/sys/block/{device}/stat").read_text().split()[6])


def test_bytes_written_agree_with_what_was_written(tmp_path: Path, real_disk: Callable[[Path], str]) -> None:
    """8 MiB and a sync: at least so much, and no more than /sys says from before to after."""
    device = real_disk(tmp_path)
    outside = sectors_written(device)
    collector = connect(Watch("app1", "app", disks={"data": str(tmp_path)}))
    collector.read()
    with (tmp_path / "data").open("wb") as file:
        file.write(os.urandom(8 << 20))
        file.flush()
        os.fsync(file.fileno())
    samples = collector.read()
    written = only(samples, "disk.write_bytes_per_s", device)
    assert written.value is not None
    seen = written.value * written.interval_s
    assert seen * 1.000001 >= 8 << 20
    assert seen <= (sectors_written(device) - outside) * SECTOR_BYTES * 1.000001
    latency = only(samples, "disk.write_latency_s", device)
    assert latency.value is not None
    assert latency.weight is not None
    assert latency.weight >= 1


def test_hosts_of_one_machine_are_read_once_and_answer_alike() -> None:
    """Each host gets every machine-wide sample, with the same stamp and value, and the same machine id."""
    kind = LocalKind()
    watches = [Watch("sql1", "sql"), Watch("web1", "web")]
    assert len({kind.machine(watch) for watch in watches}) == 1
    collector = kind.connect(watches)
    collector.read()
    time.sleep(0.05)
    samples = collector.read()
    by_host = {
        host: [each._replace(host="") for each in samples if each.host == host] for host in ("sql1", "web1")
    }
    assert by_host["sql1"] == by_host["web1"]
    assert len(by_host["sql1"]) > 10
    facts = collector.inventory()
    assert facts["sql1"]["machine_id"] == facts["web1"]["machine_id"]
    assert (facts["sql1"]["tier"], facts["web1"]["tier"]) == ("sql", "web")
    collector.close()
    collector.close()


def test_every_metric_is_in_the_readme(tmp_path: Path) -> None:
    """The table a reader goes by names everything that is sent, and the inventory everything that is told."""
    readme = (Path(__file__).parents[2] / "collectors" / "README.md").read_text()
    watch = Watch(
        "app1", "app", {"data": str(tmp_path)}, Processes(pids=(os.getpid(),)), options={"verify": True}
    )
    collector = connect(watch)
    collector.read()
    time.sleep(0.02)
    assert [each.metric for each in collector.read() if f"`{each.metric}`" not in readme] == []
    facts = collector.inventory()["app1"]
    assert [key for key in (*facts, *facts["roles"]["data"]) if f"`{key}`" not in readme] == []
    assert json.loads(json.dumps(facts)) == facts


def test_the_first_reading_has_what_needs_no_difference() -> None:
    """Memory now, no rates; the second has them, with the time that really passed."""
    collector = connect(Watch("app1", "app"))
    first = {each.metric for each in collector.read()}
    assert "mem.available_bytes" in first
    assert "cpu.busy_ratio" not in first
    time.sleep(0.2)
    second = only(collector.read(), "cpu.busy_ratio", "")
    assert second.value is not None
    assert 0 <= second.value <= 1
    assert 0.2 <= second.interval_s < 5
    assert abs(second.time_ns - time.time_ns()) < 5e9


def test_a_full_reading_is_cheap(start: Callable[..., Worker]) -> None:
    """Five hosts and all processes in less than 10 ms of CPU (measured: 2 ms), the best of ten."""
    worker = start()
    watches = [Watch(f"h{n}", f"t{n}", processes=Processes(pids=(worker.pid,))) for n in range(5)]
    collector = connect(*watches)
    collector.read()
    costs = []
    for _ in range(10):
        begin = time.thread_time()
        collector.read()
        costs.append(time.thread_time() - begin)
    processes = len(ProcessTable().read())
    assert min(costs) < 0.010 + 20e-6 * processes


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"process": []}, r"process: found \[\]; allowed: a name or a list of names"),
        ({"process": 5}, "process: found 5"),
        ({"port": "5432"}, "port: found '5432'; allowed: a number from 1 to 65535"),
        ({"port": True}, "port: found True"),
        ({"port": 5432, "process": "postgres"}, "`process` and `port` are both given"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    """Host, option, what was found, what is allowed."""
    with pytest.raises(CollectorError, match=message) as caught:
        connect(Watch("sql1", "sql", options=options))
    assert "host 'sql1'" in str(caught.value)


def test_what_the_user_says_goes_before_what_was_derived() -> None:
    """`port:` in farm.yaml wins over the processes somebody found by the endpoint."""
    watch = Watch("sql1", "sql", processes=Processes(port=1), options={"port": 2})
    assert tier_processes(watch) == Processes(port=2)
    assert tier_processes(Watch("sql1", "sql")) is None


def test_a_wrong_disk_names_host_and_role() -> None:
    """The place in farm.yaml, not just the path."""
    with pytest.raises(CollectorError, match="host 'sql1', role 'log': disk '/no/such': No such file"):
        connect(Watch("sql1", "sql", disks={"log": "/no/such"}))


def test_one_host_twice_is_refused() -> None:
    """Its samples would be there twice."""
    with pytest.raises(CollectorError, match="'db1' is watched by 'local' more than once"):
        connect(Watch("db1", "sql"), Watch("db1", "nosql"))


def test_another_system_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer with a remedy, not a traceback about /proc."""
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    with pytest.raises(CollectorError, match="this is Darwin; run Pinchpoint on Linux"):
        connect(Watch("sql1", "sql"))


def test_a_role_without_a_disk_is_not_measured_and_says_why() -> None:
    """Shared memory is a folder, but no disk."""
    if not Path("/dev/shm").is_dir():
        pytest.skip("needs /dev/shm")
    facts = connect(Watch("app1", "app", disks={"tempdb": "/dev/shm"})).inventory()["app1"]
    assert facts["roles"]["tempdb"]["device"] is None
    (missing,) = (entry for entry in facts["not_measured"] if entry["instance"] == "tempdb")
    assert "in memory" in missing["why"]
    assert missing["remedy"]


def test_each_file_system_is_tried_out_once(
    tmp_path: Path, real_disk: Callable[[Path], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two roles on one file system share the answer; a role that nobody allowed to be tried has none."""
    real_disk(tmp_path)
    (tmp_path / "wal").mkdir()
    disks = {"data": str(tmp_path), "log": str(tmp_path / "wal")}
    calls: list[Path] = []

    def counted(path: Path, device: str) -> DataIo:
        calls.append(path)
        return verify_data_io(path, device)

    monkeypatch.setattr(local, "verify_data_io", counted)
    facts = connect(
        Watch("sql1", "sql", disks, options={"verify": True}), Watch("web1", "web", disks)
    ).inventory()
    assert calls == [tmp_path]
    roles = facts["sql1"]["roles"]
    assert roles["data"]["data_io"] == roles["log"]["data_io"] != "not verified"
    assert facts["web1"]["roles"]["data"]["data_io"] == "not verified"
