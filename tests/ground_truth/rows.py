"""A row per case and repetition: printed as it ends, counted in the confusion table, kept as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ground_truth.cases import Answer, Case
from ground_truth.judge import Found, is_right, least_sure, what_counts

ERROR = "error"
"""The column of cases that came to no verdict."""

WIDE = "confidence"
HEADINGS = ("case", "expected", "found", WIDE, "seconds", "right")


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one case, once.

    Attributes:
        case: the case.
        repeat: which repetition of it, from 1.
        seconds: from the start of its run to the end of its analyses.
        found: by variant; empty where it came to none.
        failure: why it came to none: one sentence.
        kept: where its run lies, for a person to look at; None where nothing was kept.
    """

    case: Case
    repeat: int
    seconds: float
    found: Mapping[str, Found] = field(default_factory=dict)
    failure: str = ""
    kept: Path | None = None

    @property
    def right(self) -> bool:
        """Whether every variant names what is expected."""
        return is_right(self.case.expected.answer, self.found)

    @property
    def answer(self) -> Answer | None:
        """The answer it is judged by; None without one."""
        return what_counts(self.case.expected.answer, self.found) if self.found else None

    def to_json(self) -> dict[str, Any]:
        """Its entry in ground-truth.json."""
        return {
            "case": self.case.name,
            "repeat": self.repeat,
            "expected": str(self.case.expected.answer),
            "found": str(self.answer) if self.answer else self.failure,
            "confidence": least_sure(list(self.found.values())),
            "right": self.right,
            "seconds": round(self.seconds, 1),
            "unsolved": self.case.expected.unsolved,
            "variants": {
                name: {
                    "outcome": one.answer.outcome,
                    "kind": one.answer.kind,
                    "tier": one.answer.tier,
                    "role": one.answer.role,
                    "confidence": one.confidence,
                }
                for name, one in self.found.items()
            },
        }


class Printer:
    """Prints rows below one another; the columns are as wide as the cases make them.

    Args:
        cases: all that will come.
    """

    def __init__(self, cases: Sequence[Case]) -> None:
        names = max(len(case.name) for case in cases) + 4  # a repetition's number
        answers = max(18, *(len(str(case.expected.answer)) for case in cases))
        self._widths = (names, answers, answers, len(WIDE), 7, 0)
        print(self._line(HEADINGS), flush=True)

    def row(self, row: Row) -> None:
        """One row, with what every variant found where they were not all right."""
        name = row.case.name if row.repeat == 1 else f"{row.case.name} #{row.repeat}"
        answer = str(row.answer) if row.answer else "nothing"
        sure = least_sure(list(row.found.values())) or "-"
        expected = str(row.case.expected.answer)
        print(self._line((name, expected, answer, sure, f"{row.seconds:.0f}", _judgement(row))), flush=True)
        if row.failure:
            print(f"    {row.failure}", flush=True)
        elif not row.right:
            for variant, one in row.found.items():
                print(f"    {variant}: {one.answer}{f' ({one.confidence})' if one.confidence else ''}")
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
    """The table of expected kinds (rows) and what was found (columns), as text."""
    counts: dict[tuple[str, str], int] = {}
    for row in rows:
        found = ERROR if row.answer is None else row.answer.label
        if row.answer and not row.right and found == row.case.expected.answer.label:
            found = f"{found}, elsewhere"  # the kind is right, the disk or the tier is not
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


def write(rows: Sequence[Row], path: Path) -> None:
    """Write ground-truth.json whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps([row.to_json() for row in rows], indent=1) + "\n", encoding="utf-8")
    draft.replace(path)
