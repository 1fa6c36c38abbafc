"""Run the generator process with one more scenario: ``null``, whose operations do nothing."""

from __future__ import annotations

from pinchpoint.loadgen import local  # import first: this module patches the process

# isort: split
import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from pinchpoint_scenarios import registry
from pinchpoint_scenarios.contract import OK, Intent, Params, Record, ScenarioContext


class NullSession:
    """A session whose operations take no time, so that only the generator's own cost is measured."""

    def perform(self, record: Record) -> bool:
        start_ns = time.perf_counter_ns()
        record("nothing", OK, start_ns, time.perf_counter_ns())
        return True

    def close(self) -> None:
        """See ``Session``."""


class Null:
    """A scenario without a server."""

    use: ClassVar[str] = "null"
    needs: ClassVar[frozenset[str]] = frozenset()
    writes: ClassVar[bool] = False
    ends: ClassVar[bool] = False
    params_model: ClassVar[type[Params]] = Params

    def __init__(self, context: ScenarioContext) -> None:
        pass

    def check(self) -> Mapping[str, Any]:
        return {}

    def intent(self) -> Intent:
        return Intent((), (), (), "nothing")

    def prepare(self, progress: Callable[[str], None]) -> None:
        """See ``Scenario``."""

    def session(self, number: int) -> NullSession:
        return NullSession()

    def finish(self, *, keep_data: bool) -> None:
        """See ``Scenario``."""


if __name__ == "__main__":
    registry.SCENARIOS[Null.use] = Null
    local.main()
