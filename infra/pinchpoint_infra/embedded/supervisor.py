"""Runs the supervisor process, which starts a farm's tiers, watches them and ends them.

``python -m pinchpoint_infra.embedded.supervisor DIRECTORY`` works in the folder of the farm and in a session
of its own. If its stdin is a pipe, it ends and removes the farm when the other end of the pipe is closed,
because the owner of the farm has then ended. SIGTERM ends the tiers, and ``down`` removes the folder.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

from pinchpoint_infra.codec import record
from pinchpoint_infra.content import ContentError, CorpusError
from pinchpoint_infra.content.filling import ingest
from pinchpoint_infra.disks import DiskError, support
from pinchpoint_infra.disks.emulated import EmulatedDisk
from pinchpoint_infra.disks.way import choose
from pinchpoint_infra.embedded import removal
from pinchpoint_infra.embedded.place import DISK_MARK, MARK
from pinchpoint_infra.embedded.record import FarmError, FarmSpec, Slower
from pinchpoint_infra.embedded.state import SPEC, LimitsInForce, State, TierState, wanted
from pinchpoint_infra.embedded.tiers import TIERS
from pinchpoint_infra.embedded.tiers.contract import EmbeddedTier
from pinchpoint_infra.embedded.tiers.files import FilesTier, missing_for_a_share
from pinchpoint_infra.embedded.tiers.sql import Sql
from pinchpoint_infra.embedded.tiers.web import WebTier
from pinchpoint_infra.faults import caps, interface
from pinchpoint_infra.faults.delay import DelayProxy
from pinchpoint_infra.servers import Server, servers_of

# The functions below change the limits of a running farm: disks, CPU, delays, throttles.

DISKS = "disks"


class Knobs:
    """The limits and delays of a farm.

    Args:
        spec: the farm.
        farm_id: id of the farm.
        directory: folder of the farm. A disk role of a server has the folder ``tier/role`` or
            ``tier/host/role`` in it.
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
        """Create disks and control groups without limits. Raises FarmError.

        What this machine cannot emulate is left out. One warning lists all of it.
        """
        lacking = [*self._build_disks(), *self._build_groups(), *self._lacking_interfaces()]
        if FilesTier.name in self._spec.delays and (why := missing_for_a_share()):
            lacking.append(f"the delay before files ({why})")
        if lacking:
            self.warnings.append("built without what this machine lacks the means for: " + "; ".join(lacking))

    def emulates(self, disk: str) -> bool:
        """Return whether a disk (``server.role``) is emulated."""
        return disk in self._disks

    def caps_memory(self, server: str) -> bool:
        """Return whether the memory of a server is limited."""
        return server in self._spec.memory and "memory" in caps.support().roots

    @contextmanager
    def around(self, server: str) -> Iterator[None]:
        """Put the processes started in this context into the control group of the server, if it has one."""
        with ExitStack() as stack:
            if server in self._groups:
                stack.enter_context(self._groups[server].inside())
            yield

    def stand_before(self, tiers: Mapping[str, EmbeddedTier]) -> None:
        """Start network interfaces, and then the proxy of delayed endpoints, in front of the servers."""
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
        """Return the endpoint of a server for clients: behind the proxy, if there is one."""
        endpoint = tier.endpoint()
        port = self._proxied.get(tier.server, self._port(tier))
        return {**endpoint, "url": re.sub(rf":{tier.port}\b", f":{port}", endpoint["url"])}

    def _port(self, tier: EmbeddedTier) -> int:
        """Return the port of a server: behind its network interface, if it has one."""
        own = self._interfaces.get(tier.server)
        return own.port if own else tier.port or 0

    def hold(self, *, on: bool) -> None:
        """Start all limits from their initial state, or remove them. Raises FarmError."""
        self._held = on
        for disk in self._disks.values():
            try:
                group = self._groups.get(disk.name.rpartition(".")[0])
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
        """Slow down one part and restore all others; None: restore all.

        Args:
            slower: slowdown, while limits are in force.
            pids: for ``cpu``, processes of the server, the first process first.

        Raises:
            FarmError: the farm has no such part, or the slowdown failed.
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
            self._slower = self._slower or slower  # the change may be incomplete: restore it the next time
            names = " and ".join(dict.fromkeys(one.name for one in (before, slower) if one))
            raise FarmError(f"the speed of {names} could not be changed: {error}") from error

    def _turn(self, slower: Slower, pids: Sequence[int]) -> None:
        match slower.knob:
            case "disk":
                disk = self._disks.get(slower.name)
                if disk is None or not disk.limited:
                    raise FarmError(f"the disk {slower.name} is no emulated one with limits of its own")
                group = self._groups.get(slower.name.rpartition(".")[0])
                disk.slow_to(slower.ratio, group.io if group else None)
            case "delay":
                if self._proxy is None or slower.name not in self._proxied:
                    raise FarmError(f"the farm has no delay before {slower.name} that could be longer")
                self._proxy.slow_to(list(self._proxied).index(slower.name), slower.ratio)
            case "cpu":
                self._turn_cpu(slower, pids)

    def _turn_cpu(self, slower: Slower, pids: Sequence[int]) -> None:
        """Set a CPU quota in cores. A tier without a control group gets one now and keeps it."""
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
                with suppress(ProcessLookupError):  # the process has ended meanwhile
                    group.add(pid)
        self._groups[slower.name].cap_cpu(slower.cores * slower.ratio)

    def stop(self) -> None:
        """Stop the proxy and the network interfaces, which run as long as the tiers."""
        for proxy in (self._proxy, *self._interfaces.values()):
            if proxy:
                proxy.stop()
        self._proxy = None
        self._interfaces = {}

    def described_disks(self) -> dict[str, dict[str, Any]]:
        """Return the disks for the state of the farm."""
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
        # Version 2 limits a disk per control group, so that the server also needs a group.
        capped += [name.rpartition(".")[0] for name in self._disks if "io" in machine.roots]
        for name in dict.fromkeys(capped):
            group = caps.Group(self._farm_id, name, machine)
            try:
                group.make()
            except OSError as error:
                raise FarmError(f"the control group of {name} could not be made: {error}") from error
            self._groups[name] = group

    def _environment(self) -> dict[str, str]:
        """Return the environment of a disk's process.

        It lacks the mark of the farm, because processes with the mark are ended before the disks.
        """
        return {**{k: v for k, v in os.environ.items() if k != MARK}, DISK_MARK: self._farm_id}


def shared_out(
    usable: set[int] | None = None, *, share: bool = False
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the cores of the farm and of the load generators. With a single core, both have it.

    Load generators get a quarter of the cores and at least one: FACTS recommends one generator core per three
    farm cores.

    Args:
        usable: cores that this process may use; by default as reported by the system.
        share: whether the farm may also use the generators' cores.
    """
    cores = sorted(os.sched_getaffinity(0) if usable is None else usable)
    if len(cores) < 2:
        return tuple(cores), tuple(cores)
    generators = max(1, len(cores) // 4)
    return tuple(cores if share else cores[:-generators]), tuple(cores[-generators:])


_READY_S = 60.0
_WATCH_S = 0.25
_STOP_S = 8.0
_TAIL_BYTES = 2000


class Supervisor:
    """The supervisor of one farm."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._spec = record(FarmSpec, json.loads((directory / SPEC).read_text(encoding="utf-8")))
        self._knobs = Knobs(self._spec, os.environ[MARK], directory)
        self._tiers: dict[str, EmbeddedTier] = {}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        farm_cores, generator_cores = shared_out(share=self._spec.share_cores)
        # set before the first tier starts, because all tiers inherit the affinity
        os.sched_setaffinity(0, farm_cores)
        me = psutil.Process()
        self._state = State(
            supervisor=(me.pid, me.create_time()),
            farm_cores=list(farm_cores),
            generator_cores=list(generator_cores),
        )

    def start(self) -> None:
        """Start every tier, fill the farm, and wait until all tiers answer.

        Raises FarmError, ContentError.
        """
        wanted = [
            (server, tier)
            for name, tier in TIERS.items()
            if name in self._spec.tiers
            for server in servers_of(name, self._spec.hosts.get(name, 1))
        ]
        first = [(server, tier) for server, tier in wanted if not tier.after]
        if self._spec.disks:
            self._say(f"making the disks {', '.join(self._spec.disks)}")
        self._knobs.build()
        self._say("starting " + ", ".join(server.name for server, _ in first))
        for server, tier in first:
            self._launch(server, tier)
        for server, _ in first:
            self._wait_ready(server.name)
        self._fill()
        for server, tier in (each for each in wanted if each[1].after):
            self._say(f"starting {server.name}")
            self._launch(server, tier)
            self._wait_ready(server.name)
        self._knobs.stand_before(self._tiers)
        for one in self._tiers.values():
            given = self._knobs.endpoint(one)
            first_host = self._state.endpoints.setdefault(one.endpoint_name, given)
            if first_host is not given:  # a URL separates several hosts by commas
                first_host["url"] += f",{urlsplit(given['url']).netloc}"
        self._state.emulated = self._knobs.described_disks()
        self._state.warnings = self._knobs.warnings
        self._state.stage = "up"
        self._say("the farm is up")

    def watch(self) -> None:
        """Record every tier that ends without being stopped, until the farm is stopped."""
        lifeline = [0] if stat.S_ISFIFO(os.fstat(0).st_mode) else []
        while True:
            closed, _, _ = select.select(lifeline, [], [], _WATCH_S)
            if closed and not os.read(0, 1):
                raise _OwnerGone
            if self._note_crashes():
                self._save()
            self._obey(wanted(self._directory))

    def fail(self, error: FarmError | ContentError) -> None:
        """Record why the farm could not be started."""
        self._state.stage = "failed"
        self._state.failure = str(error)
        self._state.input_at_fault = isinstance(error, CorpusError)
        self._save()

    def stop(self) -> None:
        """End every tier, the last started first. Each has some time to end normally."""
        self._knobs.stop()
        for name in reversed(self._processes):
            process = self._processes[name]
            if process.poll() is None:
                # The data of the farm will be removed, so that PostgreSQL need not write it out (SIGQUIT:
                # immediate).
                process.send_signal(signal.SIGQUIT if name == Sql.name else signal.SIGTERM)
        deadline = time.monotonic() + _STOP_S
        for process in self._processes.values():
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _launch(self, server: Server, kind: type[EmbeddedTier]) -> None:
        folder = self._directory.joinpath(*server.name.split("."))
        folder.mkdir(parents=True, exist_ok=True)  # its disks may already be mounted below the folder
        folder.chmod(0o711 if kind.lets_pass and os.geteuid() == 0 else 0o700)
        tier = self._tiers[server.name] = kind(folder, self._tiers)
        tier.server = server.name
        tier.emulated = frozenset(
            role for role in tier.disks() if self._knobs.emulates(f"{server.name}.{role}")
        )
        tier.far = server.name in self._spec.delays
        tier.memory_capped = self._knobs.caps_memory(server.name)
        tier.settings = self._spec.settings.get(kind.name, {})
        state = self._state.tiers[server.name] = TierState(
            tier=server.tier, host=server.host, directory=str(folder), log=str(tier.log)
        )
        tier.prepare()
        state.port = tier.port
        state.disks = {role: str(place) for role, place in tier.disks().items()}
        command = tier.command()
        if command is not None:
            with tier.log.open("ab") as log, self._knobs.around(server.name):
                process = self._processes[server.name] = subprocess.Popen(
                    command,
                    cwd=folder if tier.user is None else next(iter(tier.disks().values())),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    user=tier.user,
                    extra_groups=[] if tier.user is not None else None,
                )
            state.pid = process.pid
            state.create_time = psutil.Process(process.pid).create_time()
        self._save()

    def _wait_ready(self, name: str) -> None:
        tier = self._tiers[name]
        deadline = time.monotonic() + _READY_S
        while not tier.is_ready():
            if self._note_crashes():
                crashed = next(n for n, s in self._state.tiers.items() if s.state == "crashed")
                result = self._state.tiers[crashed]
                raise FarmError(
                    f"tier {crashed} ended while starting (exit status {result.exit_status}); "
                    f"the end of its log {result.log}:\n{result.log_tail}"
                )
            if time.monotonic() > deadline:
                raise FarmError(f"tier {name} did not answer within {_READY_S:.0f} s:\n{_tail(tier.log)}")
            time.sleep(0.05)
        tier.when_ready()
        self._state.tiers[name].state = "up"
        self._save()

    def _fill(self) -> None:
        """Fill the content database and the files folder from the corpus."""
        sql, files = self._tiers.get("sql"), self._tiers.get("files")
        database = sql.content_url if isinstance(sql, Sql) and "web" in self._spec.tiers else None
        folder = files.folder if isinstance(files, FilesTier) else None
        if database or folder:
            self._state.content = ingest(
                self._spec.corpus,
                self._spec.documents,
                database,
                folder,
                self._say,
                # No load runs yet, so the cores of the generators read the corpus while those of the farm
                # load it.
                {*self._state.farm_cores, *self._state.generator_cores},
            )

    def _obey(self, limits: LimitsInForce) -> None:
        """Apply new requests for slowdowns, and undo those that have ended."""
        now = self._state.limits
        if limits.number == now.number:
            if not (now.slower and time.time() > now.until_s):
                return
            limits = replace(now, live=True, slower=None)
        failure = ""
        try:
            if not limits.live:
                self._knobs.hold(on=limits.hold)
            self._knobs.slow(limits.slower, self._pids(limits.slower))
        except FarmError as error:
            failure = str(error)
        hold = limits.hold and (limits.live or not failure)
        self._state.limits = replace(
            limits, hold=hold, failure=failure, slower=None if failure else limits.slower
        )
        self._save()

    def _pids(self, slower: Slower | None) -> list[int]:
        """Return the processes of the server to slow down, the first process first."""
        leader = self._processes.get(slower.name) if slower and slower.knob == "cpu" else None
        if leader is None or leader.poll() is not None:
            return []
        return [leader.pid, *(child.pid for child in psutil.Process(leader.pid).children(recursive=True))]

    def _note_crashes(self) -> bool:
        crashed = False
        for name, process in self._processes.items():
            state = self._state.tiers[name]
            if state.state != "crashed" and process.poll() is not None:
                state.state, state.exit_status = "crashed", process.returncode
                state.log_tail = _tail(self._tiers[name].log)
                crashed = True
        return crashed

    def _say(self, message: str) -> None:
        self._state.message = message
        self._save()

    def _save(self) -> None:
        self._state.save(self._directory)


class _OwnerGone(Exception):  # noqa: N818 -- a fact, not an error
    """The process with the farm's lifeline has ended."""


class _TerminatedError(BaseException):
    """SIGTERM was received: the farm must end."""


def _tail(log: Path) -> str:
    if not log.exists():
        return ""
    return log.read_bytes()[-_TAIL_BYTES:].decode("utf-8", "replace").strip()


def _on_term(number: int, frame: object) -> None:  # noqa: ARG001 -- signal's signature
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise _TerminatedError


def main() -> None:
    """Run the supervisor process."""
    directory = Path(sys.argv[1])
    os.umask(0o077)  # umask of all tiers: documents may be private, and logs quote them
    signal.signal(signal.SIGTERM, _on_term)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    supervisor = Supervisor(directory)
    try:
        try:
            supervisor.start()
        except (FarmError, ContentError) as error:
            supervisor.fail(error)
            return
        supervisor.watch()
    except _OwnerGone:
        supervisor.stop()
        removal.remove(os.environ[MARK], directory)
    except _TerminatedError:
        return
    finally:
        supervisor.stop()


if __name__ == "__main__":
    main()
