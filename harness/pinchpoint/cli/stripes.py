"""``pinchpoint demo --stripes``: the same burst of writes on 1, 2, 4 and 8 stripes of an emulated disk."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from pinchpoint.base.clock import seconds_of
from pinchpoint.base.errors import InputError, gravest
from pinchpoint.cli.dev_vs_prod import check_means
from pinchpoint.cli.run import run_and_report
from pinchpoint.cli.run_set import came_to_its_end
from pinchpoint.conclude import saved_verdict
from pinchpoint.loadgen.profiles import Bursts
from pinchpoint.plan import Farm, Plan
from pinchpoint.report import striped
from pinchpoint.store.read import StoredRun

STRIPES = (1, 2, 4, 8)
REPETITIONS = 2
_STRIPE_BYTES_PER_S = 2_000_000
_BASE_PER_S, _PEAK_PER_S, _EVERY_S, _FOR_S = 5.0, 1000.0, 16.0, 6.0
"""The peak is beyond what eight stripes take, so that a burst is as fast as the disk is."""
_WARM_UP_S = 16
_SCENARIO = "burst"

PLAN: dict[str, Any] = {
    "name": "stripes",
    "scenarios": {
        _SCENARIO: {
            "use": "nosql-burst",
            "load": {
                "model": "burst",
                "base": f"{_BASE_PER_S:g}/s",
                "peak": f"{_PEAK_PER_S:g}/s",
                "every": f"{_EVERY_S:g}s",
                "for": f"{_FOR_S:g}s",
            },
            # A flush of several such records is long enough to lie on every stripe (chunks of 64 KiB).
            "params": {"fields": 1, "field_bytes": 32_768, "keys": 300, "verify": 100},
        }
    },
    # The disk is new when the load begins: its first burst is warm-up, and no part of what is compared.
    "phases": {"warm_up": f"{_WARM_UP_S}s", "measure": f"{3 * _EVERY_S:g}s"},
}


def farm(stripes: int) -> dict[str, Any]:
    """The farm.yaml of so many stripes: the disk is new, and slower until it has been used for a while."""
    disk = {
        "limits": {"bytes_per_s": f"{_STRIPE_BYTES_PER_S / 1e6:g}MB/s"},
        "stripes": stripes,
        # Over as the second burst begins: the first one meets a disk that is still new.
        "warm_up": {"from": 0.4, "over": f"{2 * _EVERY_S - _FOR_S:g}s"},
    }
    declared = {"limits": {"bytes_per_s": f"{stripes * _STRIPE_BYTES_PER_S / 1e6:g}MB/s"}}
    return {
        "name": f"stripes-{stripes}",
        "environment": "test",
        "embedded": {"tiers": ["nosql"], "disks": {"nosql.data": disk}},
        "tiers": {"nosql": {"hosts": {"nosql1": {"disks": {"data": declared}}}}},
    }


def run_all(loaded: Callable[[int], tuple[Farm, Plan]], out: Path) -> int:
    """Run the plan on each number of stripes, twice, the second time backwards; table, chart, verdicts.

    Args:
        loaded: farm and plan of so many stripes.
        out: where runs, ``stripes.json`` and ``stripes.html`` go; the last line is the path of the page.

    Raises:
        FarmUnavailable: this machine has no means for such disks.
    """
    pairs = {number: loaded(number) for number in STRIPES}
    for described, _ in pairs.values():
        check_means(described)
    found: list[striped.Measured] = []
    statuses = []
    for repetition in range(REPETITIONS):
        # Whatever drifts over the whole of it favours no number.
        for stripes in STRIPES if repetition % 2 == 0 else reversed(STRIPES):
            click.echo(f"{stripes} stripes, repetition {repetition + 1} of {REPETITIONS}:")
            directory, status = run_and_report(*pairs[stripes], out)
            click.echo("")
            statuses.append(status)
            if not came_to_its_end(directory, status):
                click.echo("that run did not come to its end, so there is nothing to compare", err=True)
                click.echo(directory)
                return status
            found.append(measured(stripes, repetition + 1, *saved_verdict(directory)))
    rows = striped.summary(found)
    click.echo(striped.text(rows))
    click.echo(_write(out, found, rows))
    return gravest(statuses)


def measured(stripes: int, repetition: int, run: StoredRun, verdict: Mapping[str, Any]) -> striped.Measured:
    """What one run's bursts got done: the first, while the disk was new, apart from the others."""
    begun_s = next(
        seconds_of(phase["from"]) for phase in run.manifest["phases"] if phase["name"] == "warm_up"
    )
    shape = Bursts(_BASE_PER_S, _PEAK_PER_S, _EVERY_S, _FOR_S)
    rates = [
        striped.rate_per_s(run.operations, _SCENARIO, begun_s + low, begun_s + high)
        for low, high in shape.windows(_WARM_UP_S + 3 * _EVERY_S)
    ]
    return striped.Measured(
        stripes=stripes,
        repetition=repetition,
        new_per_s=rates[0],
        used_per_s=sum(rates[1:]) / len(rates[1:]),
        verdict=str(verdict["summary"]),
        run=run.directory.name,
    )


def _write(out: Path, found: Sequence[striped.Measured], rows: Sequence[striped.Row]) -> Path:
    page = out / "stripes.html"
    try:
        out.mkdir(parents=True, exist_ok=True)
        content = {"runs": [asdict(one) for one in found], "stripes": [asdict(row) for row in rows]}
        (out / "stripes.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        page.write_text(striped.page(found, rows), encoding="utf-8")
    except OSError as error:
        raise InputError(f"{page}: cannot be written: {error.strerror}; give another with --out") from error
    return page
