"""Starts the controller's load generators, shares out the load, collects results, and ends the generators."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pinchpoint.loadgen.assignment import Assignment
from pinchpoint.loadgen.channels import BridgeProcess, GeneratorChannel, LocalGenerator
from pinchpoint.loadgen.slots import Owners, deal_slots, reassigned_slots

_READY_S = 60.0  # sessions of a slow farm open slowly
_STOP_S = 15.0  # operations in flight may take engine._STOP_S, then the last seconds are written
_SILENT_S = 4.0  # a generator sends a message every second; without one for this long it is lost
_STOOD_STILL_S = 1.0  # longest time between two checks; after a longer one this process was stopped
_AHEAD_NS = 300_000_000  # time for a message to reach all generators before a load begins


@dataclass(slots=True)
class GeneratorState:
    """One load generator, with the state that it has reported.

    Attributes:
        assignment: the generator's first assignment.
        channel: the connection to the generator.
        failed: (kind, why): ``environment`` (the farm refused) or ``recorder`` (the evidence is void); None
            without a failure.
        gone: why the generator can no longer be reached; None while it can be.
        heard_s: time of the generator's last message (monotonic, seconds).
        busy_s: extra time that the generator reported to need after the load, in seconds.
    """

    assignment: Assignment
    channel: GeneratorChannel
    ready: threading.Event = field(default_factory=threading.Event)
    stopped: threading.Event = field(default_factory=threading.Event)
    done: set[str] = field(default_factory=set)
    failed: tuple[str, str] | None = None
    gone: str | None = None
    lost: bool = False
    heard_s: float = field(default_factory=time.monotonic)
    busy_s: float = 0.0

    @property
    def name(self) -> str:
        """The worker's name."""
        return self.assignment.name


class GeneratorPool:
    """All generators of a run.

    Args:
        assignments: one per generator of this machine, without slots; the pool deals the slots.
        environment: environment variables of the generators, in which ``${ENV}`` of farm.yaml is expanded.
        on_event: called with an event's name and fields, from reader threads.
        on_second: called with a worker's name and its progress in a second, from reader threads.
        listen: (address, port) to listen on for workers of other machines; None: no such workers.
        elsewhere: assignment of a worker on another machine, without name, number, slots and ranks.
        journal: path of the run's journal folder, for the measurements of such workers.
        token: the secret that such workers share with this run.
    """

    def __init__(
        self,
        assignments: list[Assignment],
        environment: Mapping[str, str],
        on_event: Callable[..., None],
        on_second: Callable[[str, dict[str, Any]], None],
        listen: tuple[str, int] | None = None,
        elsewhere: Assignment | None = None,
        journal: str = "",
        token: str = "",
    ) -> None:
        self._planned = assignments
        self._environment = environment
        self._on_event = on_event
        self._on_second = on_second
        self._owners: dict[str, Owners] = {}
        self._begun_ns: dict[str, int] = {}
        self.generators: list[GeneratorState] = []
        self._joining: dict[str, dict[str, Any]] = {}
        self._elsewhere = elsewhere
        self._ending = False
        self._tended_s = time.monotonic()
        self._bridge: BridgeProcess | None = None
        if listen:
            self._bridge = BridgeProcess(*listen, journal, token, self._remote, on_event)

    # ---- before the load -------------------------------------------------------------------------

    def wait_joined(self, count: int, interrupted: Callable[[], bool], wait_s: float) -> int:
        """Wait until ``count`` workers of other machines have joined; return how many have."""
        until = time.monotonic() + wait_s
        while len(self._waiting()) < count and not interrupted() and time.monotonic() < until:
            if self._bridge and self._bridge.broken:
                break
            time.sleep(0.05)
        return len(self._waiting())

    def start(self) -> None:
        """Share the load out, and start every generator and every worker that has joined."""
        try:
            planned: list[tuple[Assignment, str | None]] = [(one, None) for one in self._planned]
            for waiting in self._waiting():
                planned.append((self._remote_assignment(len(planned), waiting), waiting))
            for scenario in dict.fromkeys(name for one, _ in planned for name in one.scenarios):
                self._owners[scenario] = deal_slots(
                    one.name for one, _ in planned if scenario in one.scenarios
                )
            for assignment, peer in planned:
                slots, ranks = self._slots(assignment.name), self._ranks(assignment.name)
                self._add(replace(assignment, slots=slots, ranks=ranks), peer)
        except BaseException:
            self.kill()
            raise

    def wait_ready(self, interrupted: Callable[[], bool], within_s: float = _READY_S) -> None:
        """Wait until every session of every generator is open, one failed, or the user interrupts."""
        waited_s = 0.0
        while not interrupted() and not self.failures() and waited_s < within_s:
            for generator in self.generators:
                if (
                    generator.gone
                    and not generator.lost
                    and not isinstance(generator.channel, LocalGenerator)
                ):
                    self._reassign_slots_of(generator)  # the load can begin without another machine
            if all(generator.ready.wait(0.05) for generator in self.generators if not generator.lost):
                return
            waited_s += 0.05
        if waited_s >= within_s:
            for generator in self.generators:
                if not (generator.ready.is_set() or generator.lost):
                    generator.failed = (
                        "environment",
                        f"opened no full set of sessions within {within_s:.0f} s",
                    )

    # ---- during the load -------------------------------------------------------------------------

    def begin(self, scenarios: list[str]) -> None:
        """Start the load of these scenarios in all generators at the same time."""
        at_ns = time.time_ns() + _AHEAD_NS
        self._begun_ns |= dict.fromkeys(scenarios, at_ns)
        self._tended_s = time.monotonic()
        for generator in self._reachable():
            generator.channel.send({"begin": scenarios, "at_ns": at_ns})

    def hold(self, held_s: Mapping[str, float]) -> None:
        """End the growth of loads in steps; scenario -> seconds since its load began, soon after now."""
        for generator in self._reachable():
            generator.channel.send({"hold": dict(held_s)})

    def begun_ns(self, scenario: str) -> int:
        """When the load of a scenario began or will begin (UTC, nanoseconds)."""
        return self._begun_ns[scenario]

    def loading(self) -> dict[str, int]:
        """Scenario -> begin of its load (UTC, nanoseconds), of begun scenarios with work left."""
        if self._ending:
            return {}
        return {name: at_ns for name, at_ns in self._begun_ns.items() if not self.done(name)}

    def check_workers(self) -> None:
        """Find lost workers and give their slots to others; to be called several times a second."""
        if self._ending:
            return
        now_s = time.monotonic()
        stood_s, self._tended_s = now_s - self._tended_s, now_s
        for generator in self._reachable():
            if stood_s > _STOOD_STILL_S:
                generator.heard_s = min(now_s, generator.heard_s + stood_s)
            if now_s - generator.heard_s > _SILENT_S:
                generator.gone = f"said nothing for {_SILENT_S:g} s"
        for generator in self.generators:
            if generator.gone and not generator.failed and not generator.lost and self._begun_ns:
                self._reassign_slots_of(generator)

    def done(self, scenario: str) -> bool:
        """Whether no generator has work left for a scenario."""
        return all(
            scenario in generator.done
            for generator in self.generators
            if scenario in generator.assignment.scenarios and not generator.lost
        )

    def failures(self) -> list[tuple[str, str, str]]:
        """(worker, kind, why) of every failed generator whose part was not taken over."""
        result = [(one.name, *one.failed) for one in self.generators if one.failed]
        result += [
            (one.name, "recorder", f"{one.gone}; it was to drive {', '.join(one.assignment.scenarios)}")
            for one in self.generators
            if one.gone
            and not one.failed
            and not one.lost
            and not self._begun_ns
            and isinstance(one.channel, LocalGenerator)
        ]
        if self._bridge and self._bridge.broken:
            result.append(("the workers' connection", "environment", self._bridge.broken))
        return result

    @property
    def local_pids(self) -> list[int]:
        """The process ids of the generators of this machine."""
        return [one.channel.process.pid for one in self.generators if isinstance(one.channel, LocalGenerator)]

    # ---- stopping --------------------------------------------------------------------------------

    def stop(self) -> None:
        """Stop the load and wait until every generator has written its measurements."""
        self._hear_of_all()
        asked = self._reachable()
        for generator in asked:
            generator.channel.send({"stop": True})
        begun = time.monotonic()
        for generator in asked:
            while not (generator.stopped.wait(0.05) or generator.gone):
                if time.monotonic() > begun + _STOP_S + generator.busy_s:
                    break
            if not generator.stopped.is_set():
                why = generator.gone or f"did not stop within {_STOP_S + generator.busy_s:.0f} s"
                generator.failed = generator.failed or ("recorder", why)
        self.kill()

    def kill(self) -> None:
        """End every generator at once, whatever it is doing. Safe to call twice."""
        self._ending = True
        for generator in self.generators:
            generator.channel.close()
        if self._bridge:
            self._bridge.close()

    def _hear_of_all(self) -> None:
        """Wait until each remote worker has sent one more message (a second at most) or is lost.

        The slots of a lost worker are reassigned, and the loss is reported, only while other workers run.
        """
        asked_s = time.monotonic()
        self.check_workers()
        while any(
            one.heard_s < asked_s for one in self._reachable() if not isinstance(one.channel, LocalGenerator)
        ) and not (self._ending or (self._bridge and self._bridge.broken)):
            time.sleep(0.05)
            self.check_workers()

    # ---- slots of the load -----------------------------------------------------------------------

    def _reassign_slots_of(self, lost: GeneratorState) -> None:
        """Give a lost worker's slots to workers of the same scenarios; if there are none, the run fails."""
        lost.channel.close()
        why = lost.gone or ""
        mine = [name for name, owners in self._owners.items() if owners.get(lost.name)]
        heard_ns = time.time_ns() - round((time.monotonic() - lost.heard_s) * 1e9)
        for scenario in mine:
            self._owners[scenario] = reassigned_slots(self._owners[scenario], lost.name)
        if not all(self._owners[scenario] for scenario in mine):
            lost.failed = (
                "recorder",
                f"{why}; it drove {', '.join(mine)}, and no other worker could take over",
            )
            return
        lost.lost = True
        from_ns = time.time_ns()
        self._send_slots(mine, from_ns, heard_ns if self._begun_ns else None)
        after_s = round((from_ns - heard_ns) / 1e9, 3)
        self._on_event("worker_lost", worker=lost.name, scenarios=mine, why=why, taken_over_after_s=after_s)

    def _send_slots(self, scenarios: list[str], from_ns: int, since_ns: int | None) -> None:
        for generator in self._reachable():
            owned = {
                scenario: {
                    "slots": sorted(self._owners[scenario][generator.name]),
                    "from_ns": from_ns,
                    "since_ns": since_ns,
                }
                for scenario in scenarios
                if generator.name in self._owners[scenario]
            }
            if owned:
                generator.channel.send({"own": owned})

    def _slots(self, worker: str) -> dict[str, list[int]]:
        return {name: sorted(owners[worker]) for name, owners in self._owners.items() if worker in owners}

    def _ranks(self, worker: str) -> dict[str, tuple[int, int]]:
        return {
            name: (list(owners).index(worker), len(owners))
            for name, owners in self._owners.items()
            if worker in owners
        }

    def _reachable(self) -> list[GeneratorState]:
        return [one for one in self.generators if not (one.gone or one.failed or one.lost)]

    # ---- messages of the generators --------------------------------------------------------------

    def _waiting(self) -> list[str]:
        """The workers of other machines that have joined and have no work yet.

        Lost workers are forgotten, because a restarted worker joins again.
        """
        for peer in list(self._joining):
            if self._bridge is None or not self._bridge.reaches(peer):
                del self._joining[peer]
        return list(self._joining)

    def _remote_assignment(self, number: int, peer: str) -> Assignment:
        assert self._elsewhere is not None  # noqa: S101 -- there is a bridge only where there is one
        joined = self._joining.pop(peer)
        name = f"generator{number + 1}"
        about = {"machine": joined["host"], "clock_offset_s": joined["clock_offset_ns"] / 1e9}
        self._on_event("worker_connected", worker=name, round_trip_s=joined["round_trip_ns"] / 1e9, **about)
        return replace(
            self._elsewhere,
            name=name,
            worker=number,
            beat_s=0.2 + 0.1 * (number % 7),
            journal="",
            cores=[],
            clock_offset_ns=joined["clock_offset_ns"],
        )

    def _add(self, assignment: Assignment, peer: str | None) -> None:
        channel: GeneratorChannel
        if peer is None:
            channel = LocalGenerator(self._environment)
        else:
            assert self._bridge is not None  # noqa: S101 -- whoever joined came over it
            channel = self._bridge.channel(peer)
        generator = GeneratorState(assignment, channel)
        self.generators.append(generator)
        channel.listen(
            lambda message: self._hear(generator, message), lambda why: self._end_of(generator, why)
        )
        channel.send(assignment.to_json() if peer is None else {"assignment": assignment.to_json()})

    def _remote(self, peer: str, joined: dict[str, Any]) -> None:
        self._joining[peer] = joined
        if self.generators and not self._ending:
            assert self._bridge is not None  # noqa: S101 -- whoever joined came over it
            self._bridge.send(peer, {"late": True})
            self._on_event("worker_late", machine=joined["host"])

    def _end_of(self, generator: GeneratorState, why: str) -> None:
        if not (self._ending or generator.stopped.is_set() or generator.failed):
            generator.gone = generator.gone or why

    def _hear(self, generator: GeneratorState, message: dict[str, Any]) -> None:  # noqa: C901 -- one case a message
        if generator.gone:
            return  # another worker has the share: messages would count twice
        generator.heard_s = time.monotonic()
        match message.pop("type"):
            case "ready":
                generator.ready.set()
            case "second":
                self._on_second(generator.name, message["progress"])
            case "event":
                self._on_event(message.pop("event"), worker=generator.name, **message)
            case "working":
                (generator.done.discard if message["working"] else generator.done.add)(message["scenario"])
            case "busy":
                generator.busy_s += message["for_s"]
            case "stopped":
                generator.stopped.set()
            case "failed" if isinstance(generator.channel, LocalGenerator) or not self._begun_ns:
                generator.failed = (message["kind"], message["why"])
            case "failed":  # another machine's worker failed: other workers take over
                generator.gone = f"could not go on: {message['why']}"
            case "unrecorded":
                generator.failed = ("recorder", message["why"])
