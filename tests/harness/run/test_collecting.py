"""Collector facts in the manifest: readings, failures, costs and gaps; and the required collector."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from support import until

from pinchpoint.base.errors import InputError
from pinchpoint.farm.ready import standing_farm
from pinchpoint.plan import load_farm
from pinchpoint.run import collecting
from pinchpoint.run.collecting import Collectors, Watching
from pinchpoint.run.preflight import Connected
from pinchpoint.store.write import RunWriter
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Incident, Sample


class Scripted:
    """A collector that fails and reports as scripted."""

    def __init__(self, *incidents: Incident, during: Callable[[], object] = lambda: None) -> None:
        self.fails = False
        self._incidents = list(incidents)
        self._during = during

    def read(self) -> Sequence[Sample]:
        self._during()
        if self.fails:
            raise CollectorError("sql1: the link was cut")
        return [Sample(time.time_ns(), 1.0, "sql1", "mem.available_bytes", "", 5.0)]

    def incidents(self) -> Sequence[Incident]:
        told, self._incidents = self._incidents, []
        return told

    def inventory(self) -> dict[str, dict[str, Any]]:
        return {}

    def close(self) -> None:
        return


def sample(metric: str, value: float | None, instance: str = "ssh", host: str = "sql1") -> Sample:
    return Sample(1, 1.0, host, metric, instance, value)


def test_what_collectors_came_to() -> None:
    """Readings and failures are counted, local and remote costs added, with the largest clock error."""
    watching = Watching()
    for ok, offset_s, error_s in ((1.0, 0.5, 0.010), (0.0, None, None), (1.0, -0.1, 0.002)):
        watching.samples(
            [
                sample("collector.ok", ok),
                sample("collector.cpu_s", 0.001),
                sample("collector.cpu_s", 0.002, "ssh/client"),
                sample("collector.cpu_s", 0.004, "ssh/host"),
                sample("collector.received_bytes", 1000.0),
                sample("collector.clock_offset_s", offset_s),
                sample("collector.clock_error_s", error_s),
                sample("cpu.busy_ratio", 0.5, ""),
            ]
        )
    (row,) = watching.collectors([Connected("ssh", ("sql1",), Scripted())], 1.0)
    assert row == {
        "kind": "ssh",
        "hosts": ["sql1"],
        "interval_s": 1.0,
        "readings": 3,
        "failed": 1,
        "cpu_s": pytest.approx(0.009),
        "host_cpu_s": pytest.approx(0.012),
        "received_bytes": 3000.0,
    }
    told = watching.quality()["sql1"]["ssh"]
    assert (told["clock_offset_s"], told["clock_error_s"]) == (-0.1, 0.010)
    assert told["clock_offset_between_s"] == (-0.1, 0.5)


def test_a_collector_that_never_read_has_no_figures() -> None:
    """A collector without a reading has no figures, not 0."""
    (row,) = Watching().collectors([Connected("ssh", ("sql1",), Scripted())], 1.0)
    assert row == {"kind": "ssh", "hosts": ["sql1"], "interval_s": 1.0}


def test_gaps_are_kept_by_host_and_kind() -> None:
    """Gaps are recorded by host and kind; a slow reading without loss is not a gap."""
    watching = Watching()
    common = {"kind": "ssh", "hosts": ["sql1", "web1"]}
    gap = {"from": "2026-01-01T00:00:05.000Z", "to": "2026-01-01T00:00:25.000Z", "missed": 19, "why": "cut"}
    watching.event("gap", {**common, **gap})
    watching.event("gap", {**common, "missed": 1, "why": "slow"})
    for host in ("sql1", "web1"):
        (found,) = watching.quality()[host]["ssh"]["gaps"]
        assert found["missed"] == 19


def test_gaps_without_end_are_counted() -> None:
    """The number of recorded gaps is limited, and further ones are counted."""
    watching = Watching()
    for number in range(1100):
        gap = {"from": str(number), "to": str(number + 1), "missed": 1}
        watching.event("gap", {"kind": "ssh", "hosts": ["sql1"], **gap})
    told = watching.quality()["sql1"]["ssh"]
    assert (len(told["gaps"]), told["more_gaps"]) == (1000, 100)


def test_a_collector_that_is_silent_when_the_load_ends_is_in_the_warnings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A collector that fails or hangs at the load's end is in the warnings; a recovered one is not."""
    monkeypatch.setattr(collecting, "_BLIND_S", 2.5)
    monkeypatch.setattr(collecting, "STOP_S", 0.5)
    ends = threading.Event()
    ends.set()
    fails, hangs, back = Scripted(), Scripted(during=lambda: ends.wait(60)), Scripted()
    store = RunWriter(tmp_path / "run", {"warnings": []})
    found = Collectors(store, ())
    named = {"fails1": fails, "hangs1": hangs, "back1": back, "fine1": Scripted()}
    found.start([Connected("ssh", (host,), collector) for host, collector in named.items()])
    try:
        back.fails = True
        until(lambda: "collector_failed" in (tmp_path / "run" / "events.jsonl").read_text())
        back.fails, fails.fails = False, True
        ends.clear()
        silent = ("fails1", "hangs1")

        def as_meant() -> bool:
            blind = {one.hosts[0] for one in found.silences() if one.for_s > 2.5}
            return blind == set(silent)

        until(as_meant)
    finally:
        found.stop()
        ends.set()
    store.close()
    warned = [one for one in store.manifest["warnings"] if "gave no reading" in one]
    assert [one.partition(":")[0] for one in warned] == list(silent)
    assert warned[0].endswith(" s of the load: sql1: the link was cut")
    assert warned[1].endswith(" s of the load: its last reading did not end")


def test_a_run_goes_on_without_a_host_but_not_without_a_required_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the loss of a required host ends the run, with the reason."""
    monkeypatch.setattr(collecting, "REQUIRED_S", 0.5)
    easy, needed = Scripted(), Scripted()
    with_store = RunWriter(tmp_path / "run", {"warnings": []})
    found = Collectors(with_store, ())
    found.start([Connected("ssh", ("web1",), easy), Connected("ssh", ("sql1",), needed, required=True)])
    try:
        easy.fails = True
        time.sleep(2.0)
        assert found.lost() is None
        needed.fails = True
        until(found.lost)
        assert found.errors == []
    finally:
        found.stop()
    said = found.lost()
    assert said == "sql1: not seen for 0 s, and the collector ssh is required: sql1: the link was cut"
    with_store.close()
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert [row["kind"] for row in manifest["collectors"]] == ["ssh", "ssh"]
    (gap,) = manifest["data_quality"]["sql1"]["ssh"]["gaps"]
    assert gap["why"] == "sql1: the link was cut"


def test_a_clock_that_is_off_is_a_warning_of_the_run(tmp_path: Path) -> None:
    """A clock error above one second is a warning with host, offset, correction and remedy."""
    store = RunWriter(tmp_path / "run", {"warnings": []})
    far = Scripted(Incident("clock_offset", {"offset_s": 61.5, "error_s": 0.004}))
    found = Collectors(store, ())
    found.start([Connected("ssh", ("sql1",), far)])
    until(lambda: store.manifest["warnings"])
    found.stop()
    store.close()
    (warning,) = store.manifest["warnings"]
    assert warning.startswith("the clock of sql1 is +61.50 s off ours")
    assert "NTP" in warning


def test_many_hosts_that_do_not_answer_are_left_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten slow collectors are stopped concurrently, and two that hang cost the timeout once."""
    monkeypatch.setattr(collecting, "STOP_S", 2.0)
    release = threading.Event()
    slow = [Scripted(during=lambda: time.sleep(1.0)) for _ in range(10)]
    stuck = [Scripted(during=lambda: release.wait(30)) for _ in range(2)]
    store = RunWriter(tmp_path / "run", {"warnings": []})
    found = Collectors(store, ())
    found.start([Connected("ssh", (f"h{at}",), each) for at, each in enumerate([*slow, *stuck])])
    try:
        time.sleep(0.3)
        begun_s = time.monotonic()
        found.stop()
        assert time.monotonic() - begun_s < 5.0
    finally:
        release.set()
    store.close()
    said = [each for each in store.manifest["warnings"] if "did not end within" in each]
    assert [each.split("'")[2].split(":")[0].strip() for each in said] == ["of h10", "of h11"]


class Later(Scripted):
    """A collector whose last value arrives some readings after the end."""

    late_s = 30.0

    def __init__(self, readings: int) -> None:
        super().__init__()
        self._left = readings
        self.asked_until_ns = 0

    def read(self) -> Sequence[Sample]:
        if self.asked_until_ns and self._left:
            self._left -= 1
            if not self._left:
                return [Sample(self.asked_until_ns, 60.0, "sql1", "cloud.disk_iops_ratio", "log", 1.0)]
        return []

    def complete(self, until_ns: int) -> bool:
        self.asked_until_ns = self.asked_until_ns or until_ns
        return not self._left


@pytest.mark.parametrize("interrupted", [False, True])
def test_values_that_come_late_are_waited_for_unless_the_user_ends_it(
    tmp_path: Path, interrupted: bool
) -> None:
    """Late values are waited for; after Ctrl-C a warning says which were not."""
    store = RunWriter(tmp_path / "run", {"warnings": []})
    late = Later(3)
    got: list[Sample] = []
    watched = Collectors(store, (got.extend,))
    watched.start([Connected("azure", ("sql1",), late), Connected("ssh", ("sql1",), Scripted())])
    until(lambda: any(one.instance == "ssh" for one in got))
    said: list[str] = []
    watched.stop(collecting.LateValues(said.append, lambda: interrupted))
    store.close()
    assert said == ["azure: the values of the last minutes come later; waiting up to 30 s"]
    came = [one for one in got if one.metric == "cloud.disk_iops_ratio"]
    assert len(came) == (0 if interrupted else 1)
    warned = [one for one in store.manifest["warnings"] if "interrupted: not measured" in one]
    assert len(warned) == (1 if interrupted else 0)


def farm_file(folder: Path, required: object) -> Path:
    path = folder / "farm.yaml"
    collect = [{"kind": "local", "required": required}, {"kind": "ssh", "address": "kv1.example"}]
    content = {
        "name": "mine",
        "environment": "test",
        "endpoints": {"nosql": {"url": "valkey://127.0.0.1:1/0"}},
        "tiers": {"nosql": {"hosts": {"kv1": {"collect": collect}}}},
    }
    path.write_text(json.dumps(content))
    return path


def test_farm_yaml_says_which_collector_is_required(tmp_path: Path) -> None:
    """``required`` in farm.yaml applies to any collector and is false by default."""
    live = standing_farm(load_farm(farm_file(tmp_path, True)))
    assert live is not None
    found = dict(live.watches)
    assert (found["local"].required, found["ssh"].required) == (True, False)
    assert dict(found["ssh"].options) == {"address": "kv1.example"}
    assert "required" not in found["local"].options


def test_anything_else_than_yes_or_no_is_refused(tmp_path: Path) -> None:
    """A value of ``required`` other than yes or no is refused with the field."""
    with pytest.raises(InputError, match="required"):
        load_farm(farm_file(tmp_path, "maybe"))
