"""Serves the users of the site and their profiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from starlette.responses import Response

from pinchpoint_infra.services.odata import Call, RefusalError
from pinchpoint_infra.services.odata_answer import Entity, collection, entity, value
from pinchpoint_infra.services.odata_filter import Fields, truth
from pinchpoint_infra.services.web_store import ContentStore, storable

_FIRST = (
    "Ada", "Alan", "Barbara", "Carl", "Donna", "Edgar", "Emmy", "Felix", "Grace", "Hedy", "Ivan", "Jim",
    "Karen", "Leslie", "Mary", "Niklaus", "Olga", "Peter", "Radia", "Sophie",
)  # fmt: skip
_LAST = (
    "Abel", "Bauer", "Costa", "Dahl", "Evans", "Fischer", "Garcia", "Hansen", "Ito", "Jensen", "Kovacs",
    "Lopez", "Meyer", "Novak", "Olsen", "Patel", "Rossi", "Silva", "Tanaka", "Weber",
)  # fmt: skip
_DEPARTMENTS = ("Sales", "Finance", "Research", "Legal", "Operations", "Marketing", "Support", "Production")
_TITLES = ("Analyst", "Engineer", "Manager", "Consultant", "Director", "Assistant")
_CLAIMS = "i:0#.w|"
USER_IDS_FROM = 100
"""Number that is added to the number of a person for the user id. Groups have lower ids."""
_USER = 1  # value of SP.PrincipalType
_TABLE = """
CREATE TABLE IF NOT EXISTS people (
    id integer PRIMARY KEY, account text NOT NULL UNIQUE, name text NOT NULL, mail text NOT NULL,
    department text NOT NULL, title text NOT NULL, manager text NOT NULL, about text NOT NULL)
"""
_FILL = """
INSERT INTO people SELECT * FROM unnest(%s::int[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[],
    %s::text[], %s::text[]) ON CONFLICT DO NOTHING
"""
_COLUMNS = "id, account, name, mail, department, title, manager, about"
_FIELDS: Fields = {
    "id": (f"(id + {USER_IDS_FROM})", int),
    "loginname": (f"('{_CLAIMS}' || account)", str),
    "title": ("name", str),
    "email": ("mail", str),
    "userprincipalname": ("mail", str),
    "principaltype": (str(_USER), int),
    "issiteadmin": ("(id = 1)", truth),
}


class Person(NamedTuple):
    """A row of the table of people."""

    number: int
    account: str
    name: str
    mail: str
    department: str
    title: str
    manager: str
    about: str


class People:
    """Handles the requests for users and their profiles.

    Args:
        store: content database; the people are created in it at the first request.
        count: number of people.
    """

    def __init__(self, store: ContentStore, count: int) -> None:
        self._store = store
        self._count = count

    async def users(self, call: Call) -> Response:
        """Return the users of the site."""
        await self._ready()
        call.allow_expand({})
        rows, following = await self._store.page(call, f"SELECT {_COLUMNS} FROM people", _FIELDS)  # noqa: S608 - made of our own words
        return collection(call, [_user(Person(*row)) for row in rows], call.next_link(following))

    async def user(self, call: Call) -> Response:
        """Return one user by number, address or login name."""
        given = call.argument
        if call.steps.endswith("byid()"):
            number = int(given) - USER_IDS_FROM if given.isascii() and given.isdecimal() else 0
            return entity(call, _user(await self._found("id = %s", min(number, 2**31 - 1), given)))
        if call.steps.endswith("getbyemail()"):
            return entity(call, _user(await self._found("lower(mail) = %s", storable(given).lower(), given)))
        return entity(call, _user(await self._by_account(given)))

    async def me(self, call: Call) -> Response:
        """Return the calling user, which is the first one."""
        return entity(call, _user(await self._found("id = %s", 1, "number 1")))

    async def ensure(self, call: Call) -> Response:
        """Return a user by login name."""
        return entity(call, _user(await self._by_account(str(call.body.get("logonName") or call.argument))))

    async def profile(self, call: Call) -> Response:
        """Return a profile by account."""
        return entity(call, _profile(call, await self._by_account(call.argument)))

    async def my_profile(self, call: Call) -> Response:
        """Return the profile of the calling user."""
        return entity(call, _profile(call, await self._found("id = %s", 1, "number 1")))

    async def profile_property(self, call: Call) -> Response:
        """Return one property of a profile by account and name; empty if no profile has it."""
        person = await self._by_account(call.named.get("accountname", call.argument))
        wanted = call.named.get("propertyname", call.arguments[-1] if len(call.arguments) > 1 else "")
        properties = {name.lower(): text for name, text in _properties(person).items()}
        return value(call, properties.get(wanted.lower(), ""), "GetUserProfilePropertyFor")

    async def _by_account(self, account: str) -> Person:
        name = storable(account).lower().removeprefix(_CLAIMS)
        return await self._found("lower(account) = %s OR lower(mail) = %s", name, account, twice=True)

    async def _found(self, which: str, key: str | int, given: str, *, twice: bool = False) -> Person:
        await self._ready()
        rows = await self._store.rows(
            f"SELECT {_COLUMNS} FROM people WHERE {which} LIMIT 1",  # noqa: S608 - made of our own words
            (key, key) if twice else (key,),
        )
        if not rows:
            raise RefusalError(404, f"there is no user {given!a}")
        return Person(*rows[0])

    async def _ready(self) -> None:
        await self._store.set_up("people", self._made)

    def _made(self) -> Iterator[tuple[str, Sequence[Any]]]:
        yield _TABLE, ()
        people = (_person(number) for number in range(1, self._count + 1))
        yield _FILL, [list(each) for each in zip(*people, strict=True)]


def made_up(user: int) -> Entity:
    """Return the user with an id. The user is generated by a rule, without a query."""
    return _user(_person(user - USER_IDS_FROM))


def user_id(number: int, people: int) -> int:
    """Return the author of a document. Users take turns."""
    return USER_IDS_FROM + number % max(1, people) + 1


def _account(number: int) -> str:
    return f"corp\\user{number:05}"


def _person(number: int) -> Person:
    name = f"{_FIRST[number % len(_FIRST)]} {_LAST[number // len(_FIRST) % len(_LAST)]}"
    department, title = _DEPARTMENTS[number % len(_DEPARTMENTS)], _TITLES[number % len(_TITLES)]
    return Person(
        number,
        _account(number),
        name,
        f"user{number:05}@corp.example",
        department,
        title,
        _account(number // 8 + 1),
        f"{name} is {title} in {department}, reachable in building {number % 40}.",
    )


def _user(person: Person) -> Entity:
    fields = {
        "Id": USER_IDS_FROM + person.number,
        "LoginName": _CLAIMS + person.account,
        "Title": person.name,
        "Email": person.mail,
        "PrincipalType": _USER,
        "IsSiteAdmin": person.number == 1,
        "UserPrincipalName": person.mail,
    }
    return Entity("SP.User", f"Web/GetUserById({fields['Id']})", fields)


def _properties(person: Person) -> dict[str, str]:
    first, _, last = person.name.partition(" ")
    return {
        "UserProfile_GUID": f"00000000-0000-4000-8000-{person.number:012}",
        "AccountName": person.account,
        "FirstName": first,
        "LastName": last,
        "PreferredName": person.name,
        "Department": person.department,
        "Title": person.title,
        "Manager": person.manager,
        "WorkEmail": person.mail,
        "AboutMe": person.about,
        "WorkPhone": f"555-{person.number:05}",
    }


def _profile(call: Call, person: Person) -> Entity:
    account = _CLAIMS + person.account
    fields = {
        "AccountName": account,
        "DisplayName": person.name,
        "Email": person.mail,
        "Title": person.title,
        "PersonalUrl": f"{call.origin}/my/{person.account.rpartition(chr(92))[2]}",
        "PictureUrl": None,
        "IsFollowed": False,
        "DirectReports": [],
        "Peers": [],
        "ExtendedManagers": [_CLAIMS + person.manager],
        "UserProfileProperties": [
            {"Key": key, "Value": text, "ValueType": "Edm.String"}
            for key, text in _properties(person).items()
        ],
    }
    link = "SP.UserProfiles.PeopleManager/GetPropertiesFor"
    return Entity("SP.UserProfiles.PersonProperties", link, fields)
