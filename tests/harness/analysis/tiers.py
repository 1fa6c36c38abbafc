"""Upstream tiers: a crawl waits for the web tier, which waits for sql, unseen by the client."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.analysis.build import Build
from harness.analysis.shapes import LOCK, LOG, WARM_UP_S, Answer, Shape

DATA_CAP: Answer = ("disk_cap", "sql", "data")

NOBODY: Mapping[str, float] = {}
READS = {"IO__DataFileRead": 11.4}
COMMITS = {"IO__WalSync": 1.0, "LWLock__WALWrite": 10.4}
"""Sessions by wait event in the database, with ``__`` for the colon."""

USERS = 12
FETCH_S = 0.24
RATE = USERS / (FETCH_S + 0.005)


def behind(
    waiting: Mapping[str, float] = NOBODY,
    *,
    asked: bool = True,
    sessions: float = 11.6,
    seed: int = 1,
    measure_s: int = 60,
) -> Build:
    """Build a crawl of a site with pages of 240 ms, whose web tier is almost idle."""
    build = Build(measure_s, WARM_UP_S, seed).host("web1", "web", machine="w", cores=(0, 1))
    build.host("sql1", "sql", machine="d", cores=(0, 1), disks={"log": "sdb", "data": "sdc"})
    build.cpu("web1", 0.06, 0.05, cores=(0, 1)).cpu("sql1", 0.1, 0.09, cores=(0, 1))
    build.metric("web1", "pressure.io_ratio", 0.01)
    build.closed("crawl", "full-crawl", USERS)
    build.manifest["plan"]["scenarios"]["crawl"]["params"] = {
        "sources": [{"kind": "sharepoint", "name": "site"}]
    }
    build.operations("crawl", "document:site", RATE, FETCH_S + 0.005, noise=0.02)
    build.operations("crawl", "document:site/fetch", RATE, FETCH_S, noise=0.02)
    build.operations("crawl", "document:site/crawl_db", RATE, 0.002, noise=0.02)
    build.metric("generator1", "generator.users", float(USERS), "crawl", 0.0)
    told = [("web1", "local"), ("sql1", "local"), *([("sql1", "postgres")] if asked else [])]
    for host, kind in told:
        build.manifest["collectors"].append({"kind": kind, "hosts": [host]})
        build.metric(host, "collector.ok", 1.0, kind, 0.0)
    if asked:
        build.sessions("sql1", sessions, **waiting)
    return build.generator()


def reading(build: Build) -> Build:
    """Add a data disk at its cap of 250 reads per second with ten reads waiting."""
    build.manifest["farm"]["tiers"]["sql"]["hosts"]["sql1"]["disks"]["data"]["resolved_limits"] = {
        "iops": 250.0
    }
    build.disk("sql1", "sdc", 0, 0.045, 0.004, reads=250, busy=1.0, pressure=0.97)
    return build.disk("sql1", "sdb", 20, 0.0006, busy=0.01, pressure=0.97)


def logging(build: Build) -> Build:
    """Add a log disk of 40 ms that each page writes four times."""
    build.disk("sql1", "sdb", 24, 0.04, 0.03, busy=0.97, pressure=0.97, outstanding_noise=0.04)
    return build.disk("sql1", "sdc", 5, 0.0006, busy=0.01, pressure=0.97)


def idle(build: Build) -> Build:
    """Add almost idle disks."""
    for device in ("sdb", "sdc"):
        build.disk("sql1", device, 5, 0.0006, busy=0.01, pressure=0.05)
    return build


def _shape(
    make: Callable[[Build], Build],
    right: Answer,
    waiting: Mapping[str, float] = NOBODY,
    *,
    asked: bool = True,
    sessions: float = 11.6,
) -> Shape:
    def build(seed: int, measure_s: int) -> Build:
        return make(behind(waiting, asked=asked, sessions=sessions, seed=seed, measure_s=measure_s))

    return Shape(build, frozenset({right}))


BEHIND: Mapping[str, Shape] = {
    "a site that reads at sql's cap": _shape(reading, DATA_CAP, READS),
    "a site that commits to a slow log": _shape(logging, LOG, COMMITS),
    "a site that waits for a lock": _shape(idle, LOCK, {"Lock__tuple": 11.0}),
    "a site that reads in a database nobody asked": _shape(reading, DATA_CAP, asked=False),
    "a site that commits in a database nobody asked": _shape(logging, LOG, asked=False),
    "a site far away": _shape(idle, ("external", "web", None), sessions=0.2),
}
