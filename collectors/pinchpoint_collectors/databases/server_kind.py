"""What the kinds that ask a server over its URL have in common: finding it, and saying what is missing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from urllib.parse import urlsplit

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Collector, Watch


class RefusedError(CollectorError):
    """Our user may not ask this, or the server does not know it: the rest can still be asked."""


class ServerKind(ABC):
    """A kind of farm.yaml that asks one server.

    Its options there: ``endpoint`` (which of the farm's endpoints; by default the tier's own), ``user`` and
    ``password`` (a monitoring user's, in place of the endpoint's). The harness turns the endpoint into
    ``Watch.options["url"]``, with its ``${ENV}`` filled in.

    Attributes:
        product: how people call what is asked.
        schemes: of the URLs that fit, the first as the example.
        package: the client library's, as it is installed; the extra is named as the kind.
        counts_files: whether the server counts the I/O of its files, so that it can stand for a disk nobody
            can look at.
    """

    name: str
    product: str
    schemes: tuple[str, ...]
    package: str
    counts_files = False

    options = frozenset({"endpoint", "user", "password"})
    public = frozenset({"endpoint", "user"})

    def machine(self, watch: Watch) -> str:
        """The server's address: hosts that name one server share one connection."""
        return self._address(watch) or watch.host

    def connect(self, watches: Sequence[Watch]) -> Collector:
        """Connect and read what the server is. Raises ``CollectorError`` with the remedy."""
        first = watches[0]
        where = f"host {first.host!r}, collector {self.name!r}"
        address = self._address(first)
        if address is None:
            raise CollectorError(
                f"{where}: no {self.product} to ask; say `endpoint: NAME` with an endpoint of this farm "
                f"whose url begins with {' or '.join(f'{scheme}://' for scheme in self.schemes)}"
            )
        try:
            return self._connect(watches, f"{where} ({address})")
        except ImportError as error:
            raise CollectorError(
                f"{where}: it needs {self.package}, which is not installed here ({error}); "
                f"run: pip install 'pinchpoint-collectors[{self.name}]'"
            ) from error

    @abstractmethod
    def _connect(self, watches: Sequence[Watch], where: str) -> Collector:
        """The collector of these watches. Its library is imported here, as it is an extra.

        Args:
            watches: the first one's options say whom to ask.
            where: how messages name the server; without secrets.
        """

    def _address(self, watch: Watch) -> str | None:
        """Host and port, without the user and the password; None where the URL is none of the product's."""
        parts = urlsplit(str(watch.options.get("url", "")))
        return parts.netloc.rpartition("@")[2] or None if parts.scheme in self.schemes else None


class NodeKind(ServerKind):
    """A kind whose endpoint may name several nodes of a cluster, each of which tells of itself only.

    It has one more option, ``address``: which of them the watched host is.
    """

    options = ServerKind.options | {"address"}
    public = ServerKind.public | {"address"}

    def connect(self, watches: Sequence[Watch]) -> Collector:
        """As ``ServerKind.connect``."""
        first = watches[0]
        address = self._address(first) or ""
        looked_up = urlsplit(str(first.options.get("url", ""))).scheme.endswith("+srv")
        if "," in address or (looked_up and "address" not in first.options):
            raise CollectorError(
                f"host {first.host!r}, collector {self.name!r}: the endpoint names several nodes "
                f"({address}) and each tells of itself only; say which one this host is, as in "
                f"`address: {'HOST:PORT' if looked_up else address.partition(',')[0]}`"
            )
        return super().connect(watches)

    def _address(self, watch: Watch) -> str | None:
        given, named = watch.options.get("address"), super()._address(watch)
        return str(given) if given and named else named

    def _url(self, watch: Watch) -> str:
        """The endpoint's URL, with the address in place of its own where one is given."""
        url, address = str(watch.options["url"]), watch.options.get("address")
        parts = urlsplit(url)
        login, at, _ = parts.netloc.rpartition("@")
        return url if address is None else parts._replace(netloc=f"{login}{at}{address}").geturl()
