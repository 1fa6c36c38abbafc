"""Imports into a run that has load."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from harness.analysis.build import START_S, Build
from harness.comparison.example import saved

from pinchpoint.analysis.saved import verdict_of
from pinchpoint.imports import import_into_run, open_source, read_places
from pinchpoint.imports.places import address_names
from pinchpoint_collectors.imports.record import CsvMapping, MappedColumn, Settings

MAPPING = CsvMapping(
    time="time",
    columns={"cpu": MappedColumn("cpu.busy_ratio", scale=0.01)},
    host="IIS-7",  # as its address begins, in capitals: the Windows name of the host
    interval_s=1.0,
)


def test_a_host_is_known_by_its_address_and_by_how_that_begins() -> None:
    """A host is matched by its address or first name part, not by an IP digit or a shared name."""
    found = address_names(
        [
            ("a", "me@Sql1.one.example"),
            ("b", "sql2.example:9042"),
            ("c", "10.0.0.7"),
            ("d", "fe80::1"),
            ("e", "x.one.example"),
            ("f", "x.two.example"),
        ]
    )
    short = {"sql1": "a", "sql2": "b"}
    whole = {"sql1.one.example": "a", "sql2.example": "b", "10.0.0.7": "c", "fe80::1": "d"}
    assert found == short | whole | {"x.one.example": "e", "x.two.example": "f"}


def test_a_host_nobody_watched_is_seen_by_an_import(tmp_path: Path) -> None:
    """A host without samples is named once another tool's CPU recording of it is imported."""
    build = Build(measure_s=120).host("sql1", "sql", machine="a", disks={"log": "sda"})
    build.cpu("sql1", 0.3).disk("sql1", "sda", 200, 0.001).generator(cpu=0.2)
    collect = [{"kind": "ssh", "address": "w@iis-7.intern.example:22"}]
    build.manifest["farm"]["tiers"]["web"] = {"hosts": {"web1": {"collect": collect}}}
    build.closed("orders", "sql-mix", 8).operations("orders", "log_append", 200, 0.04)
    run = saved(build.run(), tmp_path / "run")
    before = verdict_of(run)[1]
    assert before.outcome == "inconclusive"
    assert any("web1 was not measured" in warning for warning in before.warnings)
    rows = [f"{datetime.fromtimestamp(START_S + at, UTC).isoformat()},98.5\n" for at in range(-300, 900)]
    (tmp_path / "web.csv").write_text("time,cpu\n" + "".join(rows))
    source = open_source(tmp_path / "web.csv", "csv")
    added = import_into_run(run, [source], Settings(mapping=MAPPING), read_places(None, [], [], [], None))
    assert added == 130  # of twenty minutes, those of the run
    stored, after = verdict_of(run)
    assert stored.manifest["hosts"]["web1"]["tier"] == "web"
    assert after.bottleneck is not None
    assert (after.bottleneck.kind, after.bottleneck.host) == ("cpu", "web1")
    assert not any("was not measured" in warning for warning in after.warnings)
    assert after.scenarios["orders"]["count"] == before.scenarios["orders"]["count"]
