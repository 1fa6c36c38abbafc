"""Builds the tables made from a run's directory: operations, probes, data quality, hosts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pinchpoint.base import units, wording
from pinchpoint.base.clock import seconds_of
from pinchpoint.base.groups import by_key
from pinchpoint.base.objects import object_at
from pinchpoint.base.wording import listed
from pinchpoint.data.latency import operation_percentiles
from pinchpoint.data.machines import machine_id, name_of_machine
from pinchpoint.data.queries import over_operations, over_samples
from pinchpoint.data.timeaxis import TimeAxis, day_and_time, shown_offset_s
from pinchpoint.report.tables import Column, Row, Table, columns, text
from pinchpoint.report.verdict_tables import objectives, of_load, whole_phase
from pinchpoint.store.read import StoredRun

if TYPE_CHECKING:
    import duckdb


def load_words(load: Row) -> str:
    """Return a load model of plan.yaml as text."""
    model = load.get("model")
    if model == "closed":
        think = load.get("think_s")
        users = units.load_level(load["users"], "users")
        return users + (f", {units.seconds(think)} between operations" if think else "")
    if model in ("open", "soak"):
        constant = ", constant arrivals" if load.get("arrivals") == "constant" else ""
        return f"{units.per_second(load['rate_per_s'])}{constant}"
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


def offered_words(load: Row) -> str | None:
    """Return a load model of plan.yaml as short text: ``8 users``, ``100/s``, ``50/s to 500/s``."""
    model = load.get("model")
    if model == "closed":
        return units.load_level(load["users"], "users")
    if model in ("open", "soak"):
        return units.per_second(load["rate_per_s"])
    if model == "burst":
        return f"{units.per_second(load['base_per_s'])} to {units.per_second(load['peak_per_s'])}"
    if model in ("ramp", "steps"):
        first, last = of_load(load["start"]), load.get("to") or load.get("at_most")
        return f"{first} to {of_load(last)}" if last else f"{first} and more"
    return None if model is None else str(model)


def scenarios(manifest: Row, verdict: Row, words: Callable[[Row], str | None] = load_words) -> Table:
    """Build the table of rate, latency, errors and objectives of each scenario in the measure phase.

    Args:
        manifest: content of the run's manifest.json.
        verdict: content of verdict.json.
        words: returns a load model of plan.yaml as text.
    """
    planned = object_at(manifest, "plan").get("scenarios", {})
    goals = _goals(verdict)
    rows = []
    for name, figures in object_at(verdict, "scenarios").items():
        kind = "response" if figures.get("response_p95_s") is not None else "service"
        plan = planned.get(name, {})
        rows.append(
            {
                "scenario": name,
                "use": plan.get("use"),
                "load": words(plan["load"]) if plan.get("load") else None,
                "now_per_s": wording.rate_of(figures),
                "throughput_per_s": whole_phase(figures),
                "time": kind,
                **{f"p{p}_s": figures.get(f"{kind}_p{p}_s") for p in (50, 95, 99)},
                "error_ratio": figures.get("error_ratio"),
                "dropped": figures.get("dropped"),
                "goals": goals.get(name),
            }
        )
    return Table(
        "scenarios",
        "Scenarios",
        columns(
            "scenario",
            "now_per_s: rate",
            "load number: offered | -",
            "p50_s: p50",
            "p95_s: p95",
            "p99_s: p99",
            "error_ratio: errors",
            "dropped number: dropped | -",
            *(["goals: objectives | none"] if goals else []),
        ),
        rows,
        note=" ".join(_scenario_notes(rows)) + _warm_up_words(manifest.get("warm_up")),
        empty="No scenario ran.",
    )


def _goals(verdict: Row) -> dict[str, str]:
    """Return scenario -> objectives and their results: ``p95 at most 5 ms: missed``."""
    goals = by_key(
        (
            row["scenario"],
            f"{row['objective']}: {units.NOT_MEASURED if row['met'] is None else row['result']}",
        )
        for row in objectives(verdict).rows
    )
    return {name: "; ".join(each) for name, each in goals.items()}


def _scenario_notes(rows: Sequence[Row]) -> Iterable[str]:
    """Yield notes on the start time that latencies count from, and on rates over the whole measure phase."""
    words = {
        "response": "p50 to p99 are response times: from the intended start to the end.",
        "service": "p50 to p99 are service times: from the actual start to the end.",
    }
    kinds = {str(row["time"]): row["scenario"] for row in rows}
    if len(kinds) == 1:
        yield words[next(iter(kinds))]
    elif kinds:
        timed = listed([row["scenario"] for row in rows if row["time"] == "response"])
        yield f"p50 to p99 of {timed} count from the intended start, all others from the actual start."
    for row in rows:
        if row["throughput_per_s"] is not None:
            whole = units.per_second(row["throughput_per_s"])
            yield f"{row['scenario']}: {whole} over the whole measure phase."


def _warm_up_words(row: Row | None) -> str:
    """Return when an automatic warm-up ended; "" for a warm-up of fixed length."""
    if not row:
        return ""
    length = units.seconds(row["lasted_s"])
    if row["settled"]:
        return f" The load had settled after {length} of warm-up, which was detected."
    return f" The load had not settled after {length} of warm-up."


def disks(manifest: Row, verdict: Row) -> Table:
    """Build the table of disks: each disk once, with its roles and the latency limit of each role."""
    hosts = object_at(manifest, "hosts")
    groups = by_key(
        ((machine_id(hosts, row["host"]), row.get("device"), "" if row.get("device") else row["role"]), row)
        for row in verdict.get("disks") or ()
    )
    rows = [
        {
            **same[0],
            "roles": ", ".join(dict.fromkeys(f"{row['tier']} {row['role']}" for row in same)),
            "limit": _latency_limits(same),
            "machine": name_of_machine(hosts, same[0]["host"]),
        }
        for same in groups.values()
    ]
    either = any(row.get("transfer_latency_mean_s") is not None for row in rows)
    missing = any(row.get("why_not_measured") for row in rows)
    shown = columns(
        "machine",
        "device: disk | not known",
        "roles: used for",
        "write_latency_mean_s: s/write, mean",
        "write_latency_max_s: max",
        "limit: limit | -",
        *(["transfer_latency_mean_s: s/read or write"] if either else []),
        "read_latency_mean_s: s/read",
        "flush_latency_mean_s: s/flush",
        "iops_mean per_s: IOPS, mean",
        "iops_max per_s: max",
        *(["why_not_measured: why not measured |"] if missing else []),
    )
    return Table(
        "disks",
        "Disks",
        shown,
        rows,
        note="Over the measure phase; means are weighted by the number of I/Os. Limits by role: SP is "
        "Microsoft's capacity planning for SharePoint Server, PAL the thresholds of the PAL tool, design a "
        "value of Pinchpoint.",
        empty="No disk with a role was measured.",
    )


def _latency_limits(rows: Sequence[Row]) -> str | None:
    """Return the latency limits of a disk as text: ``5 ms (log; SP), 20 ms (data, index; SP)``."""
    roles = by_key(
        ((row["latency_limit_s"], row["latency_limit_source"]), row["role"])
        for row in rows
        if row.get("latency_limit_s") is not None
    )
    words = (
        f"{units.seconds(limit)} ({', '.join(dict.fromkeys(held))}; {source})"
        for (limit, source), held in sorted(roles.items())
    )
    return ", ".join(words) or None


def cpus(manifest: Row, verdict: Row) -> Table:
    """Build the table of CPUs: a row per machine, and below it a row per tier on the machine."""
    hosts = object_at(manifest, "hosts")
    machines = by_key((machine_id(hosts, row["host"]), row) for row in verdict.get("cpus") or ())
    rows: list[dict[str, Any]] = []
    for there in machines.values():
        whole = next((row for row in there if row["machine_busy_mean_ratio"] is not None), there[0])
        name = name_of_machine(hosts, whole["host"])
        rows.append(
            {
                "name": f"machine {name}",
                "of": "all cores",
                "busy_mean_ratio": whole["machine_busy_mean_ratio"],
                "busy_max_ratio": whole["machine_busy_max_ratio"],
            }
        )
        for row in there:
            own = row["of"] == "tier"
            rows.append(
                {
                    "name": f"tier {row['tier']}" + (f" ({row['host']})" if row["host"] != name else ""),
                    "of": "the cores it may use",
                    "busy_mean_ratio": row["busy_mean_ratio"] if own else None,
                    "busy_max_ratio": row["busy_max_ratio"] if own else None,
                }
            )
    return Table(
        "cpus",
        "CPU",
        columns(
            "name: machine, and its tiers",
            "of: share of",
            "busy_mean_ratio: busy, mean | -",
            "busy_max_ratio: max | -",
        ),
        rows,
        note='Over the measure phase. A tier: its own processes; "-": none, or not measured.',
        empty="No CPU was measured.",
    )


def operations(run: StoredRun, clock: TimeAxis) -> Table:
    """Build the table of operations and of their stages."""
    return Table(
        "operations",
        "Operations and their stages",
        columns(
            "scenario",
            "operation",
            "count number: succeeded",
            "p50_s: p50",
            "p95_s: p95",
            "p99_s: p99",
            "max_s: slowest",
        ),
        operation_percentiles(run, clock.window),
        note="Service time over the measure phase. A name with a slash is a stage: timed, but no throughput.",
        empty="No operation succeeded in the measure phase.",
    )


def errors(run: StoredRun, clock: TimeAxis) -> Table:
    """Build the table of all outcomes except success."""
    low, high = clock.window or (0.0, 0.0)
    rows: list[dict[str, Any]] = []
    if run.operations.num_rows:
        result = over_operations(run).execute(
            """
            WITH counted AS (
                SELECT *, count + coalesce(dropped, 0) AS n, time_s >= $low AND time_s < $high AS inside
                FROM operations WHERE outcome NOT IN ('ok', 'sent'))
            SELECT scenario, operation, outcome, sum(n)::BIGINT AS "count",
                   coalesce(sum(n) FILTER (inside), 0)::BIGINT AS count_in_measure
            FROM counted GROUP BY scenario, operation, outcome HAVING sum(n) > 0
            ORDER BY "count" DESC, scenario, operation, outcome
            """,
            {"low": low, "high": high},
        )
        rows = _named(result)
    return Table(
        "errors",
        "Errors, skipped and dropped operations",
        columns(
            "scenario",
            "operation",
            "outcome",
            "count number: whole run",
            "count_in_measure number: in the measure phase",
        ),
        rows,
        empty="Every operation succeeded." if run.operations.num_rows else "No operation was recorded.",
    )


def _named(result: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """Return the rows of a query as column name -> value."""
    names = [column[0] for column in result.description or ()]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


_REPLAYED = "replayed"


def replayed(run: StoredRun) -> Table:
    """Build the table of captured statements, executed and not executed, per scenario over all workers."""
    totals: dict[str, Counter[str]] = {}
    for event in run.events:
        if event.get("event") == _REPLAYED:
            total = totals.setdefault(str(event.get("scenario")), Counter())
            total["captured"] += event["captured"]
            total["executed"] += event["executed"]
            total.update({f"not executed: {cause}": count for cause, count in event["differences"].items()})
            total.update(
                {f"executed, failed: {outcome}": count for outcome, count in event["failed"].items()}
            )
    rows = [
        {"scenario": scenario, "what": what, "statements": count}
        for scenario, total in totals.items()
        for what, count in total.items()
    ]
    return Table(
        "replayed",
        "Captured and replayed",
        columns(
            "scenario",
            "what: statements",
            "statements number: count",
        ),
        rows,
        note="Captured is executed and what was not executed; what failed was executed. From the warm-up on.",
        empty="",  # most runs replay no capture
    )


def generators(run: StoredRun, clock: TimeAxis) -> Table:
    """Build the table that shows whether the load generators kept up with the offered load."""
    loads = [plan["load"]["model"] for plan in run.manifest.get("plan", {}).get("scenarios", {}).values()]
    unscheduled = "closed load" if set(loads) == {"closed"} else units.NOT_MEASURED
    low, high = clock.window or (0.0, 1e12)
    result = over_samples(run).execute(
        """
        SELECT host AS generator,
               avg(value) FILTER (metric = 'generator.cpu_ratio') AS cpu_mean,
               max(value) FILTER (metric = 'generator.cpu_ratio') AS cpu_max,
               max(value) FILTER (metric = 'generator.loop_lag_s') AS loop_lag_max_s,
               max(value) FILTER (metric = 'generator.send_lag_s') AS send_lag_max_s,
               sum(value * interval_s) FILTER (metric = 'generator.scheduled_per_s') AS scheduled,
               sum(value * interval_s) FILTER (metric = 'generator.started_per_s') AS started,
               started / nullif(scheduled, 0) AS started_ratio
        FROM samples
        WHERE starts_with(metric, 'generator.')
          AND time_ns / 1e9 - interval_s / 2 >= $low AND time_ns / 1e9 - interval_s / 2 < $high
        GROUP BY host ORDER BY host
        """,
        {"low": low, "high": high},
    )
    return Table(
        "generators",
        "Load generators",
        columns(
            "generator",
            "cpu_mean ratio: CPU of one core, mean",
            "cpu_max ratio: max",
            "loop_lag_max_s: event loop delay, max",
            f"send_lag_max_s: late start p99, worst second | {unscheduled}",
            f"started_ratio: started of scheduled | {unscheduled}",
        ),
        _named(result),
        empty="The load generators were not measured.",
    )


def collectors(run: StoredRun, clock: TimeAxis) -> Table:
    """Build the table of collectors: CPU cost, readings and failures."""
    rows = [
        {**row, "cost_ratio": row["cpu_s"] / clock.length_s if row.get("cpu_s") is not None else None}
        for row in run.manifest.get("collectors") or ()
        if clock.length_s > 0
    ]
    return Table(
        "collectors",
        "Collectors and their cost",
        columns(
            "kind: collector",
            "hosts",
            "interval_s: interval",
            "readings number",
            "failed number",
            "cpu_s: CPU used",
            "cost_ratio: of one core",
            *_far(rows),
        ),
        rows,
        empty="No collector ran: the samples were imported."
        if run.manifest.get("imports")
        else "No collector ran: only the load itself was measured.",
    )


def _far(rows: Sequence[Row]) -> tuple[Column, ...]:
    """Return the columns that only remote collectors have."""
    if not any(row.get("received_bytes") is not None for row in rows):
        return ()
    return columns(
        "host_cpu_s: CPU used there",
        "received_bytes: received",
    )


def clocks(run: StoredRun) -> Table:
    """Build the table of clock offsets: each host's offset, its error bound and its drift."""
    rows = [
        {"host": host, "kind": kind, "spread_s": _spread_s(reported), **reported}
        for host, kinds in object_at(run.manifest, "data_quality").items()
        for kind, reported in kinds.items()
        if reported.get("clock_offset_s") is not None
    ]
    return Table(
        "clocks",
        "Clocks of the hosts",
        columns(
            "host",
            "kind: collector",
            "clock_offset_s: ahead of the load generator",
            "clock_error_s: error at most",
            "spread_s: drift during the run",
        ),
        rows,
        note="Sample times are corrected by this offset.",
        empty="",
    )


def _spread_s(reported: Row) -> float | None:
    between = reported.get("clock_offset_between_s")
    return between[1] - between[0] if between else None


def blind(run: StoredRun) -> Table:
    """Build the table of gaps in the measurement: host, time and reason."""
    rows = [
        {
            "host": host,
            "kind": kind,
            **{key: gap.get(key) for key in ("from", "to", "missed", "why")},
            "lasted_s": seconds_of(gap["to"]) - seconds_of(gap["from"]),
        }
        for host, kinds in object_at(run.manifest, "data_quality").items()
        for kind, reported in kinds.items()
        for gap in reported.get("gaps") or ()
    ]
    return Table(
        "blind",
        "Gaps in the measurement",
        columns(
            "host",
            "kind: collector",
            "from: from (UTC)",
            "to",
            "lasted_s: for",
            "missed number: readings missed",
            "why",
        ),
        rows,
        note="No values are filled in for these times.",
        empty="",
    )


_QUIET = frozenset({"phase", "prepare", "load_begun", "step", "steps_ended", "warmed_up"})
_QUIET |= {"crawl_started", "crawl_ended", "replayed", "probed"}  # these events have tables of their own
# these events of a causal test are in the table of the test
_QUIET |= {"steps_held", "made_slower", "put_back"}


def incidents(run: StoredRun) -> Table:
    """Build the table of events that are not part of a normal run."""
    rows = []
    for event in run.events:
        name = str(event.get("event"))
        if name in _QUIET or name.startswith("phase"):
            continue
        rest = {key: value for key, value in event.items() if key not in ("time", "event", "stop_rule")}
        rows.append({"time": event.get("time"), "event": name.replace("_", " "), "details": _details(rest)})
    return Table(
        "incidents",
        "Events during the run",
        columns("time: UTC", "event", "details"),
        rows,
        empty="None.",
    )


def _details(facts: Row) -> str:
    words = [f"{key.replace('_', ' ')}: {_flat(value)}" for key, value in facts.items() if value is not None]
    return "; ".join(words)


def _flat(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else text(value)


def not_measured(run: StoredRun) -> Table:
    """Build the table of missing measurements with reason and remedy.

    Equal rows of several hosts are merged.
    """
    keys = "metric", "instance", "why", "remedy"
    result = by_key(
        (tuple(str(row.get(key) or "") for key in keys), host)
        for host, facts in run.manifest.get("hosts", {}).items()
        for row in facts.get("not_measured") or ()
    )
    rows = [
        {"metric": metric, "instance": instance, "hosts": hosts, "why": why, "remedy": remedy}
        for (metric, instance, why, remedy), hosts in result.items()
    ]
    return Table(
        "not_measured",
        "Not measured",
        columns(
            "metric",
            "instance",
            "hosts",
            "why",
            "remedy",
        ),
        rows,
        empty="Every metric that the collectors can read was measured.",
    )


_DIGEST_DIGITS = 12
"""Digits shown of a file's SHA-256. The manifest has all digits."""


def imports(run: StoredRun) -> Table:
    """Build the table of imported files, one row per file."""
    rows = [
        {
            **row,
            "hosts": list(row["hosts"]),
            "from": day_and_time(row["from"], shown_offset_s(run.manifest)),
            "to": day_and_time(row["to"], shown_offset_s(run.manifest)),
        }
        for row in run.manifest.get("imports") or ()
    ]
    return Table(
        "imports",
        "Imported files",
        columns(
            "file",
            "kind",
            "hosts",
            "from",
            "to",
            "samples number",
            "bytes: size",
            Column("sha256", "SHA-256", lambda digest: f"{digest[:_DIGEST_DIGITS]}..."),
        ),
        rows,
        empty="",  # most runs have no imported file
    )


def hosts(run: StoredRun) -> Table:
    """Build the table of hosts, as the collectors describe them."""
    rows = [
        {"host": host, **{key: value for key, value in facts.items() if not isinstance(value, dict)}}
        for host, facts in run.manifest.get("hosts", {}).items()
    ]
    return Table(
        "hosts",
        "Hosts",
        columns(
            "host",
            "tier: tier | -",
            "hostname: machine | -",
            "cpu_model: CPU | not known",
            "cores number: cores | not known",
            "tier_cores: cores of the tier | all",
            "memory_bytes: memory | not known",
            "os: operating system | not known",
            "kernel: kernel | not known",
            "virtualisation: virtualisation | none found",
            *(f"{key}: {title} | -" for key, title in _PLACED.items() if any(row.get(key) for row in rows)),
        ),
        rows,
        empty="No collector described a host.",
    )


_PLACED = {"machine_type": "machine type", "region": "region", "zone": "zone"}
"""Facts about machines in a cloud: key -> column title."""


def host_disks(run: StoredRun) -> Table:
    """Build the table of disk roles with the device of each role."""
    rows = []
    for host, facts in run.manifest.get("hosts", {}).items():
        for role, place in object_at(facts, "roles").items():
            device = object_at(facts, "disks", place.get("device"))
            rows.append({"host": host, "role": role, **device, **place})
    return Table(
        "host_disks",
        "Disk roles",
        columns(
            "host",
            "role",
            "given: declared as | -",
            "device: device | not known",
            "model: model | -",
            "size_bytes: size | -",
            "file_system: file system | -",
            "write_cache: write cache | -",
            "data_io: data I/O is | -",
            "why: remark |",
        ),
        _together(rows),
        empty="No disk has a role.",
    )


def _together(rows: Sequence[Row]) -> list[Row]:
    """Merge the rows of a host's disks that have no role and no other facts."""
    kept: list[Row] = []
    for row in rows:
        bare = row.get("given") is None and row.get("why") and row["role"] == row.get("device")
        before = kept[-1] if kept and bare else {}
        same = {**row, "role": None, "device": None}
        if before and {**before, "role": None, "device": None} == same:
            kept[-1] = {**before, "role": "-", "device": f"{before['device']}, {row['device']}"}
        else:
            kept.append({**row, "role": "-"} if bare else row)
    return kept


def versions(run: StoredRun) -> Table:
    """Build the table of versions and settings of all software in the run."""
    return Table(
        "versions",
        "Versions and settings",
        columns("what", "value: version or setting"),
        [
            *_flattened("", object_at(run.manifest, "versions")),
            *_flattened("", object_at(run.manifest, "endpoints")),
        ],
        empty="None were recorded.",
    )


def content(run: StoredRun) -> Table:
    """Build the table of the content that an embedded farm was filled with."""
    return Table(
        "content",
        "Content",
        columns("what", "value"),
        list(_flattened("", object_at(run.manifest, "content"))),
        empty="The farm was not filled by Pinchpoint.",
    )


def _flattened(prefix: str, facts: Row) -> Iterable[Row]:
    for key, value in facts.items():
        if isinstance(value, dict):
            yield from _flattened(f"{prefix}{key} ", value)
        else:
            yield {"what": f"{prefix}{key}", "value": value}
