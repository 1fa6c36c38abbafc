"""Defines the parameters of nosql-burst in a plan."""

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
    """Return a field type for numbers or one word. Its error for other values names both."""

    def checked(value: object) -> object:
        if value != word and (isinstance(value, bool) or not isinstance(value, int)):
            raise ValueError(f"found {value!r}; allowed: a whole number, or {word}")
        return value

    return BeforeValidator(checked)


Verify = Annotated[Annotated[int, Field(ge=0)] | Literal["all"], _number_or("all")]


class CassandraParams(Params):
    """Parameters for Cassandra and ScyllaDB alone.

    Attributes:
        consistency: number of replicas that a write waits for, and a read queries.
        local_datacenter: data center whose nodes are used; by default that of the first node that answers.
        prepared: whether statements are prepared; otherwise each is sent as text and parsed by the server.
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
        write_concern: number of members that a write waits for.
        journal: whether it also waits for their journals on disk.
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
        operations: operation name -> weight. ``update`` writes an existing record (or creates it), ``insert``
            a new one, ``read`` reads one, ``read_modify_write`` reads and then writes it.
        fields: number of fields of a record; one is written as a plain value, several as a hash or as
            columns.
        field_bytes: bytes of each field.
        keys: number of records before any insert. They are loaded first if operations read them.
        distribution: which record an operation uses: ``uniform``, ``zipfian``, ``latest`` (zipfian, the last
            inserted most often), or two percentages such as ``80/20``.
        ttl_s: (``ttl``) time to live of a record; None: unlimited.
        partition_width: records of one partition (Cassandra and ScyllaDB alone have partitions).
        batch: records per write.
        timeout_s: time limit of an operation (outcome ``timeout``).
        verify: number of records with an acknowledged write that are read back after the run; ``all``; 0:
            none.
        verify_within_s: (``verify_within``) time limit of reading back, including the restart of a server.
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
        """Return the payload of one record in bytes."""
        return self.fields * self.field_bytes

    @property
    def reads(self) -> bool:
        """Return whether any operation reads records, which must then exist."""
        return bool({READ, READ_MODIFY_WRITE} & set(self.operations))
