"""Tests of the settings of a farm's servers and of the cores of its tiers."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path

import psycopg
import pytest
import valkey

from pinchpoint_infra.codec import record
from pinchpoint_infra.embedded import FarmError, FarmSpec, down, up
from pinchpoint_infra.embedded.supervisor import shared_out

pytestmark = pytest.mark.farm


def test_servers_have_the_settings_asked_for_and_tiers_the_cores(tmp_path: Path) -> None:
    """User settings override the farm's own, and with shared cores a tier may use all cores."""
    made = FarmSpec(
        tmp_path / "farm.yaml",
        "tests",
        ("sql", "nosql"),
        settings={"sql": {"max_connections": "15", "wal_buffers": "64kB"}, "nosql": {"maxclients": "77"}},
        share_cores=True,
    )
    assert record(FarmSpec, asdict(made)) == made
    try:
        found = up(made, lifeline=False, progress=lambda _: None)
        with psycopg.connect(found.endpoints["sql"]["url"]) as connection:
            assert connection.execute("SHOW max_connections").fetchone() == ("15",)
            assert connection.execute("SHOW wal_buffers").fetchone() == ("64kB",)
        with valkey.Valkey.from_url(found.endpoints["nosql"]["url"]) as client:
            assert client.config_get("maxclients") == {"maxclients": "77"}
        everything = os.sched_getaffinity(0)
        for tier in found.tiers:
            assert tier.pid is not None
            assert os.sched_getaffinity(tier.pid) == everything
    finally:
        down(made.identity)


def test_a_setting_the_server_refuses_is_said_with_its_own_words(tmp_path: Path) -> None:
    """A setting that the server refuses stops the start, and the error quotes the server."""
    made = FarmSpec(tmp_path / "farm.yaml", "tests", ("sql",), settings={"sql": {"max_conections": "15"}})
    with pytest.raises(FarmError, match="max_conections"):
        up(made, lifeline=False, progress=lambda _: None)
    down(made.identity)


@pytest.mark.parametrize(
    ("usable", "share", "farm", "generators"),
    [
        ({0, 1}, False, (0,), (1,)),
        ({0, 1}, True, (0, 1), (1,)),
        (set(range(8)), True, tuple(range(8)), (6, 7)),
        ({3}, True, (3,), (3,)),
    ],
)
def test_generators_keep_their_cores_where_a_farm_may_use_all(
    usable: set[int], share: bool, farm: tuple[int, ...], generators: tuple[int, ...]
) -> None:
    """With shared cores the farm may use the generators' cores, but not the other way round."""
    assert shared_out(usable, share=share) == (farm, generators)
