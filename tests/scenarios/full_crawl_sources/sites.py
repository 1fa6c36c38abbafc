"""Real servers for the tests of content sources: nginx, Samba, and a front that asks for NTLM."""

from __future__ import annotations

import base64
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.error import HTTPError

import spnego
from spnego.exceptions import SpnegoError
from support import require

from pinchpoint_infra.ports import free_port
from pinchpoint_scenarios.full_crawl.sources import Fetched, Item, Source


def walk(source: Source) -> tuple[list[Item], dict[str, Fetched]]:
    """Everything a source holds: the containers, and each document as it was fetched."""
    waiting, containers, fetched = [source.root()], [], dict[str, Fetched]()
    known = {(waiting[0].url, waiting[0].kind)}
    while waiting:
        item = waiting.pop()
        if item.kind == "container":
            containers.append(item)
            with source.turn(item):
                found = source.enumerate(item)
        else:
            with source.turn(item):
                fetched[item.url] = source.fetch(item)
            found = fetched[item.url].found
        for each in found:
            if (each.url, each.kind) not in known:
                known.add((each.url, each.kind))
                waiting.append(each)
    return containers, fetched


def _open(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.2)
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def _running(
    command: Sequence[str | Path], port: int, log: Path, ready: Callable[[], bool] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    try:
        deadline = time.monotonic() + 20
        while not (ready() if ready else _open(port)):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        yield process
    finally:
        os.killpg(process.pid, signal.SIGCONT)
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def nginx(folder: Path, site: Path, extra: str = "") -> Iterator[str]:
    """A static site; ``extra`` are directives of its server block."""
    program, port = require("nginx", "nginx-light"), free_port()
    config = folder / "nginx.conf"
    temporary = " ".join(
        f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    config.write_text(
        f"daemon off; master_process off; pid {folder}/nginx.pid; error_log stderr warn;\n"
        "events { worker_connections 256; }\n"
        "http { access_log off; types { text/html html; text/plain txt; text/xml xml; }\n"
        f"default_type application/octet-stream; {temporary}\n"
        f"server {{ listen 127.0.0.1:{port}; root {site}; index index.html; {extra} }} }}\n"
    )
    with _running([program, "-e", "stderr", "-c", config, "-p", folder], port, folder / "nginx.log"):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def samba(
    folder: Path, share: Path, user: str, password: str
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A share ``docs`` of a folder, for one user of the system; its URL and its process. Needs root."""
    program, port = require("smbd", "samba"), free_port()
    places = ("private dir", "lock directory", "state directory", "cache directory")
    lines = [
        "[global]", "server role = standalone server", "interfaces = 127.0.0.1", "bind interfaces only = yes",
        "disable netbios = yes", f"smb ports = {port}", "security = user", "passdb backend = tdbsam",
        *(f"{name} = {folder}" for name in places),
        f"pid directory = {folder}", f"ncalrpc dir = {folder}/rpc", "log level = 0", "load printers = no",
        "disable spoolss = yes", "unix extensions = no",
        "[docs]", f"path = {share}", "read only = yes", "wide links = no",
    ]  # fmt: skip
    config = folder / "smb.conf"
    config.write_text("\n".join(lines) + "\n")
    subprocess.run(
        [require("smbpasswd", "samba-common-bin"), "-c", config, "-a", "-s", user],
        input=f"{password}\n{password}\n".encode(),
        check=True, capture_output=True, timeout=20,
    )  # fmt: skip
    options: list[str | Path] = ["--foreground", "--no-process-group", "--debug-stdout", "-s", config]
    command = [program, *options]
    with _running(command, port, folder / "smbd.log") as process:
        yield f"smb://127.0.0.1:{port}/docs", process


class _NtlmFront(BaseHTTPRequestHandler):
    url: ClassVar[str]
    token: ClassVar[str]
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    context: spnego.ContextProxy | None = None
    admitted = False

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self.admitted:
            challenge = self.challenge()
            if challenge is not None:
                return self.reply(401, {"WWW-Authenticate": challenge}, b"")
        headers = {name: self.headers[name] for name in ("Accept", "Content-Type") if name in self.headers}
        request = urllib.request.Request(  # noqa: S310 - our own server
            self.url + self.path,
            body or None,
            {**headers, "Authorization": f"Bearer {self.token}"},
            method=self.command,
        )
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310 - our own server
                return self.reply(200, {"Content-Type": answer.headers["Content-Type"]}, answer.read())
        except HTTPError as error:
            with error:
                return self.reply(error.code, {}, error.read())

    def challenge(self) -> str | None:
        """What is asked back; None where the client is who it says."""
        given = self.headers.get("Authorization", "")
        if not given.startswith("NTLM "):
            return "NTLM"
        if self.context is None:
            self.context = spnego.server(protocol="ntlm")
        try:
            answer = self.context.step(base64.b64decode(given[5:]))
        except SpnegoError:
            self.context = None
            return "NTLM"
        self.admitted = self.context.complete
        return None if self.admitted else f"NTLM {base64.b64encode(answer or b'').decode()}"

    def reply(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = handle_any  # noqa: N815 - http.server's names


@contextmanager
def behind_ntlm(url: str, token: str, users: Path) -> Iterator[str]:
    """A front of a site that wants a bearer token: NTLM lets a connection through.

    Args:
        url: the site's.
        token: what it wants.
        users: file of ``DOMAIN:USER:PASSWORD`` lines, which the environment names as ``NTLM_USER_FILE``.
    """
    assert os.environ["NTLM_USER_FILE"] == str(users)
    front = type("Front", (_NtlmFront,), {"url": url, "token": token})
    with ThreadingHTTPServer(("127.0.0.1", 0), front) as http:
        http.daemon_threads = True
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{http.server_address[1]}"
        finally:
            http.shutdown()
            thread.join()
