"""A simulated SharePoint farm that answers requests as the crawl script does.

The state of a content source depends on the time since the start of its crawl and on the test's settings: a
slow start, a pause, errors, a crawl that never begins.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Asked = dict[str, Any]
Lines = Iterator[tuple[str, dict[str, Any]]]

EARLIER = "2026-11-20T01:00:00.0000000Z"


@dataclass
class Source:
    """One content source with the settings of its next crawl.

    Attributes:
        name: name of the source. items, errors, warnings, top_level_errors, deleted: counts at the end of the
            crawl.
        per_s: items per second.
        starting_s: duration of the start, in seconds.
        refuses: error that StartFullCrawl throws; None: none.
        never_begins: True: StartFullCrawl returns, but no crawl begins.
        pause: (seconds of crawling before a pause by an administrator, its length in seconds).
        stopping_s: duration of the stop, in seconds.
        state: state before any request.
    """

    name: str
    items: int = 100
    errors: int = 0
    warnings: int = 0
    top_level_errors: int = 0
    deleted: int = 0
    per_s: float = 100.0
    starting_s: float = 0.0
    refuses: str = ""
    never_begins: bool = False
    pause: tuple[float, float] | None = None
    stopping_s: float = 0.1
    state: str = "Idle"
    started_s: float | None = None
    stopped_s: float | None = None

    def line(self) -> dict[str, Any]:
        """Return the script's line on its present state."""
        state, done, lasted_s = self._now(time.monotonic())
        fresh = self.started_s is not None and state != "CrawlStarting" and not self.never_begins
        share = done / self.items if self.items else 1.0
        began = f"2026-11-21T01:{self.started_s}" if fresh else EARLIER
        return {
            "source": self.name,
            "type": "SharePointContentSource",
            "state": state,
            "started": began,
            "completed": None if lasted_s is None else "2026-11-21T09:00:00.0000000Z",
            "duration_s": lasted_s,
            "success": done if fresh else 7777,
            "warning": int(self.warnings * share) if fresh else 0,
            "error": int(self.errors * share) if fresh else 33,
            "top_level_error": self.top_level_errors if fresh and state == "Idle" else 0,
            "deleted": int(self.deleted * share) if fresh else 0,
        }

    def start(self) -> str | None:
        """Start a full crawl; return the error that is thrown, or None."""
        state = self._now(time.monotonic())[0]
        if state != "Idle":
            return f"it is not Idle but {state}"
        if not self.refuses:
            self.started_s, self.stopped_s = time.monotonic(), None
        return self.refuses or None

    def stop(self) -> None:
        """Stop the crawl."""
        self.stopped_s = time.monotonic()

    def _now(self, now_s: float) -> tuple[str, int, float | None]:
        """Return (state, items done, duration of the crawl in seconds if it has ended)."""
        if self.started_s is None or self.never_begins:
            return self.state, 0, 3600.0 if self.state == "Idle" else None
        until_s = min(now_s, self.stopped_s) if self.stopped_s is not None else now_s
        working_s = until_s - self.started_s - self.starting_s
        if working_s < 0:
            return ("CrawlStarting", 0, None) if self.stopped_s is None else ("Idle", 0, 0.0)
        paused = False
        if self.pause and working_s > self.pause[0]:
            paused = working_s < sum(self.pause)
            working_s = max(self.pause[0], working_s - self.pause[1])
        done = min(self.items, int(working_s * self.per_s))
        whole_s = self.items / self.per_s + (self.pause[1] if self.pause else 0.0)
        if done >= self.items and not paused:
            return "Idle", self.items, whole_s
        if self.stopped_s is not None:
            over = now_s > self.stopped_s + self.stopping_s
            return ("Idle", done, until_s - self.started_s) if over else ("CrawlStopping", done, None)
        return ("Paused" if paused else "CrawlingFull"), done, None


@dataclass
class Farm:
    """A simulated SharePoint farm.

    Attributes:
        sources: its content sources.
        application: name of its search service application.
        paused: result of IsPaused.
        refuses: request -> error that it throws.
        asked: requests so far, in order.
        lease: session that controls the crawls.
        resets: number of index resets.
        history: row of the crawl history, the same for each source.
        others: its other search service applications, each as a farm of its own.
    """

    sources: list[Source]
    application: str = "Search Service Application"
    paused: int = 0
    refuses: dict[str, str] = field(default_factory=dict)
    asked: list[dict[str, Any]] = field(default_factory=list)
    lease: object = None
    resets: int = 0
    history: dict[str, Any] = field(default_factory=lambda: {"CrawlID": 7, "Repository latency": 381.0})
    others: list[Farm] = field(default_factory=list)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def session(self) -> Session:
        """Return a new session with the loaded script."""
        return Session(self)

    def did(self) -> list[str]:
        """Return the requests that change something."""
        return [asked["do"] for asked in self.asked if asked["do"] not in ("state", "check", "statistics")]

    def named(self, application: str | None) -> Farm:
        """Return the application of that name; without a name, the only one."""
        known = {one.application: one for one in (self, *self.others)}
        names = ", ".join(known)
        if application is None and len(known) > 1:
            raise ValueError(f"the farm has several search service applications: {names}; name one of them")
        found = known.get(application or self.application)
        if found is None:
            raise ValueError(
                f"the farm has no search service application '{application}'; there are: {names}"
            )
        return found

    def chosen(self, names: list[str] | None) -> list[Source]:
        """Return the sources of these names; without names, all."""
        known = [source.name for source in self.sources]
        for name in names or ():
            if name not in known:
                raise ValueError(f"no content source '{name}'; there are: {', '.join(known)}")
        return [source for source in self.sources if not names or source.name in names]


class Session:
    """One session with the loaded script."""

    def __init__(self, farm: Farm) -> None:
        self._all = self._farm = farm
        self.watched: list[str] | None = None
        self.grace_s = 600.0
        self.ended = False

    def answer(self, text: str) -> list[str]:
        """Return the lines that answer a request."""
        with self._all._lock:
            asked = json.loads(text)
            self._all.asked.append(asked)
            found = []
            try:
                for kind, fields in self._lines(asked):
                    found.append({"kind": kind, **fields})
                found.append({"kind": "done", "id": asked["id"]})
            except ValueError as error:
                found.append({"kind": "error", "id": asked["id"], "why": str(error), "at": 1})
            return [json.dumps(line) for line in found]

    def orphan(self) -> None:
        """Act as the script does when its link is lost, in a thread of its own."""
        if self.ended or self.watched is None:
            return
        until = time.monotonic() + self.grace_s
        while time.monotonic() < until:
            if self._farm.lease is not self:
                return
            time.sleep(0.02)
        with self._farm._lock:
            for source in self._farm.chosen(self.watched):
                source.stop()
            self._all.asked.append({"do": "stopped-as-orphan"})

    def _lines(self, asked: Asked) -> Lines:
        if asked["do"] in self._all.refuses:
            raise ValueError(self._all.refuses[asked["do"]])
        self._farm = self._all.named(asked.get("application"))
        steps = {
            "check": self._check,
            "start": self._start,
            "watch": self._watch,
            "state": self._state,
            "statistics": self._statistics,
            "stop": self._stop,
            "reset": self._reset,
            "bye": self._bye,
        }
        if asked["do"] not in steps:
            raise ValueError(f"'{asked['do']}' cannot be asked for")
        yield from steps[asked["do"]](asked)

    def _check(self, _: Asked) -> Lines:
        farm = self._farm
        about = {"build": "16.0.10417.20018", "server": "APP3", "user": "FARM\\loader"}
        yield "farm", {"application": farm.application, "paused": farm.paused, **about}
        yield from (("source", source.line()) for source in farm.sources)

    def _start(self, asked: Asked) -> Lines:
        yield from self._watch(asked)
        for source in self._farm.chosen(asked.get("sources")):
            why = source.start()
            yield "start", {"source": source.name, "started": why is None, "why": why}

    def _watch(self, asked: Asked) -> Lines:
        self._farm.lease = self
        self.watched, self.grace_s = asked.get("sources") or [], asked["grace_s"]
        yield from ()

    def _state(self, asked: Asked) -> Lines:
        yield from (("source", source.line()) for source in self._farm.chosen(asked.get("sources")))

    def _stop(self, asked: Asked) -> Lines:
        for source in self._farm.chosen(asked.get("sources")):
            was = source.line()["state"]
            if was not in ("Idle", "CrawlStopping"):
                source.stop()
            yield "stop", {"source": source.name, "was": was}

    def _reset(self, asked: Asked) -> Lines:
        if asked["name"] != self._farm.application:
            raise ValueError("the index is reset only when its name is given")
        self._farm.resets += 1
        yield "reset", {"application": self._farm.application}

    def _bye(self, _: Asked) -> Lines:
        self.ended, self.watched = True, None
        yield from ()

    def _statistics(self, asked: Asked) -> Lines:
        held = [{"ContentSourceName": one.name, "SuccessCount": 7777} for one in self._farm.sources]
        yield "items", {"rows": held}
        for source in self._farm.chosen(asked.get("sources")):
            history = [self._farm.history] if self._farm.history else []
            errors = [{"ErrorMessage": "The item could not be accessed.", "ErrorCount": source.errors}]
            told = errors if source.errors else []
            yield "statistics", {"source": source.name, "history": history, "errors": told}
