"""Before a run: is everything reachable, permitted and large enough? Starts and changes nothing."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pinchpoint.base.interrupts import within
from pinchpoint_collectors import registry as collector_kinds
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Collector, Sample, Watch
from pinchpoint_scenarios.contract import Scenario
from pinchpoint_scenarios.errors import ScenarioError

_SPACE_BYTES = 200_000_000  # a run of an hour on one machine needs about a tenth of it
CHECK_S = 60.0
"""How long an endpoint or a host may take to answer a check."""
CLOSE_S = 10.0
AT_ONCE = 32
"""Collectors that are connected, read or closed at a time: nearly all of it is waiting for other machines."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    Attributes:
        what: its name for people: ``scenario orders``, ``collector local (sql1, nosql1)``.
        ok: whether a run can rely on it.
        found: what was found, with the remedy where it is not ok.
        about: the collector kind and host of each host it concerns, where it is about a collector.
    """

    what: str
    ok: bool
    found: str
    about: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Connected:
    """One collector, connected.

    Attributes:
        kind: its kind.
        hosts: the hosts it reads.
        collector: itself.
        required: whether the run is to end when it can no longer read one of them.
        inventory: what it told of each host when it was connected.
    """

    kind: str
    hosts: tuple[str, ...]
    collector: Collector
    required: bool = False
    inventory: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def check_scenarios(made: Mapping[str, Scenario]) -> tuple[list[Check], dict[str, Any]]:
    """Reach every endpoint; (checks, what the servers said of themselves by scenario)."""
    checks, facts = [], {}
    for name, scenario in made.items():
        try:
            facts[name] = dict(within(CHECK_S, scenario.check))
            checks.append(Check(f"scenario {name}", ok=True, found=_said(facts[name])))
        except (ScenarioError, TimeoutError) as error:
            checks.append(Check(f"scenario {name}", ok=False, found=str(error)))
    return checks, facts


def _said(facts: Mapping[str, Any]) -> str:
    """What the servers said of themselves, short: ``sql: postgresql 18.6; search: reachable``."""
    found = []
    for endpoint, said in facts.items():
        words = [str(said[key]) for key in ("server", "version") if said.get(key)] if said else []
        words += [f"by {said['driver']}"] if said and said.get("driver") else []
        found.append(f"{endpoint}: {' '.join(words) or 'reachable'}")
        found += said.get("rights", []) if said else []
        found += said.get("warnings", []) if said else []
    return "; ".join(found)


def connect(
    watches: Sequence[tuple[str, Watch]], stack: ExitStack
) -> Iterator[tuple[Check, Connected | None]]:
    """Connect one collector per machine and kind, and read each twice; ``stack`` closes them.

    Many at a time, in both: a host far away takes seconds, one that does not answer its whole timeout. What
    was found is told in the order of the watches.
    """
    groups: dict[tuple[str, str], list[Watch]] = {}
    for kind, watch in watches:
        groups.setdefault((kind, _machine(kind, watch)), []).append(watch)
    opened: list[Collector] = []
    stack.callback(_close, opened)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(lambda found: _connected(found[0][0], found[1], opened), groups.items())


def _machine(kind: str, watch: Watch) -> str:
    """The machine a watch is about; itself, where an option that would tell is wrong: connecting says so."""
    try:
        return collector_kinds.kind(kind).machine(watch)
    except Exception:  # noqa: BLE001 - as of connecting: that host's, and no other's
        return f"host {watch.host}"


def _close(opened: Sequence[Collector]) -> None:
    """Close them all; what one of them raises is raised when all are done."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(_closed, opened))


def _closed(collector: Collector) -> None:
    with suppress(TimeoutError):  # a machine that does not answer: its connection ends with this process
        within(CLOSE_S, collector.close)


def _read_twice(
    kind: str, group: list[Watch], opened: list[Collector]
) -> tuple[Collector, Sequence[Sample], Mapping[str, Mapping[str, Any]]]:
    collector = collector_kinds.kind(kind).connect(group)
    opened.append(collector)
    collector.read()
    return collector, collector.read(), collector.inventory()


def _connected(kind: str, group: list[Watch], opened: list[Collector]) -> tuple[Check, Connected | None]:
    hosts = tuple(watch.host for watch in group)
    what = f"collector {kind} ({', '.join(hosts)})"
    about = tuple((kind, host) for host in hosts)
    try:
        collector, samples, inventory = within(CHECK_S, partial(_read_twice, kind, group, opened))
    except CollectorError as error:
        return Check(what, ok=False, found=str(error), about=about), None
    except Exception as error:  # noqa: BLE001 - a driver's own error is that host's, and no other's
        return Check(what, ok=False, found=f"{type(error).__name__}: {error}", about=about), None
    required = any(watch.required for watch in group)
    found = f"{len(samples)} values in a reading"
    connected = Connected(kind, hosts, collector, required, inventory)
    return Check(what, ok=True, found=found, about=about), connected


def check_space(out: Path) -> Check:
    """Whether runs can be written there."""
    nearest = next(folder for folder in (out.absolute(), *out.absolute().parents) if folder.exists())
    what = f"run directory {out}"
    if not nearest.is_dir():
        return Check(what, ok=False, found=f"{nearest} is a file; give a folder with --out")
    try:
        tempfile.TemporaryFile(dir=nearest).close()
    except OSError as error:
        return Check(
            what, ok=False, found=f"cannot write in {nearest}: {error.strerror}; give another with --out"
        )
    free = shutil.disk_usage(nearest).free
    if free < _SPACE_BYTES:
        found = f"{free // 10**6} MB free in {nearest}, a run may need {_SPACE_BYTES // 10**6} MB; make room"
        return Check(what, ok=False, found=found)
    return Check(what, ok=True, found=f"writable, {free // 10**9} GB free")
