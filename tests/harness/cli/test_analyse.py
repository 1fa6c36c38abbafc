"""``pinchpoint analyse``: its exit status is the run's, as that of ``run`` was."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from harness.analysis.build import Build, crawl_bound_by_search

from pinchpoint.analysis import analyse

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
    """0 fine, 1 objectives missed, 3 no valid evidence, which comes first; however it is printed."""
    run = build.run()
    monkeypatch.setattr(command, "verdict_of", lambda _: (run, analyse(run)))
    assert command.analyse.main([str(tmp_path), *how], standalone_mode=False) == status
