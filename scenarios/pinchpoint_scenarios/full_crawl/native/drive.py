"""Scenario full-crawl by a SharePoint farm's own crawler: ``params: {drive: native}``."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from pinchpoint_collectors.common.names import unknown
from pinchpoint_collectors.common.powershell import LinkLost

from ...addresses import place
from ...contract import Intent, ScenarioContext, Sent, Target
from ...errors import EndpointUnreachable, ScenarioError
from ...units import spelt_s
from .crawl_log import items
from .crawler import Crawler
from .params import NativeParams
from .progress import CrawlState
from .session import NativeSession

ENDPOINT = "crawler"
"""Name of the endpoint that controls the crawler of the farm."""

_REACH_S = 20.0
_STOP_POLL_S = 1.0


class NativeCrawl:
    """full-crawl if the farm itself crawls (see ``contract.Scenario``).

    Args:
        context: inputs, as for every scenario.
        params: parameters of this kind of crawl.
    """

    def __init__(self, context: ScenarioContext, params: NativeParams) -> None:
        if ENDPOINT not in context.endpoints:
            raise ScenarioError(
                f"scenario {context.name!r}: drive native needs the endpoint {ENDPOINT}; add "
                f"endpoints.{ENDPOINT} to farm.yaml, with the url of a server of the farm (winrm://HOST or ssh://HOST)"
            )
        self._context = context
        self._params = params
        self._endpoint = context.endpoints[ENDPOINT]
        self._prepared = False

    def check(self) -> Mapping[str, Any]:
        """Run a harmless cmdlet to check that the farm is available, idle, and the intended one."""
        if self._context.resume:
            raise ScenarioError(
                f"scenario {self._context.name!r}: the farm's own crawl is stopped when its run ends, so "
                "there is nothing to go on with; run without --resume"
            )
        crawler = self._crawler()
        try:
            farm, result = crawler.patiently(crawler.check, 0)
        finally:
            crawler.leave()
        chosen = self._chosen(result)
        self._is_ready(farm, chosen)
        self._is_meant(str(farm["application"]))
        return {ENDPOINT: self._facts(farm, chosen)}

    def intent(self) -> Intent:
        """Return the farm's own crawl. Only the farm knows what it writes."""
        params, reset = self._params, self._context.reset_index
        sources = ", ".join(params.content_sources) or "every content source"
        application = params.application or "the only search service application"
        sent = [Sent("crawl", f"StartFullCrawl of {sources}; then its state is asked", None, None, None)]
        if reset:
            names = " or ".join(map(repr, (params.application,) if params.application else reset))
            sent.insert(
                0, Sent("reset", f"the index of {names} is emptied before, for good", None, None, None)
            )
        return Intent(
            (Target(place(self._endpoint), application),),
            (),
            tuple(sent),
            "nothing; a crawl that is still going on is stopped",
            notes=("what the farm's crawl reads and writes is the farm's own doing: not known",),
        )

    def prepare(self, progress: Callable[[str], None]) -> None:
        """Reset the index if its name was given, after a message about the loss."""
        if not self._context.reset_index:
            progress(f"the farm crawls into its index as it is; {_HOW_TO_RESET}")
        else:
            crawler = self._crawler()
            try:
                self._reset(crawler, progress)
            finally:
                crawler.leave()
        self._prepared = True

    def session(self, number: int) -> NativeSession:  # noqa: ARG002 - there is one
        """Open the session that starts the crawls and watches them."""
        session = NativeSession(self._crawler(), self._params, self._context.event)
        session.warm()
        return session

    def finish(self, *, keep_data: bool) -> None:  # noqa: ARG002 - a crawl is load, no data
        """Stop crawls in progress, and wait until the farm is idle."""
        if not self._prepared:
            return
        crawler = self._crawler()
        try:
            crawler.patiently(lambda: self._stop(crawler), self._params.stop_within)
        except EndpointUnreachable as error:
            raise ScenarioError(
                f"whether its crawls have ended is not known: {error}; look in Central Administration"
            ) from error
        finally:
            crawler.leave()

    def _crawler(self) -> Crawler:
        return Crawler(self._endpoint, self._params)

    def _chosen(self, states: list[CrawlState]) -> list[CrawlState]:
        if not states:
            raise ScenarioError(
                f"{place(self._endpoint)}: the search service application has no content source; add one in "
                "Central Administration"
            )
        names = {state.source for state in states}
        for name in self._params.content_sources:
            if name not in names:
                raise ScenarioError(f"{place(self._endpoint)}: {unknown('content source', name, names)}")
        return [state for state in states if state.source in (self._params.content_sources or names)]

    def _is_ready(self, farm: Mapping[str, Any], chosen: list[CrawlState]) -> None:
        if farm.get("paused"):
            raise ScenarioError(
                f"{place(self._endpoint)}: the search service application is paused (IsPaused: "
                f"{int(farm['paused']):#x}), so nothing would be crawled; SharePoint's documentation says "
                "what each bit stands for, and how it is resumed"
            )
        busy = [f"{state.source} {state.words}" for state in chosen if not state.idle]
        if busy:
            raise ScenarioError(
                f"{place(self._endpoint)}: {'; '.join(busy)}; wait until all are idle, or stop them "
                "in Central Administration"
            )

    def _is_meant(self, application: str) -> None:
        asked = self._context.reset_index
        if asked and application not in asked:
            result = ", ".join(map(repr, asked))
            raise ScenarioError(
                f"{place(self._endpoint)}: --reset-index: found {result}; the search service application "
                f"is {application!r}; type its name as it is, or leave --reset-index out"
            )

    def _facts(self, farm: Mapping[str, Any], chosen: list[CrawlState]) -> dict[str, Any]:
        reset = bool(self._context.reset_index)
        return {
            "server": "SharePoint",
            "version": str(farm.get("build") or ""),
            "application": farm["application"],
            "machine": farm.get("server"),
            "user": farm.get("user"),
            "content_sources": [state.source for state in chosen],
            "reset": reset,
            "warnings": [] if reset else [f"the farm crawls into its index as it is; {_HOW_TO_RESET}"],
        }

    def _reset(self, crawler: Crawler, progress: Callable[[str], None]) -> None:
        farm, result = crawler.patiently(crawler.check, _REACH_S)
        name = str(farm["application"])
        self._is_meant(name)
        log = crawler.patiently(crawler.statistics, _REACH_S)
        held = items(row for line in log if line["kind"] == "items" for row in line["rows"])
        held = held or [f"{one.source}: {one.success or 0:,} items of its last crawl" for one in result]
        progress(
            f"resetting the index of {name!r}: all of it is lost, of {len(result)} content sources "
            f"({'; '.join(held)}); nothing is found until it is crawled again, and search alerts stay off"
        )
        started_s = time.monotonic()
        try:
            crawler.reset(name)
        except LinkLost as lost:
            raise ScenarioError(
                f"{lost}; whether {name!r} was reset is not known; look in Central Administration"
            ) from lost
        progress(f"the index of {name!r} was reset in {spelt_s(time.monotonic() - started_s)}")

    def _stop(self, crawler: Crawler) -> None:
        until = time.monotonic() + self._params.stop_within
        asked = False
        while busy := [state for state in crawler.states() if not state.idle]:
            if not asked:
                crawler.stop()
                asked = True
            if time.monotonic() > until:
                raise ScenarioError(
                    f"{place(self._endpoint)}: content source "
                    f"{busy[0].source!r} {busy[0].words} {spelt_s(self._params.stop_within)} "
                    "after StopCrawl; see to it in Central Administration"
                )
            time.sleep(_STOP_POLL_S)


_HOW_TO_RESET = 'run --reset-index "NAME", with the name of the search service application, empties it before'
