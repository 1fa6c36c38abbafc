"""Runs the phases of a run: warm-up, measurement and cool-down, and decides when each ends."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise

from pinchpoint.base import units
from pinchpoint.base.redact import masked_value
from pinchpoint.loadgen.pool import GeneratorPool
from pinchpoint.plan import Burst, Closed, Open, Plan, Ramp, Soak, Steps, ending_scenarios
from pinchpoint.run.progress import ProgressDisplay
from pinchpoint.run.prove import Prover
from pinchpoint.run.recent_seconds import LATE_S, RecentSeconds, Reported
from pinchpoint.run.step_controller import StepController
from pinchpoint.run.top_statements import TopStatements
from pinchpoint.store.write import RunWriter
from pinchpoint_collectors.common.times import utc

_TICK_S = 0.2
_COMPACT_EVERY_S = 30.0
_BEGUN_S = 0.01
"""Seconds after which a new second has certainly begun, despite differences of clocks."""
HELD = (Closed, Open, Soak)
"""Load models with a constant load, in which a steady state can be detected. Bursts and ramps change."""
STRETCH_S = 5.0
"""Length of the two periods that are compared, in seconds (design value)."""
SAME = 0.10
"""Largest relative difference of two rates that count as equal (design value, as in the analysis)."""
TIMES_SAME = 0.25
"""Largest relative difference of two p95 that count as equal. Percentiles vary more than rates (design
value)."""


def settled(before: Reported, after: Reported) -> bool:
    """Return whether the load of a scenario is in a steady state.

    Counts also differ by chance, so a difference up to twice the square root of their sum is ignored.
    """
    counts = before.ok, after.ok
    if not all(counts):
        return False
    apart = abs(counts[1] - counts[0])
    if apart > max(SAME * max(counts), 2 * math.sqrt(sum(counts))):
        return False
    if before.p95_s is None or after.p95_s is None:
        return False
    times = before.p95_s, after.p95_s  # an infinite time equals an infinite time
    return min(times) >= (1 - TIMES_SAME) * max(times)


class WebUiLoad:
    """Changes on Locust's page. The thread of the generator sets them, and the run reads them."""

    def __init__(self) -> None:
        self._users: dict[str, int] | None = None

    def set_users(self, users: dict[str, int]) -> None:
        """Set the number of users of each scenario."""
        self._users = users

    def taken_users(self) -> dict[str, int] | None:
        """Return the users set since the last call; None if nothing was set."""
        users, self._users = self._users, None
        return users


class PhaseRunner:
    """Runs the phases of one run.

    Args:
        plan: plan of the run.
        pool: load generators that are ready.
        store: run directory.
        live: reports of the generators.
        progress: shows the progress to the user.
        must_end: returns whether the run must end. It is called several times a second.
        prover: proves the verdict after the measurement; None if not requested.
        load_by_hand: changes on Locust's page if the page controls the load; None: the plan controls it.
        statements: reads the statement counters of the databases before and after the measurement.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what a run consists of
        self,
        plan: Plan,
        pool: GeneratorPool,
        store: RunWriter,
        live: RecentSeconds,
        progress: ProgressDisplay,
        must_end: Callable[[], bool],
        prover: Prover | None = None,
        load_by_hand: WebUiLoad | None = None,
        statements: TopStatements | None = None,
    ) -> None:
        self._statements = statements or TopStatements(())
        self._by_hand = load_by_hand
        self._plan = plan
        self._pool = pool
        self._store = store
        self._live = live
        self._progress = progress
        self._must_end = must_end
        self._prover = prover
        until_done = plan.phases.measure.until
        self._ending = ending_scenarios(plan) if until_done else []
        self._step_controllers = {
            name: StepController(name, planned.load, plan, store, live, pool)
            for name, planned in plan.scenarios.items()
            if isinstance(planned.load, Steps)
        }

    def run(self) -> None:
        """Run all phases until they end or an event ends the run. Afterwards the load has stopped."""
        phases = self._plan.phases
        # Loads that end or climb must be measured completely, so they begin with the measurement.
        late = [
            name
            for name, planned in self._plan.scenarios.items()
            if name in self._ending or isinstance(planned.load, Ramp | Steps)
        ]
        steady = [name for name in self._plan.scenarios if name not in late]
        with self._phase("warm_up"):
            self._begin(steady)
            going_on = self._warm_up(steady)
        if going_on:
            with self._phase("measure"):
                self._begin(late)
                self._statements.begin()
                going_on = self._measure()
                if result := self._statements.end():
                    self._store.manifest["statements"] = masked_value(result)
        if self._prover and not going_on:
            self._prover.not_begun("the run ended before its measuring did")
        elif self._prover:
            for steps in self._step_controllers.values():
                steps.hold()
            with self._phase("prove"):
                going_on = self._prover.run(self._wait, self._pool.done)
        self._progress.say("stopping the load")
        self._pool.stop()
        if going_on and phases.cool_down_s:
            with self._phase("cool_down"):
                self._wait("cool-down", phases.cool_down_s)

    def _begin(self, scenarios: list[str]) -> None:
        """Begin the load of scenarios, and record its start, from which its schedule counts."""
        self._pool.begin(scenarios)
        for name in scenarios:
            self._store.event("load_begun", scenario=name, at=utc(self._pool.begun_ns(name)))

    def _warm_up(self, steady: list[str]) -> bool:
        planned = self._plan.phases.warm_up
        begun = time.monotonic()
        if not planned.auto:
            return self._wait("warm-up", planned.at_most_s)
        if not steady:
            return True  # all load begins with the measurement, so there is no warm-up

        held = [name for name in steady if isinstance(self._plan.scenarios[name].load, HELD)]
        least_s = max(2 * STRETCH_S, *(self._period_s(name) for name in steady))

        left = list(held)

        def over() -> bool:
            now = time.monotonic() - LATE_S
            if now - begun < least_s:
                return False
            stretches = (now - 2 * STRETCH_S, now - STRETCH_S, now)
            left[:] = [
                name
                for name in held
                if not settled(*(self._live.between([name], *span) for span in pairwise(stretches)))
            ]
            return not left

        going_on = self._wait("warming up until the load has settled, at most", planned.at_most_s, over)
        self._note_warm_up(time.monotonic() - begun, left)
        if going_on and left:
            self._store.warn(
                f"{', '.join(left)} had not settled when the warm-up ended after "
                f"{units.seconds(planned.at_most_s)}; it was measured as it was"
            )
        return going_on

    def _period_s(self, name: str) -> float:
        """Return the seconds in which a load goes through its whole variation."""
        load = self._plan.scenarios[name].load
        return load.every_s if isinstance(load, Burst) else 0.0

    def _note_warm_up(self, lasted_s: float, unsettled: list[str]) -> None:
        result = {"lasted_s": round(lasted_s, 1), "settled": not unsettled, "unsettled": unsettled}
        self._store.manifest["warm_up"] = result
        self._store.event("warmed_up", **result)

    def _measure(self) -> bool:
        measure = self._plan.phases.measure
        if not (self._ending or self._step_controllers):
            return self._wait("measuring", measure.at_most_s + _rest_of_second_s())

        def done() -> bool:
            climbed = [steps.over() for steps in self._step_controllers.values()]
            return all(climbed) and all(map(self._pool.done, self._ending))

        what, verb = ("the steps", "are") if self._step_controllers else ("the work", "is")
        going_on = self._wait(f"measuring until {what} {verb} done, at most", measure.at_most_s, done)
        if going_on and not done():
            self._store.warn(
                f"incomplete: {what} not done after "
                f"{measure.at_most_s:.0f} s (measure: at_most); what is reported is the part that was"
            )
        return going_on

    def _wait(self, phase: str, length_s: float, done: Callable[[], bool] | None = None) -> bool:
        """Wait until the time is over or the work is done. Returns False if the run must end."""
        begun = compacted = time.monotonic()
        while (left_s := length_s - (time.monotonic() - begun)) > 0 and not (done and done()):
            if self._must_end():
                return False
            if self._by_hand and all(map(self._pool.done, self._plan.scenarios)):
                return self._phases[-1]["name"] == "measure"
            if self._by_hand and (users := self._by_hand.taken_users()):
                begun = time.monotonic()
                self._measure_from_now(users)
            self._progress.tick(phase, left_s)
            if time.monotonic() - compacted > _COMPACT_EVERY_S:
                self._store.compact()
                compacted = time.monotonic()
            time.sleep(min(_TICK_S, left_s))
        return True

    @property
    def _phases(self) -> list[dict[str, str | None]]:
        result: list[dict[str, str | None]] = self._store.manifest["phases"]
        return result

    def _measure_from_now(self, users: dict[str, int]) -> None:
        """Begin the measurement anew, because the user has changed the load.

        Earlier values are not judged.
        """
        for name, count in users.items():
            self._store.manifest["plan"]["scenarios"][name]["load"]["users"] = count
        if self._phases[-1]["name"] == "measure":
            self._phases[-1] |= {"name": "warm_up", "to": utc()}
            self._phases.append({"name": "measure", "from": utc(), "to": None})
            self._store.event("phase", phase="measure")
        self._store.save_manifest()

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        """Record the start and the end of a phase in manifest and events, also after an error."""
        self._phases.append({"name": name, "from": utc(), "to": None})
        self._store.save_manifest()
        self._store.event("phase", phase=name)
        try:
            yield
        finally:
            self._phases[-1]["to"] = utc()
            self._store.save_manifest()


def _rest_of_second_s() -> float:
    """Return the seconds until the next second of the clock has begun.

    Only whole seconds are judged. Ten seconds that begin within a second contain only nine of them.
    """
    return -time.time() % 1 + _BEGUN_S
