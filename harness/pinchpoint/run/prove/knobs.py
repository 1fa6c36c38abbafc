"""Slows a resource down and restores it: on an embedded farm, or by commands of the user.

Before a command slows a resource down, a record is written. A later run can restore the resource with it.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import platformdirs
import psutil

from pinchpoint.base.errors import FarmUnavailable
from pinchpoint.base.objects import JsonObject
from pinchpoint.base.redact import masked
from pinchpoint.farm.ready import embedded
from pinchpoint.plan import CPU, ENDPOINT, Allowed, Farm
from pinchpoint.plan.embedded import for_each_server

_TAIL = 300


def run_command(field: str, command: str, timeout_s: float) -> None:
    """Run a shell command of the user.

    Args:
        field: place of the command in the file, for messages. The command itself may contain a secret.
        command: command for ``/bin/sh -c``.
        timeout_s: seconds after which the command and its children are killed.

    Raises:
        FarmUnavailable: the command failed or took too long.
    """
    # The command has its own session, so that Ctrl-C in the terminal does not end a restoring command.
    with subprocess.Popen(
        ["/bin/sh", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            answer, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            raise FarmUnavailable(
                f"{field}: took longer than {timeout_s:g} s (its timeout); what it leaves going on in the "
                "background must not hold its output open"
            ) from error
        finally:
            _end(process)
    if process.returncode:
        words = masked(answer.decode(errors="replace").strip())[-_TAIL:] or "without a word"
        raise FarmUnavailable(f"{field}: ended with status {process.returncode}: {words}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of a command: the process and all others in its process group."""
    if process.returncode is None:
        os.killpg(process.pid, signal.SIGKILL)


_STATE_VARIABLE = "PINCHPOINT_STATE"


def note_slower(identity: Path, name: str, allowed: Allowed) -> None:
    """Record that a resource will be slowed down. Raises FarmUnavailable if this fails."""
    place = _place(identity)
    me = psutil.Process()
    content = {
        "farm": os.fsdecode(identity),
        "name": name,
        "restore": allowed.restore,
        "timeout_s": allowed.timeout_s,
        "by": [me.pid, me.create_time()],
    }
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial = place.with_suffix(".partial")
        partial.touch(mode=0o600)  # a command may contain a secret
        partial.write_text(json.dumps(content), encoding="utf-8")
        partial.replace(place)
    except OSError as error:
        raise FarmUnavailable(
            f"{place}: cannot be written ({error.strerror}); nothing is made slower that a later run could "
            f"not put back. Name a writable folder in {_STATE_VARIABLE}"
        ) from error


def forget(identity: Path) -> None:
    """Remove the record of a change that was restored."""
    place = _place(identity)
    place.unlink(missing_ok=True)
    for folder in (place.parent, place.parent.parent):
        try:
            folder.rmdir()
        except OSError:
            return  # another kind of file has this name: it is kept


def restore_leftover(identity: Path) -> str | None:
    """Restore a resource that a killed run left slowed down. Return a sentence if there was one, else "".

    Raises:
        FarmUnavailable: the command failed, and the farm is still slowed down.
    """
    place = _place(identity)
    try:
        content = json.loads(_trusted(place))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise FarmUnavailable(
            f"{place}: says what a killed run left slower, and cannot be read ({error}); put it back by "
            "hand, then remove the file"
        ) from error
    if _alive(*content["by"]):
        return None
    name = content["name"]
    try:
        run_command(f"prove.{name}.restore", content["restore"], content["timeout_s"])
    except FarmUnavailable as error:
        raise FarmUnavailable(
            f"a run that was killed left {name} slower, and it could not be put back: {error}; put it back "
            f"by hand, then remove {place}"
        ) from error
    forget(identity)
    return f"a run that was killed had left {name} slower: put back"


def _trusted(place: Path) -> str:
    """Return the text of a file that only this user or root can have written, because its commands are run.

    Raises FarmUnavailable if another user owns the file or may write to it; OSError.
    """
    descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, encoding="utf-8") as file:
        for each, path in ((os.fstat(descriptor), place), (place.parent.stat(), place.parent)):
            if each.st_uid not in (os.geteuid(), 0):
                why = f"belongs to another user (number {each.st_uid})"
            elif each.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                why = f"can be written by others (mode {stat.S_IMODE(each.st_mode):04o})"
            else:
                continue
            raise FarmUnavailable(
                f"{path}: {why}, so the command that {place} names was not run. It says what a killed run "
                f"left slower: read it, put that back by hand, then remove {place}"
            )
        return file.read()


def _place(identity: Path) -> Path:
    given = os.environ.get(_STATE_VARIABLE)
    root = Path(given) if given else platformdirs.user_state_path("pinchpoint")
    # The message has the full path, because it may be read in another folder.
    return root.absolute() / "proofs" / f"{hashlib.sha256(os.fsencode(identity)).hexdigest()[:12]}.json"


def _alive(pid: int, create_time: float) -> bool:
    try:
        return psutil.Process(pid).create_time() == create_time
    except psutil.NoSuchProcess:
        return False


RATIO = 0.75
"""Remaining speed of a slowed-down resource (design value). Throughput falls by a quarter, which is more than
windows of some seconds vary, and which harms no farm."""

NO_KNOB: Mapping[str, str] = {
    "lock": "a lock is held as long as its transaction takes: nothing of it can be made slower by itself",
    "memory": "less memory slows a farm in a way that the model cannot predict",
    "pool": "a limit of connections cannot be changed while they are in use",
    "network": "the speed of a network interface is not ours to change",
    "generator": "the load generator is no part of the farm",
    "contention": "other processes on the load generator's machine are no part of the farm",
}
"""Kind of bottleneck that cannot be proved on an embedded farm -> reason."""


class Knob(Protocol):
    """A resource that can be slowed down."""

    @property
    def what(self) -> str:
        """Return the name of the resource: ``the CPU of sql``."""
        ...

    @property
    def ratio(self) -> float:
        """Return the remaining share of the resource's speed."""
        ...

    @property
    def of(self) -> Literal["capacity", "use"]:
        """Return the base of ``ratio``: the capacity of the resource, or its previous use."""
        ...

    def slower(self, for_s: float) -> None:
        """Slow the resource down for at most this number of seconds. Raises FarmUnavailable."""
        ...

    def restore(self) -> None:
        """Restore the resource. Without a change, the call does nothing. Raises FarmUnavailable."""
        ...


@dataclass(frozen=True, slots=True)
class NoKnob:
    """The reason why a resource has no knob.

    Attributes:
        result: ``not_allowed`` (by the user) or ``not_supported``.
        why: reason as a sentence.
    """

    result: Literal["not_allowed", "not_supported"]
    why: str


def knob_for(
    farm: Farm,
    named: JsonObject,
    verdict: JsonObject,
    hosts: JsonObject,
    *,
    all_of_it: bool,
) -> Knob | NoKnob:
    """Return the knob of a resource in a verdict, or the reason why there is none.

    Args:
        farm: farm of the resource.
        named: a suspect of the verdict, as in verdict.json.
        verdict: verdict with the utilisation of the resource.
        hosts: host -> inventory in the manifest.
        all_of_it: True: the ratio refers to the capacity of the resource. False: it refers to the use of the
            resource, because a suspect must be affected in any case, and a control must not.
    """
    kind = str(named["kind"])
    why = NO_KNOB.get(kind) if farm.embedded else None
    if not named.get("tier"):
        why = "the bottleneck is outside of the farm"
        if kind == "cpu":
            why = "which tier uses the shared cores was not measured"
    elif kind.startswith("disk") and not named.get("role"):
        why = "it is a limit of all of a machine's disks together"
    elif farm.embedded is None:
        return _allowed_knob(farm, named)
    knob = why or _built_knob(farm, named, verdict, hosts, all_of_it=all_of_it)
    return NoKnob("not_supported", knob) if isinstance(knob, str) else knob


_WAYS = {"cpu": CPU, "cpu_thread": CPU, "external": ENDPOINT}
"""Kind of bottleneck other than a disk -> part of the tier that is changed."""


@dataclass(frozen=True, slots=True)
class AllowedKnob:
    """A ``Knob`` that runs commands of the user.

    Attributes:
        farm: farm of the resource.
        name: name in ``prove`` of farm.yaml.
        allowed: commands of the user.
    """

    farm: Farm
    name: str
    allowed: Allowed

    @property
    def what(self) -> str:
        """Return the name of the resource."""
        return self.name

    @property
    def of(self) -> Literal["capacity", "use"]:
        return "capacity"

    @property
    def ratio(self) -> float:
        """Return the remaining share of the resource's speed, as declared by the user."""
        return 1.0 - self.allowed.by_ratio

    def slower(self, for_s: float) -> None:
        """Slow the resource down (see ``Knob``).

        The slowdown does not end by itself, so it is recorded first.
        """
        del for_s
        note_slower(self.farm.identity, self.name, self.allowed)
        run_command(f"prove.{self.name}.slower", self.allowed.slower, self.allowed.timeout_s)

    def restore(self) -> None:
        run_command(f"prove.{self.name}.restore", self.allowed.restore, self.allowed.timeout_s)
        forget(self.farm.identity)


def _allowed_knob(farm: Farm, named: JsonObject) -> AllowedKnob | NoKnob:
    """Return the knob of a resource, or a ``NoKnob`` if the user does not allow it."""
    kind, tier = str(named["kind"]), str(named["tier"])
    part = named.get("role") if kind.startswith("disk") else _WAYS.get(kind)
    name = f"{tier}.{part}"
    if part is None:
        why = f"a farm that is not ours can be made slower in its disks, CPU and ways; this is {kind}"
    elif name not in farm.prove:
        why = f"the farm does not allow it: its farm.yaml has no prove.{name} (slower, restore, by)"
    else:
        return AllowedKnob(farm, name, farm.prove[name])
    return NoKnob("not_allowed", why)


@dataclass(frozen=True, slots=True)
class BuiltKnob:
    """A ``Knob`` of an embedded farm.

    Attributes:
        farm: farm of the resource.
        what: name of the resource.
        knob: kind of change: ``disk``, ``cpu`` or ``delay``.
        name: ``server.role`` of a disk, otherwise the server.
        cores: for ``cpu``, number of cores that the ratio refers to.
        of: base of the ratio: ``capacity`` or ``use``.
        ratio: remaining share of the resource's speed.
    """

    farm: Farm
    what: str
    knob: str
    name: str
    cores: float | None = None
    of: Literal["capacity", "use"] = "capacity"
    ratio: float = RATIO

    def slower(self, for_s: float) -> None:
        farms = embedded()
        change = farms.Slower(self.knob, self.name, self.ratio, self.cores)
        farms.slow(self.farm.identity, change, for_s)

    def restore(self) -> None:
        embedded().slow(self.farm.identity, None)


def _built_knob(
    farm: Farm, named: JsonObject, verdict: JsonObject, hosts: JsonObject, *, all_of_it: bool
) -> BuiltKnob | str:
    """Return the knob of a resource, or the reason why there is none (see ``knob_for``)."""
    result = embedded().standing(farm)
    if farm.embedded is None or result is None:
        return "the farm is not up any more"
    kind, tier, role = str(named["kind"]), str(named["tier"]), named.get("role")
    servers = {one.host: one.server for one in result.tiers if one.name == tier}
    server, count = servers.get(str(named["host"]), tier), farm.embedded.hosts
    if kind.startswith("disk"):
        disk = BuiltKnob(farm, f"the {role} disk of {server}", "disk", f"{server}.{role}")
        plain = f"{disk.name} is a plain folder: only an emulated disk can be made slower (root, Linux)"
        return disk if disk.name in result.emulated else plain
    if kind == "external":
        nothing = f"nothing of ours lies on the way to {server} that could be made slower"
        way = BuiltKnob(farm, f"the way to {server}", "delay", server)
        return way if server in for_each_server(farm.embedded.delays, count) else nothing
    if missing := embedded().cpu_caps_missing():
        return f"the CPU of {tier} cannot be capped: {missing}"
    # Number of cores that the server may use, or did use.
    about = hosts.get(str(named["host"])) or {}
    quota = for_each_server(farm.embedded.cpus, count).get(server)
    cores = quota or len(about.get("tier_cores") or ()) or None
    if cores and not all_of_it:
        rows = [row for row in verdict["cpus"] if row["tier"] == tier and row["of"] == "tier"]
        # if the tier has several hosts, the named host
        rows.sort(key=lambda row: row["host"] != named["host"])
        busy = rows[0]["busy_mean_ratio"] if rows else None
        cores = cores * min(1.0, busy) if busy else None
    if cores is None:
        return f"how much CPU {tier} used was not measured"
    return BuiltKnob(farm, f"the CPU of {server}", "cpu", server, cores, "capacity" if all_of_it else "use")
