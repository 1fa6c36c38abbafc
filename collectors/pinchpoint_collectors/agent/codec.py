"""Encodes samples as JSON lines for the ring and the connection. Each series is named once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from pinchpoint_collectors.common import legible
from pinchpoint_collectors.record import Sample

VERSION = 1


class RingReading(NamedTuple):
    """The values of one reading, and their position in the ring.

    Attributes:
        at_ns: position in the ring: time of the reading on the host, raised if needed so that it always
            grows, even after the clock was set back.
        samples: samples without the name of the host, which farm.yaml assigns.
    """

    at_ns: int
    samples: Sequence[Sample]


class Encoder:
    """Encodes readings as lines. A decoder needs all lines from the first one on."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str], int] = {}

    def encode(self, reading: RingReading) -> str:
        """Return one line with its end: ``at``, new ``names``, and ``rows`` by time and interval."""
        new: list[tuple[str, str]] = []
        rows: dict[tuple[int, float], list[list[float | int | None]]] = {}
        for sample in reading.samples:
            name = (sample.metric, sample.instance)
            number = self._numbers.get(name)
            if number is None:
                number = self._numbers[name] = len(self._numbers)
                new.append(name)
            cell: list[float | int | None] = [number, sample.value]
            rows.setdefault((sample.time_ns, sample.interval_s), []).append(
                cell if sample.weight is None else [*cell, sample.weight]
            )
        line = {"at": reading.at_ns, "rows": [[*when, cells] for when, cells in rows.items()]}
        if new:
            line["names"] = new
        return json.dumps(line, separators=(",", ":")) + "\n"


class Decoder:
    """Decodes lines to readings."""

    def __init__(self) -> None:
        self._names: list[tuple[str, str]] = []

    def decode(self, line: str) -> RingReading:
        """Return the reading in a line. Raises ``ValueError`` for a line that ``Encoder`` did not write."""
        try:
            answer = legible.loads(line)
            self._names += [(metric, instance) for metric, instance in answer.get("names", ())]
            samples = [
                Sample(time_ns, interval_s, "", *self._names[cell[0]], *cell[1:])
                for time_ns, interval_s, cells in answer["rows"]
                for cell in cells
            ]
            return RingReading(answer["at"], samples)
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise ValueError(f"no reading: {line[:80]!r}") from error
