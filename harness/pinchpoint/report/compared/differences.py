"""The tables of what differs between the sides of a comparison, and facts of manifests in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pinchpoint.base import units, wording
from pinchpoint.report.tables import Column, Row, Table, text


def studied(content: Row) -> Table:
    """The differences in what is studied."""
    factors = list(content["factors"])
    named = wording.listed(factors) if factors else ""
    empty = (
        f"The manifests show no difference in {named}."
        if factors
        else "Nothing was named as studied (--factor), so every difference is listed below."
    )
    title = f"What is studied: {named}" if factors else "What is studied"
    return _differences("studied", title, content, content["studied"], empty=empty)


def confounders(content: Row) -> Table:
    """All other differences, those that touch a blamed resource first."""
    rows = [{**row, "acts_on": _touched(row)} for row in content["confounders"]]
    return _differences(
        "confounders",
        "What else differs",
        content,
        rows,
        Column("acts_on", "may act upon", absent="nothing that is blamed"),
        note="A difference that may act upon a blamed resource weakens the claim. Names of hosts, devices "
        "and folders are not compared.",
        empty="The manifests show no other difference.",
    )


def _touched(row: Row) -> str | None:
    touched = [wording.place({**resource, "host": None}) for resource in row["touches"]]
    if touched:
        return wording.listed(list(dict.fromkeys(touched)))
    return "anything: a side blames nobody" if row["matters"] else None


def _differences(
    name: str, title: str, content: Row, found: Sequence[Row], *more: Column, note: str = "", empty: str = ""
) -> Table:
    labels = content["base"]["label"], content["other"]["label"]
    rows = [
        {
            **row,
            "where": _where(row),
            "in_base": fact_value(row["what"], row["base"]) or _unset(row),
            "in_other": fact_value(row["what"], row["other"]) or _unset(row),
            "fact": fact_words(row["what"]),
        }
        for row in found
    ]
    columns = (
        Column("area", "area"),
        Column("fact", "what"),
        Column("where", "where"),
        Column("in_base", labels[0], absent="not recorded"),
        Column("in_other", labels[1], absent="not recorded"),
        *more,
    )
    return Table(name, title, columns, rows, note=note, empty=empty)


def _unset(row: Row) -> str | None:
    """What a file leaves out is not set; what no collector told is not recorded."""
    given = row["area"] == "plan" or row["what"].startswith(("built.", "declared."))
    return "not set" if given else None


def _where(row: Row) -> str:
    """``log disk of sql (sql1)``, ``sql (sql1)``, ``sql``, or ``the run``."""
    tier = row["tier"]
    place = f"{row['role']} disk{f' of {tier}' if tier else ''}" if row["role"] else tier
    hosts = ", ".join(row["hosts"])
    if place and hosts:
        return f"{place} ({hosts})"
    return str(place or hosts or "the run")


def fact_words(name: str) -> str:
    """A fact's name for people: ``built.latency_s`` -> ``latency, as built``."""
    group, _, rest = name.partition(".")
    if group == "settings":
        return f"setting {rest}"
    if group in ("declared", "built"):
        return f"{fact_words(rest)}, {'as declared' if group == 'declared' else 'as built'}"
    return _plain_name(name)


def _plain_name(name: str) -> str:
    for ending in ("_per_s", "_s", "_bytes", "_ratio"):
        name = name.removesuffix(ending)
    plain = name.replace(".", " ").replace("_", " ")
    return " ".join({"iops": "IOPS", "cpu": "CPU", "os": "OS", "io": "I/O"}.get(w, w) for w in plain.split())


def fact_value(name: str, value: Any) -> str | None:
    """A fact's value with its unit; several of one side, where its runs differ; None: not recorded."""
    if value is None:
        return None
    if isinstance(value, list):
        return " or ".join(fact_value(name, each) or "not recorded" for each in value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return text(value)
    return units.of_metric(f"_{name.rsplit('.', 1)[-1]}", value)
