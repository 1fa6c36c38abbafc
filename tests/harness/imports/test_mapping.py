"""The mapping file that describes a CSV's columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from pinchpoint.base.errors import InputError
from pinchpoint.imports import read_mapping

GOOD = """
time: {column: "Zeit", format: "%d.%m.%Y %H:%M"}
host: san1
interval: 1m
delimiter: ";"
decimal: ","
columns:
  "Write (ms)": {metric: disk.write_latency_s, instance: vol1, scale: 0.001, weight: "Writes"}
  "Idle %": {metric: cpu.busy_ratio, scale: -0.01, offset: 1}
  "Batches": {metric: db.batches_per_s}
"""


def test_a_mapping_is_read(tmp_path: Path) -> None:
    """A mapping is read: durations have units, and a whole number is a factor, too."""
    path = tmp_path / "map.yaml"
    path.write_text(GOOD)
    mapping = read_mapping(path)
    assert (mapping.host, mapping.interval_s, mapping.delimiter, mapping.decimal) == ("san1", 60.0, ";", ",")
    assert mapping.columns["Idle %"].offset == 1.0
    assert mapping.columns["Write (ms)"].weight == "Writes"


def test_every_problem_has_its_line(tmp_path: Path) -> None:
    """Every problem has its line, and an unknown metric the nearest name."""
    path = tmp_path / "map.yaml"
    text = GOOD.replace("disk.write_latency_s", "disk.write_latency").replace("interval: 1m", "interval: 60")
    path.write_text(text.replace("host: san1", "host: san1\nhost_column: {column: x}"))
    with pytest.raises(InputError) as caught:
        read_mapping(path)
    lines = str(caught.value).splitlines()
    assert any("map.yaml:5" in each and "60s" in each for each in lines)
    assert any("map.yaml:9" in each and "nearest: disk.write_latency_s" in each for each in lines)


def test_a_mapping_that_is_not_there(tmp_path: Path) -> None:
    """A missing mapping gives no traceback."""
    with pytest.raises(InputError, match="no such file"):
        read_mapping(tmp_path / "none.yaml")
