"""Judges a host's network in a recording: traffic of each interface against its speed, and losses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from pinchpoint.analysis.recordings.measures import Measure, RecordedResource, Rows, contexts, figure, measure
from pinchpoint.analysis.thresholds import NETWORK, Threshold
from pinchpoint.data.inputs import Host, Inputs
from pinchpoint.data.series import Key

SPEED = "net.speed_bytes_per_s"
CONTEXT = (("net.errors_per_s", "errors"), ("net.drops_per_s", "packets dropped"))
RECEIVED, BOTH, USED = "net.received_bytes_per_s", "net.total_bytes_per_s", "net.used_ratio"
QUEUE, DROPS = "net.output_queue", "net.drops_per_s"
SHARES_DROPPED = ("net.received_dropped_ratio", "net.sent_dropped_ratio")
DROPPED = Threshold(10.0, "design", "packets are dropped all the time: ten a second, or more")
LOST = Threshold(0.01, "design", "of a hundred packets one is dropped, or is sent again, at least")
RESENT = Threshold(DROPPED.value, "design", "segments are sent again all the time: ten a second, or more")
WAITING = Threshold(2.0, "PAL", "Output Queue Length: critical when more than 2 packets wait")


def interfaces(inputs: Inputs, host: Host) -> Iterator[RecordedResource]:
    """Each interface with traffic; one entry for all if none was recorded or TCP retransmitted much."""
    keys = [key for metric in (RECEIVED, BOTH, USED, QUEUE, DROPS) for key in inputs.samples.keys(metric)]
    keys += [key for metric in SHARES_DROPPED for key in inputs.samples.keys(metric) if _loses(inputs, key)]
    names = sorted({key.instance for key in keys if key.host == host.name})
    for name in names:
        yield _interface(inputs, host, name)
    resent = _resent(inputs, host)
    if resent or not names:
        yield RecordedResource(
            kind="network",
            tier=host.tier,
            host=host.name,
            name=f"network of {host.name}",
            metric=RECEIVED,
            measures=(resent,) if resent else (),
            has_room=False if resent else None,
            missing="" if names else f"the network of {host.name} was not recorded",
            doubt="where packets are lost was not recorded" if resent else "",
            remedy=f"record drops and errors of the network interfaces of {host.name}, and of the switch"
            if resent
            else f"record bytes a second and speed of the network interfaces of {host.name}",
        )


def _loss(inputs: Inputs, key: Key) -> Measure | None:
    return measure(inputs, figure(inputs, *key), LOST, "errors", "of the packets were dropped:")


def _loses(inputs: Inputs, key: Key) -> bool:
    loss = _loss(inputs, key)
    return loss is not None and loss.at_limit


def _resent(inputs: Inputs, host: Host) -> Measure | None:
    """TCP retransmits, if there are many: as a share of the sent segments if these were recorded."""
    metrics = "net.retransmits_per_s", "net.segments_sent_per_s"
    resent, sent = (figure(inputs, host.name, metric) for metric in metrics)
    many = None if resent is None or sent is None else resent.values >= LOST.value * sent.values
    noun = "TCP segments that were sent again:"
    one = measure(inputs, resent, RESENT, "errors", noun, only=many)
    return one if one and one.at_limit else None


def _interface(inputs: Inputs, host: Host, name: str) -> RecordedResource:
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
    shares = [_loss(inputs, Key(host.name, metric, name)) for metric in SHARES_DROPPED]
    queued = any(one and one.at_limit for one in (queue, dropped, *shares))
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
    return RecordedResource(
        kind="network",
        tier=host.tier,
        host=host.name,
        instance=name,
        name=f"network interface {name} of {host.name}",
        metric=metric,
        measures=tuple(filter(None, (used and replace(used, metric=metric), queue, dropped, *shares))),
        has_room=None if used is None else used.has_room and not queued,
        missing=missing,
        doubt=doubt,
        remedy=remedy,
        context=contexts(inputs, host.name, CONTEXT, name),
    )
