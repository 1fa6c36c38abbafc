"""The controller's side of its load generators: start them, tell them, hear them, end them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pinchpoint.loadgen.load import Assignment

_READY_S = 60.0  # sessions of a slow farm take a while to open
_STOP_S = 15.0  # operations in flight may take engine._STOP_S, then the last seconds are written


@dataclass(slots=True)
class Generator:
    """One child process and what it has said of itself."""

    assignment: Assignment
    process: subprocess.Popen[bytes]
    ready: threading.Event = field(default_factory=threading.Event)
    stopped: bool = False
    done: set[str] = field(default_factory=set)
    failed: tuple[str, str] | None = None
    """(kind, why): ``environment`` (the farm refused) or ``recorder`` (the evidence is no longer valid)."""

    @property
    def name(self) -> str:
        """The worker's name."""
        return self.assignment.name


class GeneratorPool:
    """All local generators of a run.

    Args:
        assignments: one per generator.
        environment: the environment variables they get (``${ENV}`` of farm.yaml is expanded there).
        on_event: called with an event's name and fields, from reader threads.
        on_second: called with a worker's name and its progress, from reader threads.
    """

    def __init__(
        self,
        assignments: list[Assignment],
        environment: Mapping[str, str],
        on_event: Callable[..., None],
        on_second: Callable[[str, dict[str, Any]], None],
    ) -> None:
        self._on_event = on_event
        self._on_second = on_second
        self.generators: list[Generator] = []
        self._readers: list[threading.Thread] = []
        try:
            for assignment in assignments:
                self._start(assignment, environment)
        except BaseException:
            self.kill()
            raise

    def wait_ready(self, interrupted: Callable[[], bool]) -> None:
        """Wait until every session of every generator is open, one failed, or the user interrupts."""
        waited_s = 0.0
        while not interrupted() and not self.failures() and waited_s < _READY_S:
            if all(generator.ready.wait(0.05) for generator in self.generators):
                return
            waited_s += 0.05
        if waited_s >= _READY_S:
            for generator in self.generators:
                if not generator.ready.is_set():
                    generator.failed = (
                        "environment",
                        f"opened no full set of sessions within {_READY_S:.0f} s",
                    )

    def begin(self, scenarios: list[str]) -> None:
        """Start the load of these scenarios, wherever they are assigned."""
        self._tell({"begin": scenarios})

    def done(self, scenario: str) -> bool:
        """Whether no generator has work left for a scenario."""
        return all(
            scenario in generator.done
            for generator in self.generators
            if scenario in generator.assignment.scenarios
        )

    def failures(self) -> list[tuple[str, str, str]]:
        """(worker, kind, why) of every generator that cannot go on."""
        return [(generator.name, *generator.failed) for generator in self.generators if generator.failed]

    def stop(self) -> None:
        """Stop the load and wait until every generator has written what it measured."""
        self._tell({"stop": True})
        for generator in self.generators:
            try:
                generator.process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                generator.failed = generator.failed or ("recorder", f"did not stop within {_STOP_S:.0f} s")
        self.kill()

    def kill(self) -> None:
        """End every generator at once, whatever it is doing. Safe to call twice."""
        for generator in self.generators:
            if generator.process.poll() is None:
                os.killpg(generator.process.pid, signal.SIGKILL)
            generator.process.wait()
            if generator.process.stdin:
                generator.process.stdin.close()
        for reader in self._readers:
            reader.join()

    def _start(self, assignment: Assignment, environment: Mapping[str, str]) -> None:
        process = subprocess.Popen(
            [sys.executable, "-m", "pinchpoint.loadgen.generator"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,  # nothing is left to flush when a dead one's pipe is closed
            env=dict(environment),
            start_new_session=True,  # a Ctrl-C in the terminal is the controller's to handle
        )
        generator = Generator(assignment, process)
        self.generators.append(generator)
        reader = threading.Thread(target=self._listen, args=(generator,), name=assignment.name, daemon=True)
        self._readers.append(reader)
        reader.start()
        self._tell(assignment.to_json(), generator)

    def _tell(self, message: Mapping[str, Any], *only: Generator) -> None:
        for generator in only or self.generators:
            assert generator.process.stdin is not None  # noqa: S101 -- opened as a pipe above
            try:
                generator.process.stdin.write(json.dumps(message).encode() + b"\n")
            except BrokenPipeError:
                # It ended; the reader knows why, or says below that it ended without a word.
                continue

    def _listen(self, generator: Generator) -> None:
        assert generator.process.stdout is not None  # noqa: S101 -- opened as a pipe above
        with generator.process.stdout as lines:
            for line in lines:
                self._hear(generator, json.loads(line))
        if not generator.stopped and generator.failed is None:
            status = generator.process.wait()
            generator.failed = ("recorder", f"ended by itself in mid-run (exit status {status})")

    def _hear(self, generator: Generator, message: dict[str, Any]) -> None:
        match message.pop("type"):
            case "ready":
                generator.ready.set()
            case "second":
                self._on_second(generator.name, message["progress"])
            case "event":
                self._on_event(message.pop("event"), worker=generator.name, **message)
            case "done":
                generator.done.add(message["scenario"])
            case "stopped":
                generator.stopped = True
            case "failed":
                generator.failed = (message["kind"], message["why"])
