"""Tests of change tokens of a list."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from infra.content.corpora import put
from infra.services.serving import Service, serving
from infra.services.site import BEARER, MODULE, TOKEN
from servers import postgres

from pinchpoint_infra.content.filling import ingest


@dataclass
class Changing:
    """The web tier and its database."""

    service: Service
    database_url: str

    def change(self, statement: str) -> None:
        with psycopg.connect(self.database_url) as database:
            database.execute(statement.encode())

    def ask(self, query: dict[str, Any]) -> Any:
        body = json.dumps({"query": query}).encode()
        return self.service.post("/_api/web/lists/getbytitle('a')/getchanges", body, **BEARER)

    def changes(self, query: dict[str, Any]) -> list[dict[str, Any]]:
        answer = self.ask(query)
        assert answer.status == 200, answer.data
        found: list[dict[str, Any]] = answer.json()["value"]
        return found

    def now(self) -> dict[str, str]:
        found: dict[str, str] = self.service.get("/_api/site?$select=CurrentChangeToken", **BEARER).json()[
            "CurrentChangeToken"
        ]
        return found


@pytest.fixture(scope="module")
def changing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Changing]:
    folder: Path = tmp_path_factory.mktemp("changing")
    for number in range(12):
        put(folder / "corpus", b"%s/%02d.txt" % ((b"a", b"b")[number % 2], number), b"words")
    with postgres() as url:
        ingest(folder / "corpus", None, url, None, lambda _: None)
        with serving(MODULE, folder, token=TOKEN, database_url=url) as service:
            yield Changing(service, url)


def test_what_changed_in_a_list(changing: Changing) -> None:
    """A list's changes are those between two tokens, without other lists' changes."""
    query: dict[str, Any] = {"Item": True, "Add": True, "Update": True, "DeleteObject": True}
    token = changing.now()
    assert changing.changes(query | {"ChangeTokenStart": token}) == []
    changing.change("UPDATE documents SET content = 'new' WHERE path LIKE '%/a/02.txt' OR path LIKE '%/b/%'")
    changing.change("DELETE FROM documents WHERE path LIKE '%/a/04.txt'")
    updated, deleted = changing.changes(query | {"ChangeTokenStart": token})
    assert [each["ChangeType"] for each in (updated, deleted)] == [2, 3]
    assert updated["ItemId"] != deleted["ItemId"]
    upto = query | {"ChangeTokenStart": token, "ChangeTokenEnd": updated["ChangeToken"]}
    assert changing.changes(upto) == [updated]
    assert changing.changes(query | {"ChangeTokenStart": changing.now()}) == []


@pytest.mark.parametrize("token", ["1;1;of-another-site;0;1", "1;3;x;0;999999999", "words"])
def test_a_token_that_is_none_is_refused(changing: Changing, token: str) -> None:
    """A token of another site, or newer than the log, is refused."""
    answer = changing.ask({"ChangeTokenStart": {"StringValue": token}})
    assert answer.status == 400
    assert "token" in answer.json()["odata.error"]["message"]["value"]
