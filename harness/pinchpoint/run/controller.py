"""Runs one plan against one farm: preflight checks, phases, and storage of the results."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from pinchpoint.base.errors import ExitStatus, FarmUnavailable
from pinchpoint.base.interrupts import ASK_S, Interrupted, Interrupts, NoAnswer
from pinchpoint.farm.ready import ReadyFarm, ready_farm
from pinchpoint.loadgen.assignment import Assignment
from pinchpoint.loadgen.pool import GeneratorPool
from pinchpoint.loadgen.scenarios import make_scenario, planned_scenarios
from pinchpoint.loadgen.workers import ONE_EACH, Assignments, WorkerOptions, assign, worker_commands
from pinchpoint.plan import Farm, Plan, guard, guard_proof
from pinchpoint.run import preflight
from pinchpoint.run.collecting import Collectors, LateValues
from pinchpoint.run.manifest import first_manifest
from pinchpoint.run.phases import PhaseRunner, WebUiLoad
from pinchpoint.run.preflight import Connected, places
from pinchpoint.run.progress import Board, ProgressDisplay, machines_of
from pinchpoint.run.prove import Prover, restore_leftover
from pinchpoint.run.recent_seconds import RecentSeconds, longest_look_s
from pinchpoint.run.stop_rules import StopRules
from pinchpoint.run.top_statements import TopStatements
from pinchpoint.store.write import RunWriter, free_path
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.linux import others
from pinchpoint_collectors.options import tier_processes
from pinchpoint_collectors.record import Processes, Sample
from pinchpoint_collectors.sampler import Sampler
from pinchpoint_scenarios.contract import Resumable, Scenario
from pinchpoint_scenarios.errors import EndpointUnreachable, ScenarioError

_BY_THE_USER = "interrupted by the user"
_OTHERS_S = 2.0
"""Interval in seconds for reading other processes of this machine. A reading takes some milliseconds."""
_ASK_CRASHED_S = 1.0
_GATHER_S = 120.0  # a user starts remote workers by hand, or they return from the last run


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of one run of a plan on a farm.

    Attributes:
        keep_data: whether the data of the scenarios stay on the farm.
        crew: number and place of the load generator processes.
        prove: whether the bottleneck is slowed down for a while after the measurement (``prove``).
        resume: whether interrupted work is continued.
        take_over: whether the data of another run in a store are taken over.
        reset_index: names of indexes that are reset first, on a farm with its own crawler.
        overrides: phases from the command line that replace those of the plan (``{"measure": "30s"}``).
    """

    keep_data: bool = False
    crew: WorkerOptions = ONE_EACH
    prove: bool = False
    resume: bool = False
    take_over: bool = False
    reset_index: tuple[str, ...] = ()
    overrides: Mapping[str, str] = field(default_factory=dict)


PLAIN = RunOptions()


@dataclass(slots=True)
class RunEnd:
    """The result of a run.

    Attributes:
        directory: run directory.
        statuses: exit statuses that apply. The verdict may add one.
        reasons: sentences on why the run did not end as planned.
        whole: whether everything planned was measured.
    """

    directory: Path
    statuses: list[ExitStatus] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    whole: bool = True

    def cut_short(self, status: ExitStatus, reason: str) -> None:
        """Record an exit status and a reason; the run then counts as incomplete."""
        self.whole = False
        self.note(status, reason)

    def note(self, status: ExitStatus, reason: str) -> None:
        """Record an exit status and a reason; whether the run counts as complete does not change."""
        self.statuses.append(status)
        self.reasons.append(reason)


def run(
    farm: Farm, plan: Plan, out: Path, progress: ProgressDisplay, board: Board, options: RunOptions = PLAIN
) -> RunEnd:
    """Run a plan against a farm. Returns after all processes that it started have ended.

    Raises:
        GuardError: the farm is a production farm, and the plan writes or the run would prove its verdict.
        FarmUnavailable: something that the plan needs is not reachable or not permitted. Nothing was
            measured.
        NotEvidenceError: the run directory could not be written (disk full). Its data can be recovered. After
            the measurement, FarmUnavailable is raised instead.
        Interrupted: the user stopped before any measurement, or twice. The results can be recovered.
    """
    _may_begin(farm, plan, out, progress, options)
    with Interrupts() as interrupts, ready_farm(farm, progress.say) as live, ExitStack() as stack:
        progress.say("checking every endpoint and collector")
        given = planned_scenarios(plan)
        assignments = assign(options.crew, given, live.endpoints, live.generator_cores, plan.seed)

        def make(name: str) -> Scenario:
            """Return a scenario for the controller, which only prepares and removes data."""
            return make_scenario(
                name, given[name], live.endpoints, plan.seed, 0, 1, no_event,
                resume=options.resume, take_over=options.take_over, reset_index=options.reset_index,
            )  # fmt: skip

        made = {name: make(name) for name in given}
        interrupts.left = lambda: _places(made)
        facts, connected = _preflight(made, live, stack)
        manifest = first_manifest(farm, plan, live, facts, connected, assignments.here)
        if options.overrides:
            manifest["overrides"] = dict(options.overrides)
        with closing(RunWriter(free_path(out, f"{plan.name}-{farm.name}"), manifest)) as store:
            ended = RunEnd(store.directory)
            reach = partial(_reach, make)
            in_progress = _RunInProgress(
                plan, live, store, progress, board, interrupts, ended, reach, options=options
            )
            if options.prove:
                in_progress.prover = Prover(
                    farm, plan, store, progress, in_progress.report_unrestored_slowdown
                )
            try:
                live.limit(False)  # data are loaded at full speed, also if the farm was already running
                in_progress.prepare(made)
                in_progress.measure(assignments, connected)
            finally:
                interrupts.shield()
                try:
                    in_progress.remove_data(made)
                finally:
                    if not in_progress.is_ready:
                        store.discard()
            in_progress.finish()
    if interrupts.requested and ExitStatus.INTERRUPTED not in ended.statuses:
        # The user interrupted after the measurement: the run is complete, but no further run follows.
        ended.note(ExitStatus.INTERRUPTED, f"{_BY_THE_USER} while it was ending")
    return ended


def _may_begin(farm: Farm, plan: Plan, out: Path, progress: ProgressDisplay, options: RunOptions) -> None:
    """Check that the run may begin, and restore what an earlier run left slowed down.

    Raises GuardError, FarmUnavailable.
    """
    guard(farm, plan)
    if options.prove:
        guard_proof(farm)
    if sentence := restore_leftover(farm.identity):
        progress.say(sentence)
    space = preflight.check_space(out)
    if not space.ok:
        raise FarmUnavailable(f"{space.what}: {space.found}")


def no_event(*_: Any, **__: Any) -> None:
    """Ignore an event of the controller's scenarios, because only events of load generators are recorded."""


def _places(scenarios: Mapping[str, Scenario]) -> list[str]:
    """Return a sentence on the place of each scenario's data."""
    return [
        f"{name}: {target.place}, {target.inside}"
        for name, scenario in scenarios.items()
        if scenario.writes
        for target in scenario.intent().targets
        if target.use == "written"
    ]


def _reach(make: Callable[[str], Scenario], name: str) -> None:
    """Contact the servers of a scenario over separate connections. Raises EndpointUnreachable."""
    try:
        make(name).check()
    except EndpointUnreachable:
        raise
    except ScenarioError:
        pass  # the server answers, and that is sufficient


def _preflight(
    scenarios: Mapping[str, Scenario], live: ReadyFarm, stack: ExitStack
) -> tuple[dict[str, Any], list[Connected]]:
    checks, facts = preflight.check_scenarios(scenarios)
    connected = []
    for check, collector in preflight.connect(live.watches, stack):
        checks.append(check)
        if collector:
            connected.append(collector)
    bad = [f"{check.what}: {check.found}" for check in checks if not check.ok]
    if bad:
        raise FarmUnavailable("\n".join(bad))
    return facts, connected


def _farm_here(live: ReadyFarm) -> list[Processes]:
    """Return the farm's own processes on this machine; for an embedded farm also its supervisor."""
    result = []
    for kind, watch in live.watches:
        processes = tier_processes(watch) if kind == "local" else None
        if processes is None:
            continue
        result.append(processes)
        for pid in processes.pids:
            with suppress(psutil.Error):
                parent = psutil.Process(pid).ppid()
                result += [Processes(pids=(parent,))] if parent > 1 else []
    return result


class _RunInProgress:
    """A run in progress, with one method for each step of ``run``."""

    def __init__(  # noqa: PLR0913 - what a run consists of
        self,
        plan: Plan,
        live: ReadyFarm,
        store: RunWriter,
        progress: ProgressDisplay,
        board: Board,
        interrupts: Interrupts,
        ended: RunEnd,
        reach: Callable[[str], None],
        *,
        options: RunOptions,
    ) -> None:
        self._plan = plan
        self._options = options
        self._reach = reach
        self._live = live
        self._store = store
        self._progress = progress
        self._board = board
        self._interrupts = interrupts
        self._ended = ended
        self._live_seconds = RecentSeconds(longest_look_s(plan))
        self._rules = StopRules((), {}, (), self._live_seconds)
        self._collectors = Collectors(store, ())
        self._others: Sampler | None = None
        self._unproved = False
        self._rules_due = True
        self._ready: set[str] = set()  # scenarios whose data exist
        self._load_by_hand: WebUiLoad | None = None
        self.prover: Prover | None = None
        self.is_ready = False  # whether data and workers exist; a run that ends before that is not kept

    def report_unrestored_slowdown(self, why: str) -> None:
        """Record that a part of the farm is still slowed down. The measurement is valid."""
        self._ended.cut_short(ExitStatus.ENVIRONMENT, why)

    def prepare(self, scenarios: Mapping[str, Scenario]) -> None:
        """Create the data that the scenarios need. Raises FarmUnavailable."""
        for name, scenario in scenarios.items():
            self._store.event("prepare", scenario=name)
            try:
                with self._interrupts.while_answering(partial(self._reach, name), partial(places, scenario)):
                    scenario.prepare(lambda sentence, name=name: self._progress.say(f"{name}: {sentence}"))  # type: ignore[misc]
            except (ScenarioError, NoAnswer) as error:
                self._ended.cut_short(ExitStatus.ENVIRONMENT, f"{name}: {error}")
                raise FarmUnavailable(f"{name}: {error}") from error
            self._ready.add(name)

    def measure(self, assignments: Assignments, connected: Sequence[Connected]) -> None:
        """Load and measure through all phases, until they end or an event ends the run."""
        crew = self._options.crew
        journal = str(self._store.journal.absolute())
        self._rules = StopRules(
            self._plan.stop_when,
            self._store.manifest["hosts"],
            list(self._plan.scenarios),
            self._live_seconds,
        )
        self._collectors = Collectors(self._store, (self._board.samples, self._rules.samples))
        pool = GeneratorPool(
            [replace(assignment, journal=journal) for assignment in assignments.here],
            os.environ,
            self._on_generator_event,
            self._on_second,
            crew.listen,
            assignments.elsewhere,
            journal,
            crew.token,
        )
        try:
            self._gather(pool, crew, assignments.elsewhere)
            self.is_ready = True
            pool.start()
            for pid in pool.local_pids:
                self._live.confine(pid)
            self._wait_ready(pool, crew)
            self._collectors.start(connected)
            self._others = self._watch_others(assignments)
            self._interrupts.graceful = True
            self._progress.watch(machines_of(self._store.manifest["hosts"]), self._documents())
            self._live.limit(True)
            PhaseRunner(
                self._plan,
                pool,
                self._store,
                self._live_seconds,
                self._progress,
                lambda: self._must_end(pool),
                self.prover,
                self._load_by_hand,
                TopStatements(connected),
            ).run()
            self._store.measured = not (pool.failures() or self._collectors.errors)
        except Interrupted:
            # Two interrupts may arrive between two checks, and the next steps must react to both.
            self._ended.cut_short(ExitStatus.INTERRUPTED, _BY_THE_USER)
            raise
        finally:
            self._interrupts.shield()
            pool.kill()
            if self._others:
                self._others.ask_to_stop()
            self._collectors.stop(LateValues(self._progress.say, lambda: self._interrupts.requested))
            if self._others:
                # a read of /proc may never end: earlier samples are kept
                with suppress(CollectorError):
                    self._others.stop()
            self._progress.end_live()
        self._note_failures(pool)
        self._note_load_by_hand()

    def _wait_ready(self, pool: GeneratorPool, crew: WorkerOptions) -> None:
        if crew.web_ui_port is None:
            pool.wait_ready(lambda: self._interrupts.requested)
            return
        self._load_by_hand = WebUiLoad()
        pool.wait_ready(lambda: self._interrupts.requested, math.inf)

    def _note_load_by_hand(self) -> None:
        if self._load_by_hand is None or self._ended.statuses:
            return
        if not any(phase["name"] == "measure" for phase in self._store.manifest["phases"]):
            why = "stopped on Locust's page before the measurement began"
            self._ended.cut_short(ExitStatus.INTERRUPTED, why)
            return
        scenarios = self._store.manifest["plan"]["scenarios"]
        users = ", ".join(f"{name} {given['load']['users']}" for name, given in scenarios.items())
        self._store.warn(
            f"the number of users was set on Locust's page ({users}); "
            "the time since the last change is judged"
        )

    def _watch_others(self, assignments: Assignments) -> Sampler | None:
        """Measure the CPU use of other processes on this machine; None if this machine generates no load."""
        if not assignments.here:
            return None
        host = assignments.here[0].name

        def keep(samples: Sequence[Sample]) -> None:
            self._store.samples([sample for sample in samples if sample.metric == others.METRIC])

        source = others.OtherProcesses(host, _farm_here(self._live))
        # If other processes are not readable, they are not measured and the run continues. Their gaps are not
        # reported.
        sampler = Sampler(
            source, "others", [host], keep, interval_s=_OTHERS_S, on_event=lambda *_, **__: None
        )
        return sampler.start()

    def _gather(self, pool: GeneratorPool, crew: WorkerOptions, elsewhere: Assignment) -> None:
        """Wait for remote workers. Raises FarmUnavailable if they do not arrive in time."""
        if crew.listen is None:
            return
        host, port = crew.listen
        self._progress.say("to start a load worker, type on its machine:")
        for command in worker_commands(crew, elsewhere):
            self._progress.say(f"  {command}")
        self._progress.say(f"waiting at {host}:{port} for {crew.remote} workers")
        result = pool.wait_joined(crew.remote, lambda: self._interrupts.requested, _GATHER_S)
        if result < crew.remote:
            broken = [why for _, _, why in pool.failures()]
            why = (
                broken[0] if broken else f"{result} of {crew.remote} workers joined within {_GATHER_S:.0f} s"
            )
            self._ended.cut_short(ExitStatus.ENVIRONMENT, why)
            raise FarmUnavailable(why)

    def _on_second(self, worker: str, progress: dict[str, dict[str, Any]]) -> None:
        self._board.second(worker, progress)
        self._live_seconds.second(progress)

    def _on_generator_event(self, event: str, /, **fields: Any) -> None:
        """Record workers that join or leave in the manifest, the events and the report."""
        if event == "worker_connected":
            connected = {"worker": fields["worker"], "cores": [], **fields}
            self._store.manifest["generators"].append(connected)
            self._store.save_manifest()
        elif event == "worker_lost":
            worker, why, after_s = fields["worker"], fields["why"], fields["taken_over_after_s"]
            self._store.warn(
                f"load generator {worker}, which drove {', '.join(fields['scenarios'])}, was lost ({why}); "
                f"others took over its share {after_s:.1f} s later; what was due meanwhile counts as dropped"
            )
        elif event == "worker_dropped":
            machine = fields["machine"] or "another machine"
            self._store.warn(
                f"a load worker on {machine} {fields['why']}; it was dropped, and the run went on"
            )
        elif event == "worker_late":
            self._store.warn(
                f"a load worker on {fields['machine']} joined after the run had begun; workers take part "
                "only from the beginning, so it did no work here and waits for the next run"
            )
        elif event == "connections_unproved" and not self._unproved:
            self._unproved = True
            self._progress.say(
                "something connected to the port for load workers without this run's token, and was turned "
                "away; if it was a worker of yours, give it the token"
            )
        elif event == "web_ui_ready":
            self._progress.say(f"Locust's page: {fields['url']} (the run begins when you press Start there)")
        elif event == "users_set" and self._load_by_hand is not None:
            self._load_by_hand.set_users(fields["users"])
        self._store.event(event, **fields)

    def remove_data(self, scenarios: Mapping[str, Scenario]) -> None:
        """Remove the data that ``prepare`` created. What cannot be removed is reported.

        Data of interrupted work are kept: --resume continues the work, and a run without --resume starts
        anew. Data of work that this run should have continued but did not reach are kept, too.
        """
        keep_data = self._options.keep_data
        begun = any(phase["name"] == "measure" for phase in self._store.manifest["phases"])
        cut_off = ExitStatus.INTERRUPTED in self._ended.statuses if begun else self._options.resume
        unfinished = bool(self._plan.phases.measure.until) and cut_off
        try:
            self._live.limit(False)
        except FarmUnavailable as error:
            self._ended.cut_short(ExitStatus.ENVIRONMENT, str(error))
        self._progress.say("keeping the data it made" if keep_data else "removing the data it made")
        # A crashed server is only checked for a short time, because its clients would retry for a minute.
        ask_s = _ASK_CRASHED_S if self._live.crashed() else ASK_S
        for name, scenario in scenarios.items():
            resumable = isinstance(scenario, Resumable) and scenario.resumable
            kept = unfinished and resumable and not keep_data
            if kept and name in self._ready:
                self._progress.say(
                    f"{name}: what it has done stays on the farm; run --resume goes on with it"
                )
            try:
                with self._interrupts.while_answering(
                    partial(self._reach, name), partial(places, scenario), ask_s
                ):
                    try:
                        scenario.finish(keep_data=keep_data or kept)
                    except EndpointUnreachable:
                        # the server answers again: the server or this machine was suspended
                        self._reach(name)
                        scenario.finish(keep_data=keep_data or kept)
            except (ScenarioError, NoAnswer, OSError, MemoryError, RuntimeError) as error:
                # The farm may have failed, or this machine may lack descriptors or memory (RuntimeError: for
                # a thread). The user must know which data remain.
                reason = f"{name}: the data it made could not be removed: {error or 'too little memory'}"
                self._ended.cut_short(ExitStatus.ENVIRONMENT, reason)
                self._progress.say(reason)

    def finish(self) -> None:
        """Convert the journals to the files of the run. Raises NotEvidenceError."""
        self._progress.say("writing the run's files")
        for number, sentence in self._rules.not_measured():
            self._progress.say(f"warning: {sentence}")
            self._store.warn(sentence, stop_rule=number)
        if not self._ended.whole:
            self._store.warn(f"incomplete: {self._ended.reasons[0].splitlines()[0]}")
        self._store.finish("finished" if self._ended.whole else "interrupted")

    def _note_disk_events(self) -> None:
        """Report events of an emulated disk to the user. The analysis does not use them."""
        for happened in self._live.disk_events():
            self._store.event("emulated_disk", **happened)

    def _must_end(self, pool: GeneratorPool) -> bool:
        pool.check_workers()
        self._note_disk_events()
        if result := self._rules.broken(pool.loading(), self._collectors.silences()):
            self._ended.cut_short(ExitStatus.GUARD, result.why)
            self._store.event("guard", stop_rule=result.number, why=result.why)
        if self._rules_due and self._rules.due:
            self._rules_due = False
            for _, sentence in self._rules.not_measured():
                self._progress.say(f"warning: {sentence} so far")
        if self._interrupts.requested:
            self._ended.cut_short(ExitStatus.INTERRUPTED, _BY_THE_USER)
            self._store.event("interrupted")
        for crash in self._live.crashed():
            self._ended.cut_short(ExitStatus.ENVIRONMENT, crash.words)
            self._store.event("tier_crashed", **asdict(crash))
        if why := self._collectors.lost():
            self._ended.cut_short(ExitStatus.ENVIRONMENT, why)
            self._store.event("required_collector_failed", why=why)
        return bool(self._ended.statuses or pool.failures() or self._collectors.errors)

    def _note_failures(self, pool: GeneratorPool) -> None:
        """Record each failure that ended the run or made it invalid, and report it to the user."""
        for worker, kind, why in pool.failures():
            if kind == "environment":
                self._ended.cut_short(ExitStatus.ENVIRONMENT, f"{worker} could not go on: {why}")
            else:
                self._ended.cut_short(ExitStatus.NOT_EVIDENCE, f"{worker} failed: {why}")
                self._store.event("recorder_failed", worker=worker, why=why)
        for error in self._collectors.errors:
            self._ended.cut_short(ExitStatus.NOT_EVIDENCE, f"the recorder failed: {error}")
            self._store.event("recorder_failed", worker="controller", why=str(error))

    def _documents(self) -> dict[str, int]:
        """Return the number of documents of a crawl that ends; None if there is none or it is unknown."""
        crawls = [
            name
            for name, planned in self._plan.scenarios.items()
            if planned.use == "full-crawl" and not {"drive", "sources"} & set(planned.params)
        ]
        total = (self._store.manifest["content"] or {}).get("documents")
        return {crawls[0]: int(total)} if len(crawls) == 1 and total else {}
