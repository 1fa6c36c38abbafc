"""Answers of an embedded farm's web tier to recorded requests: status, headers, and body."""

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
"""Number of bytes of a body kept next to its digest, so that a person can read a difference."""
PORT = re.compile(rb"127\.0\.0\.1:\d+")
"""The port differs at each start of the tier."""


def answers() -> str:
    """Send all requests and return them with their answers."""
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
