"""Lists the templates of ``pinchpoint init``: a folder with YAML files for each template.

A template has a plan.yaml, whose first line is a comment that describes the template. It also has a
farm.yaml, or several farms with other names. A new template is a new folder.
"""

from __future__ import annotations

from importlib.resources import files as packaged

from pinchpoint.base.errors import InputError
from pinchpoint.plan.problems import unknown

_PLAN = "plan.yaml"
_ROOT = packaged(__package__)


def names() -> list[str]:
    """Return the names of all templates."""
    return sorted(folder.name for folder in _ROOT.iterdir() if (folder / _PLAN).is_file())


def summary(name: str) -> str:
    """Return the description of a template in one line."""
    return (_ROOT / name / _PLAN).read_text("utf-8").partition("\n")[0].removeprefix("# ")


def files(name: str) -> dict[str, str]:
    """Return file name -> content of a template, the farms first.

    Raises ``InputError`` for an unknown name.
    """
    if name not in names():
        raise InputError(f"--template: {unknown('template', name, names())}")
    result = {each.name: each.read_text("utf-8") for each in (_ROOT / name).iterdir()}
    return {each: result[each] for each in sorted(result, key=lambda each: (each == _PLAN, each))}
