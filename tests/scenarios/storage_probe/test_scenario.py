"""Tests of storage-probe in a plan: jobs as operations, figures as events, and the folder's removal."""

from __future__ import annotations

import json
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from scenarios.support import Events, Recorder
from support import disk_folder, require

from pinchpoint_scenarios.contract import Endpoint, ScenarioContext
from pinchpoint_scenarios.errors import EndpointUnreachable
from pinchpoint_scenarios.storage_probe.folder import FOLDER, ForeignFolder
from pinchpoint_scenarios.storage_probe.params import StorageProbeParams
from pinchpoint_scenarios.storage_probe.scenario import PROBE_FAILED, PROBED, StorageProbe

SHORT: dict[str, Any] = {"suite": "stability", "repeat": 2, "time_per_cell": "300ms", "size": "16MiB"}


@pytest.fixture
def disk() -> Iterator[Path]:
    """Yield a folder on a real disk; fail if its content has changed at the end."""
    folder = Path(tempfile.mkdtemp(prefix=disk_folder(), dir="/var/tmp"))
    try:
        yield folder
        left = list(folder.iterdir())
    finally:
        shutil.rmtree(folder)
    assert left == []


def made(
    params: dict[str, Any],
    endpoints: dict[str, Endpoint] | None = None,
    events: Events | None = None,
    worker: int = 0,
    repeat_s: float | None = 0,
) -> StorageProbe:
    model = StorageProbeParams.model_validate(params)
    return StorageProbe(
        ScenarioContext("disks", endpoints or {}, model, 1, worker, 1, repeat_s, events or Events())
    )


def at(folder: Path, name: str = "sql.log", host: str | None = None) -> dict[str, Endpoint]:
    """Return the endpoints of a farm whose only local disk is that folder's."""
    options = {"host": host or socket.gethostname()}
    return {f"disk:{name}": Endpoint(f"disk:{name}", str(folder), options)}


def test_each_job_is_an_operation_and_each_cell_an_event(disk: Path) -> None:
    """Each job is an operation and each cell an event; after the last job the folder is removed."""
    require("fio", "fio")
    events, record = Events(), Recorder()
    probe = made(SHORT, at(disk), events)  # the only disk; its name is reported
    assert probe.check() == {"fio": {"server": "fio"}}
    probe.prepare(lambda _: None)
    session = probe.session(0)
    while session.perform(record):
        pass
    session.close()
    probe.finish(keep_data=False)
    [name] = {row.operation for row in record.rows}
    assert record.counts() == {(name, "ok"): 2}
    assert name == "8K random write, 8 outstanding"
    lines = events.named(PROBED)
    assert [line["trial"] for line in lines] == [1, 2]
    for line, row in zip(lines, record.rows, strict=True):
        assert line["name"] == name
        assert line["disk"] == "sql.log"
        assert line["writes_per_s"] > 0
        times = json.loads(json.dumps(line["times_ns"]))
        counted = sum(count for _, count in times)
        assert counted == pytest.approx(line["writes_per_s"] * line["seconds"], rel=0.2)
        assert max(value for value, _ in times) <= line["max_s"] * 1e9 * 1.05
        mean_ns = sum(value * count for value, count in times) / counted
        assert mean_ns / 1e9 == pytest.approx(line["mean_s"], rel=0.02)
        assert row.size_bytes == pytest.approx(line["write_bytes_per_s"] * line["seconds"], rel=0.01)


def test_without_a_disk_s_name_the_only_one_is_taken(disk: Path) -> None:
    require("fio", "fio")
    assert made({}, at(disk)).check() == {"fio": {"server": "fio"}}


@pytest.mark.parametrize(
    ("params", "names", "says"),
    [
        ({}, ("sql.log", "sql.data"), "several disks, or none.*sql.data, sql.log"),
        ({"disk": "sql.tempdb"}, ("sql.log",), "no disk 'sql.tempdb'.*sql.log"),
        ({}, (), "one of: none"),
        ({"folder": "/no/such/folder"}, (), "is no folder that this user may write to"),
    ],
)
def test_which_disk_is_not_clear(
    tmp_path: Path, params: dict[str, Any], names: tuple[str, ...], says: str
) -> None:
    """An unclear disk is refused before anything is written, with the existing disks."""
    endpoints = {key: one for name in names for key, one in at(tmp_path, name).items()}
    with pytest.raises(EndpointUnreachable, match=says):
        made(params, endpoints).check()


def test_a_disk_of_another_machine_is_not_this_one_s(tmp_path: Path) -> None:
    with pytest.raises(EndpointUnreachable, match="a disk of elsewhere"):
        made({}, at(tmp_path, host="elsewhere")).check()


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"suite": "databse"}, "nearest: database"),
        ({"folder": "data"}, "no absolute path"),
        ({"disk": "sql.log", "folder": "/srv"}, "both disk and folder"),
        ({"size": "1MiB"}, "from 16MiB on"),
        ({"time_per_cell": "0s"}, "no duration above zero"),
        (
            {"suite": "sequential", "time_per_cell": "5s"},
            "lasts until the file is written or read whole.*size",
        ),
        ({"sizes": "1GiB"}, "Extra inputs"),
    ],
)
def test_params_that_are_none(params: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        StorageProbeParams.model_validate(params)


def test_what_is_not_ours_stays(disk: Path) -> None:
    """A folder of that name made by another user stays, and nothing is written."""
    theirs = disk / FOLDER
    theirs.mkdir()
    with pytest.raises(ForeignFolder):
        made({"folder": str(disk), **SHORT}).prepare(lambda _: None)
    theirs.rmdir()


def test_a_session_that_is_closed_ends_its_job(disk: Path) -> None:
    """Closing a session during a job ends fio within two seconds, and half a job is no operation."""
    require("fio", "fio")
    record = Recorder()
    probe = made({"folder": str(disk), **SHORT, "time_per_cell": "60s"})
    probe.prepare(lambda _: None)
    session = probe.session(0)
    working = threading.Thread(target=session.perform, args=(record,))
    working.start()
    time.sleep(1.5)
    session.close()
    working.join(timeout=15)
    assert not working.is_alive()
    probe.finish(keep_data=False)
    assert record.rows == []


def test_jobs_follow_each_other(disk: Path) -> None:
    """Jobs of two sessions do not overlap."""
    require("fio", "fio")
    record = Recorder()
    probe = made({"folder": str(disk), **SHORT})
    probe.prepare(lambda _: None)
    sessions = [probe.session(number) for number in range(2)]
    threads = [threading.Thread(target=session.perform, args=(record,)) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    probe.finish(keep_data=False)
    first, second = sorted(record.rows, key=lambda row: row.start_ns)
    assert first.end_ns <= second.start_ns


def test_one_process_does_them_all(tmp_path: Path) -> None:
    """Only one worker process runs the jobs."""
    probe = made({"folder": str(tmp_path), **SHORT}, worker=1)
    assert probe.session(1).perform(Recorder()) is False


def test_a_tool_that_fails_is_an_outcome(disk: Path) -> None:
    """A failing tool is an outcome with its own message, and the session continues."""
    require("fio", "fio")
    events, record = Events(), Recorder()
    probe = made({"folder": str(disk), **SHORT}, events=events)
    probe.prepare(lambda _: None)
    (disk / FOLDER / "probe.data").unlink()
    (disk / FOLDER / "probe.data").mkdir()
    assert probe.session(0).perform(record)
    probe.finish(keep_data=False)
    assert [row.outcome for row in record.rows] == ["tool_failed"]
    [line] = events.named(PROBE_FAILED)
    assert "fio" in line["why"]
    assert (line["name"], line["trial"]) == ("8K random write, 8 outstanding", 1)
    assert line["cell"]["outstanding"] == 8
