"""The people of the site: users, profiles, and the access lists that name them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from starlette.responses import Response

from pinchpoint_infra.services.odata import Call, RefusalError, collection, entity
from pinchpoint_infra.services.web_store import Store, storable

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
_LARGEST_PAGE = 5_000
_GROUPS = ((3, "Corpus Owners", 1_073_741_829, "Full Control"), (5, "Corpus Members", 1_073_741_830, "Edit"))
_VISITORS = (4, "Corpus Visitors", 1_073_741_826, "Read")


class People:
    """The requests for users and their profiles.

    Args:
        store: the content database; people are made there when somebody first asks for one.
        count: how many there are.
    """

    def __init__(self, store: Store, count: int) -> None:
        self._store = store
        self._count = count

    async def users(self, call: Call) -> Response:
        """The users the site knows."""
        await self._ready()
        top, skip = (
            call.number("$top", _LARGEST_PAGE, 1, _LARGEST_PAGE),
            call.number("$skip", 0, 0, 10**9 - 1),
        )
        rows = await self._store.rows(
            f"SELECT {_COLUMNS} FROM people ORDER BY id LIMIT %s OFFSET %s",  # noqa: S608 - made of our own words
            (top + 1, skip),
        )
        following = None
        if len(rows) > top:
            select = f"&$select={call.query['$select']}" if call.query.get("$select") else ""
            following = f"{call.origin}/_api/web/siteusers?$top={top}&$skip={skip + top}{select}"
        return collection(call, [_user(*row) for row in rows[:top]], following)

    async def me(self, call: Call) -> Response:
        """Who asks: the first user."""
        await self._ready()
        rows = await self._store.rows(f"SELECT {_COLUMNS} FROM people ORDER BY id LIMIT 1")  # noqa: S608 - likewise
        return entity(call, _user(*rows[0]))

    async def ensure(self, call: Call) -> Response:
        """A user by a name to log in with."""
        return entity(call, _user(*await self._find(str(call.body.get("logonName") or call.argument))))

    async def profile(self, call: Call) -> Response:
        """A profile by account."""
        return entity(call, _profile(call, await self._find(call.argument)))

    async def my_profile(self, call: Call) -> Response:
        """The profile of who asks."""
        await self._ready()
        rows = await self._store.rows(f"SELECT {_COLUMNS} FROM people ORDER BY id LIMIT 1")  # noqa: S608 - likewise
        return entity(call, _profile(call, rows[0]))

    async def found(self, words: str, limit: int) -> list[dict[str, Any]]:
        """People whose name, title or department holds every word: rows for a search's answer."""
        await self._ready()
        rows = await self._store.rows(
            f"SELECT {_COLUMNS} FROM people WHERE lower(concat_ws(' ', name, title, department))"  # noqa: S608 - likewise
            " LIKE ALL (%s) ORDER BY id LIMIT %s",
            ([f"%{word}%" for word in storable(words).lower().replace("%", "").split()], limit),
        )
        return [
            {"PreferredName": row[2], "AccountName": row[1], "WorkEmail": row[3], "Department": row[4]}
            for row in rows
        ]

    async def _find(self, account: str) -> tuple[Any, ...]:
        await self._ready()
        rows = await self._store.rows(
            f"SELECT {_COLUMNS} FROM people WHERE lower(account) = %s",  # noqa: S608 - made of our own words
            (storable(account).lower().removeprefix(_CLAIMS),),
        )
        if not rows:
            raise RefusalError(404, f"there is no user {account!a}")
        return rows[0]

    async def _ready(self) -> None:
        columns = list(zip(*_people(self._count), strict=True))
        await self._store.set_up("people", [(_TABLE, ()), (_FILL, [list(each) for each in columns])])


def list_access(title: str) -> list[dict[str, Any]]:
    """Who may do what with a list; every list grants the same."""
    del title
    return [_assignment(*group) for group in (*_GROUPS, _VISITORS)]


def item_access(number: int) -> list[dict[str, Any]]:
    """Who may do what with a document that has its own access list: its owners and one person."""
    user = number % len(_FIRST) + 1
    return [
        _assignment(*_GROUPS[0]),
        _assignment(100 + user, _CLAIMS + _account(user), 1_073_741_827, "Contribute", person=True),
    ]


def _assignment(
    number: int, login: str, role: int, role_name: str, *, person: bool = False
) -> dict[str, Any]:
    return {
        "PrincipalId": number,
        "Member": {"Id": number, "LoginName": login, "Title": login, "PrincipalType": 1 if person else 8},
        "RoleDefinitionBindings": [{"Id": role, "Name": role_name}],
    }


def _account(number: int) -> str:
    return f"corp\\user{number:05}"


def _people(count: int) -> Iterator[tuple[Any, ...]]:
    for number in range(1, count + 1):
        first, last = _FIRST[number % len(_FIRST)], _LAST[number // len(_FIRST) % len(_LAST)]
        department = _DEPARTMENTS[number % len(_DEPARTMENTS)]
        title = _TITLES[number % len(_TITLES)]
        yield (
            number,
            _account(number),
            f"{first} {last}",
            f"user{number:05}@corp.example",
            department,
            title,
            _account(number // 8 + 1),
            f"{first} {last} is {title} in {department}, reachable in building {number % 40}.",
        )


def _user(number: int, account: str, name: str, mail: str, *_: str) -> dict[str, Any]:
    return {
        "Id": 100 + number,
        "LoginName": _CLAIMS + account,
        "Title": name,
        "Email": mail,
        "PrincipalType": 1,
        "IsSiteAdmin": number == 1,
        "UserPrincipalName": mail,
    }


def _profile(call: Call, person: tuple[Any, ...]) -> dict[str, Any]:
    number, account, name, mail, department, title, manager, about = person
    first, _, last = name.partition(" ")
    more = {
        "UserProfile_GUID": f"00000000-0000-4000-8000-{number:012}", "AccountName": account,
        "FirstName": first, "LastName": last, "PreferredName": name, "Department": department,
        "Title": title, "Manager": manager,
        "WorkEmail": mail, "AboutMe": about, "WorkPhone": f"555-{number:05}",
    }  # fmt: skip
    return {
        "AccountName": _CLAIMS + account,
        "DisplayName": name,
        "Email": mail,
        "Title": title,
        "PersonalUrl": f"{call.origin}/my/{account.rpartition(chr(92))[2]}",
        "PictureUrl": None,
        "IsFollowed": False,
        "DirectReports": [],
        "Peers": [],
        "ExtendedManagers": [_CLAIMS + manager],
        "UserProfileProperties": [
            {"Key": key, "Value": value, "ValueType": "Edm.String"} for key, value in more.items()
        ],
    }
