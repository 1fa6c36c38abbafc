"""Parse PowerShell scripts with tree-sitter's grammar and check them, on machines without PowerShell."""

from __future__ import annotations

import re
from collections.abc import Iterator

import tree_sitter_powershell
from tree_sitter import Language, Node, Parser


def parse(text: str) -> Node:
    """Return the root of the script's syntax tree."""
    return Parser(Language(tree_sitter_powershell.language())).parse(text.encode()).root_node


def named(text: str, kind: str) -> list[str]:
    """Return the text of each node of this kind."""
    found = [node.text for node in _walk(parse(text)) if node.type == kind]
    return [one.decode() for one in found if one is not None]


def wrong(text: str) -> list[tuple[int, bytes | None]]:
    """Return the line and text of each syntax error."""
    return [
        (node.start_point.row + 1, node.text)
        for node in _walk(parse(text))
        if node.is_error or node.is_missing
    ]


def _walk(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from _walk(child)


# ---- rules, as PSScriptAnalyzer has them ------------------------------------------------------------------

_AUTOMATIC = frozenset(
    re.findall(
        r"\S+",
        """
    _ $ ? ^ args error false host input lastexitcode matches null pid pscmdlet psscriptroot
    psboundparameters psversiontable psitem this true home executioncontext myinvocation stacktrace
    foreach switch profile psculture
    """,
    )
)
_SETTINGS = {"erroractionpreference", "progresspreference", "verbosepreference", "ofs"}
"""Variables that PowerShell itself reads."""
_ELSEWHERE = ("global:", "script:", "env:")
_FORBIDDEN = {
    *("invoke-expression", "iex", "get-wmiobject", "invoke-wmimethod", "write-host", "set-wmiinstance"),
    *("convertto-securestring", "add-type", "out-gridview", "read-host"),
}
_VERBS = frozenset(
    re.findall(
        r"\S+",
        """
    add clear close copy find format get join move new open pop push remove rename reset resize search
    select set show skip split step read watch write backup compare convert convertfrom convertto export
    group import initialize limit merge mount out publish receive restore save send sync update debug
    measure ping repair resolve test trace approve assert build complete confirm deny disable enable
    install invoke register request restart resume start stop submit suspend uninstall unregister wait
    connect disconnect exit enter lock unlock undo redo switch optimize edit expand checkpoint
    """,
    )
)
"""The output of Get-Verb in Windows PowerShell 5.1."""


def findings(text: str) -> list[str]:
    """Return violations of PSScriptAnalyzer's rules, one line each."""
    root = parse(text)
    defined = {_said(node).lower() for node in _walk(root) if node.type == "function_name"}
    found = [f"{line}: parse error" for line, _ in wrong(text)]
    for node in _walk(root):
        at = node.start_point.row + 1
        found += [f"{at}: {each}" for each in (*_of_command(node, defined), *_of_node(node))]
    return found + [each for scope in _scopes(root) for each in _of_variables(*scope)]


def _of_command(node: Node, defined: set[str]) -> Iterator[str]:
    if node.type == "command_name":
        name = _said(node).lower()
        if name in _FORBIDDEN:
            yield f"PSAvoidUsing {name}"
        elif "-" not in name and name not in defined and name[:1] not in {"$", '"', "'"}:
            yield f"PSAvoidUsingCmdletAliases {name}"
    elif node.type == "function_name":
        verb, dash, _ = _said(node).lower().partition("-")
        if not dash or verb not in _VERBS:
            yield f"PSUseApprovedVerbs {_said(node)}"


def _of_node(node: Node) -> Iterator[str]:
    if node.type == "comparison_expression" and node.child_count == 3:
        left, operator, right = (_said(child).lower() for child in node.children)
        if operator in {"-eq", "-ne"} and right == "$null" and left != "$null":
            yield "PSPossibleIncorrectComparisonWithNull"
    if node.type == "catch_clause" and not any(each.type == "statement_list" for each in _walk(node)):
        yield "PSAvoidUsingEmptyCatchBlock"
    if node.type == "pipeline_chain_tail":
        yield "not of Windows PowerShell 5.1: pipeline chain"


def _scopes(root: Node) -> Iterator[tuple[Node, list[Node]]]:
    """Yield each function with its variables, and the script itself without its functions."""
    functions = [node for node in _walk(root) if node.type == "function_statement"]
    inside = {node.id for function in functions for node in _walk(function)}
    yield root, [node for node in _walk(root) if node.type == "variable" and node.id not in inside]
    for function in functions:
        yield function, [node for node in _walk(function) if node.type == "variable"]


def _of_variables(scope: Node, variables: list[Node]) -> Iterator[str]:
    """Yield findings on variables: never read, never assigned, unused parameters, assigned automatic ones."""
    is_script = scope.parent is None
    name = "the script" if is_script else _said(scope.named_children[0])
    outer = {_plain(node) for node in _walk(_top(scope)) if node.type == "variable" and _is_outer(node)}
    set_, read, params = _used(variables)
    if is_script:  # functions of the script may read the variables that it sets
        inner = {_plain(node) for node in _walk(scope) if node.type == "variable" and not _is_outer(node)}
        read |= inner & outer
    for called in sorted(set_ - read - _SETTINGS - (set() if is_script else outer)):
        if not called.startswith(_ELSEWHERE):
            yield f"{name}: PSUseDeclaredVarsMoreThanAssignments {called}"
    for called in sorted(params - read):
        yield f"{name}: PSReviewUnusedParameter {called}"
    for called in sorted(read - set_ - params - _AUTOMATIC - _SETTINGS - outer):
        yield f"{name}: {called} is read and nowhere assigned"
    for called in sorted((set_ | params) & _AUTOMATIC):
        yield f"{name}: PSAvoidAssignmentToAutomaticVariable {called}"


def _used(variables: list[Node]) -> tuple[set[str], set[str], set[str]]:
    """Return the names of variables: (assigned, read, parameters)."""
    set_, read, params = set[str](), set[str](), set[str]()
    for node in variables:
        called = _plain(node)
        if _is_parameter(node):
            params.add(called)
        elif _is_assigned(node):
            set_.add(called)
        elif not called.startswith(_ELSEWHERE):
            read.add(called)
    return set_, read, params


def _top(node: Node) -> Node:
    while node.parent is not None:
        node = node.parent
    return node


def _is_outer(node: Node) -> bool:
    """Return True if the node is a parameter or a variable of the script, which its functions may read."""
    if not (_is_assigned(node) or _is_parameter(node)):
        return False
    while node.parent is not None:
        node = node.parent
        if node.type == "function_statement":
            return False
    return True


def _is_parameter(node: Node) -> bool:
    return node.parent is not None and node.parent.type == "script_parameter"


def _is_assigned(node: Node) -> bool:
    """Return True if the node is the whole left side of ``=`` or the variable of ``foreach``."""
    before = node
    while before.parent is not None and before.parent.type != "left_assignment_expression":
        if before.parent.type == "foreach_statement":
            return before.parent.named_children[0].id == node.id
        if before.parent.child_count > 1 and before.parent.type != "cast_expression":
            return False
        before = before.parent
    return before.parent is not None


def _plain(node: Node) -> str:
    return _said(node).lstrip("$@").strip("{}").lower()


def _said(node: Node) -> str:
    return (node.text or b"").decode()


def check_script(name: str, text: str) -> None:
    """Check that a script is one file that parses, has only ASCII, and cannot be misread by the console.

    Windows PowerShell reads a file without a byte order mark in the system's code page.
    """
    assert name.endswith(".ps1")
    assert text.isascii()
    assert "\t" not in text
    assert not wrong(text)
    assert parse(text.replace("\n}\n", "\n", 1)).has_error
