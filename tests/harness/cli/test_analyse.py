"""``pinchpoint analyse``: its exit status is that of the analysed run."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from harness.analysis.build import Build, crawl_bound_by_search

from pinchpoint.analysis import analyse
from pinchpoint.base.errors import InputError

command = importlib.import_module("pinchpoint.cli.analyse")


def missed() -> Build:
    return crawl_bound_by_search().objective(scenario="crawl", p95_s=0.001)


@pytest.mark.parametrize("how", [[], ["--json"], ["--explain"]])
@pytest.mark.parametrize(
    ("build", "status"),
    [
        (crawl_bound_by_search(), 0),
        (missed(), 1),
        (missed().generator(cpu=0.99, host="generator2"), 3),
    ],
    ids=["fine", "an objective missed", "no valid evidence"],
)
def test_the_exit_status_is_the_verdict_s(
    build: Build, status: int, how: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0 fine, 1 objectives missed, 3 invalid evidence (which takes precedence), in every output form."""
    run = build.run()
    monkeypatch.setattr(command, "renew_verdict", lambda _: (run, analyse(run)))
    assert command.analyse.main([str(tmp_path), *how], standalone_mode=False) == status


@pytest.mark.parametrize("name", ["manifest.json", "samples.parquet"])
def test_of_a_run_its_directory_is_asked_for(name: str, tmp_path: Path) -> None:
    """For a file inside a run, the message asks for the run's directory."""
    file = tmp_path / name
    file.write_text("{}")
    with pytest.raises(InputError) as error:
        command.analyse.main([str(file)], standalone_mode=False)
    assert str(error.value) == f"{file}: is a file of a run; give the run's directory: {tmp_path}"
