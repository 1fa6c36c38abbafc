"""Simulated farms for what-if tests: a log, a data disk or CPUs with known behaviour."""

from __future__ import annotations

from collections.abc import Mapping

from harness.analysis.build import Build
from harness.analysis.disks import Seconds

from pinchpoint.analysis.model.prediction import Prediction, predict_change
from pinchpoint.forecast.other_side import between
from pinchpoint.forecast.predict import read_modelled_run
from pinchpoint.store.read import StoredRun

Limits = Mapping[str, float]
MEASURE_S = 40
LENGTH_S = MEASURE_S + 10


def _sql(found: Seconds, own: str, other: str, limits: Limits | None, seed: int) -> Build:
    build = Build(measure_s=found.length - 10, seed=seed)
    disks = {own: "loop1", other: "sdc"}
    build.host("sql1", "sql", cores=(0, 1), disks=disks, limits={own: dict(limits)} if limits else None)
    build.cpu("sql1", 0.03, 0.02, cores=(0, 1)).device("sql1", "loop1", found)
    return build.disk("sql1", "sdc", 4, 0.001, busy=0.01, pressure=0.5)


def log(
    found: Seconds, users: int = 0, rate_per_s: float = 0.0, limits: Limits | None = None, seed: int = 1
) -> Build:
    """Return a SQL tier that commits to that disk with an idle CPU."""
    build = _sql(found, "log", "data", limits, seed)
    if users:
        build.closed("orders", "sql-mix", users)
    else:
        build.open("orders", "sql-mix", rate_per_s)
    return build.served("orders", "log_append", found).generator()


def data(found: Seconds, users: int, limits: Limits | None = None, seed: int = 1) -> Build:
    """Return a SQL tier whose users read pages from that disk."""
    build = _sql(found, "data", "log", limits, seed)
    return build.closed("orders", "sql-mix", users).served("orders", "point_read", found).generator()


def overloaded(found: Seconds, rate_per_s: float, limits: Limits) -> Build:
    """Return a SQL tier with more reads than the data disk serves; the rest never start."""
    started = float(found.operations.mean())
    build = _sql(found, "data", "log", limits, 1).open("orders", "sql-mix", rate_per_s)
    return build.served("orders", "point_read", found).generator(orders=(rate_per_s, started))


def cpu(busy: float, per_s: float, users: int, time_s: float, cores: int = 1, think_s: float = 0.0) -> Build:
    """Return a search tier on its own cores with that utilisation at that throughput."""
    build = Build(measure_s=MEASURE_S)
    build.host("search1", "search", cores=tuple(range(cores)))
    build.manifest["hosts"]["search1"]["usable_cores"] = list(range(cores))
    build.cpu("search1", busy, busy, cores=tuple(range(cores)), pressure=0.6)
    build.closed("crawl", "full-crawl", users, think_s)
    build.operations("crawl", "document:sharepoint", per_s, time_s)
    return build.operations("crawl", "document:sharepoint/index", per_s, time_s).generator()


def predict_other(base: StoredRun, other: StoredRun) -> Prediction:
    """Return the prediction of the base's load on the other run's farm, as a comparison does it."""
    ours, theirs = read_modelled_run(base), read_modelled_run(other)
    return predict_change(ours, between(ours.measured, theirs.measured).settings)
