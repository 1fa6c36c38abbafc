"""One row per case and repetition: printed when it ends, counted in tables, written as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ground_truth.cases import Answer, Case
from ground_truth.judge import Found, Judged, what_counts, wrong

ERROR = "error"
"""Column of cases without a verdict."""

WIDE = "confidence"
HEADINGS = ("case", "expected", "found", WIDE, "seconds", "right")


@dataclass(frozen=True, slots=True)
class Row:
    """The result of one run of a case.

    Attributes:
        case: the case.
        repeat: number of the repetition, from 1.
        seconds: time from the start of the run to the end of its analyses.
        judged: the answers of the analyses; None without a verdict.
        failure: reason for a missing verdict, as one sentence.
        kept: path of the kept run; None if the run was not kept.
        noise: the noise under which the run was made, such as ``cpu``; "" without one.
    """

    case: Case
    repeat: int
    seconds: float
    judged: Judged | None = None
    failure: str = ""
    kept: Path | None = None
    noise: str = ""

    @property
    def wrong(self) -> dict[str, Found]:
        """The variants and noises with a wrong answer, by name."""
        expected = self.case.expected.answer
        return wrong(expected, self.judged, noisy=bool(self.noise)) if self.judged else {}

    @property
    def right(self) -> bool:
        """True if every variant names the expected answer and no noise leads to another one."""
        return self.judged is not None and not self.wrong

    @property
    def answer(self) -> Answer | None:
        """The answer that counts for the case; None without one."""
        if self.judged is None:
            return None
        return what_counts(self.case.expected.answer, self.judged, noisy=bool(self.noise)).answer

    @property
    def confidence(self) -> str | None:
        """The confidence with limits as declared; None without a bottleneck."""
        return self.judged.variants["declared"].confidence if self.judged else None

    def to_json(self) -> dict[str, Any]:
        """Return the entry of ground-truth.json."""
        found = self.judged or Judged({}, {})
        return {
            "case": self.case.name,
            "repeat": self.repeat,
            "expected": str(self.case.expected.answer),
            "found": str(self.answer) if self.answer else self.failure,
            "confidence": self.confidence,
            "right": self.right,
            "seconds": round(self.seconds, 1),
            "noise": self.noise or None,
            "limit_declared": self.case.limit_declared,
            "unsolved": self.case.expected.unsolved,
            "variants": _as_json(found.variants),
            "noises": _as_json(found.noises),
        }


def _as_json(found: Mapping[str, Found]) -> dict[str, dict[str, str | None]]:
    return {
        name: {
            "outcome": one.answer.outcome,
            "kind": one.answer.kind,
            "tier": one.answer.tier,
            "role": one.answer.role,
            "confidence": one.confidence,
        }
        for name, one in found.items()
    }


class Printer:
    """Prints rows as a table whose column widths fit the cases.

    Args:
        cases: all cases of the table.
    """

    def __init__(self, cases: Sequence[Case]) -> None:
        names = max(len(case.name) for case in cases) + 4  # room for the number of a repetition
        answers = max(18, *(len(str(case.expected.answer)) for case in cases))
        self._widths = (names, answers, answers, len(WIDE), 7, 0)
        print(self._line(HEADINGS), flush=True)

    def row(self, row: Row) -> None:
        """Print one row, with the wrong answers of its variants and noises."""
        name = row.case.name if row.repeat == 1 else f"{row.case.name} #{row.repeat}"
        answer = str(row.answer) if row.answer else "nothing"
        cells = (name, str(row.case.expected.answer), answer, row.confidence or "-", f"{row.seconds:.0f}")
        print(self._line((*cells, _judgement(row))), flush=True)
        if row.failure:
            print(f"    {row.failure}", flush=True)
        for how, one in row.wrong.items():
            print(f"    {how}: {one.answer}{f' ({one.confidence})' if one.confidence else ''}", flush=True)
        if row.kept:
            print(f"    kept in {row.kept}", flush=True)

    def _line(self, cells: Sequence[str]) -> str:
        return "  ".join(cell.ljust(width) for cell, width in zip(cells, self._widths, strict=True)).rstrip()


def _judgement(row: Row) -> str:
    unsolved = row.case.expected.unsolved
    if row.right:
        return "yes (was thought unsolved)" if unsolved else "yes"
    return f"NO, unsolved: {unsolved}" if unsolved else "NO"


def confusion(rows: Sequence[Row]) -> str:
    """Return the table of expected kinds (rows) and found kinds (columns), as text."""
    counts: dict[tuple[str, str], int] = {}
    for row in rows:
        found = ERROR if row.answer is None else row.answer.label
        if row.answer and not row.right and found == row.case.expected.answer.label:
            found = f"{found}, elsewhere"  # the kind is right, but the disk or the tier is wrong
        key = row.case.expected.answer.label, found
        counts[key] = counts.get(key, 0) + 1
    expected = sorted({key[0] for key in counts})
    found_labels = sorted({key[1] for key in counts}, key=lambda label: (label not in expected, label))
    first = max(len(label) for label in (*expected, "expected \\ found"))
    lines = ["  ".join(["expected \\ found".ljust(first), *found_labels])]
    for label in expected:
        cells = [str(counts.get((label, found), ".")).rjust(len(found)) for found in found_labels]
        lines.append("  ".join([label.ljust(first), *cells]))
    return "\n".join(lines)


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """Yield summary lines: right by kind, with declared limits, healthy farms, noises, repetitions."""
    kinds = sorted({row.case.expected.answer.label for row in rows})
    yield "right by kind: " + ", ".join(
        f"{kind} {_share(row.right for row in rows if row.case.expected.answer.label == kind)}"
        for kind in kinds
    )
    declared = [row for row in rows if row.case.limit_declared]
    if declared:
        sure = _share(row.right and row.confidence == "high" for row in declared)
        yield f"right with high confidence where the limit is declared: {sure}"
    healthy = [row for row in rows if row.case.expected.outcome == "not_reached"]
    if healthy:
        yield f"healthy farms right: {_share(row.right for row in healthy)}"
    judged = [row.judged for row in rows if row.judged]
    noises = sum(len(one.noises) for one in judged)
    if noises:
        spoilt = sum(name in one.noises for row in rows if (one := row.judged) for name in row.wrong)
        yield f"noises that made no wrong answer: {noises - spoilt} of {noises}"
    if any(row.repeat > 1 for row in rows):
        yield f"cases with the same answer in all repetitions: {_share(_repeated(rows))}"


def _repeated(rows: Sequence[Row]) -> Iterator[bool]:
    """Yield, for each case, True if all its repetitions gave the same answer."""
    answers: dict[str, set[Answer | None]] = {}
    for row in rows:
        answers.setdefault(row.case.name, set()).add(row.answer)
    yield from (len(found) == 1 and None not in found for found in answers.values())


def _share(flags: Iterable[bool]) -> str:
    known = list(flags)
    return f"{sum(known)} of {len(known)}"


class Written(Protocol):
    """A row with an entry in ground-truth.json."""

    def to_json(self) -> dict[str, Any]:
        """Return the entry."""


def write(rows: Sequence[Written], path: Path) -> None:
    """Write ground-truth.json atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps([row.to_json() for row in rows], indent=1) + "\n", encoding="utf-8")
    draft.replace(path)
