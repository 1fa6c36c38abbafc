"""``pinchpoint init DIR --discover HOST...``: writes a farm.yaml from facts of hosts, over ssh or WinRM.

A script that only reads (``linux.sh``) inspects each Linux host. The disks are found by the collector that
will later measure the host; on Windows it also finds the files of SQL Server. A comment in farm.yaml gives
the source of each guess.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.resources import files as packaged
from typing import Any
from urllib.parse import parse_qsl

from ruamel.yaml import YAML

from pinchpoint.base.errors import FarmUnavailable
from pinchpoint.base.objects import JsonObject
from pinchpoint.base.units import bytes_
from pinchpoint.plan.endpoints import filled
from pinchpoint_collectors import registry as collector_kinds
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Watch
from pinchpoint_collectors.remote import ssh
from pinchpoint_infra.catalogue import catalogue

_AT_ONCE = 16
_ASKED_S = 30.0
_GIB = 1 << 30
LOGIN_BY = "WINDOWS_PASSWORD"
"""Environment variable with the password of Windows hosts."""


@dataclass(frozen=True, slots=True)
class _Program:
    """A known server program: its tier, the URL of its endpoint, and its process name."""

    tier: str
    product: str
    process: str
    url: str | None = None
    kind: str | None = None


PROGRAMS: Mapping[str, _Program] = {
    "postgres": _Program(
        "sql",
        "PostgreSQL",
        "postgres",
        "postgresql://loader:${{SQL_PASSWORD}}@{host}:5432/loadtest",
        "postgres",
    ),
    "mariadbd": _Program(
        "sql", "MariaDB", "mariadbd", "mysql+odbc://loader:${{SQL_PASSWORD}}@{host}:3306/loadtest", "mariadb"
    ),
    "mysqld": _Program(
        "sql", "MySQL", "mysqld", "mysql+odbc://loader:${{SQL_PASSWORD}}@{host}:3306/loadtest", "mariadb"
    ),
    "sqlservr": _Program(
        "sql",
        "SQL Server",
        "sqlservr",
        "mssql+odbc://loader:${{SQL_PASSWORD}}@{host}:1433/loadtest",
        "sqlserver",
    ),
    "valkey-server": _Program(
        "nosql", "Valkey", "valkey-server", "valkey://:${{NOSQL_PASSWORD}}@{host}:6379/0", "valkey"
    ),
    "redis-server": _Program(
        "nosql", "Redis", "redis-server", "redis://:${{NOSQL_PASSWORD}}@{host}:6379/0", "valkey"
    ),
    "mongod": _Program(
        "nosql", "MongoDB", "mongod", "mongodb://loader:${{NOSQL_PASSWORD}}@{host}:27017/loadtest", "mongodb"
    ),
    "cassandra": _Program(
        "nosql",
        "Cassandra",
        "java",
        "cassandra://loader:${{NOSQL_PASSWORD}}@{host}:9042/loadtest",
        "cassandra",
    ),
    "nginx": _Program("web", "nginx", "nginx"),
    "apache2": _Program("web", "Apache", "apache2"),
    "httpd": _Program("web", "Apache", "httpd"),
}
"""Name of a program in the script -> server program. The first program on a host decides the tier."""


@dataclass(slots=True)
class DiscoveredHost:
    """The facts that one host reported.

    Attributes:
        programs: server programs on the host, in the order of ``PROGRAMS``.
        places: tier and disk role, such as ``sql.log`` -> folder and source of the fact.
        machine: machine type of the cloud and source of the fact; None if unknown.
        region: region of the cloud; empty if unknown.
        profiles: device -> disk type in the catalogue and source of the fact.
        mounts: device -> mount point.
        inventory: inventory from the collector.
        options: options of the collector.
        kind: kind of the collector.
    """

    programs: list[str] = field(default_factory=list)
    places: dict[str, tuple[str, str]] = field(default_factory=dict)
    machine: tuple[str, str] | None = None
    region: str = ""
    profiles: dict[str, tuple[str, str]] = field(default_factory=dict)
    mounts: dict[str, str] = field(default_factory=dict)
    inventory: JsonObject = field(default_factory=dict)
    options: JsonObject = field(default_factory=dict)
    kind: str = "ssh"

    @property
    def tiers(self) -> list[str]:
        """Return the tiers of the host's server programs; ``other`` if no program is known."""
        return list(dict.fromkeys(PROGRAMS[name].tier for name in self.programs)) or ["other"]

    @property
    def host(self) -> str:
        """Return the name of the host without the user."""
        return str(self.options["address"]).rpartition("@")[2]

    @property
    def name(self) -> str:
        """Return the name for farm.yaml: the first part of the host's name, or the address."""
        short = self.host if re.fullmatch(r"[\d.:]+", self.host) else self.host.partition(".")[0]
        return re.sub(r"[^A-Za-z0-9_-]", "-", short)


def parse(text: str) -> DiscoveredHost:
    """Parse the output of ``linux.sh``."""
    lines = [line.split("\t", 1) for line in text.splitlines() if "\t" in line]
    answer: dict[str, list[str]] = {}
    for word, value in lines:
        answer.setdefault(word, []).append(value)
    result = DiscoveredHost([name for name in PROGRAMS if name in answer.get("server", ())])
    for program in result.programs:
        for role in ("log", "data"):
            for place in answer.get(f"{program}.{role}", ())[:1]:
                what = "its write-ahead log" if (program, role) == ("postgres", "log") else f"its {role}"
                key = f"{PROGRAMS[program].tier}.{role}"
                result.places.setdefault(key, (place, f"{PROGRAMS[program].product} keeps {what} there"))
    for block in answer.get("block", ()):
        one = dict(part.split("=", 1) for part in shlex.split(block))
        if one.get("MOUNTPOINT"):
            result.mounts[one["KNAME"]] = one["MOUNTPOINT"]
    _cloud(answer, result)
    return result


def _cloud(text: Mapping[str, Sequence[str]], value: DiscoveredHost) -> None:
    """Add machine, region and disk types of Azure or AWS, from the metadata service or the firmware."""
    vendor, product = (text.get(word, [""])[0] for word in ("sys_vendor", "product_name"))
    if vendor.startswith("Amazon"):
        by = "AWS's metadata service says so" if text.get("aws_type", [""])[0] else "the firmware says so"
        name = text.get("aws_type", [""])[0] or product
        value.machine = (f"aws/{name}", by) if name else None
        value.region = text.get("aws_region", [""])[0]
    try:
        azure = json.loads(text.get("azure", ["{}"])[0] or "{}")
    except ValueError:
        return
    if size := azure.get("vmSize"):
        value.machine = (
            f"azure/{size.removeprefix('Standard_').lower()}",
            f"Azure's metadata service says {size}",
        )
        value.region = str(azure.get("location", ""))
    devices = dict(line.split(" ", 1) for line in text.get("lun", ()))
    for disk in azure.get("storageProfile", {}).get("dataDisks", ()):
        kind = str((disk.get("managedDisk") or {}).get("storageAccountType", ""))
        profile = _azure_disk(kind, float(disk.get("diskSizeGB") or 0))
        if (device := devices.get(str(disk.get("lun")))) and profile:
            value.profiles[device] = profile, f"Azure: {kind}, {disk['diskSizeGB']} GiB"


_SIZES_GIB = {"4": 32, "6": 64, "10": 128, "15": 256, "20": 512, "30": 1024, "40": 2048, "50": 4096}
_SIZES_GIB |= {"60": 8192, "70": 16384, "80": 32767}
"""Number in the name of a managed Azure disk -> largest size of that disk type in GiB."""
_LETTERS = {"Premium": "p", "StandardSSD": "e", "Standard": "s"}
"""Kind of a managed Azure disk (without its redundancy) -> letter in the name of the disk type."""


def _azure_disk(kind: str, gib: float) -> str | None:
    letter = _LETTERS.get(kind.partition("_")[0])
    number = next((number for number, most in _SIZES_GIB.items() if gib <= most), None)
    return f"azure/{letter}{number}" if letter and number and gib else None


def farm_file(hosts: Sequence[str], config: str | None = None) -> str:
    """Return the text of a farm.yaml for hosts.

    Args:
        hosts: ``HOST``, ``USER@HOST`` or ``HOST:PORT``, or a name in the ssh configuration; Windows hosts as
            ``winrm://USER@HOST``, or without TLS ``winrm+http://USER@HOST``. ``?auth=ntlm`` and ``?ca=FILE``
            are the options of the collector with these names.
        config: ssh configuration file in place of the user's own.

    Raises:
        FarmUnavailable: a host cannot be inspected; the message has the reason and the remedy for each host.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        asked = list(pool.map(lambda host: _discover_host(*_options(host, config)), hosts))
    if failed := [one for one in asked if isinstance(one, str)]:
        raise FarmUnavailable(*failed)
    return "".join(_farm([one for one in asked if isinstance(one, DiscoveredHost)]))


def _options(host: str, config: str | None) -> tuple[str, dict[str, Any]]:
    """Return the kind and the options of the collector for a host."""
    scheme, _, named = host.rpartition("://")
    host, _, query = named.partition("?")
    place, port = re.fullmatch(r"([^:]*|.*\])(?::(\d+))?", host), None
    if place:
        host, port = place[1], place[2]
    options: dict[str, Any] = {"address": host} | ({"port": int(port)} if port else {})
    if scheme not in ("winrm", "winrm+http"):
        return "ssh", options | ({"config": config} if config else {})
    user, at, options["address"] = host.rpartition("@")
    login = {"user": user, "password": f"${{{LOGIN_BY}}}"} if at else {}
    return "windows", {
        **options,
        **login,
        **dict(parse_qsl(query)),
        **({} if scheme == "winrm" else {"tls": False}),
    }


def endpoints(farm: str) -> list[str]:
    """Return the endpoints of the farm.yaml for these hosts."""
    return list(YAML(typ="safe").load(farm)["endpoints"])


def _discover_host(kind: str, options: dict[str, Any]) -> DiscoveredHost | str:
    """Return the facts of a host, or the reason why there are none."""
    try:
        if kind == "windows":
            return _windows(options)
        script = (packaged(__package__) / "linux.sh").read_text("utf-8")
        result = parse(ssh.run(ssh.Address.of(options), "exec /bin/sh", given=script, timeout_s=_ASKED_S))
        result.options, result.inventory = options, _looked_up(options, result)
    except CollectorError as error:
        return str(error)
    return result


def _looked_up(options: JsonObject, value: DiscoveredHost) -> JsonObject:
    """Return the collector's inventory of a host.

    A folder that the user may not read is replaced by its mount point.
    """
    try:
        return _inventory(options, {role: place for role, (place, _) in value.places.items()})
    except CollectorError:
        for role, (place, why) in value.places.items():
            above = [mount for mount in value.mounts.values() if place.startswith(mount.rstrip("/") + "/")]
            mount = max(above, key=len, default="/")
            value.places[role] = mount, f"{why}, in {place}, which this user may not see"
    return _inventory(options, {role: place for role, (place, _) in value.places.items()})


def _windows(options: dict[str, Any]) -> DiscoveredHost:
    """Return the facts of a Windows host. The folders of SQL Server's files are in the registry."""
    values, unfit = filled(options, os.environ, collector_kinds.kind("windows").public)
    if unfit:
        raise CollectorError(f"{options['address']}: {next(iter(unfit.values()))}")
    result = DiscoveredHost(options=options, kind="windows", inventory=_inventory(values, {}, "windows"))
    servers = result.inventory["sql_servers"]
    for server in servers[:1]:
        result.programs = ["sqlservr"]
        for role in ("log", "data", "tempdb"):
            if place := server.get(role):
                what = "has tempdb" if role == "tempdb" else f"makes the {role} of databases"
                result.places[f"sql.{role}"] = place, f"SQL Server ({server['instance']}) {what} there"
    maker = str(result.inventory.get("virtualisation") or "")
    if maker.startswith("Amazon EC2 "):
        result.machine = f"aws/{maker.removeprefix('Amazon EC2 ')}", "the firmware says so"
    if result.places:
        places = {role: place for role, (place, _) in result.places.items()}
        result.inventory = _inventory(values, places, "windows")
    _windows_cloud(result)
    return result


def _windows_cloud(value: DiscoveredHost) -> None:
    """Add machine, region and disk types of a Windows host in a cloud."""
    facts = value.inventory
    value.region = str(facts.get("region") or "")
    kind = str(facts.get("machine_type") or "")
    if kind.startswith(("Standard_", "Basic_")):
        named = f"azure/{kind.removeprefix('Standard_').lower()}"
        value.machine = named, f"Azure's metadata service says {kind}"
    elif kind and value.machine:
        value.machine = f"aws/{kind}", "AWS's metadata service says so"
    for device, disk in facts.get("disks", {}).items():
        kind, gib = disk.get("cloud_type"), disk.get("cloud_size_gib")
        if kind and (profile := _azure_disk(kind, float(gib))):
            value.profiles[device] = profile, f"Azure: {kind}, {gib} GiB"


def _inventory(options: JsonObject, places: Mapping[str, str], kind: str = "ssh") -> JsonObject:
    collector = collector_kinds.kind(kind).connect([Watch("host", "", disks=places, options=options)])
    try:
        collector.read()
        return collector.inventory()["host"]
    finally:
        collector.close()


# ---- the text of farm.yaml ------------------------------------------------------------------------------


def _farm(value: Sequence[DiscoveredHost]) -> Iterator[str]:
    yield "# Found on the hosts. What is guessed has a comment: from what. Correct what is wrong.\n\n"
    yield "name: my-farm\n"
    yield "environment: test     # test, staging or production; scenarios that write refuse production\n\n"
    yield "endpoints:\n"
    chosen: dict[str, DiscoveredHost] = {}
    for one in value:
        for known in (PROGRAMS[program] for program in one.programs):
            if known.url and known.tier not in chosen:
                chosen[known.tier] = one
                url = known.url.format(host=one.host)
                yield f"  # {known.product} runs on {one.host}. Guesses: port, user and database.\n"
                yield f"  {known.tier}: {{url: {json.dumps(url)}}}\n"
    if not chosen:
        yield "  # No database was seen on the hosts.\n"
        yield '  sql: {url: "postgresql://loader:${SQL_PASSWORD}@sql1.example:5432/loadtest"}\n'
    yield "\ntiers:\n"
    tiers: dict[str, list[DiscoveredHost]] = {}
    for one in value:
        for tier in one.tiers:
            tiers.setdefault(tier, []).append(one)
    for tier, hosts in tiers.items():
        yield f"  {tier}:\n    hosts:\n"
        for one in hosts:
            yield from _host(one, tier, tier if chosen.get(tier) is one else None)


def _host(one: DiscoveredHost, tier: str, endpoint: str | None) -> Iterator[str]:
    """Yield the lines of farm.yaml for a host in one tier.

    ``endpoint`` is the endpoint of the host's server, if the file has one.
    """
    programs = [name for name in one.programs if PROGRAMS[name].tier == tier]
    first = tier == one.tiers[0]
    name_here = one.name if first else f"{one.name}-{tier}"
    facts = one.inventory
    lines = [facts.get("os"), f"{facts.get('cores')} cores", bytes_(float(facts["memory_bytes"]))]
    lines += [facts.get("cpu_model"), facts.get("virtualisation"), one.region and f"region {one.region}"]
    yield f"      {json.dumps(name_here)}:\n        # {'; '.join(str(part) for part in lines if part)}\n"
    servers = ", ".join(PROGRAMS[name].product for name in programs) or "none of a known kind"
    yield f"        # Guess of the tier from the servers that run there: {servers}\n"
    if len(one.tiers) > 1:
        yield f"        # The same machine serves {', '.join(one.tiers)}: each tier has its own processes.\n"
    if one.machine:
        name, why = one.machine
        mark = "" if name in catalogue() else "# not in the catalogue: "
        yield f"        {mark}machine: {name}     # {why}\n"
    yield "        collect:\n"
    named = [PROGRAMS[name].process for name in (programs if len(one.tiers) > 1 else programs[:1])]
    process = {"process": named[0] if len(named) == 1 else named} if named else {}
    yield f"          - {_flow({'kind': one.kind, **one.options, **process})}\n"
    if endpoint and programs and (kind := PROGRAMS[programs[0]].kind):
        yield f"          - {_flow({'kind': kind, 'endpoint': endpoint})}\n"
    roles = facts.get("roles", {})
    places = {key: found for key, found in one.places.items() if key.partition(".")[0] == tier}
    if places:
        yield "        disks:\n"
    for key, (place, why) in places.items():
        role = key.partition(".")[2]
        device = roles.get(key, {}).get("device") or ""
        profile, of_cloud = one.profiles.get(device, ("", ""))
        limit = {"profile": profile} if profile in catalogue() else {"limits": "unknown"}
        about = [f"guess: {why}", _disk(device, one) if device else "", of_cloud]
        where = {"device": device} if one.kind == "windows" and device else {"path": place}
        yield f"          {role}: {_flow({**where, **limit})}     # {'; '.join(filter(None, about))}\n"
    used = {each.get("device") for each in roles.values()}
    for device in facts.get("disks", {}) if first else ():
        if device not in used:
            yield f"        # also there: {_disk(device, one)}\n"


def _flow(options: JsonObject) -> str:
    """Return a mapping on one line: ``{kind: ssh, address: "sql1"}``."""
    return f"{{{', '.join(f'{key}: {json.dumps(value)}' for key, value in options.items())}}}"


def _disk(device: str, one: DiscoveredHost) -> str:
    """Return a disk in words: ``sdb, 256 GiB, Virtual Disk, mounted at /data``."""
    facts = one.inventory.get("disks", {}).get(device, {})
    size = facts.get("size_bytes")
    lines = [device, f"{size / _GIB:g} GiB" if size else None, facts.get("model")]
    lines.append(f"mounted at {one.mounts[device]}" if device in one.mounts else None)
    return ", ".join(str(part) for part in lines if part)
