"""Builds the tables and sentences made from verdict.json alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pinchpoint.analysis.crawls import STAGES
from pinchpoint.base import units, wording
from pinchpoint.base.objects import JsonObject, object_at
from pinchpoint.base.wording import capitalised
from pinchpoint.data.timeaxis import day_and_time, zone_words
from pinchpoint.report.tables import Row, Table, columns

_MET = {True: "met", False: "missed", None: None}


def of_load(level: JsonObject) -> str:
    """Return a load level of plan.yaml as text, such as ``8 users``."""
    return next(units.load_level(float(amount), unit) for unit, amount in level.items() if amount is not None)


def levels(verdict: Row) -> Table:
    """Build the table of load levels: throughput, latency, errors and objectives of each level."""
    rows = [
        {
            **row,
            "level": units.load_level(row["level"], row["unit"]),
            "p95_s": row["response_p95_s"] if row["response_p95_s"] is not None else row["service_p95_s"],
            "objectives": _MET[row["objectives_met"]],
        }
        for row in verdict.get("levels") or ()
    ]
    return Table(
        "levels",
        "Load levels",
        columns(
            "scenario",
            "level number: load",
            "throughput_per_s: throughput",
            "service_p50_s: service p50",
            "p95_s: p95",
            "error_ratio: errors",
            "dropped number: dropped | -",
            "objectives: objectives | -",
        ),
        rows,
        note=" ".join(level_words(verdict)) + " All else in this report is of the last level.",
        empty="",  # most loads have no levels
    )


def level_words(verdict: Row) -> Iterator[str]:
    """Yield sentences on the knee and on the highest load at which the objectives are met."""
    if not verdict.get("levels"):
        return
    knee = object_at(verdict, "knee")
    yield f"{capitalised(str(knee.get('why', '')))}."
    for scenario, held in object_at(verdict, "objectives_held").items():
        if held["level"] is None:
            yield f"The objectives of {scenario} were met at no level."
            continue
        up_to = units.load_level(held["level"], held["unit"])
        more = "the highest level" if held["all_held"] else "missed above"
        done = units.per_second(held["throughput_per_s"])
        never = held.get("never_per_s")  # the objective is a target throughput
        but = f"; no level reached the {units.per_second(never)} of the objective" if never else ""
        yield f"The objectives of {scenario} were met up to {up_to} ({done} done; {more}{but})."


def objectives(verdict: Row) -> Table:
    """Build the table of objectives and their results."""
    rows = [
        {
            **row,
            "scenario": wording.objective_of(row),
            "objective": wording.objective_name(row),
            "measured": _measured(row),
        }
        for row in verdict.get("objectives") or ()
    ]
    return Table(
        "objectives",
        "Objectives",
        columns(
            f"scenario: {'of' if any(row.get('figure') for row in rows) else 'scenario'}",
            "objective",
            "measured",
            *(["holds: up to what load"] if any(row.get("holds") for row in rows) else []),
            "result",
        ),
        rows,
        empty="The plan sets no objectives.",
    )


def _measured(row: Row) -> str | None:
    """Return the measured value of an objective.

    A missed time objective without a value counts as endless.
    """
    if row["value"] is None:
        return units.ENDLESS if row["met"] is False else None
    where = f" ({row['where']})" if row.get("where") else ""
    return units.of_metric(row["metric"], row["value"]) + where


def crawl(verdict: Row) -> Table:
    """Build the table of crawled content sources, one row per source."""
    return Table(
        "crawl",
        "Crawl",
        columns(
            "source",
            "count number: documents",
            "failures number",
            "skipped number",
            "duration_s: duration",
            "rate_per_s: rate",
            "rate_active_per_s: rate while active",
            "repository_latency_s: repository latency",
            "repository_latency_p50_s: p50",
            "repository_latency_p95_s: p95",
            "bytes",
            "complete",
        ),
        list(verdict.get("crawl") or ()),
        note="Rate = documents ÷ duration, over the whole crawl, warm-up included; rate while active = mean "
        "over the seconds in which a document was done. Repository latency: from request to last byte.",
        empty="",  # many plans have no crawl
    )


def bursts(verdict: Row) -> Table:
    """Build the table of bursts, one row per burst."""
    result = {
        name: figures["bursts"]
        for name, figures in object_at(verdict, "scenarios").items()
        if "bursts" in figures
    }
    rows = [
        {"scenario": name, "number": place, **burst, "recovery": _recovery_words(burst)}
        for name, bursts in result.items()
        for place, burst in enumerate(bursts, start=1)
    ]
    return Table(
        "bursts",
        "Bursts",
        columns(
            "scenario",
            "number: burst",
            "start_s: starts after",
            "duration_s: lasts",
            "offered number",
            "done number",
            "dropped number",
            "p50_s: p50",
            "p99_s: p99",
            "backlog number: outstanding at its end",
            "calm_s: p50 between bursts",
            "recovery number: time to recover",
        ),
        rows,
        note="Starts after: since the measure phase began, in whole seconds (in tens of seconds in runs over "
        "an hour). p50 and p99: of the operations in the burst. Outstanding at its end: operations that were "
        "due, and neither done nor dropped. Recovered: the median latency is "
        "within 10 % of that between bursts.",
        empty="No burst came in the measure phase." if result else "",
    )


def _recovery_words(burst: Row) -> str:
    """Return the recovery time of a burst as text, or the reason why it is unknown."""
    if burst.get("recovery_s") is not None:
        return units.seconds(burst["recovery_s"])
    if "watched_s" not in burst:
        return "not recovered"  # verdicts of older versions have no ``watched_s``
    if not burst["watched_s"]:
        return "not seen: no time after it"
    if burst["calm_s"] is None:
        return "no calm between bursts"
    return f"not within {units.seconds(burst['watched_s'])}"


def writes(verdict: Row) -> Table:
    """Build the table of acknowledged writes that were read back, one row per scenario."""
    rows = [
        {
            "scenario": name,
            **figures["writes"],
            "examples": ", ".join(str(item) for item in figures["writes"].get("examples") or ()),
            "not_read": "; ".join(figures["writes"].get("not_read") or ()),
        }
        for name, figures in object_at(verdict, "scenarios").items()
        if figures.get("writes")
    ]
    return Table(
        "writes",
        "Acknowledged writes, read back",
        columns(
            "scenario",
            "acknowledged number",
            "sample: read back",
            "records number",
            "confirmed number",
            "missing number",
            "different number",
            "expired number",
            "examples: lost records",
            "not_read: why not all",
        ),
        rows,
        note="After the load, each record's last acknowledged write was looked for. Missing: the record is "
        "gone, or an older write is there. Different: what is there is no write of this run, or not whole.",
        empty="",  # most scenarios do not read their writes back
    )


_STAGE_TITLES = {
    "politeness": "waiting for its turn",
    "enumerate": "enumeration",
    "crawl_db": "crawl database",
}
_WAITS_FOR = {
    "the source and the way to it": ("politeness", "enumerate", "fetch"),
    "the index": ("index",),
    "the crawl database": ("crawl_db",),
}
"""Resource that a document waits for -> stages in which it waits."""


def crawl_stages(verdict: Row) -> Table:
    """Build the table of crawl stages: a row per content source, and a row per destination of documents."""
    rows: list[dict[str, Any]] = [
        {**row, **row["stages"], "waits_for": _waits_for(row["stages"])}
        for row in verdict.get("crawl") or ()
        if row.get("stages")
    ]
    rows += _destinations(verdict)
    there = [stage for stage in STAGES if any(stage in row for row in rows)]
    return Table(
        "crawl_stages",
        "Time per document and stage, and busy workers",
        columns(
            "source",
            *(f"{stage} s: {_STAGE_TITLES.get(stage, stage)}" for stage in there),
            "waits_for: most time for | -",
            "workers_busy number: busy",
            "workers number: of at most",
            "workers_busy_ratio: pool full",
        ),
        rows,
        note="All attempts of a stage ÷ documents. Busy: mean number of workers on a source while it was "
        "crawled, over its own limit of workers, or the users of the load where it has none; of where "
        "documents go, mean number of requests there, over their limit, or the users.",
        empty="",
    )


def _waits_for(stages: Mapping[str, float]) -> str | None:
    """Return the resource that takes most of a document's time, with its share."""
    each = {name: sum(stages.get(stage, 0.0) for stage in of) for name, of in _WAITS_FOR.items()}
    name = max(each, key=each.__getitem__)
    return f"{name}, {units.percent(each[name] / sum(each.values()))}" if each[name] else None


def _destinations(verdict: Row) -> list[dict[str, Any]]:
    """Return the pool of requests to each crawl's destination.

    All sources of a crawl report the same pool.
    """
    rows: list[Row] = []
    for row in verdict.get("crawl") or ():
        destination = row.get("destination")
        if destination and destination not in rows:
            rows.append(destination)
    return [
        {
            "source": "(where documents go)",
            "workers_busy": each["busy"],
            "workers": each["limit"],
            "workers_busy_ratio": each["busy_ratio"],
        }
        for each in rows
    ]


def crawl_log(verdict: Row) -> Table:
    """Build the table of failed items by source and kind of failure, with the count and the first item."""
    rows: list[dict[str, Any]] = []
    for source in verdict.get("crawl") or ():
        for failure, count in sorted(object_at(source, "failures_by_kind").items()):
            first: Row = next((each for each in source.get("failed") or () if each["failure"] == failure), {})
            rows.append(
                {
                    "source": source["source"],
                    "failure": failure,
                    "count": count,
                    "url": first.get("url"),
                    "message": first.get("message") or None,
                }
            )
    return Table(
        "crawl_log",
        "Crawl log: failed items",
        columns(
            "source",
            "failure",
            "count number: items",
            "url: first item | in the crawl database",
            "message: message | none",
        ),
        rows,
        note="With run --keep-data every item is in the crawl database: tables history and errors.",
        empty="",
    )


def drift(verdict: Row) -> Table:
    """Build the table of changes from the first to the last tenth of the measure phase, changes first."""
    order = {"rises": 0, "falls": 0, "steady": 1, None: 2}
    rows = [
        {
            **row,
            "of": " ".join(part for part in (row["of"], row["instance"]) if part),
            "first": None if row["first"] is None else units.of_metric(row["metric"], row["first"]),
            "last": None if row["last"] is None else units.of_metric(row["metric"], row["last"]),
        }
        for row in sorted(verdict.get("drift") or (), key=lambda row: order[row["trend"]])
    ]
    return Table(
        "drift",
        "What changed over the soak",
        columns(
            "of",
            "metric: figure",
            "first number: first tenth",
            "last number: last tenth",
            "change_ratio: change",
            "trend",
        ),
        rows,
        note="A trend is named where the first and the last tenth of the time differ by 10 % or more and the "
        "tenths between them stand in that order (Kendall's tau, p < .01).",
        empty="",  # most loads are not soak loads
    )


def checkpoints(verdict: Row) -> Table:
    """Build the table of response times and throughput during checkpoints and at other times."""
    return Table(
        "checkpoints",
        "Database checkpoints",
        columns(
            "host",
            "scenario",
            "timed number",
            "requested number",
            "written_ratio: share of time",
            "p95_during_s: p95 during",
            "p95_between_s: p95 otherwise",
            "throughput_during_per_s: throughput during",
            "throughput_between_per_s: otherwise",
        ),
        list(verdict.get("checkpoints") or ()),
        note="Seconds in which the database wrote a checkpoint, compared with all other seconds; this shows "
        "no cause. No figure: fewer than ten such seconds.",
        empty="",  # most runs have no database that reports checkpoints
    )


def stores(verdict: Row) -> Table:
    """Build the table of values that databases and stores report: logs, compactions, queues, connections."""
    rows = [
        {
            **row,
            **{
                name: None if row[name] is None else units.of_metric(row["metric"], row[name])
                for name in ("mean", "max")
            },
        }
        for row in verdict.get("stores") or ()
    ]
    return Table(
        "stores",
        "Databases and stores, as they report",
        columns(
            "host",
            "of: what",
            "mean number",
            "max number: most",
            "metric",
            "instance: of |",
        ),
        rows,
        note="Over the measure phase, read once a second from the store's own statistics.",
        empty="",  # most farms have no store with such values
    )


def advice(verdict: Row) -> Table:
    """Build the table of advice, one row per piece, the largest gain first."""
    rows = [
        {
            **row,
            "gain": wording.gain_of(row),
            "set": " ".join(f"--set {one}" for one in row.get("set") or ()) or None,
            "source": _cited(row.get("source")),
        }
        for row in verdict.get("advice") or ()
    ]
    return Table(
        "advice",
        "Advice, the largest gain first",
        columns(
            "what: what to do",
            "gain number: gain | not known",
            "limit_next: next bottleneck | not known",
            "assumes: assuming",
            "set: what-if | -",
            "source: source | -",
        ),
        rows,
        note=" ".join(filter(None, _outlook(verdict))),
        empty="",  # without a bottleneck there is no advice
    )


def demand(verdict: Row) -> Table:
    """Build the table of the load's demand on each resource, with the throughput that saturates it."""
    rows = [
        {
            **row,
            "of": wording.place({**row, "kind": _kind_of_limit(row)}),
            "ceilings": ", ".join(
                f"{units.per_second(rate)} of {name}" for name, rate in row["ceilings_per_s"].items()
            )
            or None,
        }
        for row in verdict.get("demand") or ()
    ]
    return Table(
        "demand",
        "Demand of the load on each resource",
        columns(
            "of: resource",
            "used_ratio: used",
            "base_ratio: without the load",
            "each_s: per operation",
            "ceilings: saturated at",
            "levels number: load levels",
        ),
        rows,
        note="Use = use without the load + demand per operation x throughput; one load level cannot separate "
        "the two. A disk's capacity is its declared limit; a disk without one is not listed."
        + _assumed_words(_each_once(row["assumes"] for row in rows)),
        empty="",
    )


def advice_words(verdict: Row) -> Iterator[str]:
    """Yield each piece of advice as a sentence. ``assumed`` returns the assumptions of the gains."""
    return (str(row["text"]) for row in verdict.get("advice") or ())


def assumed(verdict: Row) -> list[str]:
    """Return the assumptions of headroom, gains and the next bottleneck, without duplicates."""
    rows = [verdict.get("headroom"), verdict.get("next"), *(verdict.get("advice") or ())]
    of_figures = [
        row for row in rows if row and (row.get("ratio") is not None or row.get("gain_ratio") is not None)
    ]
    return _each_once(row.get("assumes") for row in of_figures)


def _each_once(texts: Iterable[str | None]) -> list[str]:
    """Split texts (``a; b``) into assumptions, and return each assumption once, in order."""
    return list(dict.fromkeys(part for text in texts if text for part in text.split("; ")))


def whole_phase(figures: Row) -> float | None:
    """Return the throughput over the whole measure phase; None if it reads the same as the current rate."""
    now, whole = figures.get("now_per_s"), figures.get("throughput_per_s")
    return None if units.per_second(now) == units.per_second(whole) else whole


def now_words(verdict: Row) -> str:
    """Return the current rate of each scenario as a sentence; "" if no scenario has a rate."""
    lines = []
    for name, figures in object_at(verdict, "scenarios").items():
        if figures.get("now_per_s") is not None:
            whole = whole_phase(figures)
            apart = "" if whole is None else f" ({units.per_second(whole)} over the whole measure phase)"
            lines.append(f"{units.per_second(figures['now_per_s'])} of {name}{apart}")
    return f"Now: {wording.listed(lines)}." if lines else ""


def then_words(verdict: Row) -> str:
    """Return the bottleneck after the next as a sentence; "" if it is unknown."""
    blame = verdict.get("then")
    if not blame:
        return ""
    return (
        f"Then: {wording.place(blame)}, "
        f"{wording.at_most(blame['gain_ratio'], bound=wording.is_bound(blame))} above now."
    )


def headroom_words(verdict: Row) -> str:
    """Return the headroom, or why it is unknown, as a sentence; "" if the verdict has no headroom."""
    result = verdict.get("headroom")
    if not result:
        return ""
    if result["ratio"] is None:
        return f"Headroom: unknown, because {result['why']}."
    return f"Headroom: {wording.room(result['ratio'])}, {result['why']}."


def _outlook(verdict: Row) -> Iterator[str]:
    yield from (text for text in (headroom_words(verdict), then_words(verdict)) if text)
    in_rows = _each_once(row.get("assumes") for row in verdict.get("advice") or ())
    yield _assumed_words([one for one in assumed(verdict) if one not in in_rows]).strip()


def _assumed_words(texts: Sequence[str]) -> str:
    """Return the assumptions as a sentence below a table; "" if there are none."""
    return f" Assumed: {'; '.join(texts)}." if texts else ""


def _cited(source: JsonObject | None) -> str | None:
    return None if source is None else f"{source['entry']}: {source['source']} (taken {source['date']})"


def _kind_of_limit(row: Row) -> str:
    """Return the kind of limit that a resource would have, used for its name."""
    named = {"disk": "disk_cap", "thread": "cpu_thread", "cpu": "cpu", "allowance": "cpu"}
    return named.get(str(row["resource"]), str(row["resource"]))


_HOLDS: Mapping[bool | None, str] = {True: "yes", False: "no", None: "?"}


def considered(verdict: Row) -> Table:
    """Build the table of all considered resources with four kinds of evidence, the most used first."""
    rows = [
        {**row, **{check["evidence"]: _HOLDS[check["holds"]] for check in row["checks"]}}
        for row in object_at(verdict, "explanation").get("considered") or ()
    ]
    return Table(
        "considered",
        "What was considered",
        columns(
            "name: resource",
            "used_ratio: used",
            *(f"{kind}: {title}" for kind, title in wording.ASKED.items()),
            "why: why it is, or is not, the answer",
        ),
        rows,
        note='"Calculated maximum fits": the throughput at which the resource would be saturated is that '
        'which was measured. "Second source": an independent measure. "?": not known. '
        "`pinchpoint analyse --explain` has the figures.",
        empty="",  # a run without a measured window
    )


def periods(verdict: Row, offset_s: int = 0) -> Table:
    """Build the table of the resource at its limit in each period. With a single period it has no rows."""
    result = verdict.get("timeline") or ()
    rows = [_period(row, *span) for row, span in zip(result, spans(result, offset_s), strict=True)]
    return Table(
        "periods",
        "Bottleneck over time",
        columns(
            f"from: from ({zone_words(offset_s)})",
            "to",
            "level: load | -",
            "what: at its limit",
        ),
        rows if len(rows) > 1 else [],
        note="In parts of at least ten seconds, or by the levels of a load in steps."
        if verdict.get("scenarios")
        else "The longest periods of at least 30 s; several resources may be at their limit at once.",
        empty="",  # most runs have a single period
    )


def spans(rows: Sequence[Row], offset_s: int = 0) -> list[tuple[str, str]]:
    """Return begin and end of each row as times at an offset from UTC.

    The day is added if the days differ.
    """
    words = [tuple(str(day_and_time(row[end], offset_s))[:19] for end in ("from", "to")) for row in rows]
    days = {one[:10] for pair in words for one in pair}
    first = len("2026-11-20 ") if len(days) == 1 else 0
    return [(begin[first:], end[first:]) for begin, end in words]


def owner(row: Row) -> str:
    """Return the tier and the role of a row, with the host."""
    place = ".".join(str(row[name]) for name in ("tier", "role") if row[name])
    return f"{place} ({row['host']})" if place and row["host"] else place or str(row["host"] or "")


def _period(row: Row, begin: str, end: str) -> dict[str, Any]:
    what = wording.without_device(row) if row["kind"] else "nothing"
    return {"from": begin, "to": end, "level": row["level"], "what": what}


PROOF: Mapping[str, str] = {
    "agrees": "Proved: {what} answers as the model says",
    "contradicts": "Contradicted: {what} does not answer as the model says",
    "undecided": "The test is undecided",
    "not_allowed": "Not proved: not allowed",
    "not_supported": "Not proved: not supported",
    "nothing_to_prove": "Not proved: nothing to prove",
    "failed": "Not proved: the test failed",
}


def proof_words(verdict: Row) -> str:
    """Return the result of the causal test with its reason; "" if no test was requested."""
    value = verdict.get("proof")
    if not value:
        return ""
    result = PROOF[value["result"]].format(what=_answering(value))
    return f"{result}. {capitalised(value['why'].rstrip('.'))}."


def _answering(value: JsonObject) -> str:
    """Return the quantity that the test measured: throughput or the speed of operations.

    If a farm keeps up with an open load, the schedule sets the throughput, so the speed is used.
    """
    of = object_at(value, "of")
    return "the speed of operations" if of.get("name") == "operations_per_busy_s" else "throughput"


def proof(verdict: Row) -> Table:
    """Build the table of the causal test: what was slowed down, the predicted and the measured effect."""
    result = object_at(verdict, "proof")
    tested = [result] if result.get("change") else []
    tested += [result["control"]] if tested and result["control"] else []
    scenario = result["of"]["scenario"] if tested else ""
    return Table(
        "proof",
        "Causal test",
        columns(
            "what: made slower",
            "left ratio: remaining speed",
            "predicted_ratio: predicted",
            "measured_ratio: measured",
            "interval text: 95 % interval",
            "sensitivity number",
            "result",
        ),
        [_proof_row(one) for one in tested],
        note=f"{capitalised(_answering(result))} of {scenario} while it was slower, as a share of what it was"
        " between. Sensitivity: 1 is in proportion to its speed, 0 not at all. What stands second has room: "
        "nothing may change.",
        empty="",  # most runs have no causal test, and a sentence gives the reason
    )


def _proof_row(one: JsonObject) -> dict[str, Any]:
    low, high = one["ci95"] or (None, None)
    return {
        **one,
        "what": one["change"]["what"],
        "left": one["change"]["capacity_ratio"],
        "interval": None if low is None else f"{units.percent(low)} to {units.percent(high)}",
    }
