"""A value put into a YAML or JSON file: there, and every other character as it was."""

from __future__ import annotations

import pytest
from ruamel.yaml import YAML

from pinchpoint.plan.insertion import Shared, inserted

VALUE = {"iops": 500, "latency": {1: "2ms", 8: "16ms"}}
FLOW = "{iops: 500, latency: {1: 2ms, 8: 16ms}}"

BRACES = """disks: {
   log:  {path: /a},   # the log
   data: {path: /b,}   # the data
}
# trailing
"""
LINES = """disks:
    log:                # the log
        path: "/a"      # where

    # between
    data:
        path: /b
name:   dev
"""


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        (BRACES, "disks.log.limits", BRACES.replace("{path: /a}", f"{{path: /a, limits: {FLOW}}}")),
        (BRACES, "disks.data.limits", BRACES.replace("/b,}", f"/b, limits: {FLOW},}}")),
        (BRACES, "disks.index.limits", BRACES.replace("/b,}   #", f"/b,}}, index: {{limits: {FLOW}}}   #")),
        (
            LINES,
            "disks.log.limits",
            LINES.replace("# where\n", f"# where\n        limits: {FLOW}\n"),
        ),
        (LINES, "disks.data.limits", LINES.replace("/b\n", f"/b\n        limits: {FLOW}\n")),
        (LINES, "tiers.sql", LINES + f"tiers: {{sql: {FLOW}}}\n"),
        ("a: unknown  # yet\n", "a", f"a: {FLOW}  # yet\n"),
        ("a:  # nothing\nb: 1\n", "a.c", f"a: {{c: {FLOW}}}  # nothing\nb: 1\n"),
        ("a: {}\nb: 1", "a", f"a: {FLOW}\nb: 1"),
        ("a: 1", "b", f"a: 1\nb: {FLOW}\n"),
        ("a: 1\r\nb:\r\n  c: 2\r\n", "b.d", f"a: 1\r\nb:\r\n  c: 2\r\n  d: {FLOW}\r\n"),
        ("a:\n  b:\n    c: 1\n", "a.d", f"a:\n  d: {FLOW}\n  b:\n    c: 1\n"),
        ("a:\n  b:\n", "a.c", f"a:\n  c: {FLOW}\n  b:\n"),
    ],
)
def test_nothing_else_changes(text: str, path: str, expected: str) -> None:
    made = inserted(text, path.split("."), VALUE)
    assert made == expected
    found = YAML(typ="safe", pure=True).load(made)
    for key in path.split("."):
        found = found[key]
    assert found == VALUE


def test_json_stays_json() -> None:
    """Its keys are quoted, its tabs stay."""
    made = inserted(
        '{\n\t"tiers": {"sql": {"log": {"path": "/a"}}}\n}\n', ["tiers", "sql", "log", "limits"], VALUE
    )
    limits = '{"iops": 500, "latency": {"1": "2ms", "8": "16ms"}}'
    assert made == f'{{\n\t"tiers": {{"sql": {{"log": {{"path": "/a", "limits": {limits}}}}}}}\n}}\n'


def test_what_stands_for_other_places_too_is_left_alone() -> None:
    """An alias would be changed everywhere; a merge is of its own place."""
    with pytest.raises(Shared):
        inserted("log: &disk {path: /a}\ndata: *disk\n", ["data", "limits"], VALUE)
    merged = "base: &disk {path: /a}\ndata: {<<: *disk}\nlog: {<<: *disk}\n"
    assert inserted(merged, ["data", "limits"], VALUE) == merged.replace(
        "data: {<<: *disk}", f"data: {{limits: {FLOW}, <<: *disk}}"
    )
