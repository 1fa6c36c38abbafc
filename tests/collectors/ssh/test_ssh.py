"""Tests of the collector with a real sshd on this machine, compared with ``local``."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from collectors.host_contract import says_what_local_says
from collectors.workers import Worker
from sshd_hosts import SshdHost, sshd_host
from support import require, until

from pinchpoint_collectors import registry
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.linux_over_ssh import script as scripts
from pinchpoint_collectors.record import Collector, GapReporter, Sample, Watch
from pinchpoint_collectors.remote import collector as remote
from pinchpoint_collectors.ssh import SshKind


@pytest.fixture(scope="module")
def host() -> Iterator[SshdHost]:
    with sshd_host() as found:
        yield found


def watch(host: SshdHost, name: str = "sql1", disks: dict[str, str] | None = None, **more: Any) -> Watch:
    return Watch(name, "sql", disks or {}, options=host.options(**more))


def gone(host: SshdHost, within_s: float = 10.0) -> bool:
    """Return True if no process of the collector is left on the host."""
    return until(lambda: not host.ours(), within_s=within_s)


def is_busy(sample: Sample) -> bool:
    return (sample.metric, sample.instance) == ("cpu.busy_ratio", "")


def read_often(collector: Collector, times: int = 5) -> None:
    for _ in range(times):
        collector.read()


def second_reading(collector: Collector) -> Sequence[Sample]:
    """Return the second reading, which has rates; extra readings, as of threads, may come without rates."""
    collector.read()
    for _ in range(30):
        found = collector.read()
        if any(map(is_busy, found)):
            return found
    raise AssertionError("no reading with rates came")


def test_it_says_what_local_says(host: SshdHost, tmp_path: Path) -> None:
    """The metrics, instances, machine and inventory are those of ``local``."""
    disks = {"data": str(tmp_path)}
    there = SshKind().connect([watch(host, disks=disks)])
    try:
        theirs, facts = second_reading(there), there.inventory()["sql1"]
    finally:
        there.close()
    own = {("collector.cpu_s", f"ssh/{where}") for where in ("host", "client")}
    own |= {(f"collector.{name}", "ssh") for name in ("received_bytes", "clock_offset_s", "clock_error_s")}
    says_what_local_says(theirs, facts, disks, own)
    assert gone(host)


def test_two_hosts_of_one_address_are_read_once(host: SshdHost) -> None:
    """Two hosts with one address share one session, and each gets every sample under its name."""
    kind = registry.kind("ssh")
    watches = [watch(host, "sql1"), watch(host, "web1")]
    assert len({kind.machine(each) for each in watches}) == 1
    collector = kind.connect(watches)
    try:
        samples = second_reading(collector)
        ours = host.ours()
        tops = [one for one in ours if one.ppid() not in {other.pid for other in ours}]
        assert len(tops) == 1
    finally:
        collector.close()
    by_host = {
        name: [each._replace(host="") for each in samples if each.host == name] for name in ("sql1", "web1")
    }
    assert len(by_host["sql1"]) > 20
    assert {each[3:5] for each in by_host["sql1"]} == {each[3:5] for each in by_host["web1"]}


def test_readings_stand_at_whole_intervals_and_come_often(host: SshdHost) -> None:
    """Five readings a second arrive without loss at even intervals of the host's clock."""
    collector = SshKind().connect([watch(host, interval="200ms")])
    try:
        end = time.monotonic() + 2.5
        samples: list[Sample] = []
        while time.monotonic() < end:
            samples += [each for each in collector.read() if is_busy(each)]
    finally:
        collector.close()
    spaced = [each.interval_s for each in samples[1:]]
    assert len(samples) >= 8
    assert sum(spaced) / len(spaced) == pytest.approx(0.2, rel=0.3)
    covered_s = (samples[-1].time_ns - samples[0].time_ns) / 1e9
    assert covered_s == pytest.approx(sum(spaced), abs=0.02)


def test_a_tier_that_shares_the_host_is_its_processes(host: SshdHost) -> None:
    """A tier on a shared host is its processes; an unknown process name is in the inventory."""
    worker, name = Worker(), f"pp-{os.getpid()}"
    worker.do(f"name {name}")
    worker.begin("burn 30")
    watches = [watch(host, "sql1", process=[name]), watch(host, "web1", process="nobody-is-called-so")]
    collector = SshKind().connect(watches)
    try:
        samples = second_reading(collector)
        facts = collector.inventory()
    finally:
        collector.close()
        worker.close()
    found = {(each.host, each.metric): each.value for each in samples if each.instance == "tier:sql"}
    cap, cores = facts["sql1"]["tier_cap_cores"], len(facts["sql1"]["tier_cores"])
    assert found["sql1", "cpu.cores"] == (cores if cap is None else min(cap, cores))
    busy = found["sql1", "cpu.busy_ratio"]
    assert busy is not None
    assert 0 < busy < 1.5
    assert found["web1", "cpu.busy_ratio"] is None
    said = {name: [each["why"] for each in facts[name]["not_measured"]] for name in facts}
    assert "no process named nobody-is-called-so runs there" in said["web1"]
    assert not any(why.startswith("no process") for why in said["sql1"])


@pytest.mark.slow  # waits for the pause
def test_a_pause_in_which_nobody_reads_is_no_gap(host: SshdHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a long pause without a reading, a new session starts and no gap is reported."""
    monkeypatch.setattr(remote, "_IDLE_S", 3.0)
    collector = SshKind().connect([watch(host)])
    try:
        second_reading(collector)
        time.sleep(3.5)
        assert second_reading(collector)
        assert isinstance(collector, GapReporter)
        assert [each.event for each in collector.incidents()] == []
    finally:
        collector.close()
    assert gone(host)


def test_the_clock_of_this_machine_is_right_and_what_watching_costs_is_said(host: SshdHost) -> None:
    """On this machine the clock offset is zero within its error, and the costs on both sides are reported."""
    collector = SshKind().connect([watch(host)])
    try:
        readings = [collector.read() for _ in range(5)]
    finally:
        collector.close()
    clock = {each.metric: each.value for each in readings[-1] if each.metric.startswith("collector.clock")}
    error_s, offset_s = clock["collector.clock_error_s"], clock["collector.clock_offset_s"]
    assert error_s is not None
    assert offset_s is not None
    assert 0 < error_s < 0.5
    assert abs(offset_s) <= error_s
    assert isinstance(collector, GapReporter)
    assert [each.event for each in collector.incidents() if each.event == "clock_offset"] == []
    received = [
        each.value or 0 for found in readings for each in found if each.metric == "collector.received_bytes"
    ]
    assert 5_000 < sum(received) < 1_000_000
    costs = [each.value for found in readings for each in found if each.metric == "collector.cpu_s"]
    # in clock ticks, so single values may be 0
    assert all(value is not None and value >= 0 for value in costs)


def test_nothing_is_left_when_we_are_killed(host: SshdHost) -> None:
    """If the collector is killed, ssh's input ends and all its processes on the host end."""
    collector: Any = SshKind().connect([watch(host)])
    collector.read()
    assert host.ours()
    process = collector._session._link._process
    process.kill()
    process.wait()
    nothing_left = gone(host)
    collector.close()
    assert nothing_left


def test_what_was_ended_on_the_host_is_started_again(host: SshdHost) -> None:
    """After a kill on the host one reading fails, a later one works, and the gap is reported."""
    collector = SshKind().connect([watch(host)])
    try:
        second_reading(collector)
        for one in host.ours():
            one.kill()
        with pytest.raises(CollectorError, match="was ended there"):
            read_often(collector)
        found: list[str] = []

        def told() -> bool:
            try:
                collector.read()
            except CollectorError:
                return False
            assert isinstance(collector, GapReporter)
            found.extend(each.event for each in collector.incidents())
            return "gap" in found

        until(told)
        assert second_reading(collector)
    finally:
        collector.close()
    assert gone(host)


@pytest.mark.slow  # three shells and servers; the other tests use dash
@pytest.mark.parametrize("shell", ["dash", "busybox ash", "bash --posix"])
def test_it_runs_in_every_posix_shell(shell: str, tmp_path: Path) -> None:
    """The samples are the same in each POSIX shell, with its own tools if it has any."""
    program = shell.split(maxsplit=1)[0]
    require(program, program)
    path = tmp_path / "bin"
    path.mkdir()
    tmp_path.chmod(0o755)
    (path / "sh").write_text(f'#!/bin/sh\nexec {shutil.which(program)} {" ".join(shell.split()[1:])} "$@"\n')
    (path / "sh").chmod(0o755)
    if program == "busybox":
        busybox = shutil.which("busybox")
        assert busybox is not None
        for tool in ("cat", "date", "grep", "sed", "sleep", "ls", "readlink", "sort", "uname"):
            (path / tool).symlink_to(busybox)
    begin = (
        f'PATH={path}:$PATH; eval "$(printf "%s\\n" "$SSH_ORIGINAL_COMMAND" | sed "s|/bin/sh|{path}/sh|g")"'
    )
    wrapper = tmp_path / "login"
    wrapper.write_text(f"#!/bin/sh\n{begin}\n")
    wrapper.chmod(0o755)
    worker = Worker()
    worker.do(f"name pp-{shell[:4]}-{os.getpid()}")
    worker.begin("thread spinner 30")
    name = Path(f"/proc/{worker.pid}/comm").read_text().strip()
    with sshd_host(str(wrapper)) as other:
        collector = SshKind().connect([watch(other, disks={"data": "/"}, process=name)])
        try:
            samples = [*second_reading(collector), *(each for _ in range(4) for each in collector.read())]
            facts = collector.inventory()["sql1"]
        finally:
            collector.close()
            worker.close()
        assert gone(other)
    metrics = {each.metric for each in samples}
    assert {"cpu.busy_ratio", "mem.available_bytes", "net.received_bytes_per_s"} <= metrics
    assert {"tier:sql", "thread:spinner"} <= {each.instance for each in samples if each.value}
    assert facts["tier_cores"]


def test_a_host_whose_sleep_and_date_know_whole_seconds_only(tmp_path: Path) -> None:
    """A system with whole seconds only is read once a second with 10 ms steps, and this is reported."""
    path = tmp_path / "bin"
    path.mkdir()
    tmp_path.chmod(0o755)
    sleep, date = shutil.which("sleep"), shutil.which("date")
    (path / "sleep").write_text(f'#!/bin/sh\ncase $1 in *.*) exit 1 ;; esac\nexec {sleep} "$@"\n')
    (path / "date").write_text(f'#!/bin/sh\n[ "$1" = +%s%N ] && exec {date} +%sN\nexec {date} "$@"\n')
    for tool in ("sleep", "date"):
        (path / tool).chmod(0o755)
    wrapper = tmp_path / "login"
    wrapper.write_text(f'#!/bin/sh\nPATH={path}:$PATH\nexport PATH\neval "$SSH_ORIGINAL_COMMAND"\n')
    wrapper.chmod(0o755)
    with sshd_host(str(wrapper)) as other:
        collector = SshKind().connect([watch(other, interval="200ms")])
        try:
            busy = [each for _ in range(2) for each in second_reading(collector) if is_busy(each)]
            assert isinstance(collector, GapReporter)
            (incident,) = (each for each in collector.incidents() if each.event == "interval_not_kept")
            facts = collector.inventory()["sql1"]
        finally:
            collector.close()
    assert incident.fields["interval_s"] == 1.0
    assert all(0.9 < each.interval_s < 5 for each in busy)
    assert all(abs(each.time_ns - time.time_ns()) < 20e9 for each in busy)
    assert facts["clock"]["error_s"] >= 0.5


def test_a_jump_host_of_the_users_configuration(host: SshdHost, tmp_path: Path) -> None:
    """An alias in the user's ssh configuration, with port, key and jump host, is enough for farm.yaml."""
    config = tmp_path / "config"
    with sshd_host() as inner:
        config.write_text(
            f"Host bastion\n  HostName {host.address}\n  Port {host.port}\n  IdentityFile {host.folder}/key\n"
            f"  UserKnownHostsFile {host.folder}/known_hosts\n"
            f"Host db\n  HostName {inner.address}\n  Port {inner.port}\n  IdentityFile {inner.folder}/key\n"
            f"  UserKnownHostsFile {inner.folder}/known_hosts\n  ProxyJump bastion\n"
            f"Host *\n  User {host.user}\n  IdentitiesOnly yes\n  GlobalKnownHostsFile none\n"
        )
        options = {"address": "db", "config": str(config)}
        collector = SshKind().connect([Watch("sql1", "sql", options=options)])
        try:
            assert second_reading(collector)
            assert inner.ours()
            assert host.ours() == []
        finally:
            collector.close()
        assert gone(inner)


def test_a_wrong_key_is_a_sentence(host: SshdHost, tmp_path: Path) -> None:
    """A wrong key's error states which logins sshd accepts and what to do."""
    config = tmp_path / "config"
    config.write_text((host.folder / "client_config").read_text().replace(f"{host.folder}/key", "/dev/null"))
    with pytest.raises(CollectorError, match=r"accepts no key of ours \(it takes publickey\)"):
        SshKind().connect([watch(host, config=str(config))])


def test_an_unknown_host_key_is_a_sentence(host: SshdHost, tmp_path: Path) -> None:
    """An unknown host key is refused as known_hosts requires."""
    config = tmp_path / "config"
    config.write_text(
        (host.folder / "client_config").read_text().replace("known_hosts\n", "nobody_knows\n", 1)
    )
    with pytest.raises(CollectorError, match="its host key is not known here"):
        SshKind().connect([watch(host, config=str(config))])


def test_nobody_listens_there(host: SshdHost) -> None:
    """A port without a listener gives an error with the remedy."""
    with pytest.raises(CollectorError, match="nothing listens there; start sshd"):
        SshKind().connect([Watch("sql1", "sql", options={"address": "127.0.0.1", "port": 1})])


def test_an_account_without_a_shell_is_a_sentence() -> None:
    """An account without a shell gives one sentence."""
    nologin = require("nologin", "login")
    words = "there is no shell that runs our commands"
    with sshd_host(nologin) as other, pytest.raises(CollectorError, match=words):
        SshKind().connect([watch(other)])


def test_a_banner_of_the_login_shell_is_no_reading(tmp_path: Path) -> None:
    """The output of login scripts is ignored."""
    wrapper = tmp_path / "login"
    tmp_path.chmod(0o755)
    wrapper.write_text('#!/bin/sh\necho "Welcome. #e"; echo "#e"\neval "$SSH_ORIGINAL_COMMAND"\n')
    wrapper.chmod(0o755)
    with sshd_host(str(wrapper)) as other:
        collector = SshKind().connect([watch(other)])
        try:
            assert second_reading(collector)
        finally:
            collector.close()


def test_the_script_writes_no_file_and_names_no_secret() -> None:
    """The script writes no file and contains no secret."""
    text = scripts.script(1.0, 40.0, ("/proc/stat",), ("/it's here",), processes=False)
    targets = set(re.findall(r"(?<!-)>+\s*([^\s;)'\"]+)", text))
    assert targets == {"/dev/null", "&1", "&2"}
    assert "places='/it'\"'\"'s here\n'" in text
