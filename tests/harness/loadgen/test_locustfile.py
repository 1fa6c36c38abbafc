"""A plain locustfile in a plan: real users and server, with the server's number of requests."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from hdrh.histogram import HdrHistogram
from support import run_cli

from pinchpoint.base.errors import GuardError, InputError
from pinchpoint.plan import guard, load
from pinchpoint.plan.locustfile import _reach
from pinchpoint.store.read import StoredRun, open_run

SLASH = "\u2215"
SLOW_S = 0.05
BODY = b"x" * 1000
NOBODY = "http://127.0.0.1:9"

FILE = """
import os
import time
from locust import FastHttpUser, HttpUser, between, constant, events, task

print("what a file prints harms nobody")
os.system("date; cat")  # nor does what its children print or read
TOLD = []


@events.test_start.add_listener
def begins(environment, **_):
    TOLD.append("begun")


class Browser(HttpUser):
    wait_time = between(0.01, 0.03)

    def on_start(self):
        assert TOLD == ["begun"]
        self.client.get("/login", name="log in")

    @task(4)
    def page(self):
        self.client.get("/page")

    @task
    def slow(self):
        with self.client.get("/slow", catch_response=True) as answer:
            time.sleep(0.2)
            answer.success()

    @task
    def missing(self):
        self.client.get("/broken")

    @task
    def doubted(self):
        with self.client.get("/doubted", catch_response=True) as answer:
            answer.failure("not what was asked for")


class Api(FastHttpUser):
    fixed_count = 1
    wait_time = constant(0.02)

    @task
    def item(self):
        self.client.get("/api/item")

    @task
    def broken(self):
        self.client.get("/broken", name="a broken one")

    @task
    def faulty(self):
        raise KeyError("a fault of the file")
"""


class Server:
    """A server that counts its requests."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        counted = self.asked

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # one write per answer: two would wait for an acknowledgement in between

            def do_GET(self) -> None:
                counted[self.path] += 1
                if self.path == "/slow":
                    time.sleep(SLOW_S)
                self.send_response(500 if self.path == "/broken" else 200)
                self.send_header("Content-Length", str(len(BODY)))
                self.end_headers()
                self.wfile.write(BODY)

            def log_message(self, *_: Any) -> None:
                """Do nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


def write(
    folder: Path, scenario: dict[str, Any], url: str = NOBODY, measure_s: int = 4, **farm: Any
) -> list[Path]:
    """Write a plan with one scenario and a farm with one endpoint; return [plan, farm]."""
    paths = [folder / "plan.yaml", folder / "farm.yaml"]
    plan = {
        "name": "p",
        "scenarios": {
            "shop": {"use": "./shop.py", "load": {"model": "closed", "users": 4}, **scenario},
        },
        "phases": {"warm_up": "1s", "measure": f"{measure_s}s"},
    }
    given = {"name": "f", "environment": "test", "endpoints": {"sharepoint": {"url": url}}, **farm}
    for path, content in zip(paths, (plan, given), strict=True):
        path.write_text(json.dumps(content, indent=1))
    return paths


def run(folder: Path, *files: Path, options: tuple[str, ...] = ()) -> StoredRun:
    plan, farm = files
    done = run_cli("run", plan, "--farm", farm, "--out", folder / "runs", *options)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return open_run(Path(done.stdout.splitlines()[-1]))


def counts(found: StoredRun) -> dict[tuple[str, str], int]:
    table = found.operations.group_by(["operation", "outcome"]).aggregate([("count", "sum")])
    return {
        (row["operation"].replace(SLASH, "/"), row["outcome"]): row["count_sum"] for row in table.to_pylist()
    }


@pytest.fixture(scope="module")
def shop(server: Server, tmp_path_factory: pytest.TempPathFactory) -> StoredRun:
    folder = tmp_path_factory.mktemp("shop")
    (folder / "shop.py").write_text(FILE)
    files = write(folder, {"params": {"endpoint": "sharepoint"}}, server.url)
    return run(folder, *files, options=("--workers", "2"))


@pytest.mark.farm
def test_every_request_is_recorded_as_the_server_counted_it(shop: StoredRun, server: Server) -> None:
    """HttpUser and FastHttpUser requests are all recorded, with any result, and those of on_start."""
    found = counts(shop)
    by_name: Counter[str] = Counter()
    for (operation, _), count in found.items():
        by_name[operation] += count
    del by_name["task"]
    assert by_name.pop("log in") == server.asked["/login"] == 3
    assert by_name.pop("/broken") + by_name.pop("a broken one") == server.asked["/broken"] > 0
    assert by_name == {path: server.asked[path] for path in ("/page", "/slow", "/doubted", "/api/item")}


@pytest.mark.farm
def test_failures_have_names(shop: StoredRun) -> None:
    """Failures have the name of their status, of the file's own message, or of the exception."""
    outcomes = {
        operation: {outcome for name, outcome in counts(shop) if name == operation}
        for operation, _ in counts(shop)
    }
    assert outcomes == {
        "log in": {"ok"},
        "/page": {"ok"},
        "/slow": {"ok"},
        "/broken": {"http_500"},
        "a broken one": {"http_500"},
        "/doubted": {"CatchResponseError"},
        "/api/item": {"ok"},
        "task": {"KeyError"},
    }
    [told] = {event["why"] for event in shop.events if event["event"] == "task_failed"}
    assert "shop.py: line " in told
    assert told.endswith("KeyError: 'a fault of the file'")
    assert sum(event["event"] == "task_failed" for event in shop.events) <= 10


@pytest.mark.farm
def test_times_and_bytes_are_those_of_the_requests(shop: StoredRun) -> None:
    """50 ms at the server are 50 ms in the record, without the file's later work."""
    slow = shop.operations.filter(pc.field("operation") == f"{SLASH}slow")
    whole = HdrHistogram(1, 3_600_000_000, 3)
    for text in slow["service"].to_pylist():
        whole.decode_and_add(text)
    assert SLOW_S * 1e6 <= whole.get_value_at_percentile(50) < 150_000
    assert whole.get_total_count() == pc.sum(slow["count"]).as_py()
    assert slow["response"].null_count == slow.num_rows, "a closed load has no intended starts"
    assert pc.sum(slow["bytes"]).as_py() == len(BODY) * whole.get_total_count()


@pytest.mark.farm
def test_the_run_is_one_like_any_other(shop: StoredRun) -> None:
    """The run's verdict counts the users without a warning, and its plan names the file."""
    verdict = json.loads((shop.directory / "verdict.json").read_text())
    assert verdict["outcome"] != "invalid", verdict["summary"]
    assert verdict["scenarios"]["shop"]["throughput_per_s"] > 10
    assert shop.manifest["plan"]["scenarios"]["shop"]["use"].endswith("/shop.py")
    users = shop.samples.to_table().filter(pc.field("metric") == "generator.users")
    most = users.group_by("host").aggregate([("value", "max")])
    assert most["value_max"].to_pylist() == [2, 2], "two workers, two users each"


@pytest.mark.slow
@pytest.mark.farm
@pytest.mark.alone
def test_a_file_without_end_of_names_stays_bounded(tmp_path: Path, server: Server) -> None:
    """From the 501st name on requests count as others, which is reported once."""
    (tmp_path / "shop.py").write_text(
        "import itertools\nfrom locust import FastHttpUser, constant, task\nNUMBERS = itertools.count()\n"
        "class U(FastHttpUser):\n    wait_time = constant(0.01)\n"
        "    @task\n    def t(self): self.client.get(f'/item/{next(NUMBERS)}')\n"
    )
    before = sum(server.asked.values())
    found = run(tmp_path, *write(tmp_path, {"params": {"host": server.url}}))
    names = {name for name, _ in counts(found)}
    assert len(names) == 501
    assert "(other requests)" in names
    assert sum(counts(found).values()) == sum(server.asked.values()) - before
    assert [event["event"] for event in found.events].count("too_many_names") == 1


@pytest.mark.farm
@pytest.mark.alone
@pytest.mark.slow  # a whole run for one sentence
def test_users_that_cannot_start_are_told_not_shown(tmp_path: Path, server: Server) -> None:
    """An exception in ``on_start`` is a failed operation and an event, and the run continues."""
    (tmp_path / "shop.py").write_text(
        "from locust import HttpUser, task\n"
        "class U(HttpUser):\n"
        "    def on_start(self): raise RuntimeError('no such account')\n"
        "    @task\n    def t(self): pass\n"
    )
    plan, farm = write(tmp_path, {"params": {"host": server.url}}, measure_s=1)
    done = run_cli("run", plan, "--farm", farm, "--out", tmp_path / "runs")
    assert "Traceback" not in done.stderr
    found = open_run(Path(done.stdout.splitlines()[-1]))
    assert counts(found) == {("task", "RuntimeError"): 4}
    assert "no such account" in str(found.events)


@pytest.mark.farm
def test_check_reaches_the_host(tmp_path: Path, server: Server) -> None:
    """``check`` fails for an unreachable host, and names the users for a reachable one."""
    (tmp_path / "shop.py").write_text(FILE)
    plan, farm = write(tmp_path, {"params": {"host": server.url}})
    done = run_cli("check", plan, "--farm", farm)
    assert (done.returncode, "Browser, Api" in done.stdout) == (0, True), done.stdout + done.stderr
    plan, farm = write(tmp_path, {"params": {"endpoint": "sharepoint"}})
    done = run_cli("check", plan, "--farm", farm)
    assert done.returncode == 5
    assert "http://127.0.0.1:9, the host of the locustfile, does not answer" in done.stdout
    assert "Traceback" not in done.stderr


GOOD = """
from locust import HttpUser, task
class U(HttpUser):
    host = 'http://h.invalid'
    @task
    def t(self): pass
"""


FIXED = GOOD.replace("    host =", "    fixed_count = 1\n    host =")


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return one file for many tests, so that it is imported once, in its own process."""
    path = tmp_path_factory.mktemp("good") / "shop.py"
    path.write_text(GOOD)
    return path


@pytest.mark.parametrize(
    ("content", "scenario", "said"),
    [
        (None, {}, ['"./shop.py" is no file', "in that folder: shops.py", "nearest: shops.py"]),
        ("", {}, ['"./shop.py" has no user class', "a subclass of locust.User"]),
        ("a = 1\ndef x(:\n", {}, ['"./shop.py" cannot be used: line 2: SyntaxError: invalid syntax']),
        ("\n1 / 0\n", {}, ["line 2: ZeroDivisionError: division by zero", "that `locust -f` takes"]),
        ("import sys\nsys.exit(3)\n", {}, ["line 2: SystemExit: 3"]),
        ("import os\nos._exit(3)\n", {}, ["ended the process (exit status 3)"]),
        (GOOD.replace("host =", "hosts ="), {}, ['U in "./shop.py" has no host', "params: {endpoint: NAME}"]),
        (
            FIXED,
            {},
            ['users: 4 users, and all classes of "./shop.py" have a fixed_count, 1 in all', "users: 1, or"],
        ),
        (
            FIXED,
            {"load": {"model": "ramp", "from": 1, "to": 6, "over": "10s"}},
            ["load.to: 6 users", "needed: to: 1, or a class without fixed_count"],
        ),
        (
            FIXED,
            {"load": {"model": "steps", "start": 1, "step": 1, "each": "20s"}},
            ["12 users", "at_most: 1"],
        ),
        (GOOD, {"use": "./shop.txt"}, ['"./shop.txt" is no scenario, and no .py file']),
        (
            GOOD,
            {"load": {"model": "open", "rate": "5/s"}},
            ['the load model "open" for a locustfile', "closed"],
        ),
        (None, {"load": {"model": "closed", "users": 1, "think": "1s"}}, ["a think time for a locustfile"]),
        (None, {"params": {"endpoint": "sharepiont"}}, ["which", "lacks", "nearest: sharepoint"]),
        (None, {"params": {"host": "web1"}}, ["a URL such as http://web1:8080"]),
        (None, {"params": {"host": "http://web1:80x"}}, ["a wrong port; allowed: a URL such as"]),
        (None, {"params": {"host": "http://web..1"}}, ["a host that can be no name"]),
        (None, {"params": {"host": "http://[::1"}}, ["a URL such as http://web1:8080"]),
        (GOOD.replace("h.invalid", "h:80x"), {}, ['U in "./shop.py" has a host that', "http://web1:8080"]),
        (None, {"params": {"host": "http://u:secret@web1"}}, ["secrets live in farm.yaml alone"]),
        (None, {"params": {"endpoint": "sharepoint", "host": "http://h"}}, ["allowed: one of them"]),
        (None, {"params": {"hots": "http://h"}}, ["nearest: host"]),
    ],
)
def test_what_is_wrong_is_said_when_the_plan_is_read(
    tmp_path: Path, good: Path, content: str | None, scenario: dict[str, Any], said: list[str]
) -> None:
    """An error has the plan's file and line and a remedy; the import happens in another process."""
    (tmp_path / "shops.py").write_text("raise SystemExit('never imported')")
    if content is not None:
        (tmp_path / "shop.py").write_text(content)
    elif scenario:
        scenario = {"use": str(good), **scenario}
    plan, farm = write(tmp_path, scenario)
    with pytest.raises(InputError) as caught:
        load(farm, plan)
    [sentence] = caught.value.args
    file, line, *_ = sentence.split(":")
    assert (file, int(line) > 1) == (str(plan), True)
    assert all(words in sentence for words in said), sentence
    assert "secret@" not in sentence


@pytest.mark.parametrize("url", ["cassandra://c1:9042,c2:9042/ks", "tcp://h:80x", "http://h..invalid"])
def test_a_host_that_only_the_files_own_client_understands_is_not_reached(url: str) -> None:
    """``check`` does not connect to a list of hosts, nor to the host of a user without HTTP."""
    _reach(url)


def test_a_locustfile_refuses_production(tmp_path: Path, good: Path) -> None:
    """A locustfile refuses production, because the effect of its requests is unknown."""
    plan, farm = write(tmp_path, {"use": str(good)}, environment="production")
    with pytest.raises(GuardError, match="production"):
        guard(*load(farm, plan))


def test_reading_a_plan_leaves_the_process_as_it_was(tmp_path: Path) -> None:
    """Reading a plan does not import Locust, which patches the process."""
    (tmp_path / "shop.py").write_text(GOOD)
    plan, farm = write(tmp_path, {})
    script = (
        "import sys\nfrom pinchpoint.plan import load\n_, plan = load(*sys.argv[1:])\n"
        "print(plan.scenarios['shop'].use, 'locust' in sys.modules, 'gevent' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, farm, plan], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == [str(tmp_path / "shop.py"), "False", "False"]
