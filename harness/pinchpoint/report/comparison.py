"""Collects the content of a comparison for all formats: headline, tables, and the evidence of both sides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pinchpoint.base import wording
from pinchpoint.base.figures import CHANGED
from pinchpoint.base.objects import JsonObject
from pinchpoint.report import comparison_tables as tables
from pinchpoint.report.evidence import Finding, findings
from pinchpoint.report.tables import Section, Table
from pinchpoint_collectors.common.counts import counted

CLAIM: Mapping[str | None, str] = {
    "caused_by": "Caused by the studied factor",
    "associated_with": "Changed together; the cause is not shown",
    None: "No conclusion: a run is not valid",
}
NO_CHANGE = "No change"
SURE: Mapping[str | None, str] = {
    "between_runs": "intervals are of repeated runs (Welch on logarithms, Holm over the declared figures)",
    "within_run": "intervals are within these runs (block bootstrap): another run may differ",
    None: "no ratio has an interval, so no change is reported",
}
MOVED: Mapping[bool | None, str] = {
    True: "The bottleneck moved",
    False: "The bottleneck did not move",
    None: "Not known",
}


SECTIONS = (
    Section("ratios", "Changes", ("judged",)),
    Section("figures", "Both sides", ("scenarios", "sources", "disks", "cpus", "efforts", "bursts")),
    Section("work", "Work done", ("work", "capacity")),
    Section("differences", "Differences between the sides", ("studied", "confounders")),
    Section("cost", "Cost and prediction", ("cost", "what_if")),
)


@dataclass(frozen=True, slots=True)
class SideWords:
    """One side of a comparison as text.

    Attributes:
        label: name of the side.
        runs: for each run: directory, start, outcome in words, summary.
        named: the bottleneck; "" if none was found.
        confidence: confidence in the bottleneck; "" if none was found.
        findings: findings with evidence from the verdict of the first run.
        next_words: the next bottleneck; "" if unknown.
    """

    label: str
    runs: tuple[JsonObject, ...]
    named: str
    confidence: str
    findings: tuple[Finding, ...]
    next_words: str


@dataclass(frozen=True, slots=True)
class ComparisonReport:
    """The content of a comparison, independent of the format.

    Attributes:
        content: content of comparison.json.
        alarms: warnings that are shown before everything else.
        changed: the main changes as short text.
        sides: base side and other side.
        tables: all tables by name, in reading order.
    """

    content: JsonObject
    alarms: tuple[str, ...]
    changed: tuple[str, ...]
    sides: tuple[SideWords, SideWords]
    tables: Mapping[str, Table]

    @property
    def claim_words(self) -> str:
        """Return the conclusion in a few words, and ``NO_CHANGE`` if nothing changed."""
        calls = {row["call"] for row in self.content["changes"]}
        if self.content["claim"] and not (self.content["bottleneck"]["moved"] or calls & CHANGED):
            return NO_CHANGE
        return CLAIM[self.content["claim"]]

    @property
    def moved_words(self) -> str:
        """Return in a few words whether the bottleneck moved."""
        return MOVED[self.content["bottleneck"]["moved"]]

    @property
    def headline(self) -> str:
        """Return in one sentence whether the bottleneck moved."""
        return str(self.lines["headline"])

    @property
    def sure_words(self) -> str:
        """Return the basis of the intervals of the declared figures; of several bases, the weakest."""
        kinds = {row["interval"] for row in self.content["changes"] if row["declared"] and row["interval"]}
        return SURE[next((kind for kind in ("within_run", "between_runs") if kind in kinds), None)]

    @property
    def lines(self) -> JsonObject:
        """Return headline, cause, next step and gain.

        A comparison of an older version has only a summary and the gains.
        """
        older = {"headline": self.content["summary"], "gain": " ".join(self.content.get("gains") or ())}
        result: JsonObject = self.content.get("lines") or older
        return result

    @property
    def runs_words(self) -> str:
        """Return the number of runs of each side: ``dev: 1 run, prod: 1 run``."""
        counts = [(side.label, len(side.runs)) for side in self.sides]
        return ", ".join(f"{label}: {counted(count, 'run')}" for label, count in counts)


def gather(content: JsonObject) -> ComparisonReport:
    """Collect the content of a comparison report from comparison.json."""
    made = (
        tables.studied(content),
        tables.confounders(content),
        tables.work(content),
        *tables.beside(content),
        tables.efforts(content),
        tables.cost(content),
        tables.capacity(content),
        tables.judged(content),
        *tables.what_if(content),
    )
    invalid = [
        f"The run {run['directory']} ({side['label']}) is not valid: its figures are shown, "
        "but no conclusion is drawn."
        for side in (content["base"], content["other"])
        for run in side["runs"]
        if run["outcome"] == "invalid"
    ]
    return ComparisonReport(
        content=content,
        alarms=(*invalid, *_different_work(content)),
        changed=tuple(content["main_changes"]),
        sides=(_side(content, "base"), _side(content, "other")),
        tables={table.name: table for table in made},
    )


def _different_work(content: JsonObject) -> Iterator[str]:
    """Yield one sentence if the plans differ. It replaces a sentence for each difference."""
    plans = [row for row in content["confounders"] if row["area"] == "plan"]
    if not plans:
        return
    facts = dict.fromkeys(tables.fact_words(row["what"]) for row in plans)
    some = ", ".join(list(facts)[:_SHOWN]) + (
        f" and {len(facts) - _SHOWN} more" if len(facts) > _SHOWN else ""
    )
    yield f"These runs did different work: their plans differ in {some}. This may cause the changes."


_SHOWN = 4


def _side(content: JsonObject, name: str) -> SideWords:
    side, blame = content[name], content["bottleneck"][name]
    first = side["runs"][0]
    verdict = {
        "outcome": first["outcome"],
        "bottleneck": blame,
        "candidates": first["candidates"],
        "next": first["next"],
        # A verdict without scenarios counts as a recording, and its facts would lose their time range.
        "scenarios": {
            row["scenario"]: row
            for row in content["changes"]
            if row["about"] == "scenario" and row[name] is not None
        },
    }
    return SideWords(
        label=side["label"],
        runs=tuple({**run, "outcome_words": wording.OUTCOME[run["outcome"]]} for run in side["runs"]),
        named=wording.bottleneck_name(blame) if blame else "",
        confidence=str((blame or {}).get("confidence") or ""),
        findings=findings(verdict),
        next_words=wording.following(verdict),
    )
