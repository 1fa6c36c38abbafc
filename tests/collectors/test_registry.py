"""Kinds of collector by name."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Self

import pytest

from pinchpoint_collectors import registry
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.local import LocalKind
from pinchpoint_collectors.record import Sample, Watch
from pinchpoint_collectors.sampler import Sampler


def test_the_local_kind_is_there_with_its_options() -> None:
    """What farm.yaml may say: `verify` writes to disks and is nothing a farm.yaml may ask for."""
    kind = registry.kind("local")
    assert kind.name == "local"
    assert kind.options == {"process", "command_line", "port"}
    assert all(registry.kind(name).name == name for name in registry.names())


def test_a_name_taken_twice_is_an_error() -> None:
    """Nothing is replaced silently."""
    with pytest.raises(ValueError, match="'local' is registered already"):
        registry.register(LocalKind())


def test_an_unknown_kind_lists_all_and_the_nearest() -> None:
    """The message is what a person needs to correct the file."""
    with pytest.raises(CollectorError, match=r"'locale'; allowed: .*local.*; nearest: local"):
        registry.kind("locale")
    with pytest.raises(CollectorError) as caught:
        registry.kind("zzz")
    assert "nearest" not in str(caught.value)


class TwoNumbers:
    """A collector as README's "How to add a collector" says: one file's worth."""

    name = "two-numbers"
    options = frozenset({"address"})
    public = options

    def __init__(self) -> None:
        self._hosts: list[str] = []

    def machine(self, watch: Watch) -> str:
        return str(watch.options["address"])

    def connect(self, watches: Sequence[Watch]) -> Self:
        self._hosts = [watch.host for watch in watches]
        return self

    def read(self) -> Sequence[Sample]:
        return [Sample(time.time_ns(), 1.0, host, "db.connections", "", 2.0) for host in self._hosts]

    def inventory(self) -> Mapping[str, Mapping[str, Any]]:
        return {host: {} for host in self._hosts}

    def close(self) -> None:
        self._hosts = []


def test_a_new_kind_needs_one_line_in_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """From its name to samples in a sink, with nothing else told about it."""
    monkeypatch.setattr(registry, "_KINDS", dict(registry._KINDS))
    registry.register(TwoNumbers())
    kind = registry.kind("two-numbers")
    assert "two-numbers" in registry.names()
    collector = kind.connect([Watch("sql1", "sql", options={"address": "a"})])
    got: list[Sample] = []
    sampler = Sampler(collector, kind.name, ["sql1"], got.extend, on_event=lambda *_, **__: None)
    sampler.tick()
    assert {(each.metric, each.instance) for each in got} == {
        ("db.connections", ""),
        ("collector.cpu_s", "two-numbers"),
        ("collector.duration_s", "two-numbers"),
        ("collector.ok", "two-numbers"),
    }
