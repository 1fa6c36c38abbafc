"""Computes the figures of each source of a crawl: documents, rates, failures, stages, busy workers.

The time of a stage is the sum over all of its operations, including every attempt. This time ÷ the seconds in
which the source was crawled is the mean number of busy workers (Little's law). The number of busy workers ÷
their limit is the utilisation of the pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pinchpoint.data.inputs import Inputs, Load
from pinchpoint.data.operations import Traffic

STAGES = ("politeness", "enumerate", "fetch", "index", "crawl_db")
"""The stages of a document, in order: wait for politeness, enumeration, fetch, index, crawl log."""
_EVENT_ONLY = ("deleted", "unchanged", "bytes", "repository_latency_p50_s", "repository_latency_p95_s")
_BULK = "crawl/bulk"
"""The operation of a request that carries documents of several users to the destination."""
_LOGGED = 50
"""Most failed items that a source's row lists; the crawl database has all of them."""


def crawl_table(inputs: Inputs) -> list[dict[str, Any]]:
    """One row per crawled source, over the whole of the first crawl that ended, warm-up included."""
    rows: list[dict[str, Any]] = []
    for load in inputs.loads:
        if load.use == "full-crawl":
            traffic = inputs.whole.of(load.scenario)
            ended = _first_end(inputs.events, load.scenario)
            rows += _ended_crawl(traffic, ended, load) if ended else _open_crawl(traffic, load)
    return rows


def _first_end(events: Iterable[Mapping[str, Any]], scenario: str) -> Mapping[str, Any] | None:
    for event in events:
        if event.get("event") == "crawl_ended" and event.get("scenario", scenario) == scenario:
            return event
    return None


def _ended_crawl(traffic: Traffic, ended: Mapping[str, Any], load: Load) -> list[dict[str, Any]]:
    """One row per source, with the counts of the crawl database.

    ``rate_per_s`` is count ÷ duration; ``rate_active_per_s`` counts only the seconds in which a document
    ended.
    """
    rows = []
    destination = _destination(traffic, ended.get("destination_limit"), load)
    for source in ended.get("sources") or ():
        name, count, duration = source["source"], source["count"], source["duration_s"]
        active = source.get("rate_active_per_s")
        rows.append(
            {
                "source": name,
                "count": count,
                "failures": source["failures"],
                "skipped": source["skipped"],
                "duration_s": duration,
                "rate_per_s": count / duration if duration else None,
                "rate_active_per_s": _active_rate(traffic.operations(f"document:{name}"))
                if active is None
                else active,
                "repository_latency_s": source.get("repository_latency_s"),
                **{key: source.get(key) for key in _EVENT_ONLY},
                "failures_by_kind": source.get("failures_by_kind") or {},
                "failed": list(source.get("failed") or ())[:_LOGGED],
                "complete": source.get("complete", True),
                **_workers(traffic, name, source.get("workers"), load),
                "destination": destination,
            }
        )
    return rows


def _open_crawl(traffic: Traffic, load: Load) -> list[dict[str, Any]]:
    """One row per source of a crawl that did not end, from its operations, marked as incomplete."""
    rows = []
    destination = _destination(traffic, None, load)
    for operation in traffic.whole().operation_names:
        documents = traffic.operations(operation)
        seconds, outcomes = documents.seconds, documents.outcomes()
        if not operation.startswith("document:") or not seconds:
            continue
        count = documents.ok().count
        duration = float(seconds[-1] + 1 - seconds[0])
        fetch = traffic.operations(f"{operation}/fetch").service()
        failed = {kind: n for kind, n in outcomes.items() if kind not in {"ok", "skipped", "dropped"}}
        name = operation.removeprefix("document:")
        rows.append(
            {
                "source": name,
                "count": count,
                "failures": documents.failures,
                "skipped": outcomes.get("skipped", 0),
                "duration_s": duration,
                "rate_per_s": count / duration,
                "rate_active_per_s": _active_rate(documents),
                "repository_latency_s": fetch.mean_s if fetch else None,
                "failures_by_kind": failed,
                "complete": False,
                **_workers(traffic, name, None, load),
                "destination": destination,
            }
        )
    return rows


def _workers(traffic: Traffic, source: str, limit: int | None, load: Load) -> dict[str, Any]:
    """How the workers of a source spent their time.

    Returns:
        stages: stage -> seconds per ended document; only stages that occurred.
        workers: most workers of the source, else the number of users of a closed load; None if unknown.
        workers_busy: mean number of busy workers while the source was crawled.
        workers_busy_ratio: ``workers_busy`` ÷ ``workers``.
    """
    documents = traffic.operations(f"document:{source}").count
    spent: dict[str, float] = {}
    seconds: set[int] = set()
    for stage in STAGES:
        of_stage = traffic.operations(f"document:{source}/{stage}")
        service = of_stage.service()
        if service:
            spent[stage] = service.mean_s * service.count
            seconds.update(of_stage.seconds)
    busy = sum(spent.values()) / (max(seconds) + 1 - min(seconds)) if seconds else None
    places = None if load.native else limit or load.users
    return {
        "stages": {stage: total_s / documents for stage, total_s in spent.items()} if documents else {},
        "workers": places,
        "workers_busy": busy,
        "workers_busy_ratio": busy / places if busy is not None and places else None,
    }


def _destination(traffic: Traffic, limit: int | None, load: Load) -> dict[str, Any] | None:
    """Utilisation of the pool of requests to the destination; None without such requests.

    Returns:
        busy: mean number of requests in flight, over the seconds with at least one.
        limit: most requests at a time. If a request carries documents of several users, the crawl reports
            this number, else it is the number of users. None if unknown.
        busy_ratio: ``busy`` ÷ ``limit``.
    """
    bulk = traffic.operations(_BULK)
    requests = bulk if bulk.count else traffic.ending("/index")
    service, seconds = requests.service(), requests.seconds
    if not service or not seconds:
        return None
    busy = service.mean_s * service.count / (max(seconds) + 1 - min(seconds))
    places = limit if bulk.count else load.users
    return {"busy": busy, "limit": places, "busy_ratio": busy / places if places else None}


def _active_rate(documents: Traffic) -> float | None:
    """Documents per second over the seconds in which at least one ended."""
    done = documents.ok()
    return done.count / len(done.seconds) if done.seconds else None
