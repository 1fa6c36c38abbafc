"""A store's part of a fitted plan: nosql-burst, with the origin of each figure beside it."""

from __future__ import annotations

from collections.abc import Iterator

from pinchpoint.fit.figures import plain
from pinchpoint.fit.load import load_lines
from pinchpoint.fit.section import Section, said, shortcomings
from pinchpoint.fit.stores.fitted import Part, Records
from pinchpoint.plan.production import (
    RECORD_DURABLE_RATIO,
    RECORD_EXPIRING_RATIO,
    RECORD_INSERT_RATIO,
    RECORD_LOG_BYTES_PER_WRITE,
)

_TELLS = {
    RECORD_INSERT_RATIO: "INFO all of Valkey or Redis, serverStatus of MongoDB",
    RECORD_EXPIRING_RATIO: "INFO all of Valkey or Redis",
    RECORD_LOG_BYTES_PER_WRITE: "INFO all of Valkey or Redis where it appends to a file, serverStatus",
    RECORD_DURABLE_RATIO: "CONFIG GET appendfsync beside INFO all of Valkey or Redis",
}


def store_section(records: Records) -> Section:
    """The part of the plan that loads a store as production's is loaded."""
    scenarios = {part.name: tuple(_scenario(records, part)) for part in records.parts}
    return Section(scenarios, records.told.figures, _TELLS, records.day)


def _scenario(records: Records, part: Part) -> Iterator[str]:
    """One part; what is true of all of them stands in the first."""
    first = part is records.parts[0]
    yield "use: nosql-burst"
    if first:
        yield from _about(records)
    if part.share < 1:
        yield from said("", [f"{part.share:.0%} of the operations"])
    yield from load_lines(records.rate_per_s * part.share, records.day)
    if first:
        yield from _durability(records)
        yield from shortcomings(records.told, records.lacking)
    yield "params:"
    yield "  operations:"
    for name, rate in part.operations.items():
        yield f"    {name}: {plain(rate)}  # a second"
    for name, value in records.params.items():
        yield f"  {name}: {value}  # {records.why[name]}"
    if part.keys is not None:
        yield f"  keys: {part.keys[0]}  # {part.keys[1]}"
    if part.ttl_s is not None:
        yield f"  ttl: {plain(part.ttl_s)}s  # {records.why['ttl']}"


def _about(records: Records) -> Iterator[str]:
    yield from said("", [f"{records.store.product} ({records.store.source})"])
    if records.day.peak_ratio != 1:
        yield from said("", [f"x {plain(records.day.peak_ratio)}: {records.day.busiest}"])
    yield from said("", records.notes)


def _durability(records: Records) -> Iterator[str]:
    durable = records.store.durable
    if durable is None or records.store.family != "valkey":
        return
    worth = "is on the disk" if durable.value else "is not yet on the disk"
    sentence = (
        f"An acknowledged write {worth} in production ({durable.origin}); the server decides that, not the "
        "plan: set yours alike. The embedded farm flushes always"
    )
    yield from said("", [sentence])
