"""The Python API: a user's package, as `init --scenario` writes it, loads and measures a server."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pyarrow as pa
import pytest
from support import run_cli

import pinchpoint
from pinchpoint.base.errors import InputError

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests" / "golden_runs" / "real" / "log-cap-240"
UV = Path(sys.executable).with_name("uv")


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def server(tmp_path: Path) -> Iterator[int]:
    """Start a web server as the written README does; return its port."""
    served = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=tmp_path))
    thread = Thread(target=served.serve_forever)
    thread.start()
    yield served.server_port
    served.shutdown()
    served.server_close()
    thread.join()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: int) -> tuple[Path, dict[str, str]]:
    """Install the package under another name; return (its folder, environment)."""
    monkeypatch.chdir(tmp_path)
    assert run_cli("init", "--scenario", "web_shop").returncode == 0
    for name in ("farm.yaml", "plan.yaml"):
        path = tmp_path / "web_shop" / name
        path.write_text(path.read_text().replace("8000", str(server)).replace("measure: 10s", "measure: 3s"))
    site = tmp_path / "site"
    subprocess.run(
        [UV, "pip", "install", "--quiet", "--no-deps", "--target", site, tmp_path / "web_shop"], check=True
    )
    return tmp_path / "web_shop", {"PYTHONPATH": str(site)}


def test_ten_lines_run_a_package_of_its_own(package: tuple[Path, dict[str, str]]) -> None:
    """The page's notebook makes a run with the package's scenario and collector."""
    folder, environ = package
    page = (ROOT / "docs" / "python.md").read_text()
    [lines] = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(lines.splitlines()) <= 10
    cells = [line for line in lines.splitlines() if "needs pandas" not in line]
    cells += [
        "took = run.samples('web_shop.answer_s')",
        "assert took.num_rows >= 3 and any(took['value'].to_pylist()), took",
        "assert cpu.num_rows >= 3 and set(cpu['metric'].to_pylist()) == {'cpu.busy_ratio'}",
        "assert run.verdict['scenarios']['users']['throughput_per_s'] > 10",
        "assert run.verdict['scenarios']['users']['error_ratio'] == 0",
        "assert (run.directory / 'report.md').exists()",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(cells)],
        cwd=folder, env=os.environ | environ, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_recorded_run_is_opened(tmp_path: Path) -> None:
    """A recorded run gives verdict, text, samples of a metric, and operations."""
    run = pinchpoint.Run(shutil.copytree(RECORDED, tmp_path / "run"))
    assert run.verdict["bottleneck"]["role"] == "log"
    assert str(run).startswith("Bottleneck: log disk of the sql tier")
    samples = run.samples("disk.writes_per_s", host="sql1")
    assert isinstance(samples, pa.Table)
    assert set(samples["metric"].to_pylist()) == {"disk.writes_per_s"}
    assert 0 < samples.num_rows < run.samples().num_rows
    assert run.operations()["count"].to_pylist()


def test_what_is_wrong_is_said() -> None:
    """A missing run or plan gives the command line's sentences."""
    with pytest.raises(InputError, match="none: does not exist"):
        pinchpoint.Run("none")
    with pytest.raises(InputError, match=r"none\.yaml"):
        pinchpoint.run("none.yaml", "none.yaml")  # a package that can be called


def _installed(folder: Path, name: str, points: str, module: str) -> dict[str, str]:
    """Return an environment with an installed package of these entry points."""
    info = folder / f"{name}-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(points)
    (folder / f"{name}.py").write_text(module)
    return {"PYTHONPATH": str(folder)}


@pytest.mark.parametrize(
    ("use", "points", "module", "said"),
    [
        ("shop", "shop = shop:Shop", "import nothing_of_the_kind", "cannot be imported: No module named"),
        ("shop", "shop = shop:Shop", "", "cannot be imported: module 'shop' has no attribute 'Shop'"),
        ("shop", "shop = shop:Shop", "class Shop: use = 'other'", "use: found 'other'; needed: 'shop'"),
        ("sql-mix", "sql-mix = shop:Shop", "", "has the name of one of Pinchpoint; rename it"),
    ],
)
def test_a_package_that_cannot_be_used(tmp_path: Path, use: str, points: str, module: str, said: str) -> None:
    """An unusable package gives plan.yaml's line, the package and exit status 2."""
    environ = _installed(tmp_path / "site", "shop", f"[pinchpoint.scenarios]\n{points}\n", module)
    (tmp_path / "farm.yaml").write_text("name: f\nenvironment: test\nembedded: {tiers: [sql]}\n")
    (tmp_path / "plan.yaml").write_text(
        f"name: p\nscenarios:\n  a:\n    use: {use}\n    load: {{model: closed, users: 1}}\n"
        "phases: {measure: 1s}\n"
    )
    done = run_cli("check", tmp_path, env=environ)
    assert done.returncode == 2, done.stderr
    assert "plan.yaml:4: scenarios.a.use: " in done.stderr
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["My-App", "class", "sql-mix", "local", "../up", "a"])
def test_a_name_that_cannot_be_a_package_s(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An impossible package name gives exit status 2, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    done = run_cli("init", "--scenario", name)
    assert done.returncode == 2
    assert done.stderr.startswith("--scenario: ")
    assert not list(tmp_path.iterdir())
