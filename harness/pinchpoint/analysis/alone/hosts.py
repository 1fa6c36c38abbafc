"""What samples alone tell of a host: its CPU, its memory, its interfaces, the crawler on it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pinchpoint.analysis.alone.observed import (
    PAGED,
    Observed,
    Reading,
    Subject,
    context,
    over,
    rule,
    seen,
    unmeasured,
)
from pinchpoint.analysis.alone.stretches import PLATEAU, figures, longest, stretches
from pinchpoint.analysis.thresholds import MEMORY_LOW, NETWORK, PAGING, PRESSURE, UTILISATION, Threshold
from pinchpoint.analysis.verdict import Fact
from pinchpoint.base import units
from pinchpoint.data.inputs import Host, Inputs
from pinchpoint.data.series import Floats, Series

MEMORY_SMALL = Threshold(
    2.0 * 1024**3, "design", "less than 2 GiB available: below a tenth of what most servers have"
)
ON_NETWORK = Threshold(0.75, "PAL", "crawler: critical when more than 75 % of its threads access the network")


def observe_host(inputs: Inputs, host: Host) -> Iterator[Observed]:
    """Everything but its disks."""
    yield _cpu(inputs, host)
    yield from _memory(inputs, host)
    yield from _network(inputs, host)
    yield from _crawler(inputs, host)


def _cpu(inputs: Inputs, host: Host) -> Observed:
    """The machine's CPU; where only its cores were read, their mean."""
    subject = Subject("cpu", "cpu", host.tier, host.name, "", None, UTILISATION)
    found = _cpu_values(inputs, host)
    if found is None:
        return unmeasured(subject, "cpu.busy_ratio", f"the CPU of {host.name} was not measured")
    series, values = found
    mean, p95, most = _figures(values, series)
    text = (
        f"its CPU was busy {units.percent(mean)} on average, p95 {units.percent(p95)}, at most "
        f"{units.percent(most)}"
    )
    reading = Reading(series, over(values, series, UTILISATION.value), text, "cpu.busy_ratio", mean)
    more = [*context(inputs, host.name, "cpu.waiting_threads", "", "threads waited for a CPU")]
    more += _pressure(inputs, host.name)
    return seen(inputs, subject, reading, more, used=mean)


def _cpu_values(inputs: Inputs, host: Host) -> tuple[Series, Floats] | None:
    samples = inputs.samples
    whole = samples.series(host.name, "cpu.busy_ratio")
    if whole is not None and whole.measured:
        return whole, samples.steps(host.name, "cpu.busy_ratio")
    cores = [key.instance for key in samples.keys("cpu.busy_ratio") if key.host == host.name]
    cores = [core for core in cores if core and not core.startswith(("tier:", "thread:"))]
    together = samples.together([host.name], "cpu.busy_ratio", cores)
    series = samples.series(host.name, "cpu.busy_ratio", cores[0]) if cores else None
    return (series, together) if series is not None and together is not None else None


def _figures(values: Floats, series: Series) -> tuple[float, float, float]:
    """Mean, 95th percentile and largest of the steps with a reading."""
    there = values[np.isfinite(values) & (series.covered_s > 0)]
    return float(there.mean()), float(np.quantile(there, 0.95)), float(there.max())


def _pressure(inputs: Inputs, host: str) -> Iterator[Fact]:
    found = figures(inputs.samples.series(host, "pressure.cpu_ratio"))
    if found is not None:
        text = f"somebody waited for CPU {units.percent(found.mean)} of the time"
        yield Fact(text, "pressure.cpu_ratio", found.mean, host, "", "context", *rule(PRESSURE))


def _memory(inputs: Inputs, host: Host) -> Iterator[Observed]:
    """Little available, and paging at the same time; without paging it is no limit (METHOD step 5).

    Where nobody recorded whether it was paging, a low one is no room either: it is not known.
    """
    series = inputs.samples.series(host.name, "mem.available_ratio")
    if series is None or not series.measured:
        yield from _memory_of_unknown_size(inputs, host)
        return
    left = inputs.samples.steps(host.name, "mem.available_ratio")
    paged = inputs.samples.steps(host.name, PAGED)
    low = ~over(left, series, MEMORY_LOW.value) & np.isfinite(left) & (series.covered_s > 0)
    both = low & (np.nan_to_num(paged) >= PAGING.value)
    mean, lowest = series.mean() or 0.0, float(np.nanmin(left))
    subject = Subject("memory", "memory", host.tier, host.name, "", None, MEMORY_LOW)
    low_s = longest(stretches(inputs.window, series.covered_s, low))
    if low_s >= PLATEAU.value and not np.isfinite(paged).any():
        why = (
            f"{units.percent(lowest)} of its memory was available at least; whether it was paging was not "
            "recorded"
        )
        yield unmeasured(subject, PAGED, why)
        return
    text = f"{units.percent(mean)} of its memory was available on average, {units.percent(lowest)} at least"
    reading = Reading(series, both, text, "mem.available_ratio", mean, "while paging")
    more = [
        Fact(fact.fact, fact.metric, fact.value, fact.host, "", "context", *rule(PAGING))
        for fact in context(inputs, host.name, PAGED, "", "was paged in")
    ]
    yield seen(inputs, subject, reading, more, used=1 - mean)


def _memory_of_unknown_size(inputs: Inputs, host: Host) -> Iterator[Observed]:
    """Windows' counters do not say how much there is: where little is left while paging, it must be asked."""
    samples = inputs.samples
    paged = samples.series(host.name, PAGED)
    left = samples.steps(host.name, "mem.available_bytes")
    if paged is None or not np.isfinite(left).any():
        return
    paging = over(samples.steps(host.name, PAGED), paged, PAGING.value)
    with np.errstate(invalid="ignore"):
        both = paging & (left < MEMORY_SMALL.value)
    if longest(stretches(inputs.window, paged.covered_s, both)) < PLATEAU.value:
        return
    lowest = float(np.nanmin(left))
    why = (
        f"{units.bytes_(lowest)} of its memory were available at least, while it was paging; how much there "
        "is was not said"
    )
    subject = Subject("memory", "memory", host.tier, host.name, "", None, MEMORY_SMALL)
    yield unmeasured(subject, "mem.available_ratio", why)


def _network(inputs: Inputs, host: Host) -> Iterator[Observed]:
    """An interface by its fuller direction, where its speed is known."""
    samples = inputs.samples
    for key in samples.keys("net.speed_bytes_per_s"):
        speed = samples.mean(*key)
        series = samples.series(host.name, "net.received_bytes_per_s", key.instance)
        if key.host != host.name or not speed or series is None:
            continue
        ways = [
            samples.steps(host.name, f"net.{way}_bytes_per_s", key.instance) for way in ("received", "sent")
        ]
        used = np.fmax(*ways) / speed
        if not np.isfinite(used[series.covered_s > 0]).any():
            continue
        mean, p95, most = _figures(used, series)
        text = (
            f"{units.percent(mean)} of its speed was used on average, p95 {units.percent(p95)}, at most "
            f"{units.percent(most)}"
        )
        reading = Reading(series, over(used, series, NETWORK.value), text, "net.received_bytes_per_s", mean)
        subject = Subject("network", "network", host.tier, host.name, key.instance, None, NETWORK)
        yield seen(inputs, subject, reading, used=mean)


def _crawler(inputs: Inputs, host: Host) -> Iterator[Observed]:
    """A crawler whose threads wait for the content they fetch."""
    samples = inputs.samples
    for key in samples.keys("search.threads_on_network"):
        series = samples.series(*key)
        if key.host != host.name or series is None:
            continue
        waiting = samples.steps(*key)
        rest = [
            samples.steps(host.name, f"search.threads_{name}", key.instance) for name in ("filtering", "idle")
        ]
        total = waiting + np.nan_to_num(rest).sum(axis=0)
        share = np.divide(waiting, total, out=np.full(len(total), np.nan), where=total > 0)
        if not np.isfinite(share[series.covered_s > 0]).any():
            continue
        mean, p95, most = _figures(share, series)
        text = (
            f"{units.percent(mean)} of the crawler's threads accessed the network on average, p95 "
            f"{units.percent(p95)}, at most {units.percent(most)}"
        )
        reading = Reading(
            series, over(share, series, ON_NETWORK.value, strictly=True), text, key.metric, mean
        )
        subject = Subject("external", "dependency", host.tier, host.name, "what it crawls", None, ON_NETWORK)
        yield seen(inputs, subject, reading, used=mean)
