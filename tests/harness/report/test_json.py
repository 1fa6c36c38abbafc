"""report.json has the page's content as values: complete, with null for unmeasured values."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from harness.report.example import saved_run, verdict

from pinchpoint.report import jsonfile, registry
from pinchpoint.report.report import gather


def test_json_reads_back_as_it_was_gathered() -> None:
    """The written JSON equals the gathered content."""
    content = jsonfile.content(gather(saved_run(), verdict()))
    assert json.loads(registry.FORMATS["json"](gather(saved_run(), verdict()))) == content


def test_the_verdict_is_in_it_unchanged() -> None:
    """report.json contains the verdict unchanged."""
    found = json.loads(registry.FORMATS["json"](gather(saved_run(), verdict())))
    assert found["schema"] == "pinchpoint.report/1"
    assert found["verdict"] == verdict()
    assert found["tables"]["crawl"] == verdict()["crawl"]


def test_unmeasured_stays_null() -> None:
    """An unmeasured latency is null in the table and is worded in the picture."""
    row = {**verdict()["disks"][0], "write_latency_mean_s": None, "iops_mean": None}
    found = json.loads(registry.FORMATS["json"](gather(saved_run(), verdict(disks=[row]))))
    assert found["tables"]["disks"][0]["write_latency_mean_s"] is None
    boxes = [box for machine in found["farm"] for box in machine["boxes"] if box["tier"] == "sql"]
    states = {each["name"]: each["state"] for each in boxes[0]["resources"]}
    assert states["log + data disk"] == "not measured"


def test_a_number_that_is_none_is_refused() -> None:
    """NaN is refused in JSON."""
    with pytest.raises(ValueError, match="Out of range float"):
        registry.FORMATS["json"](gather(saved_run(), verdict(headroom_ratio=math.nan)))


def test_the_timeline_has_the_measured_values() -> None:
    """Timeline points have mean, low and high in base units, at the middle of their second."""
    found = json.loads(registry.FORMATS["json"](gather(saved_run(), verdict())))["timeline"]
    panels: dict[str, Any] = {panel["name"]: panel for panel in found["panels"]}
    cpu = {line["name"]: line["points"] for line in panels["cpu"]["series"]}
    assert cpu["machine box"][0]["t_s"] == 0.5
    assert all(0.9 < point["mean"] <= 1.0 for point in cpu["core 0 of box"])
    assert {point["t_s"] for point in cpu["search"]} == {second + 0.5 for second in range(70)}
