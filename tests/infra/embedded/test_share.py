"""Tests of the files tier with a delay: a real SMB share of its documents, removed afterwards."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import smbclient
from support import require

from pinchpoint_infra.embedded import FarmSpec, down, limit, up
from pinchpoint_infra.embedded.place import STATE_VARIABLE
from pinchpoint_infra.embedded.record import FarmError
from pinchpoint_infra.embedded.tiers import files
from pinchpoint_infra.faults.delay import DelayedEndpoint

pytestmark = pytest.mark.farm
ROUND_TRIP_S = 0.15


def spec(folder: Path) -> FarmSpec:
    return FarmSpec(
        folder / "farm.yaml",
        "tests",
        ("files",),
        documents=20,
        delays={"files": DelayedEndpoint(ROUND_TRIP_S)},
    )


@pytest.fixture
def short_state(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use a state folder with a short path, because the names of Samba's sockets have a length limit."""
    with tempfile.TemporaryDirectory(prefix="pp-", dir="/var/tmp") as folder:
        monkeypatch.setenv(STATE_VARIABLE, folder)
        yield


ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a share's user")


@ROOT
def test_a_path_too_long_for_sambas_sockets_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path that is too long for Samba's sockets is refused; Samba itself would end without a message."""
    require("smbd", "samba")
    deep = tmp_path / ("d" * 80)
    deep.mkdir()
    monkeypatch.setenv(STATE_VARIABLE, str(deep))
    made = spec(tmp_path)
    try:
        with pytest.raises(
            FarmError, match=f"Samba's sockets allow 85; name a shorter folder in {STATE_VARIABLE}"
        ):
            up(made, lifeline=False, progress=lambda _: None)
    finally:
        down(made.identity)


@ROOT
@pytest.mark.usefixtures("short_state")
def test_documents_are_read_over_smb_and_later_by_the_delay(tmp_path: Path) -> None:
    """The share has the folder's files, and a listing takes several round trips while limits are active."""
    require("smbd", "samba")
    made = spec(tmp_path)
    status = up(made, lifeline=False, progress=lambda _: None)
    try:
        given = status.endpoints["files"]
        host, _, share = given["url"].removeprefix("smb://").partition("/")
        name, _, port = host.partition(":")
        login = {"username": given["user"], "password": given["password"], "port": int(port)}
        [tier] = [one for one in status.tiers if one.name == "files"]
        there = {path.name for path in (Path(status.disks["files"]["content"])).iterdir()}
        assert there
        assert set(smbclient.listdir(rf"\\{name}\{share}", **login)) == there
        limit(made.identity, hold=True)
        begun = time.monotonic()
        assert set(smbclient.listdir(rf"\\{name}\{share}", **login)) == there
        assert time.monotonic() - begun >= ROUND_TRIP_S
    finally:
        smbclient.reset_connection_cache()
        down(made.identity)
    assert tier.pid is not None
    assert not psutil.pid_exists(tier.pid)


def test_without_samba_the_folder_stays_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without Samba the farm uses the folder and gives a warning with the reason."""
    monkeypatch.setattr(files, "_program", lambda _: None)
    said = files.missing_for_a_share()
    assert said is not None
    assert "root" in said or "apt-get install samba" in said
    tier = files.FilesTier(tmp_path, {})
    tier.far = True
    tier.prepare()
    assert tier.endpoint() == {"url": str(tmp_path / "content")}
    assert tier.command() is None
    assert tier.is_ready()
