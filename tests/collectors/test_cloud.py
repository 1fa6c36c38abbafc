"""Tests of region, zone and machine type from the three clouds' documented metadata services."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, cast

import pytest
from httpserver import http_served
from support import require

from pinchpoint_collectors.linux import cloud
from pinchpoint_collectors.linux.files import HostFiles
from pinchpoint_collectors.linux_over_ssh import hello
from pinchpoint_collectors.linux_over_ssh.script import script
from pinchpoint_collectors.ssh import FILES

DMI = "/sys/class/dmi/id/"
AWS = {"sys_vendor": "Amazon EC2", "product_name": "m6i.large"}
AZURE = {
    "sys_vendor": "Microsoft Corporation",
    "product_name": "Virtual Machine",
    "chassis_asset_tag": "7783-7084-3265-9085-8269-3286-77",
}
GOOGLE = {"sys_vendor": "Google", "product_name": "Google Compute Engine"}
HYPER_V = {**AZURE, "chassis_asset_tag": "0000-0014-2500-6233-6543-6789-12"}
TOKEN = "AQAEAJ-token"
ANSWERS = {
    ("PUT", "/latest/api/token", "X-aws-ec2-metadata-token-ttl-seconds", "60"): TOKEN,
    ("GET", "/latest/dynamic/instance-identity/document", "X-aws-ec2-metadata-token", TOKEN): json.dumps(
        {"region": "eu-west-1", "availabilityZone": "eu-west-1b", "instanceType": "m6i.large"}
    ),
    ("GET", "/metadata/instance/compute?api-version=2021-02-01", "Metadata", "true"): json.dumps(
        {"location": "westeurope", "zone": "2", "vmSize": "Standard_DS12_v2", "vmId": "x"}
    ),
    ("GET", "/computeMetadata/v1/instance/?recursive=true", "Metadata-Flavor", "Google"): json.dumps(
        {"zone": "projects/12/zones/europe-west1-b", "machineType": "projects/12/machineTypes/n2-standard-4"}
    ),
}


class Firmware:
    """Simulates the firmware's facts of a machine."""

    def __init__(self, facts: Mapping[str, str]) -> None:
        self._facts = facts

    def fact(self, path: str) -> str | None:
        return self._facts.get(path.removeprefix(DMI))


def firmware(facts: Mapping[str, str]) -> HostFiles:
    return cast("HostFiles", Firmware(facts))


@contextmanager
def service(answers: Mapping[Any, str]) -> Iterator[tuple[str, list[str]]]:
    """Run a metadata service; yield its URL and the list of its requests."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            asked.append(self.path)
            given = [
                text
                for (method, path, header, value), text in answers.items()
                if (method, path) == (self.command, self.path) and self.headers.get(header) == value
            ]
            self.send_response(200 if given else 400)
            self.end_headers()
            self.wfile.write("".join(given).encode())

        do_GET = do_PUT = _answer  # noqa: N815 - the library's names

        def log_message(self, *_: object) -> None: ...

    with http_served(Handler) as port:
        yield f"http://127.0.0.1:{port}", asked


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        (AWS, {"region": "eu-west-1", "zone": "eu-west-1b", "machine_type": "m6i.large"}),
        (AZURE, {"region": "westeurope", "zone": "2", "machine_type": "Standard_DS12_v2"}),
        (GOOGLE, {"region": "europe-west1", "zone": "europe-west1-b", "machine_type": "n2-standard-4"}),
        (HYPER_V, {}),
        ({"sys_vendor": "QEMU"}, {}),
        ({}, {}),
    ],
)
def test_a_machine_in_a_cloud_says_where_it_is(facts: dict[str, str], found: dict[str, str]) -> None:
    """Each service is asked with its own headers; outside a cloud none is asked."""
    with service(ANSWERS) as (origin, asked):
        assert cloud.from_service(firmware(facts), origin) == found
        assert bool(asked) is bool(found)


@pytest.mark.parametrize("answer", ["", "not JSON", "[]", '{"location": 5, "zone": ""}'])
def test_what_is_not_answered_is_not_known(answer: str) -> None:
    """If a service is disabled or returns other content, only its facts are missing."""
    strange = {key: answer for key in ANSWERS if key[0] == "GET"}
    with service(strange) as (origin, _):
        assert cloud.from_service(firmware(AZURE), origin) == {}
        assert cloud.from_service(firmware(AWS), origin) == {"machine_type": "m6i.large"}


def test_a_service_that_is_silent_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begun = time.monotonic()
        assert cloud.from_service(firmware(AZURE), f"http://127.0.0.1:{silent.getsockname()[1]}") == {}
        assert time.monotonic() - begun < 5


def said_over_ssh(folder: Path, facts: Mapping[str, str], origin: str) -> Mapping[str, str]:
    """Return the facts that the ssh script reports for a machine with that firmware."""
    for name, text in facts.items():
        (folder / name).write_text(f"{text}\n")
    begin = script(1, 1, FILES, (), processes=False).partition("\nhello\n")[0]
    done = subprocess.run(
        ["/bin/sh"],
        input=f"{begin}\nhello\n",
        env={**os.environ, "PINCHPOINT_FIRMWARE": str(folder), "PINCHPOINT_METADATA": origin},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return hello.parse(done.stdout).cloud


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        (AWS, {"region": "eu-west-1", "zone": "eu-west-1b", "machine_type": "m6i.large"}),
        (AZURE, {"region": "westeurope", "zone": "2", "machine_type": "Standard_DS12_v2"}),
        (GOOGLE, {"region": "europe-west1", "zone": "europe-west1-b", "machine_type": "n2-standard-4"}),
        (HYPER_V, {}),
        ({}, {}),
    ],
)
def test_a_host_behind_ssh_says_it_as_well(
    facts: dict[str, str], found: dict[str, str], tmp_path: Path
) -> None:
    """Over ssh, the script's shell asks the service if the firmware names a cloud."""
    require("curl", "curl")
    with service(ANSWERS) as (origin, asked):
        assert said_over_ssh(tmp_path, facts, origin) == found
        assert bool(asked) is bool(found)


def test_a_host_behind_ssh_without_an_answer(tmp_path: Path) -> None:
    """If a service refuses or is silent, its facts are missing and the host is watched."""
    with service({}) as (origin, _):
        assert said_over_ssh(tmp_path, AZURE, origin) == {}
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert said_over_ssh(tmp_path, AZURE, f"http://127.0.0.1:{silent.getsockname()[1]}") == {}
