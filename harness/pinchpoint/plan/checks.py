"""Checks farm.yaml and plan.yaml across fields: names must exist, and parts must fit together.

The checks read the content of the files, not the records, so that one invalid field does not hide other
problems.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from pinchpoint.base.units import seconds
from pinchpoint.plan.compare import check_compare, check_compared, disks_of
from pinchpoint.plan.document import YamlFile
from pinchpoint.plan.embedded import (
    EMBEDDED_ENDPOINTS,
    EMBEDDED_ROLES,
    GENERATOR,
    SERVED,
    SERVERS,
    SEVERAL,
    THROTTLED,
    built_servers,
)
from pinchpoint.plan.endpoints import Endpoints
from pinchpoint.plan.explain import explain
from pinchpoint.plan.hosts import check_catalogue, check_collectors, check_places
from pinchpoint.plan.load_model import Closed, Ramp, Steps
from pinchpoint.plan.locustfile import SUFFIX, LocustClasses, inspect, is_locustfile, scenario_class
from pinchpoint.plan.prices import check_prices
from pinchpoint.plan.problems import BadValue, Path, Problem, listed, quoted, unknown_at
from pinchpoint.plan.prove import check_prove
from pinchpoint.plan.record import resolved, with_places
from pinchpoint.plan.units import duration, rate
from pinchpoint.plan.urls import names_server
from pinchpoint_collectors.common.names import nearest_name
from pinchpoint_infra.catalogue import catalogue
from pinchpoint_infra.servers import Server
from pinchpoint_scenarios import registry as scenarios
from pinchpoint_scenarios.contract import FileParams, Scenario
from pinchpoint_scenarios.errors import ScenarioError

_WAYS = ("embedded", "endpoints")
"""The fields of farm.yaml that say where the farm's servers are."""


def check_farm(farm: YamlFile) -> Iterator[Problem]:
    """Problems of a farm.yaml that no single field shows."""
    yield from _check_embedded(farm)
    yield from check_prove(farm)
    yield from check_prices(farm)
    seen: dict[str, str] = {}
    for tier in farm.mapping("tiers"):
        for host in farm.mapping("tiers", tier, "hosts"):
            place: Path = ("tiers", tier, "hosts", host)
            if host in seen:
                yield Problem(
                    place,
                    f"a second host {host}, after the one of tier {seen[host]}",
                    f"give it a name of its own, such as {host}-{tier}; one machine may have many names",
                )
            seen[host] = tier
            yield from check_catalogue(farm, place)
            yield from check_collectors(farm, place)
            if tier in _embedded_tiers(farm):
                yield from _check_embedded_host(farm, tier, host)
            else:
                yield from check_places(farm, place)


def check_plan(plan: YamlFile) -> Iterator[Problem]:
    """Problems of a plan.yaml that no single field shows."""
    for name in plan.mapping("scenarios"):
        yield from _check_scenario(plan, name)
    names = plan.mapping("scenarios")
    objectives = plan.at("objectives")
    for position, objective in enumerate(objectives if isinstance(objectives, list) else []):
        answer = objective.get("scenario") if isinstance(objective, dict) else None
        if isinstance(answer, str) and answer not in names:
            yield unknown_at(("objectives", position, "scenario"), "scenario", answer, names)
    yield from _check_loads(plan)
    yield from check_compare(plan)
    steps = any(plan.at("scenarios", name, "load", "model") == "steps" for name in names)
    ends = steps or any(scenario.ends for scenario in _used(plan).values())
    if plan.at("phases", "measure", "until") == "done" and not ends:
        ending = [use for use, scenario in scenarios.SCENARIOS.usable() if scenario.ends]
        yield Problem(
            ("phases", "measure", "until"),
            "no scenario of this plan ends by itself",
            f"add one that does ({listed(ending)}, or any with its load in steps), "
            "or measure for a fixed time (measure: 10m)",
        )


def check_together(farm: YamlFile, plan: YamlFile) -> Iterator[Problem]:
    """Problems of a plan on this farm, such as endpoints that its scenarios need and the farm lacks."""
    if _says_nothing(farm) or _tiers_unclear(farm):
        return  # a problem of the farm, which is reported there and would cause every problem here
    offered = set(farm.mapping("endpoints")) & set(Endpoints.model_fields)
    offered |= {EMBEDDED_ENDPOINTS[tier] for tier in _embedded_tiers(farm)}
    misspelt = {
        nearest_name(name, Endpoints.model_fields) for name in set(farm.mapping("endpoints")) - offered
    }
    for name, scenario in _used(plan).items():
        native = plan.at("scenarios", name, "params", "drive") == "native"  # the farm's own crawler
        for endpoint in sorted((_NATIVE_NEEDS if native else scenario.needs) - offered - misspelt):
            yield Problem(
                ("scenarios", name, "use"),
                f"{scenario.use} needs the endpoint {endpoint}, which {farm.file} lacks",
                f"add endpoints.{endpoint} there{_or_tier(farm, endpoint)}",
            )
        if native:
            # The farm's own crawler decides how many documents it crawls at once; one user starts and watches
            # the crawl.
            load = plan.at("scenarios", name, "load")
            if isinstance(load, dict) and not (load.get("model") == "closed" and load.get("users") == 1):
                yield Problem(
                    ("scenarios", name, "load"),
                    "a load for a crawl that the farm itself makes, at its own pace",
                    "needed: load: {model: closed, users: 1}",
                )
        elif scenario.use == "full-crawl":
            yield from _check_sources(farm, plan, name, offered)
    yield from _check_endpoints(plan, farm.file, offered)
    yield from _check_rules(farm, plan)
    yield from check_compared(farm, plan)


def _check_embedded(farm: YamlFile) -> Iterator[Problem]:
    if _says_nothing(farm) and not any(nearest_name(name, _WAYS) for name in farm.data):
        yield Problem(
            (),
            "neither embedded nor endpoints",
            "needed: endpoints, where a real farm's servers are; or embedded, to have a farm started here; "
            "or tiers alone, to probe the disks of their hosts",
            line=farm.line(()),
        )
    for tier in _embedded_tiers(farm):
        endpoint = EMBEDDED_ENDPOINTS[tier]
        if endpoint in farm.mapping("endpoints"):
            yield Problem(
                ("endpoints", endpoint),
                f"the embedded tier {tier} is this endpoint already",
                f"remove it here, or remove {tier} from embedded.tiers",
            )
    yield from _check_knobs(farm)


def _check_knobs(farm: YamlFile) -> Iterator[Problem]:
    """Problems of settings under ``embedded`` that name an unknown tier, server, disk or disk type."""
    tiers = _embedded_tiers(farm)
    names = {tier: list(dict.fromkeys((tier, *(one.name for one in _servers(farm, tier))))) for tier in tiers}
    disks = sorted(
        f"{name}.{role}" for tier in tiers for name in names[tier] for role in EMBEDDED_ROLES[tier]
    )
    served = [name for tier in SERVED if tier in tiers for name in names[tier]]
    far = [*served, *(tier for tier in ("files",) if tier in tiers)]
    allowed = {"disks": disks, "cpus": [*served, GENERATOR], "memory": served, "delays": far}
    allowed |= {"networks": served, "settings": [tier for tier in SERVERS if tier in tiers]}
    allowed |= {"throttle": [tier for tier in THROTTLED if tier in tiers]}
    allowed |= {"hosts": [tier for tier in SEVERAL if tier in tiers]}
    for knob, known in allowed.items():
        what = "disk" if knob == "disks" else "tier"
        for name in farm.mapping("embedded", knob):
            if name not in known:
                yield unknown_at(("embedded", knob, name), f"{what} of this farm:", name, known)
    disk_types = [entry.name for entry in catalogue().values() if entry.kind == "disk"]
    for name in farm.mapping("embedded", "disks"):
        here = ("embedded", "disks", name, "profile")
        profile = farm.at(*here)
        if isinstance(profile, str) and profile not in disk_types:
            yield unknown_at(here, "disk of the catalogue:", profile, disk_types)


def _check_embedded_host(farm: YamlFile, tier: str, host: str) -> Iterator[Problem]:
    place: Path = ("tiers", tier, "hosts", host)
    hosts = [server.host for server in _servers(farm, tier)]
    if host not in hosts:
        which = "the embedded tier's only host" if len(hosts) == 1 else "the embedded tier's hosts"
        more = f"; embedded.hosts: {{{tier}: {len(hosts) + 1}}} gives it another" if tier in SEVERAL else ""
        allowed = f"allowed: {listed(hosts)}, {which}{more}"
        yield Problem(place, f"unknown host {host}", allowed, nearest_name(host, hosts) or hosts[0])
    if "collect" in farm.mapping(*place):
        yield Problem(
            (*place, "collect"),
            "a collector for an embedded tier",
            "remove it: Pinchpoint watches what it starts",
        )
    roles = EMBEDDED_ROLES[tier]
    for role in farm.mapping(*place, "disks"):
        if role not in roles:
            yield unknown_at((*place, "disks", role), f"disk role of the embedded tier {tier}:", role, roles)
        for where in farm.mapping(*place, "disks", role).keys() & {"device", "path"}:
            yield Problem(
                (*place, "disks", role, where),
                "a place for an embedded disk",
                "remove it: Pinchpoint knows its own",
            )


def _check_scenario(plan: YamlFile, name: str) -> Iterator[Problem]:
    place: Path = ("scenarios", name)
    use = plan.at(*place, "use")
    if not isinstance(use, str):
        return  # validation of the record reports the error
    if is_locustfile(use):
        yield from _check_locustfile(plan, name)
    elif use not in scenarios.SCENARIOS:
        yield unknown_at((*place, "use"), "scenario", use, scenarios.SCENARIOS)
        return
    try:
        model = scenario_class(use).params_model
    except ScenarioError as error:
        yield Problem((*place, "use"), str(error))
        return
    params = with_places(model, plan.mapping(*place, "params"), plan.location.parent)
    try:
        validated = model.model_validate(params)
        if isinstance(validated, FileParams):
            validated.read_files()
    except ValidationError as error:
        yield from explain(error, model, params, (*place, "params"))
    except ScenarioError as error:
        yield Problem((*place, "params"), str(error))
    yield from _check_replay(plan, name)


def _check_sources(farm: YamlFile, plan: YamlFile, name: str, offered: set[str]) -> Iterator[Problem]:
    """Problems of a crawl's sources: an endpoint that the farm lacks, or no source at all."""
    from pinchpoint_scenarios.full_crawl.params import ENDPOINT_OF  # noqa: PLC0415 -- drivers take long

    place: Path = ("scenarios", name, "params", "sources")
    sources = plan.at(*place)
    places = sorted(set(ENDPOINT_OF.values()))
    if not sources and offered.isdisjoint(places):
        yield Problem(
            ("scenarios", name, "use"),
            f"{farm.file} has nothing to crawl",
            f"add endpoints.{' or endpoints.'.join(places)} there, or params.sources here",
        )
    for position, source in enumerate(sources if isinstance(sources, list) else []):
        if not isinstance(source, dict) or source.keys() & {"url", "path"}:
            continue
        key = "endpoint" if "endpoint" in source else "kind"
        wanted = source.get(key)
        if key == "kind":
            wanted = next((there for kind, there in ENDPOINT_OF.items() if kind == wanted), None)
        if isinstance(wanted, str) and wanted not in offered:
            instead = "a path" if source.get("kind") == "files" else "a url"
            yield Problem(
                (*place, position, key),
                f"the endpoint {wanted}, which {farm.file} lacks",
                f"add it there, or give the source {instead}; offered: {listed(sorted(offered))}",
                nearest_name(wanted, offered),
            )


def _says_nothing(farm: YamlFile) -> bool:
    return not any(farm.data.get(way) for way in (*_WAYS, "tiers"))


def _tiers_unclear(farm: YamlFile) -> bool:
    """Whether ``embedded.tiers`` is given and is not a list of known tiers."""
    tiers = farm.at("embedded", "tiers")
    return tiers is not None and not (
        isinstance(tiers, list)
        and all(isinstance(each, str) and each in EMBEDDED_ENDPOINTS for each in tiers)
    )


def _used(plan: YamlFile) -> dict[str, type[Scenario]]:
    """The scenario class of each scenario of the plan that names an existing one, by name in the plan."""
    result: dict[str, type[Scenario]] = {}
    for name in plan.mapping("scenarios"):
        use = plan.at("scenarios", name, "use")
        if isinstance(use, str) and use in scenarios.SCENARIOS:
            with suppress(ScenarioError):
                result[name] = scenarios.SCENARIOS[use]
    return result


def _embedded_tiers(farm: YamlFile) -> list[str]:
    tiers = farm.at("embedded", "tiers")
    return [tier for tier in EMBEDDED_ENDPOINTS if isinstance(tiers, list) and tier in tiers]


def _servers(farm: YamlFile, tier: str) -> tuple[Server, ...]:
    return built_servers(farm.at("embedded", "hosts"), tier)


def _or_tier(farm: YamlFile, endpoint: str) -> str:
    tiers = [tier for tier, name in EMBEDDED_ENDPOINTS.items() if name == endpoint]
    return f", or {tiers[0]} to embedded.tiers" if "embedded" in farm.data and tiers else ""


def _check_loads(plan: YamlFile) -> Iterator[Problem]:
    """Problems of steps that need an objective, and of stop rules for scenarios that the plan lacks."""
    names = plan.mapping("scenarios")
    aimed_at = [one.get("scenario") for one in _list(plan, "objectives")]
    for name in names:
        if plan.at("scenarios", name, "load", "until") == "objective" and name not in aimed_at:
            yield Problem(
                ("scenarios", name, "load", "until"),
                f"steps until an objective is missed, and {name} has none",
                f"add one to objectives ({{scenario: {name}, p95: 50ms}}), or write until: saturation",
            )
    for position, rule in enumerate(_list(plan, "stop_when")):
        answer = rule.get("scenario")
        if isinstance(answer, str) and answer not in names:
            yield unknown_at(("stop_when", position, "scenario"), "scenario", answer, names)
        elif rule.get("silent") == "operations":
            yield from _check_silence(plan, position, rule.get("for"), [answer] if answer else list(names))


def _check_silence(plan: YamlFile, position: int, given: object, names: list[Any]) -> Iterator[Problem]:
    """A problem if pauses between bursts, in which there is no load, would trigger a silence rule."""
    pauses_s = []
    for name in names:
        load = plan.mapping("scenarios", name, "load")
        try:
            if load.get("model") != "burst" or rate(load.get("base")):
                return
            pauses_s.append(duration(load.get("every")) - duration(load.get("for")))
            silent_s = duration(given)
        except BadValue:
            return  # validation of the record reports the error
    if pauses_s and silent_s <= min(pauses_s):
        yield Problem(
            ("stop_when", position, "for"),
            f"{listed(names)} pauses for {seconds(min(pauses_s))} between bursts, as base is 0",
            "needed: more than that, or base above 0",
        )


def _check_rules(farm: YamlFile, plan: YamlFile) -> Iterator[Problem]:
    """Problems of objectives and stop rules that name a host, tier or disk role that the farm lacks."""
    disks = disks_of(farm.data)
    roles = {role for tier in disks for role in disks[tier]}
    hosts = {host for tier in farm.mapping("tiers") for host in farm.mapping("tiers", tier, "hosts")}
    hosts |= {server.host for tier in _embedded_tiers(farm) for server in _servers(farm, tier)}
    named = (("tier", set(disks)), ("host", hosts), ("role", roles))
    places = (
        (part, position, one)
        for part in ("objectives", "stop_when")
        for position, one in enumerate(_list(plan, part))
    )
    for part, position, one in places:
        for field, allowed in named:
            answer = one.get(field)
            if isinstance(answer, str) and answer not in allowed:
                yield Problem(
                    (part, position, field),
                    f"{farm.file} has no {field} {answer}",
                    f"allowed: {listed(sorted(allowed))}" if allowed else f"add the {field} there",
                    nearest_name(answer, allowed),
                )


def _list(plan: YamlFile, key: str) -> list[dict[str, object]]:
    result = plan.at(key)
    return [one if isinstance(one, dict) else {} for one in result] if isinstance(result, list) else []


_NATIVE_NEEDS = frozenset({"crawler"})
"""The endpoints that a crawl by the farm's own crawler needs."""


_REPLAY = "sql-replay"


def _check_replay(plan: YamlFile, name: str) -> Iterator[Problem]:
    """Problems of a replay's load: sessions have their own pauses, so only a number of users is allowed."""
    if plan.at("scenarios", name, "use") != _REPLAY:
        return
    load = plan.at("scenarios", name, "load")
    if isinstance(load, dict) and (load.get("model") != "closed" or "think" in load):
        yield Problem(
            ("scenarios", name, "load"),
            "a load with a rate, steps or pauses of its own for a capture, which has its own",
            "needed: load: {model: closed, users: N}, N the sessions that are replayed at once",
        )


def _check_locustfile(plan: YamlFile, name: str) -> Iterator[Problem]:
    """Problems of a scenario that uses a locustfile, except those of its parameters' single fields."""
    place: Path = ("scenarios", name)
    yield from _check_locust_load(plan, place)
    use = str(plan.at(*place, "use"))
    path = resolved(FilePath(use), plan.location.parent)
    here = (*place, "use")
    if not use.endswith(SUFFIX) or not path.is_file():
        what = "no file" if use.endswith(SUFFIX) else "no scenario, and no .py file"
        yield Problem(
            here,
            f"{quoted(use)} is {what}",
            _where(path.parent),
            nearest_name(path.name, [found.name for found in path.parent.glob(f"*{SUFFIX}")]),
        )
        return
    try:
        result = inspect(path)
    except ScenarioError as error:
        yield Problem(here, f"{quoted(use)} cannot be used: {error}", "needed: a file that `locust -f` takes")
        return
    yield from _check_users(result, plan.mapping(*place, "params"), here, use)
    # If every class has a fixed count, no class is available for further users.
    fixed = [user.fixed_count for user in result.classes]
    field, users = _highest(plan.mapping(*place, "load"), plan.location.parent)
    if fixed and all(fixed) and sum(fixed) < users:
        yield Problem(
            (*place, "load", field),
            f"{users} users, and all classes of {quoted(use)} have a fixed_count, {sum(fixed)} in all",
            f"needed: {field}: {sum(fixed)}, or a class without fixed_count",
        )


def _check_endpoints(plan: YamlFile, farm: str, offered: Iterable[str]) -> Iterator[Problem]:
    """Problems of locustfiles in the plan whose endpoint the farm lacks.

    Args:
        plan: the plan's file.
        farm: name of the farm's file, for the message.
        offered: names of the endpoints that the farm has.
    """
    for name in plan.mapping("scenarios"):
        place: Path = ("scenarios", name, "params", "endpoint")
        use, wanted = plan.at("scenarios", name, "use"), plan.at(*place)
        if isinstance(use, str) and is_locustfile(use) and isinstance(wanted, str) and wanted not in offered:
            yield Problem(
                place,
                f"the endpoint {quoted(wanted)}, which {farm} lacks",
                f"add endpoints.{wanted} there, or give host; offered: {listed(sorted(offered))}",
                nearest_name(wanted, offered),
            )


def _check_locust_load(plan: YamlFile, place: Path) -> Iterator[Problem]:
    load = plan.mapping(*place, "load")
    model = load.get("model")
    of_users = model == "closed" or (
        model in {"ramp", "steps"} and any(isinstance(load.get(name), int) for name in ("from", "start"))
    )
    if isinstance(model, str) and not of_users:
        yield Problem(
            (*place, "load", "model"),
            f"the load model {quoted(model)} for a locustfile",
            "allowed: numbers of users (load: {model: closed, users: 8}; ramp and steps likewise); when they "
            "start their next task is for the file's wait_time to say",
        )
    if "think" in load:
        yield Problem(
            (*place, "load", "think"), "a think time for a locustfile", "remove it: the file has a wait_time"
        )


def _check_users(
    classes: LocustClasses, params: Mapping[str, Any], here: Path, use: str
) -> Iterator[Problem]:
    if not classes.classes:
        yield Problem(
            here, f"{quoted(use)} has no user class", "needed: a subclass of locust.User that is not abstract"
        )
    if params.keys() & {"endpoint", "host"}:
        return
    needed = "needed: params: {endpoint: NAME} of the farm, params: {host: URL}, or host in the class"
    over_http = [user for user in classes.classes if user.is_http]
    if homeless := [user.name for user in over_http if not user.host]:
        yield Problem(here, f"{listed(homeless)} in {quoted(use)} has no host", needed)
    elif astray := [user.name for user in over_http if user.host and not names_server(user.host)]:
        yield Problem(
            here,
            f"{listed(astray)} in {quoted(use)} has a host that can be no name, or with a wrong port",
            f"{needed}, such as http://web1:8080",
        )


def _highest(load: Mapping[str, Any], folder: FilePath) -> tuple[str, int]:
    """(name of the field, highest number of users) of a load; the number is 0 for a load without users."""
    with suppress(ValidationError):  # other checks report errors in the load's fields
        match load.get("model"):
            case "closed":
                return "users", Closed.from_file(load, folder).users
            case "ramp":
                return "to", Ramp.from_file(load, folder).to.users or 0
            case "steps":
                steps = Steps.from_file(load, folder)
                return "at_most", 0 if steps.start.users is None else int(steps.levels[-1])
    return "model", 0


def _where(folder: FilePath) -> str:
    names = sorted(path.name for path in folder.glob(f"*{SUFFIX}")) if folder.is_dir() else []
    there = f"; in that folder: {listed(names[:10])}" if names else ""
    return f"allowed: a scenario's name, or a locustfile's path from the plan's folder{there}"
