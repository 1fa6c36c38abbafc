"""Tests of the choice of the method that builds a disk, for machines with different features."""

from __future__ import annotations

from pathlib import Path

import pytest

from pinchpoint_infra.catalogue import BurstAllowance
from pinchpoint_infra.disks import DiskSpec, DiskSupport
from pinchpoint_infra.disks.way import DiskStack, choose, limits

V1 = DiskSupport(Path("/v1"), None, True, {})
V2 = DiskSupport(None, Path("/v2"), True, {})
NO_FUSE = DiskSupport(Path("/v1"), None, False, {"model": "no libfuse3: install the package fuse3"})
NO_THROTTLE = DiskSupport(None, None, True, {"throttle": "no block I/O controller"})
NEITHER = DiskSupport(None, None, False, {"model": "no libfuse3", "throttle": "no block I/O controller"})
NO_ROOT = DiskSupport(None, None, False, {"loop": "no root rights", "model": "x", "throttle": "y"})


@pytest.mark.parametrize(
    ("spec", "support", "model", "throttle"),
    [
        (DiskSpec(), V1, False, None),
        (DiskSpec(iops=500), V1, True, None),
        (DiskSpec(iops=9000), V1, False, "v1"),
        (DiskSpec(iops=9000), V2, False, "v2"),
        (DiskSpec(iops=9000, latency_s=0.001), V1, True, "v1"),
        (DiskSpec(read_iops=100, write_iops=300), V1, False, "v1"),
        (DiskSpec(bytes_per_s=10e6), V1, True, None),
        (DiskSpec(bytes_per_s=100e6), V1, False, "v1"),
        (DiskSpec(iops=500, stripes=4), V2, True, None),
        (DiskSpec(iops=9000, stripes=4), V2, True, None),
        (DiskSpec(iops=500, burst=BurstAllowance(3500, 170e6, 1800)), V1, True, None),
        (DiskSpec(iops=500), NO_FUSE, False, "v1"),
        (DiskSpec(iops=9000), NO_THROTTLE, True, None),
    ],
)
def test_the_means_fit_the_disk_and_the_machine(
    spec: DiskSpec, support: DiskSupport, model: bool, throttle: str | None
) -> None:
    way = choose(spec, support)
    assert isinstance(way, DiskStack)
    assert (way.model is not None, way.throttle) == (model, throttle)
    if throttle and way.model:
        assert limits(way.model) == {}, "a cap must not be kept twice"


@pytest.mark.parametrize(
    ("spec", "support", "why"),
    [
        (DiskSpec(), NO_ROOT, "root rights"),
        (DiskSpec(latency_s=0.01), NO_FUSE, "libfuse3"),
        (DiskSpec(iops=500, io_unit_bytes=8192), NO_FUSE, "libfuse3"),
        (DiskSpec(iops=500), NEITHER, "block I/O controller"),
        (DiskSpec(write_iops=500), NEITHER, "block I/O controller"),
    ],
)
def test_what_is_lacking_is_named(spec: DiskSpec, support: DiskSupport, why: str) -> None:
    found = choose(spec, support)
    assert isinstance(found, str)
    assert why in found


def test_a_common_cap_the_throttle_cannot_keep_is_said() -> None:
    way = choose(DiskSpec(iops=9000), V1)
    assert isinstance(way, DiskStack)
    assert "apart" in way.notes[0]
    fast = choose(DiskSpec(iops=9000), NO_THROTTLE)
    assert isinstance(fast, DiskStack)
    assert "reach" in fast.notes[0]
