"""What a generator's process writes is its messages; anything else ends it with a reason."""

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
    """Starts a generator that is a shell script of so many lines."""

    def start(script: str) -> LocalGenerator:
        program = tmp_path / "generator"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(program))
        return LocalGenerator(os.environ)

    return start


def said(child: LocalGenerator) -> tuple[list[dict[str, Any]], str]:
    """Every message, and why there were no more."""
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
    """Text, JSON of no message, no text at all: what came before was heard, and who reads goes on to live."""
    heard, why = said(started(f'echo \'{{"type": "ready"}}\'\n{command}\nexec sleep 60'))
    assert heard == [{"type": "ready"}]
    assert why.startswith("wrote what is no message: ")
    assert shown in why


def test_a_message_that_is_cut_short_is_the_end_of_its_process(started: Started) -> None:
    """Killed while it wrote: what is said is how it ended, not what it had begun to say."""
    heard, why = said(started("""printf '{"type": "sec'\nexit 3"""))
    assert heard == []
    assert why == "ended by itself in mid-run (exit status 3)"
