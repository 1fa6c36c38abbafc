"""Tests of a tier on a shared host: CPU in each reading; threads and limits on request."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import pytest
from collectors.ssh.recorded import hello

from pinchpoint_collectors.linux_over_ssh.hello import parse
from pinchpoint_collectors.linux_over_ssh.tiers import RemoteTiers, parse_all, pattern
from pinchpoint_collectors.record import Processes, Sample, Watch

NS = 1_000_000_000
MIB = 2**20
ALLOWED = {"/proc/10/status": "Name:\tpostgres\nCpus_allowed_list:\t0-3\n"}
MOUNT_V2 = "/proc/self/mountinfo:28 27 0:25 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"
MOUNTS_V1 = (
    "/proc/self/mountinfo:28 27 0:25 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct",
    "/proc/self/mountinfo:29 27 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory",
)
V2 = "/sys/fs/cgroup/system.slice/cri:postgres x.service"
CAPPED_V2 = {
    **ALLOWED,
    "/proc/10/cgroup": "0::/system.slice/cri:postgres x.service\n",
    f"{V2}/cpu.max": "50000 100000\n",
    f"{V2}/memory.max": f"{80 * MIB}\n",
    f"{V2}/memory.high": "max\n",
    f"{V2}/memory.current": "70000000\n",
    f"{V2}/memory.stat": "inactive_file 20971520\nworkingset_refault_file 1200\npgsteal 40\npgmajfault 2\n",
    f"{V2}/memory.events": "low 0\nhigh 2\nmax 7\n",
    "/sys/fs/cgroup/system.slice/cpu.max": "max 100000\n",
    "/sys/fs/cgroup/system.slice/memory.max": "max\n",
    "/sys/fs/cgroup/system.slice/memory.high": "max\n",
}


def stat(pid: int, parent: int, name: str, own: int, reaped: int = 0, threads: int = 1) -> str:
    """Return /proc/PID/stat with 52 fields."""
    head = (
        f"{pid} ({name}) S {parent} 1 1 0 -1 4194560 5 0 0 0 {own} 0 {reaped} 0 20 0 {threads} 0 {900 + pid}"
    )
    return head + " 0" * 30


def text(*processes: str) -> str:
    return "\n".join(processes)


class RemoteMachine:
    """Simulates the host: it returns its files as grep prints them."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = dict(files)
        self.uptime_s = 100.0
        self.answers: dict[int, list[str]] = {}
        self.asked: list[Sequence[str]] = []

    def ask_files(self, patterns: Sequence[str]) -> int:
        self.asked.append(patterns)
        files = {**self.files, "/proc/uptime": f"{self.uptime_s:.2f} 1.00\n"}
        number = len(self.asked)
        self.answers[number] = [
            f"{path}:{line}"
            for each in patterns
            for path, content in files.items()
            if re.fullmatch(re.escape(each).replace(r"\?", ".").replace(r"\*", "[^/]*"), path)
            for line in content.splitlines()
        ]
        return number

    def wait(self, _until_s: float, enough: Callable[[], bool]) -> None:
        assert enough()


class Talk:
    """Readings of one host with a tier of processes named postgres, two seconds apart."""

    def __init__(self, files: Mapping[str, str], *more: str, name: str = "postgres") -> None:
        watch = Watch("sql1", "sql", processes=Processes(names=(name,)))
        self.there = RemoteMachine(files)
        self.tiers = RemoteTiers([watch], parse(hello(*more)))
        self._readings = 0

    def prepared(self, *processes: str) -> Talk:
        """Set the known processes, as after connecting."""
        self.tiers.find(parse_all(text(*processes)))
        self.tiers.prepare(self.there, until_s=1e18)
        return self

    def read(self, *processes: str) -> list[Sample]:
        """Return the samples of one reading."""
        interval_s = 2.0 if self._readings else 0.0
        self._readings += 1
        self.there.uptime_s += 2.0
        at_ns = self._readings * 2 * NS
        uptime_s = self.there.uptime_s - 0.01
        return list(self.tiers.cpu(text(*processes), at_ns, at_ns, uptime_s, interval_s))


def values(samples: Sequence[Sample]) -> dict[tuple[str, str], float | None]:
    assert {each.host for each in samples} <= {"sql1"}
    return {(each.metric, each.instance): each.value for each in samples}


def test_a_tier_is_its_processes_and_all_that_descend_from_them() -> None:
    """Of 800 ticks the server used 100, its child 50 and a new child 30; other processes do not count."""
    before = stat(1, 0, "systemd", 9), stat(10, 1, "postgres", 500), stat(11, 10, "worker", 7)
    after = (
        stat(1, 0, "systemd", 99),
        stat(10, 1, "postgres", 600),
        stat(11, 10, "worker", 57),
        stat(12, 10, "backend", 30),
        stat(13, 1, "other", 1000),
    )
    talk = Talk(ALLOWED).prepared(*before)
    assert values(talk.read(*before)) == {("cpu.cores", "tier:sql"): 4.0}
    assert values(talk.read(*after)) == {
        ("cpu.cores", "tier:sql"): 4.0,
        ("cpu.busy_ratio", "tier:sql"): 180 / 800,
    }


def test_a_tier_that_is_gone_is_not_measured() -> None:
    """A tier without processes is null, not idle."""
    server = stat(10, 1, "postgres", 500)
    talk = Talk(ALLOWED).prepared(server)
    talk.read(server)
    assert set(values(talk.read(stat(1, 0, "systemd", 9))).values()) == {None}


def test_names_are_cut_as_the_kernel_cuts_them() -> None:
    """Process names are cut to 15 characters, as the kernel does."""
    server = stat(10, 1, "prometheus-node", 5)
    talk = Talk(ALLOWED, name="prometheus-node-exporter").prepared(server)
    assert set(values(talk.read(server)).values()) == {4.0}


def test_a_process_with_a_strange_name_spoils_no_other() -> None:
    """A name with spaces and parentheses is read; one with a line break is left out."""
    found = parse_all(text(stat(10, 1, "a) b (c", 5), stat(11, 1, "two\nlines", 5), stat(12, 1, "ok", 7)))
    assert {pid: one.name for pid, one in found.items()} == {10: "a) b (c", 12: "ok"}


def test_caps_of_version_2_are_asked_for_step_by_step() -> None:
    """For version 2 the group, its limits up to the root, and the available memory are requested in turn."""
    server = stat(10, 1, "postgres", 500)
    talk = Talk(CAPPED_V2, MOUNT_V2).prepared(server)
    assert talk.tiers.facts("sql1") == {
        "tier_cores": [0, 1, 2, 3],
        "tier_cap_cores": 0.5,
        "tier_cap_bytes": 80 * MIB,
        "tier_processes": [{"pid": 10, "name": "postgres", "ports": (), "directory": None}],
    }
    assert values(talk.read(server))["cpu.cores", "tier:sql"] == 0.5
    talk.tiers.go_on(talk.there)
    talk.read(server)
    left = 80 * MIB - (70_000_000 - 20971520)
    first = values(talk.tiers.go_on(talk.there))
    assert first["mem.available_bytes", "tier:sql"] == left
    assert first["mem.available_ratio", "tier:sql"] == left / (80 * MIB)
    talk.there.files[f"{V2}/memory.events"] = "low 0\nhigh 2\nmax 11\n"
    busy = values(talk.read(stat(10, 1, "postgres", 550)))
    assert busy["cpu.busy_ratio", "tier:sql"] == 0.5, "half of the half core it may use"
    talk.tiers.go_on(talk.there)
    talk.read(server)
    samples = talk.tiers.go_on(talk.there)
    assert values(samples)["mem.limit_hits_per_s", "tier:sql"] == 2.0
    assert {each.interval_s for each in samples} == {2.0}


def test_caps_of_version_1() -> None:
    """For version 1 each controller's own tree is read."""
    cpu, memory = "/sys/fs/cgroup/cpu,cpuacct/pg", "/sys/fs/cgroup/memory/pg"
    files = {
        **ALLOWED,
        "/proc/10/cgroup": "4:memory:/pg\n3:cpu,cpuacct:/pg\n",
        f"{cpu}/cpu.cfs_quota_us": "150000\n",
        f"{cpu}/cpu.cfs_period_us": "100000\n",
        "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
        "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        f"{memory}/memory.limit_in_bytes": f"{64 * MIB}\n",
        f"{memory}/memory.usage_in_bytes": f"{60 * MIB}\n",
        f"{memory}/memory.stat": f"total_inactive_file {10 * MIB}\n",
        f"{memory}/memory.failcnt": "3\n",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
    }
    server = stat(10, 1, "postgres", 500)
    talk = Talk(files, *MOUNTS_V1).prepared(server)
    assert talk.tiers.facts("sql1")["tier_cap_cores"] == 1.5
    assert talk.tiers.facts("sql1")["tier_cap_bytes"] == 64 * MIB
    talk.read(server)
    talk.tiers.go_on(talk.there)
    talk.read(server)
    assert values(talk.tiers.go_on(talk.there))["mem.available_bytes", "tier:sql"] == 14 * MIB


def test_what_is_not_known_yet_is_null_and_never_another_ratio() -> None:
    """After a server's restart its limits are known some readings later; until then they are null."""
    files = {**CAPPED_V2, **{path.replace("/10/", "/77/"): text for path, text in CAPPED_V2.items()}}
    first, second = stat(10, 1, "postgres", 500), stat(77, 1, "postgres", 40)
    talk = Talk(files, MOUNT_V2).prepared(first)
    talk.read(first)
    talk.tiers.go_on(talk.there)
    seen = []
    for _ in range(5):
        seen.append(values(talk.read(second))["cpu.cores", "tier:sql"])
        talk.tiers.go_on(talk.there)
    assert seen[0] is None
    assert seen[-1] == 0.5
    assert set(seen) == {None, 0.5}


def threads(pid: int, **ticks: int) -> dict[str, str]:
    """Return the stat files of a process's threads."""
    tids = range(pid, pid + len(ticks))
    return {
        f"/proc/{pid}/task/{tid}/stat": stat(tid, 1, name, own) + "\n"
        for tid, (name, own) in zip(tids, ticks.items(), strict=True)
    }


def test_the_busiest_thread_is_told_apart() -> None:
    """Of three threads the one with 180 ticks in 2 s is named; an idle process is not asked for."""
    server, idle = stat(10, 1, "postgres", 500, threads=3), stat(30, 1, "postgres", 7, threads=2)
    files = {**ALLOWED, "/proc/30/status": ALLOWED["/proc/10/status"], **threads(30, main=5, other=2)}
    talk = Talk({**files, **threads(10, main=100, writer=300, reader=100)}).prepared(server, idle)
    talk.read(server, idle)
    talk.tiers.go_on(talk.there)
    talk.there.files.update(threads(10, main=110, writer=480, reader=110))
    worked = stat(10, 1, "postgres", 700, threads=3)
    talk.read(worked, idle)
    assert talk.tiers.go_on(talk.there) == [], "the first look has nothing before it"
    assert "/proc/10/task/*/stat" in talk.there.asked[-1]
    assert "/proc/30/task/*/stat" not in talk.there.asked[-1]
    talk.read(worked, idle)
    samples = talk.tiers.go_on(talk.there)
    assert values(samples) == {("cpu.busy_ratio", "thread:writer"): pytest.approx(0.9)}
    (sample,) = samples
    assert sample.interval_s == pytest.approx(2.0)
    assert sample.time_ns == pytest.approx(4 * NS + NS // 100, abs=1000)
    talk.read(worked, idle)
    assert values(talk.tiers.go_on(talk.there)) == {("cpu.busy_ratio", "thread:writer"): 0.0}, "followed"


def test_a_question_that_is_not_answered_is_not_asked_again() -> None:
    """While a request is unanswered, it is not sent again."""
    server = stat(10, 1, "postgres", 500)
    talk = Talk(ALLOWED).prepared(server)
    talk.read(server)
    talk.tiers.go_on(talk.there)
    asked = len(talk.there.asked)
    late = talk.there.answers.pop(asked)
    talk.read(server)
    assert talk.tiers.go_on(talk.there) == []
    assert len(talk.there.asked) == asked
    talk.there.answers[asked] = late
    talk.tiers.go_on(talk.there)
    assert len(talk.there.asked) == asked + 1


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("/proc/10/cgroup", "/proc/10/cgroup"),
        ("/sys/fs/cgroup/a b*[c]?\\x2d/cpu.max", "/sys/fs/cgroup/a?b??c???x2d/cpu.max"),
    ],
)
def test_a_path_is_one_word_of_the_shell(path: str, word: str) -> None:
    """A group's path is one word for the shell, whatever its name."""
    assert pattern(path) == word
