"""Tests of ODBC URLs: their parts, the chosen driver, and the connection string."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

import pytest

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.databases.odbc.address import (
    FREETDS,
    MARIADB,
    MICROSOFT,
    NoDriver,
    OdbcAddress,
    OdbcDriver,
    connection_string,
    find,
    parse,
)
from pinchpoint_scenarios.errors import ScenarioError

ALL = [
    "ODBC Driver 17 for SQL Server",
    "ODBC Driver 18 for SQL Server",
    "FreeTDS",
    "MariaDB Unicode",
    "MySQL",
]


def parsed(url: str) -> OdbcAddress:
    return parse(Endpoint("sql", url))


def test_a_url_is_taken_apart() -> None:
    """A URL's percent-encoded characters are decoded, and the driver's keywords stay unchanged."""
    found = parsed(
        "mssql+odbc://me%40corp:p%3Bw%7D%2F@sql1%5CINST:1500/load%20test?Encrypt=strict&driver=/x/y.so"
    )
    assert (found.kind, found.host, found.port, found.database) == ("mssql", "sql1\\INST", 1500, "load test")
    assert (found.user, found.password) == ("me@corp", "p;w}/")
    assert found.options == {"Encrypt": "strict"}
    assert found.driver == "/x/y.so"
    assert "p;w" not in repr(found)


def test_a_data_source_may_know_it_all() -> None:
    """A data source's name is enough; a user and the server's dialect can be added."""
    assert parsed("odbc:///?dsn=Payroll").dsn == "Payroll"
    found = parsed("odbc://u:p@/?DSN=Payroll&dialect=mssql")
    assert (found.dsn, found.kind, found.user, found.password, found.host) == (
        "Payroll",
        "mssql",
        "u",
        "p",
        "",
    )


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("odbc:///", r"an odbc:// url without a data source; write odbc:///\?dsn=NAME"),
        ("mssql+odbc:///db", r"a url without a host; write mssql\+odbc://HOST/DATABASE"),
        (
            "mssql+odbc://h/db?PWD=hunter2",
            "the keyword PWD in the url's query; write the password before the '@'",
        ),
        ("mssql+odbc://h/db?uid=sa", "the keyword uid in the url's query; write the user before the '@'"),
        (
            "odbc:///?dsn=x&dialect=mysqll",
            "unknown dialect 'mysqll'; allowed: mssql, mysql, postgresql; nearest",
        ),
        ("mysql+odbc://h:99999/db", "a wrong port"),
    ],
)
def test_what_is_not_allowed_is_said_without_a_password(url: str, words: str) -> None:
    """An invalid URL gives an error with value and allowed values, without the password."""
    with pytest.raises(ScenarioError, match=words) as caught:
        parsed(url)
    assert "hunter2" not in str(caught.value)


def test_values_are_quoted_as_odbc_asks_for() -> None:
    """Special values are in braces with doubled closing braces; plain ones are unquoted."""
    text = connection_string(
        {"DRIVER": "ODBC Driver 18 for SQL Server", "PWD": "a;b}c", "UID": "me", "X": " y"}
    )
    assert text == "DRIVER=ODBC Driver 18 for SQL Server;PWD={a;b}}c};UID=me;X={ y};"


def test_microsofts_driver_comes_before_freetds() -> None:
    """Microsoft's newest driver comes first, then the wheel's, then FreeTDS; the choice is reported."""
    address = parsed("mssql+odbc://h/db")
    assert find(address, ALL) == OdbcDriver(
        "ODBC Driver 18 for SQL Server", MICROSOFT, "ODBC Driver 18 for SQL Server (the system's)"
    )
    assert find(parsed("mysql+odbc://h/db"), ALL) == OdbcDriver(
        "MariaDB Unicode", MARIADB, "MariaDB Unicode (the system's)"
    )


def test_without_microsofts_driver_freetds_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Microsoft's driver FreeTDS is used; without both the error names the package."""
    monkeypatch.setattr("pinchpoint_collectors.common.odbc.wheel_library", lambda: None)
    address = parsed("mssql+odbc://h/db")
    found = find(address, ["FreeTDS"])
    assert found == OdbcDriver("FreeTDS", FREETDS, "FreeTDS (the system's; Microsoft's is not installed)")
    with pytest.raises(
        NoDriver, match=r"no ODBC driver for SQL Server is installed here \(registered: none\); install"
    ):
        find(address, [])
    with pytest.raises(NoDriver, match="apt-get install odbc-mariadb"):
        find(parsed("mysql+odbc://h/db"), ["FreeTDS"])


def test_the_wheels_driver_is_found_for_this_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wheel's library for this distribution and machine is found by its path."""
    package = tmp_path / "mssql_python_odbc"
    for place in ("debian_ubuntu/x86_64", "debian_ubuntu/arm64", "rhel/x86_64"):
        folder = package / "libs/linux" / place / "lib"
        folder.mkdir(parents=True)
        (folder / "libmsodbcsql-18.6.so.2.1").touch()
    (package / "__init__.py").touch()
    monkeypatch.delitem(sys.modules, "mssql_python_odbc", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    for machine, release, place in (
        ("x86_64", {"ID": "debian"}, "debian_ubuntu/x86_64"),
        ("aarch64", {"ID": "ubuntu", "ID_LIKE": "debian"}, "debian_ubuntu/arm64"),
        ("x86_64", {"ID": "rocky", "ID_LIKE": "rhel centos fedora"}, "rhel/x86_64"),
    ):
        monkeypatch.setattr(platform, "machine", lambda machine=machine: machine)
        monkeypatch.setattr(platform, "freedesktop_os_release", lambda release=release: release)
        found = find(parsed("mssql+odbc://h/db"), ["FreeTDS"])
        assert found is not None
        assert found.keyword == str(package / "libs/linux" / place / "lib/libmsodbcsql-18.6.so.2.1")
        assert "of the wheel mssql-python-odbc" in found.shown


def test_a_driver_that_is_named_is_taken() -> None:
    """A driver named in the URL is used; a data source has its own."""
    found = find(parsed("mssql+odbc://h/db?driver=/usr/lib/libtdsodbc.so"), [])
    assert found == OdbcDriver("/usr/lib/libtdsodbc.so", FREETDS, "/usr/lib/libtdsodbc.so")
    assert find(parsed("odbc:///?dsn=x"), []) is None
