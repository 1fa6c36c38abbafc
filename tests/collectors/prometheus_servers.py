"""A test's own Prometheus and node_exporter, and a relay between them that records each scrape."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import requests
from httpserver import http_served
from serverprocess import ServerProcess, running_process, server_directory
from support import require

from pinchpoint_infra.ports import free_port


@dataclass
class Relay:
    """Forwards node_exporter's page when Prometheus requests it.

    Attributes:
        scrapes: (time, page) of each scrape.
        on_scrape: function called at each scrape.
        broken: while set, the relay answers 503.
    """

    port: int
    target: str
    scrapes: list[tuple[float, str]] = field(default_factory=list)
    on_scrape: Callable[[], None] = lambda: None
    broken: bool = False

    def page(self) -> str | None:
        if self.broken:
            return None
        text = requests.get(self.target, timeout=5).text
        self.scrapes.append((time.time(), text))
        self.on_scrape()
        return text


@contextmanager
def serving(
    answers: Callable[[BaseHTTPRequestHandler], tuple[int, str, str]], port: int = 0
) -> Iterator[int]:
    """Run an HTTP server that answers each GET with (status, content type, body); yield its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, kind, body = answers(self)
            content = body.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Discard the log message."""

    with http_served(Handler, port=port) as found:
        yield found


def _listens(url: str) -> bool:
    try:
        return requests.get(url, timeout=2).status_code == HTTPStatus.OK
    except requests.RequestException:
        return False


@contextmanager
def node_exporter() -> Iterator[str]:
    """Run a node_exporter; yield the URL of its page."""
    program = require("prometheus-node-exporter", "prometheus-node-exporter")
    url = f"http://127.0.0.1:{free_port()}"
    listen = f"--web.listen-address={url.removeprefix('http://')}"
    with server_directory() as folder:
        command = [program, listen, "--log.level=error", f"--collector.textfile.directory={folder}"]
        with running_process(ServerProcess(url, command, folder, lambda: _listens(f"{url}/metrics"))):
            yield f"{url}/metrics"


@contextmanager
def relayed() -> Iterator[Relay]:
    """Run a node_exporter behind a relay."""
    with node_exporter() as page:
        relay = Relay(0, page)

        def answer(_: BaseHTTPRequestHandler) -> tuple[int, str, str]:
            text = relay.page()
            return (503, "text/plain", "broken") if text is None else (200, "text/plain; version=0.0.4", text)

        with serving(answer) as port:
            relay.port = port
            yield relay


@contextmanager
def prometheus(
    scraped: int, every: str = "1s", web_config: str | None = None, scheme: str = "http"
) -> Iterator[ServerProcess]:
    """Run a Prometheus that scrapes one port as job ``node``, with an external label as in fleets."""
    program = require("prometheus", "prometheus")
    port = free_port()
    with server_directory() as folder:
        target = {"targets": [f"127.0.0.1:{scraped}"], "labels": {"rack": "r1"}}
        job = {
            "job_name": "node",
            "scrape_interval": every,
            "scrape_timeout": every,
            "static_configs": [target],
        }
        (folder / "prometheus.yml").write_text(json.dumps({"scrape_configs": [job]}))
        command = [
            program,
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--log.level=warn",
        ]
        if web_config is not None:
            (folder / "web.yml").write_text(web_config)
            command.append(f"--web.config.file={folder / 'web.yml'}")
        ready = _accepts if web_config else lambda port: _listens(f"http://127.0.0.1:{port}/-/ready")
        server = ServerProcess(f"{scheme}://127.0.0.1:{port}", command, folder, lambda: ready(port))
        with running_process(server):
            yield server


def _accepts(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


class Cable:
    """A TCP relay to a local port; a test can cut and mend it.

    Attributes:
        port: TCP port of the relay.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._ends: list[socket.socket] = []
        self._cut = False
        self._closed = False
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def cut(self) -> None:
        """Close all connections and accept none."""
        self._cut = True
        self._break_off()

    def mend(self) -> None:
        """Accept new connections again."""
        self._cut = False

    def close(self) -> None:
        """Close the relay."""
        self._closed = True
        self.cut()
        with socket.create_connection(("127.0.0.1", self.port)):
            pass  # wakes a thread that waits for a connection
        self._thread.join(5)
        self._listener.close()

    def _accept(self) -> None:
        while not self._closed:
            near, _ = self._listener.accept()
            if self._cut:
                near.close()
                continue
            far = socket.create_connection(("127.0.0.1", self._target))
            self._ends += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    @staticmethod
    def _pass_on(one: socket.socket, other: socket.socket) -> None:
        try:
            while piece := one.recv(65536):
                other.sendall(piece)
        except OSError:
            return  # the relay is cut

    def _break_off(self) -> None:
        ends, self._ends = self._ends, []
        for end in ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # the other side has already closed
            finally:
                end.close()


def samples_of(page: str) -> dict[tuple[str, str], float]:
    """Return (name, labels as text) -> value of an exporter's page."""
    found = {}
    for line in page.splitlines():
        if line and not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            bare, _, labels = name.partition("{")
            found[bare, labels.rstrip("}")] = float(value)
    return found


def certificate(folder: Path) -> tuple[Path, Path]:
    """Write (certificate, key) of a self-signed certificate for 127.0.0.1."""
    import datetime  # noqa: PLC0415 -- needed by one test
    import ipaddress  # noqa: PLC0415

    from cryptography import x509  # noqa: PLC0415
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    files = folder / "server.crt", folder / "server.key"
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return files
