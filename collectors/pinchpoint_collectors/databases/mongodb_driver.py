"""A connection to one member of a MongoDB deployment by pymongo."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pymongo import MongoClient, errors
from pymongo.uri_parser import parse_uri

from pinchpoint_collectors.databases.base import APPLICATION, CONNECT_S, ServerConnection
from pinchpoint_collectors.errors import CollectorError

Client = MongoClient[dict[str, Any]]


class MongoServerConnection(ServerConnection[Client, dict[str, Any], Mapping[str, Any]]):
    """A connection by PyMongo. A question is a command of the database ``admin``."""

    failures = (errors.PyMongoError,)
    remedies: ClassVar[Mapping[str, str]] = {
        "authentication failed": "correct user and password in farm.yaml",
        "requires authentication": "give user and password in farm.yaml",
        "timed out": "check the server, the address and the firewalls between",
    }

    def _open(self) -> Client:
        target = self.target
        try:
            given = parse_uri(target.url, validate=True, warn=False)
            self.user = target.user or given["username"]
            password = target.password or given["password"]
            options: dict[str, Any] = {
                key: value
                for key, value in given["options"].items()
                if key.lower().startswith(("auth", "tls", "ssl"))
            }
            if given["database"] and "authsource" not in (key.lower() for key in options):
                options["authSource"] = given["database"]
            options |= {key: of for key, of in (("username", self.user), ("password", password)) if of}
            return MongoClient(
                target.address or "{}:{}".format(*given["nodelist"][0]),
                directConnection=True,  # the driver must not query other members
                connectTimeoutMS=round(CONNECT_S * 1000),
                serverSelectionTimeoutMS=round(CONNECT_S * 1000),
                socketTimeoutMS=round(self.answer_s * 1000),
                maxPoolSize=1,
                retryReads=False,
                appname=APPLICATION,
                **options,
            )
        except (errors.PyMongoError, ValueError) as error:
            # The message of the library about an invalid URL may quote a part of the password.
            unread = isinstance(error, (errors.InvalidURI, ValueError))
            answer = "the url cannot be read" if unread else str(error)
            raise self.error(answer, "correct the url in farm.yaml") from error

    def _run(self, link: Client, question: dict[str, Any]) -> Mapping[str, Any]:
        return link.admin.command(question)

    def _close(self, link: Client) -> None:
        link.close()

    def _explain(self, error: Exception) -> CollectorError:
        answer = str(error).partition(", full error")[0].partition(" (configured timeouts")[0]
        answer = answer.strip() or type(error).__name__
        if isinstance(error, errors.NetworkTimeout):
            answer = self.no_answer
        refused = isinstance(error, errors.OperationFailure)
        remedy = None
        if isinstance(error, errors.OperationFailure) and error.code == 13:
            remedy = f"run: db.getSiblingDB('admin').grantRolesToUser('{self.user}', ['clusterMonitor'])"
        return self.error(answer, remedy, refused=refused)
