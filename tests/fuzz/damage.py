"""Hypothesis strategies that damage recorded inputs as transport, editors and attackers do."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import re
import zipfile
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

PIECES = (
    *(
        b"{",
        b"}",
        b"[",
        b"]",
        b":",
        b"- ",
        b"#",
        b"? ",
        b"'",
        b'"',
        b"|\n",
        b">\n",
        b"\t",
        b"\n",
        b"\r",
        b"  ",
    ),
    *(
        b"---\n",
        b"...\n",
        b"%",
        b"@",
        b"`",
        b",",
        b";",
        b"&a ",
        b"*a",
        b"<<: *a",
        b"!!int ",
        b"!!float ",
        b"!x ",
    ),
    *(b"~", b"null", b"true", b"1e999", b"-1e999", b".nan", b"NaN", b"0x1F", b"-1", b"0", b"1_0", b"1e-320"),
    *(b"9" * 5000, b"9" * 25, b"4294967296", b"18446744073709551616", b"-9223372036854775809"),
    *(
        b"2026-01-01",
        b"0001-01-01T00:00:00",
        b"9999-12-31T23:59:59",
        b"${",
        b"${A}",
        b"://",
        b"\\x",
        b"../../etc",
    ),
    *("é".encode(), b"\xc2\x85", b"\xe2\x80\xa8", b"\xe2\x80\xae", b"\0", b"\x1b[2J", b"\xf0\x9f\x98\x80"),
    *(
        b'"\\ud800"',
        b"\xff\xfe",
        b"\xed\xa0\x80",
        b"<a>",
        b"</",
        b"<!DOCTYPE x>",
        b"&#x0;",
        b"%s%n",
        b"'; --",
    ),
)
"""Inserted bytes: syntax of YAML, JSON, CSV and XML, unusual numbers, characters that break a terminal or a
codec."""

_DEEP = 100_000
_LARGE_BYTES = 4 * 2**20
_BOMB_BYTES = 64 * 2**20


def _cut(draw: DrawFn, content: bytes) -> bytes:
    return content[: draw(st.integers(0, len(content)))]


def _dropped(draw: DrawFn, content: bytes) -> bytes:
    at = draw(st.integers(0, len(content)))
    return content[:at] + content[at + draw(st.integers(1, 200)) :]


def _flipped(draw: DrawFn, content: bytes) -> bytes:
    if not content:
        return content
    at = draw(st.integers(0, len(content) - 1))
    return content[:at] + bytes([content[at] ^ draw(st.integers(1, 255))]) + content[at + 1 :]


def _put_in(draw: DrawFn, content: bytes) -> bytes:
    at = draw(st.integers(0, len(content)))
    return content[:at] + draw(st.sampled_from(PIECES)) + content[at:]


def _lines(draw: DrawFn, content: bytes) -> bytes:
    """Remove, double, move, indent or multiply lines."""
    lines = content.splitlines(keepends=True) or [b""]
    at = draw(st.integers(0, len(lines) - 1))
    line = lines[at]
    often = max(1, min(20_000, _LARGE_BYTES // max(1, len(line))))
    change = draw(st.sampled_from(("leave out", "double", "move", "indent", "often", "long")))
    lines[at : at + 1] = {
        "leave out": [],
        "double": [line, line],
        "move": [draw(st.sampled_from(lines))],
        "indent": [b" " * draw(st.integers(1, 4)) + line],
        "often": [line] * often,
        "long": [line.rstrip(b"\n") * often + b"\n"],
    }[change]
    return b"".join(lines)


def _word(draw: DrawFn, content: bytes) -> bytes:
    """Replace a number or a word."""
    words = list(_WORD.finditer(content[:200_000]))
    if not words:
        return content
    found = words[draw(st.integers(0, len(words) - 1))]
    return content[: found.start()] + draw(st.sampled_from(PIECES)) + content[found.end() :]


def _encoded(draw: DrawFn, content: bytes) -> bytes:
    """Encode the text as an editor on another system does."""
    text = content.decode("utf-8", "replace")
    mark, encoding = draw(
        st.sampled_from(
            (
                (codecs.BOM_UTF8, "utf-8"),
                (codecs.BOM_UTF16_LE, "utf-16-le"),
                (codecs.BOM_UTF16_BE, "utf-16-be"),
                (codecs.BOM_UTF8, "utf-16-le"),
                (b"", "utf-16-le"),
                (b"", "utf-32"),
                (b"", "cp1252"),
                (b"", "cp932"),
                (b"", "utf-7"),
            )
        )
    )
    return mark + text.encode(encoding, "replace")


def _packed(draw: DrawFn, content: bytes) -> bytes:
    """Compress the content, or replace it with a decompression bomb."""
    bomb = draw(st.booleans())
    plain = bytes(_BOMB_BYTES) if bomb else content
    if draw(st.booleans()):
        return gzip.compress(plain, 1)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("a", plain)
    return packed.getvalue()


def _deep(draw: DrawFn, content: bytes) -> bytes:
    at = draw(st.integers(0, len(content)))
    return (
        content[:at]
        + draw(st.sampled_from((b"[", b'{"a":', b"(", b"<a>", b"- ", b"{"))) * _DEEP
        + content[at:]
    )


_WORD = re.compile(rb"[\w.+-]+")
_USUAL = (_cut, _dropped, _flipped, _put_in, _lines, _word, _word, _word)
_SELDOM = (_encoded, _packed, _deep)


@st.composite
def damaged(draw: DrawFn, samples: Sequence[bytes]) -> bytes:
    """Return a sample with up to four changes; rarely only noise."""
    if draw(st.integers(0, 40)) == 0:
        return draw(st.binary(max_size=300))
    content = draw(st.sampled_from(samples))
    for _ in range(draw(st.integers(0, 4))):
        changes = _SELDOM if draw(st.integers(0, 15)) == 0 else _USUAL
        content = draw(st.sampled_from(changes))(draw, content)[: 4 * _LARGE_BYTES]
    return content


_ODD_VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        2**31,
        2**53 + 1,
        2**63,
        2**64,
        -(2**63) - 1,
        10**30,
        0.0,
        -0.0,
        1e-320,
        1e308,
    ),
    *(
        float("nan"),
        float("inf"),
        -float("inf"),
        1.5,
        -1.5,
        "",
        " ",
        "a",
        "\0",
        "\x1b[2J",
        "\u202e",
        "é" * 300,
    ),
    *(
        "1",
        "nan",
        "../../x",
        "/",
        "2026-01-01T00:00:00Z",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "x" * 10_000,
    ),
    *([], {}, [[]], [{}], {"a": {}}, [None], ["a"], {"": None}),
)


@st.composite
def changed_value(draw: DrawFn, value: Any) -> Any:
    """Return a JSON value in which one to three entries are changed, removed, doubled or renamed."""
    value = json.loads(json.dumps(value))
    holder = {"": value}
    for _ in range(draw(st.integers(1, 3))):
        inside: Any = holder
        key: Any = ""
        # A random walk from the root changes entries near the root as often as the many leaves.
        while isinstance(inside[key], dict | list) and inside[key] and draw(st.integers(0, 5)):
            inside = inside[key]
            key = draw(st.sampled_from(sorted(inside) if isinstance(inside, dict) else range(len(inside))))
        change = draw(
            st.sampled_from(("replace", "replace", "replace", "leave out", "double", "rename", "swap"))
        )
        if change == "replace" or inside is holder:
            inside[key] = deepcopy(draw(st.sampled_from(_ODD_VALUES)))
        elif change == "leave out":
            del inside[key]
        elif change == "double":
            inside[key] = [inside[key], deepcopy(inside[key])]
        elif change == "rename" and isinstance(inside, dict):
            inside[draw(st.sampled_from(("x", "", "\x1b", key + " ")))] = inside.pop(key)
        else:
            other = draw(st.sampled_from(sorted(inside) if isinstance(inside, dict) else range(len(inside))))
            inside[key], inside[other] = inside[other], inside[key]
    return holder[""]


@st.composite
def damaged_json(draw: DrawFn, samples: Sequence[bytes]) -> bytes:
    """Return a JSON document, or JSON lines, with changed values or with damage to the text."""
    if draw(st.integers(0, 3)) == 0:
        return draw(damaged(samples))
    text = draw(st.sampled_from(samples))
    try:
        return json.dumps(draw(changed_value(json.loads(text)))).encode()
    except ValueError:  # several documents, one per line
        lines = text.splitlines()
        at = draw(st.integers(0, len(lines) - 1))
        lines[at] = json.dumps(draw(changed_value(json.loads(lines[at])))).encode()
        return b"\n".join(lines) + b"\n"


@st.composite
def split(draw: DrawFn, content: bytes) -> list[bytes]:
    """Split bytes into one to six pieces, as a network may deliver them."""
    places = sorted(draw(st.lists(st.integers(0, len(content)), max_size=5)))
    return [content[a:b] for a, b in zip([0, *places], [*places, len(content)], strict=True)]
