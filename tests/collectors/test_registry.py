"""Kinds of collector by name."""

from __future__ import annotations

import pytest

from pinchpoint_collectors import registry
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.local import LocalKind


def test_the_local_kind_is_there_with_its_options() -> None:
    """What farm.yaml may say: `verify` writes to disks and is nothing a farm.yaml may ask for."""
    kind = registry.kind("local")
    assert kind.name == "local"
    assert kind.options == {"process", "port"}
    assert "local" in registry.names()


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
