"""Samples a store's statistics about once a second."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from pinchpoint.base.errors import FarmUnavailable, InputError
from pinchpoint.base.redact import redacted_text
from pinchpoint.fit.stores import mongodb, valkey
from pinchpoint.fit.stores.record import ProductionStore
from pinchpoint.fit.stores.valkey import Info, is_info, read_info

_VALKEY = ("valkey", "valkeys", "redis", "rediss")
_MONGODB = ("mongodb", "mongodb+srv")
SCHEMES = (*_VALKEY, *_MONGODB)
_ANSWER_S = 5.0
_READINGS = 600
_FEWEST = 4


def is_store(source: str) -> bool:
    """Whether a source is the URL of a store that can be watched."""
    return source.partition("://")[0] in SCHEMES


def watched(url: str, over_s: float, say: Callable[[str], None]) -> ProductionStore:
    """The activity of a store over ``over_s`` seconds; reads only its statistics.

    Raises:
        FarmUnavailable: the store cannot be reached, or refuses the user.
        InputError: the URL cannot be read, or the store was idle.
    """
    shown = redacted_text(url)
    every_s = max(min(1.0, over_s / _FEWEST), over_s / _READINGS)
    say(f"watching {shown} for {over_s:.0f} s")
    try:
        name = urlsplit(url).netloc.rpartition("@")[2]  # without user and password
    except ValueError as error:
        raise InputError(f"--from: {shown}: is no URL ({error}); correct it") from error
    if url.partition("://")[0] in _VALKEY:
        return valkey.store(_infos(url, name, shown, over_s, every_s))
    return mongodb.store(_statuses(url, shown, over_s, every_s), name)


def _each(over_s: float, every_s: float, ask: Callable[[], Any]) -> list[Any]:
    """Answers at even intervals; a slow answer does not shift the later ones."""
    begun = time.monotonic()
    answers = [ask()]
    while (due_s := len(answers) * every_s) <= over_s * (1 + 1e-9):
        time.sleep(max(0.0, begun + due_s - time.monotonic()))
        answers.append(ask())
    return answers


def _infos(url: str, name: str, shown: str, over_s: float, every_s: float) -> list[Info]:
    from valkey import Valkey  # noqa: PLC0415 -- a store's library, where one is asked
    from valkey.exceptions import ResponseError, ValkeyError  # noqa: PLC0415 -- likewise

    try:
        # Connecting sends only AUTH, because SELECT and CLIENT SETINFO would need further rights.
        made: Callable[..., Any] = Valkey.from_url
        client = made(url, db=0, lib_name=None, lib_version=None, socket_timeout=_ANSWER_S)
        client.connection_pool.make_connection()  # raises if a setting in the URL does not exist
    except (ValueError, TypeError) as error:
        raise InputError(f"{shown}: the url, or a setting in it, cannot be read; correct it") from error
    client.set_response_callback("INFO", lambda answer, **_: answer)  # keep the answer as text
    try:
        with client:
            try:
                flushed = client.config_get("appendfsync").get("appendfsync")
            except ResponseError:  # the user may not read the setting, or the command is renamed
                flushed = None
            texts = _each(over_s, every_s, lambda: _text(client.execute_command("INFO", "all")))
    except ValkeyError as error:
        result = redacted_text(str(error).strip().partition("\n")[0])
        raise FarmUnavailable(
            f"{shown}: {result}; correct the url (a user needs +info, and +config|get for its durability), "
            "or "
            "export INFO all to files"
        ) from error
    settings = {} if flushed is None else {"config_appendfsync": str(flushed)}
    return [read_info(text, name, settings) for text in texts if is_info(text)]


def _text(answer: bytes | str) -> str:
    return answer.decode(errors="replace") if isinstance(answer, bytes) else answer


def _statuses(url: str, shown: str, over_s: float, every_s: float) -> list[Mapping[str, Any]]:
    from pymongo import MongoClient, errors  # noqa: PLC0415 -- a store's library, where one is asked

    limit_ms = round(_ANSWER_S * 1000)
    try:
        with MongoClient[dict[str, Any]](
            url, serverSelectionTimeoutMS=limit_ms, socketTimeoutMS=limit_ms, tz_aware=True
        ) as client:
            return _each(over_s, every_s, lambda: client.admin.command("serverStatus"))
    except errors.ConfigurationError as error:
        raise InputError(f"{shown}: {redacted_text(str(error))}; correct the url") from error
    except errors.PyMongoError as error:
        text = redacted_text(str(error).partition(", Timeout: ")[0])
        raise FarmUnavailable(
            f"{shown}: {text}; correct the url (a user needs the role clusterMonitor)"
        ) from error
