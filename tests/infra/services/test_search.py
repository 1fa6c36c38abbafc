"""Tests of the search service as a process: a query finds each word of each document and nothing else."""

from __future__ import annotations

import gzip
import os
import re
import signal
import socket
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psutil
import pytest
import urllib3
from infra.services.serving import Service, serving
from selectolax.lexbor import LexborHTMLParser

MODULE = "pinchpoint_infra.services.search"
TOKEN = "secret-of-the-farm"
LOGIN: dict[str, Any] = {"login": TOKEN, "token": TOKEN}
DOCUMENTATION = Path("/usr/share/doc")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("search")
    (folder / "index").mkdir()
    with serving(MODULE, folder, **LOGIN, directory=str(folder / "index")) as service:
        yield service


@pytest.fixture
def search(running: Service) -> Service:
    """Return the service with an empty index."""
    assert running.post("/reset").status == 200
    return running


def add(search: Service, url: str, content: bytes, source: str = "files") -> dict[str, Any]:
    answer = search.post("/documents?" + urlencode({"url": url, "source": source}), content)
    assert answer.status == 200, answer.data
    found: dict[str, Any] = answer.json()
    return found


def query(search: Service, words: str, limit: int = 10_000) -> list[str]:
    answer = search.get("/query?" + urlencode({"q": words, "limit": limit}))
    assert answer.status == 200, answer.data
    found = answer.json()
    assert len(found["hits"]) == min(found["total"], limit)
    return [hit["url"] for hit in found["hits"]]


@pytest.mark.parametrize("given", [{}, {"authorization": "Bearer wrong"}, {"authorization": TOKEN}])
def test_without_the_token_every_request_is_refused(search: Service, given: dict[str, str]) -> None:
    """Without the token each address is refused, also an unknown one, and nothing changes."""
    add(search, "file:///kept", b"private words")
    search.post("/commit")
    plain = urllib3.HTTPConnectionPool("127.0.0.1", search.port, retries=False, timeout=10)
    for path in ("/documents?url=u&source=s", "/remove?url=file:///kept", "/commit", "/reset", "/none"):
        answer = plain.request("POST", path, body=b"x" * 100_000, headers=given)
        assert (path, answer.status) == (path, 401)
        assert "Authorization: Bearer" in answer.json()["reason"]
    for path in ("/query?q=private", "/stats", "/health", "/"):
        assert (path, plain.request("GET", path, headers=given).status) == (path, 401)
    plain.close()
    assert query(search, "private") == ["file:///kept"]


def test_a_document_is_found_once_committed(search: Service) -> None:
    """A document is found after a commit, with its title, source, score and counts."""
    page = b"<!doctype html><title>On pumps</title><p>They move water."
    assert add(search, "http://x/1", page, "sharepoint") == {"url": "http://x/1", "form": "html", "words": 5}
    assert add(search, "file:///2", gzip.compress(b"Water\nand air"))["words"] == 3
    assert search.get("/stats").json()["pending"] in {0, 2}  # 0: the service has committed by itself
    assert search.post("/commit").status == 200
    found = search.get("/query?q=WATER").json()
    assert found["total"] == 2
    hits = {hit["url"]: hit for hit in found["hits"]}
    assert hits["http://x/1"]["title"] == "On pumps"
    assert hits["http://x/1"]["source"] == "sharepoint"
    assert hits["file:///2"]["title"] == "Water"
    assert all(hit["score"] > 0 for hit in found["hits"])
    stats = search.get("/stats").json()
    assert stats["documents"] == 2
    assert stats["pending"] == 0
    assert stats["sources"] == {"sharepoint": 1, "files": 1}
    assert stats["bytes"] == len(page) + len(gzip.compress(b"Water\nand air"))
    assert stats["index_bytes"] > 0


def test_the_time_each_document_was_added(search: Service) -> None:
    """The service returns the time in ns since 1970 of each searchable document; none without documents."""
    assert search.get("/added").json() == {}
    before_ns = time.time_ns()
    for url in ("file:///a", "file:///b"):
        add(search, url, b"words")
    search.post("/commit")
    first = search.get("/added").json()
    add(search, "file:///a", b"other words")
    search.post("/commit")
    second = search.get("/added").json()
    assert before_ns < first["file:///a"] < first["file:///b"] < second["file:///a"] < time.time_ns()
    assert second["file:///b"] == first["file:///b"]
    assert search.get("/added?limit=1").json() == {"file:///b": second["file:///b"]}
    assert search.get(f"/added?after_ns={second['file:///b']}").json() == {"file:///a": second["file:///a"]}
    assert search.get(f"/added?after_ns={second['file:///a']}").json() == {}
    assert search.get("/added?after_ns=x").status == 400


def test_the_same_url_again_replaces_the_document(search: Service) -> None:
    """The same URL replaces the document, also within one commit; a reset removes everything."""
    for text in (b"first", b"second"):
        add(search, "file:///a", text)
    search.post("/commit")
    assert (query(search, "first"), query(search, "second")) == ([], ["file:///a"])
    add(search, "file:///a", b"third")
    search.post("/commit")
    assert (query(search, "second"), query(search, "third")) == ([], ["file:///a"])
    assert search.get("/stats").json()["documents"] == 1
    search.post("/reset")
    assert query(search, "third") == []
    assert search.get("/stats").json()["documents"] == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cats AND dogs", "AND"),
        ("written in c++ mostly", "c++"),
        ("a foo:bar pair", "foo:bar"),
        ("see /etc/passwd for it", "/etc/passwd"),
        ("mail someone@example.org", "someone@example.org"),
        ("a \"quoted ' thing", "\"quoted '"),
        ("snake_case_name here", "snake_case_name"),
        ("version 1.2.3~rc4-5", "1.2.3~rc4-5"),
        ("the number 0x00ff", "0x00ff"),
        ("x" * 60, "x" * 60),
        ("x" * 70_000 + " end", "x" * 70_000),
        ("größe in Ñandú", "GRÖßE"),
        ("насос работает", "Насос"),  # noqa: RUF001 -- Russian is meant
        ("これは文章です。水", "これは文章です"),
        ("हिन्दी में", "हिन्दी"),
        ("x² and ½", "x²"),
        ("many words in any order", "order many"),
        ("(parenthesis [brackets] {braces}", "( [brackets] {"),
    ],
)
def test_any_word_is_plain(search: Service, text: str, words: str) -> None:
    """No word of a query is an operator, whatever its length, script and punctuation."""
    add(search, "file:///it", text.encode())
    add(search, "file:///other", b"unrelated")
    search.post("/commit")
    assert query(search, words) == ["file:///it"]


def test_all_words_are_needed_and_groups_are_phrases(search: Service) -> None:
    """A document must contain all words; the words of a group such as a-b must follow each other."""
    add(search, "file:///1", b"red pump, blue valve")
    add(search, "file:///2", b"blue pump")
    search.post("/commit")
    assert query(search, "pump blue") != []
    assert set(query(search, "pump blue")) == {"file:///1", "file:///2"}
    assert query(search, "red blue") == ["file:///1"]
    assert query(search, "blue-pump") == ["file:///2"]
    assert query(search, "pump green") == []
    assert query(search, "") == query(search, "+ -") == []


def test_html_is_found_by_what_is_seen_and_by_its_source(search: Service) -> None:
    """HTML is found by title, description, attributes, words across element borders, and markup."""
    page = (
        b"<html><head><title>Heading</title><meta name=description content='abstr&auml;ct'>"
        b"<script>var scripted;</script></head><body><b>W</b>ordy "
        b"<img alt='pict&uuml;re' src='source_name.png'>"
        b"<td>left<td>right</body></html>"
    )
    add(search, "http://x/", page)
    search.post("/commit")
    for word in ("heading", "abstrÄct", "scripted", "wordy", "pictüre", "source_name", "left", "right"):
        assert query(search, word) == ["http://x/"], word


def test_what_is_no_document_is_refused_with_the_reason(search: Service) -> None:
    """A non-document gives 415 with the reason, an empty file is accepted, a missing URL is an error."""
    answer = search.post("/documents?url=u&source=s", b"\x89PNG\r\n\x1a\n\x00")
    assert (answer.status, answer.json()) == (415, {"url": "u", "reason": "PNG image"})
    assert add(search, "file:///empty", b"")["words"] == 0
    assert search.post("/documents?url=u", b"words").status == 400
    assert search.get("/query?q=a&limit=0").status == 400
    assert search.get("/query?q=a&limit=many").status == 400
    assert search.post("/documents?url=u&source=s", bytes(64 * 2**20 + 1)).status == 413
    search.post("/commit")
    assert search.get("/stats").json()["documents"] == 1


def test_a_client_killed_in_the_middle_does_no_harm(search: Service) -> None:
    """A client that is killed in the middle of a document leaves nothing in the index or the log."""
    with socket.create_connection(("127.0.0.1", search.port)) as client:
        client.sendall(
            b"POST /documents?url=u&source=s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
            + TOKEN.encode()
            + b"\r\nContent-Length: 99\r\n\r\nhalf"
        )
    time.sleep(0.2)
    search.post("/commit")
    assert query(search, "half") == []
    assert search.log.read_text() == ""


def test_it_commits_by_itself_but_not_all_the_time(search: Service) -> None:
    """While documents arrive, the service commits every two seconds, so that its disk has load."""
    before = search.get("/stats").json()["commits"]
    deadline = time.monotonic() + 4.5
    count = 0
    while time.monotonic() < deadline:
        add(search, f"file:///{count}", b"words %d" % count)
        count += 1
        time.sleep(0.005)
    commits = search.get("/stats").json()["commits"] - before
    assert 1 <= commits <= 2
    assert search.get("/stats").json()["documents"] > 0


def test_process_name_and_interface(search: Service) -> None:
    """The process has the name that collectors expect, listens on the loopback only, and logs nothing."""
    process = psutil.Process(search.process.pid)
    assert Path(f"/proc/{process.pid}/comm").read_text().strip() == "pp-search"
    listening = [link.laddr.ip for link in process.net_connections() if link.status == "LISTEN"]
    assert listening == ["127.0.0.1"]
    assert all("pinchpoint_infra.content.child" in each.cmdline() for each in process.children())


def test_sigterm_commits_and_ends_promptly(tmp_path: Path) -> None:
    """After SIGTERM the service commits; a restart on the same directory finds all documents."""
    (tmp_path / "index").mkdir()
    with serving(MODULE, tmp_path, **LOGIN, directory=str(tmp_path / "index")) as service:
        add(service, "file:///kept", b"kept words")
        began_s = time.monotonic()
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(10) == 0
        assert time.monotonic() - began_s < 3
        assert service.log.read_text() == ""
    with serving(MODULE, tmp_path, **LOGIN, directory=str(tmp_path / "index")) as service:
        assert query(service, "kept") == ["file:///kept"]
        add(service, "file:///lost", b"lost words")
        service.process.kill()
        service.process.wait()
    with serving(MODULE, tmp_path, **LOGIN, directory=str(tmp_path / "index")) as service:
        assert query(service, "kept") == ["file:///kept"]


def test_a_full_disk_is_said_and_outlived(tmp_path: Path) -> None:
    """A full disk gives 507 with the reason and no traceback; a reset makes the service work again."""
    (tmp_path / "index").mkdir()

    # A limit on file size has the same effect on the index as a full disk.
    nearly_full = ["sh", "-c", 'ulimit -f 300; exec "$@"', "sh"]
    with serving(MODULE, tmp_path, prefix=nearly_full, **LOGIN, directory=str(tmp_path / "index")) as service:
        words = " ".join(f"word{number}" for number in range(100_000)).encode()
        service.post("/documents?url=u&source=s", words)
        answer = service.post("/commit")
        assert answer.status == 507
        assert "cannot be written" in answer.json()["reason"]
        assert service.get("/health").status == 503
        assert service.post("/documents?url=u&source=s", b"small").status == 507
        assert service.post("/reset").status == 200
        assert service.get("/health").status == 200
        add(service, "file:///small", b"small")
        service.post("/commit")
        assert query(service, "small") == ["file:///small"]
        assert "Traceback" not in service.log.read_text()


def test_every_real_document_is_found_by_its_rarest_word(search: Service) -> None:
    """Each of 150 files of the machine's documentation is found by its rarest visible word."""
    if not DOCUMENTATION.is_dir():
        pytest.skip(f"{DOCUMENTATION} is missing: this machine has no documentation to test with")
    files = sorted(path for path in DOCUMENTATION.rglob("*") if path.is_file() and not path.is_symlink())
    chosen = [path for path in files[:: max(1, len(files) // 150)] if path.stat().st_size < 2**20]
    words: dict[str, Counter[str]] = {}
    for path in chosen:
        content = path.read_bytes()
        url = path.as_uri()
        answer = search.post("/documents?" + urlencode({"url": url, "source": "files"}), content)
        if answer.status == 200:
            words[url] = seen_in(content)
        else:
            assert answer.status == 415
    search.post("/commit")
    everywhere = Counter(word for found in words.values() for word in found)
    assert len(words) >= min(100, len(chosen) // 2)
    for url, found in words.items():
        if found:
            rarest = min(found, key=lambda word: (everywhere[word], -len(word), word))
            assert url in query(search, rarest), (url, rarest)


def seen_in(content: bytes) -> Counter[str]:
    """Return the words of a document, computed without the service's code; none for a PDF."""
    if content.startswith(b"\x1f\x8b"):
        content = gzip.decompress(content)
    if content.startswith(b"%PDF-"):
        return Counter()
    text = content.decode("utf-8", "replace")
    if re.match(r"\s*<(!doctype html|html)", text, re.IGNORECASE):
        body = LexborHTMLParser(text).body
        assert body is not None
        text = body.text(separator=os.linesep)
    return Counter(re.findall(r"\w+", text))
