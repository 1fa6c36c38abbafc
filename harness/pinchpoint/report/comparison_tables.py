"""Builds the tables of a comparison: differences, work, the figures of both sides with ratios, costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pinchpoint.base import units, wording
from pinchpoint.base.figures import figure_names
from pinchpoint.base.groups import by_key
from pinchpoint.report.tables import Column, Row, Table, columns, number, text

RATIO = "ratio"
SIDE = "side"
_NO_RATIO = "no ratio"
_INTERVAL = "_ci95"

DECLARED: Mapping[str, str] = {
    "command": "Named by --metric.",
    "plan": "Declared in the plan.",
    "default": "Chosen by plan and factor; compare: in plan.yaml, or --metric, declares them.",
}
COVERS: Mapping[str, str] = {
    "between_runs": "between runs",
    "within_run": "within a run",
}
HOW: Mapping[str, str] = {
    "reached": "the maximum",
    "at_least": "at least; the maximum was not reached",
    "unknown": "not measured",
}
KEPT: Mapping[bool | None, str] = {True: "yes", False: "no", None: "no rate was offered"}


@dataclass(frozen=True, slots=True)
class FigureColumn(Column):
    """A column with a figure of both sides. In the row of the ratio the column shows a factor."""

    def cell(self, row: Row) -> str:
        """Return the figure, or the ratio in the row of the ratio."""
        value = row.get(self.key)
        if row.get(SIDE) != RATIO:
            return self.absent if value is None else self.show(value)
        if value is None:
            return _NO_RATIO
        ends = row.get(f"{self.key}{_INTERVAL}")
        return units.times(value) + (f" ({units.interval(ends)})" if ends else "")


@dataclass(frozen=True, slots=True)
class MetricColumn(Column):
    """A column with figures whose unit depends on the metric of the row."""

    def cell(self, row: Row) -> str:
        """Return the figure with its unit."""
        return units.of_metric(row["metric"], row[self.key])


@dataclass(frozen=True, slots=True)
class FigureName(Column):
    """A column with the name of a figure."""

    def cell(self, row: Row) -> str:
        """Return the name of the row's figure, such as ``orders p95``."""
        return figure_name(row)


def _figure(metric: str, title: str) -> FigureColumn:
    return FigureColumn(metric, title, lambda value: units.of_metric(metric, value), numeric=True)


def figure_name(row: Row) -> str:
    """Return the name of a figure as text: ``orders p95``, ``sql log disk s/write, mean``."""
    _, figure = figure_names(str(row["metric"]))
    of_tier = {
        "disk": f"{row['tier']} {row['role']} disk {figure}",
        "cpu": f"{row['tier']} {figure}",
        "effort": f"{row['tier']} {figure} for a {row['per']} of {row['scenario']}",
        "cost": f"{row['scenario']} for {row['per']}",
        "burst": f"{row['scenario']} burst {figure}",
    }
    return of_tier.get(str(row["about"]), f"{row['source'] or row['scenario']} {figure}")


def work(content: Row) -> Table:
    """Build the table of the work that both sides did."""
    rows = [
        {
            "name": row["name"],
            "about": row["about"],
            SIDE: content[side]["label"],
            **{key: row[side][key] for key in ("count", "failures", "dropped")},
            # The difference is shown only in the row of the base side.
            "unlike": row["unlike"] if side == "base" else "",
        }
        for row in content["work"]
        for side in ("base", "other")
    ]
    return Table(
        "work",
        "Work done",
        columns(
            "name: what",
            "about: kind",
            SIDE,
            "count whole: done",
            "failures whole: failed",
            "dropped whole: dropped | -",
            "unlike: difference | none",
        ),
        rows,
        note="Medians over the runs; a source over one whole crawl, a scenario over the measure phase. The "
        "number of operations of a scenario is a result: only failed and dropped operations are differences.",
        empty="No work was recorded.",
    )


def judged(content: Row) -> Table:
    """Build the table of the declared figures, with the conclusion about each figure."""
    by_name = {row["name"]: row for row in content["changes"]}
    labels = content["base"]["label"], content["other"]["label"]
    rows = [_judged(by_name[name]) for name in content["metrics"]]
    answer = any(row["why_no_interval"] for row in rows)
    return Table(
        "judged",
        "Declared figures",
        columns(
            FigureName("name", "figure"),
            "call: change",  # placed early, because a narrow page may cut the other columns
            MetricColumn("base", labels[0], numeric=True),
            MetricColumn("other", labels[1], numeric=True),
            "ratio times: ratio | no ratio",
            "ci95 interval: 95 % interval | none",
            "covers: interval | -",
            number("margin_ratio", "equal within", _within),
            "floor_ratio times: A/A | not known",
            "p: p, corrected | -",
            *(["why_no_interval text: why no interval |"] if answer else []),
        ),
        rows,
        note=f"{DECLARED[content['metrics_by']]} Medians of the runs; ratio: second side ÷ first. Intervals "
        "between runs: Welch on logarithms; within a run: circular block bootstrap. p: that the ratio is "
        "in the equal range, Holm-corrected over these figures; other figures have uncorrected intervals.",
        empty="No figure was measured on both sides.",
    )


def _judged(row: Row) -> Row:
    return {**row, "covers": COVERS.get(row["interval"])}


def _within(margin: float) -> str:
    """Return the range of ratios in which two sides count as equal: ``0.952 to 1.05``."""
    return units.interval((1 / margin, margin))


def capacity(content: Row) -> Table:
    """Build the table of the capacity of each side. The capacity does not depend on the offered load."""
    rows = [
        {
            "scenario": row["scenario"],
            SIDE: content[side]["label"],
            "value": row[side],
            "how": HOW[row[f"{side}_how"]],
            "kept": KEPT[row["kept_up"][place]],
            "ratio": row["ratio"] if side == "other" else None,
            "why": (row["why"] or "") if side == "other" and row["ratio"] is None else "",
        }
        for row in content["capacity"]
        for place, side in enumerate(("base", "other"))
    ]
    return Table(
        "capacity",
        "Capacity",
        columns(
            "scenario",
            SIDE,
            "value per_s: highest throughput",
            "how: this is",
            "kept: kept up with the offered load",
            "ratio times: ratio |",
            "why: why no ratio",
        ),
        rows,
        note="An open load shows the capacity only where the side does not keep up with it, a load of users "
        "only where the bottleneck is saturated.",
        empty="No scenario was run.",
    )


_BESIDE: Mapping[str, tuple[str, tuple[str, ...], Mapping[str, str], str, str, str]] = {
    "source": (
        "sources",
        ("source",),
        {
            "count": "documents",
            "failures": "failures",
            "duration_s": "duration",
            "rate_per_s": "rate",
            "repository_latency_s": "repository latency",
        },
        "Crawl sources",
        "Rate = documents ÷ duration. Repository latency: from request to last byte.",
        "No crawl on either side.",
    ),
    "disk": (
        "disks",
        ("roles: used for", "host"),
        {
            "write_latency_mean_s": "write latency, mean",
            "write_latency_max_s": "max",
            "read_latency_mean_s": "read latency",
            "iops_mean": "IOPS, mean",
            "iops_max": "max",
            "io_per_operation": "I/O per operation",
        },
        "Disks",
        (
            "Over the measure phase, latency weighted by the number of operations. I/O per operation is "
            "given for plans with one scenario only."
        ),
        "No disk with a role was measured.",
    ),
    "cpu": (
        "cpus",
        ("tier", "host"),
        {"busy_mean_ratio": "busy, mean", "busy_max_ratio": "max"},
        "CPU",
        "Of the cores the tier may use, where its processes were watched; else of the whole machine.",
        "No CPU was measured.",
    ),
    "scenario": (
        "scenarios",
        ("scenario", "time: latency is"),
        {"throughput_per_s": "throughput", "p50_s": "p50", "p95_s": "p95"},
        "Scenarios",
        (
            "Over the measure phase. Response time counts from the intended start, service time from the "
            "actual one; response time is shown where both sides have it."
        ),
        "No scenario was run.",
    ),
    "burst": (
        "bursts",
        ("scenario",),
        {
            "done": "done in a burst",
            "p50_s": "p50",
            "p99_s": "p99",
            "backlog": "waiting at its end",
            "recovery_s": "time to recover",
        },
        "Bursts",
        "Of each run the median burst; medians over the runs.",
        "",
    ),
}
"""Kind of change -> definition of its table: name, key columns, figures with their titles, heading, note, and
the sentence for a table without rows."""


def beside(content: Row) -> Iterator[Table]:
    """Build the tables of the figures of both sides.

    Each subject, such as a disk, has three rows: base, other, and their ratio.
    """
    labels = content["base"]["label"], content["other"]["label"]
    for about, (name, keys, metrics, title, note, empty) in _BESIDE.items():
        rows = [row for row in content["changes"] if row["about"] == about]
        if about == "scenario":
            rows = _timed(rows)
        more = ["tier", "role"] if about == "disk" else []
        if about == "disk":
            rows = list(_by_device(rows))
        things = columns(*keys)
        reasons = _reasons(rows, metrics)
        answer = f"{note} Where there is no ratio: {'; '.join(reasons)}." if reasons else note
        yield Table(
            name,
            title,
            columns(*things, SIDE, *(_figure(metric, words) for metric, words in metrics.items())),
            list(_triples(rows, [*(column.key for column in things), *more], labels)),
            note=answer,
            empty=empty,
        )


def _timed(rows: Sequence[Row]) -> list[Row]:
    """Return the changes of scenarios with all latencies in the same columns, and add the kind of time."""
    kinds = {
        row["scenario"]: row["metric"].partition("_")[0] for row in rows if row["metric"].endswith("_p95_s")
    }
    return [
        {
            **row,
            "metric": row["metric"].removeprefix("response_").removeprefix("service_"),
            "time": kinds[row["scenario"]],
        }
        for row in rows
    ]


def _by_device(changes: Iterable[Row]) -> Iterator[Row]:
    """Yield the changes of disks. Roles with the same figures share a device, so they share a row."""
    of_role = by_key(((row["host"], row["tier"], row["role"]), row) for row in changes)
    same: dict[tuple[Any, ...], list[list[Row]]] = {}
    for place, rows in of_role.items():
        figures = tuple((row["metric"], row["base"], row["other"]) for row in rows)
        measured = any(value is not None for _, *sides in figures for value in sides)
        same.setdefault(figures if measured else place, []).append(rows)
    for group in same.values():
        roles = wording.listed([f"{rows[0]['tier']} {rows[0]['role']}" for rows in group])
        hosts = ", ".join(dict.fromkeys(str(rows[0]["host"]) for rows in group))
        yield from ({**row, "roles": roles, "host": hosts} for row in group[0])


def _triples(rows: Iterable[Row], names: Sequence[str], labels: tuple[str, str]) -> Iterator[Row]:
    things: dict[tuple[Any, ...], dict[str, Row]] = {}
    for row in rows:
        things.setdefault(tuple(row[name] for name in names), {})[row["metric"]] = row
    for thing, figures in things.items():
        fixed = dict(zip(names, thing, strict=True))
        for key, label in (("base", labels[0]), ("other", labels[1]), (RATIO, RATIO)):
            row = {**fixed, SIDE: label, **{metric: row[key] for metric, row in figures.items()}}
            if key == RATIO:
                row |= {f"{name}{_INTERVAL}": one["ci95"] for name, one in figures.items() if one["ci95"]}
            yield row


def _reasons(rows: Iterable[Row], metrics: Mapping[str, str]) -> list[str]:
    """Return each reason for missing ratios once, with the figures it applies to."""
    result: dict[str, dict[str, None]] = {}
    for row in rows:
        if row["why"]:
            name = metrics[row["metric"]]
            result.setdefault(row["why"], {})[name] = None
    return [f"{wording.listed(list(names))}: {why}" for why, names in result.items()]


def studied(content: Row) -> Table:
    """Build the table of differences in the studied factors."""
    factors = list(content["factors"])
    named = wording.listed(factors) if factors else ""
    empty = (
        f"The manifests show no difference in {named}."
        if factors
        else "No factor was named (--factor), so every difference is listed below."
    )
    title = f"Studied: {named}" if factors else "Studied"
    return _differences("studied", title, content, content["studied"], empty=empty)


def confounders(content: Row) -> Table:
    """Build the table of all other differences; differences that affect a bottleneck come first."""
    rows = [{**row, "acts_on": _touched(row)} for row in content["confounders"]]
    return _differences(
        "confounders",
        "Other differences",
        content,
        rows,
        "acts_on: may affect | no bottleneck",
        note="A difference that may affect a bottleneck weakens the claim. Names of hosts, devices and "
        "folders are not compared.",
        empty="The manifests show no other difference.",
    )


def _touched(row: Row) -> str | None:
    touched = [wording.place({**resource, "host": None}) for resource in row["touches"]]
    if touched:
        return wording.listed(list(dict.fromkeys(touched)))
    return "any resource: a side has no bottleneck" if row["matters"] else None


def _differences(
    name: str, title: str, content: Row, value: Sequence[Row], *more: str, note: str = "", empty: str = ""
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
        for row in value
    ]
    shown = columns(
        "area",
        "fact: what",
        "where",
        Column("in_base", labels[0], absent="not recorded"),
        Column("in_other", labels[1], absent="not recorded"),
        *more,
    )
    return Table(name, title, shown, rows, note=note, empty=empty)


def _unset(row: Row) -> str | None:
    """Return "not set" for a value missing in a file.

    None is returned for a missing measurement, which is shown as "not recorded".
    """
    given = row["area"] == "plan" or row["what"].startswith(("built.", "declared."))
    return "not set" if given else None


def _where(row: Row) -> str:
    """Return the place of a difference, such as ``log disk of sql (sql1)``, ``sql (sql1)`` or ``the run``."""
    tier = row["tier"]
    place = f"{row['role']} disk{f' of {tier}' if tier else ''}" if row["role"] else tier
    hosts = ", ".join(row["hosts"])
    if place and hosts:
        return f"{place} ({hosts})"
    return str(place or hosts or "the run")


def fact_words(name: str) -> str:
    """Return the name of a fact as text: ``built.latency_s`` -> ``latency, as built``."""
    group, _, rest = name.partition(".")
    if group == "settings":
        return f"setting {rest}"
    if rest and group in ("declared", "built"):
        return f"{fact_words(rest)}, {'as declared' if group == 'declared' else 'as built'}"
    if group == "scenarios":
        scenario, *place = rest.split(".")
        kept = [each for each in place[:-1] if each not in ("load", "params")]
        return f"{_plain_name('.'.join([*kept, *place[-1:]]))} of {scenario}"
    return _plain_name(name)


def _plain_name(name: str) -> str:
    for ending in ("_per_s", "_s", "_bytes", "_ratio"):
        name = name.removesuffix(ending)
    plain = name.replace(".", " ").replace("_", " ")
    return " ".join({"iops": "IOPS", "cpu": "CPU", "os": "OS", "io": "I/O"}.get(w, w) for w in plain.split())


def fact_value(name: str, value: Any) -> str | None:
    """Return the value of a fact with its unit; None if the value was not recorded.

    If the runs of a side differ, the text contains all values.
    """
    if value is None:
        return None
    if isinstance(value, list):
        return " or ".join(fact_value(name, each) or "not recorded" for each in value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return text(value)
    return units.of_metric(f"_{name.rsplit('.', 1)[-1]}", value)


NOT_DECLARED, NOT_KNOWN = "not declared", "not known"
NO_PRICES = "No prices are declared (prices: in farm.yaml, or compare --prices FILE)."


@dataclass(frozen=True, slots=True)
class _Money(FigureColumn):
    """A column with amounts in the currency of the row."""

    def cell(self, row: Row) -> str:
        """Return the amount, such as ``1,250.00 EUR``; in the row of the ratio, a factor."""
        if row.get(SIDE) == RATIO or row.get(self.key) is None:
            return FigureColumn.cell(self, row)
        return money(row[self.key], row["currency"])


def money(amount: float, currency: str) -> str:
    """Return an amount with its currency: ``1,250.00 EUR``."""
    return f"{amount:,.2f} {currency}"


def efforts(content: Row) -> Table:
    """Build the table of CPU time of each tier per document, commit and burst.

    Missing values have a reason.
    """
    rows = [
        {**row, "unit": f"{row['per']} of {row['scenario']}", "load": _offered(content, row["scenario"])}
        for row in content["changes"]
        if row["about"] == "effort"
    ]
    return Table(
        "efforts",
        "CPU time per operation",
        columns(
            "tier",
            "unit: for each",
            *(
                number(side, content[side]["label"], units.seconds, absent=NOT_KNOWN)
                for side in ("base", "other")
            ),
            "ratio times: ratio | no ratio",
            "ci95 interval: 95 % interval | none",
            "load: offered load",
            *(["why: why not known |"] if any(row["why"] for row in rows) else []),
        ),
        rows,
        note="CPU time of the tier's processes in the measure phase, divided by succeeded operations; "
        "of a burst from its begin to its end. CPU use at rest is included: under different loads the ratio "
        "is not that of the software alone.",
        empty="Not known: no operations, or no CPU samples.",
    )


def _offered(content: Row, scenario: str) -> str:
    """Return whether both sides had the same load; if a side did not keep up, the throughput of each side."""
    done = next(row for row in content["changes"] if row["name"] == f"scenario.{scenario}.throughput_per_s")
    given = next((row for row in content["capacity"] if row["scenario"] == scenario), None)
    if given and given["kept_up"] == [True, True]:
        return "the same" if _same_rate(done) else "not the same"
    each = " and ".join(units.per_second(done[side]) for side in ("base", "other"))
    return f"not the same: {each}"


SAME_LOAD = 1.05
"""Largest ratio of two loads that count as equal: 5 %, as everywhere in a comparison."""


def _same_rate(done: Row) -> bool:
    ratio = done["ratio"]
    return bool(ratio and 1 / SAME_LOAD <= ratio <= SAME_LOAD)


def cost(content: Row) -> Table:
    """Build the table of the monthly cost of each side, and of the throughput per cost."""
    result = content["cost"]
    bought = [row for row in content["changes"] if row["about"] == "cost"]
    rows = list(_cost_rows(content, bought)) if any(result[name] for name in ("base", "other")) else []
    shown = columns(
        SIDE,
        _Money("per_month", "cost a month", absent=NOT_DECLARED, numeric=True),
        *(
            FigureColumn(
                row["scenario"],
                f"{row['scenario']}, for {row['per']}",
                units.per_second,
                absent=NOT_KNOWN,
                numeric=True,
            )
            for row in bought
        ),
        "items: made of",
    )
    note = "By the declared prices. Throughput over the measure phase, medians of the runs."
    reasons = dict.fromkeys(one for one in (result["why"], *(row["why"] for row in bought)) if one)
    why = f" Where there is no ratio: {'; '.join(reasons)}." if reasons else ""
    return Table("cost", "Cost", shown, rows, note=note + why, empty=NO_PRICES)


def _cost_rows(content: Row, bought: list[Row]) -> Iterator[dict[str, Any]]:
    result = content["cost"]
    for name in ("base", "other"):
        side = result[name] or {}
        yield {
            SIDE: content[name]["label"],
            "per_month": side.get("per_month"),
            "currency": side.get("currency"),
            "items": _items(side) if side else "",
            **{row["scenario"]: row[name] for row in bought},
        }
    ratios: dict[str, Any] = {row["scenario"]: row["ratio"] for row in bought}
    ends = {f"{row['scenario']}_ci95": row["ci95"] for row in bought if row["ci95"]}
    yield {SIDE: RATIO, "per_month": result["ratio"], "currency": None, "items": "", **ratios, **ends}


def _items(side: Mapping[str, Any]) -> str:
    """Return the priced items of a side: ``sql1 250.00, sql.log (azure/p30) 120.00, search1: no price``."""
    return ", ".join(
        f"{one['name']}: no price" if one["per_month"] is None else f"{one['name']} {one['per_month']:,.2f}"
        for one in side["items"]
    )


def what_if(content: Row) -> Iterator[Table]:
    """Yield the table that compares the prediction with the measurement, if there is a prediction."""
    result = content["what_if"]
    if result is None:
        return
    base, other = content["base"]["label"], content["other"]["label"]
    notes = " ".join([*result["notes"], "Of the first run of each side."])
    why = str(result["why_none"] or "no scenario was run").rstrip(".")
    yield Table(
        "what_if",
        f"What if: {other} predicted from {base} alone",
        columns(
            "scenario",
            number("base_per_s", f"measured in {base}", units.per_second),
            "predicted_per_s: predicted",
            number("interval_per_s", "between", _range, absent="not known"),
            number("measured_per_s", f"measured in {other}", units.per_second),
            number("error_ratio", "prediction off by", _signed),
        ),
        result["rows"],
        note=notes,
        empty=f"Nothing was predicted: {why}. {notes}"
        if result["notes"]
        else f"Nothing was predicted: {why}.",
    )


def _range(ends: Sequence[float]) -> str:
    return " to ".join(units.per_second(end) for end in ends)


def _signed(ratio: float) -> str:
    return f"{'+' if ratio > 0 else ''}{units.percent(ratio)}"
