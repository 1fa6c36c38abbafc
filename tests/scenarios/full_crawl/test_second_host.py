"""Tests of a crawl of a site on another host, a network namespace, with a long delay and a cut link."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scenarios.full_crawl.folders import crawled, ended, fill, prepared
from scenarios.full_crawl.folders import source as folder
from scenarios.full_crawl.pages import linking
from scenarios.support import Events, Recorder, crawl, made
from support import require, until

from pinchpoint_scenarios.contract import Endpoint

HERE, THERE, PORT = "10.231.78.1", "10.231.78.2", 8080
NAMESPACES = "/run/netns"
NOWHERE = Endpoint("search", "", {"kind": "none"})
PAGES = 60


class Host:
    """Another host with a web site, and the cable to the host."""

    def __init__(self, root: Path) -> None:
        self.url = f"http://{THERE}:{PORT}"
        self._name, self._cable = f"ppcrawl{os.getpid()}", f"pp{os.getpid()}"
        self._root = root
        self._server: subprocess.Popen[bytes] | None = None
        # The first namespace makes the folder a bind mount of the same device, which is_mount() does not
        # detect.
        self._mounted = f" {NAMESPACES} " in Path("/proc/self/mountinfo").read_text()

    def make(self) -> None:
        """Create the namespace, the cable and nginx."""
        _run("ip", "netns", "add", self._name)
        far = ("type", "veth", "peer", "name", "cable", "netns", self._name)
        _run("ip", "link", "add", self._cable, *far)
        _run("ip", "address", "add", f"{HERE}/24", "dev", self._cable)
        _run("ip", "link", "set", self._cable, "up")
        self._there("address", "add", f"{THERE}/24", "dev", "cable")
        self.plug()
        config = self._root / "nginx.conf"
        config.write_text(
            f"daemon off; master_process off; pid {self._root}/nginx.pid; error_log stderr warn;\n"
            "events { worker_connections 256; }\n"
            "http { access_log off; types { text/html html; }\n"
            + "".join(
                f"{name}_temp_path {self._root}/{name};\n"
                for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
            )
            + f"server {{ listen {THERE}:{PORT}; root {self._root}/site; }} }}\n"
        )
        nginx = require("nginx", "nginx-light")
        inside = ["ip", "netns", "exec", self._name]
        command = [*inside, nginx, "-e", "stderr", "-c", str(config), "-p", str(self._root)]
        self._server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(_answers, "nginx does not answer through the cable")

    def cut(self) -> None:
        """Cut the cable without an error; the route stays, so that no packet goes elsewhere."""
        self._there("link", "set", "cable", "down")

    def plug(self) -> None:
        """Restore the cable."""
        self._there("link", "set", "cable", "up")

    def far_away(self, delay_ms: int) -> None:
        """Delay each packet from the host."""
        command = ["tc", "-n", self._name, "qdisc", "add", "dev", "cable", "root", "netem"]
        done = subprocess.run([*command, "delay", f"{delay_ms}ms"], check=False, capture_output=True)
        if done.returncode:
            pytest.skip(f"needs netem in the kernel: {done.stderr.decode().strip()}")

    def remove(self) -> None:
        """Remove the server, and the namespace with the cable."""
        if self._server is not None:
            self._server.terminate()
            self._server.wait(10)
        subprocess.run(["ip", "link", "delete", self._cable], check=False, capture_output=True)
        subprocess.run(["ip", "netns", "delete", self._name], check=False, capture_output=True)
        if not self._mounted:
            subprocess.run(["umount", NAMESPACES], check=False, capture_output=True)

    def _there(self, *arguments: str) -> None:
        _run("ip", "-n", self._name, *arguments)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=10)


def _answers() -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.3)
        return probe.connect_ex((THERE, PORT)) == 0


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    if os.geteuid() != 0:
        pytest.skip("needs root: a host of its own is a network namespace")
    require("ip", "iproute2")
    require("nginx", "nginx-light")
    site = tmp_path / "site"
    site.mkdir()
    names = [f"p{number}.html" for number in range(PAGES)]
    for name in names:
        (site / name).write_bytes(linking(text=name))
    (site / "index.html").write_bytes(linking(*names))
    for each in (tmp_path, site):
        each.chmod(0o755)
    found = Host(tmp_path)
    try:
        found.make()
        yield found
    finally:
        found.remove()


def sources(host: Host, share: Path, **options: Any) -> list[dict[str, Any]]:
    site = {"kind": "web", "name": "site", "url": host.url, "robots": False, "sitemaps": False, **options}
    return [site, folder(share, "share")]


@pytest.mark.root
def test_a_link_that_is_cut_fails_what_is_behind_it_and_nothing_else(
    sql: Endpoint, host: Host, tmp_path: Path
) -> None:
    """With a cut link only the site's documents fail, by name, and the crawl ends."""
    fill(tmp_path / "share", 30)
    endpoints = {"sql": sql, "search": NOWHERE}
    params = {"sources": sources(host, tmp_path / "share", delay="20ms"), "timeout_s": 0.5, "retries": 0}
    events, recorder = Events(), Recorder()
    driver = made("full-crawl", endpoints, params, event=events)
    over = threading.Event()

    def cut_in_the_middle() -> None:
        while recorder.counts()["document:site", "ok"] < PAGES // 3 and not over.wait(0.01):
            pass
        host.cut()

    cutter = threading.Thread(target=cut_in_the_middle)
    with prepared(driver):
        cutter.start()
        try:
            crawl(driver, 8, recorder, limit_s=40)
        finally:
            over.set()
            cutter.join()
    found = ended(events)
    site = found["site"]
    assert (found["share"]["count"], found["share"]["failures"]) == (30, 0)
    assert PAGES // 3 <= site["count"] < PAGES
    assert site["count"] + site["failures"] == PAGES + 1, "each page is one or the other"
    assert set(site["failures_by_kind"]) <= {"timeout", "unreachable", "connection_lost"}
    away = crawled(endpoints, params, sessions=4)
    assert (away["site"]["count"], away["site"]["failures_by_kind"]) == (0, {"unreachable": 1})
    assert away["site"]["repository_latency_s"] is None
    assert away["share"]["count"] == 30
    host.plug()
    until(_answers, "nginx does not answer through the cable")
    again = crawled(endpoints, params, sessions=4)
    assert (again["site"]["count"], again["site"]["failures"]) == (PAGES + 1, 0)


@pytest.mark.root
def test_a_host_far_away_is_slow_and_its_latency_is_the_repositorys(
    sql: Endpoint, host: Host, tmp_path: Path
) -> None:
    """With a delay of 30 ms each fetch from the host takes at least that long; a local folder's does not."""
    require("tc", "iproute2")
    fill(tmp_path / "share", 30)
    host.far_away(30)
    endpoints = {"sql": sql, "search": NOWHERE}
    found = crawled(endpoints, {"sources": sources(host, tmp_path / "share")}, sessions=6)
    assert found["site"]["count"] == PAGES + 1
    assert found["site"]["repository_latency_p50_s"] >= 0.03
    assert found["share"]["repository_latency_p50_s"] < 0.03
