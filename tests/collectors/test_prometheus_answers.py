"""Tests of the collector `prometheus`: logins, certificates, errors, partial replies."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from collectors.prometheus_servers import certificate, prometheus, relayed, serving
from collectors.prometheus_watching import gathered, watch, watching

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.exporters.query import partial
from pinchpoint_collectors.exporters.tables import NODE
from pinchpoint_collectors.record import Collector, GapReporter, Incident, Watch
from pinchpoint_collectors.registry import kind

pytestmark = pytest.mark.usefixtures("straight")

HASH = "$2b$04$abcdefghijklmnopqrstuuinwY/tkBVrn3xrxQI/TgnMHhkvl85RW"
"""bcrypt of "sesame"."""


@contextmanager
def _connected(one: Watch) -> Iterator[Collector]:
    """Yield the collector as soon as Prometheus has scrapes."""
    deadline = time.monotonic() + 20
    while True:
        try:
            collector = kind("prometheus").connect([one])
            break
        except CollectorError:
            assert time.monotonic() < deadline
            time.sleep(0.2)
    try:
        yield collector
    finally:
        collector.close()


def test_a_server_with_tls_a_login_and_another_scrape_interval(tmp_path: Path) -> None:
    """Without the certificate or the login it is refused with the remedy and without secrets.

    With a scrape every two seconds and five readings a second, each scrape gives one value and few requests.
    """
    crt, key = certificate(tmp_path)
    web = {
        "tls_server_config": {"cert_file": str(crt), "key_file": str(key)},
        "basic_auth_users": {"watcher": HASH},
    }
    with relayed() as relay, prometheus(relay.port, "2s", json.dumps(web), "https") as server:
        right = {"ca": str(crt), "user": "watcher", "password": "sesame"}
        for options, said in (
            ({**right, "ca": None}, "no known authority; say ca: FILE"),
            ({**right, "password": "wrong-secret"}, "HTTP 401 Unauthorized; give `token`, or `user`"),
            ({**right, "token": "t"}, "allowed: one of the two"),
        ):
            given = {name: value for name, value in options.items() if value is not None}
            with pytest.raises(CollectorError) as caught:
                kind("prometheus").connect([watch(server.url, relay, None, **given)])
            assert said in str(caught.value)
            assert "wrong-secret" not in str(caught.value)
        with _connected(watch(server.url, relay, None, **right)) as collector:
            facts = collector.inventory()["sql1"]
            found = gathered(collector, 4.5)
        login_in_url = server.url.replace("//", "//watcher:sesame@")
        with watching(watch(login_in_url, relay, None, ca=str(crt))) as collector:
            assert collector.inventory()["sql1"]["cores"] == facts["cores"]
    assert (facts["scrape_interval_s"], facts["scrape_interval_from"]) == (2.0, "the server's targets")
    samples = [each for each in found if each.metric == "mem.available_bytes"]
    assert 1 <= len(samples) <= 3
    assert all(each.interval_s == pytest.approx(2, abs=0.1) for each in samples)
    asked = [each for each in found if each.metric == "collector.received_bytes"]
    assert len(asked) <= 8, "between scrapes nothing is asked"


def test_a_token_is_sent_and_an_answer_without_targets_is_enough() -> None:
    """A token is sent, and a reply without targets, as from a store of many servers' series, is enough."""
    seen: list[str | None] = []
    begun = time.time() - 100

    def answer(request: Any) -> tuple[int, str, str]:
        seen.append(request.headers.get("Authorization"))
        if "/api/v1/targets" in request.path:
            return 404, "text/plain", "not here"
        if "time%28%29" in request.path:
            return 200, "application/json", _success("scalar", [time.time(), str(time.time())])
        labels = {"instance": "sql1:9100", "job": "node"}
        if "up" in request.path and "ms%5D" in request.path:
            values = [[begun + 5 * at, "1"] for at in range(20)]
            more = [[begun + 5 * at, str(at * 10)] for at in range(20)]
            name = "node_disk_reads_completed_total"
            found = [
                {"metric": {"__name__": "up", **labels}, "values": values},
                {"metric": {"__name__": name, "device": "sda", **labels}, "values": more},
            ]
            return 200, "application/json", _success("matrix", found)
        one = {"metric": {"__name__": NODE.disks, "device": "sda", **labels}, "value": [begun, "1"]}
        return 200, "application/json", _success("vector", [one])

    with serving(answer) as port:
        options = {"url": f"http://127.0.0.1:{port}/prom", "token": "opensesame"}
        with watching(Watch("sql1", "sql", options=options)) as collector:
            facts = collector.inventory()["sql1"]
            told = collector.incidents() if isinstance(collector, GapReporter) else ()
    assert set(seen) == {"Bearer opensesame"}
    assert [each.event for each in told] == ["partial_answer"]
    assert "a store did not answer" in told[0].fields["why"]
    assert facts["scrape_interval_s"] == pytest.approx(5)
    assert facts["scrape_interval_from"] == "the distance of scrapes"


def _success(kind_: str, result: Any) -> str:
    content = {"status": "success", "data": {"resultType": kind_, "result": result}}
    return json.dumps(content | {"warnings": ["a store did not answer"]})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "url: missing; needed: as in"),
        ({"url": "prometheus:9090"}, "none of http:// or https://"),
        ({"url": "http://127.0.0.1:1"}, "connection refused; start the server"),
        ({"url": "http://h:port"}, "cannot be read"),
        ({"url": "http://127.0.0.1:9", "ca": "/nowhere.pem"}, "ca: there is no file /nowhere.pem"),
    ],
)
def test_a_server_that_cannot_be_asked_is_explained(options: dict[str, str], said: str) -> None:
    """Each unreachable server gives one sentence with the remedy."""
    with pytest.raises(CollectorError, match="host 'sql1', collector 'prometheus'") as caught:
        kind("prometheus").connect([Watch("sql1", "sql", options=options)])
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_something_else_than_prometheus_is_told_from_it() -> None:
    """Another web page is detected, and Prometheus' own error is quoted."""
    answers = {"html": (200, "text/html", "<html>"), "error": (422, "application/json", json.dumps(
        {"status": "error", "error": "query processing would load too many samples"}
    ))}  # fmt: skip
    for what, said in (("html", "no Prometheus (HTTP 200, no JSON)"), ("error", "too many samples")):
        with serving(lambda _, what=what: answers[what]) as port, pytest.raises(CollectorError) as caught:  # type: ignore[misc]
            kind("prometheus").connect([Watch("sql1", "sql", options={"url": f"http://127.0.0.1:{port}"})])
        assert said in str(caught.value)


@pytest.mark.parametrize(
    ("status", "said"), [(503, "it is starting"), (429, "overloaded"), (418, "correct the url")]
)
def test_a_server_that_is_starting_is_none_that_is_wrong(status: int, said: str) -> None:
    """A Prometheus that replays its log, and answers 503, is reported as starting, not as a wrong url."""
    with serving(lambda _: (status, "text/plain", "Service Unavailable")) as port:
        options = {"url": f"http://127.0.0.1:{port}"}
        with pytest.raises(CollectorError, match=rf"HTTP {status}.*{said}"):
            kind("prometheus").connect([Watch("sql1", "sql", options=options)])


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"warnings": ["store 10.0.0.9 did not answer"]}, "store 10.0.0.9 did not answer"),
        ({"isPartial": True}, "isPartial"),
        ({"warnings": [], "isPartial": False}, None),
        ([], None),
    ],
)
def test_an_answer_that_may_lack_something_says_so(said: Any, words: str | None) -> None:
    """A partial reply, in the form of Thanos or VictoriaMetrics, is reported."""
    assert partial(said) == words


def test_an_incident_is_a_line_of_the_events() -> None:
    """An incident can be written as JSON."""
    assert json.dumps(Incident("gap", {"missed": 3})._asdict())
