"""The CPU of a tier on a host that runs more, from the processes that a reading holds."""

from __future__ import annotations

from pinchpoint_collectors.linux_over_ssh.tier import NamedTier, parse_all
from pinchpoint_collectors.proc.value import Value


def stat(pid: int, parent: int, name: str, own: int, reaped: int = 0) -> str:
    """As /proc/PID/stat has it, 52 fields."""
    head = f"{pid} ({name}) S {parent} 1 1 0 -1 4194560 5 0 0 0 {own} 0 {reaped} 0 20 0 1 0 {900 + pid}"
    return head + " 0" * 30


def text(*processes: str) -> str:
    return "\n".join(processes)


def test_a_tier_is_its_processes_and_all_that_descend_from_them() -> None:
    """Of 4 cores in 2 s, 800 ticks: the server 100, its child 50, a new child 30; others do not count."""
    before = parse_all(
        text(stat(1, 0, "systemd", 9), stat(10, 1, "postgres", 500), stat(11, 10, "worker", 7))
    )
    after = parse_all(
        text(
            stat(1, 0, "systemd", 99),
            stat(10, 1, "postgres", 600),
            stat(11, 10, "worker", 57),
            stat(12, 10, "backend", 30),
            stat(13, 1, "other", 1000),
        )
    )
    tier = NamedTier("sql", ("postgres",), 4, 100)
    assert list(tier.values(None, before, 0.0)) == [Value("cpu.cores", "tier:sql", 4.0)]
    assert list(tier.values(before, after, 2.0)) == [
        Value("cpu.cores", "tier:sql", 4.0),
        Value("cpu.busy_ratio", "tier:sql", 180 / 800),
    ]


def test_a_tier_that_is_gone_is_not_measured() -> None:
    """Null, not idle."""
    before, after = parse_all(stat(10, 1, "postgres", 500)), parse_all(stat(1, 0, "systemd", 9))
    tier = NamedTier("sql", ("postgres",), 4, 100)
    list(tier.values(None, before, 0.0))
    assert {each.value for each in tier.values(before, after, 1.0)} == {None}


def test_names_are_cut_as_the_kernel_cuts_them() -> None:
    """15 letters."""
    table = parse_all(stat(10, 1, "prometheus-node", 5))
    tier = NamedTier("web", ("prometheus-node-exporter",), 1, 100)
    assert [each.value for each in tier.values(None, table, 0.0)] == [1.0]


def test_a_process_with_a_strange_name_spoils_no_other() -> None:
    """Spaces and parentheses are read; one with a line break is left out."""
    found = parse_all(text(stat(10, 1, "a) b (c", 5), stat(11, 1, "two\nlines", 5), stat(12, 1, "ok", 7)))
    assert {pid: one.name for pid, one in found.items()} == {10: "a) b (c", 12: "ok"}
