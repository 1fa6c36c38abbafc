"""Network interfaces of a host in a recording: the fuller direction against the interface's speed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from pinchpoint.analysis.recordings.measures import Resource, Rows, contexts, figure, measure
from pinchpoint.analysis.thresholds import NETWORK, Threshold
from pinchpoint.data.inputs import Host, Inputs
from pinchpoint.data.series import Key

SPEED = "net.speed_bytes_per_s"
CONTEXT = (("net.errors_per_s", "errors"), ("net.drops_per_s", "packets dropped"))
RECEIVED, BOTH, USED = "net.received_bytes_per_s", "net.total_bytes_per_s", "net.used_ratio"
QUEUE, DROPS = "net.output_queue", "net.drops_per_s"
DROPPED = Threshold(10.0, "design", "packets are dropped all the time: ten a second, or more")
WAITING = Threshold(2.0, "PAL", "Output Queue Length: critical when more than 2 packets wait")


def interfaces(inputs: Inputs, host: Host) -> Iterator[Resource]:
    """Each interface with traffic; one for all where none was recorded."""
    samples = inputs.samples
    keys = (key for metric in (RECEIVED, BOTH, USED, QUEUE, DROPS) for key in samples.keys(metric))
    names = sorted({key.instance for key in keys if key.host == host.name})
    for name in names:
        yield _interface(inputs, host, name)
    if not names:
        yield Resource(
            kind="network",
            resource="network",
            tier=host.tier,
            host=host.name,
            instance="",
            role=None,
            name=f"network of {host.name}",
            metric=RECEIVED,
            missing=f"the network of {host.name} was not recorded",
            remedy=f"record bytes a second and speed of the network interfaces of {host.name}",
        )


def _interface(inputs: Inputs, host: Host, name: str) -> Resource:
    samples = inputs.samples
    speed = samples.mean(host.name, SPEED, name)
    ways = [samples.steps(host.name, f"net.{way}_bytes_per_s", name) for way in ("received", "sent")]
    apart = bool(np.isfinite(ways).any())
    metric = RECEIVED if apart else BOTH
    rows = figure(inputs, host.name, USED, name)
    if speed and rows is None:
        traffic = np.fmax(*ways) if apart else samples.steps(host.name, BOTH, name)
        series = samples.series(host.name, metric, name)
        rows = Rows.of(series, Key(host.name, USED, name), traffic / speed)
    elif rows is not None:
        metric, apart = USED, True
    used = measure(inputs, rows, NETWORK, "utilisation", "traffic as a share of its speed:")
    noun = "packets that waited to be sent:"
    queue = measure(inputs, figure(inputs, host.name, QUEUE, name), WAITING, "saturation", noun, above=True)
    dropped = measure(inputs, figure(inputs, host.name, DROPS, name), DROPPED, "errors", "packets dropped:")
    queued = any(one and one.at_limit for one in (queue, dropped))
    doubt = remedy = missing = ""
    if used is None:
        missing = f"the speed of interface {name} of {host.name} was not recorded"
        remedy = f"record the speed of interface {name} of {host.name} (Current Bandwidth, ifutil)"
        doubt = "how much of its speed it used was not recorded" if queued else ""
    elif used.at_limit and not apart:
        doubt = "received and sent bytes were recorded together: a full-duplex interface has room for both"
        remedy = f"record received and sent bytes of interface {name} of {host.name} apart"
    elif queued and not used.at_limit:
        doubt = "packets waited, or were dropped, though it used less than 90 % of its speed"
        remedy = f"look at the driver, the switch and the errors of interface {name} of {host.name}"
    return Resource(
        kind="network",
        resource="network",
        tier=host.tier,
        host=host.name,
        instance=name,
        role=None,
        name=f"network interface {name} of {host.name}",
        metric=metric,
        measures=tuple(filter(None, (used and replace(used, metric=metric), queue, dropped))),
        has_room=None if used is None else used.has_room and not queued,
        missing=missing,
        doubt=doubt,
        remedy=remedy,
        context=contexts(inputs, host.name, CONTEXT, name),
    )
