"""Kill and resume crawls, for tests on every kind of crawl database."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scenarios.support import Events

from pinchpoint_scenarios.contract import Endpoint, Scenario, ScenarioContext
from pinchpoint_scenarios.full_crawl import FullCrawl
from pinchpoint_scenarios.full_crawl.params import FullCrawlParams

TESTS = Path(__file__).parents[2]


def resuming(
    endpoints: Mapping[str, Endpoint], params: Mapping[str, Any], events: Events | None = None
) -> Scenario:
    """Return the crawl as ``run --resume`` creates it."""
    return FullCrawl(
        ScenarioContext(
            name="test",
            endpoints=endpoints,
            params=FullCrawlParams.model_validate(params),
            seed=1,
            worker=0,
            workers=1,
            repeat_s=0,
            event=events or (lambda *_, **__: None),
            resume=True,
        )
    )


def killed_after(documents: int, endpoints: Mapping[str, Endpoint], params: Mapping[str, Any]) -> int:
    """Start a crawl in a process and kill it after a number of documents; return the number reported."""
    given = {name: (each.url, dict(each.options)) for name, each in endpoints.items()}
    process = subprocess.Popen(
        [sys.executable, "-m", "scenarios.full_crawl.crawler", json.dumps(given), json.dumps(params), "6"],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        text=True,
    )
    assert process.stdout is not None
    said = 0
    try:
        for line in process.stdout:
            assert line.endswith(" ok\n"), line
            said += 1
            if said == documents:
                break
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        said += len([line for line in process.stdout if line.endswith("\n")])
        process.stdout.close()
    return said
