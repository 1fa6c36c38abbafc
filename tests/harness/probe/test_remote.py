"""A probe of another machine's disk, over ssh and a real sshd on loopback: nothing is left there."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import psutil
import pytest
from harness.probe.build import Disk, probe_of
from sshd_hosts import SshdHost, sshd_host, sshd_hosts
from support import require, until, untouched_folder

from pinchpoint.base.errors import FarmUnavailable, GuardError, InputError
from pinchpoint.plan import load_farm
from pinchpoint.probe import target
from pinchpoint.probe.record import DiskPrice, Options
from pinchpoint.probe.suite_run import ProbeProgress, SuiteDriver
from pinchpoint.probe.target import explained
from pinchpoint_collectors.remote import ssh
from pinchpoint_collectors.remote.ssh import Address
from pinchpoint_scenarios.storage_probe import SUITES, TOOLS, ToolMissing, remote
from pinchpoint_scenarios.storage_probe.folder import FOLDER, OWNER, ForeignFolder, claim
from pinchpoint_scenarios.storage_probe.process import ProbeStopped

SIZE = 16 * 2**20


@dataclass(frozen=True)
class Host:
    """A machine reached over ssh (this one), and a folder on one of its real disks."""

    sshd: SshdHost
    folder: Path

    @property
    def address(self) -> Address:
        return Address.of(self.sshd.options())

    def looked(self) -> remote.RemoteFacts:
        return remote.look(self.address, str(self.folder), None, "sql.log")


@contextmanager
def there(address: Address, looked: remote.RemoteFacts, needed_bytes: int) -> Iterator[remote.RemoteMachine]:
    """Yield the remote machine, with errors reported as a command reports them."""
    with explained(), remote.there(address, looked, needed_bytes) as machine:
        yield machine


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    """Yield a machine behind a real sshd on loopback."""
    require("fio", "fio")
    with untouched_folder() as folder, sshd_host() as sshd:
        yield Host(sshd, folder)


def tools_in(folder: Path) -> list[int]:
    """Return the fio processes that work in the folder."""
    return [
        one.pid
        for one in psutil.process_iter(["name", "cmdline"])
        if one.info["name"] == "fio" and any(str(folder) in word for word in one.info["cmdline"] or ())
    ]


def fio(machine: remote.RemoteMachine, seconds: int) -> list[str]:
    """Return a fio command that writes for that time."""
    return [
        *(
            "fio",
            "--name=cell",
            f"--filename={machine.folder / 'probe.data'}",
            "--size=16M",
            "--rw=randwrite",
        ),
        *(
            "--bs=8k",
            "--direct=1",
            "--time_based",
            f"--runtime={seconds}",
            "--thread",
            "--output-format=json+",
        ),
    ]


def test_the_disk_is_described(host: Host) -> None:
    """Folder, machine, memory, free space and rights are those of the remote machine."""
    found = host.looked()
    assert found.folder == PurePosixPath(host.folder)
    assert found.host == socket.gethostname()
    assert found.memory_bytes == psutil.virtual_memory().total
    assert found.root == (os.geteuid() == 0)
    assert found.file_system


@pytest.mark.parametrize(
    ("path", "device", "says"),
    [("/no/such/folder", None, "is not a folder"), (None, "nosuchdisk9", "is not mounted there")],
)
def test_a_disk_that_is_not_there(host: Host, path: str | None, device: str | None, says: str) -> None:
    with pytest.raises(InputError, match=says), explained():
        remote.look(host.address, path, device, "sql.log")


@pytest.mark.slow  # ten seconds
def test_a_suite_runs_there(host: Host) -> None:
    """A suite on the remote machine has percentiles and courses, and the folder is removed."""
    probe = probe_of(Disk(), [], "stability")
    probe.options = Options(1, 7.0, SIZE, 0.02)
    watch = ProbeProgress(lambda: False, lambda _: None, lambda *_: None, lambda _: None, lambda _: None)
    with there(host.address, host.looked(), SIZE) as machine:
        SuiteDriver(SUITES["stability"], probe, machine, watch).run()
        assert machine.folder.is_dir()
    assert probe.state == "finished"
    [[trial]] = probe.cells.values()
    assert trial.iops is not None
    assert trial.iops > 10
    assert trial.latency is not None
    assert trial.series is not None
    assert probe.versions["fio"].startswith("fio-")


def test_what_runs_is_ended_at_once(host: Host) -> None:
    """Ctrl-C ends fio on the remote machine and removes the folder."""
    with there(host.address, host.looked(), SIZE) as machine:
        folder = machine.folder
        with pytest.raises(ProbeStopped):
            machine.run(TOOLS["fio"], fio(machine, 60), lambda: bool(tools_in(folder)))
        until(lambda: not tools_in(folder), "fio has ended")
    assert not folder.exists()


def test_a_cut_link_leaves_nothing_there(host: Host) -> None:
    """After both ends of the link are killed mid-write, the remote fio ends and the folder is removed."""
    with there(host.address, host.looked(), SIZE) as machine:
        folder = machine.folder
        failed: list[BaseException] = []

        def work() -> None:
            try:
                machine.run(TOOLS["fio"], fio(machine, 60), lambda: False)
            except remote.HostUnreachable as error:
                failed.append(error)

        working = threading.Thread(target=work)
        working.start()
        until(lambda: tools_in(folder), "fio runs")
        for one in psutil.Process().children():
            if one.name() == "ssh":
                one.send_signal(signal.SIGKILL)
        until(lambda: not folder.exists(), "the folder is gone")
        until(lambda: not tools_in(folder), "fio has ended")
        working.join(timeout=20)
        assert not working.is_alive()


@pytest.mark.slow  # the keeper waits before it gives up
def test_a_link_on_which_packets_vanish_leaves_nothing_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a link that drops packets silently, the remote keeper times out and removes the folder."""
    require("fio", "fio")
    monkeypatch.setattr(remote, "_BEAT_S", 0.5)
    monkeypatch.setattr(remote, "_SILENT_S", 4)
    monkeypatch.setattr(remote, "_END_S", 1.0)
    with untouched_folder() as folder, sshd_hosts(1) as [sshd]:
        host = Host(sshd, folder)
        with there(host.address, host.looked(), SIZE) as machine:
            own = machine.folder
            command = ssh.argv(host.address, ssh.shell(f"cd {own} && exec sleep 60"))
            with subprocess.Popen(command, stdin=subprocess.DEVNULL) as running:
                time.sleep(1.0)
                assert own.is_dir()
                sshd.cut()
                until(lambda: not own.exists(), "the folder is gone")
                running.kill()


def test_what_is_not_ours_stays(host: Host) -> None:
    """A foreign folder without the mark, and another probe's folder, stay."""
    looked = host.looked()
    theirs = host.folder / FOLDER
    theirs.mkdir()
    (theirs / "precious").write_text("x")
    with pytest.raises(GuardError, match="not created by Pinchpoint"), there(host.address, looked, SIZE):
        pass
    assert (theirs / "precious").read_text() == "x"
    shutil.rmtree(theirs)
    here = claim(host.folder)
    try:
        with pytest.raises(GuardError, match="another probe uses it"), there(host.address, looked, SIZE):
            pass
    finally:
        here.release()


def test_a_probe_on_that_machine_does_not_meet_one_that_came_over_ssh(host: Host) -> None:
    with there(host.address, host.looked(), SIZE) as machine:
        with pytest.raises(ForeignFolder, match="another probe uses it"):
            claim(host.folder)
        assert machine.folder.is_dir()


def test_a_tool_that_is_missing_there(host: Host) -> None:
    """A missing tool is reported with machine, program and package."""
    with there(host.address, host.looked(), SIZE) as machine, pytest.raises(ToolMissing) as caught:
        machine.run(TOOLS["bonnie++"], ["no-such-program"], lambda: False)
    assert "not installed on" in str(caught.value)
    assert "apt-get install bonnie++" in str(caught.value)


def test_a_file_that_does_not_fit_there(host: Host) -> None:
    with pytest.raises(FarmUnavailable, match="does not fit"), there(host.address, host.looked(), 10**18):
        pass


def test_what_a_killed_probe_left_is_no_lack_of_room(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed probe's file is removed first, so its space counts as free."""
    left = host.folder / FOLDER
    left.mkdir()
    gone = {"pid": 2**22 + 1, "host": socket.gethostname(), "remote": True}
    (left / OWNER).write_text(json.dumps(gone), encoding="utf-8")
    (left / "probe.data").write_bytes(b"x")
    seen: list[tuple[bool, int, int]] = []

    def looked(_folder: str, _needed: int, free_bytes: int, total_bytes: int) -> None:
        seen.append(((left / "probe.data").exists(), free_bytes, total_bytes))

    monkeypatch.setattr(remote, "check_room", looked)
    with there(host.address, host.looked(), SIZE):
        [(still_there, free_bytes, total_bytes)] = seen
    usage = shutil.disk_usage(host.folder)
    assert not still_there
    assert free_bytes == pytest.approx(usage.free, rel=0.1)
    assert total_bytes == pytest.approx(usage.total, rel=0.1)


def test_nobody_is_there(tmp_path: Path) -> None:
    """An unreachable machine gives ssh's message and the remedy."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, without a listener
        nobody = Address.of({"address": "127.0.0.1", "port": int(taken.getsockname()[1])})
    with pytest.raises(FarmUnavailable, match="nothing listens there"), explained():
        remote.look(nobody, str(tmp_path), None, "sql.log")


def test_a_farm_s_disk_on_another_machine(host: Host, tmp_path: Path) -> None:
    """A farm's disk on another machine is found by its path over the host's collector."""
    disks = {"log": {"path": str(host.folder), "profile": "azure/p10"}}
    collect = [{"kind": "ssh", **host.sshd.options()}]
    content = {
        "name": "prod",
        "environment": "staging",
        "endpoints": {"sql": {"url": "postgresql://loader@127.0.0.1/loadtest"}},
        "tiers": {
            "sql": {"hosts": {"sql1": {"machine": "azure/d4s_v3", "collect": collect, "disks": disks}}}
        },
        "prices": {"currency": "EUR", "disks": {"azure/p10": 19.5}},
    }
    file = tmp_path / "farm.yaml"
    file.write_text(json.dumps(content))
    with target.of_farm(load_farm(file), "sql.log", lambda _: None) as chosen:
        assert chosen.where.label == "sql.log of prod"
        assert chosen.where.machine == "azure/d4s_v3"
        assert chosen.declared.price == DiskPrice("EUR", 19.5)
        assert chosen.declared.profile == "azure/p10"
        with chosen.opened(SIZE) as machine:
            said = machine.run(TOOLS["fio"], TOOLS["fio"].version(), lambda: False)
            assert said.stdout.startswith("fio-")
