"""What ends a run before it does harm: the rules under ``stop_when`` of plan.yaml."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from pinchpoint.plan.problems import Unfit, unknown
from pinchpoint.plan.record import FileContext, Record, Seconds, only_one
from pinchpoint.plan.units import DURATION, byte_rate, duration, found, rate, ratio, size

OPERATION_METRICS = ("error_ratio", "response_p95_s")
SAMPLE_METRICS = (
    "cpu.busy_ratio",
    "cpu.run_queue",
    "cpu.steal_ratio",
    "cpu.wait_ratio",
    "disk.busy_ratio",
    "disk.flush_latency_s",
    "disk.outstanding",
    "disk.read_bytes_per_s",
    "disk.read_latency_s",
    "disk.reads_per_s",
    "disk.write_bytes_per_s",
    "disk.write_latency_s",
    "disk.writes_per_s",
    "mem.available_bytes",
    "mem.available_ratio",
    "mem.paged_in_bytes_per_s",
    "mem.paged_out_bytes_per_s",
    "net.errors_per_s",
    "net.received_bytes_per_s",
    "net.sent_bytes_per_s",
    "pressure.cpu_ratio",
    "pressure.io_ratio",
    "pressure.memory_ratio",
)
"""DESIGN.md section 6: what a collector may give of any host."""


_PARSERS: Mapping[str, Callable[[object], float]] = {
    "_bytes_per_s": byte_rate,
    "_per_s": rate,
    "_bytes": size,
    "_ratio": ratio,
    "_s": duration,
}
"""How a metric's name ends -> how its limit is read; any other is a count."""


def _limit(metric: str, value: object) -> float:
    """A limit as people write it: with the unit of its metric, or a number in base units."""
    parse = next((parse for ending, parse in _PARSERS.items() if metric.endswith(ending)), None)
    if isinstance(value, int | float) and not isinstance(value, bool) and parse is not ratio:
        return float(value)
    if parse is None:
        raise Unfit(f"found {found(value)}", f"allowed: a number, as {metric} is a count")
    return float(parse(value))


class StopRule(Record):
    """What ends the run before it does harm.

    Attributes:
        metric: a name of ``OPERATION_METRICS`` or ``SAMPLE_METRICS``.
        above, below: the limit; exactly one of them.
        for_s: how long without a break.
        scenario: whose operations; all of them without it.
        host, tier, role: of which host, tier or disk; any without them.
    """

    metric: str = Field(description="a metric such as error_ratio or disk.write_latency_s")
    above: float | None = None
    below: float | None = None
    for_s: Seconds = Field(alias="for", ge=1, description=DURATION)
    scenario: str | None = None
    host: str | None = None
    tier: str | None = None
    role: str | None = None

    @field_validator("metric")
    @classmethod
    def _known(cls, metric: str) -> str:
        names = sorted((*OPERATION_METRICS, *SAMPLE_METRICS))
        if metric not in names:
            raise unknown("metric", metric, names)
        return metric

    @field_validator("above", "below", mode="before")
    @classmethod
    def _in_its_unit(cls, value: object, info: ValidationInfo) -> object:
        """In a file a limit has the unit of its metric; one of another unit would never be met."""
        if not isinstance(info.context, FileContext):
            return value
        metric = info.data.get("metric")  # lacking where it is itself wrong, and is complained of
        return None if metric is None else _limit(metric, value)

    @model_validator(mode="after")
    def _one_limit(self) -> Self:
        only_one({"above": self.above, "below": self.below})
        if self.above is None and self.below is None:
            raise Unfit("a rule without a limit", "needed: above or below")
        if self.of_operations and (self.host or self.tier or self.role):
            raise Unfit(f"{self.metric} of a host", "allowed: scenario; operations belong to scenarios")
        if not self.of_operations and self.scenario:
            raise Unfit(f"{self.metric} of a scenario", "allowed: host, tier, role; samples belong to hosts")
        if self.role and not self.metric.startswith("disk."):
            raise Unfit(f"{self.metric} of a role", "allowed: host, tier; roles are those of disks")
        return self

    @property
    def of_operations(self) -> bool:
        """Whether it speaks of what scenarios do, not of what hosts show."""
        return self.metric in OPERATION_METRICS

    def broken_by(self, value: float) -> bool:
        """Whether a value is beyond the limit."""
        if self.above is not None:
            return value > self.above
        return self.below is not None and value < self.below
