"""What one production server comes to in a fitted plan, and how its sentences stand there."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pinchpoint.fit.course import Course
from pinchpoint.fit.figures import Figures, Told

_WIDTH = 108


@dataclass(frozen=True, slots=True)
class Section:
    """One server's part of the plan.

    Attributes:
        scenarios: name -> its lines, comments among them.
        figures: the server's own, at the time the load is of.
        tells: a figure that its sources may not tell -> what would.
        day: the course of its load; None: not known.
    """

    scenarios: Mapping[str, Sequence[str]]
    figures: Figures
    tells: Mapping[str, str]
    day: Course | None


def indented(by: int, lines: Iterable[str]) -> list[str]:
    """The lines, moved to the right."""
    return [" " * by + line for line in lines]


def said(word: str, sentences: Iterable[str]) -> Iterator[str]:
    """Sentences as comments, broken where they are long."""
    for sentence in sentences:
        yield from textwrap.wrap(
            f"{word}{sentence}.",
            _WIDTH,
            initial_indent="# ",
            subsequent_indent="#   ",
            break_long_words=False,
            break_on_hyphens=False,
        )


def shortcomings(told: Told, lacking: Iterable[str]) -> Iterator[str]:
    """Where sources differ, and what the scenario cannot do as production does."""
    yield from said("Two sources differ: ", told.disagreements)
    yield from said("Not alike: ", lacking)
