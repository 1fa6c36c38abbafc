"""Changes a running farm's limits: disks, CPU, delays, throttles."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pinchpoint_infra.disks import DiskError, support
from pinchpoint_infra.disks.emulated import EmulatedDisk
from pinchpoint_infra.disks.way import choose
from pinchpoint_infra.embedded.place import DISK_MARK, MARK
from pinchpoint_infra.embedded.record import FarmError, FarmSpec, Slower
from pinchpoint_infra.embedded.tiers.contract import EmbeddedTier
from pinchpoint_infra.embedded.tiers.files import FilesTier, missing_for_a_share
from pinchpoint_infra.embedded.tiers.web import WebTier
from pinchpoint_infra.faults import caps, interface
from pinchpoint_infra.faults.delay import DelayProxy

DISKS = "disks"


class Knobs:
    """The knobs of one farm.

    Args:
        spec: the farm.
        farm_id: its id.
        directory: its folder; the folder of a tier's disk role is ``tier/role`` there.
    """

    def __init__(self, spec: FarmSpec, farm_id: str, directory: Path) -> None:
        self._spec = spec
        self._farm_id = farm_id
        self._directory = directory
        self._disks: dict[str, EmulatedDisk] = {}
        self._groups: dict[str, caps.Group] = {}
        self._proxy: DelayProxy | None = None
        self._proxied: dict[str, int] = {}
        self._slower: Slower | None = None
        self._held = False
        self._interfaces: dict[str, interface.InterfaceProxy] = {}
        self._throttled: dict[str, WebTier] = {}
        self.warnings: list[str] = []

    def build(self) -> None:
        """Make disks and control groups, unlimited. Raises FarmError.

        What this machine cannot make is left out; one warning names all of it.
        """
        lacking = [*self._build_disks(), *self._build_groups(), *self._lacking_interfaces()]
        if FilesTier.name in self._spec.delays and (why := missing_for_a_share()):
            lacking.append(f"the delay before files ({why})")
        if lacking:
            self.warnings.append("built without what this machine lacks the means for: " + "; ".join(lacking))

    def emulates(self, disk: str) -> bool:
        """Whether that disk (``tier.role``) is an emulated one."""
        return disk in self._disks

    def caps_memory(self, tier: str) -> bool:
        """Whether that tier's memory will be capped."""
        return tier in self._spec.memory and "memory" in caps.support().roots

    @contextmanager
    def around(self, tier: str) -> Iterator[None]:
        """What is started meanwhile belongs to that tier's control group, where it has one."""
        with ExitStack() as stack:
            if tier in self._groups:
                stack.enter_context(self._groups[tier].inside())
            yield

    def stand_before(self, tiers: Mapping[str, EmbeddedTier]) -> None:
        """Start what is in front of endpoints: network interfaces, then the proxy of those far away."""
        for name, bytes_per_s in self._spec.networks.items():
            port = tiers[name].port
            if port is not None and interface.missing() is None:
                log = self._directory / f"interface-{name}.log"
                proxy = interface.InterfaceProxy(name, port, bytes_per_s, log, os.environ)
                self._interfaces[name] = proxy
        far = {name: tiers[name] for name in self._spec.delays if tiers[name].port is not None}
        if far:
            ways = [(self._port(tier), self._spec.delays[name]) for name, tier in far.items()]
            self._proxy = DelayProxy(ways, self._directory / "delays.log", os.environ)
            self._proxied = dict(zip(far, self._proxy.ports, strict=True))
        for name in self._spec.throttle:
            tier = tiers[name]
            assert isinstance(tier, WebTier)  # noqa: S101 -- the spec was checked: no other tier refuses
            self._throttled[name] = tier

    def endpoint(self, tier: EmbeddedTier) -> dict[str, str]:
        """A tier's endpoint as clients are to see it: behind the proxy where there is one."""
        endpoint = tier.endpoint()
        port = self._proxied.get(tier.name, self._port(tier))
        return {**endpoint, "url": re.sub(rf":{tier.port}\b", f":{port}", endpoint["url"])}

    def _port(self, tier: EmbeddedTier) -> int:
        """Where a tier is reached: behind its network interface where it has one of its own."""
        own = self._interfaces.get(tier.name)
        return own.port if own else tier.port or 0

    def hold(self, *, on: bool) -> None:
        """Let all limits hold from their beginning, or lift them. Raises FarmError."""
        self._held = on
        for disk in self._disks.values():
            try:
                group = self._groups.get(disk.name.partition(".")[0])
                disk.apply(on=on, group=group.io if group else None)
            except (DiskError, OSError) as error:
                raise FarmError(f"the limits of the disk {disk.name} could not be set: {error}") from error
        try:
            for name, group in self._groups.items():
                if name in self._spec.cpus:
                    group.cap_cpu(self._spec.cpus[name] if on else None)
                if name in self._spec.memory:
                    group.cap_memory(self._spec.memory[name] if on else None)
            for proxy in (self._proxy, *self._interfaces.values()):
                if proxy:
                    proxy.apply(on=on)
            for name, tier in self._throttled.items():
                tier.throttle(self._spec.throttle[name] if on else None)
        except OSError as error:
            raise FarmError(f"caps, delays or throttles could not be set: {error}") from error

    def slow(self, slower: Slower | None, pids: Sequence[int] = ()) -> None:
        """Make one thing slower than it was built, and everything else as it was; None: everything.

        Args:
            slower: what, while limits hold.
            pids: of ``cpu``, the tier's processes, its leader first.

        Raises:
            FarmError: there is nothing of that kind here that could be made slower, or it failed.
        """
        before = self._slower
        try:
            if before:
                self._turn(replace(before, ratio=1.0), ())
                self._slower = None
            if slower:
                if not self._held:
                    raise FarmError(f"{slower.name} cannot be made slower: the farm's limits do not hold now")
                self._turn(slower, pids)
                self._slower = slower
        except (DiskError, OSError) as error:
            self._slower = self._slower or slower  # it may be half done: to be put back the next time
            names = " and ".join(dict.fromkeys(one.name for one in (before, slower) if one))
            raise FarmError(f"the speed of {names} could not be changed: {error}") from error

    def _turn(self, slower: Slower, pids: Sequence[int]) -> None:
        match slower.knob:
            case "disk":
                disk = self._disks.get(slower.name)
                if disk is None or not disk.limited:
                    raise FarmError(f"the disk {slower.name} is no emulated one with limits of its own")
                group = self._groups.get(slower.name.partition(".")[0])
                disk.slow_to(slower.ratio, group.io if group else None)
            case "delay":
                if self._proxy is None or slower.name not in self._proxied:
                    raise FarmError(f"the farm has no delay before {slower.name} that could be longer")
                self._proxy.slow_to(list(self._proxied).index(slower.name), slower.ratio)
            case "cpu":
                self._turn_cpu(slower, pids)

    def _turn_cpu(self, slower: Slower, pids: Sequence[int]) -> None:
        """A quota of the cores given; a tier that has no control group gets one now, and keeps it."""
        if slower.ratio == 1:
            own = self._spec.cpus.get(slower.name) if self._held else None
            if slower.name in self._groups:
                self._groups[slower.name].cap_cpu(own)
            return
        machine = caps.support()
        if "cpu" not in machine.roots:
            raise FarmError(f"the CPU of {slower.name} cannot be capped: {machine.missing['cpu']}")
        if not pids or not slower.cores:
            raise FarmError(f"{slower.name} has no process whose CPU could be capped")
        if slower.name not in self._groups:
            group = caps.Group(self._farm_id, slower.name, machine.only("cpu"))
            group.make()
            self._groups[slower.name] = group
            for pid in pids:
                with suppress(ProcessLookupError):  # it has ended meanwhile
                    group.add(pid)
        self._groups[slower.name].cap_cpu(slower.cores * slower.ratio)

    def stop(self) -> None:
        """End what serves as long as the tiers do."""
        for proxy in (self._proxy, *self._interfaces.values()):
            if proxy:
                proxy.stop()
        self._proxy = None
        self._interfaces = {}

    def described_disks(self) -> dict[str, dict[str, Any]]:
        """For the farm's state."""
        return {name: disk.describe() for name, disk in self._disks.items()}

    def _build_disks(self) -> Iterator[str]:
        machine = support()
        lacking: dict[str, list[str]] = {}
        for name, spec in self._spec.disks.items():
            way = choose(spec, machine)
            if isinstance(way, str):
                lacking.setdefault(way, []).append(name)
                continue
            folder = self._directory / DISKS / name
            mount = self._directory.joinpath(*name.split("."))
            disk = EmulatedDisk(name, self._farm_id, spec, way, folder, mount, self._environment())
            try:
                disk.build()
            except (DiskError, OSError) as error:
                raise FarmError(f"the disk {name} could not be made: {error}") from error
            self._disks[name] = disk
            self.warnings += [f"{name}: {note}" for note in way.notes]
        for why, names in lacking.items():
            yield f"{', '.join(names)} are plain folders, no disks of their own ({why})"

    def _lacking_interfaces(self) -> Iterator[str]:
        why = interface.missing()
        if self._spec.networks and why:
            yield f"no network interfaces of {', '.join(self._spec.networks)} ({why})"

    def _build_groups(self) -> Iterator[str]:
        machine = caps.support()
        wanted = {"cpu": self._spec.cpus, "memory": self._spec.memory}
        for controller, tiers in wanted.items():
            if tiers and controller not in machine.roots:
                yield f"no {controller} caps of {', '.join(tiers)} ({machine.missing[controller]})"
        capped = [
            name for controller, tiers in wanted.items() if controller in machine.roots for name in tiers
        ]
        # Version 2 throttles a disk for its tier's group: that tier needs one too.
        capped += [name.partition(".")[0] for name in self._disks if "io" in machine.roots]
        for name in dict.fromkeys(capped):
            group = caps.Group(self._farm_id, name, machine)
            try:
                group.make()
            except OSError as error:
                raise FarmError(f"the control group of {name} could not be made: {error}") from error
            self._groups[name] = group

    def _environment(self) -> dict[str, str]:
        """Of a process behind a disk: the farm's other mark would have it ended with the tiers."""
        return {**{k: v for k, v in os.environ.items() if k != MARK}, DISK_MARK: self._farm_id}
