"""Names for ``device:`` as hosts use them, and refusal of those that a shell or path would misread."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from pinchpoint.plan.farm import FarmDisk
from pinchpoint.plan.problems import BadValue


@pytest.mark.parametrize(
    "name",
    [
        *("sda", "sda1", "nvme1n1", "dm-0", "md0", "md_d0", "cciss!c0d0", "/dev/sda2", "/dev/mapper/vg-pg"),
        *("/dev/disk/by-id/wwn-0x5000c500a1b2c3d4-part1", "/dev/disk/by-path/pci-0000:00:1f.2-ata-1"),
        *("L:", "0 C: D:", "C:\\mnt\\tempdb", "HarddiskVolume5", "nas:/export", "mapper/vg-log"),
    ],
)
def test_names_that_hosts_give(name: str) -> None:
    """Names of Linux, LVM, multipath, Windows and network shares are accepted."""
    assert FarmDisk(device=name).device == name


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            "-oProxyCommand=x",
            "sda;id",
            "sda$(id)",
            "sda`id`",
            "sda|id",
            "sda&",
            "sda\nid",
            "sda'",
            'sda"',
        ),
        *(
            "../etc",
            "/dev/../etc/shadow",
            "sda/..",
            "sd*",
            "sd?",
            "sd[a]",
            "sda>x",
            "sda<x",
            "%s",
            "{a}",
            "\0",
        ),
    ],
)
def test_what_is_no_name(name: str) -> None:
    """Other names are refused when the farm is read, with what is allowed."""
    with pytest.raises((ValidationError, BadValue)) as caught:
        FarmDisk(device=name)
    if name:
        assert "allowed: the name a host gives a device" in str(caught.value)
