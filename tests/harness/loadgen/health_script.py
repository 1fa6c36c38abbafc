"""Run by test_health.py in its own process: a generator with an operation that blocks the event loop.

Argument: the seconds for which the operation blocks, once. Prints the samples of the generator's health as
JSON: metric to values per second.
"""

from __future__ import annotations

from pinchpoint.loadgen import engine  # noqa: F401 -- first of all: it patches the process

# isort: split
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import gevent
from gevent.monkey import get_original

from pinchpoint.loadgen.assignment import Assignment
from pinchpoint.loadgen.generator import GeneratorProcess
from pinchpoint.loadgen.recorder import Seconds
from pinchpoint_collectors.record import Sample
from pinchpoint_scenarios import registry
from pinchpoint_scenarios.contract import OK, Intent, Params, Record, ScenarioContext

_BLOCK_S = float(sys.argv[1])
_SECONDS = 3.2


class Blocked:
    """A driver whose first operation blocks the event loop; the others wait cooperatively."""

    use: ClassVar[str] = "blocked"
    needs: ClassVar[frozenset[str]] = frozenset()
    writes: ClassVar[bool] = False
    ends: ClassVar[bool] = False
    params_model: ClassVar[type[Params]] = Params

    def __init__(self, context: ScenarioContext) -> None:
        self._wait: Callable[[float], None] = get_original("time", "sleep")

    def check(self) -> Mapping[str, Any]:
        return {}

    def intent(self) -> Intent:
        return Intent((), (), (), "nothing")

    def prepare(self, progress: Callable[[str], None]) -> None:
        """See ``Scenario``."""

    def session(self, number: int) -> Blocked:
        return self

    def perform(self, record: Record) -> bool:
        start_ns = time.perf_counter_ns()
        self._wait(_BLOCK_S)
        self._wait = lambda _: gevent.sleep(0.02)
        record("wait", OK, start_ns, time.perf_counter_ns())
        return True

    def close(self) -> None:
        """See ``Session``."""

    def finish(self, *, keep_data: bool) -> None:
        """See ``Scenario``."""


class Kept:
    """A ``Link`` that records the samples."""

    def __init__(self) -> None:
        self.found: defaultdict[str, list[float | None]] = defaultdict(list)

    def commands(self) -> Iterator[dict[str, Any]]:
        """Begin at once, and stop some seconds later."""
        yield {"begin": ["load"], "at_ns": time.time_ns()}
        gevent.sleep(_SECONDS)
        yield {"stop": True}

    def say(self, **message: Any) -> None:
        if message["type"] == "failed":
            sys.exit(message["why"])

    def record(self, seconds: Seconds, samples: list[Sample], now_ns: int) -> None:
        for sample in samples:
            self.found[sample.metric].append(sample.value)

    def close(self) -> None:
        """See ``Link``."""


def main() -> None:
    """Run the generator and print its samples."""
    registry.SCENARIOS[Blocked.use] = Blocked
    load = {"model": "closed", "users": 1, "think_s": 0.0}
    assignment = Assignment(
        name="generator1",
        worker=0,
        cores=[],
        beat_s=0.5,
        journal="",
        seed=1,
        endpoints={},
        scenarios={"load": {"use": Blocked.use, "params": {}, "load": load, "repeat_s": None}},
        slots={"load": list(range(840))},
        ranks={"load": (0, 1)},
    )
    link = Kept()
    GeneratorProcess(assignment, link).run()
    sys.stdout.write(json.dumps(link.found))


if __name__ == "__main__":
    main()
