"""Helpers of the web tier's tests: its documents and its client."""

from __future__ import annotations

import gzip

MODULE = "pinchpoint_infra.services.web"
TOKEN = "a-token"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
FILES: dict[bytes, bytes] = {
    b"top.txt": b"at the top",
    b"it's #1 50%/a space & more?.txt": b"odd",
    b"it's #1 50%/d''e/(x')y).txt": b"odder",
    b"it's #1 50%/latin\xe9.txt": b"no UTF-8 in its name",
    "it's #1 50%/größe 泵☃.txt".encode(): b"unicode",
    b"it's #1 50%/line\nfeed\\tab\t;a=b+c%41.txt": b"oddest",
    b"case/Read.txt": b"upper",
    b"case/read.txt": b"lower",
    b"case/empty": b"",
    b"case/page.html": b"<!doctype html><title>t</title>",
    b"case/page.gz": gzip.compress(b"packed", mtime=0),
    b"deep/" + b"/".join(["ü".encode() * 120] * 14): b"long",
    **{b"many/%03d.txt" % number: b"number %d" % number for number in range(25)},
}
