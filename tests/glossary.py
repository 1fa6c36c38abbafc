"""Find words that the glossary forbids in strings, docstrings and documentation; ``make lint`` runs it."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CODE = ("scenarios", "collectors", "infra", "harness")
NOT_PROSE = ("docs/experiments/", "CHANGELOG.md")
"""Reports of experiments and the changelog keep their original words."""

GLOSSARY = {
    r"giv(?:e|es|ing) way|gave way": "is the bottleneck; the next bottleneck",
    r"used up": "saturated; at its limit",
    r"untold|told|tells?": "reported, reports; not measured",
    r"(?:no|some)body": "no session, a session; no server; the user",
    r"so (?:many|much)|as many": "the number itself",
    r"to be had": "available, installed",
    r"what (?:is|was|were) (?:asked|wanted)": "requested load, offered load",
    r"under way": "in flight, outstanding",
    r"strangers?'?": "other processes on the host",
    r"held up|holds up": "delayed by",
    r"alike": "the same",
    r"sets? the pace": "limits throughput",
}
"""Pattern of a forbidden word -> what to write instead."""

_FORBIDDEN = re.compile("|".join(rf"\b({words})\b" for words in GLOSSARY), re.IGNORECASE)
_CODE = re.compile(r"`[^`]+`")
_ADVICE = list(GLOSSARY.values())


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of each string with a space in a Python file, or of each line of another file."""
    source = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield from enumerate(source.splitlines(), 1)
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield from enumerate(node.value.splitlines(), node.lineno)


def found_in(path: Path) -> list[str]:
    """Return ``FILE:LINE: word: write instead`` for each forbidden word of a file."""
    place = path.relative_to(ROOT)
    return [
        f"{place}:{number}: {match[0]!r}: write {_ADVICE[(match.lastindex or 1) - 1]}"
        for number, text in texts(path)
        for match in _FORBIDDEN.finditer(_CODE.sub("", text))
    ]


def files() -> Iterator[Path]:
    """Yield all files with texts for readers."""
    for folder in CODE:
        yield from (ROOT / folder).rglob("*.py")
    for path in ROOT.rglob("*.md"):
        place = path.relative_to(ROOT).as_posix()
        if (
            not place.startswith((".", "build/", "tests/golden", "tests/harness/", *NOT_PROSE))
            and ".venv" not in path.parts
        ):
            yield path


def main() -> int:
    """Print each forbidden word; return 1 if there is one, else 0."""
    found = [line for path in files() for line in found_in(path)]
    print(*found, sep="\n" if found else "", end="\n" if found else "")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
