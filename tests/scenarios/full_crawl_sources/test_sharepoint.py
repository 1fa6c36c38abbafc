"""Tests of SharePoint sources on the web tier: logins, access lists, throttling, changes, profiles."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import psycopg
import pytest
from infra.services.serving import Service, serving
from office365.runtime.auth.token_response import TokenResponse
from office365.sharepoint.client_context import ClientContext
from scenarios.full_crawl_sources.sites import walk
from scenarios.support import Reply, Server
from servers import postgres

from pinchpoint_infra.content.filling import ingest
from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.errors import ScenarioError
from pinchpoint_scenarios.full_crawl.failures import Failure
from pinchpoint_scenarios.full_crawl.params import FullCrawlParams, SourceParams
from pinchpoint_scenarios.full_crawl.sources import Grant, Item, Repository, Source, repository

MODULE = "pinchpoint_infra.services.web"
TOKEN = "a-token"
FILES = {f"{folder}/{number:03}.txt": f"{folder} {number}" for folder in ("a", "b") for number in range(15)}


@dataclass
class Farm:
    """The web tier and its database."""

    service: Service
    database_url: str
    folder: Path

    def endpoint(self) -> Endpoint:
        return Endpoint("sharepoint", self.service.url, {"auth": "bearer", "token": TOKEN})


def refusals(source: Source) -> Iterator[Failure]:
    """Yield the failures of twenty requests."""
    for _ in range(20):
        try:
            source.check()
        except Failure as failure:
            yield failure


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    folder = tmp_path_factory.mktemp("sharepoint")
    for path, content in FILES.items():
        (folder / "corpus" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "corpus" / path).write_text(content)
    with postgres() as url:
        ingest(folder / "corpus", None, url, None, lambda _: None)
        with serving(MODULE, folder, token=TOKEN, database_url=url, people=25) as service:
            yield Farm(service, url, folder)


def made(endpoint: Endpoint, kind: str = "sharepoint", page_size: int = 10, **options: object) -> Repository:
    source = SourceParams.model_validate({"kind": kind, **options})
    return repository(source, endpoint, FullCrawlParams(page_size=page_size, timeout_s=20))


def test_documents_come_with_their_access_lists(farm: Farm) -> None:
    """Every file comes once, with its own or its list's access list, its identity and its version."""
    source = made(farm.endpoint()).connect()
    containers, fetched = walk(source)
    source.close()
    assert sorted(each.content.decode() for each in fetched.values()) == sorted(FILES.values())
    assert len(containers) == 1 + 2 + 2 * 2  # the web, its webs and lists, two pages of each list
    everyone = (
        Grant("Corpus Owners", "Full Control"),
        Grant("Corpus Members", "Edit"),
        Grant("Corpus Visitors", "Read"),
    )
    lists = [each.access for each in fetched.values()]
    assert lists.count(everyone) == 27
    own = [each for each in lists if each is not None and each != everyone]
    assert len(own) == 3, "every tenth document has an access list of its own"
    assert all(grants[1].principal.startswith("i:0#.w|corp\\user") for grants in own)
    assert all(each.version and each.end_ns > each.start_ns for each in fetched.values())


def test_access_lists_can_be_left_out(farm: Farm) -> None:
    """Access lists that are not requested are None, not empty."""
    source = made(farm.endpoint(), access=False).connect()
    _, fetched = walk(source)
    source.close()
    assert {each.access for each in fetched.values()} == {None}


def test_what_changed_since_a_token(farm: Farm) -> None:
    """Changes since a token come by pages, without others; a foreign token is expired."""
    source = made(farm.endpoint()).connect()
    _, before = walk(source)
    token = source.token()
    assert token
    assert not source.changes(token).changed
    assert not source.changes(token).deleted
    with psycopg.connect(farm.database_url) as database:
        database.execute(
            "UPDATE documents SET modified = modified + interval '1 s', content = 'new' WHERE id = 3"
        )
        database.execute("DELETE FROM documents WHERE id = 20")
        database.execute("UPDATE documents SET content = 'newer' WHERE id = 3")
    changes = source.changes(token)
    (changed,) = changes.changed
    assert source.fetch(changed).content == b"newer"
    assert changed.version != before[changed.url].version
    assert not changes.more
    assert [name.rpartition("/")[2] for name in changes.deleted] == ["20"]
    identities = {item.identity for container in walk(source)[0] for item in source.enumerate(container)}
    assert changed.identity in identities
    assert changes.deleted[0] not in identities
    assert changes.deleted[0].partition("/")[0] in {name.partition("/")[0] for name in identities}
    assert source.changes(changes.token).changed == ()
    with pytest.raises(Failure, match="token_expired"):
        source.changes("1;1;of-another-site;0;1")
    source.close()


def test_throttling_is_told_and_obeyed(farm: Farm, tmp_path: Path) -> None:
    """A 429 is a failure with its Retry-After, and all sessions of the source wait."""
    throttle = {"requests_per_s": 3, "retry_after_s": 1}
    with serving(MODULE, tmp_path, token=TOKEN, database_url=farm.database_url, throttle=throttle) as service:
        shared = made(Endpoint("sharepoint", service.url, {"token": TOKEN}))
        source, other = shared.connect(), shared.connect()
        failures = list(islice(refusals(source), 1))
        assert [(each.kind, each.retry_after_s, each.permanent) for each in failures] == [
            ("http_429", 1.0, False)
        ]
        assert 0.5 < shared.pause_s() <= 1
        started = time.monotonic()
        with other.turn(other.root()):
            assert time.monotonic() - started > 0.4
            other.check()
        source.close()
        other.close()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"auth": "cookies", "cookies": "a=b"}, "neither FedAuth nor SPOIDCRL"),
        ({"auth": "ntlm", "user": "x"}, "auth ntlm needs password"),
        ({"auth": "entra", "tenant": "t", "client": "c"}, "auth entra needs secret"),
        ({"auth": "forms"}, "unknown auth 'forms'"),
    ],
)
def test_logins_that_make_no_sense_are_told_at_once(options: dict[str, str], said: str) -> None:
    """An invalid login is refused before any request."""
    with pytest.raises(ScenarioError, match=said):
        made(Endpoint("sharepoint", "http://127.0.0.1:1", options))


def test_cookies_and_a_wrong_token_are_refused_by_name(farm: Farm) -> None:
    """Unknown cookies and tokens are authentication failures without a secret in the message."""
    for options in ({"cookies": "FedAuth=abc; rtFa=d"}, {"token": "a-wrong-one"}):
        source = made(Endpoint("sharepoint", farm.service.url, options)).connect()
        with pytest.raises(Failure) as caught:
            source.check()
        assert caught.value.kind == "authentication"
        assert not any(secret in str(caught.value) for secret in ("abc", "a-wrong-one"))
        source.close()


def test_profiles(farm: Farm) -> None:
    """Every user's profile is one document with the user's identity, over several pages."""
    source = made(farm.endpoint(), kind="profiles").connect()
    assert source.check()["kind"] == "profiles"
    containers, fetched = walk(source)
    source.close()
    assert len(containers) == 3
    texts = [each.content.decode() for each in fetched.values()]
    assert len(set(texts)) == 25
    assert all("AccountName: i:0#.w|corp\\user" in text and "Department: " in text for text in texts)


def test_the_library_s_own_object_model_reads_the_web_tier(farm: Farm) -> None:
    """An independent client reads lists, items, files, access lists and people from the web tier."""
    context = ClientContext(farm.service.url).with_access_token(lambda: TokenResponse(TOKEN, "Bearer"))
    web = context.web.get().execute_query()
    assert web.properties["Title"] == "Corpus"
    lists = context.web.lists.get().execute_query()
    assert {each.title for each in lists} >= {"a", "b"}
    items = context.web.lists.get_by_title("a").items.get().top(6).execute_query()
    assert len(items) == 6
    chosen = context.web.lists.get_by_title("a").items.filter("Id eq 5").get().execute_query()
    assert [item.properties["FileLeafRef"] for item in chosen] == ["004.txt"]
    file = context.web.get_file_by_server_relative_url("/sites/corpus/a/004.txt").get().execute_query()
    assert file.properties["Length"] == len("a 4")
    assert file.get_content().execute_query().value == b"a 4"
    roles = context.web.lists.get_by_title("a").role_assignments.get().execute_query()
    assert len(roles) == 3
    users = context.web.site_users.get().execute_query()
    assert len(users) == 25
    profile = context.people_manager.get_properties_for("corp\\user00003").execute_query()
    assert profile.properties["AccountName"] == "i:0#.w|corp\\user00003"


class Anything(Server):
    """A server that is not SharePoint: one reply for all requests but those for a digest."""

    said: Any = None
    digest: Reply = 200, {}, b'{"FormDigestValue": "x", "FormDigestTimeoutSeconds": 1800}'

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
        if target.lower().endswith("/contextinfo"):
            return self.digest
        return 200, {"Content-Type": "application/json"}, json.dumps(self.said).encode()


ODD: tuple[Any, ...] = (
    *(None, 1, "x", [], [[]], {}, {"value": None}, {"value": [1]}, {"value": [{}]}, {"d": {"results": [{}]}}),
    {"value": [{"Member": [1], "RoleDefinitionBindings": [1]}]},
    {"value": [{"Member": {}, "RoleDefinitionBindings": 1}]},
    {"value": [{"Id": [], "FileRef": 1, "Title": {}, "Url": 3, "LoginName": None}]},
    {"value": [{"ChangeType": "x", "ItemId": "y"}]},
    {"value": [{"ChangeType": 1, "WebId": "w", "ListId": "l", "ItemId": 1, "ChangeToken": "t"}], "Id": "w"},
    {"CurrentChangeToken": "t", "UserProfileProperties": [1], "odata.nextLink": 5, "value": []},
)
DOCUMENT = json.dumps({"web": "/_api/web", "access": "/_api/web/lists/getbytitle('x')"})


@pytest.mark.parametrize("kind", ["sharepoint", "profiles"])
def test_answers_of_another_form_are_failures(kind: str) -> None:
    """Any unexpected JSON fails the item by name and ends no session."""
    server = Anything()
    with server.running():
        for server.said in ODD:
            source = made(Endpoint("sharepoint", server.url), kind=kind).connect()
            where = f"{server.url}/_api/web"
            asked: list[Callable[[], object]] = [source.check, source.token]
            asked += [
                partial(source.enumerate, Item("container", where, what))
                for what in ("web", "webs", "lists", "items", "items id", "users")
            ]
            document = Item(
                "document", f"{server.url}/a.txt", DOCUMENT if kind == "sharepoint" else "account"
            )
            asked += [partial(source.fetch, document), partial(source.changes, "1;2")]
            for step in asked:
                with suppress(Failure):
                    step()
            source.close()


@pytest.mark.parametrize(
    ("digest", "failure"),
    [
        ((200, {}, b"<html>log in here</html>"), "bad_answer"),
        ((200, {}, b"5"), "bad_answer"),
        ((403, {}, b"{}"), "permission"),
        ((401, {}, b""), "authentication"),
    ],
)
def test_a_login_that_has_ended_fails_documents(digest: Reply, failure: str) -> None:
    """If cookies or rights expire in mid-crawl, so that no digest comes, documents fail by name."""
    server = Anything()
    server.digest = digest
    with server.running():
        source = made(Endpoint("sharepoint", server.url), access=False).connect()
        with pytest.raises(Failure, match=failure):
            source.fetch(Item("document", f"{server.url}/a.txt", DOCUMENT))
        source.close()
