"""Reads farm.yaml and plan.yaml into a frozen farm and plan, or reports every mistake in them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from pinchpoint.base.errors import InputError
from pinchpoint.plan.checks import check_farm, check_plan, check_together
from pinchpoint.plan.document import YamlFile, read_document
from pinchpoint.plan.endpoints import expanded, filled, unset
from pinchpoint.plan.explain import explain
from pinchpoint.plan.farm import Farm, FarmFile
from pinchpoint.plan.hosts import public_options
from pinchpoint.plan.plan import Plan
from pinchpoint.plan.problems import Problem
from pinchpoint.plan.record import StrictRecord
from pinchpoint.plan.urls import variables
from pinchpoint_collectors.common.counts import counted
from pinchpoint_scenarios.contract import Endpoint

MAX_SENTENCES = 100
"""The highest number of problems that are shown for one file."""

R = TypeVar("R", bound=StrictRecord)


def load_farm(path: Path | str) -> Farm:
    """Read a farm.yaml. Raises ``InputError`` with all problems of the file."""
    document = read_document(Path(path))
    farm, problems = _read(document, FarmFile, check_farm)
    return _with_identity(_sound(farm, _sentences(document, problems)), document)


def load_plan(path: Path | str) -> Plan:
    """Read a plan.yaml by itself. Raises ``InputError`` with all problems of the file."""
    document = read_document(Path(path))
    plan, problems = _read(document, Plan, check_plan)
    return _sound(plan, _sentences(document, problems))


def load_as(model: type[R], path: Path | str) -> R:
    """Read a file that contains one record. Raises ``InputError`` with all problems of the file."""
    document = read_document(Path(path))
    record, problems = _read(document, model, lambda _: ())
    return _sound(record, _sentences(document, problems))


def load(farm_path: Path | str, plan_path: Path | str) -> tuple[Farm, Plan]:
    """Read both files and check that they fit each other.

    Raises ``InputError`` with all problems of both files, one line each: ``FILE:LINE: field: what was found;
    what is allowed; nearest name``.
    """
    farm_document, plan_document = read_document(Path(farm_path)), read_document(Path(plan_path))
    _check_kinds(farm_document, plan_document)
    farm, farm_problems = _read(farm_document, FarmFile, check_farm)
    plan, plan_problems = _read(plan_document, Plan, check_plan)
    if farm_document.readable and plan_document.readable:
        plan_problems += check_together(farm_document, plan_document)
    if farm_problems or plan_problems:  # otherwise ``expand_all`` reports unset variables
        farm_problems += _unset_variables(farm_document, os.environ)
    sentences = _sentences(farm_document, farm_problems) + _sentences(plan_document, plan_problems)
    return _with_identity(_sound(farm, sentences), farm_document), _sound(plan, sentences)


def _check_kinds(farm: YamlFile, plan: YamlFile) -> None:
    """Check that the two files are not swapped. Raises ``InputError`` with one sentence."""
    if kind_of(farm) == "plan" and kind_of(plan) == "farm":
        raise InputError(f"{farm.file} and {plan.file} are swapped; give {farm.file} --farm {plan.file}")
    for document, wanted, other in ((farm, "farm", "plan"), (plan, "plan", "farm")):
        if kind_of(document) == other:
            raise InputError(
                f"{document.file}: is a {other}, and a {wanted} is needed here; give {wanted}.yaml"
            )


def kind_of(document: YamlFile) -> str | None:
    """``plan`` or ``farm``, as the top-level fields of a file show; None if they show neither or both."""
    fields = document.mapping().keys()
    is_plan, is_farm = bool(fields & _OF_PLAN), bool(fields & _OF_FARM)
    return None if is_plan == is_farm else "plan" if is_plan else "farm"


_OF_PLAN, _OF_FARM = {"scenarios", "phases"}, {"endpoints", "embedded", "tiers"}
"""Fields that only a plan has, and fields that only a farm has."""


def expand_all(farm: Farm, environ: Mapping[str, str] = os.environ) -> dict[str, Endpoint]:
    """Every endpoint of the farm with its ``${ENV}`` variables replaced.

    Raises ``InputError`` with file, line and name of every variable that is not set, in an endpoint or in an
    option of a collector.
    """
    endpoints: dict[str, Endpoint] = {}
    problems: list[Problem] = []
    for name, spec in farm.endpoints.named().items():
        endpoints[name], unfit = expanded(name, spec.given, environ)
        for key, why in unfit.items():
            in_file = type(spec).model_fields[key].alias or key
            problems.append(Problem(("endpoints", name, in_file), why.found, why.allowed, why.nearest))
    problems += _unset_options(farm, environ)
    if problems:
        raise InputError(*_sentences(read_document(_shortest(farm.identity)), problems))
    return endpoints


def _unset_variables(farm: YamlFile, environ: Mapping[str, str]) -> Iterator[Problem]:
    """Each variable that is not set; the file may have other problems."""
    for path in farm.lines:
        text = farm.at(*path) if path[:1] == ("endpoints",) or "collect" in path else None
        for name in variables(text) if isinstance(text, str) else ():
            if name not in environ:
                yield Problem(path, *unset(name))


def _unset_options(farm: Farm, environ: Mapping[str, str]) -> Iterator[Problem]:
    for tier, declared in farm.tiers.items():
        for name, host in declared.hosts.items():
            for position, collect in enumerate(host.collect):
                for key, why in filled(collect.options, environ, public_options(collect.kind))[1].items():
                    place = ("tiers", tier, "hosts", name, "collect", position, key)
                    yield Problem(place, why.found, why.allowed, why.nearest)


def _read(
    document: YamlFile, model: type[R], check: Callable[[YamlFile], Iterable[Problem]]
) -> tuple[R | None, list[Problem]]:
    problems = list(document.problems)
    record = None
    if document.readable:
        try:
            record = model.from_file(document.data, document.location.parent)
        except ValidationError as error:
            problems += explain(error, model, document.data)
        problems += check(document)
    return record, problems


def _sentences(document: YamlFile, problems: Iterable[Problem]) -> list[str]:
    """The messages of the problems, in the order of the file; for each field only its first problem.

    A missing field inside a value of the wrong type is left out.
    """
    first: dict[object, Problem] = {}
    for problem in problems:
        key = problem.path or (problem.found, problem.line)
        first.setdefault(key, problem)
    unfit = {one.path for one in first.values() if not isinstance(document.at(*one.path), Mapping)}
    causes = [
        one
        for one in first.values()
        if one not in document.problems or not any(one.path[:at] in unfit for at in range(1, len(one.path)))
    ]
    ordered = sorted(causes, key=lambda problem: problem.line or document.line(problem.path) or 0)
    sentences = [document.sentence(problem) for problem in ordered[:MAX_SENTENCES]]
    left = len(ordered) - len(sentences)
    return [*sentences, f"{document.file}: {counted(left, 'more problem')}, not shown"] if left else sentences


def _sound(record: R | None, sentences: list[str]) -> R:
    if record is None or sentences:
        raise InputError(*sentences)
    return record


def _with_identity(farm: FarmFile, document: YamlFile) -> Farm:
    return Farm.from_json(farm.to_json() | {"identity": str(document.location)})


def _shortest(path: Path) -> Path:
    """The path relative to the current folder if it lies below that folder, else the path itself."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
