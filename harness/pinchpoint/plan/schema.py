"""Makes the JSON Schemas of farm.yaml and plan.yaml for editors, from the models that read these files.

A schema contains names, forms and units. ``pinchpoint check`` finds problems that depend on several fields or
on both files.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from pinchpoint.plan.embedded import BuiltDisk
from pinchpoint.plan.farm import Collect, FarmDisk, FarmFile, FarmHost
from pinchpoint.plan.hosts import usable_kind
from pinchpoint.plan.locustfile import SUFFIX, LocustfileParams
from pinchpoint.plan.metrics import OPERATION_METRICS, SAMPLE_METRICS, SERVER_FIGURES
from pinchpoint.plan.plan import Objective, Plan, ScenarioPlan, ServerObjective, StopRule
from pinchpoint.plan.record import StrictRecord
from pinchpoint_collectors import registry as collectors
from pinchpoint_infra.catalogue import catalogue
from pinchpoint_scenarios.registry import SCENARIOS

FILES: Mapping[str, type[StrictRecord]] = {"farm": FarmFile, "plan": Plan}
DIALECT = "https://json-schema.org/draft/2020-12/schema"

_OF_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_OF_PYDANTIC = ("gt", "ge", "lt", "le")
"""Keywords that pydantic writes for a number's bounds if the value has another form in the file."""


def schema(kind: str) -> dict[str, Any]:
    """The JSON Schema of ``farm`` or ``plan``."""
    made = FILES[kind].model_json_schema(by_alias=True, schema_generator=_InFiles)
    _tidy(made)
    return {"$schema": DIALECT, "title": f"Pinchpoint {kind}.yaml", **made}


def meanings(model: type[BaseModel]) -> dict[str, str]:
    """Field -> its description, from the docstring of the class, else of its nearest base class."""
    result: dict[str, str] = {}
    for base in model.__mro__:
        text = inspect.cleandoc(base.__doc__ or "").partition("Attributes:\n")[2]
        for match in re.finditer(r"^    (\w[\w, ]*): (.*(?:\n {8}.*)*)", text, re.MULTILINE):
            for name in match[1].split(", "):
                result.setdefault(name, re.sub(r"\s+", " ", match[2]))
    return result


class _InFiles(GenerateJsonSchema):
    """Generates schemas of the file form: values have units and null is not allowed."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """The schema with its default, if the default is a plain value; other defaults are in base units."""
        made, default = self.generate_inner(schema["schema"]), schema.get("default")
        plain = isinstance(default, bool | int | str) and "type" in made and default != ""
        return {**made, "default": default} if plain else made

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 -- pydantic's signature
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """The schema of a model with the descriptions of its docstring, allowed names, and its short form."""
        model = schema["cls"]
        made = super().model_schema(schema)
        made.pop("title", None)
        made["description"] = _plain((inspect.getdoc(model) or "").partition("\n\nAttributes:")[0])
        fields = made.get("properties", {})
        answer = meanings(model)
        for name, field in model.model_fields.items():
            written = fields[field.alias or name]
            if name in answer:
                written["description"] = _plain(answer[name])
            if names := _NAMES.get((model, name)):
                written["enum"] = sorted(names())
        if model in _MORE:
            made |= _MORE[model](self)
        short = getattr(model, "short_form", None)
        return {"anyOf": [dict(short), made]} if short else made

    def params(self, model: type[BaseModel]) -> JsonSchemaValue:
        """The schema of a scenario's parameters; its definitions are added to this schema's definitions."""
        return self.generate_inner(model.__pydantic_core_schema__)


def _plain(text: str) -> str:
    text = re.sub(r"\s+", " ", text).replace("``", "`").strip()
    return text[:1].upper() + text[1:]


def _of_catalogue(kind: str) -> Callable[[], Iterable[str]]:
    return lambda: [entry.name for entry in catalogue().values() if entry.kind == kind]


_NAMES: Mapping[tuple[type[BaseModel], str], Callable[[], Iterable[str]]] = {
    (FarmDisk, "profile"): _of_catalogue("disk"),
    (BuiltDisk, "profile"): _of_catalogue("disk"),
    (FarmHost, "machine"): _of_catalogue("machine"),
    (Collect, "kind"): collectors.names,
    (ServerObjective, "metric"): lambda: SAMPLE_METRICS,
    (StopRule, "metric"): lambda: (*OPERATION_METRICS, *SAMPLE_METRICS),
}
"""Fields whose allowed values are the names of a catalogue or registry."""


def _scenarios(files: _InFiles) -> dict[str, Any]:
    """The schema for ``use`` and ``params``: each scenario, and a locustfile, has parameters of its own."""
    models = {use: scenario.params_model for use, scenario in SCENARIOS.usable()}
    forms: list[tuple[dict[str, Any], type[BaseModel]]] = [
        ({"const": use}, model) for use, model in models.items()
    ]
    locustfile = {"type": "string", "pattern": rf"\{SUFFIX}$"}
    forms.append((locustfile, LocustfileParams))
    return {
        "allOf": [
            {"properties": {"use": {"anyOf": [{"enum": list(models)}, locustfile]}}},
            *(
                {
                    "if": {"properties": {"use": form}, "required": ["use"]},
                    "then": {"properties": {"params": files.params(model)}},
                }
                for form, model in forms
            ),
        ]
    }


def _collectors(_: _InFiles) -> dict[str, Any]:
    """The schema for the options of each kind of collector."""
    options = {
        kind.name: sorted({"kind", "required", *kind.options})
        for kind in map(usable_kind, collectors.names())
        if kind
    }
    return {
        "allOf": [
            {
                "if": {"properties": {"kind": {"const": name}}, "required": ["kind"]},
                "then": {"propertyNames": {"enum": allowed}},
            }
            for name, allowed in options.items()
        ]
    }


def _one_figure(_: _InFiles) -> dict[str, Any]:
    figures = [field.alias for name, field in Objective.model_fields.items() if name != "scenario"]
    return {"oneOf": [{"required": [figure]} for figure in figures]}


def _one_figure_of_servers(_: _InFiles) -> dict[str, Any]:
    return {"oneOf": [{"required": [figure]} for figure in SERVER_FIGURES]}


def _somewhere(_: _InFiles) -> dict[str, Any]:
    return {"anyOf": [{"required": ["endpoints"]}, {"required": ["embedded"]}]}


_MORE: Mapping[type[BaseModel], Callable[[_InFiles], dict[str, Any]]] = {
    ScenarioPlan: _scenarios,
    Collect: _collectors,
    Objective: _one_figure,
    ServerObjective: _one_figure_of_servers,
    FarmFile: _somewhere,
}
"""Models with rules between their fields that a schema can express -> the function that makes the rules."""


def _tidy(schema: Any) -> None:
    """Remove number bounds from fields that are text with a unit in the file."""
    if isinstance(schema, list):
        for each in schema:
            _tidy(each)
        return
    if not isinstance(schema, dict):
        return
    of_numbers = () if schema.get("type") in ("number", "integer") else _OF_NUMBERS
    for key in (*_OF_PYDANTIC, *of_numbers):
        schema.pop(key, None)
    for key, inner in schema.items():
        if key in ("properties", "patternProperties", "$defs"):
            for each in inner.values():
                _tidy(each)
        elif key not in ("default", "enum", "const", "required"):
            _tidy(inner)
