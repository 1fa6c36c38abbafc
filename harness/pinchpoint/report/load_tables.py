"""What was asked of the farm and what it did: scenarios, objectives, crawl, bursts, errors."""

from __future__ import annotations

from typing import Any

from pinchpoint.base import units
from pinchpoint.report.clock import Clock
from pinchpoint.report.latency import operation_percentiles
from pinchpoint.report.level_tables import of_load
from pinchpoint.report.query import over_operations
from pinchpoint.report.tables import Column, Row, Table, duration, number, rate, share
from pinchpoint.store.read import StoredRun


def load_words(load: Row) -> str:
    """A load model of plan.yaml in words."""
    model = load.get("model")
    if model == "closed":
        think = load.get("think_s")
        return f"{load['users']} users" + (f", {units.seconds(think)} between operations" if think else "")
    if model in ("open", "soak"):
        soak = "soak at " if model == "soak" else ""
        return f"{soak}{units.per_second(load['rate_per_s'])}, {load.get('arrivals', 'poisson')} arrivals"
    if model == "burst":
        base, peak = units.per_second(load["base_per_s"]), units.per_second(load["peak_per_s"])
        length, every = units.seconds(load["for_s"]), units.seconds(load["every_s"])
        words = [f"{base}, bursts of {peak} for {length} every {every}"]
        if (load.get("back_to_back") or 1) > 1:
            words.append(f"{load['back_to_back']} back to back, {units.seconds(load['gap_s'])} apart")
        if load.get("ramp_s"):
            words.append(f"rising in {units.seconds(load['ramp_s'])}")
        if load.get("jitter_ratio"):
            words.append(f"{units.percent(load['jitter_ratio'])} jitter")
        if load.get("arrivals") == "constant":
            words.append("constant arrivals")
        return ", ".join(words)
    if model == "ramp":
        ends = f"{of_load(load['start'])} to {of_load(load['to'])}"
        return f"{ends} over {units.seconds(load['over_s'])}"
    if model == "steps":
        climb = f"from {of_load(load['start'])} in steps of {of_load(load['step'])}"
        return f"{climb}, each {units.seconds(load['each_s'])}, until {load['until']}"
    return str(model)


def scenarios(run: StoredRun, verdict: Row) -> Table:
    """What each scenario got done in the measure phase."""
    planned = run.manifest.get("plan", {}).get("scenarios", {})
    rows = []
    for name, figures in (verdict.get("scenarios") or {}).items():
        kind = "response" if figures.get("response_p95_s") is not None else "service"
        plan = planned.get(name, {})
        rows.append(
            {
                "scenario": name,
                "use": plan.get("use"),
                "load": load_words(plan["load"]) if plan.get("load") else None,
                "throughput_per_s": figures.get("throughput_per_s"),
                "time": kind,
                **{f"p{p}_s": figures.get(f"{kind}_p{p}_s") for p in (50, 95, 99)},
                "error_ratio": figures.get("error_ratio"),
                "dropped": figures.get("dropped"),
            }
        )
    return Table(
        "scenarios",
        "What was done",
        (
            Column("scenario", "scenario"),
            Column("use", "kind"),
            Column("load", "load"),
            rate("throughput_per_s", "throughput"),
            Column("time", "latency is"),
            duration("p50_s", "p50"),
            duration("p95_s", "p95"),
            duration("p99_s", "p99"),
            share("error_ratio", "errors"),
            number("dropped", "dropped", absent="-"),
        ),
        rows,
        note="Over the measure phase. Service time runs from the actual start, response time from the "
        "intended start (open load). Dropped: operations that could not start in time."
        + _warm_up_words(run.manifest.get("warm_up")),
        empty="No scenario ran.",
    )


def _warm_up_words(found: Row | None) -> str:
    """When a warm-up whose end was to be detected ended; nothing where its length was given."""
    if not found:
        return ""
    length = units.seconds(found["lasted_s"])
    if found["settled"]:
        return f" The load had settled after {length} of warm-up, which was detected."
    return f" The load had not settled after {length} of warm-up."


def objectives(verdict: Row) -> Table:
    """What was promised, and what came of it."""
    rows = [
        {
            **row,
            "objective": f"{_name(row['metric'])} {'at least' if _floor(row['metric']) else 'at most'} "
            f"{units.of_metric(row['metric'], row['target'])}",
            "measured": _measured(row),
        }
        for row in verdict.get("objectives") or ()
    ]
    return Table(
        "objectives",
        "Objectives",
        (
            Column("scenario", "scenario"),
            Column("objective", "objective"),
            Column("measured", "measured"),
            *([Column("holds", "up to what load")] if any(row.get("holds") for row in rows) else ()),
            Column("result", "result"),
        ),
        rows,
        empty="The plan sets no objectives.",
    )


def _measured(row: Row) -> str | None:
    """An objective's figure; a time that was missed and is none has no end."""
    if row["value"] is None:
        return units.ENDLESS if row["met"] is False else None
    return units.of_metric(row["metric"], row["value"])


def _name(metric: str) -> str:
    """``p95_s`` -> ``p95``, ``errors_ratio`` -> ``errors``."""
    return metric.removesuffix("_per_s").removesuffix("_s").removesuffix("_ratio")


def _floor(metric: str) -> bool:
    return metric == "throughput_per_s"


def operations(run: StoredRun, clock: Clock) -> Table:
    """Each operation and each stage of it."""
    return Table(
        "operations",
        "Operations and their stages",
        (
            Column("scenario", "scenario"),
            Column("operation", "operation"),
            number("count", "succeeded"),
            duration("p50_s", "p50"),
            duration("p95_s", "p95"),
            duration("p99_s", "p99"),
            duration("max_s", "slowest"),
        ),
        operation_percentiles(run, clock.window),
        note="Service time over the measure phase. A name with a slash is a stage: timed, but no throughput.",
        empty="No operation succeeded in the measure phase.",
    )


def crawl(verdict: Row) -> Table:
    """One row per content source."""
    return Table(
        "crawl",
        "Crawl",
        (
            Column("source", "source"),
            number("count", "documents"),
            number("failures", "failures"),
            number("skipped", "skipped"),
            duration("duration_s", "duration"),
            rate("rate_per_s", "rate"),
            rate("rate_active_per_s", "rate while active"),
            duration("repository_latency_s", "repository latency"),
            duration("repository_latency_p50_s", "p50"),
            duration("repository_latency_p95_s", "p95"),
            number("bytes", "bytes", units.bytes_),
            Column("complete", "complete"),
        ),
        list(verdict.get("crawl") or ()),
        note="Rate = documents ÷ duration, over the whole crawl, warm-up included; rate while active = mean "
        "over the seconds in which a document was done. Repository latency: from request to last byte.",
        empty="No crawl in this plan.",
    )


def bursts(verdict: Row) -> Table:
    """One row per burst."""
    found = {
        name: figures["bursts"]
        for name, figures in (verdict.get("scenarios") or {}).items()
        if "bursts" in figures
    }
    rows = [
        {"scenario": name, "number": place, **burst, "recovery": _recovery_words(burst)}
        for name, bursts in found.items()
        for place, burst in enumerate(bursts, start=1)
    ]
    return Table(
        "bursts",
        "Bursts",
        (
            Column("scenario", "scenario"),
            number("number", "burst"),
            duration("start_s", "starts after"),
            duration("duration_s", "lasts"),
            number("offered", "offered"),
            number("done", "done"),
            number("dropped", "dropped"),
            duration("p50_s", "p50"),
            duration("p99_s", "p99"),
            number("backlog", "waiting at its end"),
            duration("calm_s", "p50 between bursts"),
            number("recovery", "time to recover"),
        ),
        rows,
        note="Starts after: since the measure phase began. A burst is told in whole seconds (tens of them in "
        "a run over an hour), those it shares with the base included. p50 and p99: of what was done in it. "
        "Waiting at its end: operations that were due and had neither ended nor been dropped. Recovered: "
        "the median latency is back within 10 % of what it is between bursts.",
        empty="No burst came while it was measured." if found else "No burst load in this plan.",
    )


def _recovery_words(burst: Row) -> str:
    """How long it took, or why that is not known."""
    if burst.get("recovery_s") is not None:
        return units.seconds(burst["recovery_s"])
    if "watched_s" not in burst:
        return "not recovered"  # as older verdicts have it
    if not burst["watched_s"]:
        return "not seen: no time after it"
    if burst["calm_s"] is None:
        return "no calm between bursts"
    return f"not within {units.seconds(burst['watched_s'])}"


def writes(verdict: Row) -> Table:
    """One row per scenario that read its acknowledged writes back."""
    rows = [
        {
            "scenario": name,
            **figures["writes"],
            "examples": ", ".join(str(item) for item in figures["writes"].get("examples") or ()),
            "not_read": "; ".join(figures["writes"].get("not_read") or ()),
        }
        for name, figures in (verdict.get("scenarios") or {}).items()
        if figures.get("writes")
    ]
    return Table(
        "writes",
        "Acknowledged writes, read back",
        (
            Column("scenario", "scenario"),
            number("acknowledged", "acknowledged"),
            Column("sample", "read back"),
            number("records", "records"),
            number("confirmed", "confirmed"),
            number("missing", "missing"),
            number("different", "different"),
            number("expired", "expired"),
            Column("examples", "lost records"),
            Column("not_read", "why not all"),
        ),
        rows,
        note="After the load, each record's last acknowledged write was looked for. Missing: the record is "
        "gone, or an older write is there. Different: what is there is no write of this run, or not whole.",
        empty="No scenario of this plan reads its writes back.",
    )


def errors(run: StoredRun, clock: Clock) -> Table:
    """Every outcome that is not success, by name."""
    low, high = clock.window or (0.0, 0.0)
    rows: list[dict[str, Any]] = []
    if run.operations.num_rows:
        connection = over_operations(run)
        found = connection.execute(
            """
            WITH counted AS (
                SELECT *, count + coalesce(dropped, 0) AS n, time_s >= $low AND time_s < $high AS inside
                FROM operations WHERE outcome NOT IN ('ok', 'sent'))
            SELECT scenario, operation, outcome, sum(n)::BIGINT AS whole,
                   coalesce(sum(n) FILTER (inside), 0)::BIGINT
            FROM counted GROUP BY scenario, operation, outcome HAVING whole > 0
            ORDER BY whole DESC, scenario, operation, outcome
            """,
            {"low": low, "high": high},
        ).fetchall()
        keys = ("scenario", "operation", "outcome", "count", "count_in_measure")
        rows = [dict(zip(keys, row, strict=True)) for row in found]
    return Table(
        "errors",
        "Errors, skipped and dropped operations",
        (
            Column("scenario", "scenario"),
            Column("operation", "operation"),
            Column("outcome", "outcome"),
            number("count", "whole run"),
            number("count_in_measure", "in the measure phase"),
        ),
        rows,
        empty="Every operation succeeded." if run.operations.num_rows else "No operation was recorded.",
    )
