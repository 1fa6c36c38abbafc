"""Days and times as cultures write them: which number is the day, only all dates of a file tell."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from datetime import datetime

from pinchpoint_collectors.imports.record import Found

_NARROW_SPACE = "\u202f"
"""Before AM and PM in newer cultures."""


class Dates:
    """Reads the times of one file, which are all written alike.

    Args:
        texts: all of them; empty ones say nothing.
        formats: as ``datetime.strptime`` has them; the first of those that most times have is taken, ISO 8601
            where none has any.
        found: is told where day and month could be the other way round.
    """

    def __init__(self, texts: Sequence[str], formats: Sequence[str], found: Found) -> None:
        # One time of each day is enough: days are what differs.
        days = {text.split()[0]: _plain(text) for text in texts if text.strip()}
        fits = {format_: _fitting(days.values(), format_) for format_ in formats}
        most = max(map(len, fits.values()))
        fitting = [format_ for format_, moments in fits.items() if most and len(moments) == most]
        self._format = next(iter(fitting), None)
        readings = [fits[format_] for format_ in fitting]
        pairs = (pair for others in readings[1:] for pair in zip(readings[0], others, strict=True))
        differing = next((pair for pair in pairs if pair[0] != pair[1]), None)
        if differing is not None:
            taken, other = (f"{moment.day} {moment:%B %Y}" for moment in differing)
            found.note(
                f"one of its dates is {taken}, or {other}: no date in the file tells whether the day or the "
                "month comes first. The former was taken; record dates as ISO 8601 where that matters"
            )

    def read(self, text: str) -> datetime:
        """A time, with a zone where it names one. Raises ``ValueError`` where it is not written so."""
        plain = _plain(text)
        if self._format is None:
            return datetime.fromisoformat(plain)
        return _parsed(plain, self._format)


def _plain(text: str) -> str:
    return " ".join(text.replace(_NARROW_SPACE, " ").split())


def _parsed(text: str, format_: str) -> datetime:
    return datetime.strptime(text, format_)  # noqa: DTZ007 -- the caller gives it its zone


def _fitting(texts: Iterable[str], format_: str) -> list[datetime]:
    """The times that are written so."""
    found = []
    for text in texts:
        with contextlib.suppress(ValueError):  # written otherwise: it is not counted
            found.append(_parsed(text, format_))
    return found
