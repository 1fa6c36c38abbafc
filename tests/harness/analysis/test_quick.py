"""The quick check that clears a resource gives the same answer as the complete rules."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt
import pytest

from pinchpoint.analysis.flows import Flow
from pinchpoint.analysis.resources.base import Resource, ResourceType
from pinchpoint.analysis.resources.disk.measures import settle
from pinchpoint.analysis.resources.kinds import KINDS, measure, suspect
from pinchpoint.analysis.stations import Station
from pinchpoint.data.inputs import DiskRole, Limits, Load
from pinchpoint.data.operations import Latency
from pinchpoint.data.series import Key

STEPS = 40
COLUMNS: dict[ResourceType, tuple[str, ...]] = {
    "cpu": ("busy", "pressure", "use:sql"),
    "allowance": ("busy", "pool", "allowed", "pressure"),
    "thread": ("busy", "pool", "pressure", "witness"),
    "dependency": ("used", "witness", "own", "each_s"),
    "lock": ("used", "witness"),
    "memory": ("used", "witness", "pressure"),
    "network": ("used", "witness"),
    "pool": ("used", "witness", "own"),
}


def column(random: np.random.Generator, most: float) -> npt.NDArray[np.float64]:
    """Return random values around a random level up to ``most``, some of them missing (NaN)."""
    found = random.uniform(0, most) * (1 + random.choice([0.001, 0.1]) * random.standard_normal(STEPS))
    found[random.random(STEPS) < random.choice([0.0, 0.0, 0.3, 1.0], p=[0.4, 0.3, 0.2, 0.1])] = np.nan
    return np.asarray(np.abs(found))


def some_flows(random: np.random.Generator) -> tuple[Flow, ...]:
    """Return two scenarios that spend a random share of their time in sql, saturating or not."""
    flows = []
    for name in ("orders", "crawl"):
        users, at = 16.0, 16.0 * random.choice([0.0, 0.3, 0.8, 1.0])
        latency = Latency(1000, *([float(random.uniform(0.001, 0.05))] * 5))
        station = Station("sql", "sql", source=False, going_on=at, per_step=np.empty(0), mean_s=0.01)
        flows.append(
            Flow(
                load=Load(name, "sql-mix", "closed", users=users),
                finished=1000,
                ok=1000,
                failures=0,
                refused=0,
                dropped=0,
                started_ratio=None,
                service=latency,
                commits=latency,
                in_flight=users,
                stations=(station,),
                pressed=bool(random.random() < 0.6),
            )
        )
    return tuple(flows)


def some_disk(random: np.random.Generator) -> Resource:
    """Return a random log, data or index disk, with or without a cap and database samples."""
    role, cap = random.choice(["log", "data", "index"]), Limits(500.0, None, None)
    most = {"reads": 500.0, "writes": 500.0, "bytes": 4e6, "outstanding": 6.0, "busy": 1.1, "sessions": 20.0}
    columns = {name: column(random, top) for name, top in most.items()}
    columns["read_bytes"] = columns["bytes"] / 2
    for way in ("read", "write", "flush"):
        columns |= {f"{way}_latency": column(random, 0.04), f"{way}_weight": column(random, 500)}
    columns |= {name: column(random, 1) for name in ("pressure", "log_waits")}
    if random.random() < 0.5:
        unknown = np.full(STEPS, np.nan)
        columns |= {"sessions": unknown, "log_waits": unknown}
    return Resource(
        key="disk:a:sdb",
        type="disk",
        machine="a",
        hosts=("sql1",),
        tiers=("sql",),
        instance="sdb",
        roles=(DiskRole("sql", "sql1", role, "a", "sdb", None, "kernel", cap),),
        limits=cap if random.random() < 0.5 else None,
        commit_path=bool(role == "log"),
        columns=columns,
    )


def some_resource(random: np.random.Generator, kind: ResourceType) -> Resource:
    """Return a random resource of another kind; its ratios reach up to 1.2."""
    columns = {name: column(random, 0.01 if name == "each_s" else 1.2) for name in COLUMNS[kind]}
    views = {"network": 1, "pool": int(random.choice([0, 2]))}.get(kind, 0) * (
        Key("sql1", "db.pool.active", ""),
    )
    tiers = ("sql",) if random.random() < 0.7 else ()
    return Resource(
        "one", kind, "a", ("sql1",), tiers, "", cores=2, scenario="orders", columns=columns, views=views
    )


@pytest.mark.parametrize("kind", ["disk", *COLUMNS])
def test_what_is_at_ease_is_not_suspected(kind: ResourceType) -> None:
    """For hundreds of random resources, the quick check agrees with the complete rules."""
    random, told = np.random.default_rng(1), Counter[str]()
    for _ in range(400):
        flows = some_flows(random)
        made = some_disk(random) if kind == "disk" else some_resource(random, kind)
        [resource] = settle([made], np.arange(STEPS))
        rows = random.integers(0, STEPS, STEPS)
        found = KINDS[kind].judge(resource, measure(resource, rows), flows)
        quick = KINDS[kind].clearly_unsuspected(resource, rows, flows)
        assert not (quick and found)
        assert (suspect(resource, rows, flows) is None) == (found is None)
        told["quick" if quick else "suspected" if found else "long"] += 1
    assert told["suspected"] > 5
    assert kind == "pool" or told["quick"] > 100
