"""Run a ``pinchpoint`` command line; return its exit status, both outputs, and the files it writes as text.

This module uses only the command's entry point and imports no other module of the product. The last digits of
a mean depend on the processor's instructions, so the process that computes answers uses only those of every
x86-64 processor (``PINNED``, see ``ask.py``).
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.metadata import entry_points
from pathlib import Path

PINNED = {
    "OPENBLAS_CORETYPE": "Nehalem",
    "NPY_DISABLE_CPU_FEATURES": "AVX AVX2 F16C FMA3 FMA4 XOP AVX512F AVX512CD AVX512_SKX AVX512_CLX "
    "AVX512_CNL AVX512_ICL AVX512_SPR X86_V3 X86_V4",
    "TZ": "UTC",
    "LC_ALL": "C.UTF-8",
    "COLUMNS": "100",
}
"""Environment variables of the process that computes answers."""

KEPT = ("verdict.json", "comparison.json")
"""Names of files whose content is part of an answer."""


@contextlib.contextmanager
def workplace(*runs: Path) -> Iterator[Path]:
    """Make copies of the runs in a temporary current directory, so that no answer contains a local path."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="pinchpoint-golden-") as work:
        for run in runs:
            shutil.copytree(run, Path(work, run.name))
        os.chdir(work)
        try:
            yield Path(work)
        finally:
            os.chdir(before)


def answer(*arguments: str) -> str:
    """Return the command line, its exit status, standard output and standard error as one text."""
    out, err = io.StringIO(), io.StringIO()
    status: object = 0
    saved = sys.argv, sys.stdout, sys.stderr
    sys.argv = ["pinchpoint", *arguments]
    sys.stdout, sys.stderr = out, err
    try:
        [entry] = entry_points(group="console_scripts", name="pinchpoint")
        entry.load()()
    except SystemExit as end:
        status = end.code
    finally:
        sys.argv, sys.stdout, sys.stderr = saved
    parts = [f"$ pinchpoint {' '.join(arguments)}", f"exit status {status or 0}", *_part("", out)]
    return normal("\n".join([*parts, *_part("--- standard error", err)]) + "\n")


def _part(head: str, stream: io.StringIO) -> Iterator[str]:
    text = stream.getvalue().rstrip("\n")
    if text:
        yield from (head, text) if head else (text,)


def files(places: Sequence[Path], names: Sequence[str] = KEPT) -> str:
    """Return the content of the files that are part of an answer."""
    found = [path for place in places for path in sorted(place.rglob("*")) if path.name in names]
    return "".join(f"--- {normal(str(path))}\n{normal(path.read_text('utf-8').rstrip())}\n" for path in found)


def normal(text: str) -> str:
    """Replace times and versions in an answer; no other function does."""
    text = re.sub(r'("pinchpoint[a-z-]*": )"\d+\.\d+\.\d+[^"]*"', r'\1"VERSION"', text)
    return re.sub(r"(comparison-(?:[a-z0-9-]+-)?)\d{8}T\d{6}Z", r"\1STAMP", text)
