"""Tests of the drivers: replies are the same however their bytes are split, and truncated ones are errors."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from valkey import exceptions

from pinchpoint_scenarios.fastpath.drivers import MORE, Driver, EndedError, resp
from pinchpoint_scenarios.fastpath.drivers.cql import CqlDriver, CqlError
from pinchpoint_scenarios.fastpath.drivers.http import HttpDriver, HttpError, Response
from pinchpoint_scenarios.fastpath.drivers.resp import RespDriver

# ---- every driver ------------------------------------------------------------------------------------


def pieces(content: bytes, cuts: Sequence[int]) -> list[bytes]:
    """Return the content in pieces, split at these places."""
    at = [0, *sorted(cut % (len(content) + 1) for cut in cuts), len(content)]
    return [part for first, last in pairwise(at) if (part := content[first:last])]


def fed(driver: Driver[Any], parts: Sequence[bytes]) -> Any:
    """Return the driver's reply, which must come with the last piece and not before."""
    for part in parts[:-1]:
        assert driver.receive(part) is MORE
    return driver.receive(parts[-1])


def resp_several() -> RespDriver:
    driver = RespDriver()
    driver.commands([("GET", "a"), ("GET", "b"), ("GET", "c")])
    return driver


def cql_frame(opcode: int, body: bytes, flags: int = 0) -> bytes:
    return struct.pack(">BBhBi", 0x84, flags, 0, opcode, len(body)) + body


class Page(Response):
    """A response that compares by status, head and body."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Response) and (
            (self.status, self.headers, self.body) == (other.status, other.headers, other.body)
        )

    __hash__ = None  # type: ignore[assignment]


def http_driver() -> HttpDriver:
    return HttpDriver(2**20)


LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
CHUNKED = b"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

CASES: dict[str, tuple[Callable[[], Driver[Any]], bytes, Any]] = {
    "resp status": (RespDriver, b"+OK\r\n", b"OK"),
    "resp value": (RespDriver, b"$11\r\nab\r\n+OK\r\n\0\xff\r\n", b"ab\r\n+OK\r\n\0\xff"),
    "resp nothing": (RespDriver, b"$-1\r\n", None),
    "resp false": (RespDriver, b"#f\r\n", False),
    "resp list": (RespDriver, b"*3\r\n:1\r\n*1\r\n+x\r\n$1\r\ny\r\n", [1, [b"x"], b"y"]),
    "resp map": (RespDriver, b"%1\r\n$6\r\nfield0\r\n$1\r\nv\r\n", {b"field0": b"v"}),
    "resp several": (resp_several, b"$1\r\nx\r\n$-1\r\n#f\r\n", [b"x", None, False]),
    "http length": (http_driver, LENGTH + b"hello", Page(200, LENGTH, b"hello")),
    "http chunks": (
        http_driver,
        CHUNKED + b"5\r\nhello\r\n2\r\n\r\n\r\n0\r\n\r\n",
        Page(404, CHUNKED, b"hello\r\n"),
    ),
    "http interim": (http_driver, CONTINUE + LENGTH + b"hello", Page(200, LENGTH, b"hello")),
    "cql void": (CqlDriver, cql_frame(8, b"\0\0\0\1"), (8, b"\0\0\0\1")),
    "cql empty": (CqlDriver, cql_frame(2, b""), (2, b"")),
    "cql warned": (CqlDriver, cql_frame(8, b"\0\2\0\3abc\0\1x" + b"body", 0x08), (8, b"body")),
    "cql traced": (CqlDriver, cql_frame(8, bytes(16) + b"body", 0x02), (8, b"body")),
    "cql large": (CqlDriver, cql_frame(8, bytes(70_000)), (8, bytes(70_000))),
}
UNHURRIED = settings(deadline=None, derandomize=True, database=None)
BY_NAME = pytest.mark.parametrize("name", CASES)
CUTS: SearchStrategy[list[int]] = st.lists(st.integers(0, 100_000), max_size=12)


@BY_NAME
def test_one_cut_at_every_place_changes_nothing(name: str) -> None:
    """A split at each of the first 200 places gives the same reply."""
    make, content, answer = CASES[name]
    for cut in range(min(len(content), 200) + 1):
        driver = make()
        assert fed(driver, pieces(content, [cut])) == answer


@BY_NAME
@UNHURRIED
@given(cuts=CUTS)
def test_any_cuts_change_nothing(name: str, cuts: list[int]) -> None:
    """Any splits give the same reply."""
    make, content, answer = CASES[name]
    assert fed(make(), pieces(content, cuts)) == answer


@BY_NAME
@UNHURRIED
@given(first=CUTS, second=CUTS)
def test_one_answer_leaves_nothing_to_the_next(name: str, first: list[int], second: list[int]) -> None:
    """The same reply twice on one connection is read twice."""
    make, content, answer = CASES[name]
    driver = make()
    assert fed(driver, pieces(content, first)) == answer
    if isinstance(driver, RespDriver) and name == "resp several":
        driver.commands([("GET", "a")] * 3)
    assert fed(driver, pieces(content, second)) == answer


@BY_NAME
@UNHURRIED
@given(end=st.integers(0, 100_000), cuts=CUTS)
def test_an_end_within_an_answer_is_no_answer(name: str, end: int, cuts: list[int]) -> None:
    """A reply truncated at any place is no reply."""
    make, content, _ = CASES[name]
    driver = make()
    for part in pieces(content[: end % len(content)], cuts):
        assert driver.receive(part) is MORE
    with pytest.raises((EndedError, HttpError), match="closed the connection"):
        driver.receive(b"")


@BY_NAME
@UNHURRIED
@given(more=st.binary(min_size=1, max_size=20), cuts=CUTS)
def test_more_than_was_requested_is_no_answer(name: str, more: bytes, cuts: list[int]) -> None:
    """Bytes after the reply make the connection unusable, because they would be read as the next reply."""
    make, content, _ = CASES[name]
    *parts, last = pieces(content, cuts)
    driver = make()
    for part in parts:
        assert driver.receive(part) is MORE
    if isinstance(driver, HttpDriver):  # only the first reply counts
        assert driver.receive(last + more) == CASES[name][2]
        assert not (driver.keep_alive and more.strip(b"\r\n"))  # blank lines are allowed between replies
        return
    with pytest.raises((exceptions.InvalidResponse, CqlError), match="more than was requested"):
        driver.receive(last + more)


# ---- garbage -----------------------------------------------------------------------------------------


@st.composite
def garbage(draw: DrawFn, begin: SearchStrategy[bytes]) -> list[bytes]:
    content = draw(begin) + draw(st.binary(max_size=200))
    return pieces(content, draw(CUTS))


@UNHURRIED
@given(parts=garbage(st.sampled_from([b"", b"*", b"$", b"%2\r\n", b"$-7\r\n", b"+"])))
def test_garbage_is_no_reply_or_named(parts: list[bytes]) -> None:
    """Random bytes give no reply or a named failure, never another exception."""
    driver = RespDriver()
    try:
        for part in [*parts, b""]:
            if driver.receive(part) is not MORE:
                return
    except (exceptions.ValkeyError, EndedError):
        return
    raise AssertionError("an end was taken for an answer's part")


@UNHURRIED
@given(parts=garbage(st.sampled_from([b"", b"\x84", cql_frame(8, b"")[:5], cql_frame(8, b"\0\1", 0x08)])))
def test_garbage_is_no_frame_or_named(parts: list[bytes]) -> None:
    """Random bytes give no CQL frame or a named failure."""
    driver = CqlDriver()
    try:
        for part in [*parts, b""]:
            if driver.receive(part) is not MORE:
                return
    except (CqlError, EndedError):
        return
    raise AssertionError("an end was taken for an answer's part")


TOO_LARGE = (
    b"*1000000000\r\n",
    b"%9999999\r\n",
    b"*2\r\n$1\r\nx\r\n*1000000000\r\n",
    b"*600000\r\n*600000\r\n",
    b"*99999999999999999999999\r\n",
)


@pytest.mark.parametrize("make", [RespDriver, resp_several])
@pytest.mark.parametrize("content", TOO_LARGE)
def test_a_list_that_says_it_is_enormous_is_no_answer(make: Callable[[], RespDriver], content: bytes) -> None:
    """A list with an enormous declared length (8 GB) is refused without memory for it, in any split."""
    for cut in range(1, len(content)):
        driver = make()
        with pytest.raises(exceptions.InvalidResponse, match=r"more than|Bad multi-bulk length"):
            fed(driver, pieces(content, [cut]))


@pytest.mark.parametrize("make", [RespDriver, resp_several])
@pytest.mark.parametrize("content", [b"%1\r\n%1\r\n+a\r\n+b\r\n+c\r\n", b"%1\r\n*1\r\n:1\r\n+a\r\n"])
def test_a_list_as_a_key_is_no_answer(make: Callable[[], RespDriver], content: bytes) -> None:
    """A list as a map key is an invalid reply, not a TypeError (found by ``make fuzz``)."""
    with pytest.raises(exceptions.InvalidResponse, match="no RESP"):
        make().receive(content)


def test_a_value_without_end_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """An endless value is refused, because it would stay in memory until it is complete."""
    monkeypatch.setattr(resp, "_LARGEST_BYTES", 2**20)
    driver = RespDriver()
    driver.receive(b"$1000000000\r\n")
    with pytest.raises(exceptions.InvalidResponse, match="more than 1,048,576 bytes"):
        fed(driver, [bytes(2**16)] * 20)


def test_refusals_are_answers() -> None:
    """If one of several commands is refused, the replies of the others are returned."""
    driver = resp_several()
    first, refused, last = driver.receive(b"+OK\r\n-WRONGTYPE no\r\n+OK\r\n")
    assert (first, last) == (b"OK", b"OK")
    assert isinstance(refused, exceptions.ResponseError)
