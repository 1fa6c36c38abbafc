"""Whatever stands in a file, a person gets sentences: never a traceback, never a hang.

The mutations are drawn from a fixed seed, so that a failure can be seen again.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness.plan.samples import REAL_FARM, WHOLE_PLAN, write
from ruamel.yaml import YAML

from pinchpoint.base.errors import InputError
from pinchpoint.cli import templates
from pinchpoint.plan import load

SECONDS = 3.0
FEWEST = 200
MARKS = [
    "{",
    "}",
    "[",
    "]",
    ":",
    "-",
    "#",
    "? ",
    "'",
    '"',
    "|\n",
    ">\n",
    "\t",
    "\n",
    "  ",
    "---\n",
    "...\n",
    "%",
    "@",
    "`",
]
ALIASES = ["&a ", "*a", "<<: *a", "!!int ", "!!float ", "!x "]
VALUES = [
    "~",
    "null",
    "true",
    "1e999",
    ".nan",
    "0x1F",
    "-1",
    "9" * 5000,
    "2026-01-01",
    "1_0",
    "${",
    "${A}",
    "://",
    "\\x",
]
ODD = ["é", "\x85", "\u2028", "\x00", "\x1b", "\U0001f600", '"\\ud800"', "\udcff"]
PIECES = [*MARKS, *ALIASES, *VALUES, *ODD]


def mutated(text: str, draw: random.Random) -> bytes:
    """The text with one to four pieces dropped, doubled, moved, replaced or put in."""
    lines = text.splitlines(keepends=True)
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(lines))
        line = lines[at]
        column = draw.randint(0, len(line))
        match draw.randrange(7):
            case 0:
                lines[at] = ""
            case 1:
                lines[at] = line * 2
            case 2:
                lines[at] = draw.choice(lines)
            case 3:
                lines[at] = line[:column] + draw.choice(PIECES) + line[column:]
            case 4:
                lines[at] = line[:column] + line[column + draw.randint(1, 9) :]
            case 5:
                lines[at] = " " * draw.randint(1, 4) + line
            case _:
                lines[at] = line.replace(":", draw.choice(PIECES), 1)
    return "".join(lines).encode("utf-8", "surrogateescape")


def drawn(draw: random.Random) -> tuple[bytes, bytes]:
    """Both files: one of them or both mutated, or plain random bytes."""
    farm, plan = draw.choice([(REAL_FARM, WHOLE_PLAN), tuple(templates.files("mixed").values())])
    noise = draw.randbytes(draw.randint(0, 200))
    return draw.choice(
        [
            (mutated(farm, draw), plan.encode()),
            (farm.encode(), mutated(plan, draw)),
            (mutated(farm, draw), mutated(plan, draw)),
            (noise, plan.encode()),
            (bytes(byte % 128 for byte in noise), plan.encode()),
        ]
    )


def problems(farm: Path, plan: Path) -> tuple[str, ...]:
    """What ``load`` has to say; nothing where both files are right."""
    try:
        load(farm, plan)
    except InputError as error:
        return error.problems or ("an error without a problem",)
    return ()


def test_no_content_raises_anything_else(tmp_path: Path) -> None:
    """Each ends as two records or as problems, each of them one printable line that begins with its file."""
    draw = random.Random(20_261)
    ends, refused, accepted = time.monotonic() + SECONDS, 0, 0
    while time.monotonic() < ends or refused + accepted < FEWEST:
        contents = drawn(draw)
        said = problems(*write(tmp_path, *contents))
        for line in said:
            assert line.startswith(str(tmp_path)), contents
            assert line.isprintable(), contents
        refused, accepted = refused + bool(said), accepted + (not said)
    assert refused > accepted > 0


RULES = """\
stop_when: [{metric: disk.write_latency_s, role: log, tier: sql, host: sql1, above: 50ms, for: 10s}]
compare: {metrics: [scenario.orders.response_p95_s], margin: 5%, bound: 1.5}
"""
SOURCES = "{use: full-crawl, params: {drive: pinchpoint, sources: [{kind: web, endpoint: sharepoint}]}, "
EVERY_FIELD = {
    "farm": REAL_FARM.replace("process: postgres}", "process: postgres}, {kind: postgres, endpoint: sql}")
    + "prove: {sql.log: {slower: a, restore: b, by: 20%}}\n"
    + "prices: {currency: EUR, disks: {sql.log: 5}, machines: {sql1: 9}}\n",
    "plan": WHOLE_PLAN.replace("{use: full-crawl, ", SOURCES, 1) + RULES,
}
KINDS_OF_VALUE: tuple[Any, ...] = (["a"], {"a": ["b"]}, None, -1.5, [{}])


def changed(value: Any, instead: Any) -> Iterator[Any]:
    """The value with each thing in it replaced, one at a time; the whole of it last."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in list(inner):
        for other in changed(each, instead):
            copy = value.copy()
            copy[key] = other
            yield copy
    yield instead


@pytest.mark.parametrize("name", ["farm", "plan"])
def test_no_kind_of_value_raises_anything_else(name: str, tmp_path: Path) -> None:
    """In the place of every field a list, a mapping, nothing, a number: words for people each time."""
    written = dict(zip(("farm", "plan"), write(tmp_path, *EVERY_FIELD.values()), strict=True))
    assert problems(*written.values()) == ()
    whole = YAML(typ="safe").load(EVERY_FIELD[name])
    for instead in KINDS_OF_VALUE:
        for content in changed(whole, instead):
            written[name].write_text(json.dumps(content))
            for line in problems(*written.values()):
                assert line.isprintable(), content
