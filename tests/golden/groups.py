"""The groups of golden answers: what is asked of which recorded runs, and where the answers lie."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from golden.commands import answer, files, workplace

RUNS = Path(__file__).parents[1] / "golden_runs"
EXPECTED = Path(__file__).with_name("expected")

Answers = Iterator[tuple[str, str]]
"""(name, text) of each answer."""


@dataclass(frozen=True, slots=True)
class Group:
    """Answers that are recorded and checked together.

    Attributes:
        name: of the group; of its folder or file below ``expected/``.
        ask: computes all answers, in the pinned process.
        packed: kept in one compressed file, where they are many megabytes of text.
    """

    name: str
    ask: Callable[[], Answers]
    packed: bool = False

    @property
    def _file(self) -> Path:
        return EXPECTED / f"{self.name}.json.gz"

    def is_recorded(self) -> bool:
        """Whether there are any answers to compare with."""
        return self._file.exists() if self.packed else (EXPECTED / self.name).exists()

    def recorded(self) -> dict[str, str]:
        """The answers as they were recorded."""
        if self.packed:
            found: dict[str, str] = json.loads(gzip.decompress(self._file.read_bytes()))
            return found
        place = EXPECTED / self.name
        return {path.stem: path.read_text(encoding="utf-8") for path in sorted(place.glob("*.txt"))}

    def record(self, answers: Mapping[str, str]) -> None:
        """Write the answers; those that are no longer given go."""
        if self.packed:
            EXPECTED.mkdir(exist_ok=True)
            text = json.dumps(answers, indent=0, sort_keys=True)
            self._file.write_bytes(gzip.compress(text.encode(), mtime=0))
            return
        place = EXPECTED / self.name
        place.mkdir(parents=True, exist_ok=True)
        for path in place.glob("*.txt"):
            if path.stem not in answers:
                path.unlink()
        for name, text in answers.items():
            (place / f"{name}.txt").write_text(text, encoding="utf-8")


def runs_of(folder: str) -> list[Path]:
    """The recorded runs of a folder of ``golden_runs/``."""
    return sorted(path.parent for path in (RUNS / folder).glob("*/manifest.json"))


def _verdicts(folder: str) -> Answers:
    """``analyse --explain`` and verdict.json of each run."""
    for run in runs_of(folder):
        with workplace(run):
            yield run.name, answer("analyse", run.name, "--explain") + files([Path(run.name)])


GROUPS = {
    group.name: group
    for group in (
        Group("synthetic", lambda: _verdicts("synthetic"), packed=True),
        Group("synthetic_more", lambda: _verdicts("synthetic_more"), packed=True),
    )
}
