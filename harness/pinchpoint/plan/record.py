"""Defines the base class of all records of farm.yaml and plan.yaml: strict, frozen, in file and JSON form.

In a *file* a field has the file's name and a value with its unit (``rate: 200/s``); in a record and in the
manifest the field has the record's name and base units (``rate_per_s: 200.0``). The same model validates
both: reading a file passes a ``FileContext``, reading JSON passes none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationInfo, WithJsonSchema

from pinchpoint.base.objects import JsonObject
from pinchpoint.base.redact import redacted_value, shown
from pinchpoint.plan import units
from pinchpoint.plan.problems import BadValue, quoted
from pinchpoint_scenarios.contract import FileParams, Params


@dataclass(frozen=True, slots=True)
class FileContext:
    """Validation context that marks the data as read from a file.

    Attributes:
        directory: the folder of the file; relative paths in the file start there.
    """

    directory: Path


class StrictRecord(BaseModel):
    """Base class of every record: unknown fields are errors, values are never converted and never change.

    Attributes:
        hides_texts: whether texts are secrets unless their type says that they may be shown (``Public``,
            ``Url``, a ``Literal``); a field that is added later is then a secret too.
        short_form: JSON Schema of a short form that a file may use instead of the mapping, such as a
            duration.
    """

    hides_texts: ClassVar[bool] = False
    short_form: ClassVar[JsonObject | None] = None

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        validate_by_name=True,
        validate_by_alias=False,
        defer_build=True,
    )

    @classmethod
    def from_file(cls, data: object, directory: Path) -> Self:
        """The record of a YAML file's data. Raises ``pydantic.ValidationError``."""
        return cls.model_validate(data, context=FileContext(directory), by_alias=True, by_name=False)

    @classmethod
    def from_json(cls, data: object) -> Self:
        """The record of data from ``to_json``. Raises ``pydantic.ValidationError``."""
        return cls.model_validate(data, by_name=True, by_alias=False)

    def to_json(self) -> dict[str, Any]:
        """The record as JSON data in base units, without fields that are not set."""
        return self.model_dump(mode="json", by_alias=False, exclude_none=True)

    def shown(self) -> dict[str, Any]:
        """The record as JSON data, with secrets replaced."""
        return {name: self._shown(name, value) for name, value in self.to_json().items()}

    def _shown(self, name: str, value: Any) -> Any:
        if self.hides_texts and name not in type(self).model_computed_fields:
            return shown(field_type(type(self), name), value)
        return _without_secrets(getattr(self, name, value), value)


def field_type(model: type[BaseModel], name: str) -> Any:
    """The type of a field with its annotations; ``object`` for an unknown field, which is never shown."""
    field = model.model_fields.get(name)
    if field is None:
        return object
    return Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation


def _without_secrets(value: object, written: Any) -> Any:
    """The JSON ``written`` of a value, with the secrets of every record in the value replaced."""
    if isinstance(value, StrictRecord):
        return value.shown()
    if isinstance(value, Mapping) and isinstance(written, Mapping):
        by_name = {str(key): item for key, item in value.items()}
        if by_name.keys() >= written.keys() and any(
            isinstance(item, StrictRecord) for item in by_name.values()
        ):
            return {key: _without_secrets(by_name[key], item) for key, item in written.items()}
    elif isinstance(value, list | tuple) and any(isinstance(item, StrictRecord) for item in value):
        return [_without_secrets(item, there) for item, there in zip(value, written, strict=True)]
    return redacted_value(written)


def in_file(parse: Callable[[Any], Any], form: JsonObject) -> BeforeValidator:
    """A validator that applies ``parse`` to values from a file and leaves values from JSON as they are.

    ``form`` is the JSON Schema of the values that ``parse`` accepts.
    """

    def convert(value: Any, info: ValidationInfo) -> Any:
        return parse(value) if isinstance(info.context, FileContext) else value

    return BeforeValidator(convert, json_schema_input_type=Annotated[Any, WithJsonSchema(dict(form))])


Seconds = Annotated[float, in_file(units.duration, units.DURATION_FORM)]
Bytes = Annotated[int, in_file(units.size, units.SIZE_FORM)]
PerSecond = Annotated[float, in_file(units.rate, units.RATE_FORM)]
BytesPerSecond = Annotated[float, in_file(units.byte_rate, units.BYTE_RATE_FORM)]
Ratio = Annotated[float, in_file(units.ratio, units.RATIO_FORM)]


def _iops(value: object) -> object:
    """I/Os per second of ``500/s`` or ``500``."""
    return units.rate(value) if isinstance(value, str) else value


_IOPS_FORM = {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, units.RATE_FORM]}
Iops = Annotated[float, in_file(_iops, _IOPS_FORM)]

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,39}")
_NAME_FORM = {"type": "string", "pattern": f"^{_NAME.pattern}$"}


def _name(value: object) -> str:
    if isinstance(value, str) and _NAME.fullmatch(value):
        return value
    if not isinstance(value, str):
        raise BadValue(f"found {units.found(value)}", "allowed: text; put a number in quotes")
    raise BadValue(
        f"the name {quoted(value)}", "allowed: 1 to 40 letters, digits, '_' and '-', not beginning with '-'"
    )


Name = Annotated[
    str, BeforeValidator(_name, json_schema_input_type=Annotated[str, WithJsonSchema(_NAME_FORM)])
]
"""A name in farm.yaml or plan.yaml, limited because schemas, files and hosts are named after it."""


def _path(value: object, info: ValidationInfo) -> Path:
    if isinstance(value, Path):
        return value
    if not isinstance(value, str) or not value or "\0" in value:
        raise BadValue(f"found {units.found(value)}", "allowed: a path")
    path = Path(value)
    return resolved(path, info.context.directory) if isinstance(info.context, FileContext) else path


def resolved(path: Path, directory: Path) -> Path:
    """The absolute path: ``~`` is the user's home, and a relative path starts in ``directory``."""
    try:
        return directory / path.expanduser()
    except RuntimeError as error:
        raise BadValue(
            f"the path {quoted(str(path))} begins with no known user", "allowed: a path"
        ) from error


def with_places(model: type[Params], params: JsonObject, directory: Path) -> JsonObject:
    """A scenario's parameters with every relative path resolved relative to ``directory``."""
    return model.placed(params, directory) if issubclass(model, FileParams) else params


FilePath = Annotated[Path, BeforeValidator(_path, json_schema_input_type=str)]
"""A path; a relative path in a file starts in the folder of that file."""


def only_one(values: Mapping[str, object]) -> None:
    """Raise ``BadValue`` when more than one of ``values`` (name in the file -> value) is set."""
    given = [name for name, value in values.items() if value is not None]
    if len(given) > 1:
        raise BadValue(f"{' and '.join(given)} are given together", "allowed: one of them")
