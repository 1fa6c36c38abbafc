"""Tests of the options of a Windows machine in farm.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Watch
from pinchpoint_collectors.registry import kind
from pinchpoint_collectors.remote.ssh import Address
from pinchpoint_collectors.windows.options import WinRm, interval_s, sought, transport
from pinchpoint_collectors.windows.script import ProcessSelector

LOGIN = {"user": "FARM\\watcher", "password": "hunter2"}


def test_the_defaults_are_the_safe_ones() -> None:
    """Defaults are TLS, certificate verification, and any login that the machine accepts."""
    assert transport({"address": "sql1", **LOGIN}) == WinRm(
        host="sql1", port=5986, tls=True, auth="negotiate", user="FARM\\watcher", password="hunter2"
    )
    assert transport({"address": "sql1", **LOGIN, "tls": False}) == WinRm(
        host="sql1", port=5985, tls=False, auth="negotiate", user="FARM\\watcher", password="hunter2"
    )
    assert transport({"address": "sql1", "transport": "ssh", "user": "w"}) == Address("sql1", user="w")
    assert transport({"address": "sql1", "auth": "kerberos"}) == WinRm(
        host="sql1", port=5986, auth="kerberos"
    )


def test_a_password_is_shown_nowhere() -> None:
    """The record's printed form has no password."""
    assert "hunter2" not in repr(transport({"address": "sql1", **LOGIN}))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "address: missing"),
        ({"address": "http://sql1"}, "address: found 'http://sql1'; allowed: a name"),
        ({"address": "sql1", "transport": "telnet"}, "transport: found 'telnet'; allowed: winrm or ssh"),
        ({"address": "sql1", "auth": "digest"}, "auth: found 'digest'; allowed: negotiate, ntlm"),
        ({"address": "sql1", "auth": "basic", "tls": False}, "without TLS would send the password"),
        ({"address": "sql1", "auth": "ntlm"}, "needs `user:` and `password:`"),
        ({"address": "sql1", "user": "w"}, "password: missing beside `user:`"),
        ({"address": "sql1", "tls": "no"}, "tls: found 'no'; allowed: true or false"),
        ({"address": "sql1", "cert_validation": 1}, "cert_validation: found 1; allowed: true or false"),
        ({"address": "sql1", "port": 0}, "port: found 0; allowed: a number"),
        ({"address": "sql1", "ca": "/nowhere/ca.pem"}, "ca: /nowhere/ca.pem is no file"),
        ({"address": "sql1", "password": 7, "user": "w"}, r"password: found a value \(not shown\)"),
        ({"address": "sql1", "identity": "/k"}, "identity: given with the transport winrm"),
        (
            {"address": "sql1", "transport": "ssh", "password": "x"},
            "password: given with the transport ssh.*ssh takes keys only",
        ),
        ({"address": "-oProxyCommand=x", "transport": "ssh"}, "address: found"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_tried(options: dict[str, Any], says: str) -> None:
    """A wrong option is refused before connecting, with key, value and allowed values, without secrets."""
    with pytest.raises(CollectorError, match=says):
        transport(options)


def test_how_often_it_is_read() -> None:
    """The interval is a duration with a default of one second."""
    assert [interval_s(options) for options in ({}, {"interval": "500ms"}, {"interval": "5s"})] == [1, 0.5, 5]
    for wrong in ("100ms", "2m", 5, True, "fast"):
        with pytest.raises(
            CollectorError, match=r"interval: found .*; allowed: a duration from 200ms to 15s"
        ):
            interval_s({"interval": wrong})


def test_hosts_of_one_address_are_one_machine() -> None:
    """Hosts with one address share a connection; contradicting options are an error."""
    windows = kind("windows")
    one, two = (Watch(name, "sql", options={"address": "sql1", **LOGIN}) for name in ("a", "b"))
    other = Watch("c", "sql", options={"address": "sql2", **LOGIN})
    assert windows.machine(one) == windows.machine(two) != windows.machine(other)
    assert "hunter2" not in windows.machine(one)
    with pytest.raises(CollectorError, match="more than once"):
        windows.connect([one, one])
    slow = Watch("b", "sql", options={"address": "sql1", "interval": "5s"})
    with pytest.raises(CollectorError, match="say different things"):
        windows.connect([one, slow])
    with pytest.raises(CollectorError, match=r"host 'd', collector 'windows': address: missing"):
        windows.connect([Watch("d", "sql")])


def test_a_file_of_an_authority_must_be_there(tmp_path: Path) -> None:
    """The file of a certificate authority must exist, and is used in place."""
    path = tmp_path / "ca.pem"
    path.write_text("-")
    found = transport({"address": "sql1", **LOGIN, "ca": str(path), "cert_validation": False})
    assert isinstance(found, WinRm)
    assert (found.ca, found.cert_validation) == (str(path), False)


def test_a_tier_s_processes_are_known_by_one_thing() -> None:
    """A tier's processes are given by names, services or command lines, only one of the three."""
    assert sought({"address": "sql1"}) is None
    assert sought({"process": "sqlservr.exe"}) == ProcessSelector("process", ("sqlservr.exe",))
    assert sought({"service": ["MSSQLSERVER", "SQLSERVERAGENT"]}) == ProcessSelector(
        "service", ("MSSQLSERVER", "SQLSERVERAGENT")
    )
    assert sought({"command_line": "-ap x"}) == ProcessSelector("command_line", ("-ap x",))
    for wrong in ("", " ", [], [1], 7, {"a": 1}):
        with pytest.raises(CollectorError, match=r"service: found .*; allowed: a text or a list of texts"):
            sought({"service": wrong})
    with pytest.raises(CollectorError, match=r"service: given beside `process`; allowed: one of"):
        sought({"service": "MSSQLSERVER", "process": "sqlservr"})


def test_tiers_of_one_machine_share_its_link() -> None:
    """Tiers on one machine share its link, with processes of their own."""
    windows = kind("windows")
    common = {"address": "app1", **LOGIN}
    watches = [
        Watch("sql1", "sql", options={**common, "service": "MSSQLSERVER"}),
        Watch("web1", "web", options={**common, "process": "w3wp"}),
    ]
    assert len({windows.machine(watch) for watch in watches}) == 1
