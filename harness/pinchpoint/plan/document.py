"""Reads a YAML file as plain data and keeps the line of each value."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.composer import MaxDepthExceededError
from ruamel.yaml.error import MarkedYAMLError, YAMLError, YAMLWarning
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from pinchpoint.plan.problems import ABSENT, Path, Problem, dotted, inside, quoted, sentence

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 40
MAX_VALUES = 100_000

_TAG = "tag:yaml.org,2002:"
_TEXT = frozenset({_TAG + "str", _TAG + "timestamp", _TAG + "value"})
_NUMBERS = frozenset({_TAG + "int", _TAG + "float", _TAG + "bool"})

_PLAIN_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""The accepted form of numbers. YAML also accepts 1_000, 0x10 and .inf, which are usually typing errors."""
_A_NUMBER = "a number in figures from 0 to 9, or text in quotes"

_PLAINER = {
    "found character '\\t' that cannot start any token": "a tab where spaces belong; indent with spaces",
    "mapping values are not allowed here": "a ':' where no field can begin; "
    "check the indentation of this line and the one above, or quote the text",
    "but found another document": "a second document begins; keep one per file",
    "found unexpected end of stream": "a quote is opened and never closed; close it",
    "expected ',' or '}', but got '<stream end>'": "a '{' is opened and never closed; close it with '}'",
    "expected ',' or ']', but got '<stream end>'": "a '[' is opened and never closed; close it with ']'",
    "could not find expected ':'": "a line without a ':'; write it as 'field: value'",
}
"""A message of ruamel.yaml -> the message shown instead of it."""


@dataclass(frozen=True, slots=True)
class YamlFile:
    """A parsed YAML file.

    Attributes:
        file: file name as the user gave it; every message begins with this name.
        location: resolved path of the file.
        data: content of the file: mappings with text keys, lists, text, numbers, booleans.
        lines: line number, from 1, of every field and list item.
        problems: problems of the file's YAML.
    """

    file: str
    location: FilePath
    data: dict[str, Any] = field(default_factory=dict)
    lines: Mapping[Path, int] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    @property
    def readable(self) -> bool:
        """Whether the file has content that can be validated."""
        return bool(self.lines)

    def line(self, path: Path) -> int | None:
        """The line of a field; for a missing field, the line of the nearest enclosing field."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path)

    def at(self, *path: str | int) -> Any:
        """The value at a path; ``None`` if there is no value."""
        value: object = self.data
        for step in path:
            value = inside(value, step)
        return None if value is ABSENT else value

    def mapping(self, *path: str | int) -> dict[str, Any]:
        """The mapping at a path; an empty mapping if there is none."""
        value = self.at(*path)
        return value if isinstance(value, dict) else {}

    def sentence(self, problem: Problem) -> str:
        """The message of a problem, as one line with file, line and field."""
        line = problem.line or self.line(problem.path)
        place = f"{self.file}:{line}" if line else self.file
        where = f"{place}: {dotted(problem.path)}" if problem.path else place
        return f"{where}: {sentence(problem.found, problem.allowed, problem.nearest)}"


def read_document(path: FilePath) -> YamlFile:
    """Read and parse one file; ``problems`` of the result lists what is wrong with its content."""
    location = path.absolute()
    try:
        text = _text(path)
        location = path.resolve()
        node = _compose(text)
        builder = _Builder()
        builder.lines[()] = node.start_mark.line + 1
        data = builder.value(node, ())
    except _Unreadable as error:
        return YamlFile(str(path), location, problems=(error.problem,))
    return YamlFile(str(path), location, data, builder.lines, tuple(builder.problems))


class _Unreadable(Exception):  # noqa: N818 - never leaves this module
    def __init__(self, found: str, allowed: str = "", line: int | None = None) -> None:
        super().__init__(found)
        self.problem = Problem((), found, allowed, line=line)


def _text(path: FilePath) -> str:
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise _Unreadable("is no plain file", "write what comes out of it into one")
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise _Unreadable(
            "there is no such file",
            "check the path; 'pinchpoint init DIR' writes a farm.yaml and a plan.yaml",
        ) from error
    except IsADirectoryError as error:
        raise _Unreadable("this is a folder", "name the YAML file in it") from error
    except PermissionError as error:
        raise _Unreadable("no right to read this file", "check its owner and mode") from error
    except (OSError, ValueError) as error:  # a zero byte in the path raises ValueError
        reason = getattr(error, "strerror", None) or error
        raise _Unreadable(f"cannot be read ({reason})") from error
    if len(raw) > MAX_BYTES:
        raise _Unreadable("larger than 1 MiB", "a farm or a plan is a short text file")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise _Unreadable("not UTF-8 text", "save the file as UTF-8", line) from error
    return _without_tabs(text)


def _without_tabs(text: str) -> str:
    """The text with tabs replaced by spaces if it is JSON: JSON allows tabs as indentation, YAML does not."""
    if "\t" not in text or not text.lstrip().startswith("{"):
        return text
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text.replace("\t", " ")


def _compose(text: str) -> MappingNode:
    parser = YAML(typ="safe", pure=True)
    parser.max_depth = MAX_DEPTH
    try:
        with warnings.catch_warnings(action="ignore", category=YAMLWarning):
            node = parser.compose(text)
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise _Unreadable(
            f"not text: it holds the control character {error.character:#04x}", "save it as plain text", line
        ) from error
    except MaxDepthExceededError as error:
        line = error.problem_mark.line + 1
        raise _Unreadable("nested too deeply", f"at most {MAX_DEPTH} levels", line) from error
    except MarkedYAMLError as error:
        raise _Unreadable(*_plain(error)) from error
    except (YAMLError, ValueError, IndexError, AttributeError, TypeError) as error:
        # ruamel.yaml raises these errors, without a line number, for some malformed files.
        raise _Unreadable(f"not valid YAML ({quoted(str(error))})") from error
    if node is None:
        raise _Unreadable("the file is empty", "'pinchpoint init DIR' writes one to start from")
    if not isinstance(node, MappingNode):
        kind = "a list" if isinstance(node, SequenceNode) else "a single value"
        raise _Unreadable(
            f"the file holds {kind}",
            "allowed: fields with values, such as 'name: NAME'",
            node.start_mark.line + 1,
        )
    return node


def _plain(error: MarkedYAMLError) -> tuple[str, str, int | None]:
    problem = str(error.problem or error.context)
    begun = error.context_mark.line + 1 if error.context_mark else None
    line = error.problem_mark.line + 1 if error.problem_mark else begun
    if problem == "found unexpected end of stream" or problem.endswith("<stream end>'"):
        line = begun
    allowed = ""
    if problem in _PLAINER:
        problem, _, allowed = _PLAINER[problem].partition("; ")
    elif error.context and begun and begun != line:
        allowed = f"{error.context} that begins in line {begun}"
    return f"not valid YAML: {problem}", allowed, line


class _Builder:
    """Converts YAML nodes into plain data, records line numbers, and reports YAML that is not allowed."""

    def __init__(self) -> None:
        self.lines: dict[Path, int] = {}
        self.problems: list[Problem] = []
        self._constructor = YAML(typ="safe", pure=True).constructor
        self._open: set[int] = set()
        self._values = 0

    def value(self, node: Node, path: Path) -> Any:
        self._values += 1
        line = node.start_mark.line + 1
        if self._values > MAX_VALUES:
            raise _Unreadable(f"more than {MAX_VALUES} values once its aliases are followed", line=line)
        if len(path) > MAX_DEPTH:
            raise _Unreadable("nested too deeply", f"at most {MAX_DEPTH} levels", line)
        if isinstance(node, ScalarNode):
            return self._scalar(node, path)
        if id(node) in self._open:
            raise _Unreadable("an alias (*) refers to the value it stands in", "write the value out", line)
        self._open.add(id(node))
        try:
            if isinstance(node, MappingNode):
                return self._mapping(node, path)
            return self._sequence(cast("SequenceNode", node), path)
        finally:
            self._open.discard(id(node))

    def _mapping(self, node: MappingNode, path: Path) -> dict[str, Any]:
        data: dict[str, Any] = {}
        if str(node.tag) != _TAG + "map":
            self._report(path, node, f"the YAML tag {quoted(str(node.tag))}", "remove the tag")
        for key_node, value_node in _merged_last(node):
            if str(key_node.tag) == _TAG + "merge":
                for shared in self._shared(value_node, path):
                    data = shared | data
                continue
            key = self._key(key_node, path)
            if key is None:
                continue
            here = (*path, key)
            line = key_node.start_mark.line + 1
            if key in data:
                first = self.lines[here]
                self.problems.append(
                    Problem(here, f"given twice, first in line {first}", "remove one of them", line=line)
                )
                continue
            self.lines[here] = line
            data[key] = self.value(value_node, here)
        return data

    def _shared(self, node: Node, path: Path) -> Iterator[dict[str, Any]]:
        """The mappings that a merge key (``<<``) adds; the mapping's own fields override them."""
        for part in node.value if isinstance(node, SequenceNode) else [node]:
            if isinstance(part, MappingNode):
                taken = dict(self.lines)
                yield self.value(part, path)
                self.lines |= taken
            else:
                self._report(path, part, "a '<<' that brings in no mapping", "an alias (*) of a mapping")

    def _sequence(self, node: SequenceNode, path: Path) -> list[Any]:
        items = []
        if str(node.tag) != _TAG + "seq":
            self._report(path, node, f"the YAML tag {quoted(str(node.tag))}", "remove the tag")
        for position, item in enumerate(node.value):
            here = (*path, position)
            self.lines[here] = item.start_mark.line + 1
            items.append(self.value(item, here))
        return items

    def _key(self, node: Node, path: Path) -> str | None:
        if not isinstance(node, ScalarNode):
            self._report(path, node, "a field whose name is a list or a mapping", "a field's name is text")
        elif not node.value:
            self._report(path, node, "a field without a name", "a field's name is text")
        elif not node.value.isprintable():
            self._report(
                path, node, f"the field name {quoted(node.value)}", "a field's name is printable text"
            )
        else:
            return str(node.value)
        return None

    def _scalar(self, node: ScalarNode, path: Path) -> Any:
        tag = str(node.tag)
        if tag in _TEXT:
            return self._string(node, path)
        if tag == _TAG + "null":
            self._report(path, node, "nothing stands here", "give it a value, or remove it")
            return None
        if tag in _NUMBERS:
            if tag != _TAG + "bool" and not _PLAIN_NUMBER.fullmatch(node.value):
                self._report(path, node, f"{quoted(node.value)} is not a number", _A_NUMBER)
                return None
            try:
                return self._constructor.construct_object(node)
            except (ValueError, KeyError, IndexError, YAMLError):
                self._report(path, node, f"{quoted(node.value)} is not a number", _A_NUMBER)
                return None
        self._report(path, node, f"the YAML tag {quoted(tag)}", "plain text, numbers, lists and mappings")
        return None

    def _string(self, node: ScalarNode, path: Path) -> str | None:
        try:
            # JSON writes a character above U+FFFF as a pair of surrogates; a single surrogate is not a
            # character.
            return str(node.value).encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            self._report(path, node, "half of a surrogate pair", "a whole character")
            return None

    def _report(self, path: Path, node: Node, found: str, allowed: str) -> None:
        line = self.lines.get(path) if isinstance(node, ScalarNode) and path in self.lines else None
        self.problems.append(Problem(path, found, allowed, line=line or node.start_mark.line + 1))


def _merged_last(node: MappingNode) -> list[tuple[Node, Node]]:
    """The pairs of a mapping: first its own fields, then its merge keys."""
    return sorted(node.value, key=lambda pair: str(pair[0].tag) == _TAG + "merge")
