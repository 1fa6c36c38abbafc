"""Tests of the web tier with @pnp/sp, the most used JavaScript client for SharePoint."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from infra.services.serving import Service
from infra.services.site import FILES, TOKEN
from support import require

PROGRAM = Path(__file__).with_name("pnp")


@pytest.fixture(scope="module")
def told(site: Service, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the client's results by name of the query."""
    node, npm = require("node", "nodejs"), require("npm", "npm")
    folder = tmp_path_factory.mktemp("pnp")
    for path in PROGRAM.iterdir():
        shutil.copy(path, folder / path.name)
    environment = os.environ | {"SITE": site.url, "TOKEN": TOKEN}
    installed = subprocess.run(
        [npm, "ci", "--prefer-offline", "--no-progress"],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert installed.returncode == 0, installed.stderr
    done = subprocess.run(
        [node, "client.mjs"],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    failed = {name: each for name, each in found.items() if isinstance(each, dict) and "error" in each}
    assert set(failed) == {"missing"}, failed
    return found


def test_the_site_and_its_lists(told: dict[str, Any], site: Service) -> None:
    """The site, lists by title, GUID and address, unusual names, and a list's folder are correct."""
    assert (told["web"]["Title"], told["web"]["Url"]) == ("Corpus", site.url)
    assert told["site"]["Url"] == site.url
    assert {each["Title"]: each["ItemCount"] for each in told["lists"]} == {
        "Documents": 1, "case": 5, "deep": 1, "it's #1 50%": 5, "many": 25,
    }  # fmt: skip
    assert told["odd_list"]["ItemCount"] == 5
    assert told["list_by_id"]["RootFolder"]["ServerRelativeUrl"] == "/sites/corpus/many"
    assert told["list_by_url"]["Title"] == "many"
    assert told["parents"]["ParentWeb"]["Url"] == site.url
    assert told["missing"]["status"] == 404


def test_items(told: dict[str, Any]) -> None:
    """Items can be selected, sorted, expanded, paged, read in verbose form, and read by changes."""
    assert [each["FileLeafRef"] for each in told["items"]] == [f"01{digit}.txt" for digit in (9, 8, 7, 6)]
    assert [each["File"]["Length"] for each in told["items"]] == ["9"] * 4
    names = [f"{number:03}.txt" for number in range(25)]
    assert told["all_items"] == [names[:10], names[10:20], names[20:]]
    assert [each["FileLeafRef"] for each in told["verbose_items"]] == names[:2]
    assert told["item"]["Author"]["Title"]
    assert told["roles"][0]["Member"]["Title"] == "Corpus Owners"
    assert told["changes"]["token"]["StringValue"].startswith("1;1;")
    assert told["changes"]["list"] == []


def test_files_and_folders(told: dict[str, Any]) -> None:
    """Files have every byte for any name, by path and GUID; a file's item and a folder's files are right."""
    page = FILES[b"case/page.html"].decode()
    assert (told["file"]["Name"], told["file"]["Length"]) == ("page.html", str(len(page)))
    assert told["text"] == told["file_by_id"] == page
    assert base64.b64decode(told["bytes"]) == FILES[b"case/page.gz"]
    assert told["odd_file"] == "odder"
    assert told["item_of_file"]["FileRef"] == "/sites/corpus/case/page.html"
    assert {each["Name"] for each in told["folder"]["Files"]} == {
        "Read.txt", "read.txt", "empty", "page.html", "page.gz",
    }  # fmt: skip
    assert told["folder"]["Folders"] == []
    assert [each["Name"] for each in told["files"]] == ["000.txt", "001.txt", "002.txt"]
    assert [each["Name"] for each in told["folders"]] == ["d''e"]
    assert told["exists"] is False


def test_people(told: dict[str, Any]) -> None:
    """A person can be read by each kind of name, with the profile."""
    user = told["user"]
    assert user["Id"] == 104
    for way in ("by_mail", "by_login"):
        assert told[way]["LoginName"] == user["LoginName"]
    ensured = told["ensured"].get("data", told["ensured"])
    assert ensured["Id"] == 104
    assert told["me"]["Id"] == 101
    assert [each["Id"] for each in told["users"]] == [101, 102, 103]
    assert {each["Title"] for each in told["groups"]} == {
        "Corpus Owners",
        "Corpus Members",
        "Corpus Visitors",
    }
    properties = {each["Key"]: each["Value"] for each in told["profile"]["UserProfileProperties"]}
    assert told["profile"]["DisplayName"] == user["Title"]
    assert told["property"] == properties["Department"]
    assert told["my_profile"]["AccountName"].endswith("user00001")
