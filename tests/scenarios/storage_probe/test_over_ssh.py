"""Tests of storage-probe on another machine's disk over a real sshd: nothing is left there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from scenarios.support import Events, Recorder
from sshd_hosts import SshdHost, sshd_host, sshd_hosts
from support import require, until, untouched_folder

from pinchpoint_scenarios.contract import Endpoint, ScenarioContext
from pinchpoint_scenarios.errors import EndpointUnreachable
from pinchpoint_scenarios.storage_probe import ToolMissing, remote
from pinchpoint_scenarios.storage_probe.folder import FOLDER, ForeignFolder
from pinchpoint_scenarios.storage_probe.params import StorageProbeParams
from pinchpoint_scenarios.storage_probe.scenario import PROBE_FAILED, PROBED, StorageProbe

SHORT: dict[str, Any] = {"suite": "stability", "repeat": 2, "time_per_cell": "300ms", "size": "16MiB"}


@pytest.fixture(scope="module")
def host() -> Iterator[SshdHost]:
    require("fio", "fio")
    with sshd_host() as found:
        yield found


@pytest.fixture
def folder() -> Iterator[Path]:
    with untouched_folder() as found:
        yield found


def endpoint(host: SshdHost, folder: Path, **more: str) -> Endpoint:
    """Return a host's disk as an endpoint of a started farm."""
    way = {key: str(value) for key, value in host.options().items()}
    return Endpoint("disk:sql.log", str(folder), {"host": "sql1", **way, **more})


def made(disk: Endpoint, events: Events | None = None, **params: Any) -> StorageProbe:
    model = StorageProbeParams.model_validate({**SHORT, **params})
    return StorageProbe(ScenarioContext("disks", {disk.name: disk}, model, 1, 0, 1, 0, events or Events()))


def tools_in(folder: Path) -> list[int]:
    """Return the ids of fio processes in the probe's folder."""
    found = []
    for one in psutil.process_iter(["name"]):
        try:
            if one.info["name"] == "fio" and Path(one.cwd()) == folder / FOLDER:
                found.append(one.pid)
        except psutil.Error:
            continue  # the process has ended
    return found


def test_one_process_prepares_and_another_measures(host: SshdHost, folder: Path) -> None:
    """Each job is an operation, each cell an event with that host's facts, and the folder is removed."""
    events, record = Events(), Recorder()
    prepares, measures = made(endpoint(host, folder)), made(endpoint(host, folder), events)
    [said] = prepares.check().values()
    assert said["server"].startswith("fio-")
    assert said["server"].endswith(f" on {host.user}@{host.address}:{host.port}")
    prepares.prepare(lambda _: None)
    assert (folder / FOLDER / "probe.data").stat().st_size == 16 * 2**20
    session = measures.session(0)
    while session.perform(record):
        pass
    session.close()
    prepares.finish(keep_data=False)
    assert not (folder / FOLDER).exists()
    assert record.counts() == {("8K random write, 8 outstanding", "ok"): 2}
    lines = events.named(PROBED)
    assert [line["trial"] for line in lines] == [1, 2]
    for line in lines:
        assert line["disk"] == "sql.log"
        assert line["folder"] == str(folder)
        assert line["memory_bytes"] == psutil.virtual_memory().total
        assert line["writes_per_s"] > 0
        assert line["times_ns"]


def test_a_session_that_is_closed_ends_its_job_there(host: SshdHost, folder: Path) -> None:
    """After Ctrl-C or a stop rule fio ends on the host, and half a job is no operation."""
    record = Recorder()
    prepares = made(endpoint(host, folder), time_per_cell="60s")
    measures = made(endpoint(host, folder), time_per_cell="60s")
    prepares.prepare(lambda _: None)
    session = measures.session(0)
    working = threading.Thread(target=session.perform, args=(record,))
    working.start()
    until(lambda: bool(tools_in(folder)), "fio runs there")
    session.close()
    working.join(timeout=30)
    assert not working.is_alive()
    until(lambda: not tools_in(folder), "fio has ended there")
    prepares.finish(keep_data=False)
    assert record.rows == []


_PREPARES = """
import json, sys, time
from pinchpoint_scenarios.contract import ScenarioContext, Endpoint
from pinchpoint_scenarios.storage_probe.params import StorageProbeParams
from pinchpoint_scenarios.storage_probe.scenario import StorageProbe
given = json.loads(sys.argv[1])
disk = Endpoint("disk:sql.log", given["url"], given["options"])
params = StorageProbeParams.model_validate(given["params"])
probe = StorageProbe(ScenarioContext("disks", {disk.name: disk}, params, 1, 0, 1, 0, lambda *_, **__: None))
probe.prepare(lambda _: None)
print("prepared", flush=True)
probe.session(0).perform(lambda *_: None)
"""


def test_a_killed_run_leaves_nothing_there(host: SshdHost, folder: Path) -> None:
    """After SIGKILL of the run, fio ends on the host and the folder is removed."""
    disk = endpoint(host, folder)
    given = {"url": disk.url, "options": dict(disk.options), "params": {**SHORT, "time_per_cell": "60s"}}
    command = [sys.executable, "-c", _PREPARES, json.dumps(given)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "prepared\n"
        until(lambda: bool(tools_in(folder)), "fio runs there")
        os.kill(process.pid, signal.SIGKILL)
    until(lambda: not (folder / FOLDER).exists(), "the folder is gone")
    until(lambda: not tools_in(folder), "fio has ended there")


@pytest.mark.slow  # waits until the host's process gives up
def test_a_lost_link_leaves_nothing_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a lost link the job fails with its reason, and the host removes the folder itself."""
    require("fio", "fio")
    monkeypatch.setattr(remote, "_BEAT_S", 0.5)
    monkeypatch.setattr(remote, "_SILENT_S", 4)
    monkeypatch.setattr(remote, "_END_S", 1.0)
    with untouched_folder() as folder, sshd_hosts(1) as [cut_off]:
        events, record = Events(), Recorder()
        probe = made(endpoint(cut_off, folder), events, time_per_cell="60s", repeat=1)
        probe.prepare(lambda _: None)
        working = threading.Thread(target=probe.session(0).perform, args=(record,))
        working.start()
        until(lambda: bool(tools_in(folder)), "fio runs there")
        cut_off.cut()
        until(lambda: not (folder / FOLDER).exists(), "the folder is gone")
        working.join(timeout=60)
        assert not working.is_alive()
        until(lambda: not tools_in(folder), "fio has ended there")
        probe.finish(keep_data=False)
        assert [row.outcome for row in record.rows] == ["tool_failed"]
        [line] = events.named(PROBE_FAILED)
        assert cut_off.address in line["why"]


def test_what_is_not_ours_stays_there(host: SshdHost, folder: Path) -> None:
    theirs = folder / FOLDER
    theirs.mkdir()
    with pytest.raises(ForeignFolder, match="not created by Pinchpoint"):
        made(endpoint(host, folder)).prepare(lambda _: None)
    theirs.rmdir()


def test_check_says_what_is_missing_there(
    host: SshdHost, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``check`` reports a missing folder, a missing tool with host and package, and a missing host."""
    with pytest.raises(EndpointUnreachable, match="is not a folder on that host"):
        made(endpoint(host, folder / "none")).check()
    with pytest.raises(EndpointUnreachable, match="nothing listens there"):
        made(endpoint(host, folder, port="1")).check()
    monkeypatch.setattr(remote, "_PATH", "PATH=/no/such/folder; export PATH")
    with pytest.raises(ToolMissing, match=f"fio is not installed on .*{host.address}.*apt-get install fio"):
        made(endpoint(host, folder)).check()
