"""Secrets stay in the environment until the process that needs them asks."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.plan.samples import REAL_FARM, write

from pinchpoint.errors import InputError
from pinchpoint.plan import expand, expand_all, load_farm
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


def test_a_whole_url_may_be_a_variable() -> None:
    """It is judged when it is there; what is wrong with it is said without its password."""
    given = {"url": "${SQL_URL}"}
    assert expand("sql", given, {"SQL_URL": "postgresql://u:p@h/d"}).url == "postgresql://u:p@h/d"
    with pytest.raises(InputError) as raised:
        expand("sql", given, {"SQL_URL": "mysql://u:hunter2@h/d"})
    assert str(raised.value) == (
        'endpoints.sql.url: "mysql://u:***@h/d" has the scheme "mysql"; allowed: postgresql://HOST'
    )


def test_a_folder_may_come_from_a_variable() -> None:
    """Then it has to be an absolute path: nobody knows what a relative one would start from."""
    assert expand("files", {"url": "${DOCS}/a"}, {"DOCS": "/srv"}).url == "/srv/a"
    with pytest.raises(InputError, match="an absolute path"):
        expand("files", {"url": "${DOCS}"}, {"DOCS": "docs"})
