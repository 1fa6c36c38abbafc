"""PowerShell scripts as tree-sitter's grammar reads them, where there is no PowerShell to run them with."""

from __future__ import annotations

from collections.abc import Iterator

import tree_sitter_powershell
from tree_sitter import Language, Node, Parser


def parse(text: str) -> Node:
    """The tree of a script."""
    return Parser(Language(tree_sitter_powershell.language())).parse(text.encode()).root_node


def named(text: str, kind: str) -> list[str]:
    """The text of all nodes of a kind."""
    found = [node.text for node in _walk(parse(text)) if node.type == kind]
    return [one.decode() for one in found if one is not None]


def wrong(text: str) -> list[tuple[int, bytes | None]]:
    """Line and text of whatever is no PowerShell."""
    return [
        (node.start_point.row + 1, node.text)
        for node in _walk(parse(text))
        if node.is_error or node.is_missing
    ]


def _walk(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from _walk(child)
