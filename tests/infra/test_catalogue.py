"""The catalogue agrees with its sources and has only possible values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from datetime import date
from importlib.resources import files
from itertools import pairwise
from typing import Any

import pytest
from ruamel.yaml import YAML

from pinchpoint_infra.catalogue import BurstAllowance, Profile, UnknownProfile, catalogue, profile, series

MB, MIB = 1e6, 2**20
EBS_UNIT = AZURE_UNIT = 256 * 1024
"""Unit in bytes by which I/O of Premium SSD, Standard SSD and EBS SSD is counted (documented)."""

TABLES = {
    # family and sizes, then rows as in the sources: IOPS, MB/s, burst IOPS, burst MB/s
    "azure/s": (
        "4 6 10 15 20 30 40 50 60 70 80",
        "500 500 500 500 500 500 500 500 1300 2000 2000",
        "60 60 60 60 60 60 60 60 300 500 500",
        "- - - - - - - - - - -",
        "- - - - - - - - - - -",
    ),
    "azure/e": (
        "1 2 3 4 6 10 15 20 30 40 50 60 70 80",
        "500 500 500 500 500 500 500 500 500 500 500 2000 4000 6000",
        "60 60 60 60 60 60 60 60 60 60 60 400 600 750",
        "600 600 600 600 600 600 600 600 1000 - - - - -",
        "150 150 150 150 150 150 150 150 250 - - - - -",
    ),
    "azure/p": (
        "1 2 3 4 6 10 15 20 30 40 50 60 70 80",
        "120 120 120 120 240 500 1100 2300 5000 7500 7500 16000 18000 20000",
        "25 25 25 25 50 100 125 150 200 250 250 500 750 900",
        "3500 3500 3500 3500 3500 3500 3500 3500 30000 30000 30000 30000 30000 30000",
        "170 170 170 170 170 170 170 170 1000 1000 1000 1000 1000 1000",
    ),
    "azure/ultra-": (
        "4 8 16 32 64 128 256 512",
        "4000 8000 16000 32000 64000 128000 256000 400000",
        "1000 2000 4000 8000 10000 10000 10000 10000",
        "- - - - - - - -",
        "- - - - - - - -",
    ),
}
MACHINES = """
d2s_v3 3200 48 4000 200
d4s_v3 6400 96 8000 200
d8s_v3 12800 192 16000 400
d16s_v3 25600 384 32000 800
d32s_v3 51200 768 64000 1600
d2s_v5 3750 85 10000 1200
d4s_v5 6400 145 20000 1200
d8s_v5 12800 290 20000 1200
d16s_v5 25600 600 40000 1200
d32s_v5 51200 865 80000 2000
d2s_v6 3750 106 40000 1250
d4s_v6 6400 212 40000 1250
d8s_v6 12800 424 40000 1250
d16s_v6 25600 848 40000 1250
d32s_v6 51200 1696 80000 1696
l8s_v3 12800 290 20000 1200
l16s_v3 25600 600 40000 1600
l32s_v3 51200 865 80000 2000
"""
"""Size, uncached IOPS and MB/s, burst IOPS and MB/s; E and ds sizes have the figures of the D sizes."""
GP2 = "33 100 128 1862\n100 300 128 2000\n334 1002 250 2703\n500 1500 250 3600\n750 2250 250 7200"
"""GiB, baseline IOPS, MiB/s, seconds of burst at 3,000 IOPS."""
INSTANCES = """
m5.large 3600 81.25 18750 593.75
m5.xlarge 6000 143.75 18750 593.75
m5.2xlarge 12000 287.50 18750 593.75
m5.4xlarge 18750 593.75
m5.8xlarge 30000 850.0
m6i.large 3600 81.25 40000 1250
m6i.xlarge 6000 156.25 40000 1250
m6i.2xlarge 12000 312.50 40000 1250
m6i.4xlarge 20000 625.00 40000 1250
m6i.8xlarge 40000 1250
"""
"""EBS-optimized instances: baseline IOPS and MB/s, maximum IOPS and MB/s; r6i has the figures of m6i."""


def raw() -> Any:
    """Return the parsed data file."""
    text = files("pinchpoint_infra").joinpath("catalogue.yaml").read_text(encoding="utf-8")
    return YAML(typ="safe").load(text)


def families() -> dict[str, list[Profile]]:
    """Return entries by family, whose members differ only in size, in the file's order."""
    found: dict[str, list[Profile]] = {}
    for entry in catalogue().values():
        sized = re.fullmatch(r"(.*?)(?:\d+|baseline|max)(d?s_v\d)?", entry.name)
        key = f"{sized[1]}*{sized[2] or ''}" if sized else entry.name.rsplit(".", 1)[0]
        found.setdefault(key, []).append(entry)
    return found


def table_rows() -> Iterator[tuple[str, float, float, float | None, float | None]]:
    for family, rows in TABLES.items():
        for size, *figures in zip(*(row.split() for row in rows), strict=True):
            iops, rate, burst, burst_rate = (None if text == "-" else float(text) for text in figures)
            assert iops is not None
            assert rate is not None
            yield f"{family}{size}", iops, rate, burst, burst_rate


@pytest.mark.parametrize("entry", catalogue().values(), ids=lambda entry: entry.name)
def test_every_entry_is_whole_and_possible(entry: Profile) -> None:
    """Each entry has a source with a URL, a date, a limit, and a burst that raises at least one limit."""
    assert re.search(r", https://\S+$", entry.source)
    assert date(2026, 1, 1) <= date.fromisoformat(entry.date) <= date(2100, 1, 1)
    assert entry.kind in {"disk", "machine"}
    assert re.fullmatch(r"(azure|aws|hyperv)/[a-z0-9._-]+", entry.name)
    assert entry.iops or entry.bytes_per_s
    numbers = (
        entry.iops,
        entry.bytes_per_s,
        entry.io_unit_bytes,
        entry.cached_iops,
        entry.cached_bytes_per_s,
    )
    assert all(number is None or number > 0 for number in numbers)
    assert entry.kind == "machine" or (entry.cached_iops, entry.cached_bytes_per_s) == (None, None)
    if entry.burst:
        assert entry.iops is not None
        assert entry.bytes_per_s is not None
        lifts = (entry.burst.iops - entry.iops, entry.burst.bytes_per_s - entry.bytes_per_s)
        assert min(lifts) >= 0 < max(lifts)
        assert entry.burst.credit_s is None or entry.burst.credit_s > 0


def test_the_file_has_no_key_that_nobody_reads_and_no_source_that_nobody_cites() -> None:
    """The file has no unknown key, such as a misspelt limit, and no unused source."""
    content = raw()
    assert content.keys() == {"sources", "profiles"}
    known = {field.name for field in fields(Profile)} - {"name", "date"}
    for name, entry in content["profiles"].items():
        assert entry.keys() <= known, name
        assert entry.get("burst", {}).keys() <= {field.name for field in fields(BurstAllowance)}, name
    for name, source in content["sources"].items():
        assert {"title", "url", "taken"} <= source.keys() <= {"title", "url", "taken", "edition"}, name
        assert source.get("edition", source["taken"]) <= source["taken"], name
    assert {entry["source"] for entry in content["profiles"].values()} == set(content["sources"])


@pytest.mark.parametrize(("family", "entries"), families().items(), ids=lambda item: str(item)[:20])
def test_a_larger_size_can_never_do_less(family: str, entries: list[Profile]) -> None:
    """Within a family all limits rise with the size, and a larger size's burst is not lower."""
    assert len(entries) > 1, f"{family}: a family of one is a misspelt name"
    for smaller, larger in pairwise(entries):
        for cap in ("iops", "bytes_per_s", "cached_iops", "cached_bytes_per_s"):
            low, high = getattr(smaller, cap), getattr(larger, cap)
            assert (low is None) == (high is None), (larger.name, cap)
            assert low is None or low <= high, (larger.name, cap)
        if smaller.burst and larger.burst:
            assert smaller.burst.iops <= larger.burst.iops, larger.name
            assert smaller.burst.bytes_per_s <= larger.burst.bytes_per_s, larger.name


def test_sizes_stand_in_order() -> None:
    """Sizes of a family are in order, which the test of neighbours needs."""
    for family, entries in families().items():
        if "*" in family:
            sizes = [re.findall(r"\d+", e.name.removeprefix(family.split("*")[0])) for e in entries]
            numbers = [int(found[0]) for found in sizes if found]
            assert numbers == sorted(set(numbers)), family


def test_azure_disks_are_as_their_tables_say() -> None:
    """Every size of the four Azure families has the figures of the sources; no size is missing or extra."""
    rows = list(table_rows())
    for name, iops, rate, burst, burst_rate in rows:
        entry = profile(name)
        assert (entry.kind, entry.iops, entry.bytes_per_s) == ("disk", iops, rate * MB), name
        if burst is None or burst_rate is None:
            assert entry.burst is None, name
        else:
            credit_s = None if burst == 30000 else 1800  # on demand, burst is paid and has no time limit
            assert entry.burst == BurstAllowance(burst, burst_rate * MB, credit_s), name
    listed = {name for name, entry in catalogue().items() if re.match(r"azure/([sep]|ultra-)\d+$", name)}
    assert listed == {name for name, *_ in rows}


def test_machines_are_as_their_tables_say() -> None:
    """Azure's v3, v5 and v6 sizes and AWS's instances have the figures of the sources."""
    for row in MACHINES.split("\n")[1:-1]:
        size, *figures = row.split()
        iops, rate, burst, burst_rate = map(float, figures)
        also = [size] if size.startswith("l") else [size, size.replace("d", "e", 1)]
        also += [name.replace("s_v5", "ds_v5") for name in also if name.endswith("s_v5")]
        for name in also:
            entry = profile(f"azure/{name}")
            assert (entry.kind, entry.iops, entry.bytes_per_s) == ("machine", iops, rate * MB), name
            assert entry.burst == BurstAllowance(burst, burst_rate * MB, 1800), name
    for row in INSTANCES.split("\n")[1:-1]:
        size, *figures = row.split()
        iops, rate, *most = map(float, figures)
        for name in (size, size.replace("m6i", "r6i")):
            entry = profile(f"aws/{name}")
            assert (entry.kind, entry.iops, entry.bytes_per_s) == ("machine", iops, rate * MB), name
            assert entry.burst == (BurstAllowance(most[0], most[1] * MB, 1800) if most else None), name


def test_the_figures_the_verdict_rests_on() -> None:
    """The figures in METHOD are right: P10 with credits, P30, Standard HDD, D12, DS12, Hyper-V's unit."""
    p10 = profile("azure/p10")
    assert (p10.iops, p10.bytes_per_s, p10.burst) == (500, 100e6, BurstAllowance(3500, 170e6, 1800))
    p30 = profile("azure/p30")
    assert (p30.iops, p30.bytes_per_s, p30.burst) == (5000, 200e6, BurstAllowance(30000, 1000e6))
    assert {profile(f"azure/s{size}").iops for size in (4, 30, 50)} == {500}
    assert profile("azure/d12").iops == 16 * 500
    assert profile("azure/d12").bytes_per_s is None
    ds12 = profile("azure/ds12")
    assert (ds12.iops, ds12.bytes_per_s) == (12800, 128e6)
    assert (ds12.cached_iops, ds12.cached_bytes_per_s) == (16000, 128e6)
    assert ds12.bytes_per_s is not None
    assert p30.bytes_per_s is not None
    assert ds12.bytes_per_s < p30.bytes_per_s, "the machine's cap is the next hidden limit"
    qos = profile("hyperv/qos-500")
    assert (qos.iops, qos.io_unit_bytes) == (500, 8192)
    d14, ds14, d4s = profile("azure/d14"), profile("azure/ds14"), profile("azure/d4s_v3")
    assert d14.iops == 64 * 500
    assert (ds14.iops, ds14.bytes_per_s, ds14.cached_iops) == (51200, 512e6, 64000)
    assert (d4s.cached_iops, d4s.cached_bytes_per_s) == (8000, 64e6)


def test_credits_are_those_the_sources_count() -> None:
    """A P10 and every bursting gp2 volume accumulate credits for 5.4 million I/Os."""
    saving = {
        n: e for n, e in catalogue().items() if n == "azure/p10" or (n.startswith("aws/gp2-") and e.burst)
    }
    assert len(saving) == 6
    for name, entry in saving.items():
        assert entry.burst is not None
        assert entry.burst.credit_s is not None
        assert entry.iops is not None
        saved = (entry.burst.iops - entry.iops) * entry.burst.credit_s
        assert saved == pytest.approx(5.4e6, rel=1e-3), name  # the source rounds the seconds


def test_amazons_volumes() -> None:
    """gp2 by size, and the baselines and maxima of gp3 and io2, are right; MiB are binary."""
    for row in GP2.split("\n"):
        size, iops, rate, credit_s = map(int, row.split())
        entry = profile(f"aws/gp2-{size}")
        assert (entry.iops, entry.bytes_per_s) == (iops, rate * MIB), size
        assert entry.burst == BurstAllowance(3000, rate * MIB, credit_s), size
    most = {"gp2-1000": (3000, 250), "gp2-5334": (16000, 250), "gp3-baseline": (3000, 125)}
    most |= {"gp3-max": (80000, 2000), "io2-16000": (16000, 4000), "io2-64000": (64000, 4000)}
    most |= {"io2-256000": (256000, 4000)}
    for name, (iops, rate) in most.items():
        entry = profile(f"aws/{name}")
        assert (entry.iops, entry.bytes_per_s, entry.burst) == (iops, rate * MIB, None), name


def test_a_unit_stands_only_where_it_can_be_felt() -> None:
    """Where the source's I/O unit is left out, the byte limit is reached before the unit counts."""
    counted = re.compile(r"azure/[ep]\d+$|aws/(gp2|gp3|io2)-")
    for name, entry in catalogue().items():
        if entry.iops is None or entry.bytes_per_s is None or entry.kind == "machine":
            continue
        if entry.io_unit_bytes:
            assert entry.iops * entry.io_unit_bytes < entry.bytes_per_s, name
        elif counted.match(name):
            assert entry.iops * AZURE_UNIT >= entry.bytes_per_s, name
            assert not entry.burst or entry.burst.iops * EBS_UNIT >= entry.burst.bytes_per_s, name


def test_an_unknown_name_is_told_the_nearest() -> None:
    """An unknown name's error lists all names and suggests the nearest."""
    with pytest.raises(UnknownProfile) as raised:
        profile("azure/p33")
    said = str(raised.value)
    assert said.startswith("'azure/p33' is not in the catalogue; allowed: azure/s4, ")
    assert re.search(r"; nearest: azure/p\d+$", said)
    assert all(name in said for name in catalogue())


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("azure/ds12", ["azure/ds11", "azure/ds12", "azure/ds13", "azure/ds14"]),
        ("azure/d12", ["azure/d11", "azure/d12", "azure/d13", "azure/d14"]),
        ("aws/gp3-max", ["aws/gp3-baseline", "aws/gp3-max"]),
    ],
)
def test_a_series_is_what_differs_in_size_alone(name: str, same: list[str]) -> None:
    """A series has profiles that differ only in size, not in generation or kind of storage."""
    assert [one.name for one in series(profile(name))] == same


def test_every_entry_is_in_its_own_series() -> None:
    """Every entry is in its own series, and a series has only disks or only machines."""
    for entry in catalogue().values():
        assert entry in series(entry)
        assert {one.kind for one in series(entry)} == {entry.kind}
