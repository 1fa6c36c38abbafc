"""The built wheels install in an empty environment and work there, on each supported Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import missing

ROOT = Path(__file__).resolve().parents[1]
RUN = ROOT / "tests" / "golden_runs" / "real" / "log-cap-240"
UV = Path(sys.executable).with_name("uv")
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
WAYS = ("uv pip", "pip", "uv tool")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheels of all four distributions and return their folder."""
    folder = tmp_path_factory.mktemp("wheels")
    subprocess.run(
        [UV, "build", "--quiet", "--all-packages", "--wheel", "--out-dir", folder], cwd=ROOT, check=True
    )
    assert len(list(folder.glob("*.whl"))) == 4
    return folder


def _pythons(version: str) -> Iterator[str]:
    found = [
        shutil.which(f"python{version}"),
        *map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python")),
    ]
    for path in filter(None, found):
        asked = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
        done = subprocess.run([path, "-c", asked], capture_output=True, text=True, check=False)
        if done.stdout.strip() == version:
            yield path


def _installed(way: str, python: str, wheels: Path, folder: Path) -> tuple[Path, dict[str, str]]:
    """Install the command in this way; return its path and the environment of a new user."""
    environ = {"HOME": str(folder), "PATH": os.environ["PATH"], "UV_CACHE_DIR": _uv_cache()}
    environ |= {
        name: value for name, value in os.environ.items() if "PROXY" in name.upper() or "CERT" in name
    }
    environ |= {name: value for name, value in os.environ.items() if "INDEX" in name}
    if way == "uv tool":
        environ |= {"UV_TOOL_DIR": str(folder / "tools"), "UV_TOOL_BIN_DIR": str(folder / "bin")}
        install: list[str | Path] = [
            UV,
            "tool",
            "install",
            "--quiet",
            "--python",
            python,
            "--find-links",
            wheels,
            "pinchpoint",
        ]
        subprocess.run(install, env=environ, check=True)
        return folder / "bin" / "pinchpoint", environ
    subprocess.run(
        [python, "-m", "venv", *(["--without-pip"] if way == "uv pip" else []), folder / "v"], check=True
    )
    made = folder / "v" / "bin"
    by: list[str | Path] = [UV, "pip", "install", "--python", made / "python"]
    by = by if way == "uv pip" else [made / "pip", "install"]
    subprocess.run([*by, "--quiet", "--find-links", wheels, "pinchpoint"], env=environ, check=True)
    return made / "pinchpoint", environ


def _uv_cache() -> str:
    return subprocess.run([UV, "cache", "dir"], capture_output=True, text=True, check=True).stdout.strip()


def _works(command: Path, environ: dict[str, str], folder: Path, *, all_of_it: bool = True) -> None:
    """Assert that the help, a new farm file and a verdict work; with ``all_of_it``, more commands."""
    run = shutil.copytree(RUN, folder / "run")
    first: list[tuple[list[str | Path], int, str]] = [
        (["--help"], 0, "analyse"),
        (["init", folder / "farm"], 0, "plan.yaml"),
        (["analyse", run], 0, "Bottleneck: log disk of the sql tier"),
    ]
    more: list[tuple[list[str | Path], int, str]] = [
        (["report", run], 0, "report.html"),
        (["init", folder / "shop", "--scenario", "web_shop"], 0, "scenario.py"),
        (["check", folder / "farm"], 5, "pinchpoint[farm]"),
    ]
    for arguments, status, said in [*first, *(more if all_of_it else [])]:
        done = subprocess.run(
            [command, *arguments], env=environ, cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == status, (arguments, done.stdout, done.stderr)
        assert said in done.stdout + done.stderr, (arguments, done.stdout, done.stderr)


def test_the_wheels_install_and_work(wheels: Path, tmp_path: Path) -> None:
    """The wheels install with uv and work on this Python."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    _works(*_installed("uv pip", next(_pythons(python)), wheels, tmp_path), tmp_path, all_of_it=False)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("version", VERSIONS)
def test_each_python_and_each_way(version: str, way: str, wheels: Path, tmp_path: Path) -> None:
    """The wheels install in each way and work on each Python that is installed here."""
    python = next(_pythons(version), None)
    if python is None:
        missing(f"Python {version} is not installed here")
    _works(*_installed(way, python, wheels, tmp_path), tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("extra", "module"),
    [
        ("farm", "puremagic"),
        ("documents", "xlsxwriter"),
        ("otel", "opentelemetry.sdk"),
        ("queries", "duckdb_cli"),
    ],
)
def test_an_extra_brings_its_libraries(extra: str, module: str, wheels: Path, tmp_path: Path) -> None:
    """Each extra that docs/install.md names installs its libraries."""
    assert f"`pinchpoint[{extra}]`" in (ROOT / "docs" / "install.md").read_text()
    subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, tmp_path / "v"], check=True)
    python = tmp_path / "v" / "bin" / "python"
    subprocess.run(
        [UV, "pip", "install", "--quiet", "--python", python, "--find-links", wheels, f"pinchpoint[{extra}]"],
        check=True,
    )
    subprocess.run([python, "-c", f"import {module}"], check=True)


def test_every_extra_is_documented(wheels: Path) -> None:
    """Every extra of the command's distribution is documented."""
    [wheel] = wheels.glob("pinchpoint-[0-9]*.whl")
    with zipfile.ZipFile(wheel) as packed:
        [metadata] = [packed.read(name).decode() for name in packed.namelist() if name.endswith("/METADATA")]
    extras = [line.partition(": ")[2] for line in metadata.splitlines() if line.startswith("Provides-Extra")]
    page = (ROOT / "docs" / "install.md").read_text()
    assert extras
    assert [extra for extra in extras if f"`pinchpoint[{extra}]`" not in page] == []
