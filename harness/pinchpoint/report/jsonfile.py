"""Writes the JSON format: the content of the page in base units (null = not measured)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pinchpoint.report.brief import Gathered, brief_of
from pinchpoint.report.cover import PLAIN, Cover
from pinchpoint.report.document import PlainReport
from pinchpoint.report.report import Report
from pinchpoint.report.tables import Table

SCHEMA = "pinchpoint.report/1"
COMPARED_SCHEMA = "pinchpoint.comparison-report/1"
_ENVIRONMENT = ("versions", "hosts", "generators", "collectors", "content", "plan", "farm")


def write(report: Gathered, cover: Cover = PLAIN) -> str:
    """Return the document as JSON text. docs/run-directory.md describes its keys."""
    titled = {} if cover.title is None else {"title": cover.title}
    match report:
        case Report():
            return _document({**titled, **content(report)})
        case PlainReport():
            return json.dumps({**titled, **report.content}, indent=1) + "\n"
    return _document(
        {
            **titled,
            "schema": COMPARED_SCHEMA,
            **_first(report),
            "headline": report.headline,
            "alarms": list(report.alarms),
            "comparison": dict(report.content),
            "tables": _rows(report.tables),
        }
    )


def content(report: Report) -> dict[str, Any]:
    """Return the content of report.json, with JSON types only."""
    manifest = report.run.manifest
    return {
        "schema": SCHEMA,
        "run": {key: manifest.get(key) for key in ("name", "state", "seed", "started", "ended", "phases")},
        **_first(report),
        "headline": report.summary.headline,
        "alarms": list(report.alarms),
        "verdict": dict(report.verdict),
        "farm": [_plain(machine) for machine in report.machines],
        "findings": [_plain(finding) for finding in report.findings],
        "tables": _rows(report.tables),
        "timeline": {
            "start_s": report.clock.start_s,
            "bucket_s": report.clock.bucket_s,
            "panels": [_plain(panel) for panel in report.panels],
        },
        "latency": [_plain(each) for each in report.distributions],
        "warnings": report.warnings,
        "environment": {key: manifest.get(key) for key in _ENVIRONMENT},
    }


def _first(report: Gathered) -> dict[str, Any]:
    """Return the first page: the decision, the answers and the checks."""
    brief = brief_of(report)
    return {
        "decision": brief.decision,
        "answers": [_plain(one) for one in brief.answers],
        "checks": [_plain(one) for one in brief.checks],
    }


def _document(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _rows(tables: Mapping[str, Table]) -> dict[str, list[dict[str, Any]]]:
    return {name: [dict(row) for row in table.rows] for name, table in tables.items()}


def _plain(record: Any) -> dict[str, Any]:
    """Return a frozen record as a JSON object. Tuples become lists."""
    plain: dict[str, Any] = json.loads(json.dumps(asdict(record), allow_nan=False))
    return plain
