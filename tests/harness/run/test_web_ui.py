"""`run --web-ui`: a run whose users are set on Locust's page, from Start to Stop."""

from __future__ import annotations

import json
import re
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from support import end, run_cli, start_cli, wait_for_line

from pinchpoint.store.read import open_run

FARM = """
name: f
environment: test
embedded: {tiers: [nosql]}
tiers: {nosql: {hosts: {nosql1: {}}}}
"""
LOCUSTFILE = """
import time
from locust import User, constant, task

class Visitor(User):
    wait_time = constant(0.02)

    @task
    def visit(self):
        time.sleep(0.01)
        self.environment.events.request.fire(
            request_type="GET", name="/", response_time=10.0, response_length=1, exception=None, context={}
        )
"""
PLAN = """
name: p
scenarios:
  writes: {use: nosql-burst, load: {model: closed, users: 8, think: 20ms}}
  visits: {use: visitor.py, load: {model: closed, users: 4}}
phases: {warm_up: 1s, measure: 60s}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("farm.yaml", FARM), ("plan.yaml", PLAN), ("visitor.py", LOCUSTFILE)):
        (tmp_path / name).write_text(text)
    return tmp_path


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def _ask(url: str, form: dict[str, object] | None = None, **headers: str) -> dict[str, Any]:
    data = None if form is None else urllib.parse.urlencode(form).encode()
    asked = urllib.request.Request(url, data, headers)  # noqa: S310 -- http, as the run printed it
    with urllib.request.urlopen(asked, timeout=10) as answer:  # noqa: S310 -- likewise
        found: dict[str, Any] = json.loads(answer.read())
        return found


def _wait_for_users(url: str, count: int) -> dict[str, Any]:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        stats = _ask(f"{url}stats/requests")
        if stats["user_count"] == count and stats["state"] == "running":
            return stats
        time.sleep(0.1)
    raise AssertionError(f"{stats['user_count']} users, {stats['state']}")


@pytest.mark.farm
def test_users_are_set_on_the_page(folder: Path) -> None:
    """Start, ramp up, ramp down, stop: the last number of users is measured and is in the manifest."""
    port = _free_port()
    process = start_cli(
        "run", f"--web-ui={port}", folder / "plan.yaml",
        "--farm", folder / "farm.yaml", "--out", folder / "runs",
        env={"PINCHPOINT_STATE": str(folder / "state")},
    )  # fmt: skip
    said = wait_for_line(process, "Locust's page")
    found = re.search(r"http://127\.0\.0\.1:\d+/", said)
    assert found, said
    url = found[0]
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        with pytest.raises(urllib.error.HTTPError, match="403"):
            _ask(f"{url}stop", {}, **headers)
    refused = _ask(f"{url}swarm", {"user_count": 13, "spawn_rate": 1})
    assert refused["message"] == "Number of users: found 13; allowed: 1 to 12, the users of the plan"
    assert _ask(f"{url}swarm", {"user_count": 3, "spawn_rate": 10})["success"]
    _wait_for_users(url, 3)
    assert _ask(f"{url}swarm", {"user_count": 12, "spawn_rate": 10})["success"]
    _wait_for_users(url, 12)
    time.sleep(2.5)
    assert _ask(f"{url}swarm", {"user_count": 6, "spawn_rate": 100})["success"]
    _wait_for_users(url, 6)
    time.sleep(4)
    stats = _ask(f"{url}stats/requests")
    assert {one["method"] for one in stats["stats"]} >= {"writes", "visits"}, stats
    assert stats["fail_ratio"] == 0
    assert _ask(f"{url}stop", {})["success"]
    _, out, err = end(process)
    run = open_run(Path(out.splitlines()[-1]))
    assert run.manifest["state"] == "finished", err
    loads = {name: one["load"]["users"] for name, one in run.manifest["plan"]["scenarios"].items()}
    assert loads == {"writes": 4, "visits": 2}
    assert [phase["name"] for phase in run.manifest["phases"]][-1] == "measure"
    assert [phase["name"] for phase in run.manifest["phases"]].count("measure") == 1
    assert any("set on Locust's page (writes 4, visits 2)" in one for one in run.manifest["warnings"])
    users = [event["users"] for event in run.events if event["event"] == "users_set"]
    assert [sum(one.values()) for one in users] == [3, 12, 6]


@pytest.mark.parametrize(
    ("old", "new", "options", "why"),
    [
        ("model: closed, users: 8, think: 20ms", "model: open, rate: 4/s", (), "the load of writes cannot"),
        ("", "", ("--workers", "2"), "one process serves the page"),
        ("", "", ("--repeat", "3"), "one run that you steer"),
        ("", "", ("--prove",), "one run that you steer"),
    ],
)
def test_what_the_page_cannot_steer_is_refused(
    folder: Path, old: str, new: str, options: tuple[str, ...], why: str
) -> None:
    """An unsuitable plan is refused with exit status 2 before anything starts."""
    plan = folder / "plan.yaml"
    plan.write_text(plan.read_text().replace(old, new) if old else plan.read_text())
    port = f"--web-ui={_free_port()}"
    ended = run_cli("run", port, plan, "--farm", folder / "farm.yaml", *options, starts_nothing=True)
    assert (ended.returncode, why in ended.stderr) == (2, True), ended.stderr


def test_a_port_in_use_is_said(folder: Path) -> None:
    """A port in use is refused with exit status 5 before anything starts."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = ("run", f"--web-ui={port}", folder / "plan.yaml", "--farm", folder / "farm.yaml")
        ended = run_cli(*command, starts_nothing=True)
    assert ended.returncode == 5
    assert f"port {port} of 127.0.0.1 cannot be used" in ended.stderr
