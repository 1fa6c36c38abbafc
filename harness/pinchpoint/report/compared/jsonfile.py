"""The JSON format of a comparison: comparison.json and the tables the page shows, in base units."""

from __future__ import annotations

import json
from typing import Any

from pinchpoint.report.compared.report import ComparisonReport

SCHEMA = "pinchpoint.comparison-report/1"


def write(report: ComparisonReport) -> str:
    """The document; its keys: report/README.md."""
    return json.dumps(content(report), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def content(report: ComparisonReport) -> dict[str, Any]:
    """report.json before it is written: JSON types only, null for "not measured"."""
    return {
        "schema": SCHEMA,
        "headline": report.headline,
        "alarms": list(report.alarms),
        "comparison": dict(report.content),
        "tables": {name: [dict(row) for row in table.rows] for name, table in report.tables.items()},
    }
