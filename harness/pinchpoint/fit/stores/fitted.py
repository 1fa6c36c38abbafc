"""Computes the operations and load of nosql-burst from a production store's figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo

from pinchpoint.base.errors import InputError
from pinchpoint.fit.figures import Collected, ProductionFigure, plain
from pinchpoint.fit.rates import LoadCourse, Rate, course
from pinchpoint.fit.stores.record import NAME, ProductionStore, StoreActivity
from pinchpoint.plan.production import (
    RECORD_BASE_PER_S,
    RECORD_BURST_EVERY_S,
    RECORD_DURABLE_RATIO,
    RECORD_EXPIRING_RATIO,
    RECORD_INSERT_RATIO,
    RECORD_LOG_BYTES_PER_WRITE,
    RECORD_PEAK_PER_S,
    RECORD_READS_PER_S,
    RECORD_READS_PER_WRITE,
    RECORD_RECEIVED_BYTES,
    RECORD_SERVER_S,
    RECORD_WRITES_PER_S,
)

EXPIRING = "expiring"
"""Name of the scenario for expiring records, if only some of the records expire."""
MOST_KEYS = 200_000
"""Most records that are loaded before a run with reads: more take minutes on a store that flushes each
write."""
_MOST_BYTES = 2**20
_STAMP_BYTES = 8
"""Smallest record in bytes that a run can verify (``nosql_burst/params.py``)."""
_NONE, _ALL = 0.05, 0.95
"""A smaller share of expiring records counts as none, and a larger one as all, to avoid an extra scenario."""
_SELDOM = 0.005
_SIZES_APART = _TIMES_APART = 0.25
"""Relative difference above which sources disagree: estimates of size differ by their framing, those of
lifetime by the time of the reading."""
_READINGS = 5
"""Fewest readings that show the course of a load over time."""


@dataclass(frozen=True, slots=True)
class Part:
    """One scenario of the plan.

    Attributes:
        name: name of the scenario.
        share: share of all operations, 0 to 1.
        operations: operation -> operations per second in the busy time.
        keys: (number of records at the start, origin of the number); None if not reported.
        ttl_s: seconds after which the records expire; None if they do not expire.
    """

    name: str
    share: float
    operations: Mapping[str, float]
    keys: tuple[int, str] | None
    ttl_s: float | None


@dataclass(slots=True)
class FittedRecords:
    """The operations of nosql-burst and their weights.

    Attributes:
        store: the production store.
        collected: the figures of production.
        day: the course of the load.
        rate_per_s: mean operations per second in the busy time.
        parts: the scenarios of the plan.
        params: parameters of all scenarios.
        why: parameter -> the reason for its value, in words.
        lacking: work of production that nosql-burst cannot reproduce, as sentences.
        notes: notes for the reader, as sentences.
    """

    store: ProductionStore
    collected: Collected
    day: LoadCourse
    rate_per_s: float
    parts: Sequence[Part] = ()
    params: dict[str, object] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)
    lacking: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def records(
    stores: Sequence[ProductionStore],
    zone: tzinfo | None,
    recorded: LoadCourse | None = None,
    day_s: float | None = None,
) -> FittedRecords:
    """Fit nosql-burst to one store, from all sources that describe it.

    Args:
        stores: the figures of each source; all must be of one product.
        zone: the time zone of the hours in the result; None for UTC.
        recorded: the course of the host's load from a recording; None if not recorded.
        day_s: seconds into which the whole day is compressed; None to use the busiest hour.

    Raises:
        InputError: the sources are of different stores.
    """
    best, finest = _chosen(stores)
    rates = [Rate(each.ended_s, each.length_s, each.operations / each.length_s) for each in finest.stretches]
    day = course(rates, "operations on records", finest.source, zone, best.span_s)
    if recorded is not None:  # a recording covers a day or more, while the store was watched for minutes
        day = replace(recorded, bursts=day.bursts or recorded.bursts)
    if day_s is not None:
        day = day.as_burst_day(day_s)
    collected, lacking = Collected(), list(best.lacking)
    counted = sum(each.operations for each in best.stretches) / sum(each.length_s for each in best.stretches)
    made = FittedRecords(best, collected, day, counted * day.peak_ratio, lacking=lacking)
    made.notes += [*best.notes, *day.notes]
    if len(finest.stretches) < _READINGS:
        made.notes.append(
            f"{finest.source}: {len(finest.stretches) + 1} readings give a mean and no bursts; many, a few "
            "seconds apart, show them (valkey-cli -r 360 -i 10 INFO all)"
        )
    _compare_rates(stores, best, collected)
    _operations(made, counted)
    _bursts(made)
    _details(made)
    _size(made)
    return made


def span_s(stores: Sequence[ProductionStore]) -> tuple[float, float]:
    """Time in which operations were counted, UTC seconds. Raises InputError for different stores."""
    return _chosen(stores)[0].span_s


def _chosen(stores: Sequence[ProductionStore]) -> tuple[ProductionStore, ProductionStore]:
    """(the source that separates reads from writes, the source with the most readings)."""
    families = {store.family for store in stores}
    if len(families) > 1:
        listed = " and ".join(f"{store.product} ({store.source})" for store in stores)
        raise InputError(f"--from: {listed}: a plan has one store of records; give the sources of one")
    best = max(stores, key=lambda store: (store.knows_operations, len(store.stretches)))
    return best, max(stores, key=lambda store: len(store.stretches))


def _compare_rates(stores: Sequence[ProductionStore], best: ProductionStore, collected: Collected) -> None:
    """Note other sources whose rate of operations disagrees with the best source."""

    def figure(store: ProductionStore) -> ProductionFigure:
        length_s = sum(stretch.length_s for stretch in store.stretches)
        return ProductionFigure(
            sum(stretch.operations for stretch in store.stretches) / length_s, store.source
        )

    for other in stores:
        if other is not best:
            collected.compare(
                "operations a second", figure(best), figure(other), "it shows which are operations on records"
            )


def _operations(made: FittedRecords, counted: float) -> None:
    """Set the rates of the operations, and the scenarios."""
    store, at = made.store, made.rate_per_s / counted
    where = f", x {plain(made.day.peak_ratio)}: {made.day.busiest}" if made.day.peak_ratio != 1 else ""
    length_s = sum(each.length_s for each in store.stretches)
    writes, reads = (_sum(store.stretches, name) for name in ("writes", "reads"))
    inserts = _sum(store.stretches, "inserts")
    if writes is None or reads is None:
        rates = {"update": made.rate_per_s}
        made.collected.figures[RECORD_WRITES_PER_S] = ProductionFigure(
            made.rate_per_s, f"{store.source}: commands{where}"
        )
    else:
        result = made.collected.figures
        result[RECORD_WRITES_PER_S] = ProductionFigure(
            writes / length_s * at, f"{store.source}, {length_s:.0f} s: writes{where}"
        )
        result[RECORD_READS_PER_S] = ProductionFigure(
            reads / length_s * at, f"{store.source}, {length_s:.0f} s: reads{where}"
        )
        if writes:
            result[RECORD_READS_PER_WRITE] = ProductionFigure(
                reads / writes, f"{store.source}: reads ÷ writes"
            )
        if writes and inserts is not None:
            result[RECORD_INSERT_RATIO] = ProductionFigure(
                inserts / writes, f"{store.source}: records there are more, and that went, ÷ writes"
            )
        new = (inserts or 0.0) / length_s * at
        rates = {"insert": new, "update": writes / length_s * at - new, "read": reads / length_s * at}
    kept = {name: rate for name, rate in rates.items() if rate > _SELDOM * made.rate_per_s}
    made.parts = list(_parts(made, kept))


def _parts(made: FittedRecords, rates: Mapping[str, float]) -> Iterator[Part]:
    """One scenario, or two if only some of the records expire."""
    expiring, lifetimes = made.store.expiring, made.store.lifetimes
    keys = _keys(made, reads="read" in rates)
    if expiring is None:
        yield Part(NAME, 1.0, rates, keys, None)
        return
    made.collected.figures[RECORD_EXPIRING_RATIO] = expiring
    if expiring.value < _NONE or not lifetimes:
        if expiring.value >= _NONE:
            made.lacking.append(
                f"{expiring.value:.0%} of the records expire, after an unknown time; none expires here"
            )
        yield Part(NAME, 1.0, rates, keys, None)
        return
    for other in lifetimes[1:]:
        why = "records that are rewritten live longer than their TTL"
        made.collected.compare("seconds a record lives", lifetimes[0], other, why, _TIMES_APART)
    made.why["ttl"], ttl_s = lifetimes[0].origin, max(1.0, lifetimes[0].value)
    if expiring.value > _ALL:
        yield Part(NAME, 1.0, rates, keys, ttl_s)
        return
    made.notes.append(
        f"{expiring.value:.0%} of the records written expire ({expiring.origin}): they are a scenario of "
        f"their own, {EXPIRING}; that they are the new ones, and the others are read, is taken for granted"
    )
    new, changed = rates.get("insert", 0.0), rates.get("update", 0.0)
    written = expiring.value * (new + changed)
    going = {"insert": min(new, written), "update": max(0.0, written - new)}
    staying = {name: rate - going.get(name, 0.0) for name, rate in rates.items()}
    total = sum(rates.values())
    alive = max(1, round(written * ttl_s)), "the number of records alive at a time"
    for name, its, there, lives_s in ((NAME, staying, keys, None), (EXPIRING, going, alive, ttl_s)):
        kept = {operation: rate for operation, rate in its.items() if rate > _SELDOM * total}
        if kept:
            yield Part(name, sum(kept.values()) / total, kept, there, lives_s)


def _bursts(made: FittedRecords) -> None:
    bursts, result = made.day.bursts, made.collected.figures
    if bursts is None or made.day.whole_day:
        return
    seen = f"{made.day.source}, seen every {plain(bursts.readings_s)} s"
    result[RECORD_BASE_PER_S] = ProductionFigure(
        made.rate_per_s * bursts.base_ratio, f"{seen}: the mean between bursts"
    )
    result[RECORD_PEAK_PER_S] = ProductionFigure(
        made.rate_per_s * bursts.peak_ratio, f"{seen}: the mean in bursts"
    )
    result[RECORD_BURST_EVERY_S] = ProductionFigure(bursts.every_s, f"{seen}: from beginning to beginning")


def _details(made: FittedRecords) -> None:
    """Set the bytes and times per operation, and the durability of writes."""
    store, result = made.store, made.collected.figures
    # without separate counts, all operations are taken as writes
    writes = "writes" if store.knows_operations else "operations"
    for name, amount, per, what in (
        (RECORD_LOG_BYTES_PER_WRITE, "log_bytes", writes, f"what its log grew ÷ {writes}"),
        (RECORD_RECEIVED_BYTES, "received_bytes", "operations", "bytes received ÷ operations"),
        (RECORD_SERVER_S, "server_s", "operations", "time in commands ÷ operations"),
    ):
        both = [
            each
            for each in store.stretches
            if getattr(each, amount) is not None and getattr(each, per) is not None
        ]
        total, count = _sum(both, amount), _sum(both, per)
        if total is not None and count:
            result[name] = ProductionFigure(total / count, f"{store.source}: {what}")
    if store.durable is not None:
        result[RECORD_DURABLE_RATIO] = store.durable


def _size(made: FittedRecords) -> None:
    """Set the size of a record, as one field because no source reports the number of fields."""
    made.params["fields"] = 1
    made.why["fields"] = "the fields of a record are not known"
    sizes = [figure for figure in made.store.sizes if figure.value >= 1]
    if not sizes:
        made.lacking.append(f"{made.store.source} does not report the size of a record: 1000 bytes are used")
        made.params["field_bytes"], made.why["field_bytes"] = 1000, "a design value, not production's"
        return
    for other in sizes[1:]:
        why = "the closest estimate of what is written"
        made.collected.compare("bytes of a record", sizes[0], other, why, _SIZES_APART)
    size = round(sizes[0].value)
    made.params["field_bytes"] = min(_MOST_BYTES, max(1, size))
    made.why["field_bytes"] = f"makes a record as large: {sizes[0].origin}"
    if size > _MOST_BYTES:
        made.lacking.append(f"a record has {size} bytes in production, {_MOST_BYTES} here")
    if size < _STAMP_BYTES:
        made.params["verify"], made.why["verify"] = 0, "such small records cannot be distinguished"


def _keys(made: FittedRecords, *, reads: bool) -> tuple[int, str] | None:
    """(number of records at the start, origin), limited to ``MOST_KEYS`` if records are read."""
    keys = made.store.keys
    if keys is None:
        return None
    count = max(1, round(keys.value))
    if reads and count > MOST_KEYS:
        made.lacking.append(
            f"{count:,} records in production, {MOST_KEYS:,} here: they are loaded before each run; more "
            "`keys` where the store's memory or cache is what matters"
        )
        count = MOST_KEYS
    return count, keys.origin


def _sum(stretches: Sequence[StoreActivity], name: str) -> float | None:
    """The total over all stretches; None if one of them does not report it."""
    values: list[float | None] = [getattr(stretch, name) for stretch in stretches]
    collected = [value for value in values if value is not None]
    return sum(collected) if collected and len(collected) == len(values) else None
