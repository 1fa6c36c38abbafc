"""Tests of the image, the manifests and the action with their linters; their commands are valid."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from pinchpoint import cli

ROOT = Path(__file__).parents[2]
CONTAINER = ROOT / "infra" / "container"
MANIFESTS = sorted((CONTAINER / "kubernetes").glob("*.yaml"))
ACTION = ROOT / "infra" / "ci" / "action.yml"
BIN = Path(sys.executable).parent


def _documents(path: Path) -> list[dict[str, Any]]:
    return list(YAML(typ="safe").load_all(path))


@pytest.mark.parametrize(
    "command",
    [
        ["hadolint", CONTAINER / "Dockerfile"],
        *(["kubernetes-validate", "--strict", path] for path in MANIFESTS),
        ["check-jsonschema", "--builtin-schema", "vendor.github-actions", ACTION],
    ],
    ids=lambda command: f"{command[0]} {command[-1].name}",
)
def test_linters_have_no_objection(command: list[str | Path]) -> None:
    """hadolint, the API's schemas and the schema of actions report no problem."""
    done = subprocess.run([BIN / command[0], *command[1:]], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("command", "right", "wrong"),
    [
        (["hadolint"], CONTAINER / "Dockerfile", ("uv==0.13.8", "uv")),
        (["kubernetes-validate", "--strict"], MANIFESTS[0], ("backoffLimit", "backOffLimit")),
        (
            ["check-jsonschema", "--builtin-schema", "vendor.github-actions"],
            ACTION,
            ("shell: bash", "shel: bash"),
        ),
    ],
)
def test_linters_object_to_a_slip(
    command: list[str], right: Path, wrong: tuple[str, str], tmp_path: Path
) -> None:
    """The linters report a mistake."""
    path = tmp_path / right.name
    path.write_text(right.read_text().replace(*wrong))
    done = subprocess.run([BIN / command[0], *command[1:], path], capture_output=True, check=False)
    assert done.returncode != 0


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_commands_in_manifests_are_ours(path: Path) -> None:
    """Each container's arguments parse; the files that they name are mounted or in the manifest."""
    documents = _documents(path)
    jobs = [one["spec"]["template"]["spec"] for one in documents if one["kind"] == "Job"]
    assert jobs
    for spec in jobs:
        [container] = spec["containers"]
        name, *arguments = container["args"]
        context = cli.command(name).make_context(name, list(arguments))
        mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
        paths = [str(value) for value in context.params.values() if isinstance(value, Path)]
        assert all(any(one.startswith(place) for place in mounted) for one in paths), paths
        assert {mount["name"] for mount in container["volumeMounts"]} == {
            one["name"] for one in spec["volumes"]
        }
        assert container["securityContext"]["readOnlyRootFilesystem"]


def test_workers_and_controller_agree() -> None:
    """The controller waits for the number of workers in the manifest, which use its name, port and image."""
    documents = _documents(CONTAINER / "kubernetes" / "with-workers.yaml")
    service, controller, workers = documents
    [run], [work] = (one["spec"]["template"]["spec"]["containers"] for one in (controller, workers))
    count = workers["spec"]["parallelism"]
    assert f"--remote-workers={count}" in run["args"]
    assert workers["spec"]["completions"] == count
    port = service["spec"]["ports"][0]["port"]
    assert f"--master={service['metadata']['name']}:{port}" in work["args"]
    assert f"--listen=0.0.0.0:{port}" in run["args"]
    assert run["image"] == work["image"]
    assert service["spec"]["selector"] == controller["spec"]["template"]["metadata"]["labels"]


def test_the_image_has_what_is_copied() -> None:
    """Every file that uv needs reaches the image, and its uv has the version of the Makefile."""
    allowed = [
        line[1:]
        for line in (CONTAINER / "Dockerfile.dockerignore").read_text().splitlines()
        if line[:1] == "!"
    ]
    assert [name for name in allowed if not (ROOT / name).exists()] == []
    members = re.search(r"members = \[(.*?)\]", (ROOT / "pyproject.toml").read_text())
    assert members
    assert {*re.findall(r'"(\w+)"', members[1]), "pyproject.toml", "uv.lock"} <= set(allowed)
    version = re.search(r"^UV_VERSION := (\S+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert version
    for path in (CONTAINER / "Dockerfile", ACTION):
        assert f"uv=={version[1]}" in path.read_text()


@pytest.mark.parametrize("status", [0, 1, 2])
def test_the_action_s_run_step(status: int, tmp_path: Path) -> None:
    """The action's run step returns the program's exit status and sets outputs and summary."""
    [step] = [step for step in _documents(ACTION)[0]["runs"]["steps"] if step.get("id") == "run"]
    program = tmp_path / "bin" / "pinchpoint"
    program.parent.mkdir()
    made = "" if status == 2 else "mkdir -p runs/a; echo Bottleneck; echo runs/a"
    program.write_text(
        f'#!/bin/sh\necho "$@" >> called\ncase $1 in run) {made or "echo wrong >&2"}; exit {status};;\n'
        'report) echo "# verdict" > "$2/report.md";; esac\n'
    )
    program.chmod(0o755)
    given = {"PLAN": "a plan.yaml", "FARM": "$(touch hurt)", "OUT": "runs", "FORMATS": "html"}
    files = {name: str(tmp_path / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=tmp_path, env={"PATH": f"{program.parent}:{os.environ['PATH']}", **given, **files},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    assert (tmp_path / "called").read_text().splitlines()[
        0
    ] == "run a plan.yaml --farm $(touch hurt) --out runs"
    assert not (tmp_path / "hurt").exists()
    outputs = (tmp_path / "GITHUB_OUTPUT").read_text().splitlines()
    assert outputs == [f"status={status}", *(["run=runs/a"] if status != 2 else [])]
    if status != 2:
        assert (tmp_path / "GITHUB_STEP_SUMMARY").read_text() == "# verdict\n"
