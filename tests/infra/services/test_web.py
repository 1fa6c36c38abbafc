"""The SharePoint-style site as a real process on a real database, read by the crawl's client and by hand."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import psutil
import pytest
from infra.services.serving import Service, serving
from infra.services.site import BEARER, FILES, MODULE, TOKEN, VERBOSE, put
from servers import postgres

from pinchpoint_infra.content.filling import ingest
from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.full_crawl.params import FullCrawlParams, SourceParams
from pinchpoint_scenarios.full_crawl.sources.contract import Item, Source
from pinchpoint_scenarios.full_crawl.sources.sharepoint import SharePoint


def client(site: Service, page_size: int = 100) -> Source:
    return SharePoint(
        Endpoint("sharepoint", site.url, {"auth": "bearer", "token": TOKEN}),
        SourceParams(kind="sharepoint"),
        FullCrawlParams(page_size=page_size),
    ).connect()


@pytest.mark.parametrize("page_size", [1, 7, 100])
def test_a_crawl_gets_every_byte_of_every_document_once(site: Service, page_size: int) -> None:
    """Whatever the names and the page size, what was ingested is what a crawl fetches."""
    source = client(site, page_size)
    waiting = [source.root()]
    documents: list[Item] = []
    while waiting:
        for item in source.enumerate(waiting.pop()):
            (waiting if item.kind == "container" else documents).append(item)
    assert len({item.url for item in documents}) == len(documents) == len(FILES)
    assert sorted(source.fetch(item).content for item in documents) == sorted(FILES.values())
    source.close()


def test_site_and_libraries(site: Service) -> None:
    """The top folders are the libraries; files outside of any are in one of their own."""
    assert site.get("/_api/web", **BEARER).json()["Title"]
    assert site.get("/_api/web/webs", **BEARER).json() == {"value": []}
    lists = site.get("/_api/web/lists?$select=Title,ItemCount", **BEARER).json()["value"]
    assert {each["Title"]: each["ItemCount"] for each in lists} == {
        "case": 5, "deep": 1, "it's #1 50%": 5, "many": 25, "Documents": 1,
    }  # fmt: skip
    one = site.get("/_api/web/lists/getbytitle('it''s%20%231%2050%25')", **BEARER).json()
    assert one["Title"] == "it's #1 50%"
    assert site.get("/_api/web/lists/getByTitle('CASE')", **BEARER).json()["Title"] == "case"


def test_pages_in_both_forms(site: Service) -> None:
    """The light form has value and odata.nextLink, the verbose one d.results and d.__next; both lead on."""
    for headers, around, link in ((BEARER, None, "odata.nextLink"), (VERBOSE, "d", "__next")):
        following: str | None = "/_api/web/lists/getbytitle('many')/items?$top=10"
        sizes, names = [], []
        while following:
            parts = urlsplit(following)
            page = site.get(f"{parts.path}?{parts.query}", **headers).json()
            page = page[around] if around else page
            items, following = page["results" if around else "value"], page.get(link)
            sizes.append(len(items))
            names += [item["FileRef"] for item in items]
        assert sizes == [10, 10, 5]
        assert names == [f"/sites/corpus/many/{number:03}.txt" for number in range(25)]


def test_items_say_what_a_crawler_needs(site: Service) -> None:
    """Every field is there, in SharePoint's form; $select picks, in any case."""
    target = "/_api/web/lists/getbytitle('case')/items"
    item = next(
        each for each in site.get(target, **BEARER).json()["value"] if each["FileLeafRef"] == "page.html"
    )
    assert item["Title"] == "page.html"
    assert item["FileRef"] == "/sites/corpus/case/page.html"
    assert item["File_x0020_Size"] == str(len(FILES[b"case/page.html"]))
    assert item["FileSystemObjectType"] == 0
    assert isinstance(item["Id"], int)
    assert time.strptime(item["Modified"], "%Y-%m-%dT%H:%M:%SZ")
    selected = site.get(target + "?$select=id,fileref", **BEARER).json()["value"][0]
    assert set(selected) == {"Id", "FileRef"}


@pytest.mark.parametrize(
    ("path", "content", "media"),
    [
        ("/sites/corpus/case/Read.txt", b"upper", "text/plain"),
        ("/sites/corpus/case/read.txt", b"lower", "text/plain"),
        ("/Sites/Corpus/CASE/EMPTY", b"", "text/plain"),
        ("/sites/corpus/case/page.html", FILES[b"case/page.html"], "text/html"),
        ("/sites/corpus/case/page.gz", FILES[b"case/page.gz"], "application/gzip"),
        ("/sites/corpus/it's #1 50%/d''e/(x')y).txt", b"odder", "text/plain"),
    ],
)
def test_bytes_of_a_file(site: Service, path: str, content: bytes, media: str) -> None:
    """By either name of the method, an alias too, in any case; with length and type."""
    quoted = quote(path.replace("'", "''"))
    for target in (
        f"/_api/web/getfilebyserverrelativeurl('{quoted}')/$value",
        f"/_API/Web/GetFileByServerRelativePath(decodedurl='{quoted}')/$value",
        f"/sites/corpus/_api/web/getFileByServerRelativePath(decodedUrl=@p1)/$value?@p1=%27{quoted}%27",
    ):
        answer = site.get(target, **BEARER)
        assert (answer.status, answer.data) == (200, content), target
        assert answer.headers["Content-Length"] == str(len(content))
        assert answer.headers["Content-Type"].partition(";")[0] == media


def test_context_info(site: Service) -> None:
    """What clients ask for first, in both forms."""
    assert site.post("/_api/contextinfo", b"", **BEARER).json()["FormDigestValue"]
    verbose = site.post("/_api/contextInfo", b"", **VERBOSE).json()["d"]["GetContextWebInformation"]
    assert verbose["FormDigestTimeoutSeconds"] > 0
    assert verbose["WebFullUrl"] == site.url


@pytest.mark.parametrize(
    ("target", "headers", "status"),
    [
        ("/_api/web", {}, 401),
        ("/_api/web", {"Authorization": "Bearer wrong"}, 401),
        ("/_api/web", {"Authorization": "Bearer \xe9"}, 401),
        ("/nothing", {}, 401),
        ("/nothing", BEARER, 404),
        ("/other/_api/web", BEARER, 404),
        ("/_api/web/nothing", BEARER, 404),
        ("/_api/web/lists/getbytitle('none')/items", BEARER, 404),
        ("/_api/web/getfilebyserverrelativeurl('/sites/corpus/none')/$value", BEARER, 404),
        ("/_api/web/getfilebyserverrelativeurl('%00%ED%A0%80%FF')/$value", BEARER, 404),
        ("/_api/web/getfilebyserverrelativeurl(@f)/$value", BEARER, 400),
        ("/_api/web/lists/getbytitle('many')/items?$top=0", BEARER, 400),
        ("/_api/web/lists/getbytitle('many')/items?$top=999999", BEARER, 400),
        ("/_api/web/lists/getbytitle('many')/items?$skiptoken=x", BEARER, 400),
        ("/_api/web/lists/getbytitle('many')/items?$filter=Id%20eq", BEARER, 400),
    ],
)
def test_refusals(site: Service, target: str, headers: dict[str, str], status: int) -> None:
    """Each wrong request has its status and a sentence, and never the token."""
    answer = site.get(target, **headers)
    assert answer.status == status
    assert answer.json()["odata.error"]["message"]["value"]
    assert TOKEN not in answer.data.decode()


def test_what_comes_too_fast_is_refused(site: Service) -> None:
    """With Retry-After and the status that was set; both are counted; setting it needs the token."""

    def throttle(to: object) -> dict[str, Any]:
        answer = site.post("/throttle", json.dumps(to).encode(), **BEARER)
        assert answer.status == 200, answer.data
        found: dict[str, Any] = answer.json()
        return found

    given = {"requests_per_s": 3, "retry_after_s": 7, "status": 503}
    before = throttle(given)
    try:
        answers = [site.get("/_api/web", **BEARER) for _ in range(9)]
        after = site.get("/throttle", **BEARER).json()
        assert site.get("/throttle").status == 401
        assert site.post("/throttle", b'{"rate": 1}', **BEARER).status == 400
    finally:
        assert throttle(None)["throttle"] is None
    refusals = [(each.status, each.headers["retry-after"]) for each in answers if each.status != 200]
    assert 1 <= len(refusals) <= 6
    assert set(refusals) == {(503, "7")}
    assert after["throttle"] == before["throttle"] == given
    assert after["refused"] - before["refused"] == len(refusals)
    assert after["admitted"] - before["admitted"] == 9 - len(refusals)
    assert {site.get("/_api/web", **BEARER).status for _ in range(9)} == {200}


def test_process_name_and_interface(site: Service) -> None:
    """Collectors know it by its name; it listens on loopback alone and had nothing to warn of."""
    process = psutil.Process(site.process.pid)
    assert Path(f"/proc/{process.pid}/comm").read_text().strip() == "pp-web"
    listening = [link.laddr.ip for link in process.net_connections() if link.status == "LISTEN"]
    assert listening == ["127.0.0.1"]
    assert site.log.read_text() == ""


def test_without_its_database_it_is_not_ready(tmp_path: Path) -> None:
    """A front end whose database goes away says so, in its health and in its answers, and ends in order."""
    put(tmp_path / "corpus", b"a.txt", b"words")
    with ExitStack() as stack:
        with postgres() as url:
            ingest(tmp_path / "corpus", None, url, None, lambda _: None)
            service = stack.enter_context(serving(MODULE, tmp_path, token=TOKEN, database_url=url))
            assert service.get("/_api/web/lists", **BEARER).status == 200
        answer = service.get("/_api/web/lists", **BEARER)
        assert answer.status == 503
        assert "content database" in answer.json()["odata.error"]["message"]["value"]
        assert service.get("/health").status == 503
        assert "Traceback" not in service.log.read_text()
