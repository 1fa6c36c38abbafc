"""What ends a run before it does harm: the rules under ``stop_when`` of plan.yaml."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from pinchpoint.plan.problems import Unfit, unknown
from pinchpoint.plan.record import Record, Seconds, in_file, only_one
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


def _limit(value: object) -> float:
    """A limit as people write it: base units, or with its unit (``5%``, ``500ms``, ``200MB/s``)."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    text = str(value).strip() if isinstance(value, str) else ""
    parse = ratio if text.endswith("%") else byte_rate if "B/" in text else rate if "/" in text else None
    if parse is None:
        parse = size if text.endswith("B") else duration
    try:
        return float(parse(value))
    except Unfit as error:
        raise Unfit(f"found {found(value)}", f"allowed: {LIMIT}") from error


Limit = Annotated[float, in_file(_limit)]
LIMIT = "a number in base units, or one with its unit, such as 0.5, 5%, 500ms or 200MB/s"


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
    above: Limit | None = None
    below: Limit | None = None
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

    @model_validator(mode="after")
    def _one_limit(self) -> Self:
        only_one({"above": self.above, "below": self.below})
        if self.above is None and self.below is None:
            raise Unfit("a rule without a limit", "needed: above or below")
        if self.of_operations and (self.host or self.tier or self.role):
            raise Unfit(f"{self.metric} of a host", "allowed: scenario; operations belong to scenarios")
        if not self.of_operations and self.scenario:
            raise Unfit(f"{self.metric} of a scenario", "allowed: host, tier, role; samples belong to hosts")
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
