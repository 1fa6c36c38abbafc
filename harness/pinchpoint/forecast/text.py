"""Formats a prediction as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from pinchpoint.analysis.model.prediction import Binding, PartUse, Prediction, Throughput
from pinchpoint.analysis.model.probed import DiskMix
from pinchpoint.base import units, wording
from pinchpoint.base.text import fitted, titled, wrapped


def prediction_text(prediction: Prediction) -> str:
    """The prediction as text: the change, the throughput, the next bottleneck, the assumptions."""
    as_is = not prediction.changed
    blocks = [_changed(prediction)]
    if prediction.exchanged:
        lines = [line for one in prediction.exchanged for line in (one.arithmetic, _mix_words(one.mix))]
        blocks.append(titled("With the probed disk:", lines))
    blocks.append("\n".join(_throughput(one, as_is=as_is) for one in prediction.scenarios))
    binds = [("Now", prediction.binds_now), *([] if as_is else [("Then", prediction.binds_then)])]
    blocks.append("\n".join(wrapped(binds_words(*one)) for one in binds))
    blocks.append("\n".join(_table(prediction.parts, as_is=as_is)))
    blocks += [titled("Assumed:", prediction.assumes), titled("Warnings:", prediction.warnings, "  ! ")]
    return "\n\n".join(filter(None, blocks))


def _changed(prediction: Prediction) -> str:
    if not prediction.changed:
        return "No change was given: the run as the model describes it."
    lines = ["Changes:"]
    for one in prediction.changed:
        now = f" (in this run: {one.before})" if one.before else " (in this run: unknown)"
        lines.append(wrapped(f"{one.name} = {one.after}{now}", "  - "))
    return "\n".join(lines)


def _mix_words(mix: DiskMix) -> str:
    size = "" if mix.bytes is None else f", {units.bytes_(mix.bytes)}"
    took = [
        f"{what} {units.seconds(value)}"
        for what, value in (
            ("read latency", mix.read_s),
            ("write latency", mix.write_s),
            ("waiting time per operation", mix.waits_s),
        )
        if value is not None
    ]
    return f"{mix.disk} in the run: {mix.reads:.3g} reads and {mix.writes:.3g} writes per operation{size}" + (
        f"; {', '.join(took)}" if took else ""
    )


def _throughput(throughput: Throughput, *, as_is: bool) -> str:
    if as_is:
        each = units.seconds(throughput.now_s)
        return wrapped(
            f"{throughput.scenario}: {units.per_second(throughput.now_per_s)}; time per operation {each}."
        )
    if throughput.low_per_s == throughput.high_per_s:
        span = ""
    else:
        span = f" ({units.per_second(throughput.low_per_s)} to {units.per_second(throughput.high_per_s)})"
    change = wording.gain(throughput.ratio - 1)
    now, then = (
        units.seconds(throughput.now_s),
        units.seconds(throughput.then_s) if throughput.then_s is not None else ("rising without limit"),
    )
    kept = "" if throughput.kept_up is not False else "; the farm cannot keep up with the offered load"
    return wrapped(
        f"{throughput.scenario}: {units.per_second(throughput.now_per_s)} → "
        f"{units.per_second(throughput.then_per_s)}{span}, "
        f"{change}; time per operation {now} → {then}{kept}."
    )


def binds_words(when: str, binding: Binding) -> str:
    """The bottleneck as a sentence.

    Args:
        when: start of the sentence, such as ``Now``.
        binding: the bottleneck.
    """
    if binding.how == "nothing":
        return f"{when}: no bottleneck, the whole offered load is served."
    spent = units.percent(binding.ratio)
    if binding.how == "used_up":
        return f"{when}: the bottleneck is {binding.name}, {spent} used."
    if binding.how == "elsewhere":
        return f"{when}: {spent} of {binding.scenario} time is not explained by the measured resources."
    return f"{when}: {binding.scenario} waits longest for {binding.name}, {spent} of its time."


def _table(parts: tuple[PartUse, ...], *, as_is: bool) -> Iterator[str]:
    names = ("resource", "used now", "used then", "time per operation now", "then")
    shown = (0, 1, 3) if as_is else range(len(names))
    rows: list[tuple[str, ...]] = [names]
    for one in parts:
        used = [_used(ratio) for ratio in (one.now_ratio, one.then_ratio)]
        rows.append((one.name, *used, units.seconds(one.now_s), units.seconds(one.then_s)))
    yield from fitted([[row[place] for place in shown] for row in rows])


def _used(ratio: float | None) -> str:
    return "limit unknown" if ratio is None else units.percent(min(1.0, ratio))
