"""Tests of a whole run that watches hosts over ssh and loses one in the middle (root)."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from servers import valkey
from sshd_hosts import SshdHost, sshd_hosts
from support import end, run_cli, start_cli, wait_for_line

from pinchpoint.store.read import open_run

pytestmark = [pytest.mark.root, pytest.mark.farm, pytest.mark.alone]


@pytest.fixture(scope="module")
def hosts() -> Iterator[list[SshdHost]]:
    with sshd_hosts(3) as found:
        yield found


@pytest.fixture(scope="module")
def nosql() -> Iterator[str]:
    with valkey() as url:
        yield url


def farm_file(folder: Path, hosts: list[SshdHost], nosql: str, **more: Any) -> Path:
    named = {
        f"n{number}": {"collect": [{"kind": "ssh", **host.options(), **(more if number == 2 else {})}]}
        for number, host in enumerate(hosts, 1)
    }
    content = {
        "name": "mine",
        "environment": "test",
        "endpoints": {"nosql": {"url": nosql}},
        "tiers": {"nosql": {"hosts": named}},
    }
    path = folder / "farm.yaml"
    path.write_text(json.dumps(content))
    return path


def plan_file(folder: Path, measure_s: int) -> Path:
    scenario = {"use": "nosql-burst", "load": {"model": "open", "rate": "50/s"}}
    phases = {"warm_up": "1s", "measure": f"{measure_s}s"}
    path = folder / "plan.yaml"
    path.write_text(json.dumps({"name": "watched", "scenarios": {"writes": scenario}, "phases": phases}))
    return path


@contextmanager
def cut_when_measuring(process: Any, host: SshdHost, for_s: float) -> Iterator[None]:
    """Cut the link two seconds into the measure phase; restore it after ``for_s`` seconds or at the end."""
    wait_for_line(process, "measur")
    time.sleep(2)
    host.cut()
    timer = threading.Timer(for_s, host.mend)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        host.mend()


@pytest.mark.slow  # a run of half a minute
def test_a_host_that_is_cut_off_costs_its_own_samples_only(
    hosts: list[SshdHost], nosql: str, tmp_path: Path
) -> None:
    """The run ends as planned; the manifest and the report name the missing host and the time."""
    farm = farm_file(tmp_path, hosts, nosql)
    process = start_cli("run", plan_file(tmp_path, 36), "--farm", farm, "--out", tmp_path / "runs")
    try:
        with cut_when_measuring(process, hosts[1], 23):
            status, out, said = end(process, timeout_s=100)
    finally:
        process.kill()
    assert status in (0, 3), said
    directory = Path(out.splitlines()[-1])
    manifest = json.loads((directory / "manifest.json").read_text())
    quality = manifest["data_quality"]
    assert quality["n1"]["ssh"]["gaps"] == []
    assert quality["n3"]["ssh"]["gaps"] == []
    (gap,) = quality["n2"]["ssh"]["gaps"]
    assert gap["missed"] >= 10
    assert quality["n1"]["ssh"]["clock_error_s"] < 1
    rows = {tuple(one["hosts"]): one for one in manifest["collectors"]}
    assert rows["n2",]["failed"] >= 5
    assert rows["n1",]["failed"] == 0
    assert rows["n1",]["received_bytes"] > 100_000
    assert manifest["hosts"]["n1"]["machine_id"] == manifest["hosts"]["n2"]["machine_id"]
    samples = open_run(directory).samples.to_table().to_pylist()
    ok = [each["value"] for each in samples if each["metric"] == "collector.ok" and each["host"] == "n2"]
    assert ok.count(0.0) == rows["n2",]["failed"]
    page = run_cli("report", directory, "--format", "md", "--out", tmp_path / "report")
    assert page.returncode == 0, page.stderr
    (text,) = (path.read_text() for path in (tmp_path / "report").glob("*.md"))
    assert "Gaps in the measurement" in text
    assert "Clocks of the hosts" in text
    for host in hosts:
        assert host.ours() == []


@pytest.mark.slow  # another such run, for one option
def test_a_run_that_must_not_do_without_a_host_ends(
    hosts: list[SshdHost], nosql: str, tmp_path: Path
) -> None:
    """With `required: true`, ten seconds without the host end the run with its data and the reason."""
    farm = farm_file(tmp_path, hosts, nosql, required=True)
    process = start_cli("run", plan_file(tmp_path, 60), "--farm", farm, "--out", tmp_path / "runs")
    try:
        with cut_when_measuring(process, hosts[1], 40):
            status, _out, said = end(process, timeout_s=100)
    finally:
        process.kill()
    assert status in (3, 5), said  # 3 if the machine was too busy for the load generator
    assert "n2: not seen for 10 s, and the collector ssh is required" in said
