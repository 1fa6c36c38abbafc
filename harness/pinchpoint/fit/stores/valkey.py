"""Computes the work of a Valkey or Redis from two or more outputs of INFO."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pinchpoint.base.errors import InputError
from pinchpoint.fit import counters
from pinchpoint.fit.counters import CounterStep
from pinchpoint.fit.figures import ProductionFigure, plain
from pinchpoint.fit.snapshots import CAPTURED, seconds
from pinchpoint.fit.stores import record
from pinchpoint.fit.stores.record import ProductionStore, StoreActivity

READS = frozenset({
    "bitcount", "geosearch", "georadius", "get", "getbit", "getex", "getrange", "hexists", "hget", "hgetall",
    "hkeys", "hlen", "hmget", "hstrlen", "hvals", "json.get", "json.mget", "lindex", "llen", "lrange", "mget",
    "pfcount", "scard", "sinter", "sismember", "smembers", "smismember", "srandmember", "strlen", "sunion",
    "xlen", "xrange", "xread", "xrevrange", "zcard", "zcount", "zmscore", "zrange", "zrangebyscore", "zrank",
    "zrevrange", "zrevrangebyscore", "zrevrank", "zscore",
})  # fmt: skip
VALUES = frozenset({
    "append", "bitfield", "decr", "decrby", "getset", "incr", "incrby", "incrbyfloat", "mset", "msetnx",
    "psetex", "set", "setbit", "setex", "setnx", "setrange",
})  # fmt: skip
HASHES = frozenset({"hdel", "hincrby", "hincrbyfloat", "hmset", "hset", "hsetnx"})
OTHER_SHAPES = frozenset({
    "geoadd", "json.merge", "json.set", "linsert", "lmove", "lpop", "lpush", "lpushx", "lrem", "lset",
    "ltrim", "pfadd", "rpop", "rpush", "rpushx", "sadd", "smove", "spop", "srem", "xadd", "xdel", "xtrim",
    "zadd", "zincrby", "zpopmax", "zpopmin", "zrem",
})  # fmt: skip
WRITES = VALUES | HASHES | OTHER_SHAPES
REMOVALS = frozenset({"del", "getdel", "unlink"})
ON_RECORDS = READS | WRITES | REMOVALS
_WATCHING = frozenset({
    "auth", "client", "command", "config", "hello", "info", "latency", "ping", "select",
})  # fmt: skip


def is_watching(name: str) -> bool:
    """Whether a command belongs to connecting and watching; a subcommand follows after ``|``."""
    return name.partition("|")[0] in _WATCHING


def calls_of(calls: Mapping[str, float], names: frozenset[str]) -> float:
    """Number of calls of the commands in ``names``."""
    return sum(count for name, count in calls.items() if name in names)


EXPORT = "valkey-cli INFO all > before.txt"
_BEGINS = "# Server"
_SETTING = re.compile(r"[a-z][a-z0-9-]*")
"""Matches a setting's name in the output of ``CONFIG GET``, whose value is on the next line."""
_KNOWN = re.compile(r"^(?:(?:redis|valkey)_version|cmdstat_\S+):", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of one command since the server's start.

    Attributes:
        calls: number of executions.
        spent_s: seconds that the server spent in the command.
    """

    calls: float
    spent_s: float


@dataclass(frozen=True, slots=True)
class Info:
    """One output of ``INFO all``.

    Attributes:
        source: the source, in words.
        place: the source with the line number of the output's start.
        at_s: time of the output, UTC seconds.
        fields: field -> value, as text.
        commands: command name in lower case -> its calls.
        answer_bytes: bytes of the output, which the next output includes in its sent bytes.
    """

    source: str
    place: str
    at_s: float
    fields: Mapping[str, str]
    commands: Mapping[str, Calls]
    answer_bytes: int

    def number(self, name: str) -> float | None:
        """A field as a number; None if the server does not report it. Raises InputError."""
        if name not in self.fields:
            return None
        try:
            return float(self.fields[name])
        except ValueError as error:
            raise InputError(
                f"{self.place}: {name}: found {self.fields[name]!r}; allowed: a number, as INFO writes it"
            ) from error

    def parts(self, name: str) -> dict[str, float]:
        """The parts of a field such as ``keys=5,expires=2``. Raises InputError."""
        return _parts(self.fields[name], f"{self.place}: {name}")

    def goes_on_from(self, earlier: Info) -> bool:
        """Whether the server was not restarted since ``earlier``, and no counter of commands was reset."""
        return self.fields["run_id"] == earlier.fields["run_id"] and all(
            name in self.commands and self.commands[name].calls >= calls.calls
            for name, calls in earlier.commands.items()
        )

    @property
    def databases(self) -> list[str]:
        """The names of the databases that contain keys (``db0``)."""
        return [name for name in self.fields if re.fullmatch(r"db\d+", name)]


def is_info(text: str) -> bool:
    """Whether a text is an output of ``INFO``."""
    return _KNOWN.search(text) is not None


def read_infos(text: str, path: Path) -> list[Info]:
    """All outputs of INFO in a text, in order.

    Raises:
        InputError: an output is incomplete, has no time, or has a line that INFO does not print.
    """
    blocks = list(_blocks(text.splitlines()))
    if not blocks:
        raise InputError(
            f"{path}: has no section Server: the server and the time are missing; needed: {EXPORT}"
        )
    return [_info(block, path.name, str(path), {}) for block in blocks]


def read_info(text: str, source: str, settings: Mapping[str, str]) -> Info:
    """Read one output of INFO, with further settings of the server (``config_appendfsync``).

    Raises:
        InputError: as ``read_infos``.
    """
    return _info(list(enumerate(text.splitlines(), 1)), source, source, settings)


_Lines = list[tuple[int, str]]


def _blocks(lines: Sequence[str]) -> Iterator[_Lines]:
    """The lines of each output, from its time or its first section on."""
    block: _Lines = []
    for number, line in enumerate(lines, 1):
        begins = line.startswith(CAPTURED) or (line.startswith(_BEGINS) and _has_section(block))
        if begins and block:
            if _has_section(block):
                yield block
            block = []
        block.append((number, line))
    if _has_section(block):
        yield block


def _has_section(block: _Lines) -> bool:
    return any(line.startswith(_BEGINS) for _, line in block)


def _info(block: _Lines, source: str, path: str, settings: Mapping[str, str]) -> Info:
    fields = dict(settings)
    commands: dict[str, Calls] = {}
    remaining = iter(block)
    for number, line in remaining:
        name, colon, value = line.partition(":")
        if not line.strip() or line.startswith("#"):
            continue
        if not colon and _SETTING.fullmatch(line.strip()):
            fields[f"config_{line.strip()}"] = next(remaining, (0, ""))[1].strip()
        elif not colon:
            raise InputError(
                f"{path}:{number}: found {line.strip()[:60]!r}; allowed: lines such as used_memory:1024, "
                f"sections such as # Stats; {EXPORT}"
            )
        elif name.startswith("cmdstat_"):
            parts = _parts(value, f"{path}:{number}: {name}")
            commands[name.removeprefix("cmdstat_").lower()] = _read_calls(parts, f"{path}:{number}: {name}")
        else:
            fields[name.strip()] = value.strip()
    place = f"{path}:{block[0][0]}"
    if not commands:
        raise InputError(f"{place}: has no section Commandstats; needed: INFO all, not INFO: {EXPORT}")
    if "run_id" not in fields:
        raise InputError(f"{place}: has no run_id, so the answer is not whole; take it again: {EXPORT}")
    size = sum(len(line.encode()) + 2 for _, line in block)
    return Info(source, place, _at_s(fields, place), fields, commands, size)


def _at_s(fields: Mapping[str, str], place: str) -> float:
    if CAPTURED in fields:
        return seconds(fields[CAPTURED], f"{place}: {CAPTURED}")
    if "server_time_usec" in fields:
        text = fields["server_time_usec"]
        if not text.isdecimal():
            raise InputError(f"{place}: server_time_usec: found {text!r}; allowed: microseconds since 1970")
        return int(text) / 1e6
    raise InputError(
        f"{place}: this version does not say its time; put it before: "
        "{ date -u '+captured_at: %FT%TZ'; redis-cli INFO all; } > before.txt"
    )


def _parts(value: str, place: str) -> dict[str, float]:
    result = {}
    for part in value.strip().split(","):
        name, sign, text = part.partition("=")
        try:
            result[name] = float(text)
        except ValueError as error:
            answer = f"found {part!r}" if sign else f"found {value.strip()[:60]!r}"
            raise InputError(
                f"{place}: {answer}; allowed: names and numbers such as calls=5,usec=12"
            ) from error
    return result


def _read_calls(parts: Mapping[str, float], place: str) -> Calls:
    if not {"calls", "usec"} <= parts.keys():
        raise InputError(
            f"{place}: found {', '.join(parts)}; needed: calls and usec, as INFO all writes them"
        )
    return Calls(parts["calls"], parts["usec"] / 1e6)


_MUCH = 0.05
_FEW_EXPIRED = 20
"""Fewest expired records that show the lifetime of records."""
_RECORD_BYTES = 90
"""Bytes of memory for a record besides its value: table entry, object and key (Valkey 9: 70 to 110)."""


def store(infos: Sequence[Info]) -> ProductionStore:
    """The figures of several outputs of one server.

    Raises:
        InputError: there is only one output, the outputs are of several servers or of a replica, or the store
            was idle.
    """
    ordered = sorted(infos, key=lambda info: info.at_s)
    names = ", ".join(dict.fromkeys(info.source for info in ordered))
    _check(ordered, names)
    steps = counters.steps(ordered)
    if not steps:
        raise InputError(
            f"{names}: the server was restarted, or its counters were reset, between each two of them; take "
            f"two without either: {EXPORT}"
        )
    stretches = [_stretch(step) for step in steps]
    if not any(stretch.operations for stretch in stretches):
        raise InputError(f"{names}: no record was read or written between them; take them around a busy time")
    calls = _added_calls(steps)
    last = ordered[-1]
    keys, expiring, average_s = _keyspace(last)
    share = _expiring(steps, calls_of(calls, WRITES))
    reported_keys = (
        None if keys is None else ProductionFigure(keys, f"{last.source}: keys of its section Keyspace")
    )
    return ProductionStore(
        family="valkey",
        product=_product(last),
        source=names,
        stretches=stretches,
        sizes=list(_sizes(steps, stretches, calls, keys or 0.0, share.value if share else 0.0)),
        keys=reported_keys,
        expiring=share,
        lifetimes=_lifetimes(steps, expiring, average_s),
        durable=_durable(last),
        notes=[*_left_out(ordered, steps, names), *_notes(last, calls)],
        lacking=list(_lacking(steps, calls)),
    )


def _check(infos: Sequence[Info], names: str) -> None:
    if len(infos) < 2:
        raise InputError(f"{names}: 1 answer of INFO; needed: two, of before and after a busy time: {EXPORT}")
    if infos[0].at_s == infos[-1].at_s:
        raise InputError(f"{names}: all are of the same time; needed: one before and one after a busy time")
    for info in infos:
        if info.fields.get("role", "master") != "master":
            raise InputError(
                f"{info.place}: is of a replica, whose writes are its primary's; take it from the primary"
            )
    ports = dict.fromkeys((info.fields.get("tcp_port"), info.fields.get("executable")) for info in infos)
    starts = {round((info.at_s - (info.number("uptime_in_seconds") or 0.0)) / 10) for info in infos}
    if len(ports) > 1 and len(starts) > 1:
        listed = ", ".join(f"port {port}" for port, _ in ports)
        raise InputError(
            f"{names}: of several servers ({listed}); a plan has one store of records: give one server's"
        )


def _calls_between(step: CounterStep[Info]) -> dict[str, Calls]:
    before, after = step.before, step.after
    none = Calls(0.0, 0.0)
    return {
        name: Calls(
            calls.calls - before.commands.get(name, none).calls,
            max(0.0, calls.spent_s - before.commands.get(name, none).spent_s),
        )
        for name, calls in after.commands.items()
    }


def _added_calls(steps: Sequence[CounterStep[Info]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for step in steps:
        total.update(
            {name: round(calls.calls) for name, calls in _calls_between(step).items() if calls.calls}
        )
    return total


def _stretch(step: CounterStep[Info]) -> StoreActivity:
    between = _calls_between(step)
    calls = {name: each.calls for name, each in between.items()}
    reads, writes = calls_of(calls, READS), calls_of(calls, WRITES)
    serving = (each.spent_s for name, each in between.items() if not is_watching(name))
    return StoreActivity(
        began_s=step.before.at_s,
        ended_s=step.after.at_s,
        operations=reads + writes,
        reads=reads,
        writes=writes,
        inserts=_inserts(step, writes, calls_of(calls, REMOVALS)),
        log_bytes=_log_bytes(step),
        received_bytes=step.grown("total_net_input_bytes"),
        server_s=sum(serving),
    )


def _inserts(step: CounterStep[Info], writes: float, removals: float) -> float | None:
    """New records: the growth of the number of keys, plus the keys that expired or were removed."""
    before, after = (_keyspace(info)[0] for info in (step.before, step.after))
    gone = [step.grown(name) for name in ("expired_keys", "evicted_keys")]
    if before is None or after is None or None in gone:
        return None
    return min(writes, max(0.0, after - before + sum(each or 0.0 for each in gone) + removals))


def _log_bytes(step: CounterStep[Info]) -> float | None:
    """Growth of the append-only file in bytes; None without such a file, or if it was rewritten."""
    before, after = step.before, step.after
    if before.fields.get("aof_base_size") != after.fields.get("aof_base_size"):
        return None
    return step.grown("aof_current_size") if after.number("aof_enabled") else None


def _keyspace(info: Info) -> tuple[float | None, float | None, float]:
    """(keys, expiring keys, their mean remaining lifetime in s); None if the section is missing."""
    if "keyspace_hits" not in info.fields:
        return None, None, 0.0
    parts = [info.parts(name) for name in info.databases]
    keys, expiring = (sum(each.get(name, 0.0) for each in parts) for name in ("keys", "expires"))
    spent_ms = sum(each.get("avg_ttl", 0.0) * each.get("expires", 0.0) for each in parts)
    return keys, expiring, spent_ms / 1000 / expiring if expiring else 0.0


def _sizes(
    steps: Sequence[CounterStep[Info]],
    stretches: Sequence[StoreActivity],
    calls: Counter[str],
    keys: float,
    expiring: float,
) -> Iterator[ProductionFigure]:
    """Bytes of a record, from the append-only file, received bytes, sent bytes and memory."""
    source = ", ".join(dict.fromkeys(info.source for step in steps for info in (step.before, step.after)))
    reads, writes, removals = (calls_of(calls, names) for names in (READS, WRITES, REMOVALS))
    inserts = sum(stretch.inserts or 0.0 for stretch in stretches)
    key = record.key(keys, inserts / writes if writes else 0.0)
    logged = [stretch for stretch in stretches if stretch.log_bytes is not None]
    logged_writes = sum(stretch.writes or 0.0 for stretch in logged)
    if logged_writes:
        each = sum(stretch.log_bytes or 0.0 for stretch in logged) / logged_writes
        # When a record expires, the server writes a removal to the append-only file.
        value = each - expiring * record.request((record.UNLINK, key))
        value = record.payload_of_request(value, key, expiring, kept=True)
        yield ProductionFigure(value, f"{source}: the append-only file grew {plain(each)} bytes for a write")
    received = sum(stretch.received_bytes or 0.0 for stretch in stretches)
    if received and writes:
        others = (sum(calls.values()) - reads - writes - removals) * record.PING
        asked = (reads + removals) * record.request((3, key))
        each = (received - asked - others) / writes
        value = record.payload_of_request(each, key, expiring, kept=False)
        yield ProductionFigure(value, f"{source}: {plain(each)} bytes were received for a write")
    if result := _sent_for_a_read(steps, writes):
        yield ProductionFigure(
            record.payload_of_bulk(result), f"{source}: {plain(result)} bytes were sent for a read"
        )
    last = steps[-1].after
    kept = last.number("used_memory_dataset")
    if kept and keys:
        value = kept / keys - _RECORD_BYTES
        yield ProductionFigure(value, f"{last.source}: {plain(kept / keys)} bytes of memory for a record")


def _sent_for_a_read(steps: Sequence[CounterStep[Info]], writes: float) -> float | None:
    """Bytes sent per read that found a record, without the answers to writes and to ``INFO``."""
    sent = counters.total(steps, "total_net_output_bytes")
    hits, misses = (counters.total(steps, name) for name in ("keyspace_hits", "keyspace_misses"))
    answers = sum(step.before.answer_bytes for step in steps)
    values = sent - answers - writes * record.ANSWER_OK - misses * record.ANSWER_NONE
    return values / hits if hits and values > 0 else None


def _expiring(steps: Sequence[CounterStep[Info]], writes: float) -> ProductionFigure | None:
    """The share of the written records that will expire.

    The first estimate is the flow: expired records plus the growth of expiring records, ÷ writes. The flow
    misses records that are rewritten before they expire, so the share of expiring keys is the second
    estimate. The larger one is used.
    """
    first, last = _keyspace(steps[0].before), _keyspace(steps[-1].after)
    if first[1] is None or last[1] is None or not writes:
        return None
    gone = counters.total(steps, "expired_keys")
    source = steps[-1].after.source
    by_flow = ProductionFigure(
        min(1.0, max(0.0, gone + last[1] - first[1]) / writes),
        f"{source}: records that expired, and are more that will, ÷ writes",
    )
    if not last[0]:
        return by_flow
    by_count = ProductionFigure(last[1] / last[0], f"{source}: expires ÷ keys")
    return max(by_flow, by_count, key=lambda figure: figure.value)


def _lifetimes(
    steps: Sequence[CounterStep[Info]], expiring: float | None, average_s: float
) -> list[ProductionFigure]:
    """Estimates of the lifetime of records; the shorter one first, because rewritten records live longer."""
    gone = counters.total(steps, "expired_keys")
    length_s = sum(step.length_s for step in steps)
    source = steps[-1].after.source
    result = []
    if expiring and gone >= _FEW_EXPIRED:
        per_s = gone / length_s
        origin = f"{source}: {plain(expiring)} records that will expire ÷ {plain(per_s)} expired a second"
        result.append(ProductionFigure(expiring / per_s, origin))
    if average_s:
        origin = f"{source}: twice avg_ttl, what the records there have left on average"
        result.append(ProductionFigure(2 * average_s, origin))
    return sorted(result, key=lambda figure: figure.value)


def _durable(last: Info) -> ProductionFigure | None:
    if last.number("aof_enabled") == 0.0:
        return ProductionFigure(0.0, f"{last.source}: aof_enabled:0, no append-only file")
    flushed = last.fields.get("config_appendfsync")
    if flushed is None:
        return None
    return ProductionFigure(float(flushed == "always"), f"{last.source}: appendfsync {flushed}")


def _product(info: Info) -> str:
    name = "Valkey" if "valkey_version" in info.fields else "Redis"
    version = info.fields.get("valkey_version") or info.fields.get("redis_version")
    return f"{name} {version}" if version else name


def _left_out(infos: Sequence[Info], steps: Sequence[CounterStep[Info]], names: str) -> Iterator[str]:
    left = len(infos) - 1 - len(steps)
    if left:
        yield (
            f"{names}: {left} of {len(infos) - 1} intervals were left out: the server was restarted in them, "
            "or its counters were reset"
        )


def _notes(last: Info, calls: Counter[str]) -> Iterator[str]:
    """The server's own time for the most frequent command, from ``latencystats`` since the server's start."""
    for name, _ in calls.most_common():
        field = f"latency_percentiles_usec_{name}"
        if name in READS | WRITES and field in last.fields:
            parts = last.parts(field)
            shown = ", ".join(f"{percentile} {plain(value)} µs" for percentile, value in parts.items())
            yield f"{last.source}: the server's own time for {name} since its start: {shown}"
            return


def _lacking(steps: Sequence[CounterStep[Info]], calls: Counter[str]) -> Iterator[str]:
    """Sentences about activity that nosql-burst cannot reproduce."""
    writes, removals, reads = (calls_of(calls, names) for names in (WRITES, REMOVALS, READS))
    length_s = sum(step.length_s for step in steps)
    others = {
        name: count for name, count in calls.items() if name not in ON_RECORDS and not is_watching(name)
    }
    total = writes + removals + reads + sum(others.values())
    if removals > _MUCH * total:
        yield (
            f"{plain(removals / length_s)}/s deletions in production, none here: what is inserted stays "
            "until it expires"
        )
    hashes, shapes = calls_of(calls, HASHES), calls_of(calls, OTHER_SHAPES)
    if hashes > _MUCH * writes:
        yield (
            f"{hashes / writes:.0%} of the writes are of hashes, INFO does not report their fields: here a "
            "record is one value of the same bytes; `fields` makes it a hash"
        )
    if shapes > _MUCH * writes:
        yield f"{shapes / writes:.0%} of the writes are of lists, sets, streams or the like; here of values"
    if (beside := sum(others.values())) > _MUCH * total:
        named = ", ".join(sorted(others, key=lambda name: -others[name])[:5])
        yield f"{beside / total:.0%} of the commands are not on records: {named}"
    misses = counters.total(steps, "keyspace_misses")
    if misses > _MUCH * reads:
        share = min(1.0, misses / reads) if reads else 1.0
        yield f"{share:.0%} of the reads find nothing; here all find a record"
