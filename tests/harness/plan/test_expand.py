"""Secrets stay in the environment until the process that needs them asks."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.plan.samples import REAL_FARM, write

from pinchpoint.errors import InputError
from pinchpoint.live import standing_farm
from pinchpoint.plan import expand, expand_all, load_farm
from pinchpoint_collectors.record import Processes
from pinchpoint_scenarios.contract import Endpoint


def test_variables_are_filled_in_late(tmp_path: Path) -> None:
    """A password of any characters arrives as it is, encoded where a URL needs it."""
    farm = load_farm(write(tmp_path, REAL_FARM)[0])
    endpoints = expand_all(farm, {"SP_USER": "me", "SP_PASSWORD": "a b@c", "PGPASSWORD": "p@ss/w:rd#1%"})
    assert endpoints["sql"] == Endpoint("sql", "postgresql://loader:p%40ss%2Fw%3Ard%231%25@sql1/loadtest")
    assert endpoints["sharepoint"].options == {"auth": "basic", "user": "me", "password": "a b@c"}
    assert endpoints["files"].url == str(tmp_path / "documents")


def test_every_unset_variable_is_named_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All at once, as for every other error of a file."""
    monkeypatch.chdir(tmp_path)
    farm = load_farm(write(tmp_path, REAL_FARM)[0])
    with pytest.raises(InputError) as raised:
        expand_all(farm, {"SP_USER": "me"})
    assert str(raised.value) == (
        "farm.yaml:4: endpoints.sharepoint.password: the environment variable SP_PASSWORD is not set; "
        "set it: export SP_PASSWORD=VALUE\n"
        "farm.yaml:5: endpoints.sql.url: the environment variable PGPASSWORD is not set; "
        "set it: export PGPASSWORD=VALUE"
    )


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


def test_an_unset_variable_of_a_collector_is_named_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside those of endpoints."""
    monkeypatch.chdir(tmp_path)
    farm = load_farm(write(tmp_path, WATCHED)[0])
    with pytest.raises(InputError) as raised:
        expand_all(farm, {"PGPORT": "5433"})
    assert str(raised.value) == (
        "farm.yaml:10: tiers.sql.hosts.sql1.collect[1].address: the environment variable SQL1 is not set; "
        "set it: export SQL1=VALUE"
    )


def test_a_port_may_be_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who listens there is looked for once it is known."""
    monkeypatch.setenv("PGPORT", "5433")
    monkeypatch.setenv("SQL1", "sql1.example")
    cluster = "nosql: {hosts: {c1: {collect: [{kind: local}]}}}\n"
    watched = WATCHED.replace("{sql:", '{nosql: {url: "cassandra://localhost:1,localhost:2/d"}, sql:') + "  "
    live = standing_farm(load_farm(write(tmp_path, watched + cluster)[0]))
    assert live is not None
    found = {watch.host: watch.processes for kind, watch in live.watches if kind == "local"}
    assert found == {"sql1": Processes(port=5433), "c1": None}


def test_a_whole_url_may_be_a_variable() -> None:
    """It is judged when it is there; what is wrong with it is said without its password."""
    given = {"url": "${SQL_URL}"}
    assert expand("sql", given, {"SQL_URL": "postgresql://u:p@h/d"}).url == "postgresql://u:p@h/d"
    with pytest.raises(InputError) as raised:
        expand("sql", given, {"SQL_URL": "mysql://u:hunter2@h/d"})
    assert str(raised.value).startswith(
        'endpoints.sql.url: "mysql://u:***@h/d" has the scheme "mysql"; allowed: postgresql://HOST or mssql'
    )


def test_a_folder_may_come_from_a_variable() -> None:
    """Then it has to be an absolute path: nobody knows what a relative one would start from."""
    assert expand("files", {"url": "${DOCS}/a"}, {"DOCS": "/srv"}).url == "/srv/a"
    with pytest.raises(InputError, match="an absolute path"):
        expand("files", {"url": "${DOCS}"}, {"DOCS": "docs"})


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
    """Its password is filled in where a URL has it; a data source needs no host."""
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
    """A password in the query would be shown by what hides passwords in URLs; so it is refused, unshown."""
    with pytest.raises(InputError) as raised:
        expand("sql", {"url": url}, {})
    assert words in str(raised.value)
    assert "hunter2" not in str(raised.value)
