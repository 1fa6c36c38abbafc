"""One value put into the text of a YAML or JSON file: not another character of it changes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode


class Shared(Exception):  # noqa: N818 -- a state of the file, named as such
    """What would be changed stands there by an alias or a merge, and belongs to other places as well."""


def inserted(text: str, path: Sequence[str], value: Mapping[str, Any]) -> str:
    """The text with a mapping at that path, in place of whatever stood there; mappings around it are made.

    Args:
        text: of a file that holds a mapping and can be parsed.
        path: its keys, from the outermost on.
        value: strings, numbers and mappings of such.

    Raises:
        Shared: that cannot be done without changing something else, too.
    """
    parsed = _parsed(text)
    node, depth = _deepest(parsed, path)
    quoted = parsed.lstrip().startswith("{")
    if quoted:
        value = json.loads(json.dumps(value))  # whose keys are texts
    rest: Mapping[str, Any] = value
    for key in reversed(path[depth + 1 :]):
        rest = {key: rest}
    key = path[depth]
    found = next((pair for pair in node.value if pair[0].value == key), None)
    if found:
        made = _replaced(text, found[0], found[1], _flow(rest, quoted))
    else:
        made = _added(text, node, key, rest, quoted)
    try:
        alone = _content(made) == _with(_content(text), path, value)
    except YAMLError:  # an alias' mark is that of what it stands for
        alone = False
    if not alone:
        raise Shared
    return made


def _parsed(text: str) -> str:
    """As the parser takes it, of the same length: JSON may be indented with tabs, YAML may not."""
    return text.replace("\t", " ") if text.lstrip().startswith("{") else text


def _content(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(_parsed(text))


def _with(content: Any, path: Sequence[str], value: Mapping[str, Any]) -> Any:
    """The content with that value at that path; nothing else of it changes."""
    key, *rest = path
    inner = content.get(key) if isinstance(content, dict) else None
    return {**(content or {}), key: _with(inner, rest, value) if rest else dict(value)}


def _deepest(text: str, path: Sequence[str]) -> tuple[MappingNode, int]:
    """The innermost mapping of the path that is there and not empty, and the place of its key in the path."""
    node: MappingNode = YAML(typ="safe", pure=True).compose(text)
    depth = 0
    while depth + 1 < len(path):
        inner = next((one for key, one in node.value if key.value == path[depth]), None)
        if not isinstance(inner, MappingNode) or not inner.value:
            break
        node, depth = inner, depth + 1
    return node, depth


def _replaced(text: str, key: Node, old: Node, new: str) -> str:
    begin, end = old.start_mark.index, old.end_mark.index
    if begin == end:
        begin = end = text.index(":", key.end_mark.index) + 1  # nothing there: its mark is the next thing's
        new = f" {new}"
    return f"{text[:begin]}{new}{text[end:]}"


def _added(text: str, node: MappingNode, key: str, value: Mapping[str, Any], quoted: bool) -> str:
    """A mapping with one item more, as it is written: in braces, or a line of its own."""
    item = f"{json.dumps(key) if quoted else key}: {_flow(value, quoted)}"
    first, (last_key, last) = node.value[0][0], node.value[-1]
    if node.flow_style and last.start_mark.index < last_key.end_mark.index:  # an alias: elsewhere
        at = text.index("{", node.start_mark.index) + 1
        return f"{text[:at]}{item}, {text[at:]}"
    if node.flow_style:
        at = last.end_mark.index
        return f"{text[:at]}, {item}{text[at:]}"
    column = first.start_mark.column
    end = text.find("\n", last.end_mark.index) + 1
    line = "\r\n" if "\r\n" in text else "\n"
    if end and _on_one_line(last):
        return f"{text[:end]}{' ' * column}{item}{line}{text[end:]}"
    if not column:
        return f"{text}{'' if text.endswith(chr(10)) else line}{item}{line}"
    at = first.start_mark.index  # where its last item ends, comments and all, nobody can say
    return f"{text[:at]}{item}{line}{' ' * column}{text[at:]}"


def _on_one_line(node: Node) -> bool:
    """Whether a value ends where its mark says: not so a block, and not a value that is missing."""
    block = isinstance(node, ScalarNode) and node.style in ("|", ">")
    inside = isinstance(node, ScalarNode) or bool(getattr(node, "flow_style", False))
    return inside and not block and node.start_mark.index < node.end_mark.index


def _flow(value: Any, quoted: bool) -> str:
    """In braces, on one line: quoted as JSON has it, or as YAML needs no quotes."""
    if quoted:
        return json.dumps(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_flow(inner, quoted)}" for key, inner in value.items()) + "}"
    return str(value)
