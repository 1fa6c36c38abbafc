"""Words the codes of a verdict."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pinchpoint.base import units
from pinchpoint.base.objects import JsonObject

MEANING: Mapping[str, str] = {
    "cpu": "All available CPU time is used.",
    "cpu_thread": "One thread does nearly all the work. It cannot use a second core.",
    "disk": "The disk is saturated. These samples do not show which kind of limit it is.",
    "disk_cap": "The disk is at a limit: a deeper queue gives no more I/O per second.",
    "disk_burst_exhausted": "The disk ran on burst credits and fell to its base rate when they ran out.",
    "disk_warm_up": "The disk is getting faster by itself: it has not reached its normal speed yet.",
    "disk_device": "The device itself cannot do more: a deeper queue gives no more I/O per second.",
    "disk_concurrency": "The disk could do more, but too few I/Os are issued at the same time.",
    "disk_latency": "The disk is below its limits, but waiting for it takes most of the time.",
    "memory": "There is too little memory, so data come from disk again and again.",
    "network": "The network link is full.",
    "lock": "Work waits for locks, not for hardware.",
    "pool": "All connections or workers of a pool are in use, and requests wait for one.",
    "external": "The farm waits for the network or for another system.",
    "generator": "The load generator could not issue the planned load. The run does not show what the farm "
    "can do.",
    "contention": "Other processes took the CPU that the load generator needed. The run does not show what "
    "the farm can do.",
}

WITHOUT_OPERATIONS: Mapping[str, str] = {
    "disk": "An I/O takes longer than recommended for the role of this disk. How long work waited for it "
    "is not known.",
    "external": "Work waits for the network or for another system.",
}
"""Meaning of a kind of bottleneck if no operation was recorded."""

PROVES: Mapping[str, str] = {
    "E1": "saturated",
    "E2": "queue grows with load",
    "E3": "calculated maximum fits",
    "E4": "second source agrees",
}
"""Kind of evidence -> what it proves about a resource."""

ASKED: Mapping[str, str] = {**PROVES, "E4": "work waited, by a second source"}
"""Kind of evidence -> the question that it answers about every resource."""

SOURCES: Mapping[str, str] = {
    "SP": "Microsoft SharePoint guidance",
    "PAL": "PAL",
    "design": "Pinchpoint's rule",
}
"""Code of a threshold's source -> name of the source."""

OUTCOME: Mapping[str, str] = {
    "bottleneck": "A bottleneck was found",
    "not_reached": "The farm was not driven to its limit",
    "inconclusive": "Inconclusive: the measurements do not single out one cause",
    "invalid": "This run is not valid",
}

ONLY_THIS_LOAD = "for this load only: every host was measured, and none of its resources was saturated"
"""Text for the certainty of an all-clear."""

STATE: Mapping[str, str] = {
    "interrupted": "This run was interrupted. What was measured until then is kept and shown; it is not a "
    "complete run.",
    "running": "This run is incomplete: it did not end normally, and at most its last second is "
    "missing. What was measured is shown.",
}


def bottleneck_name(blame: JsonObject) -> str:
    """Return the name of a resource without host and device: ``the log disk of sql``."""
    return without_device({**blame, "host": None})


def without_device(blame: JsonObject) -> str:
    """Return the name of a resource without its device: ``the log disk of sql (host sql1)``.

    A dependency keeps its name.
    """
    named = blame.get("kind") == "external"
    return place(blame if named else {**blame, "instance": ""})


def limited_by(verdict: JsonObject) -> str:
    """Return the bottleneck of a verdict without its host, or else the outcome, for a cell of a table."""
    blame = verdict.get("bottleneck")
    if blame and verdict["outcome"] == "invalid":
        return f"not valid ({bottleneck_name(blame)})"
    return bottleneck_name(blame) if blame else OUTCOME[verdict["outcome"]].lower()


def sure(verdict: JsonObject) -> str:
    """Return the certainty of a verdict: ``medium``, or the load that it is limited to; "" without one."""
    if verdict["outcome"] == "not_reached":
        return ONLY_THIS_LOAD
    return str((verdict.get("bottleneck") or {}).get("confidence") or "")


def place(blame: JsonObject) -> str:
    """Return the full name of a finding's resource: ``the log disk of sql (host sql1, device loop1)``."""
    kind, tier = str(blame.get("kind") or ""), blame.get("tier")
    owner = f" of {tier}" if tier else ""
    if kind == "generator":
        return f"the {blame['resource']}" if blame.get("resource") == "recorder" else "the load generator"
    if kind == "contention":
        return "the CPU of the load generator's machine"
    where = [f"host {blame['host']}"] if blame.get("host") else []
    instance = str(blame.get("instance") or "")
    if kind == "cpu_thread":
        where += [f"thread {instance.removeprefix('thread:')}"] if instance else []
        name = f"one thread{owner}"
    elif kind.startswith("disk") and not blame.get("role"):
        where += [f"machine {instance}"] if instance else []
        name = f"all disks{owner} together"
    elif kind.startswith("disk"):
        where += [f"device {instance}"] if instance else []
        name = f"the {blame['role']} disk{owner}"
    elif kind == "cpu":
        shared = listed(blame.get("shared_with") or ()) if not tier else ""
        what = "CPU limit" if instance.startswith("tier:") else "CPU"
        name = f"the CPU that {shared} share" if shared else f"the {what}{owner}"
    elif kind == "external":
        name = f"the network or dependency in front of {instance or tier}"
    else:
        name = f"the {blame.get('resource') or kind.replace('_', ' ')}{owner}"
        where += [instance] if instance else []
    return name + (f" ({', '.join(where)})" if where else "")


def why_invalid(blame: JsonObject) -> str:
    """Return why a run is invalid (load generator, other processes), without a full stop."""
    facts = [str(each["fact"]) for each in blame["evidence"]]
    more = [capitalised(fact) for fact in facts[1:2]] if blame["kind"] == "contention" else []
    return ". ".join([facts[0], *more])


@dataclass(frozen=True, slots=True)
class Summary:
    """The first sentences of a verdict, a comparison or a probe.

    Attributes:
        text: the first sentence, without its label.
        lead: the sentences after the first one; "" if there are none.
        label: label of the first sentence (``Bottleneck``); "" if there is none.
    """

    text: str
    lead: str = ""
    label: str = ""

    @property
    def headline(self) -> str:
        """Return the first sentence with its label."""
        return f"{self.label}: {self.text}" if self.label else self.text

    def __str__(self) -> str:
        return f"{self.headline} {self.lead}".rstrip()

    def then(self, *sentences: str) -> Summary:
        """Return the summary with further sentences added."""
        return replace(self, lead=" ".join(filter(None, (self.lead, *sentences))))

    @classmethod
    def of(cls, sentences: Sequence[str]) -> Summary:
        """Return a summary of sentences: the first one is ``text``, the others are ``lead``."""
        return cls(sentences[0]).then(*sentences[1:])

    @classmethod
    def saved(cls, content: JsonObject) -> Summary:
        """Return the summary in verdict.json. Older files have a single text."""
        return cls(**content["answer"]) if "answer" in content else cls(str(content["summary"]))


def bare(text: str) -> str:
    """Return a name without its article: ``log disk of sql``."""
    return re.sub(r"^(the|a|an) ", "", text)


def capitalised(text: str) -> str:
    """Return the text with a capital first letter. Other letters are not changed."""
    return f"{text[:1].upper()}{text[1:]}"


def listed(items: Sequence[str]) -> str:
    """Return a list as text: ``a``, ``a and b``, ``a, b and c``; "" if it is empty."""
    return f"{', '.join(items[:-1])} and {items[-1]}" if len(items) > 1 else "".join(items)


def grouped(texts: Sequence[str], most: int = 3) -> str:
    """Merge sentences that end in "was not measured": ``a, b and c were not measured``.

    At most ``most`` names are listed.
    """
    end = " was not measured"
    names = [text.removesuffix(end) for text in texts if text.endswith(end)]
    rest = [text for text in texts if not text.endswith(end)]
    more = [f"{len(names) - most} more"] if len(names) > most else []
    shown = [*names[:most], *more]
    answer = [f"{listed(shown)}{end if len(names) == 1 else ' were not measured'}"] if names else []
    return "; ".join([*answer, *rest])


def headroom(ratio: float) -> str:
    """Return the headroom as text: ``12 %``.

    It is 0 % if the objectives were met only below the judged load.
    """
    return units.percent(max(0.0, ratio))


def room(ratio: float) -> str:
    """Return the headroom as a phrase: ``12 % more load``, or ``none``."""
    return "none" if ratio < NOTHING else f"{headroom(ratio)} more load"


NOTHING = 0.0005
"""Headroom below this ratio counts as none."""


def rate_of(figures: JsonObject) -> float | None:
    """Return the throughput of a scenario for all screens: in the judged part, or else in the whole phase."""
    result: float | None = figures.get("now_per_s", figures.get("throughput_per_s"))
    return result


def at_most(gain_ratio: float, *, bound: bool) -> str:
    """Return ``at most 38 %`` for a bound, otherwise ``about 38 %``."""
    return f"{'at most' if bound else 'about'} {units.percent(gain_ratio)}"


def up_to(gain_ratio: float, *, bound: bool) -> str:
    """Return ``up to +38 %`` for a bound, otherwise ``about +38 %``."""
    return f"{'up to' if bound else 'about'} +{units.percent(gain_ratio)}"


def is_bound(gain: JsonObject) -> bool:
    """Return whether a gain in verdict.json is an upper bound under its assumptions.

    Returns False for older files.
    """
    return bool(gain.get("at_most"))


NO_MORE = 0.0005
"""Changes of throughput below this ratio are rounding errors of the model."""


def gain(ratio: float) -> str:
    """Return a gain as text: ``+38 %``, ``-3 %``, ``no change``."""
    if abs(ratio) < NO_MORE:
        return "no change"
    return f"{'+' if ratio > 0 else '-'}{units.percent(abs(ratio))}"


def gains(ratio: float, low: float, high: float) -> str:
    """Return a gain with its interval: ``+38 % (+20 % to +41 %)``."""
    ends = [gain(one) if abs(one) >= NO_MORE else "0 %" for one in (low, high)]
    return gain(ratio) + (f" ({ends[0]} to {ends[1]})" if ends[0] != ends[1] else "")


def gain_of(advice: JsonObject) -> str | None:
    """Return the gain of a piece of advice: with an interval if the model predicted it, otherwise as a bound.

    Returns None if the gain is unknown.
    """
    ratio = advice.get("gain_ratio")
    if ratio is None:
        return None
    if advice.get("interval_ratio") is None:
        return up_to(ratio, bound=is_bound(advice))
    return f"{gains(ratio, *advice['interval_ratio'])} in the throughput of {advice['scenario']}"


def following(verdict: JsonObject) -> str:
    """Return the next bottleneck (or the first, if there is none yet) as a sentence; "" if unknown."""
    blame = verdict.get("next")
    if not blame:
        return ""
    gain = blame.get("gain_ratio")
    modelled = any(one.get("interval_ratio") for one in verdict.get("advice") or ())
    # the sentence shows one gain
    more = "" if gain is None or modelled else at_most(gain, bound=is_bound(blame))
    if verdict.get("bottleneck"):
        sentence = f"Next: {place(blame)}"
        sentence += f"; removing the bottleneck gains {more}" if more else ""
    else:
        sentence = f"Nearest to its limit: {place(blame)}"
        sentence += f", after {more} more load" if more else ""
    return f"{sentence}."


def used_now(blame: JsonObject) -> str:
    """Return the utilisation of the next bottleneck and the share of other processes; "" if unknown."""
    used, others = blame.get("utilisation_ratio"), blame.get("others_ratio")
    if used is None:
        return ""
    return units.percent(used) + (f" ({units.percent(others)} by other processes)" if others else "")


def of_servers(objective: JsonObject) -> str:
    """Return the servers of an objective: ``log disk of sql``, ``search``, ``sql1``, ``all hosts``."""
    owner = objective.get("host") or objective.get("tier")
    if objective.get("role"):
        return f"{objective['role']} disk" + (f" of {owner}" if owner else "")
    if objective.get("device"):
        return f"{objective['device']}" + (f" of {owner}" if owner else "")
    return owner or "all hosts"


def objective_of(row: JsonObject) -> str:
    """Return the scenario or the servers of an objective."""
    return str(row["scenario"]) if row.get("scenario") is not None else of_servers(row)


def objective_name(row: JsonObject) -> str:
    """Return the metric and the limit of an objective: ``p95 at most 50 ms``."""
    metric = row["metric"]
    side = "at least" if row.get("at_least") or metric == "throughput_per_s" else "at most"
    name = metric.removesuffix("_per_s").removesuffix("_s").removesuffix("_ratio")
    if row.get("figure"):
        name = f"{row['figure']} {metric}"
    return f"{name} {side} {units.of_metric(metric, row['target'])}"
