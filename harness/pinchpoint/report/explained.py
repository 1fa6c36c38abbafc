"""Formats the checks behind a verdict as text for ``pinchpoint analyse --explain``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from pinchpoint.base import units, wording
from pinchpoint.base.groups import by_key
from pinchpoint.base.objects import JsonObject
from pinchpoint.base.text import wrapped
from pinchpoint.data.timeaxis import zone_words
from pinchpoint.report import evidence, verdict_tables
from pinchpoint_collectors.common.counts import counted

HELD: Mapping[bool, str] = {True: "yes", False: "no"}
DISKS: Mapping[str, str] = {
    "disk_cap": "at a limit of the disk",
    "disk_burst_exhausted": "burst credits spent",
    "disk_warm_up": "still warming up",
    "disk_device": "limited by the device",
    "disk_concurrency": "limited by the queue depth",
    "disk_latency": "limited by latency",
}
STAGES: Mapping[str, str] = {
    "measure": "the measure phase",
    "peak": "in the bursts",
    "base": "between the bursts",
}

BRACKETS = (
    "How this was judged. In brackets: the rule and the number of measured values. A rule without a source "
    "is Pinchpoint's own (docs/rules.md)."
)


def explanation_text(verdict: JsonObject, offset_s: int = 0) -> str:
    """Return the checks as text, in the order of the steps in docs/rules.md.

    Args:
        verdict: content of verdict.json.
        offset_s: offset of the displayed times from UTC, in seconds.
    """
    result = verdict["explanation"]
    blocks = [
        ["0. Is the run valid?", *_gates(result["gates"])],
        ["1. Load levels", *_stages(verdict, offset_s), *_timeline(verdict, offset_s)],
        ["2. Knee", wrapped(str(verdict["knee"].get("why") or "not looked for"), "  - ")],
        ["3. to 5. What was considered, the most used first", *_considered(result["considered"])],
        ["6. Why this answer", *(wrapped(str(each), "  - ") for each in result["reasons"])],
        ["7. What would change it", *(wrapped(str(each), "  - ") for each in result["would_change"])],
        ["8. Queries on the run directory", *_queries(verdict)],
    ]
    return "\n\n".join([wrapped(BRACKETS), *("\n".join(block) for block in blocks if len(block) > 1)])


def _gates(gates: list[JsonObject]) -> Iterator[str]:
    for gate in gates:
        mark = "ok" if gate["holds"] else "FAILED"
        yield wrapped(f"{gate['fact']['fact']}{_basis(gate['fact'])}: {mark}", "  - ")
    if not gates:
        yield "  - nothing was measured that could be checked"


def _stages(verdict: JsonObject, offset_s: int) -> Iterator[str]:
    steady = {True: "steady", False: "not steady", None: "too short to judge whether it was steady"}
    for stage in verdict["stages"]:
        cut = f", its first {units.seconds(float(stage['cut_s']))} left out" if stage["cut_s"] else ""
        [(begin, end)] = verdict_tables.spans([stage], offset_s)
        span = f"{begin} to {end} {zone_words(offset_s)}"
        name = STAGES.get(stage["name"], stage["name"])
        yield wrapped(f"{name}: {span}, {steady[stage['steady']]}{cut}", "  - ")


def _timeline(verdict: JsonObject, offset_s: int) -> Iterator[str]:
    rows = verdict["timeline"]
    for row, (begin, end) in zip(rows, verdict_tables.spans(rows, offset_s), strict=True):
        what = wording.without_device(row) if row["kind"] else "nothing saturated"
        level = f" ({row['level']})" if row["level"] else ""
        yield wrapped(f"{begin} to {end}{level}: {what}", "  - ")


def _considered(rows: list[JsonObject]) -> Iterator[str]:
    """Yield each resource with its checks.

    Evidence that is missing for every resource is listed once at the end.
    """
    measured = [row for row in rows if any(check["holds"] is not None for check in row["checks"])]
    missing = [set(_unknown(row["checks"]).items()) for row in measured]
    of_all = set.intersection(*missing) if len(missing) > 1 else set()
    for row in rows:
        used = (
            "utilisation not known"
            if row["used_ratio"] is None
            else f"{units.percent(row['used_ratio'])} used"
        )
        kind = f", {DISKS[row['kind']]}" if row["kind"] in DISKS else ""
        answer = dict.fromkeys([f"{used}{kind}", str(row["why"])] if row in measured else [str(row["why"])])
        yield wrapped(f"{row['name']}: {'; '.join(answer)}", "  * ")
        if row in measured:
            yield from _checks(row["checks"], of_all)
    for why, kinds in sorted(of_all):
        yield wrapped(f"of all: {kinds}: not known; {why}", "  * ")


def _checks(checks: list[JsonObject], left_out: Collection[tuple[str, str]]) -> Iterator[str]:
    """Yield a paragraph for each kind of evidence with a result, then a paragraph for each missing one."""
    for check in checks:
        if check["holds"] is not None:
            fact = check["fact"]
            asked = f"{wording.ASKED[check['evidence']]}: {HELD[check['holds']]}."
            yield wrapped(f"{asked} {wording.capitalised(str(fact['fact']))}{_basis(fact)}", "      ")
    for why, kinds in _unknown(checks).items():
        if (why, kinds) not in left_out:
            yield wrapped(f"{kinds}: not known; {why}", "      ")


def _unknown(checks: list[JsonObject]) -> dict[str, str]:
    """Return the reason -> the kinds of evidence that are missing for this reason."""
    result = by_key(
        (str(check["fact"]["fact"]), wording.ASKED[check["evidence"]])
        for check in checks
        if check["holds"] is None
    )
    return {why: " and ".join(kinds) for why, kinds in result.items()}


def _basis(fact: JsonObject) -> str:
    """Return the rule of a fact and the number of its samples, in brackets."""
    parts = []
    declared = fact.get("source") == "declared"
    if fact.get("threshold") is not None and (declared or not fact.get("rule")):
        parts.append(f"limit {units.of_metric(fact['metric'], float(fact['threshold']))}, {fact['source']}")
    if fact.get("rule"):  # the distance that counts as "at the limit" is also a rule of Pinchpoint
        own = declared or fact["source"] == "design"
        source = "" if own else f", by {wording.SOURCES.get(fact['source'], fact['source'])}"
        parts.append(f"{fact['rule']}{source}")
    if fact.get("samples") is not None:
        of_operations = "." not in fact["metric"] or fact["metric"].startswith("operations.")
        parts.append(counted(fact["samples"], "operation" if of_operations else "sample"))
    return f" [{'; '.join(parts)}]" if parts else ""


def _queries(verdict: JsonObject) -> Iterator[str]:
    """Yield the queries. They are not wrapped, so that they can be pasted."""
    seen = set()
    for finding in evidence.findings(verdict):
        for each in finding.evidence:
            if each.query not in seen:
                seen.add(each.query)
                yield f"  {each.query}"
