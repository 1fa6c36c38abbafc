"""The parameters of nosql-burst in a plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from pinchpoint_collectors.common.names import unknown

from ..contract import Params
from ..units import Seconds
from .records import STAMP_BYTES, draw

UPDATE, INSERT, READ, READ_MODIFY_WRITE = "update", "insert", "read", "read_modify_write"
OPERATIONS = (UPDATE, INSERT, READ, READ_MODIFY_WRITE)


def _number_or(word: str) -> BeforeValidator:
    """A field that takes numbers or one word; the error for anything else names both."""

    def checked(value: object) -> object:
        if value != word and (isinstance(value, bool) or not isinstance(value, int)):
            raise ValueError(f"found {value!r}; allowed: a whole number, or {word}")
        return value

    return BeforeValidator(checked)


Verify = Annotated[Annotated[int, Field(ge=0)] | Literal["all"], _number_or("all")]


class CassandraParams(Params):
    """What only Cassandra and ScyllaDB have.

    Attributes:
        consistency: how many replicas a write waits for, and a read asks.
        local_datacenter: whose nodes are used; without it that of the first node that answers.
        prepared: whether statements are prepared; else each is sent, and parsed there, as text.
        batch_type: of a write of several records: ``unlogged``, or ``logged``, which is all or nothing.
    """

    consistency: Literal[
        "ANY", "ONE", "TWO", "THREE", "QUORUM", "LOCAL_ONE", "LOCAL_QUORUM", "EACH_QUORUM", "ALL"
    ] = "LOCAL_QUORUM"
    local_datacenter: str | None = None
    prepared: bool = True
    batch_type: Literal["unlogged", "logged"] = "unlogged"


class MongoParams(Params):
    """What only MongoDB has.

    Attributes:
        write_concern: how many members a write waits for.
        journal: whether it waits for their journals on disk, too.
    """

    write_concern: Annotated[
        Annotated[int, Field(ge=0, le=50)] | Literal["majority"], _number_or("majority")
    ] = "majority"
    journal: bool = True

    @model_validator(mode="after")
    def _a_journal_is_waited_for(self) -> MongoParams:
        if self.write_concern == 0 and self.journal:
            raise ValueError("write_concern 0 waits for nothing, nor for the journal; add journal: false")
        return self


class NosqlBurstParams(Params):
    """``params`` of nosql-burst.

    Attributes:
        operations: operation name -> weight. ``update`` writes a record of those there are (or makes it),
            ``insert`` a new one, ``read`` reads one, ``read_modify_write`` reads and then writes it.
        fields: fields of a record; one is written as a plain value, several as a hash or as columns.
        field_bytes: bytes of each field.
        keys: how many records there are before anything is inserted. They are loaded first where they are
            read.
        distribution: which of them an operation takes: ``uniform``, ``zipfian``, ``latest`` (zipfian, the
            one inserted last most often), or two percentages such as ``80/20``.
        ttl_s: (``ttl``) after so long the store may forget a record; None: never.
        partition_width: records of one partition (Cassandra and ScyllaDB alone have partitions).
        batch: records that one write writes.
        timeout_s: after so long an operation counts as failed (outcome ``timeout``).
        verify: how many of the records with an acknowledged write are read back after the run; ``all``; 0:
            none.
        verify_within_s: (``verify_within``) how long that may take, a server that has to come back included.
        cassandra: of Cassandra and ScyllaDB alone.
        mongodb: of MongoDB alone.
    """

    operations: Mapping[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = {UPDATE: 1.0}
    fields: Annotated[int, Field(ge=1, le=1000)] = 10  # YCSB's record: ten fields of 100 bytes
    field_bytes: Annotated[int, Field(ge=1, le=2**20)] = 100
    keys: Annotated[int, Field(ge=1, le=2**31)] = 10_000
    distribution: str = "uniform"
    ttl_s: Seconds | None = Field(default=None, alias="ttl")
    partition_width: Annotated[int, Field(ge=1, le=2**31)] = 1
    batch: Annotated[int, Field(ge=1, le=1000)] = 1
    timeout_s: Seconds = 10.0
    verify: Verify = 10_000
    verify_within_s: Seconds = Field(default=60.0, alias="verify_within")
    cassandra: CassandraParams = CassandraParams()
    mongodb: MongoParams = MongoParams()

    @field_validator("operations", mode="before")
    @classmethod
    def _known_operations(cls, operations: Any) -> Any:
        if isinstance(operations, Mapping):
            if not operations:
                raise ValueError(f"no operation is named; allowed: {', '.join(OPERATIONS)}")
            for name in operations:
                if name not in OPERATIONS:
                    raise ValueError(unknown("operation", str(name), OPERATIONS))
        return operations

    @field_validator("distribution")
    @classmethod
    def _known_distribution(cls, distribution: str) -> str:
        draw(distribution)
        return distribution

    @model_validator(mode="after")
    def _are_distinguishable(self) -> NosqlBurstParams:
        given = "verify" in self.model_fields_set and self.verify != 0
        if given and self.record_bytes < STAMP_BYTES:
            raise ValueError(
                f"records of {self.record_bytes} bytes are too small to be distinguished; "
                f"write {STAMP_BYTES} bytes or more (fields x field_bytes), or verify: 0"
            )
        return self

    @property
    def record_bytes(self) -> int:
        """Payload of one record."""
        return self.fields * self.field_bytes

    @property
    def reads(self) -> bool:
        """Whether any operation reads records, which must be there then."""
        return bool({READ, READ_MODIFY_WRITE} & set(self.operations))
