"""The templates of ``pinchpoint init``: YAML files of this package, a folder for each template.

A template has a plan.yaml, whose first line is a comment that says what the template is, and a farm.yaml or
several farms by other names. A further template is a further folder.
"""

from __future__ import annotations

from importlib.resources import files as packaged

from pinchpoint.base.errors import InputError
from pinchpoint.plan.problems import unknown

_PLAN = "plan.yaml"
_ROOT = packaged(__package__)


def names() -> list[str]:
    """Every template, by name."""
    return sorted(folder.name for folder in _ROOT.iterdir() if (folder / _PLAN).is_file())


def summary(name: str) -> str:
    """A template in one line."""
    return (_ROOT / name / _PLAN).read_text("utf-8").partition("\n")[0].removeprefix("# ")


def files(name: str) -> dict[str, str]:
    """A template's files by name, the farms first. Raises ``InputError`` where there is no such template."""
    if name not in names():
        raise InputError(f"--template: {unknown('template', name, names())}")
    result = {each.name: each.read_text("utf-8") for each in (_ROOT / name).iterdir()}
    return {each: result[each] for each in sorted(result, key=lambda each: (each == _PLAN, each))}
