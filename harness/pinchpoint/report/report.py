"""Collects the content of a run's report from the saved files. All formats use it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pinchpoint.analysis.verdict import SCHEMA
from pinchpoint.base import wording
from pinchpoint.base.errors import InputError
from pinchpoint.base.objects import JsonObject, object_at
from pinchpoint.base.wording import listed
from pinchpoint.data.latency import Distribution, distributions
from pinchpoint.data.queries import over_samples
from pinchpoint.data.timeaxis import TimeAxis, clock_of
from pinchpoint.data.timeline import Panel, panels
from pinchpoint.report import run_tables, verdict_tables
from pinchpoint.report.evidence import Finding, findings
from pinchpoint.report.picture import MachineBox, picture
from pinchpoint.report.probe import probes
from pinchpoint.report.similarity import similarity
from pinchpoint.report.statements import top_statements
from pinchpoint.report.tables import Section, Table, columns
from pinchpoint.store.read import StoredRun
from pinchpoint.store.schema import VERDICT
from pinchpoint_collectors.common.counts import counted

# The functions below calculate the time that the sessions of each database ran, or waited for something, in
# the measure phase.

MOST = 10
"""Largest number of waits listed per host. All further waits are added up."""
RUNNING = "running, or ready to run on a CPU"


def waits(run: StoredRun, clock: TimeAxis) -> Table:
    """Build the table of session time by wait, the longest first, with the share of active session time."""
    rows: list[dict[str, Any]] = []
    hidden: list[str] = []
    for host, spent in _spent_s(run, clock).items():
        active_s = spent.pop(("db.sessions_active", ""), None)
        if active_s is None:  # without active sessions, no share can be calculated
            continue
        hidden += [host] if spent.pop(("db.sessions_hidden", ""), 0.0) else []
        ranked = sorted(((s, _name(*key)) for key, s in spent.items() if s > 0), reverse=True)
        rest = ranked[MOST:]
        named = ranked[:MOST] + (
            [(sum(s for s, _ in rest), counted(len(rest), "other wait"))] if rest else []
        )
        rows += [
            {"host": host, "wait": name, "time_s": s, "ratio": s / active_s if active_s else None}
            for s, name in named
        ]
    note = "Over the measure phase, all client sessions together, sampled some ten times a second."
    if hidden:
        note += (
            f" On {listed(hidden)} the collector's role may not see all sessions; hidden ones are left out."
        )
    return Table(
        "waits",
        "Top waits of the databases",
        columns(
            "host",
            "wait: sessions were",
            "time_s: session time",
            "ratio: of active session time | -",
        ),
        rows,
        note=note,
        empty="",  # most farms have no database with sampled sessions
    )


def _name(metric: str, instance: str) -> str:
    return RUNNING if metric == "db.sessions_running" else f"waiting for {instance}"


def _spent_s(run: StoredRun, clock: TimeAxis) -> dict[str, dict[tuple[str, str], float]]:
    """Return host -> (metric, instance) -> session seconds in the measure phase, or else in the whole run."""
    low, high = clock.window or (0.0, float("inf"))
    result = over_samples(run).execute(
        """
        SELECT host, metric, instance, sum(value * interval_s) FROM samples
        WHERE metric IN ('db.sessions_active', 'db.sessions_running', 'db.sessions_waiting',
                         'db.sessions_hidden')
          AND value IS NOT NULL
          AND time_ns / 1e9 - interval_s / 2 >= $low AND time_ns / 1e9 - interval_s / 2 < $high
        GROUP BY ALL ORDER BY ALL
        """,
        {"low": low, "high": high},
    )
    spent: dict[str, dict[tuple[str, str], float]] = {}
    for host, metric, instance, session_s in result.fetchall():
        spent.setdefault(host, {})[metric, instance or ""] = session_s
    return spent


SECTIONS = (
    Section(
        "load",
        "Load",
        (
            "objectives",
            "levels",
            "drift",
            "checkpoints",
            "similarity",
            "replayed",
            "crawl",
            "crawl_stages",
            "crawl_log",
            "bursts",
            "writes",
            "probes",
            "errors",
            "operations",
        ),
    ),
    Section("tiers", "Tiers", ("demand", "waits", "statements", "disks", "cpus", "stores")),
    Section(
        "quality",
        "Data quality",
        ("generators", "collectors", "clocks", "blind", "imports", "incidents", "not_measured"),
    ),
    Section("environment", "Environment", ("hosts", "host_disks", "versions", "content")),
)
"""Sections after the evidence, in order. A new table needs an entry here and a call in ``gather``."""


@dataclass(frozen=True, slots=True)
class Report:
    """The content of a run's report, independent of the format.

    Attributes:
        run: saved run.
        verdict: content of verdict.json.
        clock: time axis of the run.
        summary: verdict in a few sentences.
        alarms: warnings that come before everything else, such as an interrupted run or a crash.
        machines: machines of the farm, for the picture.
        findings: bottleneck, runner-up and candidates, each with its evidence.
        panels: charts of the run over time.
        distributions: latency distributions of the scenarios.
        tables: all tables by name, in reading order.
    """

    run: StoredRun
    verdict: JsonObject
    clock: TimeAxis
    summary: wording.Summary
    alarms: tuple[str, ...]
    machines: tuple[MachineBox, ...]
    findings: tuple[Finding, ...]
    panels: tuple[Panel, ...]
    distributions: tuple[Distribution, ...]
    tables: Mapping[str, Table]

    @property
    def next_words(self) -> str:
        """Return the next bottleneck as a sentence; "" if it is unknown."""
        return wording.following(self.verdict)

    @property
    def proof_words(self) -> str:
        """Return the result of the causal test; "" if no test was requested."""
        return verdict_tables.proof_words(self.verdict)

    @property
    def warnings(self) -> list[str]:
        """Return the warnings of the run and of the analysis without duplicates."""
        both = [*(self.verdict.get("warnings") or ()), *(self.run.manifest.get("warnings") or ())]
        return list(dict.fromkeys(str(warning) for warning in both))


def gather(run: StoredRun, verdict: JsonObject) -> Report:
    """Collect the content of a report from a run and its verdict. Writes nothing.

    Raises:
        InputError: ``verdict`` is not the content of a verdict.json.
    """
    _check(verdict)
    clock = clock_of(run)
    tables = (
        verdict_tables.advice(verdict),
        verdict_tables.demand(verdict),
        verdict_tables.objectives(verdict),
        verdict_tables.levels(verdict),
        verdict_tables.periods(verdict, clock.offset_s),
        verdict_tables.considered(verdict),
        verdict_tables.proof(verdict),
        verdict_tables.drift(verdict),
        verdict_tables.checkpoints(verdict),
        run_tables.scenarios(run.manifest, verdict),
        similarity(run, clock),
        run_tables.replayed(run),
        run_tables.operations(run, clock),
        verdict_tables.crawl(verdict),
        verdict_tables.crawl_stages(verdict),
        verdict_tables.crawl_log(verdict),
        verdict_tables.bursts(verdict),
        verdict_tables.writes(verdict),
        probes(run),
        waits(run, clock),
        top_statements(run),
        run_tables.disks(run.manifest, verdict),
        run_tables.cpus(run.manifest, verdict),
        verdict_tables.stores(verdict),
        run_tables.errors(run, clock),
        run_tables.generators(run, clock),
        run_tables.collectors(run, clock),
        run_tables.clocks(run),
        run_tables.blind(run),
        run_tables.imports(run),
        run_tables.incidents(run),
        run_tables.not_measured(run),
        run_tables.hosts(run),
        run_tables.host_disks(run),
        run_tables.versions(run),
        run_tables.content(run),
    )
    return Report(
        run=run,
        verdict=verdict,
        clock=clock,
        summary=wording.Summary.saved(verdict),
        alarms=_alarms(run, verdict),
        machines=picture(run, verdict, clock),
        findings=findings(verdict),
        panels=panels(run, clock),
        distributions=distributions(run, clock.window),
        tables={table.name: table for table in tables},
    )


def _check(verdict: Any) -> None:
    known = isinstance(verdict, Mapping) and verdict.get("schema") == SCHEMA
    if not known or verdict.get("outcome") not in wording.OUTCOME or not verdict.get("summary"):
        raise InputError(
            f"{VERDICT}: this is no verdict ({SCHEMA}); `pinchpoint analyse RUN` writes it anew from the run"
        )


def _alarms(run: StoredRun, verdict: JsonObject) -> tuple[str, ...]:
    result = [
        f"Acknowledged writes of {name} are lost: {writes['missing'] + writes['different']:,} of "
        f"{writes['records']:,} records read back."
        for name, figures in object_at(verdict, "scenarios").items()
        if (writes := figures.get("writes")) and writes["missing"] + writes["different"]
    ]
    # A warning about durability comes before all throughput figures.
    result += [
        f"{warning[0].upper()}{warning[1:]}."
        for servers in object_at(run.manifest, "endpoints").values()
        for said in (servers or {}).values()
        for warning in (said or {}).get("warnings") or ()
    ]
    state = str(run.manifest.get("state"))
    if state != "finished":
        result.append(wording.STATE.get(state, f"This run is in the state {state!r}, not finished."))
    result += [
        f"Tier {event.get('tier')} crashed at {event.get('time')} "
        f"({event.get('ended') or 'how is not recorded'}); the end of its log: see Data quality."
        for event in run.events
        if event.get("event") == "tier_crashed"
    ]
    result += [
        f"A guard ended this run: {event['why']}." for event in run.events if event.get("event") == "guard"
    ]
    return tuple(dict.fromkeys(result))  # two scenarios may use the same store
