"""Starts, describes and stops the embedded farm of a run; needs the extra ``pinchpoint[farm]``."""

from __future__ import annotations

import json
import re
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pinchpoint.base.errors import FarmUnavailable, InputError
from pinchpoint.farm.ready import Crash
from pinchpoint.plan import BuiltDisk, Farm
from pinchpoint.plan.embedded import EMBEDDED_ROLES, GENERATOR, built_servers, for_each_server
from pinchpoint_infra import embedded
from pinchpoint_infra.catalogue import BurstAllowance, profile
from pinchpoint_infra.disks import Device, DiskSpec, SlowStart
from pinchpoint_infra.disks.record import DEFAULT_SIZE_BYTES
from pinchpoint_infra.embedded import FarmError, FarmInputError, FarmSpec, FarmStatus, Slower
from pinchpoint_infra.embedded.tiers.sql import SETTINGS as SQL_SETTINGS
from pinchpoint_infra.faults import caps
from pinchpoint_infra.faults.delay import DelayedEndpoint
from pinchpoint_infra.faults.throttle import ThrottledEndpoint
from pinchpoint_scenarios.contract import DISK


def spec(farm: Farm) -> FarmSpec:
    """The farm that infra builds for a farm.yaml with ``embedded:``."""
    assert farm.embedded is not None  # noqa: S101 -- callers ask first
    content, hosts = farm.embedded.content, farm.embedded.hosts
    return FarmSpec(
        identity=farm.identity,
        name=farm.name,
        tiers=tuple(farm.embedded.tiers),
        corpus=content.corpus if content else None,
        documents=content.documents if content else None,
        hosts=dict(hosts),
        disks={name: disk_spec(disk) for name, disk in for_each_server(farm.embedded.disks, hosts).items()},
        cpus=for_each_server(farm.embedded.cpus, hosts),
        memory=for_each_server(farm.embedded.memory, hosts),
        delays={
            server: DelayedEndpoint(delay.round_trip_s, delay.bytes_per_s)
            for server, delay in for_each_server(farm.embedded.delays, hosts).items()
        },
        throttle={
            tier: ThrottledEndpoint(throttle.requests_per_s, round(throttle.retry_after_s), throttle.status)
            for tier, throttle in farm.embedded.throttle.items()
        },
        networks=for_each_server(farm.embedded.networks, hosts),
        settings={tier: dict(settings) for tier, settings in farm.embedded.settings.items()},
        share_cores=farm.embedded.share_cores,
    )


def disk_spec(disk: BuiltDisk) -> DiskSpec:
    """The disk that infra builds for one entry of ``embedded.disks``.

    A profile contains the disk's caps and credits; a burst that must be bought is left out.
    """
    return DiskSpec(
        **_figures(disk),
        latency_s=disk.latency_s,
        jitter_s=disk.jitter_s,
        device=_device(disk),
        warm_up=SlowStart(disk.warm_up.from_ratio, disk.warm_up.over_s) if disk.warm_up else None,
        stripes=disk.stripes,
        raid=disk.raid,
        size_bytes=disk.size_bytes or DEFAULT_SIZE_BYTES,
        time_scale=disk.time_scale,
        read_ahead_bytes=disk.read_ahead_bytes,
        host_cache_bytes=disk.host_cache_bytes,
    )


def _figures(disk: BuiltDisk) -> dict[str, Any]:
    if disk.profile:
        entry = profile(disk.profile)
        return {
            "iops": entry.iops,
            "bytes_per_s": entry.bytes_per_s,
            "io_unit_bytes": entry.io_unit_bytes,
            "burst": entry.burst if entry.burst and entry.burst.credit_s else None,
        }
    if disk.limits is None:
        return {}
    figures = {name: getattr(disk.limits, name) for name in type(disk.limits).model_fields if name != "burst"}
    burst = disk.limits.burst
    if burst:
        # A limit without a burst of its own stays at its base.
        iops, bytes_per_s = burst.iops or disk.limits.iops, burst.bytes_per_s or disk.limits.bytes_per_s
        figures["burst"] = BurstAllowance(iops or 0.0, bytes_per_s or 0.0, burst.credit_s)
    return figures


def _device(disk: BuiltDisk) -> Device | None:
    if disk.device is None:
        return None
    sequential_s = disk.device.sequential_s or disk.device.service_s / 10
    return Device(disk.device.service_s, sequential_s, disk.device.spread_ratio)


def stand_ins(farm: Farm) -> dict[str, dict[str, str]]:
    """Placeholder addresses for the endpoints of an embedded farm that is down; nothing listens there.

    ``cache_bytes`` is the future size of the SQL tier's buffer cache; "" if the size depends on what can be
    emulated on this machine.
    """
    assert farm.embedded is not None  # noqa: S101 -- callers ask first
    known = {
        "web": ("sharepoint", {"url": "http://embedded.invalid"}),
        "sql": ("sql", {"url": "postgresql://embedded.invalid/loadtest", "cache_bytes": _cache_bytes(farm)}),
        "search": ("search", {"url": "http://embedded.invalid", "kind": "pinchpoint"}),
        "nosql": ("nosql", {"url": "valkey://embedded.invalid/0"}),
        "files": ("files", {"url": "/embedded/files"}),
    }
    given = {name: dict(endpoint.given) for name, endpoint in farm.endpoints.named().items()}
    here = socket.gethostname()
    disks = {
        f"{DISK}{server.name}.{role}": {"url": f"/embedded/{server.name}.{role}", "host": here}
        for tier in farm.embedded.tiers
        for server in built_servers(farm.embedded.hosts, tier)
        for role in EMBEDDED_ROLES[tier]
    }
    return given | disks | dict(known[tier] for tier in farm.embedded.tiers)


def _cache_bytes(farm: Farm) -> str:
    assert farm.embedded is not None  # noqa: S101 -- as above
    chosen = dict(farm.embedded.settings.get("sql", {})).get("shared_buffers")
    if chosen is None and "sql.data" in farm.embedded.disks:
        return ""
    match = re.fullmatch(r"(\d+)\s*(kB|MB|GB)", str(chosen or SQL_SETTINGS["shared_buffers"]))
    return str(int(match[1]) << {"kB": 10, "MB": 20, "GB": 30}[match[2]]) if match else ""


def up(farm: Farm, progress: Callable[[str], None], *, lifeline: bool) -> FarmStatus:
    """Start the farm unless it is up, and return its status. Raises FarmUnavailable, InputError."""
    for sentence in remains(farm.identity):
        progress(sentence)
    with _explained(farm):
        return embedded.up(spec(farm), lifeline=lifeline, progress=progress)


@contextmanager
def _explained(farm: Farm) -> Iterator[None]:
    """Turn infra's errors into errors of the command."""
    try:
        yield
    except FarmInputError as error:
        raise InputError(f"farm {farm.name}: {error}") from error
    except FarmError as error:
        raise FarmUnavailable(f"farm {farm.name}: {error}") from error


def down(identity: Path) -> list[str]:
    """Stop a farm and remove everything it made. Raises FarmUnavailable.

    Returns sentences about what was done.
    """
    try:
        return embedded.down(identity)
    except FarmError as error:
        raise FarmUnavailable(str(error)) from error


def down_by_id(farm_id: str) -> list[str]:
    """Stop a farm by its id, because its file may be gone; see ``down``."""
    try:
        return embedded.down_by_id(farm_id)
    except FarmError as error:
        raise FarmUnavailable(str(error)) from error


def describe_known() -> str:
    """One line for every farm that has left something on this machine."""
    lines = []
    for result, file in embedded.known():
        line = f"farm {result.farm_id}: {result.state}, from {file or 'an unknown file'}"
        remedy = f"; `pinchpoint farm down {result.farm_id}` removes what it left"
        lines.append(line + (remedy if result.state == "broken" else ""))
    return "\n".join(lines) or "no farm is up here, and none has left anything"


def remains(besides: Path) -> list[str]:
    """A sentence about each other farm that crashed and left something on this machine."""
    mine = status(besides).farm_id
    return [
        f"a farm that crashed has left something (from {file or 'an unknown file'}): "
        f"`pinchpoint farm down {found.farm_id}` removes it"
        for found, file in embedded.known()
        if found.state == "broken" and found.farm_id != mine
    ]


def status(identity: Path) -> FarmStatus:
    """The state of a farm and of its tiers."""
    return embedded.status(identity)


def describe(value: FarmStatus) -> str:
    """A farm's tiers for the terminal: state, process, port and log; for a crashed one the log's end."""
    lines = [f"farm {value.farm_id}: {value.state}"]
    width = max((7, *(len(tier.server) for tier in value.tiers)))
    for tier in value.tiers:
        where = f", port {tier.port}" if tier.port else ""
        lines.append(f"  {tier.server:<{width}} {tier.state:<9} process {tier.pid}{where}, log {tier.log}")
        if tier.state == "crashed":
            lines.append(f"          exit status {tier.exit_status}; the end of its log:")
            lines += [f"          {line}" for line in tier.log_tail.splitlines()]
    held = "hold" if value.limited else "do not hold now: they begin with a run's warm-up"
    for name, disk in value.emulated.items():
        lines.append(f"  disk {name}: {disk['device']} by {disk['way']}; its limits {held}")
    if value.slower:
        left = f"{100 * value.slower.ratio:g} % of its speed"
        lines.append(f"  the {value.slower.knob} of {value.slower.name} has {left}: a run proves its verdict")
    return "\n".join([*lines, *(f"  warning: {warning}" for warning in value.warnings)])


def standing(farm: Farm) -> FarmStatus | None:
    """The status of the farm; None if the farm is not up."""
    result = status(farm.identity)
    return result if result.state == "up" else None


@contextmanager
def embedded_farm(farm: Farm, progress: Callable[[str], None]) -> Iterator[FarmStatus]:
    """The farm while it is up; stopped at the end if launched here. Raises FarmUnavailable, InputError."""
    for sentence in remains(farm.identity):
        progress(sentence)
    with _explained(farm):
        launched = embedded.launch(spec(farm), lifeline=True, progress=progress)
    if not launched:
        state = "up already" if standing(farm) else "being started by another command"
        progress(f"farm {farm.name} is {state}: it is used, and left up")
    try:
        with _explained(farm):
            result = embedded.wait_up(farm.identity, progress)
        yield result
    finally:
        if launched:
            progress(f"stopping farm {farm.name}")
            down(farm.identity)


def limit(identity: Path, *, hold: bool) -> None:
    """Put a farm's limits and delays in force, or lift them. Raises FarmUnavailable."""
    try:
        embedded.limit(identity, hold=hold)
    except FarmError as error:
        raise FarmUnavailable(str(error)) from error


def slow(identity: Path, slower: Slower | None, for_s: float = 0.0) -> None:
    """Make one resource of a farm slower for a time, or restore everything. Raises FarmUnavailable."""
    try:
        embedded.slow(identity, slower, for_s)
    except FarmError as error:
        raise FarmUnavailable(str(error)) from error


def cpu_caps_missing() -> str:
    """Why the CPU of a tier cannot be capped on this machine; "" if it can."""
    return caps.support().missing.get("cpu", "")


def confine_generator(farm: Farm, value: FarmStatus) -> Callable[[int], None]:
    """A function that puts a load generator's process under the farm's CPU cap for generators, if any."""
    machine = caps.support()
    if farm.embedded is None or GENERATOR not in farm.embedded.cpus or "cpu" not in machine.roots:
        return lambda _: None
    return caps.Group(value.farm_id, GENERATOR, machine).add


def disk_events(value: FarmStatus) -> Callable[[], list[dict[str, Any]]]:
    """A function that returns the events of the farm's emulated disks since the function's last call."""
    places = {name: Path(disk["events"]) for name, disk in value.emulated.items()}
    read = {name: place.stat().st_size if place.exists() else 0 for name, place in places.items()}

    def news() -> list[dict[str, Any]]:
        happened = []
        for name, place in places.items():
            if not place.exists():
                continue
            with place.open("rb") as file:
                file.seek(read[name])
                for line in file:
                    if line.endswith(b"\n"):  # otherwise the line is still being written
                        read[name] += len(line)
                        happened.append({"disk": name, **json.loads(line)})
        return happened

    return news


def crashed_tiers(identity: Path) -> list[Crash]:
    """Every tier that ended without being stopped."""
    result = status(identity)
    return [
        Crash(tier.name, tier.host, tier.server, _ended(tier.exit_status), tier.log_tail)
        for tier in result.tiers
        if tier.state == "crashed"
    ]


def _ended(exit_status: int | None) -> str:
    """How a process ended, in words; a negative exit status is a signal's number."""
    if exit_status is None:
        return "its exit status is not known"
    if exit_status >= 0:
        return f"exit status {exit_status}"
    known = {number.value: number.name for number in signal.Signals}
    return f"ended by {known.get(-exit_status, f'signal {-exit_status}')}"
