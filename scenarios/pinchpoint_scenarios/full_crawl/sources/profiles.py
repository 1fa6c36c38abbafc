"""User profiles of a SharePoint server as a content source (``SP.UserProfiles.PeopleManager``)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlencode

from ...contract import Endpoint
from ..failures import Failure
from ..login import http_login
from ..params import FullCrawlParams, SourceParams
from ..politeness import RequestLimits
from ..sharepoint_client import LIGHT, opened, page
from .contract import Changes, Fetched, Item, PoliteSource

if TYPE_CHECKING:
    from ..sharepoint_client import SharePointClient

_PERSON = 1  # value of SP.PrincipalType: User
_MANAGER = "/_api/sp.userprofiles.peoplemanager"


class Profiles:
    """The profiles as one process sees them (see ``Repository``)."""

    def __init__(self, endpoint: Endpoint, source: SourceParams, params: FullCrawlParams) -> None:
        self._endpoint = endpoint
        self._params = params
        self._pace = RequestLimits(source.delay or 0.0, source.per_host)
        self._login = http_login(endpoint)

    def connect(self) -> ProfilesSource:
        # Imported late: the library takes a third of a second to load.
        from ..sharepoint_client import SharePointClient  # noqa: PLC0415 - see above

        client = SharePointClient(self._endpoint, self._login, self._params.timeout_s, self._pace)
        return ProfilesSource(client, self._pace, self._params.page_size)

    def pause_s(self) -> float:
        return self._pace.pause_s()


class ProfilesSource(PoliteSource):
    """The users of a site as a source.

    A page of users is a container. A profile is a document of ``NAME: VALUE`` lines.

    Args:
        client: client of the session.
        pace: request limits of the server.
        page_size: number of users per request.
    """

    def __init__(self, client: SharePointClient, pace: RequestLimits, page_size: int) -> None:
        super().__init__(pace)
        self._client = client
        self._page_size = page_size

    def check(self) -> Mapping[str, Any]:
        """Check that the People API answers."""
        self._client.get(f"{_MANAGER}/getmyproperties?$select=AccountName")
        return {"kind": "profiles"}

    def root(self) -> Item:
        """Return the first page of users."""
        query = urlencode({"$top": self._page_size, "$select": "Id,LoginName,PrincipalType"}, safe="$,")
        return self._container(f"/_api/web/siteusers?{query}")

    def enumerate(self, container: Item) -> Sequence[Item]:
        """Return a page of users. Groups are left out, because they have no profile."""
        target = self._client.target(container.url)
        users, following = page(self._client.get(target), target)
        try:
            items = [
                self._document(str(user["LoginName"]))
                for user in users
                if user.get("PrincipalType", _PERSON) == _PERSON
            ]
        except KeyError as error:
            raise Failure("bad_answer", f"{target} names users without a login", permanent=True) from error
        if following:
            items.append(self._container(self._client.target(following)))
        return items

    def fetch(self, document: Item) -> Fetched:
        """One profile."""
        account = unquote(document.detail)
        quoted = quote(account.replace("'", "''"), safe="'")
        answer = self._client.content(
            f"{_MANAGER}/getpropertiesfor(accountname=@v)?@v='{quoted}'", accept=LIGHT
        )
        try:
            content = _lines(opened(json.loads(answer.body))).encode()
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
            raise Failure("bad_answer", "the profile is not of the expected form", permanent=True) from error
        return Fetched(content, answer.start_ns, answer.end_ns)

    def token(self) -> str | None:
        """Return None: the People API has no change log."""
        return None

    def changes(self, since: str) -> Changes:
        """Raises ``Failure``: not supported."""
        raise Failure("not_supported", f"profiles keep no change log; asked since {since}", permanent=True)

    def close(self) -> None:
        """Close the connection. A second call does nothing."""
        self._client.close()

    def _container(self, target: str) -> Item:
        return Item("container", self._client.origin + self._client.prefix + target, "users")

    def _document(self, account: str) -> Item:
        quoted = quote(account, safe="")
        url = f"{self._client.origin}{self._client.prefix}{_MANAGER}/getpropertiesfor?accountname={quoted}"
        return Item("document", url, quoted)


def _lines(profile: Mapping[str, Any]) -> str:
    """Yield a profile as lines of text: its own fields, then its properties that are not empty."""
    answer = {
        name: profile.get(name) for name in ("DisplayName", "AccountName", "Email", "Title", "PersonalUrl")
    }
    properties = profile.get("UserProfileProperties") or []
    properties = properties["results"] if isinstance(properties, Mapping) else properties
    for each in properties:
        answer.setdefault(str(each["Key"]), each.get("Value"))
    if not any(answer.values()):
        raise ValueError("it says nothing")
    return "\n".join(f"{name}: {value}" for name, value in answer.items() if value)
