"""`run --live`: the page of a real run in Chromium, its metrics, and a page that hangs."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait
from support import end, require, start_cli, wait_for_line

from pinchpoint import cli
from pinchpoint.base.errors import FarmUnavailable, InputError
from pinchpoint.cli.run import live_page
from pinchpoint.live import prometheus
from pinchpoint.live.display import LivePage

DASHBOARD = Path(__file__).parents[3] / "infra" / "grafana" / "pinchpoint.json"
FARM = """
name: f
environment: test
embedded: {tiers: [nosql]}
"""
PLAN = """
name: p
scenarios: {burst: {use: nosql-burst, load: {model: open, rate: 100/s}}}
phases: {warm_up: 1s, measure: 20s}
objectives:
  - {scenario: burst, p95: 5s}
  - {scenario: burst, p99: 5s}
  - {metric: cpu.busy_ratio, tier: nosql, max: 100%}
  - {metric: disk.write_latency_s, role: data, mean: 50s}
  - {metric: mem.available_bytes, host: nosql1, min: 1B}
"""
OF_SERVERS = (
    "nosql max cpu.busy_ratio at most 100 %",
    "data disk mean disk.write_latency_s at most 50 s",
    "nosql1 min mem.available_bytes at least 1 B",
)


def _get(url: str, **headers: str) -> str:
    asked = urllib.request.Request(url, headers=headers)  # noqa: S310 -- http, as the run printed it
    with urllib.request.urlopen(asked, timeout=5) as answer:  # noqa: S310 -- likewise
        return str(answer.read().decode())


@pytest.mark.farm
@pytest.mark.browser
@pytest.mark.alone
def test_a_run_is_seen_while_it_goes_on(browser: webdriver.Chrome, tmp_path: Path) -> None:
    """The live page has phase, limits, scenario, objectives and charts, and Prometheus metrics."""
    (tmp_path / "farm.yaml").write_text(FARM)
    (tmp_path / "plan.yaml").write_text(PLAN)
    process = start_cli(
        "run", "--live=0", tmp_path / "plan.yaml",
        "--farm", tmp_path / "farm.yaml", "--out", tmp_path / "runs",
        env={"PINCHPOINT_STATE": str(tmp_path / "state")},
    )  # fmt: skip
    said = wait_for_line(process, "warm-up")
    found = re.search(r"live: (http://127\.0\.0\.1:\d+/)", said)
    assert found, said
    url = found[1]
    browser.get(url)
    wait = WebDriverWait(browser, 30)
    wait.until(lambda page: "Measuring" in page.find_element(By.ID, "phase").text)
    wait.until(lambda page: page.find_elements(By.CSS_SELECTOR, "#charts figure svg path"))
    text = browser.find_element(By.TAG_NAME, "body").text
    for words in ("p on f", "CPU of", "data disk of nosql", "burst", "p95 at most 5 s", "met", "Throughput"):
        assert words in text, text
    rows = "".join(rf"{re.escape(words)} .*met\n" for words in OF_SERVERS)
    wait.until(lambda page: re.search(rows, page.find_element(By.TAG_NAME, "body").text))
    assert browser.find_element(By.ID, "lost").text == ""
    wanted = set(re.findall(r"pinchpoint_\w+", " ".join(_queries(json.loads(DASHBOARD.read_text())))))
    assert len(wanted) >= 9
    # In a second without ended operations there is no p95.
    wait.until(lambda _: wanted <= set(re.findall(r"^# TYPE (\S+)", _get(f"{url}metrics"), re.MULTILINE)))
    metrics = _get(f"{url}metrics")
    checked = subprocess.run(
        [require("promtool", "prometheus"), "check", "metrics"],
        input=metrics, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert checked.returncode in (0, 3), checked.stderr  # 3: warnings about names
    assert 'pinchpoint_operations_total{scenario="burst",outcome="ok"}' in metrics
    assert 'pinchpoint_objective_met{scenario="burst",objective="p95_s"} 1.0' in metrics
    assert (
        'pinchpoint_objective_met{servers="data disk",objective="mean disk.write_latency_s"} 1.0' in metrics
    )
    with pytest.raises(urllib.error.HTTPError, match="403"):
        _get(url, Host="evil.example:80")
    code, out, err = end(process)
    assert code in (0, 3), err  # 3: the machine did other work, too
    assert (Path(out.splitlines()[-1]) / "report.html").exists()
    wait.until(lambda page: page.find_element(By.ID, "phase").text == "The run has ended")
    assert [entry for entry in browser.get_log("browser") if "favicon" not in entry["message"]] == []  # type: ignore[no-untyped-call]


def _queries(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("expr"), str):
            yield part["expr"]
        part = list(part.values())
    if isinstance(part, list):
        for each in part:
            yield from _queries(each)


def test_a_page_that_hangs_delays_nothing() -> None:
    """States for a hanging live page are dropped, and the page does not delay the run's end."""
    page = LivePage(0)
    with page:
        os.kill(page._process.pid, signal.SIGSTOP)
        begun = time.monotonic()
        for _ in range(2000):
            page.send({"samples": ["x" * 20_000]})
        assert time.monotonic() - begun < 5
        begun = time.monotonic()
    assert time.monotonic() - begun < 2
    assert page._process.poll() is not None


def test_a_port_in_use_is_said() -> None:
    """A port in use is refused before anything starts, with exit status 5."""
    with LivePage(0) as page, pytest.raises(FarmUnavailable, match=r"cannot be used.*give another"):
        LivePage(int(page.url.rstrip("/").rpartition(":")[2]))


@pytest.mark.parametrize(
    ("given", "port"),
    [
        (["--live", "p.yaml"], 8765), (["p.yaml", "--live"], 8765), (["--live", "90", "p.yaml"], 90),
        (["p.yaml", "--live=0"], 0), (["p.yaml"], None),
    ],
)  # fmt: skip
def test_a_plan_is_no_port(given: list[str], port: int | None) -> None:
    """The word after --live is its port only where it is a number."""
    found = cli.command("run").make_context("run", [*given, "--farm", "f.yaml"]).params
    assert (found["live_port"], str(found["plan_file"])) == (port, "p.yaml")


def test_hostile_names_stay_text() -> None:
    """Hostile names are escaped in metric labels, and unmeasured values have no line."""
    state = {
        "plan": "p", "farm": "f", "phase": "measuring", "left_s": None, "scenarios": [], "objectives": [],
        "limits": [{"what": 'a "disk"\n\\', "of": "", "ratio": 0.5, "for_s": None}],
        "samples": [["h", "disk.write_bytes_per_s", "<script>", 1.0]], "tiers": {"h": "sql"},
    }  # fmt: skip
    said = prometheus.text(state)
    assert 'pinchpoint_limit_used_ratio{resource="a \\"disk\\"\\n\\\\"} 0.5\n' in said
    assert 'pinchpoint_disk_write_bytes_per_second{host="h",tier="sql",instance="<script>"} 1.0\n' in said
    assert "time_left" not in said


def test_metrics_go_to_open_telemetry() -> None:
    """OpenTelemetry gets the state's names and values; a refusal is reported once."""
    received: SimpleQueue[bytes] = SimpleQueue()

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.put(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    collector = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    thread = Thread(target=collector.serve_forever)
    thread.start()
    state = {
        "plan": "p", "farm": "f", "time_s": 1.8e9, "phase": "measuring", "left_s": 5.0, "note": "",
        "scenarios": [{"name": "a", "ok": 7, "p95_s": None, "failed": 0, "dropped": 0, "totals": {"ok": 70}}],
        "objectives": [], "limits": [], "machines": [], "samples": [], "tiers": {},
    }  # fmt: skip
    with LivePage(0, f"http://127.0.0.1:{collector.server_port}") as page:
        page.send(state)
        body = received.get(timeout=30)
    collector.shutdown()
    collector.server_close()
    thread.join()
    body = gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
    [resource] = ExportMetricsServiceRequest.FromString(body).resource_metrics
    found = {metric.name: metric for metric in resource.scope_metrics[0].metrics}
    assert found["pinchpoint_operations_per_second"].gauge.data_points[0].as_double == 7
    [total] = found["pinchpoint_operations_total"].sum.data_points
    assert total.as_double == 70
    assert {one.key: one.value.string_value for one in total.attributes} == {"scenario": "a", "outcome": "ok"}
    assert "pinchpoint_p95_seconds" not in found
    names = {one.key: one.value.string_value for one in resource.resource.attributes}
    assert (names["service.name"], names["pinchpoint.plan"]) == ("pinchpoint", "p")


@pytest.mark.parametrize(
    ("port", "url", "said"),
    [
        (None, "http://127.0.0.1:4318", "--otlp: sends what the page of --live shows; add --live"),
        (0, "collector:4318", "--otlp: found 'collector:4318'; allowed: http://HOST:PORT"),
    ],
)
def test_where_metrics_cannot_go(port: int | None, url: str, said: str) -> None:
    """An unsuitable metrics target is bad input, before anything starts."""
    with pytest.raises(InputError, match=re.escape(said)), live_page(port, url):
        pass
