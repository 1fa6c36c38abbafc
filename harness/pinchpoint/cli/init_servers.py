"""``pinchpoint init --sql URL --nosql URL --web URL``: writes both files for running servers.

The plan is the template ``mixed`` without the parts of missing endpoints. A variable replaces a password in a
URL.
"""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from ruamel.yaml import YAML

from pinchpoint.base.errors import FarmUnavailable, InputError
from pinchpoint.base.redact import masked, redacted_text
from pinchpoint.cli import templates
from pinchpoint.farm.ready import standing_farm
from pinchpoint.loadgen.scenarios import make_scenario, planned_scenarios
from pinchpoint.plan import load
from pinchpoint.plan.endpoints import expanded
from pinchpoint.plan.urls import VARIABLE, variables
from pinchpoint.run.preflight import check_scenarios
from pinchpoint_collectors import registry as collector_kinds
from pinchpoint_collectors.databases.base import ServerKind

SCENARIOS = {"web": "crawl", "sql": "orders", "nosql": "burst"}
"""Endpoint of an option -> scenario of the template for this endpoint."""
_HERE = ("127.0.0.1", "localhost", "::1", "")
_PROCESSES = {"postgres": "postgres", "valkey": "valkey-server", "mariadb": "mariadbd", "cassandra": "java"}
_PROCESSES |= {"mongodb": "mongod", "sqlserver": "sqlservr"}


def filled(option: str, name: str, url: str) -> str:
    """Return a URL with ``${NAME}`` replaced from the environment.

    Raises ``InputError`` that names the option.
    """
    endpoint, unfit = expanded(name, {"url": url}, os.environ)
    if unfit:
        raise InputError(*(f"{option}: {why}" for why in unfit.values()))
    return endpoint.url


def files(urls: Mapping[str, str]) -> dict[str, str]:
    """Return farm.yaml and plan.yaml for the servers of these URLs. The keys are endpoints.

    Raises:
        InputError: a URL does not fit its endpoint, or a secret in it has no variable.
        FarmUnavailable: a server does not answer or refuses the login; the message has each reason.
    """
    if "web" in urls and "sql" not in urls:
        raise InputError("--web: a crawl keeps its queue in a SQL database: add --sql URL")
    for name, url in urls.items():
        filled(f"--{name}", name, url)
    written = {name: _without_password(name, url) for name, url in urls.items()}
    result = {"farm.yaml": _text(_farm(written)), "plan.yaml": plan(urls)}
    with tempfile.TemporaryDirectory(prefix="pinchpoint-init-") as folder:
        for name, text in result.items():
            (Path(folder) / name).write_text(text, "utf-8")
        loaded, planned = load(Path(folder) / "farm.yaml", Path(folder) / "plan.yaml")
        live = standing_farm(loaded)
        assert live is not None  # noqa: S101 -- it is not embedded
        made = {
            name: make_scenario(name, given, live.endpoints, planned.seed, 0, 1, lambda *_, **__: None)
            for name, given in planned_scenarios(planned).items()
        }
        checks, _ = check_scenarios(made)
    if bad := [f"{check.what}: {masked(check.found)}" for check in checks if not check.ok]:
        raise FarmUnavailable(*bad)
    answer = "".join(f"# {check.what}: {masked(check.found)}\n" for check in checks)
    return {
        **result,
        "farm.yaml": f"# What answered when this file was written:\n{answer}{result['farm.yaml']}",
    }


def _without_password(name: str, url: str) -> str:
    """Return the URL with a variable such as ``${SQL_PASSWORD}`` for its password, set in this process."""
    scheme, separator, rest = url.partition("://")
    end = min((rest.find(mark) for mark in "/?#" if mark in rest), default=len(rest))
    login, at, host = rest[:end].rpartition("@")
    user, colon, password = login.partition(":")
    if password and not VARIABLE.fullmatch(password):
        variable = _variable(f"{name.upper()}_PASSWORD", unquote(password))
        url = f"{scheme}{separator}{user}{colon}${{{variable}}}{at}{host}{rest[end:]}"
    if redacted_text(url) != url:
        raise InputError(
            f"--{name}: {redacted_text(url)}: holds a secret beside the password; write it as ${{NAME}}, a "
            "variable of the environment"
        )
    return url


def _variable(name: str, value: str) -> str:
    """Return an environment variable with a value. The variable is set for this process only."""
    while os.environ.get(name, value) != value:
        name = f"LOADTEST_{name}"
    os.environ[name] = value
    return name


def _farm(urls: Mapping[str, str]) -> dict[str, Any]:
    """Return the content of a farm.yaml for the servers."""
    endpoints: dict[str, Any] = {name: {"url": url} for name, url in urls.items()}
    if "web" in urls:
        endpoints["search"] = {"kind": "none"}
    tiers = {name: {"hosts": dict(_hosts(name, url))} for name, url in urls.items() if name != "web"}
    return {"name": "my-farm", "environment": "test", "endpoints": endpoints, "tiers": tiers}


def _hosts(tier: str, url: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each server of a URL as a host with its collectors.

    A server on this machine also gets the collector of the machine.
    """
    parts = urlsplit(url)
    kind = _collector(parts.scheme)
    places = parts.netloc.rpartition("@")[2].split(",")
    for number, place in enumerate(places, 1):
        name = "" if variables(place) else urlsplit(f"//{place}").hostname or ""
        collect: list[dict[str, Any]] = []
        if kind and name in _HERE:  # for a local port, the processes that listen on it
            collect.append({"kind": "local", **({} if name else {"process": _PROCESSES[kind]})})
        if kind:
            of_one = {"address": place} if len(places) > 1 else {}
            collect.append({"kind": kind, "endpoint": tier, **of_one})
        yield f"{tier}{number}", {"collect": collect}


def _collector(scheme: str) -> str | None:
    """Return the kind of collector for a URL scheme; None if there is none."""
    for name in collector_kinds.names():
        kind = collector_kinds.kind(name)
        if isinstance(kind, ServerKind) and scheme in kind.schemes:
            return name
    return None


def plan(urls: Collection[str]) -> str:
    """Return the plan of the template with the scenarios of these endpoints and their comments."""
    # without the line that describes the template
    _, _, text = templates.files("mixed")["plan.yaml"].partition("\n")
    made = YAML().load(text)
    chosen = {SCENARIOS[name] for name in urls}
    for name in [name for name in made["scenarios"] if name not in chosen]:
        del made["scenarios"][name]
    made["objectives"] = [one for one in made["objectives"] if one["scenario"] in chosen]
    return _text(made)


def _text(data: Any) -> str:
    yaml, text = YAML(), io.StringIO()
    yaml.width = 4096
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.dump(data, text)
    return text.getvalue()
