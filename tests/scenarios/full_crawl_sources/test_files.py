"""Tests of file sources: a folder with permissions, and a real Samba share."""

from __future__ import annotations

import getpass
import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from scenarios.full_crawl_sources.sites import samba, walk
from support import frozen, missing

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.errors import ScenarioError
from pinchpoint_scenarios.full_crawl.failures import Failure
from pinchpoint_scenarios.full_crawl.params import FullCrawlParams, SourceParams
from pinchpoint_scenarios.full_crawl.sources import Grant, Item, Source, repository
from pinchpoint_scenarios.full_crawl.sources.smb import descriptor_grants

PASSWORD = "a secret word"
FILES = {"top.txt": b"top", "a b/größe ☃ 100%.txt": b"odd", "a b/c/empty": b"", "big.bin": bytes(3 * 2**20)}


def made(url: str, timeout_s: float = 10, **options: str) -> Source:
    endpoint = Endpoint("files", url, options)
    return repository(SourceParams(kind="files"), endpoint, FullCrawlParams(timeout_s=timeout_s)).connect()


def fill(folder: Path) -> Path:
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / "link").symlink_to("top.txt")
    return folder


def test_a_folder_tells_versions_and_permissions(tmp_path: Path) -> None:
    """A file's version changes with the file, and its permissions are those of owner, group and others."""
    file = tmp_path / "f"
    file.write_bytes(b"x")
    file.chmod(0o640)
    source = made(str(tmp_path))
    (item,) = source.enumerate(source.root())
    fetched = source.fetch(item)
    assert item.version == fetched.version
    assert fetched.access == (
        Grant(f"uid:{file.stat().st_uid}", "rw-"),
        Grant(f"gid:{file.stat().st_gid}", "r--"),
    )
    file.write_bytes(b"xy")
    (later,) = source.enumerate(source.root())
    assert later.version != item.version
    assert source.token() is None


def test_entries_of_an_access_list_count_as_far_as_its_mask_lets_them(tmp_path: Path) -> None:
    """An access list entry counts within the mask: rwx under r-x gives read and execute."""
    file = tmp_path / "f"
    file.write_bytes(b"x")
    owner, user, group, mask, other = 0x01, 0x02, 0x04, 0x10, 0x20  # acl(5)
    nobody = 2**32 - 1
    entries = [
        (owner, 6, nobody),
        (user, 7, 12345),
        (group, 0, nobody),
        (mask, 5, nobody),
        (other, 0, nobody),
    ]
    value = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    try:
        os.setxattr(file, "system.posix_acl_access", value)
    except OSError as error:
        missing(f"the temporary folder's file system keeps no access lists: {error.strerror}")
    source = made(str(tmp_path))
    (item,) = source.enumerate(source.root())
    assert Grant("uid:12345", "r-x") in (source.fetch(item).access or ())


def described(*entries: bytes, revision: int = 2) -> bytes:
    """Return a security descriptor (MS-DTYP 2.4.6) with a list of these entries."""
    entire = b"".join(entries)
    listed = struct.pack("<BxHHH", revision, 8 + len(entire), len(entries), 0) + entire
    return struct.pack("<BBHIIII", 1, 0, 0x8004, 0, 0, 0, 20) + listed


def entry(kind: int = 0, flags: int = 0) -> bytes:
    """Return an entry that allows or denies everyone to read (MS-DTYP 2.4.4.2)."""
    return struct.pack("<BBHI", kind, flags, 20, 0x120089) + bytes([1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0])


@pytest.mark.parametrize(
    ("descriptor", "grants"),
    [
        (described(entry()), (Grant("S-1-1-0", "0x120089"),)),
        (
            described(entry(1), entry(9), entry()),
            (Grant("S-1-1-0", "0x120089", False), Grant("S-1-1-0", "0x120089")),
        ),
        (described(), ()),
        (described()[:16] + bytes(4), (Grant("S-1-1-0", "0x1f01ff"),)),
        (described(entry(flags=0x20)), None),
        (described(entry(), revision=3), None),
        (described(entry())[:35], None),
        (b"", None),
    ],
)
def test_an_access_list_that_cannot_be_read_is_not_known(
    descriptor: bytes, grants: tuple[Grant, ...] | None
) -> None:
    """An unreadable access list is None and does not fail its document; unknown entries are skipped."""
    assert descriptor_grants(descriptor) == grants


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    if os.geteuid() != 0:
        missing("Samba's server needs root to change to the user who logs in")
    folder = tmp_path_factory.mktemp("samba")
    (folder / "share").mkdir()
    fill(folder / "share")
    with samba(folder, folder / "share", getpass.getuser(), PASSWORD) as (url, process):
        yield url, process.pid


@pytest.mark.root
def test_a_share_gives_every_file_with_its_access_list(share: tuple[str, int]) -> None:
    """A share's files have their names, bytes, versions and access lists by SID; links are skipped."""
    source = made(share[0], user=getpass.getuser(), password=PASSWORD)
    assert source.check()["kind"] == "files"
    containers, fetched = walk(source)
    found = {url.removeprefix(f"{share[0]}/"): each for url, each in fetched.items()}
    assert {name: each.content for name, each in found.items() if name != "link"} == {
        "top.txt": b"top", "a%20b/gr%C3%B6%C3%9Fe%20%E2%98%83%20100%25.txt": b"odd", "a%20b/c/empty": b"",
        "big.bin": FILES["big.bin"],
    }  # fmt: skip
    assert len(containers) == 3
    for each in found.values():
        assert each.access
        assert all(grant.principal.startswith("S-1-") and int(grant.rights, 16) for grant in each.access)
        assert each.version
    source.close()
    source.close()


@pytest.mark.root
def test_failures_of_a_share_have_names(share: tuple[str, int]) -> None:
    """A wrong password, a missing share or file, or no server is a named failure without a secret."""
    wrong = made(share[0], user=getpass.getuser(), password="guessed")
    with pytest.raises(Failure) as caught:
        wrong.check()
    assert (caught.value.kind, caught.value.permanent) == ("authentication", True)
    assert "guessed" not in str(caught.value)
    wrong.close()
    source = made(share[0], user=getpass.getuser(), password=PASSWORD)
    with pytest.raises(Failure, match="not_found"):
        source.fetch(Item("document", f"{share[0]}/nothing"))
    source.close()
    other = made(share[0].replace("/docs", "/none"), user=getpass.getuser(), password=PASSWORD)
    with pytest.raises(Failure, match="not_found"):
        other.check()
    other.close()
    away = made("smb://127.0.0.1:1/docs", user="a", password="b")
    with pytest.raises(Failure, match="unreachable"):
        away.enumerate(away.root())
    away.close()


@pytest.mark.root
def test_a_share_that_hangs_is_given_up_and_comes_back(share: tuple[str, int]) -> None:
    """A request to a hanging share ends at the time limit, and the next request opens a new connection."""
    url, pid = share
    source = made(url, timeout_s=1.5, user=getpass.getuser(), password=PASSWORD)
    source.check()
    children = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    with frozen(pid, *children):
        started = time.monotonic()
        with pytest.raises(Failure) as caught:
            source.fetch(Item("document", f"{url}/top.txt"))
        assert time.monotonic() - started < 8
        assert caught.value.kind == "timeout"
    assert source.fetch(Item("document", f"{url}/top.txt")).content == b"top"
    source.close()


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("smb://host", {}),
        ("smb://user:pass@host/share", {}),
        ("smb://host:notaport/share", {}),
        ("smb://host/share", {"user": "alone"}),
    ],
)
def test_addresses_of_shares_that_make_no_sense(url: str, options: dict[str, str]) -> None:
    """An invalid share address is refused when the source is created."""
    with pytest.raises(ScenarioError, match=r"smb://files\.example/documents"):
        made(url, 10, **options)
