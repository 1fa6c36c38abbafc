"""What to do, as people read it: each piece with its gain, what limits then, and what it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pinchpoint.base import units, wording
from pinchpoint.report.tables import Column, Row, Table, number, share


def advice(verdict: Row) -> Table:
    """One row per piece, the most useful first."""
    rows = [
        {
            **row,
            "gain": None if row["gain_ratio"] is None else wording.up_to(row["gain_ratio"], row["assumes"]),
            "source": _cited(row.get("source")),
        }
        for row in verdict.get("advice") or ()
    ]
    return Table(
        "advice",
        "The most useful first",
        (
            Column("what", "what to do"),
            number("gain", "gain", absent="not known"),
            Column("limit_next", "what limits then", absent="not known"),
            Column("assumes", "assuming"),
            Column("source", "source", absent="-"),
        ),
        rows,
        note=" ".join(_outlook(verdict)),
        empty="",  # nothing to lift where nothing gave way
    )


def demand(verdict: Row) -> Table:
    """What the load takes of each resource, and at what throughput that uses it up."""
    rows = [
        {
            **row,
            "of": wording.place({**row, "kind": _kind(row)}),
            "ceilings": ", ".join(
                f"{units.per_second(rate)} of {name}" for name, rate in row["ceilings_per_s"].items()
            )
            or None,
        }
        for row in verdict.get("demand") or ()
    ]
    return Table(
        "demand",
        "What the load takes of each resource",
        (
            Column("of", "resource"),
            share("used_ratio", "used"),
            share("base_ratio", "of that without the load"),
            number("each_s", "an operation takes", units.seconds),
            Column("ceilings", "used up at"),
            number("levels", "load levels"),
            Column("assumes", "assuming"),
        ),
        rows,
        note="Use = what is used without the load + what an operation takes x throughput; one level cannot "
        "tell the two apart. What a disk can do is its declared limit; where none is known it is not here.",
        empty="",
    )


def terminal_lines(verdict: Row) -> Iterator[str]:
    """Each piece of advice as its sentence, with what its gain assumes."""
    said = ""
    for row in verdict.get("advice") or ():
        text = str(row["text"])
        if row["gain_ratio"]:
            again = "the same" if row["assumes"] == said else row["assumes"]
            text, said = f"{text.removesuffix('.')} (assuming {again}).", row["assumes"]
        yield text


def then_words(verdict: Row) -> str:
    """What would give way after the next, as a sentence; "" where nobody can say."""
    blame = verdict.get("then")
    if not blame:
        return ""
    return (
        f"Then: {wording.place(blame)}, "
        f"{wording.at_most(blame['gain_ratio'], blame.get('assumes'))} above now."
    )


def headroom_words(verdict: Row) -> str:
    """How headroom was found, or why it is not known, as a sentence; "" where the verdict does not say."""
    found = verdict.get("headroom")
    if not found:
        return ""
    if found["ratio"] is None:
        return f"Headroom is not known: {found['why']}."
    given = f", assuming {found['assumes']}" if found["assumes"] else ""
    return f"Headroom {units.percent(found['ratio'])}: {found['why']}{given}."


def _outlook(verdict: Row) -> Iterator[str]:
    yield from (text for text in (headroom_words(verdict), then_words(verdict)) if text)


def _cited(source: Mapping[str, Any] | None) -> str | None:
    return None if source is None else f"{source['entry']}: {source['source']} (taken {source['date']})"


def _kind(row: Row) -> str:
    """The kind of limit it would be, for its place in words."""
    named = {"disk": "disk_cap", "thread": "cpu_thread", "cpu": "cpu", "allowance": "cpu"}
    return named.get(str(row["resource"]), str(row["resource"]))
