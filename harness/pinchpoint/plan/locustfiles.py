"""What a plan may say of a plain locustfile (``use: ./my_locustfile.py``), and what the file must hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from pinchpoint.base.addresses import names_server
from pinchpoint.plan.document import Document
from pinchpoint.plan.load_model import Closed, Ramp, Steps
from pinchpoint.plan.locustfile import SUFFIX, Found, inspect, is_locustfile
from pinchpoint.plan.problems import Path, Problem, listed, nearest, quoted
from pinchpoint.plan.record import resolved
from pinchpoint_scenarios.errors import ScenarioError


def check_locustfile(plan: Document, name: str) -> Iterator[Problem]:
    """What is wrong with a scenario that uses a locustfile, beyond the fields of its parameters."""
    place: Path = ("scenarios", name)
    yield from _check_load(plan, place)
    use = str(plan.at(*place, "use"))
    path = resolved(FilePath(use), plan.location.parent)
    here = (*place, "use")
    if not use.endswith(SUFFIX) or not path.is_file():
        what = "no file" if use.endswith(SUFFIX) else "no scenario, and no .py file"
        yield Problem(here, f"{quoted(use)} is {what}", _where(path.parent), _similar(path))
        return
    try:
        found = inspect(path)
    except ScenarioError as error:
        yield Problem(here, f"{quoted(use)} cannot be used: {error}", "needed: a file that `locust -f` takes")
        return
    yield from _check_users(found, plan.mapping(*place, "params"), here, use)
    yield from _check_fixed(found, plan, place, use)


def check_endpoints(plan: Document, farm: str, offered: Iterable[str]) -> Iterator[Problem]:
    """Endpoints that the plan's locustfiles are given and the farm lacks.

    Args:
        plan: the plan.
        farm: the farm's file, for the message.
        offered: the endpoints that it has.
    """
    for name in plan.mapping("scenarios"):
        place: Path = ("scenarios", name, "params", "endpoint")
        use, wanted = plan.at("scenarios", name, "use"), plan.at(*place)
        if isinstance(use, str) and is_locustfile(use) and isinstance(wanted, str) and wanted not in offered:
            yield Problem(
                place,
                f"the endpoint {quoted(wanted)}, which {farm} lacks",
                f"add endpoints.{wanted} there, or give host; offered: {listed(sorted(offered))}",
                nearest(wanted, offered),
            )


def _check_load(plan: Document, place: Path) -> Iterator[Problem]:
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


def _check_users(found: Found, params: Mapping[str, Any], here: Path, use: str) -> Iterator[Problem]:
    if not found.classes:
        yield Problem(
            here, f"{quoted(use)} has no user class", "needed: a subclass of locust.User that is not abstract"
        )
    if params.keys() & {"endpoint", "host"}:
        return
    needed = "needed: params: {endpoint: NAME} of the farm, params: {host: URL}, or host in the class"
    over_http = [user for user in found.classes if user.is_http]
    if homeless := [user.name for user in over_http if not user.host]:
        yield Problem(here, f"{listed(homeless)} in {quoted(use)} has no host", needed)
    elif astray := [user.name for user in over_http if user.host and not names_server(user.host)]:
        yield Problem(
            here,
            f"{listed(astray)} in {quoted(use)} has a host that can be no name, or with a wrong port",
            f"{needed}, such as http://web1:8080",
        )


def _check_fixed(found: Found, plan: Document, place: Path, use: str) -> Iterator[Problem]:
    """Where every class has a fixed count, nobody is left to make the other users of."""
    fixed = [user.fixed_count for user in found.classes]
    field, users = _highest(plan.mapping(*place, "load"), plan.location.parent)
    if fixed and all(fixed) and sum(fixed) < users:
        yield Problem(
            (*place, "load", field),
            f"{users} users, and all classes of {quoted(use)} have a fixed_count, {sum(fixed)} in all",
            f"needed: {field}: {sum(fixed)}, or a class without fixed_count",
        )


def _highest(load: Mapping[str, Any], folder: FilePath) -> tuple[str, int]:
    """How many users a load reaches, and the field that says so; 0 where it is not of users."""
    with suppress(ValidationError):  # what is wrong with its fields is found where they are read
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


def _similar(path: FilePath) -> str | None:
    return nearest(path.name, [found.name for found in path.parent.glob(f"*{SUFFIX}")])
