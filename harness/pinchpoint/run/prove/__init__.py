"""``run --prove``: slows a suspected resource down and restores it several times after the measurement.

This package decides which resource is changed and when. ``analysis.proof`` analyses the windows.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from pinchpoint.base import units
from pinchpoint.base.errors import FarmUnavailable, PinchpointError
from pinchpoint.base.objects import JsonObject
from pinchpoint.plan import Burst, Farm, Plan
from pinchpoint.run.progress import ProgressDisplay
from pinchpoint.run.prove.knobs import Knob, NoKnob, knob_for, restore_leftover
from pinchpoint.run.recent_seconds import LATE_S
from pinchpoint.store.coarse import step_s
from pinchpoint.store.schema import COARSE_S
from pinchpoint.store.write import RunWriter
from pinchpoint_collectors.common.times import utc

AS_IS, SLOWER, CONTROL = "as_is", "slower", "control"

_LETTERS = {"A": AS_IS, "B": SLOWER, "C": CONTROL}
ORDER = tuple(_LETTERS[letter] for letter in "ABBABAAB")
"""Order of the windows. Every kind of window has the same mean time, so that a drift of the load favours no
kind (the Thue-Morse sequence, which also cancels a changing drift)."""
ORDER_WITH_CONTROL = tuple(_LETTERS[letter] for letter in "ABCBAABCBA")
"""Order of the windows with a control: a resource without suspicion, whose slowdown must have no effect."""

LEAST_S, MOST_S = 6.0, 15.0
SETTLE_LEAST_S, SETTLE_MOST_S = 2.0, 10.0
OPERATIONS_LONG = 20
"""Length of a window in multiples of the usual operation time (design value)."""


@dataclass(frozen=True, slots=True)
class WindowPlan:
    """The begin and the length of windows.

    Attributes:
        settle_s: shortest time between a change and the start of its window, in seconds.
        length_s: length of a window in whole seconds.
        grid_s: interval of stored operations in seconds. Windows begin and end at multiples of it.
    """

    settle_s: float
    length_s: int
    grid_s: int

    def begin_s(self, now_s: float) -> int:
        """Return the UTC second at which the window begins if a change is made now."""
        return math.ceil((now_s + self.settle_s) / self.grid_s) * self.grid_s

    def at_most_s(self, windows: int) -> float:
        """Return the longest time in seconds that a number of windows takes."""
        return windows * (self.settle_s + self.grid_s + self.length_s)


def pace(plan: Plan, verdict: JsonObject, recorded_s: int) -> WindowPlan | str:
    """Return the window plan for a load, or the reason why there is none.

    Args:
        plan: plan of the current load.
        verdict: verdict on the measurement, with the times of operations.
        recorded_s: seconds that a row of operations covers: 1, or 10 in a long run.
    """
    rows = verdict["scenarios"].values()
    usual_s = max((row["service_p50_s"] or 0.0 for row in rows), default=0.0)
    longest_s = max((row["service_p95_s"] or 0.0 for row in rows), default=0.0)
    settle_s = min(SETTLE_MOST_S, max(SETTLE_LEAST_S, 3 * longest_s))
    length_s = math.ceil(min(MOST_S, max(LEAST_S, OPERATIONS_LONG * usual_s)))
    if recorded_s > 1:
        return WindowPlan(settle_s, 2 * COARSE_S, COARSE_S)
    periods = [one.load.every_s for one in plan.scenarios.values() if isinstance(one.load, Burst)]
    if not periods:
        return WindowPlan(settle_s, length_s, 1)
    period_s = math.ceil(max(periods))
    if period_s > MOST_S or any(period % 1 for period in periods):
        return (
            f"its load comes in bursts every {max(periods):g} s: a window would have to be so long, and of "
            f"whole seconds; up to {MOST_S:g} s can be proved"
        )
    return WindowPlan(settle_s, math.lcm(*(int(period) for period in periods)), 1)


_VERDICT_S = 120.0
"""Time limit for calculating the verdict in seconds: ten times that of a day's run. The load continues."""
_LEASE_S = 60.0  # longer than the window: an embedded farm restores itself after that time
_LONGEST_S = 600
_ROOM = 0.9
"""Utilisation under which a slowed-down control must stay."""

_NAMED = ("kind", "tier", "host", "resource", "instance", "role")


class WaitUnderLoad(Protocol):
    """Waits while the load continues."""

    def __call__(self, phase: str, length_s: float, done: Callable[[], bool] | None = None) -> bool:
        """Wait until the time is over or the work is done. Returns False if the run must end."""
        ...


class _Ended(Exception):  # noqa: N818 -- what happened, not a fault
    """The run must end."""


class Prover:
    """Proves the verdict of one run, and records the test in the manifest (``proof``).

    Args:
        farm: farm of the run.
        plan: plan of the run.
        store: run directory.
        progress: shows the progress to the user.
        report_unrestored_slowdown: receives a sentence if a resource could not be restored.
    """

    def __init__(
        self,
        farm: Farm,
        plan: Plan,
        store: RunWriter,
        progress: ProgressDisplay,
        report_unrestored_slowdown: Callable[[str], None],
    ) -> None:
        self._farm = farm
        self._plan = plan
        self._store = store
        self._progress = progress
        self._left_slower = report_unrestored_slowdown

    def run(self, wait: WaitUnderLoad, done: Callable[[str], bool]) -> bool:
        """Run the whole test under the load that was judged.

        Args:
            wait: waits while the load continues.
            done: returns whether a scenario has no work left.

        Returns:
            Returns False if the run must end. All slowdowns have been restored then.
        """
        try:
            result = self._prove(wait, done)
        except _Ended:
            self._note({"result": "failed", "why": "the run was ended before the test was complete"})
            return False
        except PinchpointError as error:
            result = {"result": "failed", "why": str(error)}
        self._note(result)
        return True

    def not_begun(self, why: str) -> None:
        """Record that there was no test."""
        self._note({"result": "failed", "why": why})

    def _prove(self, wait: WaitUnderLoad, done: Callable[[str], bool]) -> dict[str, Any]:
        over = [name for name in self._plan.scenarios if done(name)]
        if over:
            return {
                "result": "not_supported",
                "why": f"{', '.join(over)} has no work left: the load that was judged has ended; measure for "
                "a fixed time (measure: 5m)",
            }
        verdict = self._verdict(wait)
        suspect = verdict["bottleneck"] or next(iter(verdict["candidates"]), None)
        if suspect is None or verdict["outcome"] not in {"bottleneck", "inconclusive"}:
            return {"result": "nothing_to_prove", "why": "the verdict names no resource"}
        named = {key: suspect[key] for key in _NAMED}
        hosts = self._store.manifest["hosts"]
        knob = knob_for(self._farm, named, verdict, hosts, all_of_it=False)
        recorded_s = step_s(self._store.manifest, utc(time.time_ns() + _LONGEST_S * 10**9))
        times = pace(self._plan, verdict, recorded_s)
        if isinstance(knob, NoKnob):
            return {"result": knob.result, "why": knob.why, "suspect": named}
        if isinstance(times, str):
            return {"result": "not_supported", "why": times, "suspect": named}
        control = self._control(verdict, named)
        result: dict[str, Any] = {
            "suspect": named,
            "change": _change(knob),
            "control": None,
        }
        if control:
            result["control"] = {"suspect": control[0], "change": _change(control[1])}
        return {**result, "windows": self._windows(wait, times, knob, control[1] if control else None)}

    def _verdict(self, wait: WaitUnderLoad) -> dict[str, Any]:
        """Return the verdict of the measurement from a child process. Raises FarmUnavailable if it fails."""
        self._go_on(wait("proving: the last seconds come in", LATE_S))
        self._store.compact()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            command = [
                sys.executable,
                "-m",
                "pinchpoint.run.prove.judge_in_progress",
                str(self._store.directory),
            ]
            with subprocess.Popen(command, stdout=out, stderr=err, start_new_session=True) as child:
                try:
                    self._go_on(
                        wait(
                            "proving: judging what was measured", _VERDICT_S, lambda: child.poll() is not None
                        )
                    )
                    if child.poll() is None:
                        raise FarmUnavailable(f"judging what was measured took longer than {_VERDICT_S:g} s")
                finally:
                    if child.poll() is None:
                        child.kill()
            out.seek(0)
            err.seek(0)
            if child.returncode:
                words = err.read().decode(errors="replace").strip().splitlines()[-1:]
                raise FarmUnavailable(f"what was measured could not be judged: {' '.join(words)}")
            verdict: dict[str, Any] = json.load(out)
            return verdict

    def _control(self, verdict: JsonObject, suspect: JsonObject) -> tuple[dict[str, Any], Knob] | None:
        """Return the next bottleneck as a control, if its headroom is large enough for a slowdown."""
        following = verdict["next"]
        if not following:
            return None
        named = {key: following[key] for key in _NAMED}
        same = all(named[key] == suspect[key] for key in ("tier", "host", "resource", "instance"))
        knob = knob_for(self._farm, named, verdict, self._store.manifest["hosts"], all_of_it=True)
        if same or isinstance(knob, NoKnob) or following["utilisation_ratio"] > _ROOM * knob.ratio:
            return None
        return {**named, "utilisation_ratio": following["utilisation_ratio"]}, knob

    def _windows(
        self, wait: WaitUnderLoad, times: WindowPlan, suspect: Knob, control: Knob | None
    ) -> list[dict[str, str]]:
        order = ORDER_WITH_CONTROL if control else ORDER
        knobs = {AS_IS: None, SLOWER: suspect, CONTROL: control}
        self._progress.say(
            f"proving: {suspect.what} works at {units.percent(suspect.ratio)} of its speed, by turns, for "
            f"{units.seconds(times.at_most_s(len(order)))} at most"
        )
        result = []
        for number, kind in enumerate(order, 1):
            words = f"proving, window {number} of {len(order)} ({kind.replace('_', ' ')})"
            with self._slower(knobs[kind], times):
                begin_s = times.begin_s(time.time())
                end_s = begin_s + times.length_s
                self._go_on(wait(words, end_s - time.time()))
            result.append({"what": kind, "from": utc(begin_s * 10**9), "to": utc(end_s * 10**9)})
        return result

    @contextmanager
    def _slower(self, knob: Knob | None, times: WindowPlan) -> Iterator[None]:
        """Slow a resource down, and restore it in any case. Raises FarmUnavailable."""
        if knob is None:
            yield
            return
        try:
            knob.slower(times.at_most_s(1) + _LEASE_S)
            self._store.event("made_slower", what=knob.what, ratio=knob.ratio)
            yield
        finally:
            self._put_back(knob)

    def _put_back(self, knob: Knob) -> None:
        """Restore a resource.

        Raises FarmUnavailable if that fails; the exit status of the run then shows it.
        """
        try:
            knob.restore()
        except FarmUnavailable as error:
            why = f"{knob.what} was made slower for a test and could not be put back: {error}"
            self._left_slower(why)
            raise FarmUnavailable(why) from error
        self._store.event("put_back", what=knob.what)

    def _go_on(self, going_on: bool) -> None:
        if not going_on:
            raise _Ended

    def _note(self, value: JsonObject) -> None:
        self._store.manifest["proof"] = dict(value)
        self._store.save_manifest()
        if "result" in value:
            self._progress.say(f"not proved: {value['why']}")


def _change(knob: Knob) -> dict[str, Any]:
    """Return the information about a change for the analysis."""
    return {"what": knob.what, "ratio": knob.ratio, "of": knob.of}


__all__ = ["Prover", "restore_leftover"]
