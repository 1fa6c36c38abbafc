"""Tests of a SharePoint site whose path differs in case from the URL, and whose lists come and go."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import pytest
from scenarios.full_crawl_sources.sites import walk
from scenarios.support import Reply, Server

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.full_crawl.failures import Failure
from pinchpoint_scenarios.full_crawl.params import FullCrawlParams, SourceParams
from pinchpoint_scenarios.full_crawl.sources import Source, repository

SITE = "/sites/HR"
ITEM = {"FileSystemObjectType": 0, "Modified": "2026-01-02", "HasUniqueRoleAssignments": False}
WEBS = {"top": SITE, "sub": f"{SITE}/Pay"}


class Lists(Server):
    """A site and a subsite with a library each, in two pages; the site also has tasks and hidden files.

    ``gone``: what no longer exists. ``log``: entries of its change log.
    """

    def __init__(self) -> None:
        super().__init__()
        self.gone = ""
        self.log: list[dict[str, Any]] = []

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """Answer a REST request; paths may have any case, as in SharePoint."""
        where, _, asked = unquote(target).partition("/_api/")
        web = next((name for name, path in WEBS.items() if path.lower() == where.lower()), "")
        if not web or (self.gone and self.gone in asked):
            return 404, {}, b""
        said = self.said(web, asked)
        if asked.startswith("web/getfile"):
            return 200, {}, b"content"
        return (200, {}, json.dumps(said).encode()) if said is not None else (404, {}, b"")

    def said(self, web: str, asked: str) -> Any:
        own = f"{self.url}{WEBS[web]}/_api/"
        files = [{"Id": n, "FileRef": f"{WEBS[web]}/Docs/{n}.txt", **ITEM} for n in (1, 2)]
        lists = [{"Id": "docs", "Title": "Docs", "Hidden": False, "BaseType": 1}]
        if web == "top":
            lists.append({"Id": "tasks", "Title": "Tasks", "Hidden": False, "BaseType": 0})
            lists.append({"Id": "hidden", "Title": "Hidden", "Hidden": True, "BaseType": 1})
        first, _, query = asked.partition("?")
        answers: dict[str, Any] = {
            "contextinfo": {"FormDigestValue": "x", "FormDigestTimeoutSeconds": 1800},
            "web": {"Id": web, "ServerRelativeUrl": WEBS[web]},
            "web/webs": {"value": [{"ServerRelativeUrl": WEBS["sub"]}] if web == "top" else []},
            "web/lists": {"value": lists},
            "site/openwebbyid('sub')": {"ServerRelativeUrl": WEBS["sub"]},
            "site/getchanges": {"value": self.log},
        }
        for each in lists:
            answers[f"web/lists(guid'{each['Id']}')"] = each
            answers[f"web/lists(guid'{each['Id']}')/items"] = {"value": files[:1]}
        pages: dict[str, Any] = {"value": files[1:] if "again" in query else files[:1]}
        if "again" not in query:
            pages["odata.nextLink"] = f"{own}web/lists/getbytitle('Docs')/items?again"
        answers["web/lists/getbytitle('Docs')/items"] = pages
        return answers.get("contextinfo" if first.lower() == "contextinfo" else first)

    def changed(self, web: str, **what: object) -> None:
        """Add an entry to the change log."""
        token = {"StringValue": f"1;{len(self.log)}"}
        self.log.append({"ChangeType": 2, "WebId": web, "ChangeToken": token, **what})


@pytest.fixture
def server() -> Iterator[Lists]:
    """Yield the site."""
    lists = Lists()
    with lists.running():
        yield lists


def opened(server: Lists, path: str = "/sites/hr") -> Source:
    """Return a source of the site at that URL."""
    source = SourceParams(kind="sharepoint", access=False)
    endpoint = Endpoint("sharepoint", server.url + path, {"token": "t"})
    return repository(source, endpoint, FullCrawlParams(timeout_s=10)).connect()


@pytest.mark.parametrize("path", [SITE, "/sites/hr", "/Sites/Hr/"])
def test_capitals_of_the_url_do_not_matter(server: Lists, path: str) -> None:
    """Subsites, further pages and changes are found under the site's own path, whatever case the URL has."""
    source = opened(server, path)
    _, fetched = walk(source)
    documents = {f"{server.url}{web}/Docs/{number}.txt" for web in WEBS.values() for number in (1, 2)}
    assert set(fetched) == documents
    server.changed("sub", ListId="docs", ItemId=1)
    (changed,) = source.changes("1;0").changed
    assert changed.url == f"{server.url}{WEBS['sub']}/Docs/1.txt"
    assert source.fetch(changed).content == b"content"
    source.close()


def test_a_path_that_only_begins_alike_is_another_site(server: Lists) -> None:
    """The site /sites/hr2 is not part of /sites/hr."""
    source: Any = opened(server)
    assert source._client.behind("/Sites/HR/Pay") == "/Pay"
    assert source._client.behind("/sites/HR") == ""
    assert source._client.behind("/sites/hr2/Pay") == "/sites/hr2/Pay"
    source.close()


def test_changed_tasks_and_hidden_items_are_no_documents(server: Lists) -> None:
    """Changes in hidden lists, or in lists that are not libraries, are ignored as in a full crawl."""
    for name in ("tasks", "hidden", "docs"):
        server.changed("top", ListId=name, ItemId=1)
    source = opened(server)
    changes = source.changes("1;0")
    assert [item.url for item in changes.changed] == [f"{server.url}{SITE}/Docs/1.txt"]
    assert changes.token == "1;2"
    source.close()


@pytest.mark.parametrize(
    ("gone", "what"),
    [
        ("lists(guid'docs')", {"ListId": "docs", "ItemId": 1}),
        ("/items", {"ListId": "docs", "ItemId": 1}),
        ("openwebbyid", {"ListId": "docs", "ItemId": 1}),
        ("lists(guid'docs')", {"ListId": "docs"}),
        ("openwebbyid", {"ListId": "docs"}),
        ("openwebbyid", {}),
    ],
)
def test_what_is_gone_by_now_makes_the_token_an_expired_one(
    server: Lists, gone: str, what: dict[str, object]
) -> None:
    """If a changed list or web is gone, the token is expired, and a full crawl finds the rest."""
    server.changed("sub", **what)
    server.gone = gone
    source = opened(server)
    with pytest.raises(Failure) as caught:
        source.changes("1;0")
    assert (caught.value.kind, caught.value.permanent) == ("token_expired", True)
    source.close()
