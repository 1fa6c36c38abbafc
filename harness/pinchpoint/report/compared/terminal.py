"""A comparison as plain sentences for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pinchpoint.report.compared.report import gather
from pinchpoint.report.terminal import wrapped


def comparison_text(content: Mapping[str, Any]) -> str:
    """What a comparison found, wrapped at 88 columns; ``content`` is comparison.json's.

    In this order: the answer, what else differs, in what the work differs, warnings. The figures are in the
    report. The last line has no line end.
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
    if content["warnings"]:
        lines = [wrapped(str(warning), "  ! ") for warning in content["warnings"]]
        blocks.append("\n".join(["Warnings:", *lines]))
    return "\n\n".join(blocks)


def _fact(row: Mapping[str, Any]) -> str:
    values = (row[key] or "not recorded" for key in ("in_base", "in_other"))
    return f"{row['fact']} of {row['where']}: {' → '.join(values)}"
