"""``pinchpoint demo --dev-vs-prod``: one plan on two farms that differ in their disks only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from pinchpoint.base.errors import FarmUnavailable, gravest
from pinchpoint.cli.run import run_and_report
from pinchpoint.cli.run_set import compare_farms, conduct
from pinchpoint.farm.live import embedded
from pinchpoint.plan import Farm, Plan
from pinchpoint.run.run_set import Repeated, new_set
from pinchpoint.store.schema import REPORT
from pinchpoint_infra.disks import support
from pinchpoint_infra.disks.way import choose

_STANDARD = {"iops": 500, "bytes_per_s": "60MB/s"}
"""Azure Standard HDD, one disk of the four in each of Dev's arrays."""

DISKS: dict[str, dict[str, Any]] = {
    # A field report's figures: far below any cap, log writes took 35 ms here and 2.8 ms there.
    "dev": {
        "sql.log": {"limits": _STANDARD, "stripes": 4, "latency": "35ms", "jitter": "1ms"},
        "sql.data": {"limits": _STANDARD, "stripes": 4, "latency": "40ms", "jitter": "1ms"},
    },
    "prod": {
        "sql.log": {"profile": "azure/p30", "latency": "2.8ms", "jitter": "0.2ms"},
        "sql.data": {"profile": "azure/p30", "latency": "1ms", "jitter": "0.2ms"},
    },
}
"""What the farms are built with; the rest of them is the same."""

DECLARED: dict[str, dict[str, Any]] = {
    "dev": {"limits": {"iops": 2000, "bytes_per_s": "240MB/s"}},
    "prod": {"profile": "azure/p30"},
}
"""What a user would say of each of these disks."""

PLAN: dict[str, Any] = {
    "name": "dev-vs-prod",
    "scenarios": {
        "crawl": {"use": "full-crawl", "load": {"model": "closed", "users": 7}},
        "orders": {
            "use": "sql-mix",
            "load": {"model": "open", "rate": "50/s"},
            "params": {"preset": "log-heavy"},
        },
    },
    "phases": {"warm_up": "5s", "measure": {"until": "done", "at_most": "15m"}},
    "compare": {
        "metrics": [
            "scenario.crawl.throughput_per_s",
            "scenario.orders.response_p95_s",
            "disk.sql.log.write_latency_mean_s",
            "disk.sql.data.write_latency_mean_s",
            "effort.crawl.search.cpu_s",
        ]
    },
}


def farm(name: str) -> dict[str, Any]:
    """The farm.yaml of one side: ``dev`` or ``prod``."""
    disks = dict.fromkeys(("log", "data"), DECLARED[name])
    return {
        "name": name,
        "environment": "test",
        "embedded": {
            "tiers": ["web", "sql", "search", "files"],
            "disks": DISKS[name],
            "cpus": {"search": 0.5},
            "content": {"documents": 3000},
        },
        "tiers": {"sql": {"hosts": {"sql1": {"disks": disks}}}},
    }


def run_both(farms: Sequence[tuple[Farm, Plan]], out: Path, repeat: int = 1) -> int:
    """Run the plan on each farm by turns, compare; the last line is the comparison's page.

    Args:
        farms: both, with their plan.
        out: where the set of runs goes.
        repeat: the number of runs of each.

    Raises:
        FarmUnavailable: this machine has no means for such disks: both farms would be the same.
    """
    for described, _ in farms:
        check_means(described)
    names = [(described.name, Path(described.identity)) for described, _ in farms]
    made = new_set(out, str(PLAN["name"]), names, Repeated(repeat, factors=("disks",)))
    statuses = conduct(made, farms, run_and_report)
    if made.state != "finished":
        click.echo(made.directory)
        return gravest(statuses)
    written, status = compare_farms(made)
    click.echo(written[0] / REPORT)
    return gravest([*statuses, status])


def check_means(described: Farm) -> None:
    """Raise ``FarmUnavailable`` where this machine has no means for the disks a farm describes."""
    found = support()
    ways = {choose(disk, found) for disk in embedded().spec(described).disks.values()}
    lacking = sorted(way for way in ways if isinstance(way, str))
    if lacking:
        raise FarmUnavailable(
            f"farm {described.name}: this machine lacks the means for disks of its own: "
            f"{'; '.join(lacking)}. Without them all farms would be the same; run it as root on Linux, "
            "or `pinchpoint demo`"
        )
