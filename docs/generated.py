"""Makes the reference pages from the code, and puts recorded answers of commands into the guides.

ProperDocs calls ``on_files`` and ``on_page_markdown``; ``make docs`` runs it.
"""

from __future__ import annotations

import inspect
import re
import types
import typing
from pathlib import Path
from typing import Any

import click
from properdocs.config.defaults import ProperDocsConfig
from properdocs.structure.files import File, Files
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from pinchpoint import cli
from pinchpoint.base.glossary import TERMS
from pinchpoint.plan import record
from pinchpoint.plan.farm import FarmFile
from pinchpoint.plan.plan import Plan
from pinchpoint.plan.schema import meanings

ROOT = Path(__file__).resolve().parents[1]
ANSWERS = ROOT / "tests" / "golden" / "expected"
_SHOWN = re.compile(r"^<!-- answer: (\S+?)(?: (\d+))? -->$", re.MULTILINE)
_BETWEEN = r"^(?:\$ |exit status|Evidence, |Suspected, |Outlook:|0\. |=+ |--- |\S+\.json).*\n"
"""A line between two parts of an answer: a verdict ends before its evidence (``--explain``)."""
_UNITS = {
    "Seconds": "duration (`10s`, `5m`)",
    "Bytes": "size (`8KiB`)",
    "PerSecond": "rate (`200/s`)",
    "BytesPerSecond": "rate of bytes (`200MB/s`)",
    "Ratio": "share (`5%`)",
    "float": "number",
    "int": "whole number",
    "str": "text",
    "Name": "name",
    "bool": "`true` or `false`",
}


def on_files(files: Files, *, config: ProperDocsConfig) -> Files:
    """Add the generated pages."""
    for name, content in {
        "commands.md": commands(),
        "files.md": yaml_files(),
        "glossary.md": glossary(),
    }.items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace each ``<!-- answer: GROUP/NAME -->`` by the command's answer, which the golden tests check."""
    return _SHOWN.sub(lambda match: answer(match[1], int(match[2] or 0)), markdown)


def answer(name: str, paragraphs: int = 0) -> str:
    """The first command's answer of a golden file, as a code block, without what ``--explain`` adds."""
    text = (ANSWERS / f"{name}.txt").read_text(encoding="utf-8")
    parts = re.split(_BETWEEN, text, flags=re.MULTILINE)
    said = next(part for part in parts if part.strip())
    shown = "\n\n".join(said.strip("\n").split("\n\n")[: paragraphs or None])
    return f"```text\n{shown}\n```"


def commands() -> str:
    """Every command with its arguments and options, as in ``--help``."""
    parts = ["# Command reference\n\nMade from the commands: `pinchpoint COMMAND --help` prints the same.\n"]
    for name, line in cli.COMMANDS.items():
        command = cli.command(name)
        parts.append(f"## {name}\n\n{line}\n\n{_help(command, f'pinchpoint {name}')}")
        if isinstance(command, click.Group):
            parts += [_help(each, f"pinchpoint {name} {sub}") for sub, each in command.commands.items()]
    return "\n".join(parts)


def glossary() -> str:
    """The terms of reports and documentation."""
    rows = "\n".join(f"| {term} | {meaning} |" for term, meaning in TERMS.items())
    head = "# Glossary\n\nThe terms of reports and of these pages.\n\n| term | meaning |\n| --- | --- |\n"
    return f"{head}{rows}\n"


def _help(command: click.Command, path: str) -> str:
    context = click.Context(command, info_name=path, max_content_width=90, terminal_width=90)
    return f"```text\n{command.get_help(context)}\n```\n"


def yaml_files() -> str:
    """Every field of both files: its form, its default, its meaning."""
    intro = (
        "# farm.yaml and plan.yaml\n\nMade from the models that read the files. `pinchpoint init DIR` writes "
        "both with comments; `pinchpoint check` names every mistake with its line and what is allowed.\n\n"
        "Your editor can complete and check both: the first line that `init` writes into each names its "
        "JSON Schema, in the folder `.schema` beside it. VS Code (with its YAML extension), Neovim, Emacs, "
        "Helix and others with yaml-language-server read that line; PyCharm has a setting for it. "
        "For a file of yours, or after an update of Pinchpoint:\n\n"
        "```sh\npinchpoint schema farm > farm.schema.json\npinchpoint schema plan > plan.schema.json\n```\n\n"
        "and `# yaml-language-server: $schema=farm.schema.json` as the first line of farm.yaml. Rules across "
        "several fields, and names of the other file, are found by `pinchpoint check` alone.\n"
    )
    parts = [intro]
    for title, root in (("farm.yaml", FarmFile), ("plan.yaml", Plan)):
        parts.append(f"## {title}\n")
        seen: list[type[BaseModel]] = []
        _collect(root, seen)
        parts += [_table(model) for model in seen]
    return "\n".join(parts)


def _collect(model: type[BaseModel], seen: list[type[BaseModel]]) -> None:
    if model in seen:
        return
    seen.append(model)
    for field in model.model_fields.values():
        for each in _models(field.annotation):
            _collect(each, seen)


def _models(kind: Any) -> list[type[BaseModel]]:
    if inspect.isclass(kind) and issubclass(kind, BaseModel):
        return [kind]
    return [each for part in typing.get_args(kind) for each in _models(part)]


def _table(model: type[BaseModel]) -> str:
    text = inspect.getdoc(model) or ""
    summary = text.partition("\n\nAttributes:")[0].replace("``", "`").replace("\n", " ")
    said, hints = meanings(model), typing.get_type_hints(model, include_extras=True)
    rows = [
        f"| `{field.alias or name}` | {_form(field, hints[name])} "
        f"| {_default(field)} | {_sentence(said.get(name) or field.description)} |"
        for name, field in model.model_fields.items()
    ]
    title = "" if model in (FarmFile, Plan) else f"### {model.__name__}\n\n"
    head = f"{title}{summary}\n\n| field | form | default | meaning |\n| --- | --- | --- | --- |\n"
    return head + "\n".join(rows) + "\n"


def _sentence(text: str | None) -> str:
    text = (text or "").strip().replace("``", "`").replace("|", "\\|")
    return text[:1].upper() + text[1:]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.default
    return f"`{value}`" if isinstance(value, str | int | float) and value not in ("", None) else ""


def _form(field: FieldInfo, hint: Any) -> str:
    parts = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    for name in ("Seconds", "Bytes", "PerSecond", "BytesPerSecond", "Ratio", "Name"):
        if getattr(record, name) in parts:
            return _UNITS[name]
    return _words(field.annotation)


def _words(kind: Any) -> str:  # noqa: PLR0911 -- one for each form
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if kind is type(None):
        return ""
    if origin is typing.Literal:
        return " or ".join(f"`{each}`" for each in parts)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(filter(None, map(_words, parts)))
    if origin is typing.Annotated:
        return _words(parts[0])
    if origin is tuple:
        return f"list of {_words(parts[0])}"
    if origin is not None and len(parts) == 2:  # a mapping
        return f"{_words(parts[1])}, by name"
    name = getattr(kind, "__name__", str(kind))
    if inspect.isclass(kind) and issubclass(kind, BaseModel):
        return f"[{name}](#{name.lower()})"
    return _UNITS.get(name, name)
