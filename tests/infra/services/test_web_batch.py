"""``$batch`` as clients send it: by hand, by the Python library, and what is wrong with one."""

from __future__ import annotations

import json
from email import message_from_bytes
from email.message import Message
from typing import Any

import pytest
from infra.services.serving import Service
from infra.services.site import BEARER, TOKEN, VERBOSE
from office365.runtime.auth.token_response import TokenResponse
from office365.sharepoint.client_context import ClientContext

MIXED = {**BEARER, "Content-Type": "multipart/mixed; boundary=batch_1"}
JSON = "Accept: application/json;odata"
PART = "--{}\nContent-Type: application/http\nContent-Transfer-Encoding: binary\n\n{}\n"


def batch(*requests: str, changes: tuple[str, ...] = ()) -> bytes:
    """A batch with a change set first, then reads."""
    parts = [PART.format("batch_1", each) for each in requests]
    if changes:
        inner = "".join(PART.format("changeset_2", each) for each in changes)
        head = '--batch_1\nContent-Type: multipart/mixed; boundary="changeset_2"\n\n'
        parts.insert(0, f"{head}{inner}--changeset_2--\n\n")
    return "".join([*parts, "--batch_1--\n"]).encode()


def answers(site: Service, content: bytes) -> list[tuple[int, Message, bytes]]:
    """Status, headers and body of every answer in a batch's answer."""
    found = site.post("/_api/$batch", content, **MIXED)
    assert found.status == 200, found.data
    content_type = found.headers["Content-Type"]
    assert "boundary=" in content_type
    assert found.data.startswith(b"--batchresponse_")
    assert found.data.endswith(b"--\r\n")
    message = message_from_bytes(f"Content-Type: {content_type}\r\n\r\n".encode() + found.data)
    parts = []
    for part in message.get_payload():
        assert isinstance(part, Message)
        answer = part.get_payload(decode=True)
        assert isinstance(answer, bytes)
        head, _, body = answer.partition(b"\r\n\r\n")
        status, _, headers = head.partition(b"\r\n")
        parts.append((int(status.split()[1]), message_from_bytes(headers + b"\r\n\r\n"), body))
    return parts


def test_each_request_has_its_answer_in_its_place(site: Service) -> None:
    """Reads and a change set, absolute and relative, each in its own form; a wrong one is only its own."""
    changes = (
        "POST /_api/web/ensureuser HTTP/1.1\n\n" + json.dumps({"logonName": "corp\\user00007"}) + "\n",
    )
    found = answers(
        site,
        batch(
            f"GET {site.url}/_api/web/lists/getbytitle('many')?$select=Title HTTP/1.1\n{JSON}=verbose\n",
            f"GET /_api/web/lists/getbytitle('it''s #1 50%25') HTTP/1.1\n{JSON}=nometadata\n",
            "GET /_api/web/lists/getbytitle('none') HTTP/1.1\n",
            "GET /_api/web/getfilebyserverrelativeurl('/sites/corpus/case/page.gz')/$value HTTP/1.1\n",
            "DELETE /_api/web/lists/getbytitle('many') HTTP/1.1\n",
            "POST /_api/$batch HTTP/1.1\n",
            changes=changes,
        ),
    )
    assert [status for status, _, _ in found] == [200, 200, 200, 404, 200, 405, 400]
    assert json.loads(found[0][2])["LoginName"] == "i:0#.w|corp\\user00007"
    assert json.loads(found[1][2])["d"]["Title"] == "many"
    assert json.loads(found[2][2])["Title"] == "it's #1 50%"
    assert "none" in json.loads(found[3][2])["odata.error"]["message"]["value"]
    whole = site.get("/_api/web/getfilebyserverrelativeurl('/sites/corpus/case/page.gz')/$value", **BEARER)
    assert found[4][2] == whole.data
    assert found[4][1]["content-type"] == "application/gzip"


@pytest.mark.parametrize(
    ("headers", "content", "word"),
    [
        ({"Content-Type": "application/json"}, b"{}", "multipart/mixed"),
        ({"Content-Type": "multipart/mixed; boundary=other"}, batch("GET /_api/web HTTP/1.1\n"), "boundary"),
        ({}, batch("nothing of the kind"), "request line"),
        (
            {},
            b"--batch_1\nContent-Type: text/plain\n\nGET /_api/web HTTP/1.1\n--batch_1--\n",
            "application/http",
        ),
        ({}, batch(*["GET /_api/web HTTP/1.1\n"] * 1_001), "1,000"),
    ],
)
def test_what_is_no_batch_is_refused_in_a_sentence(
    site: Service, headers: dict[str, str], content: bytes, word: str
) -> None:
    """As a whole: nothing of it is answered."""
    answer = site.post("/_api/$batch", content, **(MIXED | headers))
    assert answer.status == 400
    assert word in answer.json()["odata.error"]["message"]["value"]
    assert site.get("/_api/$batch", **VERBOSE).status == 405


def test_the_python_librarys_batches(site: Service) -> None:
    """Reads and calls of methods in one request, names that need quoting among them."""
    context = ClientContext(site.url).with_access_token(lambda: TokenResponse(TOKEN, "Bearer"))
    many = context.web.lists.get_by_title("many").get()
    odd = context.web.lists.get_by_title("it's #1 50%").items.top(2).get()
    file = context.web.get_file_by_server_relative_path("/sites/corpus/case/page.html").get()
    content = context.web.get_file_by_server_relative_url("/sites/corpus/many/004.txt").get_content()
    user = context.web.ensure_user("corp\\user00004")
    context.execute_batch()
    assert (many.title, many.item_count) == ("many", 25)
    assert len(odd) == 2
    assert file.name == "page.html"
    assert content.value == b"number 4"
    assert user.login_name == "i:0#.w|corp\\user00004"


def test_each_request_of_a_batch_is_throttled_by_itself(site: Service) -> None:
    """What comes too fast is refused in its place, with Retry-After; what does not is answered."""

    def throttle(to: object) -> dict[str, Any]:
        answer = site.post("/throttle", json.dumps(to).encode(), **BEARER)
        assert answer.status == 200, answer.data
        found: dict[str, Any] = answer.json()
        return found

    nine = batch(*["GET /_api/web HTTP/1.1\n"] * 9)
    given = {"requests_per_s": 3, "retry_after_s": 7, "status": 503}
    before = throttle(given)
    try:
        refusals = [
            (status, headers["retry-after"]) for status, headers, _ in answers(site, nine) if status != 200
        ]
        after = site.get("/throttle", **BEARER).json()
        assert site.get("/throttle").status == 401
        assert site.post("/throttle", b'{"rate": 1}', **BEARER).status == 400
    finally:
        assert throttle(None)["throttle"] is None
    assert 1 <= len(refusals) <= 6
    assert set(refusals) == {(503, "7")}
    assert after["throttle"] == before["throttle"] == given
    assert after["refused"] - before["refused"] == len(refusals)
    assert after["admitted"] - before["admitted"] == 9 - len(refusals)
    assert {status for status, _, _ in answers(site, nine)} == {200}
