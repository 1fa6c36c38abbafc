"""Tests of ``endpoints.crawler`` in farm.yaml, and of recorded operations without a start time."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from pinchpoint.base.errors import InputError
from pinchpoint.loadgen.recorder import Recorder
from pinchpoint.plan import expand_all, load_farm, redacted


def farm_file(folder: Path, **crawler: Any) -> Path:
    """Write a farm with only a crawler."""
    path = folder / "farm.yaml"
    path.write_text(json.dumps({"name": "prod", "environment": "test", "endpoints": {"crawler": crawler}}))
    return path


def test_a_crawler_is_read_with_its_files_and_without_its_secrets(tmp_path: Path) -> None:
    """File paths are relative to the farm's folder; neither the manifest nor the output has the password."""
    login = {"auth": "credssp", "user": "FARM\\loader", "password": "${SP_PASSWORD}"}
    path = farm_file(tmp_path, url="winrm://app3.example", ca="ca.pem", configuration="Crawl", **login)
    farm = load_farm(path)
    found = expand_all(farm, {"SP_PASSWORD": "p@ss word"})["crawler"]
    assert found.url == "winrm://app3.example"
    assert found.options == {
        "auth": "credssp",
        "user": "FARM\\loader",
        "password": "p@ss word",
        "ca": str(tmp_path / "ca.pem"),
        "configuration": "Crawl",
    }
    literal = load_farm(farm_file(tmp_path, url="ssh://app3", user="loader", password="hunter2"))
    assert "hunter2" not in json.dumps(redacted(literal.to_json()))
    assert "hunter2" not in repr(literal)


@pytest.mark.parametrize(
    ("crawler", "words"),
    [
        ({"url": "telnet://app3"}, "allowed: winrm://HOST or winrm+http://HOST or ssh://HOST"),
        ({"url": "ssh://loader:secret@app3"}, "a login in the url; write user and password as keys"),
        (
            {"url": "ssh://app3", "auth": "ntlm"},
            "ssh:// with auth; allowed with it: user, password, key",
        ),
        ({"url": "winrm://app3", "key": "id"}, "winrm:// with key; allowed with it: auth, user"),
        ({"url": "winrm+http://app3", "ca": "ca.pem"}, "winrm+http:// with ca"),
        ({"url": "winrm://app3", "password": "x"}, "a password without a user"),
        ({"url": "winrm://app3", "auth": "credssp", "user": "u"}, "auth credssp without user and password"),
        (
            {"url": "winrm+http://app3", "auth": "basic", "user": "u", "password": "x"},
            "auth basic without TLS; anybody could read the password",
        ),
        ({"url": "winrm://app3", "auth": "kerberoas"}, "nearest: kerberos"),
    ],
)
def test_what_does_not_fit_is_one_line_with_the_remedy(
    tmp_path: Path, crawler: dict[str, Any], words: str
) -> None:
    """Wrong options, half a login, or a readable password give one line with the remedy and no secret."""
    with pytest.raises(InputError) as caught:
        load_farm(farm_file(tmp_path, **crawler))
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)


def test_operations_without_a_start_are_counted_and_not_timed() -> None:
    """Operations without a start are counted without a latency; timed ones keep their time."""
    recorder = Recorder()
    user = recorder.user("crawl")
    now_ns = time.perf_counter_ns()
    for number in range(10):
        user.add("document:A", "ok", 0, now_ns - number * 100_000_000)
    user.add("crawl/start", "ok", now_ns - 2_000_000_000, now_ns)
    seconds = recorder.take(2**40)
    rows = seconds.rows("generator1")
    documents = [row for row in rows if row[4] == "document:A"]
    assert sum(row[6] for row in documents) == 10
    assert [row[8] for row in documents] == [None] * len(documents)
    (start,) = [row for row in rows if row[4] == "crawl/start"]
    assert start[8] is not None
    progress = seconds.progress()["crawl"]
    assert (progress["ok"], progress["p95_s"], progress["times"]) == (10, None, [[], []])
