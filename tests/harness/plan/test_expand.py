"""Variables with secrets are expanded only in the process that needs them."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.plan.samples import REAL_FARM, write

from pinchpoint.base.errors import InputError
from pinchpoint.farm.ready import standing_farm
from pinchpoint.plan import expand, expand_all, load_farm
from pinchpoint_collectors.record import Processes
from pinchpoint_scenarios.contract import Endpoint

WATCHED = """\
name: f
environment: test
endpoints: {sql: {url: "postgresql://u:p@localhost:${PGPORT}/d"}}
tiers:
  sql:
    hosts:
      sql1:
        collect:
          - {kind: local}
          - {kind: ssh, address: "${SQL1}"}
"""


def test_variables_are_filled_in_late(tmp_path: Path) -> None:
    """Passwords with any characters are expanded late and encoded in URLs."""
    farm = load_farm(write(tmp_path, REAL_FARM)[0])
    endpoints = expand_all(farm, {"SP_USER": "me", "SP_PASSWORD": "a b@c", "PGPASSWORD": "p@ss/w:rd#1%"})
    assert endpoints["sql"] == Endpoint("sql", "postgresql://loader:p%40ss%2Fw%3Ard%231%25@sql1/loadtest")
    assert endpoints["sharepoint"].options == {"auth": "basic", "user": "me", "password": "a b@c"}
    assert endpoints["files"].url == str(tmp_path / "documents")


@pytest.mark.parametrize(
    ("farm", "given", "places"),
    [
        (
            REAL_FARM,
            {"SP_USER": "me"},
            {"4: endpoints.sharepoint.password": "SP_PASSWORD", "5: endpoints.sql.url": "PGPASSWORD"},
        ),
        (WATCHED, {"PGPORT": "5433"}, {"10: tiers.sql.hosts.sql1.collect[1].address": "SQL1"}),
    ],
)
def test_every_unset_variable_is_named_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, farm: str, given: dict[str, str], places: dict[str, str]
) -> None:
    """All unset variables of endpoints and collectors are listed with their lines."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as raised:
        expand_all(load_farm(write(tmp_path, farm)[0]), given)
    assert str(raised.value).splitlines() == [
        f"farm.yaml:{place}: the environment variable {name} is not set; set it: export {name}=VALUE"
        for place, name in places.items()
    ]


def test_a_port_may_be_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A port may be a variable, and its listener is looked up after expansion."""
    monkeypatch.setenv("PGPORT", "5433")
    monkeypatch.setenv("SQL1", "sql1.example")
    cluster = "nosql: {hosts: {c1: {collect: [{kind: local}]}}}\n"
    watched = WATCHED.replace("{sql:", '{nosql: {url: "cassandra://localhost:1,localhost:2/d"}, sql:') + "  "
    live = standing_farm(load_farm(write(tmp_path, watched + cluster)[0]))
    assert live is not None
    found = {watch.host: watch.processes for kind, watch in live.watches if kind == "local"}
    assert found == {"sql1": Processes(port=5433), "c1": None}


def test_a_whole_url_may_be_a_variable() -> None:
    """A whole URL may be a variable, which is checked after expansion without showing its password."""
    given = {"url": "${SQL_URL}"}
    assert expand("sql", given, {"SQL_URL": "postgresql://u:p@h/d"}).url == "postgresql://u:p@h/d"
    with pytest.raises(InputError) as raised:
        expand("sql", given, {"SQL_URL": "mysql://u:hunter2@h/d"})
    assert str(raised.value).startswith(
        'endpoints.sql.url: "mysql://u:***@h/d" has the scheme "mysql"; allowed: postgresql://HOST or mssql'
    )


def test_a_folder_may_come_from_a_variable() -> None:
    """A folder from a variable must be an absolute path."""
    assert expand("files", {"url": "${DOCS}/a"}, {"DOCS": "/srv"}).url == "/srv/a"
    with pytest.raises(InputError, match="an absolute path"):
        expand("files", {"url": "${DOCS}"}, {"DOCS": "docs"})


LABEL = "a" * 63
LONGEST = f"{LABEL}.{LABEL}.{LABEL}.{'a' * 61}"  # 253 bytes


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("nosql", "cassandra://u:p,w@c1:9042,c2,10.0.0.3:9043/ks"),
        ("nosql", "mongodb://%2Ftmp%2Fmongodb-27017.sock/db"),
        ("nosql", "valkey://[fe80::1]:6379/0"),
        ("nosql", "valkey://cache_1.internal.:65535/0"),
        ("nosql", "mongodb+srv://bücher.example/db"),
        ("sql", f"postgresql://{'%2Fvar' * 20}%2Frun..d:5433/d"),
        ("sql", "postgresql://%40abstract..socket/d"),
        ("sql", "postgresql://user@/db?host=/run/postgresql&port=5433"),
        ("sql", "postgresql:///?service=orders"),
        ("sql", "postgres://h1:1,h2/d?target_session_attrs=read-write"),
        ("sql", "mssql+odbc://./d"),
        ("sql", "mssql+odbc://sql1,1433/d"),
        ("search", f"http://{LONGEST}.:1"),
    ],
)
def test_hosts_of_every_kind(endpoint: str, url: str) -> None:
    """Lists, IPv6 addresses, Unix sockets, international names and ODBC hosts are accepted."""
    assert expand(endpoint, {"url": url}, {}).url == url


@pytest.mark.parametrize(
    ("endpoint", "url", "words"),
    [
        ("nosql", "cassandra://c1:904x,c2/ks", "has no host, or a wrong port (host 1 of 2); allowed: valkey"),
        ("nosql", "mongodb://m1:27017,m2:2701x/db", "a wrong port (host 2 of 2)"),
        ("nosql", "scylla://c1,c2:0/ks", "a port is a number from 1 to 65535"),
        ("nosql", "cassandra://c1,c2:65536/ks", "a wrong port (host 2 of 2)"),
        ("nosql", "mongodb://m1:,m2/db", "a wrong port (host 1 of 2)"),
        ("nosql", "cassandra://c1,[::1/ks", "no host, or a wrong port"),
        ("nosql", "cassandra://c1,,c2/ks", "no host, or a wrong port (host 2 of 3)"),
        ("nosql", "cassandra://,/ks", "no host, or a wrong port (host 1 of 2)"),
        ("nosql", "valkey://a:1,b:2/3", "a cluster has database 0 only"),
        ("nosql", "redis+sentinel://a/0", "does not name the master"),
        ("nosql", "valkey://db..internal:6379/0", "has a host that can be no name; allowed"),
        ("nosql", "valkey://db%2E%2Einternal:6379/0", "a host that can be no name"),
        ("sql", "postgresql://h1,.h2/d", "can be no name (host 2 of 2)"),
        ("sql", f"postgresql://{LABEL}a/d", "1 to 63 bytes before, between and after the dots of a name"),
        ("web", f"http://{LONGEST}a", "253 in all"),
        ("web", f"http://{'ü' * 60}.example", "can be no name"),
        ("crawler", "ssh://app3..example", "can be no name"),
    ],
)
def test_a_host_that_can_be_none_is_said(endpoint: str, url: str, words: str) -> None:
    """An impossible host is bad input, as clients fail on it with other errors than "unreachable"."""
    with pytest.raises(InputError) as raised:
        expand(endpoint, {"url": url}, {})
    assert words in str(raised.value)
    assert str(raised.value).startswith(f"endpoints.{endpoint}.url: ")


def test_a_host_from_a_variable_is_judged_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bad host from a variable is reported with its line, without the password."""
    monkeypatch.chdir(tmp_path)
    hosts = 'nosql: {url: "valkey://${CACHE}.internal:${PORT}"}\n  sql: {url: "postgresql://${SQL}"}\n'
    farm = load_farm(write(tmp_path, f"name: f\nenvironment: test\nendpoints:\n  {hosts}")[0])
    fine = {"CACHE": "c1", "PORT": "6379", "SQL": "h1,h2/d"}
    assert expand_all(farm, fine)["nosql"].url == "valkey://c1.internal:6379"
    with pytest.raises(InputError) as raised:
        expand_all(farm, {"CACHE": "", "PORT": "6379", "SQL": "u:1,hunter2..x/y@h/d"})
    first, second = str(raised.value).splitlines()
    assert first.startswith('farm.yaml:4: endpoints.nosql.url: "valkey://.internal:6379" has a host that can')
    assert second.startswith('farm.yaml:5: endpoints.sql.url: "postgresql://u:***@h/d" has a host that')
    assert "hunter2" not in second


@pytest.mark.parametrize(
    "url",
    [
        "mssql+odbc://sa:${PW}@sql1%5CINST/loadtest?Encrypt=strict",
        "mysql+odbc://u:${PW}@db:3306/d",
        "odbc:///?dsn=Payroll",
        "odbc://u:${PW}@/?dsn=Payroll&dialect=mssql",
    ],
)
def test_an_odbc_endpoint_is_a_url_or_a_data_source(url: str) -> None:
    """An ODBC endpoint is a URL with its password filled in, or a data source without a host."""
    assert expand("sql", {"url": url}, {"PW": "a;b@c"}).url == url.replace("${PW}", "a%3Bb%40c")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        (
            "mssql+odbc://h/d?PWD=hunter2",
            "the keyword PWD in the url's query; write the password before the '@'",
        ),
        ("odbc:///?driver=x", "an odbc:// url without a data source; write odbc:///?dsn=NAME"),
        ("mssql+odbc:///d?UID=x", "has no host"),
        ("mysql+odbc://h:0/d", "has no host, or a wrong port"),
    ],
)
def test_what_has_its_place_in_the_url_is_not_a_keyword(url: str, words: str) -> None:
    """A password in the URL's query is refused without being shown, because masking misses it."""
    with pytest.raises(InputError) as raised:
        expand("sql", {"url": url}, {})
    assert words in str(raised.value)
    assert "hunter2" not in str(raised.value)
