"""Tests of infra/azure: the Bicep files follow a grammar and Azure's types, and match the template.

None of this project's package registries has a Bicep compiler.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import tree_sitter_bicep
from tree_sitter import Language, Node, Parser

from pinchpoint.cli import templates
from pinchpoint.plan import load_farm

FOLDER = Path(__file__).parents[3] / "infra" / "azure"
FILES = ["farm.bicep", "main.bicep"]
TYPES: Mapping[str, Any] = json.loads((Path(__file__).parent / "azure_types.json").read_text())
"""Excerpt of Azure/azure-resource-manager-schemas: each type's properties, required properties and allowed
values."""


def tree(name: str) -> Node:
    return Parser(Language(tree_sitter_bicep.language())).parse((FOLDER / name).read_bytes()).root_node


def walk(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from walk(child)


def said(node: Node | None) -> str:
    assert node is not None
    assert node.text is not None
    return node.text.decode()


def declared(root: Node, kind: str) -> dict[str, Node]:
    """Return the declarations of a kind by name."""
    return {
        said(node.named_children[0]): node for node in root.children if node.type == f"{kind}_declaration"
    }


def objects(node: Node, variables: Mapping[str, Node]) -> Iterator[Node]:
    """Yield the objects in a value: the value, or those in an array, a loop, a condition or a mapping."""
    if node.type == "object":
        yield node
    elif node.type == "identifier" and said(node) in variables:
        yield from objects(variables[said(node)].named_children[-1], variables)
    elif node.type in {"array", "ternary_expression", "parenthesized_expression"}:
        for child in node.named_children:
            yield from objects(child, variables)
    elif node.type in {"for_statement", "if_statement", "lambda_expression", "arguments", "call_expression"}:
        yield from objects(node.named_children[-1], variables)


def properties(node: Node) -> dict[str, Node]:
    return {said(each.named_children[0]): each.named_children[-1] for each in node.named_children}


def misfits(value: Node, allowed: Mapping[str, Any], where: str, variables: Mapping[str, Node]) -> list[str]:
    """Return differences between a value and Azure's type: properties, required ones, allowed values."""
    found = []
    texts = [said(value)[1:-1]] if value.type == "string" else []
    found += [f"{where}: {text}" for text in texts if text not in allowed.get("enum", [text])]
    for each in objects(value, variables):
        given = properties(each)
        if "properties" not in allowed:
            continue
        known = allowed["properties"]
        found += [f"{where}.{name} is unknown" for name in given if name not in known]
        found += [f"{where}.{name} is missing" for name in allowed.get("required", []) if name not in given]
        for name in given.keys() & known.keys():
            found += misfits(given[name], known[name], f"{where}.{name}", variables)
    return found


@pytest.mark.parametrize("name", FILES)
def test_each_file_is_bicep(name: str) -> None:
    """Each file parses as Bicep, and each declaration is used."""
    root = tree(name)
    assert [said(node) for node in walk(root) if node.is_error or node.is_missing] == []
    words = re.findall(r"\w+", re.sub(r"//.*|@description\(.*", "", (FOLDER / name).read_text()))
    for kind in ("parameter", "variable"):
        assert [one for one in declared(root, kind) if words.count(one) < 2] == []


@pytest.mark.parametrize("name", FILES)
def test_each_resource_is_of_azures_types(name: str) -> None:
    """Each resource has an Azure type and version, valid and all required properties, and allowed values."""
    root = tree(name)
    variables = declared(root, "variable")
    resources = declared(root, "resource")
    assert resources
    for symbol, resource in resources.items():
        kind = said(resource.named_children[1])[1:-1]
        assert kind in TYPES
        bodies = list(objects(resource.named_children[-1], variables))
        assert bodies
        assert misfits(resource.named_children[-1], TYPES[kind], symbol, variables) == []


def test_a_wrong_property_is_found() -> None:
    """Wrong properties in a loop or a variable, and a value that is not allowed, are found."""
    text = (FOLDER / "farm.bicep").read_text()
    kind = "Microsoft.Compute/virtualMachines@2023-09-01"
    for old, new in (
        ("createOption: 'Empty'", "createOption: 'Blank'"),
        ("        lun: lun\n", "        lan: lun\n"),
        ("  lun: lun\n", ""),
        ("vmSize: machine", "size: machine"),
    ):
        changed = text.replace(old, new, 1)
        assert changed != text
        root = Parser(Language(tree_sitter_bicep.language())).parse(changed.encode()).root_node
        machines = declared(root, "resource")["machines"]
        found = misfits(machines.named_children[-1], TYPES[kind], "machines", declared(root, "variable"))
        assert found != [], new


def test_both_farms_are_given_what_a_farm_takes() -> None:
    """Module calls pass exactly the parameters of farm.bicep, and read outputs that it has."""
    farm, main = tree("farm.bicep"), tree("main.bicep")
    takes = set(declared(farm, "parameter"))
    modules = declared(main, "module")
    assert set(modules) == {"dev", "prod"}
    for module in modules.values():
        [body] = objects(module.named_children[-1], {})
        assert set(properties(properties(body)["params"])) == takes
    outputs = set(re.findall(r"outputs\.(\w+)", (FOLDER / "main.bicep").read_text()))
    assert outputs == set(declared(farm, "output"))


def test_the_template_has_the_names_and_luns_of_the_deployment(tmp_path: Path) -> None:
    """The template has the resource groups, machines, disk types and stripes of azure-dev-prod."""
    main = (FOLDER / "main.bicep").read_text()
    hosts = set(re.findall(r"\{ name: '(\w+)', index", (FOLDER / "farm.bicep").read_text()))
    for side in ("dev", "prod"):
        for name, text in templates.files("azure-dev-prod").items():
            (tmp_path / name).write_text(text)
        farm = load_farm(tmp_path / f"{side}.yaml")
        assert f"name: 'pinchpoint-{side}'" in main
        kind = re.search(rf"param {side}Machine string = 'Standard_(\w+)'", main)
        stripes = re.search(
            rf"param {side}SqlDisk object = {{ sku: '(\w+)', sizeGB: 1024, stripes: (\d)", main
        )
        assert kind
        assert stripes
        seen = set()
        for name, host in (found for tier in farm.tiers.values() for found in tier.hosts.items()):
            [azure] = [each for each in host.collect if each.kind == "azure"]
            group = f"/subscriptions/${{AZURE_SUBSCRIPTION}}/resourceGroups/pinchpoint-{side}"
            assert azure.options["resource"] == f"{group}/providers/Microsoft.Compute/virtualMachines/{name}"
            assert host.machine == f"azure/{kind[1].lower()}"
            seen.add(name)
            luns = azure.options.get("luns", {})
            flat = [lun for each in luns.values() for lun in (each if isinstance(each, list) else [each])]
            assert flat == list(range(len(flat)))
            for role, each in luns.items():
                disk = host.disks[role]
                count = len(each) if isinstance(each, list) else 1
                assert (disk.stripes or 1) == count
                wanted = int(stripes[2]) if role != "index" else 4
                assert count == wanted
                premium = role != "index" and stripes[1] == "Premium_LRS"
                assert disk.profile == ("azure/p30" if premium else "azure/s30")
        assert seen == hosts
