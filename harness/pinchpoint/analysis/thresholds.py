"""Defines every number that a finding is compared with, each with its source.

Sources: ``SP`` Microsoft, "Storage and SQL Server capacity planning and configuration (SharePoint
Server)"; ``PAL`` the threshold files of clinthuffman/PAL; ``MS-IO`` Microsoft support, "Troubleshoot slow
SQL Server performance caused by I/O issues"; ``design`` a value of our own, tuned on ground-truth cases.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Threshold:
    """A limit and its source.

    Attributes:
        value: the limit in base units (seconds, ratios 0-1, counts).
        source: author of the limit, such as ``SP``, ``PAL``, ``MS-IO`` or ``design``.
        says: the rule in the source's words, shortened.
    """

    value: float
    source: str
    says: str


# Latency of a disk by its role. If sources conflict, the value of the role comes before PAL's general value.
LOG_LATENCY_S = Threshold(0.005, "SP", "SQL log disk: good up to 5 ms per read or write")
DATA_LATENCY_S = Threshold(0.020, "SP", "SQL data disk: acceptable up to 20 ms per read or write")
INDEX_LATENCY_S = Threshold(
    0.020, "design", "search index disk: up to 20 ms, as a data disk; none is published"
)
ANY_DISK_LATENCY_S = Threshold(0.025, "PAL", "any disk: critical above 25 ms")
OVERWHELMED_SMALL_S = Threshold(0.025, "PAL", "overwhelmed: queue above 1 and 25 ms, I/O up to 64 KB")
OVERWHELMED_LARGE_S = Threshold(0.035, "PAL", "overwhelmed: queue above 1 and 35 ms, I/O above 64 KB")
LARGE_IO_BYTES = Threshold(65536, "PAL", "an I/O above 64 KB is a large one")

LATENCY_BY_ROLE = {
    **dict.fromkeys(("log", "wal", "journal"), LOG_LATENCY_S),
    "data": DATA_LATENCY_S,
    "tempdb": DATA_LATENCY_S,
    "index": INDEX_LATENCY_S,
}

# Saturation.
NETWORK = Threshold(0.90, "design", "saturation begins at 90 % of the interface speed")
UTILISATION = Threshold(0.90, "design", "saturation begins at 90 % of capacity")
THREAD_BUSY = Threshold(0.95, "design", "one thread is at its limit at 95 % of a core")
DISK_OCCUPIED = Threshold(0.95, "design", "a disk that idles more than 5 % of the time is at no limit")
CAP_MATCH = Threshold(0.03, "design", "at its cap: within 3 % of it")
FLAT = Threshold(0.03, "design", "held: a spread of at most 3 %")
REGULATOR_FLAT = Threshold(
    0.015, "design", "as steady as a limiter: spread at most 1.5 %, or the counting error"
)
WAITING_IO = Threshold(1.5, "design", "I/O waits behind I/O when 1.5 or more are outstanding")
FULL_STEP = Threshold(0.95, "design", "a disk is at its fullest from 95 % of its fullest seconds on")
TELLING_COUNT = Threshold(
    8,
    "design",
    "eight I/Os at a time: a device's times, which spread by 40 %, show twice as much as counting",
)
IRREGULAR = Threshold(0.15, "design", "a device's spread: the time between I/Os spreads by 15 % or more")
MOSTLY_BUSY = Threshold(0.75, "design", "mostly busy: three quarters of the time")
MIN_STEPS = Threshold(8, "design", "the response of a rate needs at least 8 seconds")
SLOPE_ERROR = Threshold(0.20, "design", "a slope is known when its standard error is 0.2 at most")
STEADIER = Threshold(3, "design", "a regulator's rate is three times as steady as latency")
TIMES_SPREAD = Threshold(
    0.50, "design", "uneven times of I/O: they spread half as much as their number or more"
)
STAYS = Threshold(0.30, "design", "I/O stays: it follows less than 0.3 of a change in outstanding I/O")
FOLLOWS = Threshold(0.80, "design", "I/O follows: at least 0.8 of a change in outstanding I/O")
MOSTLY_OCCUPIED = Threshold(0.90, "design", "hardly idle: busy 90 % of the time or more")
SIZES_VARY = Threshold(1.05, "design", "I/Os of different sizes: the large ones are a twentieth larger")
BY_SIZE = Threshold(0.50, "design", "bytes stay: they follow less than half of a change in I/Os' size")
NO_LATENCY_S = Threshold(0.002, "MS-IO", "below 2 ms an I/O is excellent")
ONE_AT_A_TIME = Threshold(1.1, "design", "I/Os come one at a time: 1.1 are outstanding when any is")
PRESSURE = Threshold(0.50, "design", "work waits for the resource at least 50 % of the time")
MOSTLY_READS = Threshold(0.50, "design", "a disk that mostly reads: half of its I/O or more")
WAIT_SHARE = Threshold(0.50, "design", "at least 50 % of an operation's time is waiting for one disk")
HARDLY_WAITED_FOR = Threshold(
    0.10, "design", "hardly waited for: less than 10 % of the operations' time, as reported"
)
POOL_HELD = Threshold(0.50, "design", "at least 50 % of the users wait for the dependency")
NOT_SEEN = Threshold(0.50, "design", "the called tier is idle for at least 50 % of the wait")
OUTSIDE_S = Threshold(0.002, "design", "a network of one site and a client's own work take less than 2 ms")
OFTEN = Threshold(0.10, "design", "often: more than a tenth of the time")
OWN_USE = Threshold(0.70, "design", "the farm's own resources are used less than 70 %")
LOCK_WAIT = Threshold(0.50, "design", "at least half of the operations in flight wait for a lock")
READ_AGAIN = Threshold(0.50, "design", "at least 50 % of the reads are of data evicted from memory before")
MEMORY_WAIT = Threshold(0.10, "design", "processes wait for memory at least 10 % of the time")
PAGING = Threshold(1e6, "design", "paging: a megabyte a second is read in, or more")
CONNECTIONS = Threshold(0.95, "design", "connections are at their limit when 95 % are in use")
QUEUED = Threshold(0.10, "design", "at least 10 % of the operations wait for a thread or a ticket")
MANY_REFUSED = Threshold(
    0.01, "design", "at least 1 % of the operations are refused because no connection is free"
)
FAILING = Threshold(0.01, "design", "no all-clear where one operation in a hundred fails")
EXPECTED = Threshold(5, "design", "silence: nothing ends in a second in which five operations should")
GROWN = Threshold(2, "design", "times that grow: twice as long in the last third as in the first")
GROWN_S = Threshold(0.010, "design", "and 10 ms longer at least")
PRESSED = Threshold(0.50, "design", "closed load presses the farm when users wait for it half of the time")
ROOM = Threshold(0.75, "design", "a resource has room below 75 % of its capacity (METHOD 3.5)")
MEMORY_LOW = Threshold(0.10, "PAL", "memory: warning below 10 % available")
MEMORY_CRITICAL = Threshold(0.05, "PAL", "memory: critical below 5 % available")

# Gates.
GENERATOR_CPU = Threshold(
    0.90, "design", "invalid above 90 % of a core (the load generator would measure itself)"
)
GENERATOR_CPU_TIME = Threshold(0.10, "design", "for more than 10 % of the time")
LOOP_LAG = Threshold(
    0.50, "design", "at least 50 % of the measured wait is delay of the load generator itself"
)
STARTED = Threshold(0.95, "design", "at least 95 % of the scheduled operations were started")
SEND_LAG_S = Threshold(0.005, "design", "send lag: at most 5 ms, or a tenth of the p99 response")
SEND_LAG_SHARE = Threshold(0.10, "design", "send lag: at most a tenth of the p99 response")
LITTLE = Threshold(0.05, "design", "Little's law: users = throughput x (time + think time) within 5 %")
CLIENT_TIME_S = Threshold(0.0002, "design", "a client's own work between operations: at most 0.2 ms")
RECONNECT_S = Threshold(2.5, "design", "a session waits 2.5 s at most before it connects again (Backoff)")
OTHER_PROCESSES = Threshold(1 / 3, "design", "other processes use a third of its CPU")
CONTENDED = Threshold(0.05, "design", "contention: others take 5 % of the load generator's CPU")
CPU_WAIT = Threshold(0.01, "design", "and the load generator waits for a core one second in a hundred")
HELD_UP = Threshold(0.50, "design", "a farm no longer answers: at least half of the sessions wait for it")
HELD_UP_S = Threshold(1, "design", "and for a second or more, longer than any operation took that ended")
STEAL = Threshold(0.05, "design", "more than 5 % of CPU time stolen by the hypervisor")
STOLEN = Threshold(0.20, "design", "a fifth of CPU time stolen: what waits may wait for that")
SUSTAINED = Threshold(30.0, "design", "at a limit for 30 seconds or longer, by the mean over 30 seconds")
SEEN = Threshold(0.90, "design", "a host is seen when 90 % of the window has its samples")

# Time.
MIN_SECONDS = Threshold(10, "design", "below 10 seconds nothing is named")
MIN_SAMPLES = Threshold(30, "design", "statistics over time need 30 samples")
MIN_BLOCK = Threshold(10, "design", "bottlenecks over time are judged in parts of at least 10 seconds")
MIN_BLOCKS = Threshold(2, "design", "a bottleneck held for a while: in two parts in a row")
MIN_LEVELS = Threshold(6, "design", "a knee needs 6 load levels")
KNEE_SLOPE = Threshold(0.10, "design", "after a knee throughput rises by less than a tenth of before")
KNEE_RISE = Threshold(1.25, "design", "after a knee response times are a quarter longer")
RISES = Threshold(0.05, "design", "rank correlation with the load: Kendall's tau above 0, p below .05")
CEILING = Threshold(0.10, "design", "within 10 % of the highest measured throughput")
DRIFTS = Threshold(0.01, "design", "a trend over ten parts: Kendall's tau, p below .01")
USL_SLOPE = Threshold(0.35, "design", "the scalability law sees it too: its slope has fallen to a third")
LEVEL_SHIFT = Threshold(0.10, "design", "a change of level matters from 10 % on")
SAME_MIX = Threshold(0.15, "design", "the same mix: reads are the same share of I/O within 0.15")
DISK_SHIFT = Threshold(0.20, "design", "a disk's level changed: by 20 % or more")
CHECKPOINT_SHOWS = Threshold(1.25, "design", "p95 is a quarter longer while a checkpoint is written")
RECOVERED = Threshold(0.10, "design", "recovered: within 10 % of the latency between bursts")

# Confidence.
STABLE_HIGH = Threshold(0.95, "design", "95 % of the resamples name the same resource")
STABLE_MEDIUM = Threshold(0.80, "design", "80 % of the resamples name the same resource")

# The causal test: shares of what the model says, on the scale of logarithms.
PROOF_ANSWERS = Threshold(0.50, "design", "it answers: at least half of what the model says, beyond chance")
PROOF_EXCEEDS = Threshold(1.50, "design", "it answers with one and a half times what the model says, or more")
PROOF_NOTHING = Threshold(0.25, "design", "it hardly answers: less than a quarter of what the model says")
PROOF_VISIBLE = Threshold(0.95, "design", "a change can be seen when throughput is to fall by 5 % or more")


def latency_limit(role: str) -> Threshold:
    """The latency above which a disk of this role is called slow."""
    return LATENCY_BY_ROLE.get(role, ANY_DISK_LATENCY_S)


def at_least(value: float | None, limit: Threshold) -> bool:
    """Whether a value reaches the limit; False if the value was not measured."""
    return value is not None and value >= limit.value


def at_most(value: float | None, limit: Threshold) -> bool:
    """Whether a value does not exceed the limit; False if the value was not measured."""
    return value is not None and value <= limit.value


def exceeds(done: float | None, limit: float | None = 1.0) -> bool:
    """Whether clearly more was done than a declared limit allows, so that another limit must apply.

    A value slightly above the limit (``CAP_MATCH``) is at the limit. False if the value or the limit is
    unknown.
    """
    return done is not None and limit is not None and done > limit * (1 + CAP_MATCH.value)
