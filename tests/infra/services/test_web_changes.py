"""Change tokens of a list: what happened in it, and how its items are now."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import psycopg
import pytest
from infra.services.serving import Service, serving
from infra.services.site import BEARER, MODULE, TOKEN, put
from office365.runtime.auth.token_response import TokenResponse
from office365.sharepoint.changes.log_item_query import ChangeLogItemQuery
from office365.sharepoint.client_context import ClientContext
from servers import postgres

from pinchpoint_infra.content.filling import ingest

ROW = "{#RowsetSchema}row"


@dataclass
class Changing:
    """The web tier, and the database behind it."""

    service: Service
    database_url: str

    def change(self, statement: str) -> None:
        with psycopg.connect(self.database_url) as database:
            database.execute(statement.encode())

    def ask(self, what: str, query: dict[str, Any]) -> Any:
        body = json.dumps({"query": query}).encode()
        answer = self.service.post(f"/_api/web/lists/getbytitle('a')/{what}", body, **BEARER)
        assert answer.status == 200, answer.data
        return answer


@pytest.fixture(scope="module")
def changing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Changing]:
    folder: Path = tmp_path_factory.mktemp("changing")
    for number in range(12):
        put(folder / "corpus", b"%s/%02d.txt" % ((b"a", b"b")[number % 2], number), b"words")
    with postgres() as url:
        ingest(folder / "corpus", None, url, None, lambda _: None)
        with serving(MODULE, folder, token=TOKEN, database_url=url) as service:
            yield Changing(service, url)


def items_since(changing: Changing, token: str, **more: str) -> tuple[str, list[int], list[dict[str, str]]]:
    """The token of now, what was deleted, and the rows of what changed."""
    answer = changing.ask("getlistitemchangessincetoken", {"ChangeToken": token, **more})
    assert answer.headers["Content-Type"].startswith("text/xml")
    root = ElementTree.fromstring(answer.data)  # noqa: S314 - the web tier's own
    changes = root.find(".//Changes")
    assert changes is not None
    rows = [dict(row.attrib) for row in root.iter(ROW)]
    return changes.attrib["LastChangeToken"], [int(each.text or 0) for each in changes], rows


def test_what_changed_in_a_list_and_how_it_is_now(changing: Changing) -> None:
    """All of it first, then only what changed there; another list's are none; the deleted by number."""
    token, gone, rows = items_since(changing, "")
    assert gone == []
    assert [row["ows_FileLeafRef"] for row in rows] == [f"{number:02}.txt" for number in range(0, 12, 2)]
    assert items_since(changing, token) == (token, [], [])
    changing.change("UPDATE documents SET content = 'new' WHERE path LIKE '%/a/02.txt' OR path LIKE '%/b/%'")
    changing.change("DELETE FROM documents WHERE path LIKE '%/a/04.txt'")
    deleted = int(rows[2]["ows_ID"])
    newer, gone, changed = items_since(
        changing, token, ViewFields="<ViewFields><FieldRef Name='Title'/></ViewFields>"
    )
    assert (gone, [row["ows_Title"] for row in changed]) == ([deleted], ["02.txt"])
    assert set(changed[0]) == {"ows_ID", "ows_Title"}
    assert newer != token
    query = {
        "Item": True,
        "Add": True,
        "Update": True,
        "DeleteObject": True,
        "ChangeTokenStart": {"StringValue": token},
    }
    told = changing.ask("getchanges", query).json()["value"]
    assert [(each["ChangeType"], each["ItemId"]) for each in told] == [
        (2, int(rows[1]["ows_ID"])),
        (3, deleted),
    ]
    upto = query | {"ChangeTokenEnd": told[0]["ChangeToken"]}
    assert len(changing.ask("getchanges", upto).json()["value"]) == 1
    assert items_since(changing, newer)[1:] == ([], [])


def test_the_python_library_reads_them(changing: Changing) -> None:
    """The same request by a client that is not ours."""
    context = ClientContext(changing.service.url).with_access_token(lambda: TokenResponse(TOKEN, "Bearer"))
    found = context.web.lists.get_by_title("b").get_list_item_changes_since_token(ChangeLogItemQuery())
    context.execute_query()
    root = ElementTree.fromstring(found.value)  # noqa: S314 - the web tier's own
    assert len(list(root.iter(ROW))) == 6


def test_a_token_that_is_none_is_refused(changing: Changing) -> None:
    """Of another site, or newer than the log."""
    for token in ("1;1;of-another-site;0;1", "1;3;x;0;999999999", "words"):
        body = json.dumps({"query": {"ChangeToken": token}}).encode()
        answer = changing.service.post(
            "/_api/web/lists/getbytitle('a')/getlistitemchangessincetoken", body, **BEARER
        )
        assert answer.status == 400
        assert "token" in answer.json()["odata.error"]["message"]["value"]
