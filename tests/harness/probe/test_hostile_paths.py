"""Folder names that tools, shells and ssh read as syntax: no file outside the probe's folder changes."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from harness.probe.build import Disk, probe_of
from scenarios.support import Events, Recorder
from sshd_hosts import SshdHost, sshd_host
from support import disk_folder, require

from pinchpoint.probe.record import Options
from pinchpoint.probe.suite_run import ProbeProgress, SuiteDriver
from pinchpoint_collectors.remote.ssh import Address
from pinchpoint_scenarios.contract import Endpoint, ScenarioContext
from pinchpoint_scenarios.storage_probe import SUITES, TOOLS, remote
from pinchpoint_scenarios.storage_probe.params import StorageProbeParams
from pinchpoint_scenarios.storage_probe.place import ProbedMachine, here
from pinchpoint_scenarios.storage_probe.scenario import PROBED, StorageProbe

SIZE = 16 * 2**20
NAMES = (
    "vol:1",
    "vol 1",
    "vol\n1",
    "vol%1%s$$",
    "-rf",
    "vol'1\"2`3",
    "vol\\\\1\\:2",
    "vol\u00fc\u65e5",
    "vol$(touch vol;1)",
    "vol!1*?[a]{b,c}",
    "vol;touch vol&1|#~",
)
ALL_AT_ONCE = "-vol:1 %s'\"`\\\\!*?[a]{b,c};&|#~$(touch vol)\n\u00fc"
SUITE_OF = {"fio": "stability", "dd": "sequential", "hdparm": "sequential", "bonnie++": "bonnie"}
CASES = [
    ("vol:1", "stability"),
    (ALL_AT_ONCE, "stability"),
    *(pytest.param(name, "stability", marks=pytest.mark.slow) for name in NAMES[1:]),
    *(pytest.param(ALL_AT_ONCE, suite, marks=pytest.mark.slow) for suite in ("sequential", "bonnie")),
]
WATCH = ProbeProgress(lambda: False, lambda _: None, lambda *_: None, lambda _: None, lambda _: None)


@pytest.fixture
def parent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a folder on a real disk, which is the current directory during the test."""
    parent = Path(tempfile.mkdtemp(prefix=disk_folder(), dir="/var/tmp"))
    monkeypatch.chdir(parent)
    try:
        yield parent
    finally:
        shutil.rmtree(parent)


def furnished(parent: Path, name: str) -> Path:
    """Create and return the folder of that name, among files named like each part of its name."""
    folder = parent / name
    folder.mkdir()
    (folder / "precious").write_bytes(os.urandom(4096))
    parts = {"vol", "1", "probe.data", "log", "log_iops.log", *name.split(":"), *name.split()}
    for canary in parts - {name, ""}:
        (parent / canary).write_bytes(os.urandom(4096))
    return folder


def contents(parent: Path) -> dict[Path, bytes | None]:
    """Return everything below the folder as path to bytes."""
    return {path: path.read_bytes() if path.is_file() else None for path in parent.rglob("*")}


def test_every_tool_has_a_suite_here() -> None:
    assert SUITE_OF.keys() == TOOLS.keys()
    for tool, suite in SUITE_OF.items():
        assert tool in {job.tool for job in SUITES[suite].jobs(0.2)}


def measured_by(suite: str, machine: ProbedMachine) -> set[str]:
    """Return the tools that measured something there."""
    probe = probe_of(Disk(), [], suite)
    probe.options = Options(1, 0.3 if SUITES[suite].seconds else None, SIZE, 0.02)
    SuiteDriver(SUITES[suite], probe, machine, WATCH).run()
    tools = {cell: job.tool for job in SUITES[suite].jobs(0.3) for cell in job.cells}
    return {tools[cell] for cell, trials in probe.cells.items() if any(one.failed is None for one in trials)}


@pytest.mark.parametrize(("name", "suite"), CASES)
def test_on_this_machine(parent: Path, name: str, suite: str) -> None:
    """Each suite measures locally with its tools, and every other file keeps its bytes."""
    require("fio", "fio")
    folder = furnished(parent, name)
    before = contents(parent)
    with here(folder, SIZE) as machine:
        tools = measured_by(suite, machine)
    assert contents(parent) == before
    assert tools & ({"fio", "dd", "bonnie++"} & {job.tool for job in SUITES[suite].jobs(0.3)})


@pytest.fixture(scope="module")
def sshd() -> Iterator[SshdHost]:
    with sshd_host() as host:
        yield host


@pytest.mark.parametrize(("name", "suite"), CASES)
def test_over_ssh(sshd: SshdHost, parent: Path, name: str, suite: str) -> None:
    """The same holds over ssh, where everything passes through two shells."""
    require("fio", "fio")
    folder = furnished(parent, name)
    before = contents(parent)
    address = Address.of(sshd.options())
    with ExitStack() as stack:
        looked = remote.look(address, str(folder), None, "sql.log")
        assert str(looked.folder) == str(folder)
        tools = measured_by(suite, stack.enter_context(remote.there(address, looked, SIZE)))
    assert contents(parent) == before
    assert tools & ({"fio", "dd", "bonnie++"} & {job.tool for job in SUITES[suite].jobs(0.3)})


@pytest.mark.parametrize("as_disk", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_as_a_scenario_of_a_plan(parent: Path, name: str, as_disk: bool) -> None:
    """The same holds for a probe scenario of a plan, on a farm's disk and on a folder."""
    require("fio", "fio")
    folder = furnished(parent, name)
    before = contents(parent)
    given = {"suite": "stability", "repeat": 1, "time_per_cell": "200ms", "size": "16MiB"}
    params = StorageProbeParams.model_validate(given if as_disk else {**given, "folder": str(folder)})
    disk = Endpoint("disk:sql.log", str(folder), {"host": socket.gethostname()})
    events, record = Events(), Recorder()
    probe = StorageProbe(
        ScenarioContext("disks", {disk.name: disk} if as_disk else {}, params, 1, 0, 1, 0, events)
    )
    probe.check()
    probe.prepare(lambda _: None)
    session = probe.session(0)
    while session.perform(record):
        pass
    session.close()
    probe.finish(keep_data=False)
    assert contents(parent) == before
    assert len(events.named(PROBED)) == 1
