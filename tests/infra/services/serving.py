"""Start a service as the farm does: a process of its own with a configuration file."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3

from pinchpoint_infra.ports import free_port


@dataclass
class Service:
    """A running service."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path
    http: urllib3.HTTPConnectionPool

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, target: str, **headers: str) -> urllib3.BaseHTTPResponse:
        return self.http.request("GET", target, headers={**self.http.headers, **headers})

    def post(self, target: str, body: bytes = b"", **headers: str) -> urllib3.BaseHTTPResponse:
        return self.http.request("POST", target, body=body, headers={**self.http.headers, **headers})


@contextmanager
def serving(
    module: str, folder: Path, *, prefix: Sequence[str] = (), login: str | None = None, **config: Any
) -> Iterator[Service]:
    """Run the service ``module`` until the end of the block; SIGTERM must then end it quickly with status 0.

    Args:
        module: module name of the service.
        folder: path for its configuration and its log.
        prefix: command that runs the service's command.
        login: token that is sent with every request; None: no token.
        config: the configuration without the port.
    """
    port = free_port()
    path, log = folder / "config.json", folder / "log"
    path.write_text(json.dumps({"port": port, **config}))
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*prefix, sys.executable, "-m", module, str(path)], stdout=output, stderr=output
        )
    headers = {"Authorization": f"Bearer {login}"} if login else {}
    http = urllib3.HTTPConnectionPool(
        "127.0.0.1", port, maxsize=8, retries=False, timeout=60, headers=headers
    )
    service = Service(process, port, log, http)
    try:
        wait_until_ready(service)
        yield service
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) == 0, log.read_text()
    finally:
        http.close()
        process.kill()
        process.wait()


def wait_until_ready(service: Service) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        assert service.process.poll() is None, service.log.read_text()
        try:
            if service.get("/health").status == 200:
                return
        except urllib3.exceptions.HTTPError:
            time.sleep(0.05)  # the service does not listen yet
    raise AssertionError(f"not ready in time: {service.log.read_text()}")
