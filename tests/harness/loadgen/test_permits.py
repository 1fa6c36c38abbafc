"""Permissions of a worker's operator and allowed messages, without any process."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pinchpoint_scenarios
from pinchpoint.base.errors import InputError
from pinchpoint.loadgen.assignment import Assignment
from pinchpoint.loadgen.messages import EVENTS, BadMessage, Receiver, Sender
from pinchpoint.loadgen.permits import Permits
from pinchpoint.loadgen.workers import WorkerOptions, worker_commands
from pinchpoint_collectors.environment import child_environment
from pinchpoint_scenarios import registry
from pinchpoint_scenarios.contract import FileParams

LOCUSTS = Path(str(pinchpoint_scenarios.__path__[0])).parents[1] / "harness/pinchpoint/loadgen/locust_load.py"
LOAD = {"model": "open", "rate_per_s": 10, "arrivals": "constant"}


def script(use: str, **params: Any) -> dict[str, Any]:
    return {"scenarios": {"one": {"use": use, "params": params, "load": LOAD, "repeat_s": None}}}


def endpoint(name: str, **given: str) -> dict[str, Any]:
    return {"endpoints": {name: given}}


def work(**changed: Any) -> Assignment:
    plain: dict[str, Any] = {
        "name": "generator1", "worker": 0, "cores": [], "beat_s": 0.3, "journal": "", "seed": 1,
        "endpoints": {}, "scenarios": {}, "slots": {}, "ranks": {},
    }  # fmt: skip
    return Assignment(**plain | changed)


PATHS = [
    (script("/etc/passwd.py"), "/etc/passwd.py"),
    (script("../../evil.py"), "../../evil.py"),
    (script("sql-script", scripts=["/etc/shadow@2"]), "/etc/shadow"),
    (script("sql-script", scripts=["/tmp"], teardown="/etc/t.sql"), "/etc/t.sql"),
    (script("sql-script", values={"x": {"csv": "/etc/x.csv"}}), "/etc/x.csv"),
    (script("sql-replay", capture=["/etc/shadow"]), "/etc/shadow"),
    (script("storage-probe", folder="/srv"), "/srv"),
    (script("full-crawl", sources=[{"kind": "files", "path": "/home"}]), "/home"),
    (endpoint("files", url="/home"), "/home"),
    (endpoint("sql", url="postgresql://db1/d?passfile=/etc/pw"), "/etc/pw"),
    (endpoint("sql", url="postgresql+odbc://db1/d?Driver=%2Ftmp%2Fx.so"), "/tmp/x.so"),
    (endpoint("crawler", url="ssh://app1", key="/root/id"), "/root/id"),
    (endpoint("disk:sql.log", url="/var"), "/var"),
    (endpoint("disk:sql.log", url="/srv/log", address="sql1", identity="/root/id"), "/root/id"),
]


@pytest.mark.parametrize(("given", "named"), PATHS)
def test_every_path_must_be_permitted(given: dict[str, Any], named: str) -> None:
    """Each unpermitted path is named with machine and option; with its folder it may be used."""
    with pytest.raises(InputError) as refused:
        Permits().check(work(**given), "loader7")
    assert "worker on loader7: " in str(refused.value)
    assert f" uses {named}, " in str(refused.value)
    assert "--allow-path" in str(refused.value)
    Permits(folders=("/",)).check(work(**given), "loader7")


@pytest.mark.parametrize("use", sorted(registry.SCENARIOS))
def test_no_scenario_names_a_file_in_silence(use: str) -> None:
    """Parameters that contain paths declare them, whether or not they are ``FileParams``."""
    model = registry.scenario(use).params_model
    texts = str(model.model_json_schema())
    if issubclass(model, FileParams) or any(f"'{word}': {{" in texts for word in ("folder", "path", "csv")):
        assert "paths" in vars(model)


def test_a_link_out_of_a_permitted_folder_is_not_permitted(tmp_path: Path) -> None:
    """A link out of a permitted folder is not permitted, as its target counts."""
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link").symlink_to("/etc")
    permits = Permits.given((), (inside,))
    for path in (f"{inside}/link/passwd.py", f"{inside}/../evil.py"):
        with pytest.raises(InputError):
            permits.check(work(**script(path)), "loader7")
    permits.check(work(**script(f"{inside}/good.py")), "loader7")


def test_every_variable_must_be_permitted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each variable must be permitted; values are not shown, and unknown endpoints are refused."""
    monkeypatch.setenv("PGPASSWORD", "canary")
    monkeypatch.setenv("HOME_TOKEN", "canary")
    farm = {
        "sql": {"url": "postgresql://u:${PGPASSWORD}@db1/d"},
        "web": {"url": "https://web1", "auth": "bearer", "token": "${HOME_TOKEN}"},
    }
    with pytest.raises(InputError) as refused:
        Permits(("HOME_TOKEN",)).check(work(endpoints=farm), "loader7")
    assert "endpoints.sql.url uses the variable PGPASSWORD" in str(refused.value)
    assert "--allow-env PGPASSWORD" in str(refused.value)
    assert "HOME_TOKEN" not in str(refused.value)
    assert "canary" not in str(refused.value)
    Permits(("HOME_TOKEN", "PGPASSWORD")).check(work(endpoints=farm), "loader7")
    with pytest.raises(InputError, match="no such endpoint"):
        Permits().check(work(**endpoint("exfiltrate", url="http://evil")), "loader7")


def test_a_worker_inherits_no_secret() -> None:
    """A worker's environment has no secrets, as drivers read some variables by themselves."""
    environ = {"PATH": "/bin", "PGPASSWORD": "x", "AWS_SECRET_ACCESS_KEY": "x", "MINE": "x", "LC_ALL": "C"}
    assert child_environment(("MINE",), environ) == {"PATH": "/bin", "MINE": "x", "LC_ALL": "C"}


def test_what_the_run_prints_permits_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The printed command permits what the run needs, with the token only if it was generated."""
    monkeypatch.setenv("PGPASSWORD", "canary")
    given = work(
        endpoints={"sql": {"url": "postgresql://u:${PGPASSWORD}@db1/d"}}, **script("/srv/load tests/a.py")
    )
    made = worker_commands(WorkerOptions(listen=("10.0.0.5", 5557), token="t" * 40, token_made=True), given)
    assert made == [
        f"export PINCHPOINT_WORKER_TOKEN={'t' * 40}",
        "pinchpoint worker --master 10.0.0.5:5557 --allow-env PGPASSWORD --allow-path '/srv/load tests'",
    ]
    known = worker_commands(WorkerOptions(listen=("10.0.0.5", 5557), token="t" * 40), given)
    assert "ttt" not in str(known)
    assert "ttt" not in repr(WorkerOptions(token="t" * 40))


@pytest.mark.parametrize(
    "message",
    [
        {"begin": ["burst"], "at_ns": -1},
        {"own": {"burst": {"slots": [840], "from_ns": 0, "since_ns": None}}},
        {"assignment": work(journal="/etc").to_json()},
        {"assignment": work(slots={"other": [1]}).to_json()},
        {"ping": 1, "stop": True},
        {"spawn": {}},
    ],
)
def test_what_a_controller_may_not_send(message: dict[str, Any]) -> None:
    """A worker refuses a controller's forbidden message before it uses any part of it."""
    with pytest.raises(BadMessage):
        Receiver.of_controller().taken(Sender().encoded(message))


def test_a_message_is_taken_once() -> None:
    """A message is accepted once; its number only grows, also after a restart."""
    receiver = Receiver.of_worker()
    data = Sender().encoded({"type": "ready"})
    receiver.taken(data)
    with pytest.raises(BadMessage, match="sent before"):
        receiver.taken(data)
    receiver.taken(Sender().encoded({"type": "ready"}))


def test_text_of_a_worker_does_not_command_a_terminal() -> None:
    """Control characters in a worker's text are replaced."""
    sent = Sender().encoded({"type": "failed", "kind": "environment", "why": "\x1b]0;x\x07 no\nmore"})
    assert Receiver.of_worker().taken(sent).why == "\ufffd]0;x\ufffd no\nmore"


def test_a_refused_message_is_not_quoted() -> None:
    """A refused message is described without its content, which may be a secret."""
    with pytest.raises(BadMessage) as unfit:
        Receiver.of_controller().taken(json.dumps({"number": 1, "message": {"tick": "canary"}}).encode())
    assert "canary" not in str(unfit.value)


def test_the_events_of_workers_are_those_that_scenarios_report() -> None:
    """Exactly the events that scenarios report are accepted from workers."""
    sources = [LOCUSTS, *Path(str(pinchpoint_scenarios.__path__[0])).rglob("*.py")]
    assert {name for source in sources for name in _reported(source)} == EVENTS


def _reported(source: Path) -> Iterator[str]:
    tree = ast.parse(source.read_text())
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        if node.func.attr not in ("event", "_event", "_report"):
            continue
        match node.args[0]:
            case ast.Constant(value=str(name)):
                yield name
            case ast.Name(id=constant) if constant in constants:
                yield str(constants[constant])
