"""Helpers of sql-script's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scenarios.support import made, quiet

from pinchpoint_scenarios.contract import Endpoint, Scenario


def written(folder: Path, **scripts: str) -> list[str]:
    """Write one file per script and return the paths."""
    for name, text in scripts.items():
        (folder / f"{name}.sql").write_text(text, encoding="utf-8")
    return [str(folder / f"{name}.sql") for name in scripts]


@contextmanager
def prepared(
    endpoint: Endpoint, event: Callable[..., None] = lambda *_, **__: None, **params: Any
) -> Iterator[Scenario]:
    """Yield a prepared sql-script and finish it at the end."""
    driver = made("sql-script", {"sql": endpoint}, params, event=event)
    try:
        driver.prepare(quiet)
        yield driver
    finally:
        driver.finish(keep_data=False)
