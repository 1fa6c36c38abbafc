"""Lists the handlers of all API requests, for access rights, lists and items."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple
from urllib.parse import quote

from starlette.responses import Response

from pinchpoint_infra.content.database import SITE, list_id
from pinchpoint_infra.services.odata import Call, RefusalError, Tree
from pinchpoint_infra.services.odata_answer import Entity, collection, entity
from pinchpoint_infra.services.odata_filter import FOLDER, NAME, Fields, condition, order, time, truth
from pinchpoint_infra.services.web_changes import ChangeLog
from pinchpoint_infra.services.web_files import (
    COLUMNS,
    OF_A_FOLDER,
    WebFiles,
    file_entity,
    folder_entity,
    item_link,
    utc,
)
from pinchpoint_infra.services.web_people import USER_IDS_FROM, People, made_up, user_id
from pinchpoint_infra.services.web_store import (
    DEFAULT_PAGE,
    LARGEST_PAGE,
    WEB_ID,
    ContentStore,
    item_id,
    item_number,
)

# Access rights of the site are groups, and access lists that name them.

_GROUP = 8  # value of SP.PrincipalType: SharePointGroup
_PEOPLE_WITH_ACCESS = 20
"""Number of users from which the access lists of single documents are chosen."""


class _Role(NamedTuple):
    id: int
    name: str


class _Group(NamedTuple):
    id: int
    name: str
    role: _Role


_CONTRIBUTE = _Role(1_073_741_827, "Contribute")  # ids used by SharePoint
GROUPS = (
    _Group(3, "Corpus Owners", _Role(1_073_741_829, "Full Control")),
    _Group(5, "Corpus Members", _Role(1_073_741_830, "Edit")),
    _Group(4, "Corpus Visitors", _Role(1_073_741_826, "Read")),
)


async def groups(call: Call) -> Response:
    """Return the groups of the site."""
    return collection(call, [_group(each) for each in GROUPS])


async def group(call: Call) -> Response:
    """Return one group by its number or its name."""
    for each in GROUPS:
        if call.argument.casefold() in {str(each.id), each.name.casefold()}:
            return entity(call, _group(each))
    raise RefusalError(404, f"there is no group {call.argument!a}")


async def site_access(call: Call) -> Response:
    """Return the access list of the site."""
    return collection(call, [_assignment("Web", _group(each), each.role) for each in GROUPS])


def list_access(title: str) -> list[Entity]:
    """Return the access list of a list. All lists grant the same rights."""
    where = f"Web/Lists(guid'{list_id(title)}')"
    return [_assignment(where, _group(each), each.role) for each in GROUPS]


def item_access(title: str, number: int) -> list[Entity]:
    """Return the access list of a document: its owners and one person."""
    where, owners = item_link(title, number), GROUPS[0]
    person = made_up(USER_IDS_FROM + number % _PEOPLE_WITH_ACCESS + 1)
    return [_assignment(where, _group(owners), owners.role), _assignment(where, person, _CONTRIBUTE)]


def _group(group: _Group) -> Entity:
    fields = {"Id": group.id, "LoginName": group.name, "Title": group.name, "PrincipalType": _GROUP}
    return Entity("SP.Group", f"Web/SiteGroups/GetById({group.id})", fields)


def _assignment(where: str, member: Entity, role: _Role) -> Entity:
    number = member.fields["Id"]
    binding = Entity(
        "SP.RoleDefinition", f"Web/RoleDefinitions({role.id})", {"Id": role.id, "Name": role.name}
    )
    fields: dict[str, Any] = {
        "PrincipalId": number,
        "Member": member,
        "RoleDefinitionBindings": [binding],
    }
    return Entity("SP.RoleAssignment", f"{where}/RoleAssignments/GetByPrincipalId({number})", fields)


# Lists and their items.

_NEXT_ID = re.compile(r"(?:.*p_ID=)?(\d{1,9})\Z")
_BACKWARDS = "pagedprev=true"
_OWN_ACCESS_EVERY = 10
"""One of this number of documents has an access list of its own."""
PARENTS: Tree = {"rootfolder": {}, "parentweb": {}}
"""Fields of a list that can be expanded."""
OF_AN_ITEM: Tree = {
    "file": {},
    "parentlist": PARENTS,
    "roleassignments": {"member": {}, "roledefinitionbindings": {}},
    "author": {},
    "editor": {},
}
"""Fields of an item that can be expanded."""


def _numbered(guid: str) -> int:
    number = item_number(guid)
    if number is None:
        raise ValueError(guid)
    return number


_ITEM_FIELDS: Fields = {
    "id": ("id", int),
    "guid": ("id", _numbered),
    "title": (NAME, str),
    "fileref": ("path", str),
    "fileleafref": (NAME, str),
    "filedirref": (FOLDER, str),
    "file_x0020_size": ("size_bytes", int),
    "modified": ("modified", time),
    "created": ("modified", time),
    "fsobjtype": ("0", int),
    "filesystemobjecttype": ("0", int),
}
"""Fields of items for filters and sorting."""

_LIST_FIELDS: Fields = {
    "id": ("guid::text", str.lower),
    "title": ("title", str),
    "entitytypename": ("title", str),
    "itemcount": ("documents", int),
    "hidden": ("false", truth),
    "basetype": ("1", int),
    "basetemplate": ("101", int),
}


class Lists:
    """Handles the requests below ``web/lists``.

    Args:
        store: the content database.
        files: returns the bytes of an item's file.
        people: the number of users.
    """

    def __init__(self, store: ContentStore, files: WebFiles, people: int) -> None:
        self._store = store
        self._files = files
        self._people = people

    async def all(self, call: Call) -> Response:
        """Return the lists."""
        call.allow_expand(PARENTS)
        table = "SELECT title, documents FROM lists"
        rows, following = await self._store.page(call, table, _LIST_FIELDS)
        return collection(call, [_library(call, *row) for row in rows], call.next_link(following))

    async def one(self, call: Call) -> Response:
        """Return one list."""
        _, title, documents = await self._store.list_of(call)
        return entity(call, _library(call, title, documents))

    async def access(self, call: Call) -> Response:
        """Return the access list of a list."""
        _, title, _ = await self._store.list_of(call)
        return collection(call, list_access(title))

    async def items(self, call: Call) -> Response:
        """Return a page of the items of a list."""
        call.allow_expand(OF_AN_ITEM)
        call.refuse_options("$top", "$skiptoken", "$filter", "$orderby", "$expand")
        top = call.number("$top", DEFAULT_PAGE, 1, LARGEST_PAGE)
        number, title, _ = await self._store.list_of(call)
        chosen, values = condition(call.query.get("$filter", ""), _ITEM_FIELDS)
        token, sort = call.query.get("$skiptoken", ""), call.query.get("$orderby", "")
        if sort:  # with another sort order, a page begins after a number of items and not after an item
            after, where, sorted_by = _after(token), "%s >= 0", order(sort, _ITEM_FIELDS)
        elif _BACKWARDS in token.lower():
            after, where, sorted_by = _after(token), "id < %s", "id DESC"
        else:
            after, where, sorted_by = _after(token), "id > %s", "id"
        rows = await self._store.rows(
            f"SELECT {COLUMNS} FROM documents WHERE list_id = %s AND {where} AND {chosen}"  # noqa: S608 - made of our own words
            f" ORDER BY {sorted_by} LIMIT %s OFFSET %s",
            (number, after, *values, top + 1, after if sort else 0),
        )
        following = None
        if len(rows) > top and sorted_by != "id DESC":
            following = _next_link(call, top, after + top if sort else rows[top - 1][0])
        page = rows[:top] if sorted_by != "id DESC" else rows[top - 1 :: -1]
        return collection(call, [self.entity(call, title, *row) for row in page], following)

    async def item(self, call: Call) -> Response:
        """Return one item."""
        title, row = await self._found_item(call)
        return entity(call, self.entity(call, title, *row))

    async def item_access(self, call: Call) -> Response:
        """Return the access list of an item: its own or that of its list."""
        title, row = await self._found_item(call)
        return collection(call, self._access(title, row[0]))

    async def item_file(self, call: Call) -> Response:
        """Return the file of an item."""
        _, row = await self._found_item(call)
        return entity(call, file_entity(*row))

    async def item_content(self, call: Call) -> Response:
        """Return the bytes of an item."""
        _, row = await self._found_item(call)
        return await self._files.content(row[1])

    async def file_item(self, call: Call) -> Response:
        """Return the item of a file."""
        row = await self._files.found(call)
        return entity(call, self.entity(call, row[1].removeprefix(f"{SITE}/").partition("/")[0], *row))

    def entity(
        self,
        call: Call,
        title: str,
        number: int,
        path: str,
        size_bytes: int,
        modified: Any,
        content_type: str,
    ) -> Entity:
        """Return an item as in the API, with its expanded fields."""
        folder, _, name = path.rpartition("/")
        moment, author_id = utc(modified), user_id(number, self._people)
        fields: dict[str, Any] = {
            "Id": number,
            "Title": name,
            "FileRef": path,
            "FileLeafRef": name,
            "FileDirRef": folder,
            "FileSystemObjectType": 0,
            "File_x0020_Size": str(size_bytes),
            "Created": moment,
            "Modified": moment,
            "AuthorId": author_id,
            "EditorId": author_id,
            "GUID": item_id(number),
            "HasUniqueRoleAssignments": _has_own(number),
        }
        expanded = call.expanded
        if "file" in expanded:
            fields["File"] = file_entity(number, path, size_bytes, modified, content_type)
        if "roleassignments" in expanded:
            fields["RoleAssignments"] = self._access(title, number)
        if "parentlist" in expanded:
            parents = _parents(call, title, expanded["parentlist"])
            fields["ParentList"] = Entity(
                "SP.List", _list_link(title), {"Id": list_id(title), "Title": title} | parents
            )
        for role in {"author", "editor"} & expanded.keys():
            fields[role.capitalize()] = made_up(author_id)
        return Entity("SP.ListItem", item_link(title, number), fields)

    @staticmethod
    def _access(title: str, number: int) -> list[Entity]:
        return item_access(title, number) if _has_own(number) else list_access(title)

    async def _found_item(self, call: Call) -> tuple[str, tuple[Any, ...]]:
        number, title, _ = await self._store.list_of(call)
        given = call.arguments[1] if len(call.arguments) > 1 else ""
        if not (given.isascii() and given.isdecimal() and len(given) < 10):
            raise RefusalError(400, f"items({given}): a whole number is needed")
        rows = await self._store.rows(
            f"SELECT {COLUMNS} FROM documents WHERE id = %s AND list_id = %s",  # noqa: S608 - made of our own words
            (int(given), number),
        )
        if not rows:
            raise RefusalError(404, f"list {title!a} has no item {given}")
        return title, rows[0]


def _library(call: Call, title: str, documents: int) -> Entity:
    fields = {
        "Id": list_id(title),
        "Title": title,
        "ItemCount": documents,
        "Hidden": False,
        "BaseType": 1,
        "BaseTemplate": 101,
        "EntityTypeName": title,
        "ListItemEntityTypeFullName": "SP.ListItem",
        "ParentWebUrl": "/",
    }
    return Entity("SP.List", _list_link(title), fields | _parents(call, title, call.expanded))


def _list_link(title: str) -> str:
    return f"Web/Lists(guid'{list_id(title)}')"


def _parents(call: Call, title: str, expanded: Tree) -> dict[str, Any]:
    """Return the parents and the content of a list, as far as expanded."""
    result: dict[str, Any] = {}
    if "rootfolder" in expanded:
        result["RootFolder"] = folder_entity(f"{SITE}/{title}")
    if "parentweb" in expanded:
        fields = {"Id": WEB_ID, "Url": call.origin, "ServerRelativeUrl": "/"}
        result["ParentWeb"] = Entity("SP.Web", "Web", fields)
    return result


def _has_own(number: int) -> bool:
    return number % _OWN_ACCESS_EVERY == 0


def _after(token: str) -> int:
    match = _NEXT_ID.match(token or "0")
    if match is None:
        raise RefusalError(400, "$skiptoken: not one of this site's; follow odata.nextLink as it is")
    return int(match[1])


def _next_link(call: Call, top: int, last: int) -> str:
    query = f"$skiptoken={quote(f'Paged=TRUE&p_ID={last}')}&$top={top}"
    for option in ("$select", "$expand", "$filter", "$orderby"):
        if given := call.query.get(option):
            query += f"&{option}={quote(given, safe=',')}"
    how, name = ("getbyid", call.argument) if "getbyid" in call.steps else ("getbytitle", call.argument)
    if call.steps.startswith("web/lists()"):
        where = f"lists(guid'{name}')"
    elif call.steps.startswith("web/getlist()"):
        where = f"getlist('{quote(name.replace(chr(39), chr(39) * 2), safe=chr(39))}')"
    else:
        where = f"lists/{how}('{quote(name.replace(chr(39), chr(39) * 2), safe=chr(39))}')"
    return f"{call.origin}/_api/web/{where}/items?{query}"


Answer = Callable[[Call], Awaitable[Response]]
Answers = dict[str, Answer]
_OF_ACCESS: Tree = {"member": {}, "roledefinitionbindings": {}}
_LISTS = ("web/lists/getbytitle()", "web/lists/getbyid()", "web/lists()", "web/getlist()")


def answers(store: ContentStore, log: ChangeLog, people: int) -> Answers:
    """Return steps of a request (see ``Call``) -> handler, except for requests to the site itself.

    Args:
        store: the content database.
        log: change log of the content database.
        people: the number of users.
    """
    files = WebFiles(store)
    lists = Lists(store, files, people)
    return {
        "web/webs": plain(_none),
        "web/roleassignments": plain(site_access, _OF_ACCESS),
        "web/sitegroups": plain(groups),
        "web/sitegroups/getbyid()": plain(group),
        "web/sitegroups/getbyname()": plain(group),
        "web/getchanges": plain(log.changes),
        "site/getchanges": plain(log.changes),
        **_of_lists(lists, log),
        **_of_files(lists, files),
        **_of_people(People(store, people)),
    }


def _of_lists(lists: Lists, log: ChangeLog) -> Answers:
    result: Answers = {"web/lists": lists.all}
    for name in _LISTS:
        result |= {
            name: plain(lists.one, PARENTS),
            f"{name}/items": lists.items,
            f"{name}/roleassignments": plain(lists.access, _OF_ACCESS),
            f"{name}/getchanges": plain(log.list_changes),
        }
        for item in (
            f"{name}/items()",
            f"{name}/items/getbyid()",
            f"{name}/items/getbystringid()",
            f"{name}/getitembyid()",
            f"{name}/getitembystringid()",
        ):
            result |= {
                item: plain(lists.item, OF_AN_ITEM),
                f"{item}/roleassignments": plain(lists.item_access, _OF_ACCESS),
                f"{item}/file": plain(lists.item_file),
                f"{item}/file/$value": lists.item_content,
            }
    return result


def _of_files(lists: Lists, files: WebFiles) -> Answers:
    result: Answers = {}
    named = [f"web/getfileby{way}()" for way in ("serverrelativeurl", "serverrelativepath", "id", "url")]
    roots = [f"web/getfolderbyserverrelative{way}()" for way in ("url", "path")]
    roots += [f"{name}/rootfolder" for name in ("web", *_LISTS)]
    for root in roots:
        for folder in (root, f"{root}/folders()", f"{root}/folders/getbyurl()"):
            result |= {
                folder: plain(files.folder, OF_A_FOLDER),
                f"{folder}/files": files.files,
                f"{folder}/folders": files.folders,
            }
            named += [f"{folder}/files()", f"{folder}/files/getbyurl()"]
    for file in named:
        result |= {
            file: plain(files.file),
            f"{file}/$value": files.file_content,
            f"{file}/listitemallfields": plain(lists.file_item, OF_AN_ITEM),
        }
    return result | {"web/folders": files.folders}


def _of_people(people: People) -> Answers:
    manager = "sp.userprofiles.peoplemanager"
    ways = ("siteusers/getbyid()", "siteusers/getbyemail()", "siteusers/getbyloginname()", "siteusers()")
    return {
        "web/currentuser": plain(people.me),
        "web/siteusers": people.users,
        **{f"web/{way}": plain(people.user) for way in (*ways, "getuserbyid()")},
        "web/ensureuser": plain(people.ensure),
        "web/ensureuser()": plain(people.ensure),
        f"{manager}/getpropertiesfor()": plain(people.profile),
        f"{manager}/getmyproperties": plain(people.my_profile),
        f"{manager}/getuserprofilepropertyfor()": plain(people.profile_property),
    }


def plain(answer: Answer, expandable: Tree | None = None) -> Answer:
    """Return an answer with ``$select`` and the allowed ``$expand``. Other options are refused."""

    async def refusing(call: Call) -> Response:
        call.refuse_options(*(() if expandable is None else ("$expand",)))
        call.allow_expand(expandable or {})
        return await answer(call)

    return refusing


async def _none(call: Call) -> Response:
    return collection(call, [])


async def nothing(call: Call) -> Response:
    """Raises RefusalError, because the path has no handler."""
    raise RefusalError(404, f"there is no /_api/{call.steps}")
