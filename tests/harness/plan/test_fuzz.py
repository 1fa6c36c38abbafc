"""A value of any type in any field gives sentences and never a traceback.

Damaged text is tested by ``make fuzz`` (tests/fuzz).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness.plan.samples import REAL_FARM, WHOLE_PLAN, write
from ruamel.yaml import YAML

from pinchpoint.base.errors import InputError
from pinchpoint.plan import load


def problems(farm: Path, plan: Path) -> tuple[str, ...]:
    """Return the message of ``load``; "" for valid files."""
    try:
        load(farm, plan)
    except InputError as error:
        return error.problems or ("an error without a problem",)
    return ()


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
    """Yield the value with each part replaced in turn, and at last the whole."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in list(inner):
        for other in changed(each, instead):
            copy = value.copy()
            copy[key] = other
            yield copy
    yield instead


@pytest.mark.parametrize("name", ["farm", "plan"])
def test_no_kind_of_value_raises_anything_else(name: str, tmp_path: Path) -> None:
    """A list, mapping, null or number in place of every field gives a message each time."""
    written = dict(zip(("farm", "plan"), write(tmp_path, *EVERY_FIELD.values()), strict=True))
    assert problems(*written.values()) == ()
    whole = YAML(typ="safe").load(EVERY_FIELD[name])
    for instead in KINDS_OF_VALUE:
        for content in changed(whole, instead):
            written[name].write_text(json.dumps(content))
            for line in problems(*written.values()):
                assert line.isprintable(), content
