"""Formats a verdict or a comparison as text for a terminal."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pinchpoint.base import units, wording
from pinchpoint.base.objects import JsonObject, object_at
from pinchpoint.base.text import one_line, titled, width, wrapped
from pinchpoint.report import run_tables, verdict_tables
from pinchpoint.report.tables import Table, grid, run_header
from pinchpoint_collectors.common.counts import counted

if TYPE_CHECKING:
    from pinchpoint.report.comparison import ComparisonReport

BY: Mapping[str, str] = {
    "command": "as the command says",
    "plan": "as the plan declares",
    "default": "by default",
}
_LOADS = ("scenario", "now_per_s", "load", "p50_s", "p95_s", "p99_s", "error_ratio", "dropped")
_CRAWL = ("source", "count", "failures", "skipped", "duration_s", "rate_per_s", "repository_latency_s")
_LABEL = 7
"""Width of the label column (LIMIT, DO, ROOM and others) in characters, with the space after it."""
_MOST_WARNINGS = 3


def verdict_text(verdict: JsonObject, manifest: JsonObject, directory: object) -> str:
    """Return the first screen of a run: bottleneck, confidence, load and advice. No sentence is repeated.

    Args:
        verdict: content of verdict.json.
        manifest: content of the run's manifest.json.
        directory: folder of the run, as shown in commands.
    """
    summary = wording.Summary.saved(verdict)
    blocks: list[Iterable[str]] = [
        [wrapped(summary.headline), _run_words(verdict, manifest)],
        _limit(verdict, summary.lead),
        _loads(verdict, manifest),
        [*_goals(verdict), *_outlook(verdict), *_warnings(verdict), _why(directory)],
    ]
    return "\n\n".join("\n".join(block) for block in map(list, blocks) if block)


def details_text(verdict: JsonObject) -> str:
    """Return the details below the first screen: evidence, advice, levels, crawl, further warnings."""
    blocks = [_facts(verdict), *(titled(*one) for one in _lists(verdict))]
    blocks += [
        "\n".join(block) for block in (_levels(verdict), _objectives(verdict), _crawl(verdict)) if block
    ]
    return "\n\n".join(block for block in blocks if block)


def _labelled(label: str, text: str) -> str:
    return wrapped(text, label.ljust(_LABEL))


def _run_words(verdict: JsonObject, manifest: JsonObject) -> str:
    """Return the name, time, duration and validity of a run on one or more lines."""
    first, *parts = run_header(manifest, verdict)
    lines = [one_line(first)]
    for part in map(one_line, parts):
        if len(lines[-1]) + len(part) + len(" · ") <= width():
            lines[-1] += f" · {part}"
        else:
            lines.append(part)
    return "\n".join(lines)


def _limit(verdict: JsonObject, rest: str) -> Iterator[str]:
    """Yield the figures behind the headline, other users of the resource, and reasons for low confidence."""
    blame = object_at(verdict, "bottleneck")
    if rest:
        yield _labelled("LIMIT", rest) if blame.get("confidence") else wrapped(rest)
    others = [
        f"{use['tier']} {units.percent(use['share_ratio'])}"
        for use in (blame.get("uses") or ())[1:]
        if use["share_ratio"] >= LEAST_USE
    ]
    if others:
        yield _labelled("", f"Other users: {', '.join(others)}.")
    if sure := wording.sure(verdict):
        reasons = "; ".join(str(why) for why in blame.get("why_not_more") or ())
        level = f"{sure} confidence" if blame.get("confidence") else sure
        yield _labelled("SURE", f"{level}{f': {reasons}' if reasons else ''}".rstrip(".") + ".")


LEAST_USE = 0.005
"""Smallest share of a resource (0.5 %) for which a user of it is listed."""


def _loads(verdict: JsonObject, manifest: JsonObject) -> Iterator[str]:
    """Yield the table of scenarios: offered load, measured rate, latency and errors."""
    table = run_tables.scenarios(manifest, verdict, run_tables.offered_words)
    if table.rows:
        yield from grid(table, _LOADS, less=("p50_s", "dropped", "load", "p99_s"))


def _goals(verdict: JsonObject) -> Iterator[str]:
    """Yield each missed objective, and the number of met objectives."""
    rows = verdict_tables.objectives(verdict).rows
    missed = [row for row in rows if row["met"] is not True]
    for row in missed:
        result = "not measured" if row["met"] is None else f"{row['measured']}, missed"
        yield _labelled("GOAL", f"{row['scenario']} {row['objective']}: {result}")
    met = len(rows) - len(missed)
    if met:
        yield _labelled("GOAL", f"{met} of {len(rows)} met")


def _outlook(verdict: JsonObject) -> Iterator[str]:
    """Yield advice, headroom, the result of the causal test and the next bottleneck."""
    advice = verdict.get("advice") or ()
    invalid = verdict["outcome"] == "invalid"
    for row in advice if invalid else advice[:1]:
        gain = wording.gain_of(row)
        more = f"Gain: {gain}." if gain else ""
        text = str(row["text"] if invalid else f"{row['what'].removesuffix('.')}.")
        yield _labelled("DO", f"{text} {more}".strip())
    if verdict.get("experiment") and not advice:
        yield _labelled("DO", str(verdict["experiment"]))
    served_at_least = object_at(verdict, "capacity_at_least_per_s")
    for name, served in served_at_least.items() if verdict["outcome"] != "not_reached" else ():
        yield _labelled("ROOM", f"at least {units.per_second(served)} of {name} was served.")
    result = object_at(verdict, "headroom")
    if verdict.get("headroom_ratio") is not None:
        why = str(result.get("why") or "")
        yield _labelled("ROOM", f"{wording.room(verdict['headroom_ratio'])}{f', {why}' if why else ''}.")
    elif verdict.get("bottleneck") and not invalid:
        why = str(result.get("why") or "it was not calculated")
        if why not in "; ".join(map(str, verdict["bottleneck"].get("why_not_more") or ())):
            yield _labelled("ROOM", f"unknown: {why}.")
    if proof := verdict_tables.proof_words(verdict):
        yield _labelled("PROOF", proof)
    following = verdict.get("next")
    if following and verdict.get("bottleneck"):
        used = wording.used_now(following)
        at = f", now at {used}" if used else ""
        yield _labelled("NEXT", f"{wording.bare(wording.place(following))}{at}.")


def _warnings(verdict: JsonObject) -> Iterator[str]:
    """Yield the first new warnings and the number of further warnings."""
    result = _remaining_warnings(verdict)
    for warning in result[:_MOST_WARNINGS]:
        yield _labelled("WARN", _begun(warning))
    if more := len(result) - _MOST_WARNINGS:
        yield from [_labelled("", f"and {more} more (--explain)")] if more > 0 else ()


def _remaining_warnings(verdict: JsonObject) -> list[str]:
    """Return the warnings that are not in the summary and not among the reasons for the confidence."""
    blame = object_at(verdict, "bottleneck")
    answer = " ".join([str(verdict["summary"]), *map(str, blame.get("why_not_more") or ())]).lower()
    return [
        str(each) for each in verdict.get("warnings") or () if str(each).lower().rstrip(".") not in answer
    ]


def _begun(warning: str) -> str:
    """Return the warning with a capital letter, unless it begins with a name (``orders: ...``)."""
    return wording.capitalised(warning) if warning.partition(" ")[0].isalpha() else warning


def _why(directory: object) -> str:
    """Return the command that shows the evidence, on one line so that it can be pasted."""
    return f"{'WHY'.ljust(_LABEL)}pinchpoint analyse {shlex.quote(one_line(str(directory)))} --explain"


def comparison_text(content: JsonObject) -> str:
    """Return a comparison as text in the width of the terminal. ``content`` is from comparison.json.

    The order is: answer, judged figures, confidence, next step, differences in the work, other differences,
    warnings. The report has all other figures. The text has no line end.
    """
    from pinchpoint.comparison.work import work_differences  # noqa: PLC0415 -- a run's verdict needs none
    from pinchpoint.report.comparison import gather  # noqa: PLC0415 -- likewise

    report = gather(content)
    answer = report.lines
    blocks = [wrapped(answer["headline"])]
    blocks += [_judged_figures(report)] if report.tables["judged"].rows else []
    result = [_labelled(label, answer[key]) for label, key in _COMPARED.items() if answer.get(key)]
    blocks += ["\n".join(result)] if result else []
    unlike = work_differences((row["name"], row["unlike"]) for row in report.tables["work"].rows)
    if unlike:
        texts = (f"{wording.listed(names)}: {why}" for why, names in unlike.items())
        blocks.append(titled("These runs did different work:", texts))
    confounders = [row for row in report.tables["confounders"].rows if row["matters"]]
    if confounders and unlike:
        blocks.append(
            wrapped(
                f"{counted(len(confounders), 'other difference')} may affect the bottleneck (report.html)."
            )
        )
    elif confounders:
        rest = len(confounders) - _MOST_DIFFERENCES
        lines = [wrapped(_difference(row), "  - ") for row in confounders[:_MOST_DIFFERENCES]]
        lines += [f"  and {rest} more (report.html)"] if rest > 0 else []
        blocks.append("\n".join(["Other differences that may affect the bottleneck:", *lines]))
    if content["warnings"]:
        blocks.append("\n".join(_labelled("WARN", _begun(str(each))) for each in content["warnings"]))
    return "\n\n".join(blocks)


_COMPARED = {"SURE": "cause", "DO": "next_step", "GAIN": "gain"}
"""Label -> key of the text in comparison.json. These lines follow the figures."""
_MOST_DIFFERENCES = 6


def _judged_figures(report: ComparisonReport) -> str:
    """Return one row per judged figure: both sides, their ratio, its interval and the conclusion."""
    table, (base, other) = report.tables["judged"], report.sides
    titles = {"base": base.label, "other": other.label}
    result = {one.key: replace(one, title=titles.get(one.key, one.title)) for one in table.columns}
    columns = [result[key] for key in ("name", "base", "other", "ratio", "ci95", "call")]
    lines = grid(Table("judged", "", columns, table.rows), less=("ci95",))
    why = dict.fromkeys(str(row["why_no_interval"]) for row in table.rows if row["why_no_interval"])
    by = f"Judged {BY[report.content['metrics_by']]}; {report.sure_words}."
    return "\n".join([*lines, *(wrapped(f"{wording.capitalised(each)}.") for each in why), wrapped(by)])


def _difference(row: JsonObject) -> str:
    values = (row[key] or "not recorded" for key in ("in_base", "in_other"))
    where = "" if row["area"] == "plan" else f" of {row['where']}"
    return f"{row['fact']}{where}: {' → '.join(values)}"


def table_text(table: Table) -> str:
    """Return a table with its heading as text; "" if it has no rows."""
    lines = grid(table, indent="  ")
    return "\n".join([f"{table.title}:", *lines]) if table.rows else ""


def _facts(verdict: JsonObject) -> str:
    blame = verdict.get("bottleneck")
    lines = []
    named = [("Evidence", blame)] if blame else []
    named += [("Suspected", candidate) for candidate in verdict.get("candidates") or ()]
    for title, each in named:
        lines.append(wrapped(f"{title}: {wording.place(each)}"))
        lines += [wrapped(str(fact["fact"]), "  - ") for fact in each.get("evidence") or ()]
    return "\n".join(lines)


def _lists(verdict: JsonObject) -> Iterator[tuple[str, Iterable[str], str]]:
    """Yield the title, the sentences and the bullet of each list."""
    outlook = [verdict_tables.now_words(verdict), verdict_tables.headroom_words(verdict)]
    if verdict.get("next"):
        outlook += [wording.following(verdict), verdict_tables.then_words(verdict)]
    if verdict.get("experiment") and verdict.get("advice"):
        outlook.append(f"What would decide it: {verdict['experiment']}")
    yield "Outlook:", filter(None, outlook), "  - "
    yield "What to do:", verdict_tables.advice_words(verdict), "  - "
    yield "These figures assume:", verdict_tables.assumed(verdict), "  - "
    yield "More warnings:", _remaining_warnings(verdict)[_MOST_WARNINGS:], "  ! "


def _objectives(verdict: JsonObject) -> list[str]:
    table = verdict_tables.objectives(verdict)
    if not table.rows:
        return []
    missed = dict.fromkeys(
        str(row["holds"]) for row in table.rows if row.get("holds") and row["met"] is False
    )
    keys = [column.key for column in table.columns if column.key != "holds"]
    reported = [wrapped(f"{wording.capitalised(text)}.", "  ") for text in missed]
    return ["Objectives:", *grid(table, keys, indent="  "), *reported]


def _levels(verdict: JsonObject) -> list[str]:
    table = verdict_tables.levels(verdict)
    if not table.rows:
        return []
    lines = [wrapped(sentence, "  ") for sentence in verdict_tables.level_words(verdict)]
    return ["Load levels:", *grid(table, indent="  "), *lines]


def _crawl(verdict: JsonObject) -> list[str]:
    table = verdict_tables.crawl(verdict)
    if not table.rows:
        return []
    partly = [str(row["source"]) for row in table.rows if row.get("complete") is False]
    note = [wrapped(f"Not crawled to the end: {wording.listed(partly)}.", "  ")] if partly else []
    return ["Crawl:", *grid(table, _CRAWL, _CRAWL[:0:-1], "  "), *note]
