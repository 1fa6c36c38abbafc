"""A real Cassandra with a slow commit log disk: disk figures and node metrics both name it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cassandra.cluster import Cluster
from javaservers import cassandra
from serverprocess import ServerProcess
from support import missing, run_cli

from pinchpoint_infra.disks import DiskSpec, support
from pinchpoint_infra.disks.emulated import EmulatedDisk, remove_all
from pinchpoint_infra.disks.way import DiskStack, choose

pytestmark = [
    pytest.mark.farm,
    pytest.mark.alone,
    pytest.mark.root,
    # The node starts for 15 s, is measured for 30 s, and needs a disk of its own.
    pytest.mark.slow,
    pytest.mark.timeout(240),
]

FARM_ID = "7e57ca550001"
SPEC = DiskSpec(latency_s=0.03)
REPLICATION = "{'class': 'SimpleStrategy', 'replication_factor': 1}"


@contextmanager
def slow_disk(place: Path) -> Iterator[tuple[EmulatedDisk, Path]]:
    """Yield an emulated disk and its mount point."""
    if os.geteuid() != 0:
        pytest.skip("an emulated disk needs root")
    way = choose(SPEC, support())
    if not isinstance(way, DiskStack):
        missing(f"the disk cannot be emulated here: {way}")
    mounted = place / "commitlog"
    disk = EmulatedDisk("nosql.log", FARM_ID, SPEC, way, place / "disk", mounted, dict(os.environ))
    try:
        disk.build()
        yield disk, mounted
    finally:
        remove_all(FARM_ID, place)
        disk.close()


def written(folder: Path, server: ServerProcess, log: Path) -> tuple[Path, Path]:
    """Return a farm that names the node's log and data disks and observes node and machine."""
    collect = [{"kind": "local", "process": "java"}, {"kind": "cassandra", "endpoint": "nosql"}]
    disks = {"log": {"path": str(log)}, "data": {"path": str(server.directory)}}
    hosts = {"c1": {"collect": collect, "disks": disks}}
    farm = {"name": "mine", "environment": "test", "endpoints": {"nosql": {"url": server.url}}}
    scenario = {"use": "nosql-burst", "load": {"model": "closed", "users": 12}, "params": {"verify": 200}}
    plan = {"name": "log", "scenarios": {"burst": scenario}, "phases": {"warm_up": "8s", "measure": "34s"}}
    paths = folder / "farm.yaml", folder / "plan.yaml"
    paths[0].write_text(json.dumps({**farm, "tiers": {"nosql": {"hosts": hosts}}}))
    paths[1].write_text(json.dumps(plan))
    return paths


def test_the_log_of_a_real_cassandra_is_named_with_its_own_word(tmp_path: Path) -> None:
    """Writes wait 30 ms for the commit log, by the disk's figures and the node's task counts."""
    with slow_disk(tmp_path) as (disk, log), cassandra({"commitlog_directory": str(log)}) as server:
        url = urlsplit(server.url)
        with Cluster([url.hostname], port=url.port, protocol_version=4) as cluster:
            cluster.connect().execute(f"CREATE KEYSPACE loadtest WITH replication = {REPLICATION}")
        disk.apply(on=True, group=None)
        farm, plan = written(tmp_path, server, log)
        done = run_cli("run", plan, "--farm", farm, "--out", tmp_path / "runs", timeout_s=180)
        disk.apply(on=False, group=None)
    assert done.returncode == 0, done.stderr
    directory = Path(done.stdout.splitlines()[-1])
    verdict: dict[str, Any] = json.loads((directory / "verdict.json").read_text())
    if "cpu" in {one["kind"] for one in verdict["candidates"]}:
        pytest.skip("other programs use this machine's CPU, which is a candidate then as well")
    found = verdict["bottleneck"]
    assert found is not None, verdict["summary"]
    assert (found["kind"], found["tier"], found["role"]) == ("disk_latency", "nosql", "log")
    [witness] = [fact for fact in found["evidence"] if fact["metric"] == "db.pool.active"]
    assert (witness["evidence"], witness["instance"]) == ("E4", "MutationStage")
    assert 6 < witness["value"] <= 12, "of twelve users nearly all are waiting"
    assert "writes that wait for a thread" in (directory / "report.html").read_text()
