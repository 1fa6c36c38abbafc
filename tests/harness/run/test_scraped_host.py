"""A run against a host that only a Prometheus knows: from farm.yaml to the run's files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from collectors.prometheus_servers import prometheus, relayed
from servers import postgres
from support import run_cli, until

from pinchpoint.store.read import open_run

pytestmark = [pytest.mark.farm, pytest.mark.alone, pytest.mark.slow]  # four servers and a run


def test_a_scraped_host_is_measured_at_its_own_pace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CPU samples follow the scrape interval, which the manifest records; a variable is filled in."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with postgres() as url, relayed() as relay, prometheus(relay.port, "2s") as server:
        until(lambda: len(relay.scrapes) >= 3)
        monkeypatch.setenv("PROM", server.url.removeprefix("http://"))
        collect = {"kind": "prometheus", "url": "http://${PROM}", "labels": {"rack": "r1"}}
        farm = {
            "name": "scraped",
            "environment": "test",
            "endpoints": {"sql": {"url": url}},
            "tiers": {
                "sql": {"hosts": {"db1": {"collect": [collect], "disks": {"log": {"path": str(tmp_path)}}}}}
            },
        }
        load = {"model": "closed", "users": 2}
        scenario = {"use": "sql-mix", "load": load, "params": {"operations": {"log_append": 1}}}
        plan = {
            "name": "commits",
            "scenarios": {"orders": scenario},
            "phases": {"warm_up": "1s", "measure": "12s"},
        }
        (tmp_path / "farm.yaml").write_text(json.dumps(farm))
        (tmp_path / "plan.yaml").write_text(json.dumps(plan))
        checked = run_cli("check", tmp_path / "plan.yaml", "--farm", tmp_path / "farm.yaml", timeout_s=100)
        assert checked.returncode == 0, checked.stdout + checked.stderr
        done = run_cli(
            "run", tmp_path / "plan.yaml", "--farm", tmp_path / "farm.yaml", "--out", tmp_path / "runs"
        )
    assert done.returncode in (0, 3), done.stderr
    stored = open_run(Path(done.stdout.splitlines()[-1]))
    [row] = stored.manifest["collectors"]
    assert (row["kind"], row["interval_s"]) == ("prometheus", 2.0)
    assert stored.manifest["hosts"]["db1"]["scrape_interval_from"] == "the server's targets"
    assert abs(stored.manifest["data_quality"]["db1"]["prometheus"]["clock_offset_s"]) < 0.5
    samples = stored.samples.to_table().to_pylist()
    busy = [each for each in samples if (each["metric"], each["instance"]) == ("cpu.busy_ratio", "")]
    assert 4 <= len(busy) <= 10
    assert all(each["interval_s"] == pytest.approx(2, abs=0.2) for each in busy)
