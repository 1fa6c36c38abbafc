"""Lists what a run would do to a farm: servers, data created, sent, written and removed."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

from pinchpoint.base import units
from pinchpoint.base.errors import FarmUnavailable
from pinchpoint.base.objects import JsonObject
from pinchpoint.farm.ready import ReadyFarm, embedded, standing_farm
from pinchpoint.loadgen.load_schedule import expected_starts, most
from pinchpoint.loadgen.scenarios import make_scenario, planned_scenarios
from pinchpoint.plan import (
    Farm,
    Plan,
    Ramp,
    ScenarioPlan,
    Steps,
    ending_scenarios,
    expand,
    guard_proof,
    redacted_text,
)
from pinchpoint.run.controller import RunOptions, no_event
from pinchpoint_collectors.common.counts import counted
from pinchpoint_scenarios.addresses import without_secrets
from pinchpoint_scenarios.contract import Endpoint, Filled, Intent, Sent
from pinchpoint_scenarios.errors import ScenarioError

_WIDTH = 100
_UNKNOWN = "not known"
_FILES = (
    "manifest.json, operations.parquet, samples.parquet, events.jsonl, verdict.json, report.html; journals "
    "while the run goes on"
)


def dry_run(farm: Farm, plan: Plan, out: Path, options: RunOptions) -> str:
    """Return the text of ``run --dry-run``. Nothing is started, and no server is changed.

    Raises:
        InputError: plan and farm do not match.
        FarmUnavailable: information about a server cannot be read.
    """
    if options.prove:
        guard_proof(farm)
    live = standing_farm(farm)
    endpoints: Mapping[str, Mapping[str, str]] = live.endpoints if live else embedded().stand_ins(farm)
    lines = [f"Dry run of plan {plan.name} on farm {farm.name}: nothing is started, and nothing is written."]
    lines += _farm(farm, live, prove=options.prove)
    problems = []
    for name, given in planned_scenarios(plan).items():
        scenario = make_scenario(
            name, given, endpoints, plan.seed, 0, 1, no_event,
            resume=options.resume, reset_index=options.reset_index,
        )  # fmt: skip
        try:
            intent = scenario.intent()
        except ScenarioError as error:
            problems.append(f"scenario {name}: {error}")
            continue
        lines += ["", *_scenario(name, plan, given, intent, keep_data=options.keep_data)]
    if problems:
        raise FarmUnavailable("\n".join(problems))
    lines += ["", *_local(farm, plan, out)]
    opened = [expand(name, given) for name, given in endpoints.items()]
    return "\n".join(_wrapped(_clean(line, opened)) for line in lines)


def _clean(line: str, endpoints: list[Endpoint]) -> str:
    line = redacted_text(line)
    for endpoint in endpoints:
        line = without_secrets(line, endpoint)
    return line


def _wrapped(line: str) -> str:
    """Return a line wrapped to the terminal at its indentation.

    Text after its first part is indented more.
    """
    indent = " " * (len(line) - len(line.lstrip()))
    wrapped = textwrap.wrap(line, _WIDTH, subsequent_indent=f"{indent}  ", break_long_words=False)
    return "\n".join(wrapped)


def _farm(farm: Farm, live: ReadyFarm | None, *, prove: bool) -> Iterator[str]:
    if farm.embedded is not None:
        tiers = ", ".join(farm.embedded.tiers)
        if live is None:
            yield (
                f"  The farm is embedded and down: the run starts its servers on this machine ({tiers}), "
                f"fills them with {_documents(farm)}, and removes all of it afterwards."
            )
        else:
            yield f"  The farm is embedded and up ({tiers}): the run uses it and leaves it up."
    if prove:
        yield "  --prove: what the verdict names is made slower for a while afterwards, and put back."


def _documents(farm: Farm) -> str:
    content = farm.embedded.content if farm.embedded else None
    count = "the" if content is None or content.documents is None else f"{content.documents:,}"
    corpus = content.corpus if content else None
    return f"{count} documents of {corpus or 'the documentation of this machine'}"


def _scenario(name: str, plan: Plan, given: JsonObject, intent: Intent, *, keep_data: bool) -> Iterator[str]:
    planned = plan.scenarios[name]
    yield f"Scenario {name} ({planned.use}):"
    for target in intent.targets:
        yield f"  {target.use}: {target.place}, {target.inside}"
    yield from _part("made before the load", [_filled(one) for one in intent.prepared] or ["nothing"])
    length_s = _length_s(name, plan)
    count = expected_starts(given["load"], plan.seed, length_s)
    yield from _part("load", [_load(planned, given["load"], count, length_s, intent, plan)])
    ends = intent.at_most if plan.phases.measure.until and not plan.phases.measure.at_least_s else None
    if ends is not None:
        count = float(ends) if count is None else min(count, ends)
    yield from _part("operations", [_sent(one, count) for one in intent.sent])
    if count is not None:
        yield from _part("written by the load", [_total(intent.sent, count)])
    removed = f"nothing (--keep-data); without it: {intent.removed}" if keep_data else intent.removed
    yield from _part("removed afterwards", [removed])
    for note in intent.notes:
        yield f"  note: {note}"


def _length_s(name: str, plan: Plan) -> float:
    """Return the duration of a scenario's load in seconds, with the warm-up.

    The warm-up is left out if the load begins with the measurement.
    """
    phases, load = plan.phases, plan.scenarios[name].load
    late = isinstance(load, Ramp | Steps) or (phases.measure.until and name in ending_scenarios(plan))
    return phases.measure.at_most_s + (0.0 if late else phases.warm_up.at_most_s)


def _load(
    planned: ScenarioPlan,
    load: JsonObject,
    count: float | None,
    length_s: float,
    intent: Intent,
    plan: Plan,
) -> str:
    most_of_it = "at most " if plan.phases.measure.until or plan.phases.warm_up.auto else ""
    model, time = planned.load.model, units.seconds(length_s)
    ends = "" if intent.at_most is None else f"; {intent.at_most:,} operations each time it is done"
    if count is not None:
        return f"{most_of_it}about {count:,.0f} operations in {time} ({model}){ends}"
    text = f"as fast as the farm answers, at most {units.count(most(load))} operations at once"
    if think_s := load.get("think_s"):
        text += f", at most {most(load) / think_s * length_s:,.0f} operations in all"
    return f"{text}, for {most_of_it}{time} ({model}){ends}"


def _filled(filled: Filled) -> str:
    rows = "" if filled.rows is None and filled.size_bytes is not None else f", {_rows(filled.rows)}"
    size = _UNKNOWN if filled.size_bytes is None else f"about {units.bytes_(filled.size_bytes)}"
    note = f" ({filled.note})" if filled.note else ""
    return f"{filled.what}{rows}, size {size}{note}"


def _rows(rows: float | None) -> str:
    if rows is None:
        return f"rows {_UNKNOWN}"
    return counted(round(rows), "row")


def _sent(sent: Sent, count: float | None) -> str:
    share = "" if sent.share is None else f" {units.percent(sent.share)},"
    if sent.rows == 0 and sent.size_bytes == 0:
        written = "writes nothing"
    elif sent.rows is None or sent.size_bytes is None:
        written = f"what it writes is {_UNKNOWN}"
    else:
        written = f"writes {_rows(sent.rows)}, {units.bytes_(sent.size_bytes)} each"
        if count is not None and sent.share is not None:
            written += f", {_rows(sent.rows * sent.share * count)} in all"
    return f"{sent.operation}:{share} {sent.what}; {written}"


def _total(sent: tuple[Sent, ...], count: float) -> str:
    rows = size = 0.0
    for one in sent:
        if one.rows is None or one.size_bytes is None or one.share is None:
            return _UNKNOWN
        rows += one.rows * one.share * count
        size += one.size_bytes * one.share * count
    return f"about {_rows(rows)}, {units.bytes_(size)} of payload"


def _local(farm: Farm, plan: Plan, out: Path) -> Iterator[str]:
    yield "Files on this machine:"
    yield f"  a new folder {out / f'{plan.name}-{farm.name}-TIME'}: {_FILES}"
    if farm.embedded is not None:
        yield "  the embedded farm's own folders and logs, while it is up"


def _part(title: str, texts: list[str]) -> Iterator[str]:
    if len(texts) == 1:
        yield f"  {title}: {texts[0]}"
        return
    yield f"  {title}:"
    yield from (f"    - {text}" for text in texts)
