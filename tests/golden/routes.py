"""What the web tier of an embedded farm answers to recorded requests: status, headers, and its bytes."""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from pathlib import Path

import urllib3
from golden.doors import web_site

REQUESTS = Path(__file__).parents[1] / "golden_runs" / "requests.jsonl"
HEADERS = ("content-type", "etag", "last-modified", "location", "retry-after", "www-authenticate")
SHOWN = 200
"""Bytes of an answer that are kept beside its digest, so that a difference can be read."""
PORT = re.compile(rb"127\.0\.0\.1:\d+")
"""Differs from one start of the tier to the next."""


def answers() -> str:
    """All requests, each with its answer."""
    rows = [json.loads(line) for line in REQUESTS.read_text(encoding="utf-8").splitlines()]
    with tempfile.TemporaryDirectory(prefix="pinchpoint-golden-") as folder, web_site(Path(folder)) as http:
        return "\n".join(_answer(http, **row) for row in rows)


def _answer(
    http: urllib3.HTTPConnectionPool, method: str, target: str, headers: dict[str, str], body: str | None
) -> str:
    host = f"127.0.0.1:{http.port}"
    sent = None if body is None else body.replace("127.0.0.1:PORT", host).encode("latin-1")
    found = http.request(method, target.replace("127.0.0.1:PORT", host), body=sent, headers=headers)
    told = _lasting(found.data)
    lines = [f"> {method} {target}", f"> {json.dumps(headers)} {json.dumps(body)}", str(found.status)]
    lines += [
        f"{name}: {_lasting(found.headers[name].encode()).decode()}"
        for name in HEADERS
        if name in found.headers
    ]
    lines.append(f"{len(told)} bytes, sha256 {hashlib.sha256(told).hexdigest()}")
    return "\n".join([*lines, ascii(told[:SHOWN]), ""])


def _lasting(told: bytes) -> bytes:
    return PORT.sub(b"HOST", told)
