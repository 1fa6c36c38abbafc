"""Defines the parameters of sql-mix in a plan, and its presets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from pinchpoint_collectors.common.names import unknown

from ..units import Seconds
from .operation_sizes import OperationSizes
from .operations import OPERATIONS

PRESETS: dict[str, dict[str, float]] = {
    # Load of a transaction log: eight commits of one small row per page that is read or dirtied.
    "log-heavy": {"log_append": 8, "data_update": 1, "point_read": 1},
    # Load of a data file: random pages are read in and dirtied, and written back by checkpoints.
    "data-heavy": {"log_append": 1, "data_update": 8, "point_read": 1},
    # Equal numbers of reads and writes; half of the writes are log-bound, half data-bound.
    "balanced": {"log_append": 1, "data_update": 1, "point_read": 2},
    # A nightly load: hundreds of rows are appended at once.
    "bulk": {"bulk_load": 1, "log_batch": 4},
    # Reports that sort more than the memory, among lookups on the same server.
    "tempdb": {"spill": 1, "point_read": 1},
    # Load of a catalogue: many lookups, some lists, few changes.
    "read-mostly": {"point_read": 16, "range_scan": 2, "data_update": 1, "log_append": 1},
}
DEFAULT = "balanced"


Isolation = Literal["read_committed", "repeatable_read", "serializable", "snapshot"]


class SqlMixParams(OperationSizes):
    """``params`` of sql-mix: those of ``Shape``, and these.

    Attributes:
        preset: a name of ``presets.PRESETS``; without it and ``operations``: ``balanced``.
        operations: operation name -> weight, in place of a preset.
        scale: the data table's size, in multiples of the server's buffer cache.
        loaders: connections that load it at once.
        timeout_s: the server's time limit of a statement (outcome ``statement_timeout``).
        isolation: of every transaction; ``snapshot`` also means PostgreSQL's repeatable read.
        retries: number of retries of an operation after a deadlock or a serialization failure.
    """

    preset: str | None = None
    operations: Mapping[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] | None = None
    scale: Annotated[float, Field(gt=0, le=1000)] = 2.0
    loaders: Annotated[int, Field(ge=1, le=64)] = 4
    timeout_s: Seconds = 30.0
    isolation: Isolation = "read_committed"
    retries: Annotated[int, Field(ge=0, le=100)] = 3

    @field_validator("preset")
    @classmethod
    def _known_preset(cls, preset: str | None) -> str | None:
        if preset is not None and preset not in PRESETS:
            raise ValueError(unknown("preset", preset, PRESETS))
        return preset

    @field_validator("operations", mode="before")
    @classmethod
    def _known_operations(cls, operations: Any) -> Any:
        if isinstance(operations, Mapping):
            if not operations:
                raise ValueError(f"no operation is named; allowed: {', '.join(sorted(OPERATIONS))}")
            for name in operations:
                if name not in OPERATIONS:
                    raise ValueError(unknown("operation", str(name), OPERATIONS))
        return operations

    @model_validator(mode="after")
    def _one_of_both(self) -> SqlMixParams:
        if self.preset is not None and self.operations is not None:
            raise ValueError("both preset and operations are given; allowed is one of them: remove the other")
        return self

    @model_validator(mode="after")
    def _held_within_the_timeout(self) -> SqlMixParams:
        if "lock_contend" in self.weights and self.hold_s >= self.timeout_s:
            raise ValueError(
                f"hold is {self.hold_s:g} s and timeout_s {self.timeout_s:g} s, so that no lock_contend "
                "could succeed; allowed: a hold shorter than timeout_s"
            )
        return self

    @property
    def weights(self) -> Mapping[str, float]:
        """Return operation name -> weight, from the preset or the operations."""
        return self.operations or PRESETS[self.preset or DEFAULT]
