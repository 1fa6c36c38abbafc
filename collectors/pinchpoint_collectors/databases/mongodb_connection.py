"""A connection to one member of a MongoDB deployment: to no other, and it never waits for long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pymongo import MongoClient, errors
from pymongo.uri_parser import parse_uri

from pinchpoint_collectors.errors import CollectorError

CONNECT_S = 3.0
ANSWER_S = 3.0
"""After so long we give an answer up: a server that waits for its disk keeps connections and no promise."""
APPLICATION = "pinchpoint-collector"

SETTINGS = (
    *("journalCommitInterval", "syncdelay", "storageEngineConcurrencyAdjustmentAlgorithm"),
    *("storageEngineConcurrentReadTransactions", "storageEngineConcurrentWriteTransactions"),
    *("wiredTigerConcurrentReadTransactions", "wiredTigerConcurrentWriteTransactions"),
    *("enableFlowControl", "flowControlTargetLagSeconds"),
)
"""What is asked for by name: none of them is a secret. Versions know some of them each."""

_LEFT_OUT = ("locks", "tcmalloc", "repl", "mirroredReads", "shardingStatistics", "transportSecurity")
"""Parts of the answer that nothing is taken from: they cost the server time, and the wire."""


class Member:
    """One member.

    Args:
        where: how messages name it; without secrets.
        address: host and port; None for the URL's only one.
        url: the endpoint's, for its login, its TLS settings and, without an address, its place.
        user: in place of the URL's, if given.
        password: likewise.
    """

    def __init__(
        self, where: str, address: str | None, url: str, user: str | None, password: str | None
    ) -> None:
        self._where = where
        try:
            given = parse_uri(url, validate=True, warn=False)
            login = {"username": user or given["username"], "password": password or given["password"]}
            options: dict[str, Any] = {
                key: value
                for key, value in given["options"].items()
                if key.lower().startswith(("auth", "tls", "ssl"))
            }
            if given["database"] and "authsource" not in (key.lower() for key in options):
                options["authSource"] = given["database"]
            options |= {key: value for key, value in login.items() if value}
            self._client: MongoClient[dict[str, Any]] = MongoClient(
                address or "{}:{}".format(*given["nodelist"][0]),
                directConnection=True,  # what is asked is this member's own
                connectTimeoutMS=round(CONNECT_S * 1000),
                serverSelectionTimeoutMS=round(CONNECT_S * 1000),
                socketTimeoutMS=round(ANSWER_S * 1000),
                maxPoolSize=1,
                retryReads=False,
                appname=APPLICATION,
                **options,
            )
        except (errors.PyMongoError, ValueError) as error:
            # What the library says of a URL it could not take apart may quote a piece of the password.
            unread = isinstance(error, (errors.InvalidURI, ValueError))
            said = "the url cannot be read" if unread else str(error)
            raise CollectorError(f"{where}: {said}; correct the url in farm.yaml") from error
        self.user: str | None = login["username"]

    def status(self) -> Mapping[str, Any]:
        """The answer to ``serverStatus``. Raises ``CollectorError``."""
        return self._do({"serverStatus": 1, **dict.fromkeys(_LEFT_OUT, 0)})

    def version(self) -> str:
        """The server's version. Raises ``CollectorError``."""
        return str(self._do({"buildInfo": 1})["version"])

    def settings(self) -> dict[str, str] | None:
        """Those of ``SETTINGS`` the server has; None where it does not tell. Raises ``CollectorError``."""
        try:
            answer = self._client.admin.command({"getParameter": 1, **dict.fromkeys(SETTINGS, 1)})
        except errors.OperationFailure:
            return None  # not allowed, or no server of MongoDB's own
        except errors.PyMongoError as error:
            raise self._failed(error) from error
        return {name: str(answer[name]) for name in SETTINGS if name in answer}

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        self._client.close()

    def _do(self, command: dict[str, Any]) -> Mapping[str, Any]:
        try:
            return self._client.admin.command(command)
        except errors.PyMongoError as error:
            raise self._failed(error) from error

    def _failed(self, error: errors.PyMongoError) -> CollectorError:
        said = str(error).partition(", full error")[0].partition(" (configured timeouts")[0]
        said = said.strip().partition("\n")[0] or type(error).__name__
        if isinstance(error, errors.NetworkTimeout):
            said = f"nothing came back within {ANSWER_S:.0f} s"
        if isinstance(error, errors.OperationFailure) and error.code == 13:
            remedy = f"; run: db.getSiblingDB('admin').grantRolesToUser('{self.user}', ['clusterMonitor'])"
        else:
            remedy = _remedy(said)
        return CollectorError(f"{self._where}: {said}{remedy}")


def _remedy(said: str) -> str:
    remedies = {
        "authentication failed": "correct user and password in farm.yaml",
        "requires authentication": "give user and password in farm.yaml",
        "refused": "start the server, or correct host and port in farm.yaml",
        "name or service": "correct the host name in farm.yaml",
        "nothing came back": "check the server, the address and the firewalls between",
        "timed out": "check the server, the address and the firewalls between",
    }
    found = next((remedy for words, remedy in remedies.items() if words in said.lower()), None)
    return f"; {found}" if found else ""
