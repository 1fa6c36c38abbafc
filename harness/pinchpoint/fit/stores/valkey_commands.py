"""What Valkey's and Redis' commands do with records, by their names in ``INFO``'s section Commandstats."""

from __future__ import annotations

from collections.abc import Mapping

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
    """Whether a command is what connecting and watching take; a subcommand stands behind a ``|``."""
    return name.partition("|")[0] in _WATCHING


def of(calls: Mapping[str, float], names: frozenset[str]) -> float:
    """How often commands of these names were called."""
    return sum(count for name, count in calls.items() if name in names)
