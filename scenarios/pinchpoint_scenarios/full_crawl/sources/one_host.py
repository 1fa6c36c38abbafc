"""The rate limit shared by sources whose items lie on one host."""

from __future__ import annotations

from contextlib import AbstractContextManager

from ..politeness import RequestLimits
from .contract import Item


class OneHost:
    """A ``Source`` as far as its pace goes.

    Args:
        pace: when the host may be asked.
    """

    def __init__(self, pace: RequestLimits) -> None:
        self._pace = pace

    def turn(self, item: Item) -> AbstractContextManager[None]:
        del item
        return self._pace.turn("")

    def host(self, item: Item) -> str:
        del item
        return ""

    def hold(self, host: str, seconds: float) -> None:
        self._pace.hold(host, seconds)
