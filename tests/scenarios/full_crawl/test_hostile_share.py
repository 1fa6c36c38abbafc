"""File sources that refuse: a share nobody answers for, folders and files that may not be read."""

from __future__ import annotations

import os
import pwd
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from scenarios.full_crawl.folders import crawled, rows
from scenarios.full_crawl_sources.sites import samba
from support import disk_folder, missing

from pinchpoint_scenarios.contract import Endpoint

NOWHERE = Endpoint("search", "", {"kind": "none"})
USER, PASSWORD = "nobody", "a secret word"


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users of the system reach, too."""
    with tempfile.TemporaryDirectory(prefix=disk_folder(), dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def filled(folder: Path) -> Path:
    """Two files that may be read, one that may not, and a folder that may not."""
    for name in ("a.txt", "sub/b.txt", "sub/secret.txt", "closed/c.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (folder / "sub" / "secret.txt").chmod(0)
    (folder / "closed").chmod(0)
    return folder


def test_a_share_that_nobody_answers_for_is_one_failure(sql: Endpoint) -> None:
    """All failures is a normal outcome: none found, one kind, no password anywhere in the log."""
    files = Endpoint("files", "smb://127.0.0.1:1/docs", {"user": USER, "password": PASSWORD})
    params = {"sources": [{"kind": "files"}], "retries": 1, "timeout_s": 5}
    endpoints = {"sql": sql, "search": NOWHERE, "files": files}
    line = crawled(endpoints, params, sessions=2, keep_data=True)["files"]
    assert (line["count"], line["failures"], line["failures_by_kind"]) == (0, 1, {"unreachable": 1})
    assert line["failed"][0]["attempts"] == 2
    assert PASSWORD not in str(line)
    assert PASSWORD not in str(rows(sql, "SELECT message FROM errors"))


@pytest.mark.root
def test_what_a_share_does_not_let_be_read_is_a_failure_each(sql: Endpoint, open_folder: Path) -> None:
    """A closed folder and a closed file are named; everything else of the share is crawled."""
    if os.geteuid() != 0:
        missing("Samba's server needs root to change to the user who logs in")
    if USER not in {each.pw_name for each in pwd.getpwall()}:
        missing(f"the user {USER!r} is not known here")
    share = open_folder / "share"
    share.mkdir()
    filled(share)
    with samba(open_folder, share, USER, PASSWORD) as (url, _):
        files = Endpoint("files", url, {"user": USER, "password": PASSWORD})
        endpoints = {"sql": sql, "search": NOWHERE, "files": files}
        params = {"sources": [{"kind": "files"}], "batch": 4, "timeout_s": 10}
        line = crawled(endpoints, params, sessions=2)["files"]
    assert (line["count"], line["failures_by_kind"]) == (2, {"permission": 2})
    assert sorted(each["url"].removeprefix(url) for each in line["failed"]) == ["/closed", "/sub/secret.txt"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_a_folder_does_not_let_be_read_is_a_failure_each(sql: Endpoint, tmp_path: Path) -> None:
    """Likewise of a folder, for who is not root; a pipe and a link in a circle are no documents."""
    filled(tmp_path)
    (tmp_path / "round").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    try:
        params = {"sources": [{"kind": "files", "path": str(tmp_path)}], "batch": 4}
        line = crawled({"sql": sql, "search": NOWHERE}, params, sessions=2)["files"]
    finally:
        (tmp_path / "closed").chmod(0o755)
    assert (line["count"], line["skipped"], line["failures_by_kind"]) == (2, 2, {"permission": 2})
