"""Lists the findings of a verdict: each fact with its threshold, its source and its query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pinchpoint.base import units, wording
from pinchpoint.base.clock import seconds_of
from pinchpoint.base.objects import JsonObject
from pinchpoint.data.series import each_core
from pinchpoint.store.schema import OPERATIONS, SAMPLES


def samples_query(metric: str, host: str | None, instance: str | None, window: tuple[str, str] | None) -> str:
    """Return the command that lists the samples of a metric in a time range of UTC ISO times.

    None for the host, the instance or the range means all.

    A sample is in the range if the middle of its interval is in the range. The analysis uses the same rule,
    so the query gives the same mean.
    """
    where = [f"metric = {_quoted(metric)}"]
    if host is not None:
        where.append(f"host = {_quoted(host)}")
    if instance is not None:
        names = [_quoted(each) for each in each_core(instance)]
        where.append(f"instance = {names[0]}" if len(names) == 1 else f"instance IN ({', '.join(names)})")
    if window is not None:
        low, high = (round(seconds_of(stamp) * 1e9) for stamp in window)
        where.append(f"time_ns - 5e8 * interval_s >= {low} AND time_ns - 5e8 * interval_s < {high}")
    columns = "make_timestamp_ns(time_ns) AS utc, host, instance, value, weight, interval_s"
    return _select(columns, SAMPLES, where, "ORDER BY time_ns")


def operations_query(scenario: str | None, window: tuple[str, str] | None) -> str:
    """Return the command that counts operations by second and outcome, for one scenario or for all."""
    where = ["NOT contains(operation, '/')"]
    if scenario is not None:
        where.append(f"scenario = {_quoted(scenario)}")
    if window is not None:
        low, high = (f"{seconds_of(stamp):.3f}".removesuffix(".000") for stamp in window)
        where.append(f"time_s >= {low} AND time_s < {high}")
    names = "make_timestamp(time_s * 1000000) AS utc, scenario, operation, outcome"
    sums = "sum(count) AS count, sum(dropped) AS dropped"
    return _select(f"{names}, {sums}", OPERATIONS, where, "GROUP BY ALL ORDER BY ALL")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _select(columns: str, file: str, where: list[str], rest: str) -> str:
    """Return the query as one shell word in double quotes, because SQL contains many single quotes."""
    sql = " ".join(["SELECT", columns, "FROM", _quoted(file), "WHERE", " AND ".join(where), rest])
    for special in ("\\", '"', "$", "`"):
        sql = sql.replace(special, "\\" + special)
    return f'duckdb -c "{sql}"'


_KINDS_OF_EVIDENCE = {
    **wording.PROVES,
    "causal": "causal test",
    "context": "context",
}


_OF_OPERATIONS = frozenset({"operations", ""})
"""Metric prefixes of the columns of operations.parquet. All other metrics are in samples.parquet."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One measured fact of a finding.

    Attributes:
        fact: the fact as a sentence.
        kind: kind of evidence as text. The fields metric, host and instance say where the fact was measured,
            and are "" if that does not apply.
        threshold: the threshold with its source; "" for context.
        query: command that shows the raw rows.
    """

    fact: str
    kind: str
    metric: str
    host: str
    instance: str
    threshold: str
    query: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A resource in the verdict, with all measured facts about it.

    Attributes:
        title: role of the resource in the verdict: "Bottleneck", "Runner-up", "Suspected".
        place: name of the resource as text.
        meaning: explanation of the kind of limit.
        confidence: high, medium or low; "" without a confidence.
        why_not_more: reasons why the confidence is not higher.
        window: UTC start and end of the analysed time; None: the whole run.
        evidence: facts about the resource.
    """

    title: str
    place: str
    meaning: str
    confidence: str
    why_not_more: tuple[str, ...]
    window: tuple[str, str] | None
    evidence: tuple[Evidence, ...]


def findings(verdict: JsonObject) -> tuple[Finding, ...]:
    """Return the bottleneck, the runner-up and the candidates of a verdict."""
    first = "What limits this run" if verdict["outcome"] == "invalid" else "Bottleneck"
    alone = not verdict.get("scenarios")
    spans = {"causal": _tested(verdict), **dict.fromkeys(("E2", "E3"), _load_steps(verdict))}
    named = [(first, verdict.get("bottleneck")), ("Runner-up", verdict.get("runner_up"))]
    named += [("Suspected", candidate) for candidate in verdict.get("candidates") or ()]
    meanings = {**wording.MEANING, **wording.WITHOUT_OPERATIONS} if alone else wording.MEANING
    return tuple(
        _finding(title, blame, meanings, None if alone else blame.get("window"), spans)
        for title, blame in named
        if blame
    )


def _tested(verdict: JsonObject) -> tuple[str, str] | None:
    """Return the UTC begin and end of the causal test, which runs after the analysed time."""
    windows = (verdict.get("proof") or {}).get("windows")
    return (windows[0]["from"], windows[-1]["to"]) if windows else None


def _load_steps(verdict: JsonObject) -> tuple[str, str] | None:
    """Return the UTC begin and end of all levels of the varied load, which E2 and E3 are based on."""
    levels: Sequence[JsonObject] = verdict.get("levels") or []
    own = [level for level in levels if level["scenario"] == levels[0]["scenario"]]
    return (own[0]["from"], own[-1]["to"]) if own else None


def _finding(
    title: str,
    blame: JsonObject,
    meanings: Mapping[str, str],
    window: Sequence[str] | None,
    spans: Mapping[str, tuple[str, str] | None],
) -> Finding:
    """Return a finding. ``window`` is the time range of its figures; None: the whole recording.

    ``spans`` maps a kind of evidence to its time range, if that range is different.
    """
    span = (window[0], window[1]) if window else None
    return Finding(
        title=title,
        place=wording.place(blame),
        meaning=_meaning(blame, meanings),
        confidence=str(blame.get("confidence") or ""),
        why_not_more=tuple(blame.get("why_not_more") or ()),
        window=span,
        evidence=tuple(
            _evidence(fact, blame, spans.get(str(fact.get("evidence"))) or span)
            for fact in blame.get("evidence") or ()
        ),
    )


def _meaning(blame: JsonObject, meanings: Mapping[str, str]) -> str:
    facts = [fact for fact in blame.get("evidence") or () if fact.get("evidence") in wording.PROVES]
    if facts and all(fact.get("value") is None for fact in facts):
        return "This resource was not measured, so it may be the bottleneck."
    meaning = meanings.get(str(blame.get("kind")), "")
    others = [str(tier) for tier in blame.get("shared_with") or ()]
    return f"{meaning} It is shared with {wording.listed(others)}." if others else meaning


def _evidence(fact: JsonObject, blame: JsonObject, span: tuple[str, str] | None) -> Evidence:
    metric = str(fact.get("metric") or "")
    host = str(fact["host"] if "host" in fact else blame.get("host") or "")
    instance = fact.get("instance") if "instance" in fact else blame.get("instance")
    if metric.partition(".")[0] not in _OF_OPERATIONS:
        query = samples_query(metric, host or None, None if instance is None else str(instance), span)
    else:
        query = operations_query(str(instance) if instance and not host else None, span)
    return Evidence(
        fact=str(fact["fact"]),
        kind=_kind(fact),
        metric=metric,
        host=host,
        instance=str(instance or ""),
        threshold=_threshold(metric, fact),
        query=query,
    )


def _kind(fact: JsonObject) -> str:
    """Return the kind of evidence as text; "not measured" if the fact has no value."""
    if fact.get("value") is None and fact.get("evidence") in wording.PROVES:
        return units.NOT_MEASURED
    return _KINDS_OF_EVIDENCE.get(str(fact.get("evidence") or "context"), "")


def _threshold(metric: str, fact: JsonObject) -> str:
    """Return the threshold as text: the rule and its source, or the value and its source."""
    value, source = fact.get("threshold"), str(fact.get("source") or "")
    authority = wording.SOURCES.get(source, source)
    # A declared limit is the user's own value. Its rule only says how close to the limit counts as reached.
    if fact.get("rule") and source != "declared":
        return f"{authority}: {fact['rule']}"
    if value is None:
        return ""
    shown = units.of_metric(metric, float(value))
    return f"{shown} ({authority})" if authority else shown
