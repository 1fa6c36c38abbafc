"""Tests of the registry of kinds, and of options that kinds of hosts or servers share."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, Self

import pytest

from pinchpoint_collectors import registry
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.local import LocalKind
from pinchpoint_collectors.record import Sample, Watch
from pinchpoint_collectors.registry import kind
from pinchpoint_collectors.sampler import Sampler


def test_the_local_kind_is_there_with_its_options() -> None:
    """The local kind has its options; `verify`, which writes to disks, is not allowed in farm.yaml."""
    kind = registry.kind("local")
    assert kind.name == "local"
    assert kind.options == {"process", "command_line", "port"}
    assert all(registry.kind(name).name == name for name in registry.names())


def test_a_name_taken_twice_is_an_error() -> None:
    """A name cannot be registered twice."""
    with pytest.raises(ValueError, match="'local' is registered already"):
        registry.register(LocalKind())


def test_an_unknown_kind_lists_all_and_the_nearest() -> None:
    """An unknown kind's error lists all kinds and the nearest."""
    with pytest.raises(CollectorError, match=r"'locale'; allowed: .*local.*; nearest: local"):
        registry.kind("locale")
    with pytest.raises(CollectorError) as caught:
        registry.kind("zzz")
    assert "nearest" not in str(caught.value)


class TwoNumbers:
    """A collector as in README's "How to add a collector"."""

    name = "two-numbers"
    options = frozenset({"address"})
    public = options

    def __init__(self) -> None:
        self._hosts: list[str] = []

    def machine(self, watch: Watch) -> str:
        return str(watch.options["address"])

    def connect(self, watches: Sequence[Watch]) -> Self:
        self._hosts = [watch.host for watch in watches]
        return self

    def read(self) -> Sequence[Sample]:
        return [Sample(time.time_ns(), 1.0, host, "db.connections", "", 2.0) for host in self._hosts]

    def inventory(self) -> Mapping[str, Mapping[str, Any]]:
        return {host: {} for host in self._hosts}

    def close(self) -> None:
        self._hosts = []


def test_a_new_kind_needs_one_line_in_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new kind needs only a line in the registry to deliver samples."""
    monkeypatch.setattr(registry, "_KINDS", dict(registry._KINDS))
    registry.register(TwoNumbers())
    kind = registry.kind("two-numbers")
    assert "two-numbers" in registry.names()
    collector = kind.connect([Watch("sql1", "sql", options={"address": "a"})])
    got: list[Sample] = []
    sampler = Sampler(collector, kind.name, ["sql1"], got.extend, on_event=lambda *_, **__: None)
    sampler.tick()
    assert {(each.metric, each.instance) for each in got} == {
        ("db.connections", ""),
        ("collector.cpu_s", "two-numbers"),
        ("collector.duration_s", "two-numbers"),
        ("collector.ok", "two-numbers"),
    }


HOSTS: dict[str, dict[str, Any]] = {
    "local": {},
    "ssh": {"address": "sql1"},
    "agent": {"address": "sql1"},
    "windows": {"address": "sql1", "user": "w", "password": "hunter2"},
}
"""Kind -> the required keys in farm.yaml."""
PORT = "allowed: a number from 1 to 65535"


@pytest.mark.parametrize("name", HOSTS)
def test_one_host_twice_is_refused(name: str) -> None:
    """One host twice is refused, because its samples would be duplicates."""
    twice = [Watch("db1", tier, options=HOSTS[name]) for tier in ("sql", "nosql")]
    with pytest.raises(CollectorError, match=f"'db1' is watched by '{name}' more than once"):
        kind(name).connect(twice)


@pytest.mark.parametrize("name", HOSTS)
def test_hosts_of_one_machine_share_a_collector(name: str) -> None:
    """Hosts of one machine share a collector, whatever their other options."""
    watches = [
        Watch("sql1", "sql", options=HOSTS[name]),
        Watch("web1", "web", {"log": "/x"}, options=HOSTS[name]),
    ]
    assert len({kind(name).machine(each) for each in watches}) == 1


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("local", {"process": []}, r"process: found \[\]; allowed: a name or a list of names"),
        ("local", {"process": 5}, "process: found 5"),
        ("local", {"port": "5432"}, f"port: found '5432'; {PORT}"),
        ("local", {"port": True}, "port: found True"),
        (
            "local",
            {"port": 5432, "process": "postgres"},
            "port: given beside `process`; allowed: one of them",
        ),
        ("ssh", {"interval": "5s"}, "interval: found '5s'; allowed: a duration from 100ms to 1s"),
        ("ssh", {"interval": 1}, "interval: found 1"),
        ("ssh", {"address": None}, "address: missing"),
        ("ssh", {"port": 0}, f"port: found 0; {PORT}"),
        ("agent", {"address": None}, "address: missing"),
        ("agent", {"folder": "-x"}, "folder: found '-x'; allowed: a path on the host"),
        ("windows", {"address": None}, "address: missing"),
        ("windows", {"port": 0}, f"port: found 0; {PORT}"),
        ("windows", {"interval": "1ms"}, "interval: found '1ms'; allowed: a duration from 200ms to 15s"),
    ],
)
def test_wrong_options_name_host_and_collector(name: str, options: dict[str, Any], said: str) -> None:
    """A wrong option's error names host, collector, value and allowed values, and no password."""
    with pytest.raises(CollectorError, match=f"host 'sql1', collector '{name}': {said}") as caught:
        kind(name).connect([Watch("sql1", "sql", options={**HOSTS[name], **options})])
    assert "hunter2" not in str(caught.value)


SERVERS = {
    "postgres": ("psycopg", "postgresql"),
    "valkey": ("valkey", "valkey"),
    "cassandra": ("cassandra", "cassandra"),
    "mongodb": ("pymongo", "mongodb"),
    "mariadb": ("pymysql", "mysql"),
    "sqlserver": ("pyodbc", "mssql+odbc"),
}
"""Kind -> its library, and the scheme of its URLs."""


@pytest.mark.parametrize("name", [*SERVERS, "prometheus"])
def test_without_its_library_the_remedy_is_the_extra(name: str) -> None:
    """Without its library a kind gives the extra as remedy; the package has all other kinds."""
    library, scheme = SERVERS.get(name, ("requests", "http"))
    program = (
        f"import sys; sys.modules[{library!r}] = None\n"
        "from pinchpoint_collectors.record import Watch\n"
        "from pinchpoint_collectors.registry import kind\n"
        "from pinchpoint_collectors.errors import CollectorError\n"
        "assert kind('local')\n"
        f"try: kind({name!r}).connect([Watch('a', 'tier', options={{'url': '{scheme}://h/x'}})])\n"
        "except CollectorError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert f"run: pip install 'pinchpoint-collectors[{name}]'" in done.stdout


@pytest.mark.parametrize("options", [{}, {"url": "smb://127.0.0.1/x"}, {"url": "smb://h", "address": "h"}])
@pytest.mark.parametrize("name", SERVERS)
def test_an_endpoint_of_another_kind_is_explained(name: str, options: dict[str, str]) -> None:
    """An endpoint of another kind gives an error with the needed entry in farm.yaml."""
    said = (
        rf"host 'db1', collector '{name}': .* say `endpoint: NAME` .* {SERVERS[name][1].replace('+', '.')}://"
    )
    with pytest.raises(CollectorError, match=said):
        kind(name).connect([Watch("db1", "sql", options=options)])


@pytest.mark.parametrize("name", [name for name in SERVERS if "address" in kind(name).options])
def test_of_several_servers_the_watched_one_has_to_be_said(name: str) -> None:
    """With several servers the watched one must be named, because each reports only itself."""
    url = f"{SERVERS[name][1]}://watcher:se-cret@one.invalid,two.invalid/x"
    with pytest.raises(CollectorError, match=r"several nodes .* as in `address: one.invalid`") as caught:
        kind(name).connect([Watch("db1", "sql", options={"url": url})])
    assert "cret" not in str(caught.value)
