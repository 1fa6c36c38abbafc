"""Only a resource's own module depends on the type of a resource or on a kind of limit."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pinchpoint.analysis
from pinchpoint.analysis.resources.base import ResourceType
from pinchpoint.analysis.resources.kinds import KINDS, LIMIT_MODES
from pinchpoint.analysis.verdict import Kind

ANALYSIS = Path(pinchpoint.analysis.__file__).parent
NAMES = {*get_args(ResourceType), *get_args(Kind)}
LEFT = {
    "model/measured.py": "which station of the queueing model a resource becomes",
    "recordings/outcome.py": "recordings have kinds of measures of their own",
    "recordings/words.py": "likewise",
    "recordings/judge.py": "likewise",
    "published_means.py": "published figures are means, without a resource",
}


def branches(path: Path) -> Iterator[str]:
    """Yield ``line: code`` for each comparison with a type or kind and each isinstance of measures."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            asks = any(isinstance(side, ast.Attribute) and side.attr in {"type", "kind"} for side in sides)
            values = {
                part.value for side in sides for part in ast.walk(side) if isinstance(part, ast.Constant)
            }
            if asks and values & NAMES:
                yield f"{node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.Call) and re.match(r"isinstance\(.*Measures", ast.unparse(node)):
            yield f"{node.lineno}: {ast.unparse(node)}"


def test_no_rule_asks_for_a_type_outside_of_its_module() -> None:
    """Ranking, confidence, advice and wording use ``ResourceKind``; each exception has a reason."""
    found = {
        path.relative_to(ANALYSIS).as_posix(): list(branches(path))
        for path in ANALYSIS.rglob("*.py")
        if "resources" not in path.relative_to(ANALYSIS).parts
    }
    assert {name: each for name, each in found.items() if each and name not in LEFT} == {}
    assert set(LEFT) <= set(found)


def test_every_kind_of_limit_belongs_to_one_resource() -> None:
    """Each kind of limit belongs to exactly one resource, except the two kinds of an invalid run."""
    owned = [
        kind
        for each in KINDS.values()
        for kind in each.limit_modes
        if each.kind != "cpu" or each.type == "cpu"
    ]
    assert sorted(owned) == sorted(set(owned))
    assert {*LIMIT_MODES, "generator", "contention"} == set(get_args(Kind))
