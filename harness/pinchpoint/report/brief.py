"""Builds page one of each document: answers to seven questions, with the checks and charts behind them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from statistics import mean
from typing import Any, Literal

from pinchpoint.base import units, wording
from pinchpoint.base.clock import seconds_of
from pinchpoint.base.groups import by_key
from pinchpoint.base.objects import JsonObject, object_at
from pinchpoint.data.timeaxis import day_and_time
from pinchpoint.data.timeline import Axis, Panel
from pinchpoint.report.comparison import SECTIONS as COMPARED_SECTIONS
from pinchpoint.report.comparison import ComparisonReport
from pinchpoint.report.comparison_tables import figure_name
from pinchpoint.report.document import Answer, PlainReport, Plot, PlotLine, TestCase, plot_lines
from pinchpoint.report.report import SECTIONS, Report
from pinchpoint.report.run_tables import offered_words
from pinchpoint.report.tables import Section, Table, run_header
from pinchpoint_collectors.common.counts import counted

Gathered = Report | ComparisonReport | PlainReport
Decision = Literal["go", "no-go", "not decided"]

TESTED = "What was tested"
DECIDED = "Go or no-go"
BOTTLENECK = "Bottleneck"
HEADROOM = "Headroom"
DO = "What to do"
NEXT = "Next bottleneck"
NOT_SHOWN = "What the figures do not show"
QUESTIONS = (TESTED, DECIDED, BOTTLENECK, HEADROOM, DO, NEXT, NOT_SHOWN)
"""The questions, in reading order."""

_MOST_WARNINGS = 3
_VALIDITY = ("set", "runs", "workloads")
"""Groups of checks that concern the validity of the run and not the farm."""


@dataclass(frozen=True, slots=True)
class Brief:
    """The first page of each document, and the other parts of the report.

    Attributes:
        kind: subject of the document: ``Load test``, ``Comparison``, ``Storage probe``.
        title: title of the document.
        at: UTC time of the subject, used as the date of the document; None if not recorded.
        decision: go, no-go, or not decided.
        answers: answers to ``QUESTIONS``, in the same order. A question that does not apply has no answer.
        main: table beside the answers; None if there is no table.
        checks: results of all checks, one per test case.
        evidence: facts that prove the bottleneck, as sentences.
        plots: charts as numbers, with at most 300 points per line.
        sections: title and tables of each further section.
        warnings: warnings without duplicates.
    """

    kind: str
    title: str
    at: str | None
    decision: Decision
    answers: tuple[Answer, ...]
    main: Table | None
    checks: tuple[TestCase, ...]
    evidence: tuple[str, ...]
    plots: tuple[Plot, ...]
    sections: tuple[tuple[str, tuple[Table, ...]], ...]
    warnings: tuple[str, ...]

    @property
    def made_at(self) -> datetime:
        """Return the date of the document: the UTC time of the subject.

        The same input gives the same file.
        """
        result = (
            datetime.fromtimestamp(seconds_of(self.at), UTC) if self.at else datetime(1980, 1, 1, tzinfo=UTC)
        )
        return result.replace(microsecond=0, tzinfo=None)

    def answer(self, question: str) -> Answer | None:
        """Return the answer to one of ``QUESTIONS``; None if the question does not apply."""
        return next((one for one in self.answers if one.question == question), None)


def brief_of(report: Gathered) -> Brief:
    """Build the first page of a report."""
    match report:
        case Report():
            return _of_run(report)
        case ComparisonReport():
            return _of_comparison(report)
    return _of_document(report)


def _decided(checks: Iterable[TestCase]) -> tuple[Decision, list[TestCase]]:
    """Return the decision with the checks that led to it.

    No-go: a check failed. Not decided: a check has no result. Go: all checks passed.
    """
    result = list(checks)
    for state, decision in (("failed", "no-go"), ("error", "not decided"), ("skipped", "not decided")):
        if these := [one for one in result if one.state == state]:
            return decision, these  # type: ignore[return-value]  # the words of a Decision
    return ("go" if result else "not decided"), result


# ---- a run ----------------------------------------------------------------------------------------


def _of_run(report: Report) -> Brief:
    manifest, verdict = report.run.manifest, report.verdict
    checks = tuple(_run_checks(report))
    decision, words = _run_decision(report, checks)
    header = run_header(manifest, verdict)
    sure = f"Confidence: {wording.sure(verdict)}." if wording.sure(verdict) else ""
    # The answers do not repeat another table of the page.
    answers = [
        Answer(TESTED, ", ".join(header), _loads(manifest)),
        Answer(DECIDED, decision.capitalize(), words),
        Answer(BOTTLENECK, _named(report.summary), " ".join(filter(None, (sure, report.summary.lead)))),
        *_outlook(report),
        Answer(NOT_SHOWN, *_not_shown(report)),
    ]
    evidence = [each.fact for finding in report.findings[:1] for each in finding.evidence]
    first = ("scenarios", "advice", "proof", "periods", "considered")
    sections = (Section("evidence", "Evidence", first[1:]), *SECTIONS)
    return Brief(
        kind="Load test" if not report.clock.samples_only else "Recording",
        title=header[0],
        at=manifest.get("started"),
        decision=decision,
        answers=tuple(answers),
        main=report.tables["scenarios"] if report.tables["scenarios"].rows else report.tables["disks"],
        checks=checks,
        evidence=tuple(dict.fromkeys(evidence)),
        plots=tuple(_run_plots(report)),
        sections=tuple(_filled(sections, report.tables)),
        warnings=(*report.alarms, *report.warnings),
    )


def _loads(manifest: JsonObject) -> str:
    planned = object_at(manifest, "plan", "scenarios")
    lines = [f"{name}: {offered_words(one['load'])}" for name, one in planned.items() if one.get("load")]
    return f"Load: {', '.join(lines)}." if lines else ""


def _run_checks(report: Report) -> Iterator[TestCase]:
    """Yield the checks of a run: validity, objectives, stop rules, and acknowledged writes that are lost."""
    verdict, manifest = report.verdict, report.run.manifest
    outcome = str(verdict["outcome"])
    state = str(manifest.get("state") or "finished")
    if state != "finished":
        text = wording.STATE.get(state, f"This run is in the state {state!r}, not finished.")
        yield TestCase("run", "the run is complete", "error", text)
    yield TestCase(
        "verdict",
        "the run is valid",
        "error" if outcome == "invalid" else "passed",
        report.summary.headline if outcome == "invalid" else str(report.summary),
    )
    for row in report.tables["objectives"].rows:
        text = f"measured {row['measured']}" if row["measured"] else units.NOT_MEASURED
        name = f"{row['scenario']} {row['objective']}"
        # the objective is one of servers: its result contains the reason
        if row["met"] is None and row.get("figure"):
            text = str(row["result"])
        # An objective that was not measured counts as missed: `pinchpoint run` exits with status 1 in both
        # cases.
        yield TestCase("objectives", name, "passed" if row["met"] else "failed", text)
    yield from _guards(report)
    for row in report.tables["writes"].rows:
        lost = row["missing"] + row["different"]
        text = f"{lost:,} of {row['records']:,} records read back are lost"
        yield TestCase(
            "writes",
            f"acknowledged writes of {row['scenario']} are kept",
            "failed" if lost else "passed",
            text,
        )


def _guards(report: Report) -> Iterator[TestCase]:
    """Yield a check for each stop rule: failed if the rule ended the run, skipped if it was not measured."""
    broken = [event for event in report.run.events if event.get("event") == "guard"]
    warned = [event for event in report.run.events if event.get("event") == "warning"]
    rules: Sequence[JsonObject] = object_at(report.run.manifest, "plan").get("stop_when") or ()
    unnamed = any(event.get("stop_rule") is None for event in broken)  # an older version wrote no rule number
    for number, rule in enumerate(rules):
        ended, missing = (
            [str(event[key]) for event in events if event.get("stop_rule") == number]
            for events, key in ((broken, "why"), (warned, "sentence"))
        )
        if unnamed and not missing:
            missing = ["the run does not record which rule ended it"]
        state: Any = "failed" if ended else "skipped" if missing else "passed"
        yield TestCase("stop rules", _rule_name(rule), state, [*ended, *missing, ""][0])
    for event in broken:
        if event.get("stop_rule") not in range(len(rules)):  # the stored plan does not contain the rule
            yield TestCase("stop rules", "no stop rule ended the run", "failed", str(event["why"]))


def _rule_name(rule: JsonObject) -> str:
    """Return a stop rule as a condition: ``cpu.busy_ratio of sql not above 90 % for 30 s``."""
    where = " ".join(str(rule[key]) for key in ("scenario", "host", "tier", "role") if rule.get(key))
    of, lasting = f" of {where}" if where else "", units.seconds(rule["for_s"]) if rule.get("for_s") else ""
    if rule.get("silent"):
        return f"{rule['silent']}{of} not silent for {lasting}"
    side = "above" if rule.get("above") is not None else "below"
    return f"{rule['metric']}{of} not {side} {units.of_metric(rule['metric'], rule[side])} for {lasting}"


def _run_decision(report: Report, checks: Sequence[TestCase]) -> tuple[Decision, str]:
    """Return go, no-go or not decided against the objectives, and the reason."""
    verdict = report.verdict
    if verdict["outcome"] == "invalid":
        return "not decided", "This run is not valid."
    decided = [one for one in checks if one.group != "verdict"]
    decision, these = _decided(decided)
    rows = report.tables["objectives"].rows
    if decision == "no-go":
        return decision, f"{'; '.join(f'{one.name}: {one.message}' for one in these)}."
    if decision == "not decided" and these:
        return decision, wording.capitalised("; ".join(one.message for one in these))
    if not rows:
        return "not decided", "No objectives were declared."
    met = f"all {len(rows)} objectives are met" if len(rows) > 1 else "the objective is met"
    return "go", f"At this load {met}."


def _outlook(report: Report) -> Iterator[Answer]:
    """Yield the answers about headroom, the first advice with its gain, and the next bottleneck."""
    verdict = report.verdict
    headroom = object_at(verdict, "headroom")
    if verdict.get("headroom_ratio") is not None:
        yield Answer(HEADROOM, wording.room(verdict["headroom_ratio"]), _sentence(headroom.get("why")))
    else:
        yield Answer(HEADROOM, "not known", _sentence(headroom.get("why")))
    advice = (verdict.get("advice") or ())[:1]
    for first in advice:
        gain = wording.gain_of(first)
        result = f"Gain: {gain or 'not known'}." if verdict["outcome"] != "invalid" or gain else ""
        assumed = _sentence(f"assuming {first['assumes']}") if gain else ""
        yield Answer(DO, _sentence(first["what"]), result, assumed)
    if not advice:
        nothing = "Nothing at this load." if verdict["outcome"] == "not_reached" else "not known"
        yield Answer(DO, _sentence(verdict.get("experiment")) or nothing)
    if following := verdict.get("next"):
        used = wording.used_now(following)
        result = f"Now at {used}." if used else ""
        first = "" if verdict.get("bottleneck") else "This resource is the first to reach its limit."
        yield Answer(
            NEXT,
            wording.capitalised(wording.bottleneck_name(following)),
            " ".join(filter(None, (result, first))),
        )
    else:
        yield Answer(NEXT, "not known")


def _named(summary: wording.Summary) -> str:
    """Return the headline. The label "Bottleneck" is removed, because the question already says it."""
    return wording.capitalised(summary.text if summary.label == BOTTLENECK else summary.headline)


def _closed(text: str) -> str:
    """Return the text with a full stop at the end."""
    return f"{text.rstrip('.')}."


def _sentence(text: object) -> str:
    """Return the text with a capital letter and a full stop; "" if the text is empty."""
    result = str(text or "").rstrip(".")
    return f"{wording.capitalised(result)}." if result else ""


def _not_shown(report: Report) -> tuple[str, str]:
    """Return the general limit of a single run, and the missing measurements and warnings of this run."""
    verdict = report.verdict
    blame = object_at(verdict, "bottleneck")
    result = [_sentence(each) for each in blame.get("why_not_more") or ()]
    if verdict.get("experiment") and verdict.get("advice"):
        result.append(_closed(f"What would decide it: {verdict['experiment']}"))
    if missing := len(report.tables["not_measured"].rows):
        result.append(f"Not measured: {counted(missing, 'figure')} (see Data quality).")
    said = " ".join(result).lower()
    warnings = [one for one in report.warnings if one.lower().rstrip(".") not in said]
    if warnings:
        result.append(_closed(f"Warnings: {'; '.join(one.rstrip('.') for one in warnings[:_MOST_WARNINGS])}"))
    return "One run does not show how much runs vary.", " ".join(result)


def _run_plots(report: Report) -> Iterator[Plot]:
    for panel in report.panels:
        if panel.series:
            yield _panel_plot(panel, report.clock.start_s)
    yield from level_plots(report)


def level_plots(report: Report) -> Iterator[Plot]:
    """Yield throughput and p95 over the load levels, one line per scenario."""
    levels: Sequence[JsonObject] = report.verdict.get("levels") or ()
    if not levels:  # the load has no levels
        return
    by: tuple[tuple[str, str, str, Axis], ...] = (
        ("throughput", "Throughput by load", "throughput_per_s", "rate"),
        ("p95", "p95 by load", "p95_s", "latency"),
    )
    rows = [*zip(levels, report.tables["levels"].rows, strict=True)]
    for name, title, key, axis in by:
        lines = plot_lines((row["scenario"], level["level"], row[key]) for level, row in rows)
        if any(len(line.points) > 1 for line in lines):
            unit = "users" if levels[0]["unit"] == "users" else "offered per second"
            yield Plot(f"levels-{name}", title, axis, unit, lines)


def _panel_plot(panel: Panel, start_s: float) -> Plot:
    lines = tuple(
        PlotLine(one.name, tuple((point.t_s, point.mean) for point in one.points)) for one in panel.series
    )
    values = [y for line in lines for _, y in line.points]
    return Plot(
        panel.name,
        panel.title,
        panel.axis,
        "seconds since the load began",
        lines,
        start_s,
        logarithmic=panel.logarithmic and bool(values) and min(values) > 0,
    )


def _filled(
    sections: Iterable[Section], tables: Mapping[str, Table]
) -> Iterator[tuple[str, tuple[Table, ...]]]:
    """Yield the title and the tables of each section that has a table with rows."""
    for section in sections:
        result = tuple(tables[name] for name in section.tables if name in tables and tables[name].rows)
        if result:
            yield section.title, result


# ---- a comparison ---------------------------------------------------------------------------------

_CALLS: Mapping[str, str] = {"worse": "failed", "inconclusive": "skipped"}


def _of_comparison(report: ComparisonReport) -> Brief:
    content, (base, other) = report.content, report.sides
    checks = tuple(_compared_checks(report))
    decision, these = _decided(one for one in checks if one.group == "figures")
    if content["claim"] is None:
        decision, why = "not decided", "A run is not valid: no conclusion is drawn."
    else:
        why = _compared_decision(decision, these)
    started = [str(run["started"]) for side in report.sides for run in side.runs if run["started"]]
    at = min(started, default=None)
    named = " → ".join(f"{side.named or 'none found'} ({side.label})" for side in report.sides)
    differs = [row for row in content["confounders"] if row["matters"]]
    unknown = [f"{counted(len(differs), 'other difference')} may affect the bottleneck"] if differs else []
    unknown += [str(one) for one in content["warnings"]]
    answers = [
        Answer(
            TESTED,
            f"{base.label} compared with {other.label}",
            f"{report.runs_words}; first run {day_and_time(at) or 'at a time that is not recorded'}.",
        ),
        Answer(DECIDED, decision.capitalize(), why),
        Answer(
            BOTTLENECK,
            f"{report.moved_words}: {named}",
            " ".join(
                filter(
                    None,
                    (
                        _sentence(report.claim_words),
                        _sentence("; ".join(content["claim_because"])),
                        report.lines.get("gain"),
                    ),
                )
            ),
        ),
        Answer(HEADROOM, *_rooms(report)),
        *([Answer(DO, report.lines["next_step"])] if report.lines.get("next_step") else []),
        Answer(
            NEXT,
            "; ".join(
                f"{side.label}: {_next_of(content, key)}"
                for side, key in zip(report.sides, _KEYS, strict=True)
            ),
        ),
        Answer(
            NOT_SHOWN, _sentence(report.sure_words), " ".join(map(_closed, unknown[: _MOST_WARNINGS + 1]))
        ),
    ]
    evidence = [
        f"{side.label}: {each.fact}"
        for side in report.sides
        for finding in side.findings[:1]
        for each in finding.evidence
    ]
    return Brief(
        kind="Comparison",
        title=f"{base.label} and {other.label}",
        at=at,
        decision=decision,
        answers=tuple(answers),
        main=_short(report.tables["judged"]),
        checks=checks,
        evidence=tuple(dict.fromkeys(evidence)),
        plots=tuple(_compared_plots(report)),
        sections=tuple(_filled(COMPARED_SECTIONS, report.tables)),
        warnings=(*report.alarms, *map(str, content["warnings"])),
    )


_KEYS = ("base", "other")


def _compared_checks(report: ComparisonReport) -> Iterator[TestCase]:
    for side in report.sides:
        for run in side.runs:
            state: Any = "error" if run["outcome"] == "invalid" else "passed"
            yield TestCase("runs", f"{side.label} {run['directory']} is valid", state, run["summary"])
    for row in report.tables["judged"].rows:
        cells = {column.key: column.cell(row) for column in report.tables["judged"].columns}
        text = f"{cells['base']} → {cells['other']}: {cells['ratio']} (95 % interval: {cells['ci95']})"
        state = _CALLS.get(str(row["call"]), "passed")
        yield TestCase("figures", cells["name"], state, f"{row['call']}: {text}")


def _compared_decision(decision: Decision, these: Sequence[TestCase]) -> str:
    names = "; ".join(one.name for one in these)
    match decision:
        case "no-go":
            return f"Worse: {names}."
        case "go":
            return (
                "No declared figure is worse."
                if len(these) != 1
                else f"The declared figure is not worse: {names}."
            )
    return f"Not conclusive: {names}." if these else "No figure was measured on both sides."


def _rooms(report: ComparisonReport) -> tuple[str, str]:
    lines = []
    for side in report.sides:
        ratios = [run.get("headroom_ratio") for run in side.runs]
        known = [ratio for ratio in ratios if ratio is not None]
        lines.append(f"{side.label}: {wording.headroom(min(known)) if known else 'not known'}")
    return "; ".join(lines), "Of several runs the smallest." if any(
        len(s.runs) > 1 for s in report.sides
    ) else ""


def _next_of(content: JsonObject, key: str) -> str:
    following = content[key]["runs"][0].get("next")
    return wording.bottleneck_name(following) if following else "not known"


def _short(table: Table) -> Table:
    """Return the table with only the columns that fit into a ticket."""
    wanted = ("name", "base", "other", "ratio", "ci95", "call")
    columns = [column for key in wanted for column in table.columns if column.key == key]
    return replace(table, columns=columns, note="")


def _narrow(table: Table) -> Table:
    """Return the table with only the columns and rows that fit on the first page."""
    columns = [
        column
        for column in table.columns
        if max((len(column.cell(row)) for row in table.rows), default=0) <= _LONG
    ]
    whole = len(columns) == len(table.columns) and len(table.rows) <= _MOST_ROWS
    return table if whole else replace(table, columns=columns, rows=table.rows[:_MOST_ROWS], note="")


_LONG, _MOST_ROWS = 60, 12


def _compared_plots(report: ComparisonReport) -> Iterator[Plot]:
    content, sides = report.content, report.sides
    bars = plot_lines(
        (figure_name(row), place, row["ratio"] or None)
        for place, row in enumerate(report.tables["judged"].rows)
    )
    if bars:
        title = f"{sides[1].label} as a multiple of {sides[0].label}"
        yield Plot("ratios", title, "ratio", "", bars, bars=True)
    for panel in object_at(content, "timelines", "base").get("panels") or ():
        lines = tuple(
            line
            for side, key in zip(sides, _KEYS, strict=True)
            for line in _timeline(content, key, side.label, panel)
        )
        if lines:
            axis: Axis = panel["axis"]
            yield Plot(panel["name"], panel["title"], axis, "seconds since measuring began", lines)


def _timeline(content: JsonObject, key: str, label: str, wanted: JsonObject) -> Iterator[PlotLine]:
    """Yield the lines of one side of a panel, at times common to both sides.

    Each point is the mean over the longer of the two sides' steps.
    """
    kept = object_at(content["timelines"] or {}, key)
    step = max(float(side["step_s"]) for side in content["timelines"].values() if side)
    for panel in kept.get("panels") or ():
        if panel["name"] != wanted["name"]:
            continue
        for line in panel["lines"]:
            result = by_key(
                (round((kept["first_s"] + place * kept["step_s"]) / step) * step, float(value))
                for place, value in enumerate(line["values"])
                if value is not None
            )
            yield PlotLine(
                f"{label} {line['name']}", tuple((at, mean(values)) for at, values in result.items())
            )


# ---- anything else --------------------------------------------------------------------------------


def _of_document(doc: PlainReport) -> Brief:
    title = " ".join(doc.title).strip()
    decision, these = _decided(doc.checks)
    if decision == "go" and all(one.group in _VALIDITY for one in doc.checks):
        decision = "not decided"
    if not these or (decision == "not decided" and these[0].state == "passed"):
        words = "No objectives are set."
    elif decision == "go":
        words = "Every check passed."
    else:
        words = _sentence("; ".join((one.message or one.name).rstrip(".") for one in these))
        if len(these) > _MOST_WARNINGS:
            words = f"{len(these)} checks {'failed' if decision == 'no-go' else 'have no result'}."
    when = day_and_time(doc.at) if doc.at else ""
    given = {one.question: one for one in doc.answers}
    usual = {
        TESTED: Answer(TESTED, ", ".join(filter(None, (f"{doc.kind}: {title}", when)))),
        DECIDED: Answer(DECIDED, decision.capitalize(), words),
        BOTTLENECK: Answer(BOTTLENECK, doc.summary.headline, doc.summary.then(doc.more).lead),
        DO: Answer(DO, "not known"),
        NEXT: Answer(NEXT, "not known"),
        NOT_SHOWN: Answer(
            NOT_SHOWN, " ".join(map(_closed, doc.notes[:_MOST_WARNINGS])) or "No gap is known."
        ),
    }
    answers = {**usual, **given}
    tables = [table for part in doc.parts for table in part.tables if table.rows]
    return Brief(
        kind=doc.kind,
        title=title,
        at=doc.at,
        decision=decision,
        answers=tuple(answers[question] for question in QUESTIONS if question in answers),
        main=_narrow(tables[0]) if tables else None,
        checks=doc.checks,
        evidence=doc.reasons,
        plots=doc.plots,
        sections=tuple(
            (part.title, result)
            for part in doc.parts
            if (result := tuple(table for table in part.tables if table.rows))
        ),
        warnings=doc.notes,
    )
