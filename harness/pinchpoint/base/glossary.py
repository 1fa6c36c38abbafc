"""The glossary: terms of reports and documentation, each explained in one or two sentences."""

from __future__ import annotations

from collections.abc import Mapping

TERMS: Mapping[str, str] = {
    "bottleneck": "The resource that limits throughput: with more of it, or a faster one, throughput rises.",
    "closed load": "A fixed number of users; each starts its next operation when the last one has ended. A "
    "slower farm gets less load.",
    "confidence": "How sure a verdict is: low, medium or high, by the number of kinds of evidence, "
    "and how often resampled data name the same resource.",
    "disk role": "What a disk is for: log, data, tempdb, index, content. farm.yaml maps roles to devices.",
    "dropped operation": "An operation of an open load that could not start within 10 s of its intended "
    "start. For objectives it is an error.",
    "gain": "How much throughput rises if the bottleneck is removed, until the next one limits it.",
    "headroom": "How much more load fits before the first limit, as a share of the load now.",
    "IOPS": "I/O operations per second that a disk completes, reads and writes.",
    "knee": "The load level from which on more load brings hardly more throughput.",
    "latency": "How long one operation takes; of a disk, how long one read or write takes.",
    "load level": "One step of a load: a rate, or a number of users, that is held for some time.",
    "measure phase": "The part of a run that counts: after the warm-up, before the cool-down.",
    "next bottleneck": "The resource that limits throughput once the bottleneck is removed.",
    "not measured": "No value was read. It is not 0, and neither good nor bad.",
    "objective": "A figure that the plan says the run has to reach.",
    "offered load": "The operations that the plan asks for, whether or not the farm does them.",
    "open load": "Operations that arrive at a rate, whether or not earlier ones have ended.",
    "operation": "One thing that a scenario does, such as a commit or fetching a document.",
    "outstanding": "Operations or I/Os that have begun and not ended yet.",
    "p50, p95, p99": "The time within which 50, 95 or 99 % of the operations ended.",
    "pressure": "The share of time in which work waited for CPU, memory or I/O, as Linux counts it.",
    "response time": "From the intended start of an operation to its end: it includes waiting for a start.",
    "saturated": "At its limit: utilisation, rate or concurrency cannot grow.",
    "scenario": "One kind of load, such as a crawl or a mix of SQL statements.",
    "service time": "From the actual start of an operation to its end.",
    "steal": "CPU time that the hypervisor gave to other virtual machines.",
    "throughput": "Operations that ended well, per second.",
    "tier": "A part of the farm with one task: web, search, sql, nosql, files.",
    "utilisation": "The share of a resource that is in use, or of the time in which it is busy.",
}
"""Term -> explanation, in alphabetical order."""
