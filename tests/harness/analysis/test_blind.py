"""The verdict depends on what was measured and declared, not on how the farm was built."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pytest
from harness.analysis.build import crawl_bound_by_search, utc
from harness.analysis.verdicts import healthy, judged, log_disk

from pinchpoint.analysis import analyse
from pinchpoint.store.read import StoredRun


@pytest.mark.parametrize(
    "embedded",
    [
        None,
        {"tiers": ["web"], "disks": {"sql.log": {"limits": {"iops": 42}}}, "cpus": {"sql": 0.1}},
        {"disks": {"search.index": {"profile": "azure/s30", "latency_s": 9.0}}, "delays": {"web": 5.0}},
    ],
)
@pytest.mark.parametrize("make", [crawl_bound_by_search, lambda: log_disk(None), healthy])
def test_how_the_farm_was_built_changes_nothing(make: Any, embedded: dict[str, Any] | None) -> None:
    """The verdict is byte for byte the same, whatever the manifest has under ``embedded``."""
    run: StoredRun = make().run()
    plain = analyse(run).to_json()
    manifest = copy.deepcopy(run.manifest)
    manifest["farm"]["embedded"] = embedded
    altered = StoredRun(run.directory, manifest, run.operations, run.samples, run.events)
    assert json.dumps(analyse(altered).to_json()) == json.dumps(plain)


def test_the_same_run_gives_the_same_words() -> None:
    """Repeated analysis gives the same verdict in any order of rows, and changes no input."""
    run = crawl_bound_by_search().run()
    before = copy.deepcopy(run.manifest)
    first = analyse(run).to_json()
    order = np.random.default_rng(3).permutation(run.samples.num_rows)
    shuffled = StoredRun(run.directory, run.manifest, run.operations, run.samples.take(order), run.events)
    assert analyse(shuffled).to_json() == first
    assert run.manifest == before


def test_the_first_window_is_in_the_evidence() -> None:
    """The evidence names the measure phase as its window, in UTC."""
    verdict = judged(crawl_bound_by_search())
    assert verdict.bottleneck is not None
    assert verdict.bottleneck.window == (utc(1_767_225_610), utc(1_767_225_670))
