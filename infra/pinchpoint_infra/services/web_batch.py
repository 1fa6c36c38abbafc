"""``$batch``: many requests in one, as ``multipart/mixed``, answered in their order in the same form."""

from __future__ import annotations

import re
import uuid
from collections.abc import Awaitable, Callable, Iterator
from email import message_from_bytes
from email.message import Message
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.responses import Response

from pinchpoint_infra.services.odata import Asked, Call, RefusalError

_MOST = 1_000
"""Requests in one batch: SharePoint's own limit."""
_LINE = re.compile(r"(?P<method>[A-Za-z]+) +(?P<url>(?:https?://|/).*?)(?: +HTTP/1\.\d)?\Z")
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_ORIGIN = re.compile(r"https?://[^/]*", re.IGNORECASE)


class Batch:
    """The request that holds others.

    Args:
        answer: answers one of them; it refuses by a response, never by an error.
    """

    def __init__(self, answer: Callable[[Asked], Awaitable[Response]]) -> None:
        self._answer = answer

    async def answer(self, call: Call) -> Response:
        """One part per request, change sets and reads alike, in the order in which they came."""
        if call.asked.method != "POST":
            raise RefusalError(405, "$batch: a POST is needed")
        boundary = f"batchresponse_{uuid.uuid4()}"
        parts = [_part(boundary, await self._answer(asked)) for asked in list(_requests(call.asked))]
        content = b"".join([*parts, f"--{boundary}--\r\n".encode()])
        return Response(content, media_type=f'multipart/mixed; boundary="{boundary}"')


def _requests(batch: Asked) -> Iterator[Asked]:
    """The requests in a batch; raises ``RefusalError``."""
    content_type = batch.headers.get("content-type", "")
    if not content_type.lower().startswith("multipart/mixed"):
        raise RefusalError(
            400, f"$batch: Content-Type {content_type!a}: multipart/mixed; boundary=... is needed"
        )
    head = f"Content-Type: {content_type}\r\n\r\n".encode("latin-1", "replace")
    message = message_from_bytes(head + batch.content)
    if not message.is_multipart():
        raise RefusalError(400, "$batch: the body has no part with the boundary its Content-Type names")
    count = 0
    for part in message.walk():
        if part.is_multipart():  # the batch itself, and its change sets
            continue
        count += 1
        if count > _MOST:
            raise RefusalError(400, f"$batch: more than {_MOST:,} requests")
        yield _request(part, batch)


def _request(part: Message, batch: Asked) -> Asked:
    """One request of a batch. Who asks, and where, is said by the batch."""
    content = part.get_payload(decode=True)
    if part.get_content_type() != "application/http" or not isinstance(content, bytes):
        raise RefusalError(400, f"$batch: a part is {part.get_content_type()}; application/http is needed")
    head, _, body = _split(content.lstrip(b"\r\n"))
    first, *lines = head.decode("utf-8", "replace").splitlines() or [""]
    line = _LINE.fullmatch(first.strip())
    if line is None:
        raise RefusalError(400, f"$batch: {first[:80]!a} is no request line such as GET /_api/web HTTP/1.1")
    found = _ORIGIN.match(line["url"])
    target = line["url"][found.end() :] if found else line["url"]
    headers = [
        (name.strip().lower().encode("latin-1", "replace"), text.strip().encode("latin-1", "replace"))
        for name, colon, text in (each.partition(":") for each in lines)
        if colon
    ]
    return Asked(line["method"].upper(), target, Headers(raw=headers), body, batch.origin)


def _split(content: bytes) -> tuple[bytes, bytes, bytes]:
    """Head, what parts it from the body, body."""
    end = _HEAD_END.search(content)
    return (content[: end.start()], end[0], content[end.end() :]) if end else (content, b"", b"")


def _part(boundary: str, response: Response) -> bytes:
    status = HTTPStatus(response.status_code)
    headers = "".join(
        f"{name}: {text}\r\n" for name, text in response.headers.items() if name != "content-length"
    )
    head = (
        f"--{boundary}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
        f"HTTP/1.1 {status.value} {status.phrase}\r\n{headers}\r\n"
    )
    return head.encode("latin-1") + bytes(response.body) + b"\r\n"
