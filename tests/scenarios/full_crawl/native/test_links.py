"""Tests of both links with simulated servers: SSH by the system's client, WinRM by pypsrp."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from scenarios.full_crawl.native.farm import Farm, Source
from scenarios.full_crawl.native.sshfarm import PASSWORD, SshFarm, ssh_farm
from scenarios.full_crawl.native.winrmfarm import WinRmFarm, winrm_farm
from support import until
from winrmserver import PASSWORD as WINRM_PASSWORD

from pinchpoint_collectors.common.powershell import LinkLost
from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.errors import EndpointUnreachable, ScenarioError
from pinchpoint_scenarios.full_crawl.native.crawler import open_link
from pinchpoint_scenarios.full_crawl.native.link import FarmRefused

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def farm() -> Farm:
    """Return a farm whose second source has a name outside any code page."""
    return Farm([Source("Intranet"), Source("Größe/Überblick ☃", items=10)])


@pytest.fixture(autouse=True)
def nothing_open() -> Iterator[None]:
    """Fail the test that leaves a connection open."""
    yield
    gc.collect()


@contextmanager
def standing(kind: str, farm: Farm, folder: Path) -> Iterator[SshFarm | WinRmFarm]:
    """Yield the farm behind SSH or WinRM."""
    if kind == "ssh":
        with ssh_farm(farm, folder) as ssh:
            yield ssh
    else:
        with winrm_farm(farm, folder) as winrm:
            yield winrm


def states(endpoint: Endpoint) -> list[Any]:
    """Return the answer to a state request over a new link."""
    link = open_link(endpoint, 20)
    try:
        return [line["source"] for line in link.ask({"do": "state", "sources": None}, 20)]
    finally:
        link.close()


@pytest.mark.parametrize("kind", ["ssh", "winrm"])
def test_requests_are_answered_over_a_real_connection(kind: str, farm: Farm, tmp_path: Path) -> None:
    """The script arrives completely, names have any letters, and a refusal is the farm's own sentence."""
    with standing(kind, farm, tmp_path) as server:
        link = open_link(server.endpoint(), 20)
        try:
            lines = link.ask({"do": "check", "sources": None}, 20)
            assert [line["kind"] for line in lines] == ["farm", "source", "source"]
            assert lines[2]["source"] == "Größe/Überblick ☃"
            with pytest.raises(FarmRefused, match=r"no content source 'Extranet'"):
                link.ask({"do": "state", "sources": ["Extranet"]}, 20)
            link.ask({"do": "state", "sources": ["Größe/Überblick ☃"]}, 20)
            assert farm.asked[-1]["sources"] == ["Größe/Überblick ☃"]
        finally:
            link.close()
            link.close()


@pytest.mark.parametrize("name", ["my keys", 'Lena\'s "keys" \\ ☃'])
def test_ssh_takes_files_of_any_name(name: str, farm: Farm, tmp_path: Path) -> None:
    """Key and host files work in a folder whose name ssh's configuration would split into words."""
    (tmp_path / name).mkdir()
    with standing("ssh", farm, tmp_path / name) as server:
        assert states(server.endpoint()) == ["Intranet", "Größe/Überblick ☃"]


@pytest.mark.parametrize("kind", ["ssh", "winrm"])
def test_a_link_that_is_cut_is_lost_and_can_be_opened_again(kind: str, farm: Farm, tmp_path: Path) -> None:
    """A cut link is a lost link with its address, and the next link works."""
    with standing(kind, farm, tmp_path) as server:
        link = open_link(server.endpoint(), 20)
        link.ask({"do": "state", "sources": None}, 20)
        if isinstance(server, SshFarm):
            server.cut()
        else:
            server.forget()
        with pytest.raises(LinkLost, match=r"endpoint crawler \(127.0.0.1:"):
            link.ask({"do": "state", "sources": None}, 20)
        link.close()
        assert states(server.endpoint()) == ["Intranet", "Größe/Überblick ☃"]


@pytest.mark.parametrize("kind", ["ssh", "winrm"])
def test_a_server_that_is_not_there_is_a_lost_link(kind: str, farm: Farm, tmp_path: Path) -> None:
    """A missing server is a lost link, so that the caller can try again."""
    with standing(kind, farm, tmp_path) as server:
        endpoint = server.endpoint()
    with pytest.raises(LinkLost, match=r"endpoint crawler .*[Cc]onnection refused"):
        states(endpoint)


@pytest.mark.parametrize("kind", ["ssh", "winrm"])
def test_a_refused_login_says_so_without_the_password(kind: str, farm: Farm, tmp_path: Path) -> None:
    """A wrong password is no lost link, so that it is not tried repeatedly, and is not shown."""
    with standing(kind, farm, tmp_path) as server:
        with pytest.raises(EndpointUnreachable) as caught:
            states(server.endpoint(password="hunter2"))
        assert "the login was refused" in str(caught.value)
        assert "farm.yaml" in str(caught.value)
        assert "hunter2" not in str(caught.value)
        assert WINRM_PASSWORD not in str(caught.value)


def test_ssh_takes_a_password_that_no_command_line_shows(farm: Farm, tmp_path: Path) -> None:
    """The password reaches the server and is in no process's arguments and in no file."""
    with ssh_farm(farm, tmp_path) as server:
        link = open_link(server.endpoint(password=PASSWORD), 20)
        try:
            assert link.ask({"do": "state", "sources": None}, 20)
            for folder in Path("/proc").glob("[0-9]*"):
                try:
                    assert PASSWORD.encode() not in (folder / "cmdline").read_bytes()
                except OSError:
                    continue  # the process has ended
            left = list(Path(os.environ["TMPDIR"]).glob("pinchpoint-ssh-*/*"))
            assert not any(PASSWORD in path.read_text() for path in left)
        finally:
            link.close()
        assert not list(Path(os.environ["TMPDIR"]).glob("pinchpoint-ssh-*"))


@pytest.mark.parametrize("url", ["ssh://-oProxyCommand=touch%20x", "ssh://-F", "ssh://"])
def test_a_host_is_never_an_option_of_ssh(url: str) -> None:
    """A host that begins with "-" is refused before ssh starts."""
    with pytest.raises(EndpointUnreachable, match="write a host that does not begin with -"):
        open_link(Endpoint("crawler", url, {"user": "loader"}), 5.0)


def test_ssh_does_not_talk_to_a_machine_that_it_does_not_know(farm: Farm, tmp_path: Path) -> None:
    """An unknown host key is refused with the remedy before anything is sent."""
    with ssh_farm(farm, tmp_path) as server:
        server.known_hosts.write_text("")
        with pytest.raises(EndpointUnreachable, match=r"its host key is not a known one.*known_hosts"):
            states(server.endpoint())
    assert farm.asked == []


def test_ssh_passes_over_what_a_profile_prints(farm: Farm, tmp_path: Path) -> None:
    """Output that is not the script's is ignored."""
    with ssh_farm(farm, tmp_path) as server:
        server.noise = "Welcome to APP3\r\n{ not json\r\n[1, 2]\r\n"
        assert len(states(server.endpoint())) == 2


def test_ssh_waits_no_longer_than_it_is_told(farm: Farm, tmp_path: Path) -> None:
    """A hanging farm is a lost link at the time limit."""
    with ssh_farm(farm, tmp_path) as server:
        link = open_link(server.endpoint(), 20)
        try:
            link.ask({"do": "state", "sources": None}, 20)
            begun = time.monotonic()
            with farm._lock, pytest.raises(LinkLost, match=r"no answer in time"):
                link.ask({"do": "state", "sources": None}, 0.3)
            assert time.monotonic() - begun < 10
        finally:
            link.close()


def test_ssh_that_is_lost_for_good_stops_the_crawls(farm: Farm, tmp_path: Path) -> None:
    """If the link does not come back, the script stops its own crawls and no others."""
    farm.sources[0].items = 100_000
    with ssh_farm(farm, tmp_path) as server:
        link = open_link(server.endpoint(), 20)
        link.ask({"do": "start", "sources": ["Intranet"], "grace_s": 0.2}, 20)
        server.cut()
        link.close()
        until(lambda: farm.sources[0].line()["state"] == "Idle", "the crawl was not stopped")
        assert farm.did() == ["start", "stopped-as-orphan"]


# If a login hook has read a reply, requests does not return its connection; garbage collection closes it.
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("login", "tls"), [(login, tls) for login in ("ntlm", "credssp") for tls in (True, False)]
)
def test_winrm_logs_in_as_a_real_peer_checks_it(
    login: str, tls: bool, farm: Farm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NTLM and CredSSP log in to an independent implementation; without TLS messages are encrypted."""
    users = tmp_path / "users"
    users.write_text(f"FARM:loader:{WINRM_PASSWORD}\n")
    monkeypatch.setenv("NTLM_USER_FILE", str(users))
    with winrm_farm(farm, tmp_path, tls=tls, login=login) as server:
        assert len(states(server.endpoint(auth=login))) == 2
        assert server.handed_over == ([WINRM_PASSWORD] if login == "credssp" else [])
        with pytest.raises(EndpointUnreachable, match=r"the login was refused") as caught:
            states(server.endpoint(auth=login, password="hunter2"))
        assert "hunter2" not in str(caught.value)
        other = "credssp" if login == "ntlm" else "ntlm"
        with pytest.raises(EndpointUnreachable, match=r"the login was refused"):
            states(server.endpoint(auth=other))


def test_winrm_says_which_library_kerberos_needs(farm: Farm, tmp_path: Path) -> None:
    """Without its library Kerberos gives an error that names the extra."""
    if find_spec("gssapi"):
        pytest.skip("the Python package gssapi is installed here: nothing is missing for Kerberos")
    says = r"needs a library that is not here; .*pyspnego\[kerberos\]"
    with winrm_farm(farm, tmp_path, login="ntlm") as server, pytest.raises(EndpointUnreachable, match=says):
        states(server.endpoint(auth="kerberos"))


def test_winrm_trusts_no_certificate_by_itself(farm: Farm, tmp_path: Path) -> None:
    """A self-signed certificate is refused with the remedy before the password is sent."""
    with winrm_farm(farm, tmp_path) as server:
        endpoint = server.endpoint()
        options = {name: value for name, value in endpoint.options.items() if name != "ca"}
        with pytest.raises(
            EndpointUnreachable, match=r"certificate is not one that is trusted here; .*ca: PATH"
        ):
            states(Endpoint(endpoint.name, endpoint.url, options))
        assert server.actions == []


def test_winrm_uses_the_session_configuration_it_is_given(farm: Farm, tmp_path: Path) -> None:
    """The session configuration's name reaches the server; an unknown one gives the server's error."""
    with (
        winrm_farm(farm, tmp_path) as server,
        pytest.raises(LinkLost, match=r"no such session configuration"),
    ):
        states(server.endpoint(configuration="Microsoft.PowerShell"))


def test_an_unknown_scheme_names_the_ones_there_are() -> None:
    """An unknown scheme gives an error with the allowed ones."""
    with pytest.raises(ScenarioError, match=r"unknown scheme 'telnet'; allowed: ssh, winrm, winrm\+http"):
        open_link(Endpoint("crawler", "telnet://app3"), 1)
