"""A generator process writes messages only; anything else ends it with a reason."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from pinchpoint.loadgen.channels import LocalGenerator

Started = Callable[[str], LocalGenerator]


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Started:
    """Return a generator that is a shell script with these lines."""

    def start(script: str) -> LocalGenerator:
        program = tmp_path / "generator"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(program))
        return LocalGenerator(os.environ)

    return start


def said(child: LocalGenerator) -> tuple[list[dict[str, Any]], str]:
    """Return every message, and the reason for the end."""
    heard: list[dict[str, Any]] = []
    why: Queue[str] = Queue()
    try:
        child.listen(heard.append, why.put)
        return heard, why.get(timeout=20)
    finally:
        child.close()


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("echo Thu Jan 1", "'Thu Jan 1'"),
        ("echo 17", "'17'"),
        ("echo '{}'", "'{}'"),
        (r"printf '\377\n'", "\ufffd"),
    ],
)
def test_a_line_that_is_no_message_is_the_end_with_a_reason(
    started: Started, command: str, shown: str
) -> None:
    """A line that is no message ends the generator with a reason; earlier messages are kept."""
    heard, why = said(started(f'echo \'{{"type": "ready"}}\'\n{command}\nexec sleep 60'))
    assert heard == [{"type": "ready"}]
    assert why.startswith("wrote what is no message: ")
    assert shown in why


def test_a_message_that_is_cut_short_is_the_end_of_its_process(started: Started) -> None:
    """For a truncated message, the reason is how the process ended."""
    heard, why = said(started("""printf '{"type": "sec'\nexit 3"""))
    assert heard == []
    assert why == "ended by itself in mid-run (exit status 3)"
