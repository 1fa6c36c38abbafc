"""The rate limit of a farm's web tier."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.plan.samples import write

from pinchpoint.farm.embedded import spec
from pinchpoint.plan import Farm, load_farm
from pinchpoint_infra.faults.throttle import ThrottledEndpoint


@pytest.mark.parametrize(
    ("given", "built"),
    [
        ("50/s", ThrottledEndpoint(50)),
        ("30/min", ThrottledEndpoint(0.5)),
        ("{rate: 20/s, retry_after: 2m, status: 503}", ThrottledEndpoint(20, 120, 503)),
    ],
)
def test_a_throttle_is_read_and_built(tmp_path: Path, given: str, built: ThrottledEndpoint) -> None:
    """A throttle with a rate alone or with all fields is read, restored from JSON, and built."""
    text = f"name: f\nenvironment: test\nembedded: {{tiers: [web, sql], throttle: {{web: {given}}}}}\n"
    farm = load_farm(write(tmp_path, text)[0])
    assert spec(farm).throttle == {"web": built}
    assert spec(Farm.from_json(farm.to_json())).throttle == {"web": built}
