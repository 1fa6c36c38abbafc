"""The package that ``init --scenario NAME`` writes: ``skeleton/`` with the name in place of my_app."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

from pinchpoint.base.errors import InputError

SKELETON = Path(__file__).with_name("skeleton")
_NAME = re.compile(r"[a-z][a-z0-9_]{1,30}")
_FILES = (
    "pyproject.toml",
    "README.md",
    "farm.yaml",
    "plan.yaml",
    "my_app/__init__.py",
    "my_app/scenario.py",
    "my_app/collector.py",
)


def package(name: str) -> dict[str, str]:
    """Path -> content of a package with a scenario and a collector of that name. Raises InputError."""
    from pinchpoint_collectors import registry  # noqa: PLC0415 -- a plain init needs no registry
    from pinchpoint_scenarios.registry import SCENARIOS  # noqa: PLC0415 -- likewise

    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise InputError(
            f"--scenario: found {name!r}; allowed: a Python package's name of 2 to 31 small letters, "
            "digits and _, such as my_app"
        )
    if name in SCENARIOS or name in registry.names():
        raise InputError(f"--scenario: {name!r} is the name of a scenario or collector already; give another")
    class_name = "".join(part.capitalize() for part in name.split("_")) or name
    return {
        path.replace("my_app", name): (SKELETON / path)
        .read_text(encoding="utf-8")
        .replace("MyApp", class_name)
        .replace("my_app", name)
        for path in _FILES
    }
