"""A unique secret in every credential of every endpoint and collector, and places without any."""

from __future__ import annotations

import base64
import json
import os
import socket
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, get_args
from urllib.parse import quote, unquote

import psutil
import pyarrow.parquet as pq
import pytest
from harness.report.documents import unpacked
from pydantic import create_model
from stalling import stalling_proxy
from support import end, run_cli, start_cli, wait_for_line

from pinchpoint.base.errors import InputError
from pinchpoint.base.redact import is_public
from pinchpoint.cli import _failed, _status
from pinchpoint.plan import expand, load
from pinchpoint.plan.endpoints import Endpoints, EndpointSpec
from pinchpoint.plan.farm import Collect
from pinchpoint.plan.record import field_type
from pinchpoint.plan.urls import SCHEMES
from pinchpoint.report.registry import FORMATS
from pinchpoint_collectors import registry as collectors
from pinchpoint_collectors.common.valkey_urls import SENTINEL
from pinchpoint_scenarios.addresses import without_secrets

MARK = "cnry"
WAYS = ("literal", "variable")

SPECS: Mapping[str, type[EndpointSpec]] = {
    name: next(
        kind
        for kind in get_args(field.annotation)
        if isinstance(kind, type) and issubclass(kind, EndpointSpec)
    )
    for name, field in Endpoints.model_fields.items()
}
SECRET_FIELDS = {
    (name, field)
    for name, spec in SPECS.items()
    for field in spec.model_fields
    if field != "url" and not is_public(field_type(spec, field))
}
SECRET_OPTIONS = {
    (kind, option)
    for kind in collectors.names()
    for option in collectors.kind(kind).options - collectors.kind(kind).public
}

LOGINS: Mapping[str, list[dict[str, str]]] = {
    "sharepoint": [
        {"auth": "basic", "user": "u", "password": ""},
        {"auth": "bearer", "token": ""},
        {"auth": "ntlm", "user": "D\\u", "password": ""},
        {"auth": "entra", "tenant": "https://127.0.0.1:9/t", "client": "c", "secret": ""},
        {"auth": "cookies", "cookies": ""},
    ],
    "web": [
        {"auth": "basic", "user": "u", "password": ""},
        {"auth": "bearer", "token": ""},
        {"auth": "cookies", "cookies": ""},
    ],
    "search": [
        {"kind": "opensearch", "user": "u", "password": ""},
        {"kind": "opensearch", "token": ""},
        {"kind": "opensearch", "api_key": ""},
    ],
    "files": [{"user": "u", "password": ""}],
    "crawler": [{"user": "u", "password": "", "auth": "ntlm"}],
}
"""Working logins: endpoint name to options; an empty one gets a secret."""
PLACES = {
    "sharepoint": "http://127.0.0.1:9/s",
    "web": "http://127.0.0.1:9/w",
    "search": "http://127.0.0.1:9/i",
    "files": "smb://127.0.0.1/share",
    "crawler": "winrm://127.0.0.1:9",
}
OWN = {"sql": {"hosts": {"h": {"collect": [{"kind": "local"}], "disks": {"data": {"path": "/"}}}}}}
"""The tiers of a run that completes; an unreachable collector would end it earlier."""
NOT_TEXT = {("crawler", "key")}
"""A file path that is hidden although it is no credential."""


class Canaries:
    """Creates unique secrets and searches for them."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def new(self, where: str) -> str:
        secret = f"{MARK}{len(self.made)}{where}%/@é{os.urandom(4).hex()}"
        self.made.append(secret)
        return secret

    def found(self, content: bytes) -> list[str]:
        """Return the secrets in a text or file, in any encoding."""
        found = []
        for secret in self.made:
            core = secret.rpartition("é")[2]
            logins = (base64.b64encode(f"{user}:{secret}".encode()) for user in ("u", "D\\u", ""))
            spellings = (
                core.encode(),
                base64.b64encode(secret.encode()),
                *logins,
                quote(secret, safe="").encode(),
            )
            if any(each in content for each in spellings):
                found.append(secret)
        return found


def farms(canaries: Canaries, way: str) -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
    """Yield farms with every credential of every endpoint and collector, and their variables."""
    used: set[tuple[str, str]] = set()
    for number in range(max(map(len, LOGINS.values()))):
        environ: dict[str, str] = {}

        def secret(where: str, *, encoded: bool = False, environ: dict[str, str] = environ) -> str:
            value = canaries.new(where)
            if way == "literal":
                return quote(value, safe="") if encoded else value
            environ[f"CANARY_{len(canaries.made)}"] = value
            return f"${{CANARY_{len(canaries.made)}}}"

        endpoints: dict[str, dict[str, str]] = {}
        for name, logins in LOGINS.items():
            login = logins[number % len(logins)]
            used |= {(name, key) for key, value in login.items() if not value}
            place = {"path" if name == "files" else "url": PLACES[name]}
            endpoints[name] = place | {key: value or secret(f"{name}{key}") for key, value in login.items()}
        for name in ("sql", "nosql"):
            schemes = [scheme for scheme in SCHEMES[name] if scheme != "odbc" and "srv" not in scheme]
            first = ["valkey+sentinel"] if name == "nosql" else []  # Sentinels have a password of their own
            scheme = [*first, *schemes][number % (len(first) + len(schemes))]
            numbered = scheme.startswith(("valkey", "redis")) and scheme not in SENTINEL
            database = "0" if numbered else "d"
            endpoints[name] = {"url": f"{scheme}://u:{secret(name, encoded=True)}@127.0.0.1:9/{database}"}
            if scheme in SENTINEL:
                endpoints[name]["sentinel_password"] = secret("sentinel")
                used.add((name, "sentinel_password"))
        hosts = {}
        for kind in collectors.names():
            options = {"endpoint": "sql"} if "endpoint" in collectors.kind(kind).options else {}
            for option in sorted(collectors.kind(kind).options - collectors.kind(kind).public):
                if kind != "prometheus" or (option == "token") == bool(number % 2):
                    options[option] = secret(f"{kind}{option}")
                    used.add((kind, option))
            options |= _needed(kind, options)
            hosts[f"h-{kind}"] = {"collect": [{"kind": kind, **options}], "disks": {"data": {"path": "/"}}}
        prove = {
            "sql.data": {"slower": canaries.new("slower"), "restore": canaries.new("restore"), "by": "20%"}
        }
        farm = {"name": f"f{number}", "environment": "test", "endpoints": endpoints, "prove": prove}
        yield {**farm, "tiers": {"sql": {"hosts": hosts}}}, environ
    assert used == (SECRET_FIELDS | SECRET_OPTIONS) - NOT_TEXT, "a credential that no farm of this test has"


def _needed(kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    offered = collectors.kind(kind).options
    needed: dict[str, Any] = {"url": "http://127.0.0.1:9"} if "url" in offered else {}
    if "password" in given and "token" not in given:
        needed["user"] = "u"
    if "address" in offered:
        needed["address"] = "127.0.0.1:9" if "endpoint" in offered else "127.0.0.1"
    if {"port", "address"} <= offered:
        needed["port"] = 9
    return needed


def write(folder: Path, farm: Mapping[str, Any], plan: Mapping[str, Any]) -> tuple[Path, Path]:
    """Write both files as JSON, which YAML readers accept; return their paths."""
    paths = folder / "plan.yaml", folder / "farm.yaml"
    for path, content in zip(paths, (plan, farm), strict=True):
        path.write_text(json.dumps(content))
    return paths


def every_file(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield all files of a folder, with packed ones unpacked."""
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        yield str(path), path.read_bytes()
        if path.suffix == ".parquet":
            yield f"{path} (unpacked)", json.dumps(pq.read_table(path).to_pylist(), default=str).encode()
        elif path.suffix == ".html":
            yield f"{path} (unpacked)", "\n".join(unpacked(path.read_text())).encode()
        elif zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as packed:
                yield from ((f"{path}/{name}", packed.read(name)) for name in packed.namelist())


def assert_none(canaries: Canaries, texts: Mapping[str, bytes]) -> None:
    """Check that no text contains a secret."""
    leaks = {where: found for where, content in texts.items() if (found := canaries.found(content))}
    assert not leaks, leaks


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_no_field_of_an_endpoint_is_shown_unless_its_type_says_so(spec: type[EndpointSpec]) -> None:
    """Every endpoint field in the models is hidden unless its type allows showing it."""
    values: dict[str, Any] = {name: f"{MARK}-{name}" for name in spec.model_fields if name != "url"}
    record = spec.model_construct(url=f"x://u:{MARK}@h/?key={MARK}#{MARK}", **values)
    shown = record.shown()
    assert MARK not in str(shown["url"])
    for name in spec.model_fields.keys() - {"url"}:
        assert (MARK in str(shown[name])) == is_public(field_type(spec, name)), name
    later = create_model("Later", __base__=spec, pass_phrase_2=(str, MARK))
    assert MARK not in str(later.model_construct(url="x://h").shown())


@pytest.mark.parametrize("kind", [*collectors.names(), "unknown"])
def test_no_option_of_a_collector_is_shown_unless_its_kind_says_so(kind: str) -> None:
    """Every collector option in the registry is hidden unless its kind allows showing it."""
    options = collectors.kind(kind).options if kind in collectors.names() else frozenset({"address"})
    public = collectors.kind(kind).public if kind in collectors.names() else frozenset()
    assert public <= options
    entry = Collect.from_json(
        {"kind": kind, **{option: f"{MARK}-{option}" for option in options}, "other": MARK}
    )
    shown = entry.shown()
    assert {option for option in entry.options if MARK in str(shown[option])} == public


@pytest.mark.parametrize("way", WAYS)
def test_check_and_a_failing_run_show_no_secret(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With no server reachable, every message on both streams and in JSON is free of secrets."""
    canaries = Canaries()
    plan = {"name": "p", "scenarios": dict(_scenarios()), "phases": {"measure": "1s"}}
    for farm, environ in farms(canaries, way):
        paths = write(tmp_path, farm, plan)
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        texts: dict[str, bytes] = {}
        for command in (("check", "--json"), ("run",), ("run", "--dry-run")):
            places = [str(paths[0]), "--farm", str(paths[1]), "--out", str(tmp_path / "runs")]
            monkeypatch.setattr(sys, "argv", ["pinchpoint", *command, *places])
            assert _status() in (2, 5)
            said = "".join(capsys.readouterr())
            assert "Traceback" not in said
            texts[f"{farm['name']} {command}"] = said.encode()
        assert_none(canaries, texts)
    assert_none(canaries, dict(every_file(tmp_path / "runs")))


def _scenarios() -> Iterator[tuple[str, dict[str, Any]]]:
    for use in ("sql-mix", "nosql-burst", "full-crawl"):
        yield use, {"use": use, "load": {"model": "closed", "users": 1}}


LOCUSTFILE = """
import os
from locust import HttpUser, constant, task

class Browser(HttpUser):
    wait_time = constant(0.1)

    @task
    def page(self):
        self.client.get("/page")

    @task
    def fails(self):
        secrets = [value for name, value in os.environ.items() if name.startswith("CANARY_")]
        raise ValueError("no answer to " + " ".join(secrets))
"""


@pytest.fixture
def site() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "1")
            self.end_headers()
            self.wfile.write(b"x")

        def log_message(self, *_: Any) -> None:
            """Do nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def _measured(farm: dict[str, Any], environ: dict[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the farm that this machine can measure, and its variables."""
    farm = {**farm, "tiers": OWN}
    used = json.dumps(farm)
    return farm, {name: value for name, value in environ.items() if f"${{{name}}}" in used}


def _plan(folder: Path, site: str) -> dict[str, Any]:
    (folder / "users.py").write_text(LOCUSTFILE)
    users = {
        "use": str(folder / "users.py"),
        "load": {"model": "closed", "users": 1},
        "params": {"host": site},
    }
    return {"name": "p", "scenarios": {"users": users}, "phases": {"warm_up": "1s", "measure": "3s"}}


def test_a_run_and_its_reports_hold_no_secret(site: str, tmp_path: Path) -> None:
    """Run directory, reports, analysis, comparison, state folder and /proc are free of secrets."""
    canaries = Canaries()
    environ = {"PINCHPOINT_STATE": str(tmp_path / "state")}
    directories: list[Path] = []
    texts: dict[str, bytes] = {}
    for number, way in enumerate(WAYS):
        farm, variables = _measured(*list(farms(canaries, way))[number])
        paths = write(tmp_path, farm, _plan(tmp_path, site))
        process = start_cli(
            "run", paths[0], "--farm", paths[1], "--out", tmp_path / "runs", env=environ | variables
        )
        said = wait_for_line(process, "warm-up")
        texts |= _commands(process.pid)
        code, out, err = end(process)
        assert code in (0, 3), err
        texts[f"{farm['name']} said"] = (said + out + err).encode()
        directories.append(Path(out.splitlines()[-1]))
    first, second = directories
    for command in (
        ("analyse", first), ("analyse", first, "--json"), ("analyse", first, "--explain"),
        ("report", first, "--format", ",".join(FORMATS), "--out", tmp_path / "reports"),
        ("compare", first, "--with", second, "--out", tmp_path / "compared"),
        ("pack", first, "--out", tmp_path / "compared"),
    ):  # fmt: skip
        done = run_cli(*command, env=environ)
        assert done.returncode in (0, 1, 3), (command, done.stderr)
        texts[str(command)] = (done.stdout + done.stderr).encode()
    assert len(list((tmp_path / "reports").iterdir())) == len(FORMATS)
    for folder in ("runs", "reports", "compared", "state"):
        texts |= dict(every_file(tmp_path / folder))
    assert_none(canaries, texts)


def _commands(pid: int) -> dict[str, bytes]:
    """Return the command lines of a process and all its children."""
    whole = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    return {f"/proc/{each.pid}/cmdline": " ".join(each.cmdline()).encode() for each in whole}


def test_a_killed_run_leaves_no_secret(site: str, tmp_path: Path) -> None:
    """A killed run's files, and the analysis of them, are free of secrets."""
    canaries = Canaries()
    farm, environ = next(farms(canaries, "variable"))
    farm, environ = _measured(farm, environ)
    paths = write(tmp_path, farm, _plan(tmp_path, site) | {"phases": {"measure": "60s"}})
    process = start_cli("run", paths[0], "--farm", paths[1], "--out", tmp_path / "runs", env=environ)
    wait_for_line(process, "measuring")
    time.sleep(3)
    process.kill()
    process.communicate()
    assert_none(canaries, dict(every_file(tmp_path / "runs")))
    [directory] = (tmp_path / "runs").iterdir()
    done = run_cli("analyse", directory)
    texts = {"analyse": (done.stdout + done.stderr).encode(), **dict(every_file(tmp_path / "runs"))}
    assert_none(canaries, texts)


@pytest.mark.parametrize("way", WAYS)
def test_a_worker_s_traffic_holds_no_secret(way: str, site: str, tmp_path: Path) -> None:
    """The traffic between controller and worker is free of secrets, also for failing users."""
    canaries = Canaries()
    farm, variables = _measured(*next(farms(canaries, way)))
    paths = write(tmp_path, farm, _plan(tmp_path, site))
    token = {"PINCHPOINT_WORKER_TOKEN": f"{MARK}{os.urandom(16).hex()}"}
    canaries.made.append(f"é{token['PINCHPOINT_WORKER_TOKEN']}")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    allowed = [word for name in variables for word in ("--allow-env", name)]
    with stalling_proxy(port) as proxy:
        run = start_cli(
            "run", paths[0], "--farm", paths[1], "--out", tmp_path / "runs", "--workers", "1",
            "--listen", f"127.0.0.1:{port}", "--remote-workers", "1", env=variables | token,
        )  # fmt: skip
        said = wait_for_line(run, "pinchpoint worker")
        worker = start_cli(
            "worker", "--master", f"127.0.0.1:{proxy.port}", "--once", "--allow-path", tmp_path, *allowed,
            env=variables | token,
        )  # fmt: skip
        code, out, err = end(run, timeout_s=90)
        ended = end(worker)
    assert code in (0, 3), err
    assert ended[0] == 0, ended
    traffic = b"".join(proxy.seen)
    assert b"CURVE" in traffic
    assert len(traffic) > 3_000
    texts = {"traffic": traffic, "run": (said + out + err).encode(), "worker": "".join(ended[1:]).encode()}
    assert_none(canaries, texts | dict(every_file(tmp_path / "runs")))


MALFORMED = (
    "postgresql://u:{}@SECR/ET?x@db1/app",
    "postgresql://u:SECR/ET{}@db1/app",
    "postgresql://u:12/{}@db1/app",
    "postgresql://u:a://{}@db1/app",
    "postgresql://u:{}",
    "postgresql://u:{}/app",
    "postgres//u:{}@db1/app",
    "u:{}@db1",
    "mysql://u:{}@db1/app",
    "mssql+odbc://h/db?AccessToken={}",
    "mssql+odbc://h/db?PWD={}",
    "postgresql://h:99999/db?password={}",
    "postgresql://u:white space{}@db1/app",
)


@pytest.mark.parametrize("url", MALFORMED)
def test_a_refused_url_shows_no_secret(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A refused URL shows no secret, raw or encoded."""
    for encoded in (False, True):
        canaries = Canaries()
        secret = canaries.new("url")
        if "@" not in url:  # its own '@' would be taken for the one before the host
            secret = canaries.made[0] = secret.replace("@", "+")
        given = url.format(quote(secret, safe="") if encoded else secret)
        endpoints = {
            "sql": {"url": given},
            "nosql": {"url": given.replace("postgresql", "valkey")},
            "web": {"url": given},
        }
        plan = {
            "name": "p",
            "scenarios": {"s": {"use": "sql-mix", "load": {"model": "closed", "users": 1}}},
            "phases": {"measure": "1s"},
        }
        paths = write(tmp_path, {"name": "f", "environment": "test", "endpoints": endpoints}, plan)
        with pytest.raises(InputError) as refused:
            load(paths[1], paths[0])
        said = str(refused.value)
        assert_none(canaries, {"load": said.encode()})
        assert "SECR" not in said
        for source in endpoints.values():
            monkeypatch.setattr(
                sys, "argv", ["pinchpoint", "init", str(tmp_path / "new"), "--from", source["url"]]
            )
            assert _status() in (2, 5)
            said = "".join(capsys.readouterr())
            assert_none(canaries, {"init": said.encode()})
            assert "SECR" not in said


@pytest.mark.parametrize("name", SPECS)
def test_a_misplaced_value_is_not_quoted(name: str, tmp_path: Path) -> None:
    """A secret in a field of any type is not quoted; the message names the field."""
    canaries = Canaries()
    spec = SPECS[name]
    for field, info in spec.model_fields.items():
        for value in (canaries.new(field), [canaries.new(field)], {canaries.new(field): canaries.new(field)}):
            endpoint = {"path" if name == "files" else "url": PLACES.get(name, f"{SCHEMES[name][0]}://h")}
            farm = {
                "name": "f",
                "environment": "test",
                "endpoints": {name: endpoint | {info.alias or field: value}},
            }
            plan = {
                "name": "p",
                "scenarios": {"s": {"use": "sql-mix", "load": {"model": "closed", "users": 1}}},
                "phases": {"measure": "1s"},
            }
            paths = write(tmp_path, farm, plan)
            with pytest.raises(InputError) as refused:
                load(paths[1], paths[0])
            assert_none(canaries, {field: str(refused.value).encode()})


def test_messages_of_others_are_cleaned_of_what_was_expanded(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 70 shows no secret that an internal error quotes, raw, encoded or as a Basic header."""
    canaries = Canaries()
    for way in WAYS:
        for farm, environ in farms(canaries, way):
            for name, given in farm["endpoints"].items():
                options = {"url" if key == "path" else key: value for key, value in given.items()}
                endpoint = expand(name, options, environ)
                said = without_secrets(f"{endpoint.url} {' '.join(endpoint.options.values())}", endpoint)
                assert_none(
                    canaries,
                    {name: said.encode(), f"repr {name}": repr(endpoint).partition("url=")[0].encode()},
                )
                assert _failed(ValueError(f"{endpoint.url} {unquote(endpoint.url)} {endpoint.options}")) == 70
                header = base64.b64encode(
                    f"{endpoint.options.get('user')}:{endpoint.options.get('password')}".encode()
                ).decode()
                assert _failed(ValueError(f"Authorization: Basic {header}")) == 70
    assert_none(canaries, {"stderr": capsys.readouterr().err.encode()})
