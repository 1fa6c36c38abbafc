"""Real servers for the tests of content sources: nginx and Samba."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from support import require, until

from pinchpoint_infra.ports import free_port
from pinchpoint_scenarios.full_crawl.sources import Fetched, Item, Source


def walk(source: Source) -> tuple[list[Item], dict[str, Fetched]]:
    """Return a source's containers and its fetched documents."""
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
def running(
    command: Sequence[str | Path],
    port: int,
    log: Path,
    ready: Callable[[], bool] | None = None,
    env: Mapping[str, str] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server until the end of the block; it is ready when its port is open or ``ready()`` is True."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True, env=env
        )
    try:
        until(ready or (lambda: _open(port)), log.read_text, process=process)
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
    """Run a static site; ``extra`` has directives of its server block."""
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
    with running([program, "-e", "stderr", "-c", config, "-p", folder], port, folder / "nginx.log"):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def samba(
    folder: Path, share: Path, user: str, password: str
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Run a share ``docs`` of a folder for one system user; yield its URL and process. Needs root."""
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
    with running(command, port, folder / "smbd.log") as process:
        yield f"smb://127.0.0.1:{port}/docs", process
