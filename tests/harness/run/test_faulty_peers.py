"""``check`` and ``run`` behind a faulty link to each kind of server: a timely sentence with its name."""

from __future__ import annotations

import getpass
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from collectors.prometheus_servers import prometheus, relayed
from collectors.windows.standin import Machine
from collectors.windows.winrmhost import winrm_host
from harness.run.test_stalls import NOSQL, SERVERS
from infra.services.serving import serving
from scenarios.full_crawl_sources.sites import nginx, samba
from servers import postgres, valkey
from sshd_hosts import sshd_host
from stalling import FAULTS, stalling_proxy
from support import end, missing, start_cli, until, wait_for_line

pytestmark = [pytest.mark.farm, pytest.mark.timeout(300)]

PASSWORD = "a secret word"
MOST_S = 90.0
"""Upper limit of ``check`` in seconds; an answer has 5 s, some servers have several."""

Through = Callable[[int], dict[str, Any]]
"""Build farm.yaml from the port of the link to the server."""


def _endpoint(name: str, url: str, key: str = "url", **more: str) -> Through:
    port = urlsplit(url).port
    return lambda through: {"endpoints": {name: {key: url.replace(f":{port}", f":{through}", 1), **more}}}


def _collected(entry: dict[str, Any], port: str = "port") -> Through:
    def through(number: int) -> dict[str, Any]:
        place = number if port == "port" else f"http://127.0.0.1:{number}"
        return {"tiers": {"app": {"hosts": {"app1": {"collect": [{**entry, port: place}]}}}}}

    return through


@contextmanager
def _server(kind: str, folder: Path) -> Iterator[tuple[int, Through, dict[str, Any]]]:
    """Yield (port, farm.yaml, scenario) of a server of that kind."""
    with ExitStack() as stack:
        if kind in SERVERS:
            name, scenario, server = SERVERS[kind]
            url = stack.enter_context(server())
            yield urlsplit(url).port or 0, _endpoint(name, url), scenario
        elif kind == "web":
            site = folder / "site"
            site.mkdir()
            (site / "index.html").write_text("<a href=a.html>a</a>")
            url = stack.enter_context(nginx(folder, site))
            sources = {"sources": [{"kind": "web", "endpoint": "web"}]}
            yield urlsplit(url).port or 0, _endpoint("web", f"{url}/"), _crawl(sources)
        elif kind == "share":
            if os.geteuid() != 0:
                missing("Samba's server needs root to change to the user who logs in")
            share = folder / "share"
            share.mkdir()
            (share / "a.txt").write_text("a")
            url, _ = stack.enter_context(samba(folder, share, getpass.getuser(), PASSWORD))
            found = _endpoint("files", url, "path", user=getpass.getuser(), password=PASSWORD)
            yield urlsplit(url).port or 0, found, _crawl({"sources": [{"kind": "files"}]})
        elif kind == "search":
            (folder / "index").mkdir()
            place = {"directory": str(folder / "index"), "token": PASSWORD, "login": PASSWORD}
            index = stack.enter_context(serving("pinchpoint_infra.services.search", folder, **place))
            web, to_web, crawl = stack.enter_context(_server("web", folder))
            given = to_web(web)["endpoints"]
            found = _endpoint("search", index.url, kind="pinchpoint", token=PASSWORD)
            port = urlsplit(index.url).port or 0
            yield port, lambda through: {"endpoints": given | found(through)["endpoints"]}, crawl
        elif kind == "ssh":
            host = stack.enter_context(sshd_host())
            yield host.port, _collected({"kind": "ssh", **host.options()}), NOSQL
        elif kind == "winrm":
            windows = stack.enter_context(winrm_host(Machine(), folder))
            yield windows.port, _collected({"kind": "windows", **windows.options()}), NOSQL
        elif kind == "prometheus":
            relay = stack.enter_context(relayed())
            server_ = stack.enter_context(prometheus(relay.port))
            until(lambda: len(relay.scrapes) >= 3)
            entry = {"kind": "prometheus", "instance": f"127.0.0.1:{relay.port}"}
            yield urlsplit(server_.url).port or 0, _collected(entry, "url"), NOSQL


def _crawl(params: dict[str, Any]) -> dict[str, Any]:
    return {"use": "full-crawl", "load": {"model": "closed", "users": 2}, "params": params}


KINDS = (*SERVERS, "web", "share", "ssh", "winrm", "prometheus")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "after"),
    # A connection to a web server has no third answer.
    [(kind, after) for kind in KINDS for after in (0, 2) if (kind, after) != ("web", 2)],
)
def test_check_names_the_server_that_is_not_one(kind: str, after: int, tmp_path: Path) -> None:
    """``check`` names the server that fails from its first or its third answer on."""
    tmp_path.chmod(0o755)
    with ExitStack() as stack:
        port, through, scenario = stack.enter_context(_server(kind, tmp_path))
        farm, plan = tmp_path / "farm.yaml", tmp_path / "plan.yaml"
        plan.write_text(
            json.dumps({"name": "p", "scenarios": {"work": scenario}, "phases": {"measure": "5s"}})
        )
        found = []
        endpoints: dict[str, Any] = {}
        if scenario["use"] == "full-crawl":
            endpoints = {"sql": {"url": stack.enter_context(postgres())}, "search": {"kind": "none"}}
        elif kind not in SERVERS:
            endpoints = {"nosql": {"url": "valkey://127.0.0.1:1/0"}}
        for fault in FAULTS:
            with stalling_proxy(port, after) as proxy:
                getattr(proxy, fault).set()
                farm.write_text(json.dumps(_farm(endpoints, through(proxy.port))))
                begun = time.monotonic()
                process = start_cli("check", plan, "--farm", farm, "--out", tmp_path / "runs")
                status, out, err = end(process, timeout_s=MOST_S + 60)
                found.append((fault, status, round(time.monotonic() - begun, 1), out + err))
                assert f":{proxy.port}" in out + err, (fault, out + err)
        print(*found, sep="\n")
        for fault, status, took_s, said in found:
            assert status == 5, (fault, said)
            assert took_s < MOST_S, (fault, said)
            assert "Traceback" not in said
            assert "internal error" not in said


def _farm(endpoints: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    return {"name": "f", "environment": "test", **given, "endpoints": endpoints | given.get("endpoints", {})}


DRIVEN = {"web": "failed", "search": "failed", "share": "waited for the farm"}
"""Servers of a crawl, and the run's message about a fault; the run goes on without documents."""
WATCHED = dict.fromkeys(("ssh", "winrm", "prometheus"), "app1: the collector")
"""Collectors of a host, by the name in the run's message about missing figures."""
CASES = [
    *((kind, "measuring", fault) for kind in ("web", "ssh") for fault in FAULTS),
    *((kind, "measuring", "stalled") for kind in ("search", "share", "winrm", "prometheus")),
    ("winrm", "measuring", "garbled"),
    ("search", "removing the data", "stalled"),
    ("ssh", "stopping the load", "stalled"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "phase", "fault"), CASES)
def test_a_run_ends_by_itself(kind: str, phase: str, fault: str, tmp_path: Path) -> None:
    """A run ends in time with a documented status and names the fault; the next run works."""
    with ExitStack() as stack:
        # The path contains Samba's sockets and must be short.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="peer-")))
        folder.chmod(0o755)
        port, through, scenario = stack.enter_context(_server(kind, folder))
        farm, plan = tmp_path / "farm.yaml", tmp_path / "plan.yaml"
        phases = {"warm_up": "1s", "measure": "30s"}
        plan.write_text(json.dumps({"name": "p", "scenarios": {"work": scenario}, "phases": phases}))
        if kind in DRIVEN:
            endpoints = {"sql": {"url": stack.enter_context(postgres())}, "search": {"kind": "none"}}
        else:
            endpoints = {"nosql": {"url": stack.enter_context(valkey())}}
        proxy = stack.enter_context(stalling_proxy(port))
        farm.write_text(json.dumps(_farm(endpoints, through(proxy.port))))
        command = ("run", plan, "--farm", farm, "--out", tmp_path / "runs")
        process = start_cli(*command)
        try:
            wait_for_line(process, phase, 120)
            if phase == "measuring":
                time.sleep(1)
            getattr(proxy, fault).set()
            begun_s = time.monotonic()
            status, out, err = end(process, timeout_s=180)
            took_s = time.monotonic() - begun_s
        finally:
            process.kill()
        [manifest] = (tmp_path / "runs").glob("*/manifest.json")
        said = "\n".join([out, err, *json.loads(manifest.read_text())["warnings"]])
        print(kind, phase, fault, status, round(took_s, 1), said, sep="\n")
        assert status in (0, 1, 3, 5), said
        assert took_s < MOST_S + 20, said
        for never in ("Traceback", "internal error", "recorder failed"):
            assert never not in said, said
        if phase == "measuring":
            assert (DRIVEN | WATCHED)[kind] in said, said
        if status == 5:
            assert f":{proxy.port}" in said, said
        getattr(proxy, fault).clear()
        status, _, err = end(start_cli(*command, "--take-over"), timeout_s=150)
        assert status in (0, 1, 3), err
