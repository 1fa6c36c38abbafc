"""Runs the live page in a process of its own: receives states from the run; serves page, events and metrics.

The process draws charts only while a page is open, runs with low priority, and ends with the run.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from threading import Condition, Thread

from jinja2 import ChoiceLoader, Environment, PackageLoader

from pinchpoint.base.objects import JsonObject
from pinchpoint.data.queries import SamplePoint
from pinchpoint.data.timeaxis import TimeAxis
from pinchpoint.data.timeline import Panel, TimelineSeries
from pinchpoint.live import prometheus
from pinchpoint.report.charts import Chart
from pinchpoint.report.html import environment, policy, template_file
from pinchpoint.report.timeline_chart import panel_chart

_DRAWN_EVERY_S = 5.0
_KEPT = 900
"""Number of states in the charts; they cover a quarter of an hour."""
_MOST_PAGES = 32
_MOST_BYTES = 8 << 20
_BEAT_S = 10.0
_NICE = 10
_HOSTS = ("127.0.0.1", "localhost", "[::1]")


class Feed:
    """The latest events for pages, by name. Pages wait for the next event."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._newest: dict[str, tuple[int, str]] = {}
        self._count = 0
        self._ended = False
        self.state: JsonObject | None = None
        self.pages = 0

    def publish(self, name: str, content: str, state: JsonObject | None = None) -> None:
        """Send an event to all pages."""
        with self._changed:
            self._count += 1
            self._newest[name] = self._count, content
            self.state = state or self.state
            self._changed.notify_all()

    def end(self) -> None:
        """End the feed: every page shows that the run has ended, and no event follows."""
        self.publish("ended", "")
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def events(self) -> Iterator[tuple[str, str]]:
        """Yield the current events, then every change.

        ``("", "")`` is yielded from time to time, so that the server notices a closed page.
        """
        seen = 0
        with self._changed:
            self.pages += 1
        try:
            while True:
                with self._changed:
                    if self._count == seen and not self._ended:
                        self._changed.wait(_BEAT_S)
                    new = [(at, name, text) for name, (at, text) in self._newest.items() if at > seen]
                    seen, over = self._count, self._ended
                yield from [(name, text) for _, name, text in sorted(new)] or [("", "")]
                if over:
                    return
        finally:
            with self._changed:
                self.pages -= 1


class History:
    """The figures of the last quarter of an hour, for charts like those of the report."""

    def __init__(self) -> None:
        self._states: deque[JsonObject] = deque(maxlen=_KEPT)

    def take(self, state: JsonObject) -> None:
        """Store the figures of a state. Only states during the load are stored."""
        if state["left_s"] is not None:
            kept = ("time_s", "scenarios", "machines")
            self._states.append({name: state[name] for name in kept})

    def charts(self) -> list[Chart]:
        """Draw the charts of the report; none if there are fewer than two states."""
        states = list(self._states)
        if len(states) < 2:
            return []
        start_s, end_s = states[0]["time_s"], states[-1]["time_s"]
        every = max(1, len(states) // 300)
        clock = TimeAxis(start_s, max(end_s - start_s, 1.0), (), every)

        def lines(
            read: Callable[[JsonObject], Iterator[tuple[str, float | None]]],
        ) -> tuple[TimelineSeries, ...]:
            points: dict[str, list[SamplePoint]] = {}
            for state in states[::every]:
                for name, value in read(state):
                    if value is not None:
                        at_s = state["time_s"] - start_s
                        points.setdefault(name, []).append(SamplePoint(at_s, value, value, value))
            return tuple(TimelineSeries(name, tuple(line)) for name, line in points.items())

        panels = (
            Panel("throughput", "Throughput", "rate", lines(_throughput), ""),
            Panel("latency", "Latency, p95 of each second", "latency", lines(_latency), "", logarithmic=True),
            Panel("cpu", "CPU busy", "ratio", lines(_cpu), ""),
            Panel("disk_write_latency", "Disk write latency", "latency", lines(_writes), ""),
            Panel("disk_iops", "Disk IOPS, reads and writes", "rate", lines(_iops), ""),
        )
        return [panel_chart(panel, clock) for panel in panels if panel.series]


def _throughput(state: JsonObject) -> Iterator[tuple[str, float | None]]:
    yield from ((one["name"], one["ok"]) for one in state["scenarios"])


def _latency(state: JsonObject) -> Iterator[tuple[str, float | None]]:
    yield from ((one["name"], one["p95_s"] or None) for one in state["scenarios"])


def _cpu(state: JsonObject) -> Iterator[tuple[str, float | None]]:
    for machine in state["machines"]:
        yield f"machine {machine['name']}", machine["cpu"]
        yield from ((tier["name"], tier["cpu"]) for tier in machine["tiers"])


def _writes(state: JsonObject) -> Iterator[tuple[str, float | None]]:
    yield from ((disk["name"], disk["write_latency_s"]) for one in state["machines"] for disk in one["disks"])


def _iops(state: JsonObject) -> Iterator[tuple[str, float | None]]:
    yield from ((disk["name"], disk["iops"]) for one in state["machines"] for disk in one["disks"])


class LivePages:
    """Renders states as HTML."""

    def __init__(self) -> None:
        made = environment()
        loaders = [PackageLoader("pinchpoint.live", "templates"), made.loader]
        self._jinja: Environment = made.overlay(loader=ChoiceLoader([one for one in loaders if one]))
        self._style = template_file("style.css")
        self._script = files("pinchpoint.live").joinpath("templates", "live.js").read_text(encoding="utf-8")
        self.policy = f"{policy([self._script])}; connect-src 'self'"

    def page(self) -> str:
        """Return the whole page. Its contents arrive later as events."""
        return self._jinja.get_template("live.html.j2").render(style=self._style, script=self._script)

    def state(self, state: JsonObject) -> str:
        """Return the figures of a state."""
        return self._jinja.get_template("state.html.j2").render(run=state)

    def charts(self, charts: list[Chart]) -> str:
        """Return the charts."""
        return self._jinja.get_template("charts.html.j2").render(charts=charts)


class Handler(BaseHTTPRequestHandler):
    """Answers requests for ``/``, ``/events`` and ``/metrics`` from this machine only."""

    feed: Feed
    page: str
    policy: str
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer one request. Events continue until the run ends or the page is closed."""
        if self.headers.get("Host", "").rpartition(":")[0] not in _HOSTS:
            self._answer(HTTPStatus.FORBIDDEN, "text/plain", "this page is for this machine alone\n")
        elif self.path == "/":
            self._answer(HTTPStatus.OK, "text/html; charset=utf-8", self.page)
        elif self.path == "/metrics":
            state = self.feed.state
            self._answer(HTTPStatus.OK, prometheus.CONTENT_TYPE, prometheus.text(state) if state else "")
        elif self.path == "/events" and self.feed.pages < _MOST_PAGES:
            self._events()
        else:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", "there are /, /events and /metrics\n")

    def _events(self) -> None:
        self.send_response(HTTPStatus.OK)
        self._headers("text/event-stream")
        self.close_connection = True
        try:
            for name, content in self.feed.events():
                text = f"event: {name}\ndata: {json.dumps(content)}\n\n" if name else ":\n\n"
                self.wfile.write(text.encode())
                self.wfile.flush()
        except OSError:
            return  # the page was closed

    def _answer(self, status: HTTPStatus, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self._headers(kind)
        self.wfile.write(body)

    def _headers(self, kind: str) -> None:
        self.send_header("Content-Type", kind)
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", self.policy)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Write nothing, because the terminal shows the run."""


class _Server(ThreadingHTTPServer):
    """Listens on the socket that the run opened."""

    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Ignore the error: a closed browser is no error of the run."""


def serve(listening: socket.socket, states: socket.socket, otlp: str) -> None:
    """Serve until the run closes its end. Metrics are sent to ``otlp`` unless it is empty."""
    feed, history, pages = Feed(), History(), LivePages()
    os.nice(_NICE)  # imported only now, because nothing is measured while the process starts
    Handler.feed, Handler.page, Handler.policy = feed, pages.page(), pages.policy
    server = _Server(listening.getsockname(), Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = listening
    Thread(target=server.serve_forever, daemon=True).start()
    Thread(target=_draw, args=(feed, history, pages), daemon=True).start()
    if otlp:
        from pinchpoint.live.otlp import push  # noqa: PLC0415 -- an extra

        Thread(target=push, args=(lambda: feed.state, otlp), daemon=True).start()
    while message := states.recv(_MOST_BYTES):
        state = json.loads(message)
        history.take(state)
        feed.publish("state", pages.state(state), state)
    feed.end()
    time.sleep(0.1)  # each page's thread has sent the end by then; the run does not wait longer


def _draw(feed: Feed, history: History, pages: LivePages) -> None:
    while True:
        begun = time.monotonic()
        if feed.pages and (charts := history.charts()):
            feed.publish("charts", pages.charts(charts))
        time.sleep(max(0.5, _DRAWN_EVERY_S - (time.monotonic() - begun)) if feed.pages else 0.5)


def main() -> None:
    """Run the process.

    Its arguments are the file descriptors of the port and of the messages, and the address for metrics.
    """
    listening, states = (socket.socket(fileno=int(number)) for number in sys.argv[1:3])
    serve(listening, states, sys.argv[3])
    os._exit(0)  # do not wait for threads that still draw


if __name__ == "__main__":
    main()
