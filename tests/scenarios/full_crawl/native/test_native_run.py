"""Tests of ``pinchpoint check`` and ``run`` with ``drive: native`` on a simulated farm."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from scenarios.full_crawl.native.farm import Farm, Source
from scenarios.full_crawl.native.sshfarm import PASSWORD, SshFarm, ssh_farm
from scenarios.full_crawl.native.winrmfarm import winrm_farm
from support import end, run_cli, start_cli, until

from pinchpoint.base.errors import InputError
from pinchpoint.cli.run import run
from pinchpoint.plan import load

pytestmark = pytest.mark.timeout(120)

VARIABLE = "${SP_PASSWORD}"
NATIVE: dict[str, Any] = {"drive": "native", "native": {"poll": "500ms"}}
CLOSED = {"model": "closed", "users": 1}
EMBEDDED = {"name": "f", "environment": "test", "embedded": {"tiers": ["sql", "search", "files"]}}


@pytest.fixture
def farm() -> Farm:
    """Return a farm with one source that has some errors."""
    return Farm(
        [Source("Intranet", items=200, errors=4), Source("Share", items=0, errors=1, top_level_errors=1)]
    )


@pytest.fixture
def server(farm: Farm, tmp_path: Path) -> Iterator[SshFarm]:
    """Yield the farm behind SSH with a password."""
    with ssh_farm(farm, tmp_path) as standing:
        yield standing


def files(server: SshFarm, folder: Path, secret: str = VARIABLE, **plan: Any) -> tuple[Path, Path]:
    """Write (farm.yaml, plan.yaml) as a user does, with the password in the environment."""
    crawler = {"url": f"ssh://127.0.0.1:{server.port}", "user": "loader", "password": secret}
    return written(folder, {**crawler, "known_hosts": "known_hosts"}, **plan)


def written(folder: Path, crawler: dict[str, Any], **plan: Any) -> tuple[Path, Path]:
    """Write (farm.yaml, plan.yaml) of a farm with this crawler."""
    given = {"name": "prod", "environment": "staging", "endpoints": {"crawler": crawler}}
    crawl = {"use": "full-crawl", "load": CLOSED, "params": NATIVE, **plan}
    phases = {"warm_up": "0s", "measure": {"until": "done", "at_most": "60s"}}
    farm_file, plan_file = folder / "farm.yaml", folder / "plan.yaml"
    farm_file.write_text(json.dumps(given))
    plan_file.write_text(json.dumps({"name": "crawl", "scenarios": {"crawl": crawl}, "phases": phases}))
    return farm_file, plan_file


def test_a_run_crawls_the_farm_and_reports_it_as_any_crawl(
    farm: Farm, server: SshFarm, tmp_path: Path
) -> None:
    """The verdict, the report and the manifest have the farm's crawl, and no file has the password."""
    farm_file, plan_file = files(server, tmp_path)
    command = ("run", plan_file, "--farm", farm_file, "--out", tmp_path / "runs")
    done = run_cli(*command, "--reset-index", farm.application, env={"SP_PASSWORD": PASSWORD})
    assert done.returncode == 0, done.stderr
    assert "all of it is lost, of 2 content sources (Intranet: SuccessCount 7,777" in done.stderr
    assert farm.resets == 1
    directory = Path(done.stdout.strip().splitlines()[-1])
    verdict = json.loads((directory / "verdict.json").read_text())
    intranet, share = verdict["crawl"]
    assert (intranet["source"], intranet["count"], intranet["failures"]) == ("Intranet", 200, 4)
    assert (intranet["duration_s"], intranet["rate_per_s"], intranet["complete"]) == (2.0, 100.0, True)
    assert intranet["repository_latency_s"] == 0.381
    assert (share["count"], share["failures"], share["rate_per_s"]) == (0, 1, None)
    scenario = verdict["scenarios"]["crawl"]
    assert scenario["throughput_per_s"] > 0
    assert scenario["service_p95_s"] is None, "nobody knows how long an item took"
    report = (directory / "report.html").read_text()
    assert "what lies behind them was not crawled" in report
    manifest = json.loads((directory / "manifest.json").read_text())
    assert manifest["endpoints"]["crawl"]["crawler"]["application"] == farm.application
    for path in directory.rglob("*"):
        if path.is_file():
            assert PASSWORD.encode() not in path.read_bytes(), path
    assert PASSWORD not in done.stdout + done.stderr
    assert all(source.line()["state"] == "Idle" for source in farm.sources)


def test_two_search_service_applications_in_one_run(tmp_path: Path) -> None:
    """Each of two indexes is reset by its own name; an application without latencies gives the reason."""
    farm = Farm([Source("Intranet", items=60)])
    farm.others = [
        Farm([Source("Public sites", items=40)], application="Public Search", history={"CrawlID": 9})
    ]
    public = farm.others[0]
    with ssh_farm(farm, tmp_path) as server:
        farm_file, plan_file = files(server, tmp_path)
        env = {"SP_PASSWORD": PASSWORD}
        unnamed = run_cli("check", plan_file, "--farm", farm_file, env=env, starts_nothing=True)
        assert unnamed.returncode == 5
        assert "params: {native: {application: NAME}}" in unnamed.stdout
        plan = json.loads(plan_file.read_text())
        crawl = plan["scenarios"].pop("crawl")
        for name, one in ("intranet", farm), ("public", public):
            native = {**NATIVE["native"], "application": one.application}
            plan["scenarios"][name] = {**crawl, "params": {"drive": "native", "native": native}}
        plan_file.write_text(json.dumps(plan))
        asked = ("run", plan_file, "--farm", farm_file, "--out", tmp_path / "runs")
        resets = ("--reset-index", farm.application, "--reset-index", public.application)
        done = run_cli(*asked, *resets, env=env)
    assert done.returncode == 0, done.stderr
    assert (farm.resets, public.resets) == (1, 1)
    directory = Path(done.stdout.strip().splitlines()[-1])
    crawled = json.loads((directory / "verdict.json").read_text())["crawl"]
    assert {(one["source"], one["count"], one["repository_latency_s"]) for one in crawled} == {
        ("Intranet", 60, 0.381),
        ("Public sites", 40, None),
    }
    events = (directory / "events.jsonl").read_text()
    assert events.count('"crawl_latency_not_measured"') == 1
    assert "no column of repository latency; it has CrawlID." in events


@pytest.mark.slow  # a whole further run; test_links.py tests the link itself
def test_a_run_over_winrm_is_the_same(farm: Farm, tmp_path: Path) -> None:
    """A run over WinRM works in a load generator, where gevent has patched the library."""
    with winrm_farm(farm, tmp_path) as server:
        endpoint = server.endpoint()
        farm_file, plan_file = written(tmp_path, {"url": endpoint.url, **endpoint.options})
        done = run_cli("run", plan_file, "--farm", farm_file, "--out", tmp_path / "runs")
    assert done.returncode == 0, done.stderr
    directory = Path(done.stdout.strip().splitlines()[-1])
    intranet, _ = json.loads((directory / "verdict.json").read_text())["crawl"]
    assert (intranet["count"], intranet["duration_s"]) == (200, 2.0)
    assert farm.did().count("start") == 1


@pytest.mark.slow  # a whole further run
def test_an_interrupted_run_leaves_the_farm_idle(farm: Farm, server: SshFarm, tmp_path: Path) -> None:
    """Ctrl-C stops the farm's crawl, waits for its end, and reports its counts."""
    farm.sources[0].items = 1_000_000
    farm_file, plan_file = files(server, tmp_path, secret=PASSWORD)
    running = start_cli("run", plan_file, "--farm", farm_file, "--out", tmp_path / "runs")
    until(lambda: farm.sources[0].line()["state"] == "CrawlingFull", "the crawl was not started")
    time.sleep(3)
    status, out, err = end(running, signal.SIGINT)
    assert status == 130, err
    assert [source.line()["state"] for source in farm.sources] == ["Idle", "Idle"]
    assert "stays on the farm" not in err
    directory = Path(out.strip().splitlines()[-1])
    intranet = json.loads((directory / "verdict.json").read_text())["crawl"][0]
    assert intranet["count"] > 0
    assert intranet["complete"] is False


def test_check_asks_the_farm_and_changes_nothing(farm: Farm, server: SshFarm, tmp_path: Path) -> None:
    """``check`` shows the farm and changes nothing; a busy farm fails the check."""
    farm_file, plan_file = files(server, tmp_path)
    arguments = ("check", plan_file, "--farm", farm_file, "--out", tmp_path)
    fine = run_cli(*arguments, env={"SP_PASSWORD": PASSWORD}, starts_nothing=True)
    assert fine.returncode == 0, fine.stdout + fine.stderr
    assert "crawler: SharePoint 16.0.10417.20018; the farm crawls into its index as it is" in fine.stdout
    farm.sources[0].state = "CrawlingFull"
    busy = run_cli(*arguments, env={"SP_PASSWORD": PASSWORD}, starts_nothing=True)
    assert busy.returncode == 5
    assert "Intranet is being crawled; wait until all are idle" in busy.stdout
    assert farm.did() == ["bye", "bye"]


def test_what_does_not_fit_is_said_before_anything_starts(server: SshFarm, tmp_path: Path) -> None:
    """A load model, a field of the other drive, or a missing endpoint is refused before anything starts."""
    with pytest.raises(
        InputError, match=r"scenarios.crawl.load: .*needed: load: \{model: closed, users: 1\}"
    ):
        load(*files(server, tmp_path, load={"model": "closed", "users": 8}))
    with pytest.raises(InputError, match=r"batch, retries: only where Pinchpoint itself crawls"):
        load(*files(server, tmp_path, params={**NATIVE, "retries": 3, "batch": 2}))
    with pytest.raises(InputError, match=r"native: only where the farm itself crawls; add drive: native"):
        load(*files(server, tmp_path, params={"native": {}}))
    with pytest.raises(InputError, match=r"full-crawl needs the endpoint search"):
        load(*files(server, tmp_path, params={}))
    farm_file, plan_file = files(server, tmp_path)
    farm_file.write_text(json.dumps(EMBEDDED))
    with pytest.raises(InputError, match=r"needs the endpoint crawler.*add endpoints.crawler there"):
        load(farm_file, plan_file)


def test_a_reset_that_no_scenario_could_do_is_refused(server: SshFarm, tmp_path: Path) -> None:
    """``--reset-index`` with Pinchpoint's own crawl is refused before anything starts."""
    farm_file, plan_file = files(server, tmp_path, params={})
    farm_file.write_text(json.dumps(EMBEDDED))
    asked = [str(plan_file), "--farm", str(farm_file), "--reset-index", "Search"]
    done = CliRunner().invoke(run, asked)
    assert isinstance(done.exception, InputError)
    assert "--reset-index: no scenario of this plan is a farm's own crawl" in str(done.exception)
    farm_file, plan_file = files(server, tmp_path)
    password = {"SP_PASSWORD": PASSWORD}
    done = CliRunner(env=password).invoke(run, [*asked, "--reset-index", "Search 2"])
    assert "--reset-index: given 2 times, but the plan has 1 crawl of a farm's own" in str(done.exception)
