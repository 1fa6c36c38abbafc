"""Tests of kind ``agent`` with a real recorder and a real sshd on this machine."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
import pytest
from collectors.host_contract import says_what_local_says
from sshd_hosts import SshdHost, sshd_host, sshd_hosts
from support import until

from pinchpoint_collectors import registry
from pinchpoint_collectors.agent.collector import AgentCollector
from pinchpoint_collectors.agent.command import RingReader
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Sample, Watch

COLLECT = Path(sys.executable).with_name("pinchpoint-collect")
_OWN = {
    ("collector.cpu_s", "agent/host"),
    ("collector.cpu_s", "agent/client"),
    ("collector.cpu_s", "agent/tail"),
    ("collector.received_bytes", "agent"),
    ("collector.clock_offset_s", "agent"),
    ("collector.clock_error_s", "agent"),
}


@pytest.fixture(scope="module")
def host() -> Iterator[SshdHost]:
    with sshd_host() as found:
        yield found


@contextmanager
def recorder(folder: Path, **more: Any) -> Iterator[subprocess.Popen[str]]:
    """Run ``pinchpoint-collect record`` as a service does."""
    config = {"folder": str(folder / "ring"), "interval_s": 0.2, **more}
    text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in config.items())
    (folder / "collect.toml").write_text(text)
    process = subprocess.Popen(
        [COLLECT, "record", "--config", folder / "collect.toml"], stderr=subprocess.PIPE, text=True
    )
    try:
        until(lambda: any((folder / "ring").glob("readings-*")))
        yield process
    finally:
        process.terminate()
        try:
            process.communicate(timeout=20)
        finally:
            process.kill()


def connected(host: SshdHost, folder: Path, *names: str, **disks: str) -> AgentCollector:
    options = host.options(command=str(COLLECT), folder=str(folder / "ring"))
    watches = [Watch(name, "sql", disks, options=options) for name in names or ("sql1",)]
    collector = registry.kind("agent").connect(watches)
    assert isinstance(collector, AgentCollector)
    return collector


def busy(samples: Sequence[Sample]) -> list[Sample]:
    return [each for each in samples if (each.metric, each.instance) == ("cpu.busy_ratio", "")]


def test_it_says_what_local_says(host: SshdHost, tmp_path: Path) -> None:
    """``agent`` reports the metrics, instances and inventory of ``local`` for each host, and its own cost."""
    with recorder(tmp_path), closing(connected(host, tmp_path, "sql1", "web1", data=str(tmp_path))) as there:
        theirs = [each for _ in range(4) for each in there.read()]
        facts = there.inventory()["sql1"]
        assert there.inventory()["web1"] == facts
    assert {each.host for each in theirs} == {"sql1", "web1"}
    assert abs(busy(theirs)[0].time_ns - time.time_ns()) < 60e9
    says_what_local_says(theirs, facts, {"data": str(tmp_path)}, _OWN)
    until(lambda: host.ours() == [], "a tail is left on the host")


def test_a_cut_link_leaves_no_gap(host: SshdHost, tmp_path: Path) -> None:
    """After a cut link and failed readings, all readings recorded meanwhile arrive."""
    with recorder(tmp_path), closing(connected(host, tmp_path)) as collector:
        samples = [each for _ in range(3) for each in collector.read()]
        for one in host.sessions():
            one.kill()
        failed: list[str] = []
        time.sleep(2)  # the time during which no reading is fetched
        end = time.monotonic() + 30
        while time.monotonic() < end:
            try:
                new = collector.read()
            except CollectorError as error:
                failed.append(str(error))
                continue
            samples += new
            if failed and len(busy(samples)) > 30:
                break
    assert failed
    assert all(host.address in why for why in failed)
    found = busy(samples)
    between_s = [(one.time_ns - before.time_ns) / 1e9 for before, one in pairwise(found)]
    covered_s = sum(each.interval_s for each in found[1:])
    assert min(between_s) > 0, "each came once, in order"
    assert covered_s == pytest.approx(sum(between_s), abs=0.1), "nothing is missing between them"
    assert [each.event for each in collector.incidents() if each.event == "gap"] == []


def test_what_was_not_recorded_is_a_gap(host: SshdHost, tmp_path: Path) -> None:
    """A stop of the recorder is a gap with its start, end and reason."""
    with closing(connected_to_a_recorder(host, tmp_path)) as collector:
        time.sleep(2)
        with recorder(tmp_path):
            told: list[dict[str, Any]] = []

            def gap() -> bool:
                collector.read()
                told.extend(dict(each.fields) for each in collector.incidents() if each.event == "gap")
                return bool(told)

            until(gap)
    assert told[0]["missed"] >= 8
    assert "did not record meanwhile" in told[0]["why"]


def connected_to_a_recorder(host: SshdHost, folder: Path) -> AgentCollector:
    """Return a collector that has read once; the recorder has ended."""
    with recorder(folder):
        collector = connected(host, folder)
        collector.read()
        collector.read()
    return collector


def test_a_ring_that_is_too_short_is_told(host: SshdHost, tmp_path: Path) -> None:
    """Readings that the ring dropped before they were fetched are a gap, with the remedy."""
    with recorder(tmp_path, interval_s=0.1, hours=0.01), closing(connected(host, tmp_path)) as collector:
        collector.read()
        collector.close()
        ring = tmp_path / "ring"
        until(lambda: len(list(ring.glob("readings-*"))) > 2)
        for one in sorted(ring.glob("readings-*"))[:-1]:  # as after hours: only the newest segments are left
            one.unlink()
        told: list[dict[str, Any]] = []

        def gap() -> bool:
            try:
                collector.read()
            except CollectorError:
                return False  # the collector is still connecting
            told.extend(dict(each.fields) for each in collector.incidents() if each.event == "gap")
            return bool(told)

        until(gap)
    assert len(told) == 1
    assert "make `hours` or `size_bytes` larger" in told[0]["why"]


def test_a_host_without_it_is_told_what_to_do(host: SshdHost, tmp_path: Path) -> None:
    """A host without the command, the readings, or the named disk gives an error with the remedy."""
    kind = registry.kind("agent")
    with pytest.raises(CollectorError, match="no pinchpoint-collect is there"):
        kind.connect([Watch("sql1", "sql", options=host.options(command="/nowhere/pinchpoint-collect"))])
    with pytest.raises(CollectorError, match="systemctl start pinchpoint-collect"):
        connected(host, tmp_path)
    with recorder(tmp_path), pytest.raises(CollectorError, match=r"no such device|No such file"):
        connected(host, tmp_path, data=str(tmp_path / "nowhere"))


def test_a_recorder_that_runs_out_of_room_says_so(tmp_path: Path) -> None:
    """A recorder on a full disk ends with one sentence and exit status 1; older readings stay readable."""
    (tmp_path / "collect.toml").write_text(f'folder = "{tmp_path}/ring"\ninterval_s = 0.1\n')
    # limits each file to 8 or 16 KiB
    limited = f"ulimit -f 16; exec {COLLECT} record --config {tmp_path}/collect.toml"
    done = subprocess.run(["sh", "-c", limited], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1, done.stderr
    assert "nothing is recorded any more" in done.stderr
    assert "Traceback" not in done.stderr
    with closing(RingReader(tmp_path / "ring", 0)) as reader:
        assert len(list(reader.new())) > 2


def test_what_it_costs_is_said(host: SshdHost, tmp_path: Path) -> None:
    """The recorder's reported CPU is at most what the system counts, and each reading has some bytes."""
    with recorder(tmp_path) as process, closing(connected(host, tmp_path)) as collector:
        collector.read()
        before = psutil.Process(process.pid).cpu_times()
        samples = [each for _ in range(15) for each in collector.read()]
        after = psutil.Process(process.pid).cpu_times()
    used_s = after.user + after.system - before.user - before.system
    told_s = sum(each.value or 0 for each in samples if each.instance == "agent/host")
    received = sum(each.value or 0 for each in samples if each.metric == "collector.received_bytes")
    assert 0 < told_s < used_s + 0.1
    assert 200 < received / len(busy(samples)) < 20_000


@pytest.mark.root
@pytest.mark.slow  # ssh gives up the connection after fifteen seconds or more
def test_a_network_that_is_down_for_long_leaves_no_gap(tmp_path: Path) -> None:
    """All readings of a network failure of 25 seconds arrive afterwards, although ssh gave up."""
    with (
        sshd_hosts(1) as (far,),
        recorder(tmp_path, interval_s=1.0),
        closing(connected(far, tmp_path)) as collector,
    ):
        samples: list[Sample] = []
        failed = 0
        cut_s = time.monotonic() + 3
        mend_s, end_s = cut_s + 25, cut_s + 100
        is_cut = False
        while time.monotonic() < end_s:
            if not is_cut and cut_s < time.monotonic() < mend_s:
                far.cut()
                is_cut = True
            elif is_cut and time.monotonic() > mend_s:
                far.mend()
                is_cut = False
            try:
                samples += collector.read()
            except CollectorError:
                failed += 1
                time.sleep(0.2)
            found = busy(samples)
            if time.monotonic() > mend_s + 3 and found[-1].time_ns > time.time_ns() - 3e9:
                break
        between_s = [(one.time_ns - before.time_ns) / 1e9 for before, one in pairwise(found)]
    assert failed
    assert sum(between_s) > 25
    assert sum(each.interval_s for each in found[1:]) == pytest.approx(sum(between_s), abs=0.2)
    assert [each.event for each in collector.incidents() if each.event == "gap"] == []
