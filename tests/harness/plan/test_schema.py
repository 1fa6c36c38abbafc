"""The JSON Schema of both files accepts every example and refuses errors within a field."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from harness.plan.samples import FARM, PLAN, write
from jsonschema import Draft202012Validator
from support import run_cli

from pinchpoint.cli import templates
from pinchpoint.plan.document import read_document
from pinchpoint.plan.files import kind_of
from pinchpoint.plan.schema import schema

ROOT = Path(__file__).parents[3]
BROKEN = ROOT / "tests" / "harness" / "plan" / "broken"
SEEN_BY_AN_EDITOR = (
    "bad-names/farm.yaml",
    "both-files/farm.yaml",
    "both-files/plan.yaml",
    "compare/plan.yaml",
    "credentials/farm.yaml",
    "embedded/farm.yaml",
    "endpoints-incomplete/farm.yaml",
    "endpoints/farm.yaml",
    "given-twice-and-nothing/farm.yaml",
    "loads-and-rules/plan.yaml",
    "measure-half-said/plan.yaml",
    "misspelt-endpoint/farm.yaml",
    "misspelt-fields/farm.yaml",
    "neither-embedded-nor-endpoints/farm.yaml",
    "no-scenarios/plan.yaml",
    "phases-and-objectives/plan.yaml",
    "scenarios/plan.yaml",
    "secrets-of-a-wrong-kind/farm.yaml",
    "tags/farm.yaml",
    "throttle/farm.yaml",
    "tiers/farm.yaml",
    "wrong-values/farm.yaml",
)
"""Broken files with an error in a single field; `check` has the rules across fields."""


@cache
def _validator(kind: str) -> Any:
    made = schema(kind)
    Draft202012Validator.check_schema(made)
    return Draft202012Validator(made)


def _refused(path: Path) -> list[str]:
    document = read_document(path)
    kind = kind_of(document) or path.stem
    return [error.message for error in _validator(kind).iter_errors(document.data)]


def test_every_example_is_taken() -> None:
    """Every valid farm and plan of the repository is accepted."""
    paths = [
        path
        for folder in ("infra", "tests", "docs")
        for path in sorted((ROOT / folder).rglob("*.yaml"))
        if BROKEN not in path.parents and kind_of(read_document(path))
    ]
    assert len(paths) > 200
    assert {str(path): said for path in paths if (said := _refused(path))} == {}


def test_broken_files_are_refused() -> None:
    """Broken files with an error that an editor can see are refused."""
    readable = [name for name in SEEN_BY_AN_EDITOR if read_document(BROKEN / name).readable]
    assert len(readable) > 15
    assert [name for name in readable if not _refused(BROKEN / name)] == []


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        ("plan", "use: sql-mix", "use: sql-mxi"),
        ("plan", "use: sql-mix", "use: sql-mix, params: {preset: log-heavy, scael: 2}"),
        ("plan", "use: sql-mix", "use: other.py, params: {preset: log-heavy}"),
        ("plan", "measure: 1s", "measure: 1"),
        ("plan", "measure: 1s", "measure: 1 fortnight"),
        ("plan", "measure: 1s", "warm_up: auto"),
        ("plan", "model: closed, users: 1", "model: open, rate: 5"),
        ("plan", "model: closed", "model: clsoed"),
        ("plan", "users: 1", "users: 0"),
        ("plan", "name: p", "name: a name"),
        ("plan", "name: p", "name: p\nobjectives: [{scenario: orders, p95: 1s, p99: 1s}]"),
        ("farm", "environment: test", "environment: tset"),
        ("farm", "environment: test", "environment: test\ncolour: red"),
        ("farm", "environment: test", "environment: test\nprices: {currency: EUR, disks: {sql.log: much}}"),
    ],
)
def test_a_slip_is_refused(tmp_path: Path, kind: str, right: str, wrong: str) -> None:
    """One wrong word in a valid file is refused."""
    text = {"farm": FARM, "plan": PLAN}[kind]
    assert right in text
    farm, plan = write(tmp_path, FARM, PLAN)
    path = {"farm": farm, "plan": plan}[kind]
    assert _refused(path) == []
    path.write_text(text.replace(right, wrong))
    assert _refused(path) != []


def test_init_writes_it_beside_both_files(tmp_path: Path) -> None:
    """Each written file's first line names its schema, which `schema` prints and the file satisfies."""
    assert run_cli("init", tmp_path / "new").returncode == 0
    for kind in ("farm", "plan"):
        path = tmp_path / "new" / f"{kind}.yaml"
        first = path.read_text().splitlines()[0]
        named = path.parent / first.removeprefix("# yaml-language-server: $schema=")
        printed = run_cli("schema", kind)
        assert json.loads(named.read_text()) == json.loads(printed.stdout) == schema(kind)
        assert _refused(path) == []


@pytest.mark.parametrize("name", templates.names())
def test_templates_are_taken(name: str, tmp_path: Path) -> None:
    """The schema accepts each file of each template."""
    for file, text in templates.files(name).items():
        path = tmp_path / ("plan.yaml" if file == "plan.yaml" else "farm.yaml")
        path.write_text(text)
        assert _refused(path) == [], file


def test_an_unknown_kind_is_a_usage_error() -> None:
    """An unknown kind gives exit status 2 and the allowed kinds."""
    done = run_cli("schema", "world")
    assert done.returncode == 2
    assert "'farm', 'plan'" in done.stderr
