"""A comparison as plain sentences for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pinchpoint.base.text import wrapped
from pinchpoint.report.compared.report import ComparisonReport, gather

BY: Mapping[str, str] = {
    "command": "as the command says",
    "plan": "as the plan declares",
    "default": "by default",
}


def comparison_text(content: Mapping[str, Any]) -> str:
    """What a comparison found, wrapped at 88 columns; ``content`` is comparison.json's.

    In this order: the answer, what else differs, in what the work differs, the figures that were judged,
    warnings. All other figures are in the report. The last line has no line end.
    """
    report = gather(content)
    blocks = [f"{report.claim_words}.", wrapped(str(content["summary"]))]
    confounders = [row for row in report.tables["confounders"].rows if row["matters"]]
    if confounders:
        lines = [wrapped(f"{_fact(row)}; may act upon {row['acts_on']}", "  - ") for row in confounders]
        blocks.append("\n".join(["What else differs and may act upon what gives way first:", *lines]))
    unlike = [row for row in report.tables["work"].rows if row["unlike"]]
    if unlike:
        lines = [wrapped(f"{row['about']} {row['name']}: {row['unlike']}", "  - ") for row in unlike]
        blocks.append("\n".join(["Not the same work:", *lines]))
    blocks += [_judged(report)] if report.tables["judged"].rows else []
    if content["warnings"]:
        lines = [wrapped(str(warning), "  ! ") for warning in content["warnings"]]
        blocks.append("\n".join(["Warnings:", *lines]))
    return "\n\n".join(blocks)


def _judged(report: ComparisonReport) -> str:
    """One line a figure: its ratio, the interval, the call."""
    table = report.tables["judged"]
    cells = {column.key: column for column in table.columns}
    lines = []
    for row in table.rows:
        said = {key: cells[key].cell(row) for key in ("name", "base", "other", "ratio", "ci95", "call")}
        why = f" ({row['why_no_interval']})" if row["why_no_interval"] else ""
        lines.append(
            wrapped(
                f"{said['name']}: {said['base']} → {said['other']}, {said['ratio']}, 95 % interval "
                f"{said['ci95']}: {said['call']}{why}",
                "  - ",
            )
        )
    by = BY[report.content["metrics_by"]]
    return "\n".join([wrapped(f"Judged, {by} ({report.sure_words}):"), *lines])


def _fact(row: Mapping[str, Any]) -> str:
    values = (row[key] or "not recorded" for key in ("in_base", "in_other"))
    return f"{row['fact']} of {row['where']}: {' → '.join(values)}"
