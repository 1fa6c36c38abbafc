"""A verdict, or a comparison, as plain sentences for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pinchpoint.base import units, wording
from pinchpoint.base.text import WIDTH, aligned, one_line, wrapped
from pinchpoint.report import verdict_tables
from pinchpoint.report.comparison import ComparisonReport, gather
from pinchpoint.report.tables import Table, right_of

BY: Mapping[str, str] = {
    "command": "as the command says",
    "plan": "as the plan declares",
    "default": "by default",
}
_CRAWL = ("source", "count", "failures", "skipped", "duration_s", "rate_per_s", "repository_latency_s")


def verdict_text(verdict: Mapping[str, Any]) -> str:
    """What a run proved, wrapped at 88 columns; ``verdict`` is verdict.json's content.

    In this order: what gives way, the evidence, what would give way next, the experiment that would decide,
    objectives, the crawl, warnings. Parts that do not apply are left out; the last line has no line end.
    """
    blocks = [f"{wording.OUTCOME[str(verdict['outcome'])]}.", wrapped(str(verdict["summary"]))]
    blocks += [block for block in (_facts(verdict), _outlook(verdict)) if block]
    todo = [wrapped(text, "  - ") for text in verdict_tables.advice_words(verdict)]
    parts = (["What to do:", *todo] if todo else [], _levels(verdict), _objectives(verdict), _crawl(verdict))
    blocks += ["\n".join(block) for block in parts if block]
    warnings = [wrapped(str(warning), "  ! ") for warning in verdict.get("warnings") or ()]
    if warnings:
        blocks.append("\n".join(["Warnings:", *warnings]))
    return "\n\n".join(blocks)


def comparison_text(content: Mapping[str, Any]) -> str:
    """What a comparison found, wrapped at 88 columns; ``content`` is comparison.json's.

    In this order: the answer, what else differs, in what the work differs, the figures that were judged,
    warnings. All other figures are in the report. The last line has no line end.
    """
    report = gather(content)
    blocks = [f"{report.claim_words}.", wrapped(str(content["summary"]))]
    confounders = [row for row in report.tables["confounders"].rows if row["matters"]]
    if confounders:
        lines = [wrapped(f"{_difference(row)}; may act upon {row['acts_on']}", "  - ") for row in confounders]
        blocks.append("\n".join(["What else differs and may act upon what gives way first:", *lines]))
    unlike = [row for row in report.tables["work"].rows if row["unlike"]]
    if unlike:
        lines = [wrapped(f"{row['about']} {row['name']}: {row['unlike']}", "  - ") for row in unlike]
        blocks.append("\n".join(["Not the same work:", *lines]))
    blocks += [_judged_figures(report)] if report.tables["judged"].rows else []
    if content["warnings"]:
        lines = [wrapped(str(warning), "  ! ") for warning in content["warnings"]]
        blocks.append("\n".join(["Warnings:", *lines]))
    return "\n\n".join(blocks)


def _judged_figures(report: ComparisonReport) -> str:
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


def _difference(row: Mapping[str, Any]) -> str:
    values = (row[key] or "not recorded" for key in ("in_base", "in_other"))
    return f"{row['fact']} of {row['where']}: {' → '.join(values)}"


def table_text(table: Table) -> str:
    """A table under its heading; "" where it has no rows."""
    lines = _grid(table, [column.key for column in table.columns])
    return "\n".join([f"{table.title}:", *lines]) if table.rows else ""


def _facts(verdict: Mapping[str, Any]) -> str:
    blame = verdict.get("bottleneck")
    lines = []
    named = [("Evidence", blame)] if blame else []
    named += [("Suspected", candidate) for candidate in verdict.get("candidates") or ()]
    for title, each in named:
        sure = f" (confidence: {each['confidence']})" if each.get("confidence") else ""
        lines.append(wrapped(f"{title}, {wording.place(each)}{sure}:"))
        lines += [wrapped(str(fact["fact"]), "  - ") for fact in each.get("evidence") or ()]
        lines += [wrapped(str(why), "    ") for why in each.get("why_not_more") or ()]
    return "\n".join(lines)


def _outlook(verdict: Mapping[str, Any]) -> str:
    sentences = list(filter(None, [verdict_tables.now_words(verdict)]))
    if verdict.get("headroom"):
        sentences.append(verdict_tables.headroom_words(verdict))
    elif verdict.get("headroom_ratio") is not None:
        sentences.append(f"Headroom: {units.percent(verdict['headroom_ratio'])}.")
    for name, rate in (verdict.get("capacity_at_least_per_s") or {}).items():
        sentences.append(f"{name}: at least {units.per_second(rate)} can be served.")
    if verdict.get("next"):
        sentences.append(wording.following(verdict))
        sentences += [verdict_tables.then_words(verdict)] if verdict.get("then") else []
    if proof := verdict_tables.proof_words(verdict):
        sentences.append(proof)
    if verdict.get("experiment"):
        sentences.append(f"What would decide it: {verdict['experiment']}")
    return "\n".join(wrapped(sentence) for sentence in sentences)


def _objectives(verdict: Mapping[str, Any]) -> list[str]:
    table = verdict_tables.objectives(verdict)
    if not table.rows:
        return []
    missed = dict.fromkeys(
        str(row["holds"]) for row in table.rows if row.get("holds") and row["met"] is False
    )
    keys = [column.key for column in table.columns if column.key != "holds"]
    told = [wrapped(f"{wording.capitalised(text)}.", "  ") for text in missed]
    return ["Objectives:", *_grid(table, keys), *told]


def _levels(verdict: Mapping[str, Any]) -> list[str]:
    table = verdict_tables.levels(verdict)
    if not table.rows:
        return []
    said = [wrapped(sentence, "  ") for sentence in verdict_tables.level_words(verdict)]
    return ["Load levels:", *_grid(table, [column.key for column in table.columns]), *said]


def _crawl(verdict: Mapping[str, Any]) -> list[str]:
    table = verdict_tables.crawl(verdict)
    if not table.rows:
        return []
    partly = [str(row["source"]) for row in table.rows if row.get("complete") is False]
    note = [wrapped(f"Not crawled to the end: {wording.listed(partly)}.", "  ")] if partly else []
    return ["Crawl:", *_grid(table, _CRAWL), *note]


def _grid(table: Table, keys: Sequence[str]) -> Iterator[str]:
    """The chosen columns, as wide as they must be; names that do not fit are cut with an ellipsis."""
    columns = [column for key in keys for column in table.columns if column.key == key]
    rows = [[column.title for column in columns]]
    rows += [[one_line(column.cell(row)) for column in columns] for row in table.rows]
    others = sum(2 + max(map(len, each)) for each in list(zip(*rows, strict=True))[1:])
    room = max(WIDTH - 2 - others, 8)
    cut = ([_cut(name, room).ljust(8), *rest] for name, *rest in rows)
    lines = aligned(list(cut), right_of(columns))
    yield from (f"  {line}" for line in lines)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
