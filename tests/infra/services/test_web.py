"""Tests of the SharePoint-style site as a process, read by the crawl's client and by a library.

The golden answers ``routes`` check the reply to each request.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest
from infra.content.corpora import put
from infra.services.serving import Service, serving
from infra.services.site import BEARER, FILES, MODULE, TOKEN
from office365.runtime.auth.token_response import TokenResponse
from office365.sharepoint.changes.query import ChangeQuery
from office365.sharepoint.client_context import ClientContext
from servers import postgres

from pinchpoint_infra.content.filling import ingest
from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.full_crawl.params import FullCrawlParams, SourceParams
from pinchpoint_scenarios.full_crawl.sources.contract import Item, Source
from pinchpoint_scenarios.full_crawl.sources.sharepoint import SharePoint

DEPARTMENTS = {"Sales", "Finance", "Research", "Legal", "Operations", "Marketing", "Support", "Production"}


def client(site: Service, page_size: int = 100) -> Source:
    return SharePoint(
        Endpoint("sharepoint", site.url, {"auth": "bearer", "token": TOKEN}),
        SourceParams(kind="sharepoint"),
        FullCrawlParams(page_size=page_size),
    ).connect()


@pytest.mark.parametrize("page_size", [1, 7, 100])
def test_a_crawl_gets_every_byte_of_every_document_once(site: Service, page_size: int) -> None:
    """A crawl fetches exactly the ingested documents, with any names and page size."""
    source = client(site, page_size)
    waiting = [source.root()]
    documents: list[Item] = []
    while waiting:
        for item in source.enumerate(waiting.pop()):
            (waiting if item.kind == "container" else documents).append(item)
    assert len({item.url for item in documents}) == len(documents) == len(FILES)
    assert sorted(source.fetch(item).content for item in documents) == sorted(FILES.values())
    source.close()


def test_what_comes_too_fast_is_refused(site: Service) -> None:
    """Requests above the rate get Retry-After and the set status, and count; a change needs the token."""

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
    """The process has the name that collectors expect, listens on the loopback only, and logs no warning."""
    process = psutil.Process(site.process.pid)
    assert Path(f"/proc/{process.pid}/comm").read_text().strip() == "pp-web"
    listening = [link.laddr.ip for link in process.net_connections() if link.status == "LISTEN"]
    assert listening == ["127.0.0.1"]
    assert site.log.read_text() == ""


def test_without_its_database_it_is_not_ready(tmp_path: Path) -> None:
    """When its database goes away, the site reports it in its health and replies, and ends normally."""
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


def test_the_python_librarys_objects(site: Service) -> None:
    """A client of another project reads the same lists, items, files and people."""
    context = ClientContext(site.url).with_access_token(lambda: TokenResponse(TOKEN, "Bearer"))
    web, many = context.web, context.web.lists.get_by_title("many")
    chosen = many.items.filter("startswith(Title,'00')").get()
    changes = many.get_changes(ChangeQuery(Item=True))
    folder = web.get_folder_by_server_relative_url("/sites/corpus/case").get()
    files = folder.files.get()
    item = web.get_file_by_server_relative_url("/sites/corpus/case/empty").listItemAllFields.get()
    roles = many.role_assignments.expand(["Member", "RoleDefinitionBindings"]).get()
    user = web.site_users.get_by_id(104).get()
    same = web.site_users.get_by_email("user00004@corp.example").get()
    groups = web.site_groups.get()
    first = site.get("/_api/web/lists/getbytitle('many')/items?$top=1", **BEARER).json()["value"][0]["Id"]
    one = many.items.get_by_string_id(str(first)).get()
    department = context.people_manager.get_user_profile_property_for("corp\\user00004", "Department")
    context.execute_query()
    assert [each.properties["FileLeafRef"] for each in chosen] == [f"00{digit}.txt" for digit in range(10)]
    assert len(changes) == 0
    assert folder.properties["Name"] == "case"
    assert len(files) == 5
    assert item.properties["FileRef"] == "/sites/corpus/case/empty"
    assert len(roles) == 3
    assert user.login_name == same.login_name == "i:0#.w|corp\\user00004"
    assert {each.properties["Title"] for each in groups} >= {"Corpus Owners"}
    assert one.properties["Id"] == first
    assert department.value in DEPARTMENTS
