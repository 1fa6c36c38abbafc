"""Tests of the lines for the crawl database: stable keys, any names, bounded sizes."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
import uuid

import psycopg

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.full_crawl.frontier import done_lines, found_lines
from pinchpoint_scenarios.full_crawl.records import Done, FailedRequest, ItemResult, LeasedItem, key_of
from pinchpoint_scenarios.full_crawl.result_cache import ResultCache
from pinchpoint_scenarios.full_crawl.sources import Grant, Item

NAMES = ("plain", "größe ☃", "nul\0inside", "half \ud800 a pair", "a \N{GRINNING FACE}", 'quote " \\ \n')


def test_a_key_is_what_it_was() -> None:
    """Keys never change, because kept indexes use them: the first half of a SHA-256, as a UUID."""
    for source, url in (("s", "http://h/"), ("größe", "file:///x%20y")):
        digest = hashlib.sha256(f"{source}\n{url}".encode()).digest()
        assert key_of(source, url) == str(uuid.UUID(bytes=digest[:16]))


def test_whatever_a_source_names_can_be_stored(sql: Endpoint) -> None:
    """A NUL and half a surrogate pair, which the database cannot store, are replaced."""
    item = Item("document", "u", detail="".join(NAMES), identity=NAMES[2])
    taken = LeasedItem(1, 1, key_of("s", "u"), "s", "document", item, None, {})
    access = tuple(Grant(name, name) for name in NAMES)
    failures = tuple(FailedRequest("fetch", "timeout", name) for name in NAMES)
    result = ItemResult("ok", access=access, links=("http://h/x",), failures=failures, latency_s=0.25)
    (line,) = json.loads(done_lines([Done(taken, result, 0)]))
    assert [each["principal"] for each in line["grants"]] == [
        "plain", "größe ☃", "nul\ufffdinside", "half \ufffd a pair", "a \N{GRINNING FACE}", 'quote " \\ \n',
    ]  # fmt: skip
    assert line["targets"] == [{"target": key_of("s", "http://h/x"), "url": "http://h/x"}]
    assert (line["latency_s"], line["index_s"]) == (0.25, None)
    for lines in (done_lines([Done(taken, result, 0)]), found_lines("s", [item])):
        with psycopg.connect(sql.url) as connection:
            given = connection.execute("SELECT jsonb_array_length(%s::jsonb)", [lines]).fetchone()
        assert given == (1,)


def test_a_remembered_address_takes_a_quarter_of_a_kilobyte() -> None:
    """A remembered address takes a quarter of a kilobyte, however many pages link to it."""
    links = tuple(f"http://h/page{number}.html" for number in range(2000))
    done = Done(
        LeasedItem(1, 1, key_of("m", "u"), "m", "document", Item("document", "u"), None, {}),
        ItemResult("ok"),
        0,
    )
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(2):
            done_lines([done._replace(result=ItemResult("ok", links=links))])
        taken_bytes = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert taken_bytes / len(links) < 600


def test_a_memo_asks_once_and_holds_so_many() -> None:
    """A memo computes a value once, begins again when full, and does not keep exceptions."""
    asked: list[int] = []

    def ask(number: int) -> int:
        asked.append(number)
        if number < 0:
            raise ValueError(number)
        return -number

    memo = ResultCache(ask, 3)
    assert [memo[each] for each in (1, 2, 3, 1, 2)] == [-1, -2, -3, -1, -2]
    assert asked == [1, 2, 3]
    assert memo[4] == -4
    assert dict(memo) == {4: -4}
    for _ in range(2):
        try:
            memo[-1]
        except ValueError:
            continue
        raise AssertionError
    assert asked[-2:] == [-1, -1]
