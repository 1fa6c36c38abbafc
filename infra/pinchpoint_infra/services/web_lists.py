"""Lists, their items, files and folders, and who may do what with them."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from pinchpoint_infra.content.database import SITE, address
from pinchpoint_infra.services.odata import Call, RefusalError, collection, entity
from pinchpoint_infra.services.odata_filter import condition, order
from pinchpoint_infra.services.web_people import item_access, list_access
from pinchpoint_infra.services.web_store import Store, item_id, item_number, list_id, storable

_DEFAULT_PAGE, _LARGEST_PAGE = 100, 5_000  # SharePoint's own
_NEXT_ID = re.compile(r"(?:.*p_ID=)?(\d{1,9})\Z")
_COLUMNS = "id, path, size_bytes, modified, content_type"
_EXPANDABLE = {"file", "roleassignments", "roledefinitionbindings", "member", "parentlist"}
_OWN_ACCESS_EVERY = 10
"""Every so many documents there is one with an access list of its own."""


class Lists:
    """The requests below ``web/lists`` and for files."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def all(self, call: Call) -> Response:
        """The lists."""
        rows = await self._store.rows("SELECT title, documents FROM lists ORDER BY id")
        top = call.number("$top", max(1, len(rows)), 1, _LARGEST_PAGE)
        skip = call.number("$skip", 0, 0, 10**9 - 1)
        return collection(call, [_library(*row) for row in rows[skip : skip + top]])

    async def one(self, call: Call) -> Response:
        """One list."""
        _, title, documents = await self._find(call.argument)
        return entity(call, _library(title, documents))

    async def access(self, call: Call) -> Response:
        """Who may do what with a list."""
        _, title, _ = await self._find(call.argument)
        return collection(call, list_access(title))

    async def items(self, call: Call) -> Response:
        """A page of a list's items."""
        _check_expand(call)
        top = call.number("$top", _DEFAULT_PAGE, 1, _LARGEST_PAGE)
        number, title, _ = await self._find(call.argument)
        chosen, values = condition(call.query["$filter"]) if call.query.get("$filter") else ("true", [])
        sort, skip = call.query.get("$orderby", ""), 0
        if sort:  # sorted by anything else, a page begins after so many items, not after an item
            skip = _after(call.query.get("$skiptoken", "0"))
        rows = await self._store.rows(
            f"SELECT {_COLUMNS} FROM documents WHERE list_id = %s AND id > %s AND {chosen}"  # noqa: S608 - made of our own words
            f" ORDER BY {order(sort)} LIMIT %s OFFSET %s",
            (number, 0 if sort else _after(call.query.get("$skiptoken", "0")), *values, top + 1, skip),
        )
        following = None
        if len(rows) > top:
            following = _next_link(call, top, skip + top if sort else rows[top - 1][0])
        return collection(call, [_item(call, title, *row) for row in rows[:top]], following)

    async def item(self, call: Call) -> Response:
        """One item."""
        _check_expand(call)
        title, row = await self._find_item(call)
        return entity(call, _item(call, title, *row))

    async def item_access(self, call: Call) -> Response:
        """Who may do what with an item: its own access list, or its list's."""
        title, row = await self._find_item(call)
        return collection(call, item_access(row[0]) if _has_own(row[0]) else list_access(title))

    async def item_file(self, call: Call) -> Response:
        """The file of an item."""
        _, row = await self._find_item(call)
        return entity(call, file_fields(*row))

    async def item_content(self, call: Call) -> Response:
        """Its bytes."""
        _, row = await self._find_item(call)
        return await self.content(row[1])

    async def file(self, call: Call) -> Response:
        """What there is to say of a file."""
        return entity(call, file_fields(*await self._file_of(call)))

    async def file_item(self, call: Call) -> Response:
        """The item of a file."""
        row = await self._file_of(call)
        return entity(call, _item(call, _list_of(row[1]), *row))

    async def file_content(self, call: Call) -> Response:
        """A file's bytes."""
        by_id = call.steps.startswith("web/getfilebyid")
        return await self.content((await self._file_of(call))[1] if by_id else call.argument)

    async def content(self, path: str, headers: dict[str, str] | None = None) -> Response:
        """The bytes at a server-relative path; raises ``RefusalError`` where there are none."""
        content_type, content = await self._find_file(path, "content_type, content", binary=True)
        return Response(content, headers={"Content-Type": content_type, **(headers or {})})

    async def files(self, call: Call) -> Response:
        """The files that lie directly in a folder."""
        folder = call.argument.rstrip("/")
        top, skip = (
            call.number("$top", _LARGEST_PAGE, 1, _LARGEST_PAGE),
            call.number("$skip", 0, 0, 10**9 - 1),
        )
        rows = await self._store.rows(
            f"SELECT {_COLUMNS} FROM documents WHERE starts_with(lower(path), lower(%s))"  # noqa: S608 - made of our own words
            " AND strpos(substr(path, %s), '/') = 0 ORDER BY id LIMIT %s OFFSET %s",
            (storable(folder) + "/", len(folder) + 2, top, skip),
        )
        return collection(call, [file_fields(*row) for row in rows])

    async def folders(self, call: Call) -> Response:
        """The folders that lie directly in a folder."""
        folder = call.argument.rstrip("/")
        rows = await self._store.rows(
            "SELECT DISTINCT split_part(substr(path, %s), '/', 1) FROM documents"
            " WHERE starts_with(lower(path), lower(%s)) AND strpos(substr(path, %s), '/') > 0 ORDER BY 1",
            (len(folder) + 2, storable(folder) + "/", len(folder) + 2),
        )
        return collection(call, [folder_fields(f"{folder}/{name}") for (name,) in rows])

    async def folder(self, call: Call) -> Response:
        """What there is to say of a folder."""
        folder = call.argument.rstrip("/")
        rows = await self._store.rows(
            "SELECT FROM documents WHERE starts_with(lower(path), lower(%s)) LIMIT 1",
            (storable(folder) + "/",),
        )
        if not rows:
            raise RefusalError(404, f"there is no folder {call.argument!a}")
        return entity(call, folder_fields(folder))

    async def root_folder(self, call: Call) -> Response:
        """The folder of a list."""
        _, title, _ = await self._find(call.argument)
        return entity(call, folder_fields(f"{SITE}/{title}"))

    async def _find(self, name: str) -> tuple[Any, ...]:
        """A list by its title or its GUID."""
        rows = await self._store.rows("SELECT id, title, documents FROM lists ORDER BY id")
        for same in (
            lambda row: row[1] == name,
            lambda row: list_id(row[1]) == name.strip("{}").lower(),
            lambda row: row[1].casefold() == name.casefold(),
        ):
            for row in filter(same, rows):
                return row
        raise RefusalError(404, f"there is no list {name!a}")

    async def _find_item(self, call: Call) -> tuple[str, tuple[Any, ...]]:
        number, title, _ = await self._find(call.argument)
        given = call.arguments[1]
        if not (given.isascii() and given.isdecimal() and len(given) < 10):
            raise RefusalError(400, f"items({given}): a whole number is needed")
        rows = await self._store.rows(
            f"SELECT {_COLUMNS} FROM documents WHERE id = %s AND list_id = %s",  # noqa: S608 - made of our own words
            (int(given), number),
        )
        if not rows:
            raise RefusalError(404, f"list {title!a} has no item {given}")
        return title, rows[0]

    async def _file_of(self, call: Call) -> tuple[Any, ...]:
        """The file a request names, by its path or its GUID."""
        if not call.steps.startswith("web/getfilebyid"):
            return await self._find_file(call.argument, _COLUMNS)
        number = item_number(call.argument)
        rows = await self._store.rows(f"SELECT {_COLUMNS} FROM documents WHERE id = %s", (number,))  # noqa: S608 - made of our own words
        if not rows:
            raise RefusalError(404, f"there is no file {call.argument!a}")
        return rows[0]

    async def _find_file(self, path: str, columns: str, *, binary: bool = False) -> tuple[Any, ...]:
        rows = await self._store.rows(
            f"SELECT {columns} FROM documents WHERE address = %s ORDER BY path = %s DESC LIMIT 1",  # noqa: S608 - made of our own words
            (address(path), storable(path)),
            binary=binary,
        )
        if not rows:
            raise RefusalError(404, f"there is no file {path!a}")
        return rows[0]


def folder_fields(path: str) -> dict[str, Any]:
    """A folder, as the API has it."""
    return {"Name": path.rpartition("/")[2], "ServerRelativeUrl": path, "Exists": True}


def file_fields(number: int, path: str, size_bytes: int, modified: Any, content_type: str) -> dict[str, Any]:
    """A file, as the API has it."""
    return {
        "Name": path.rpartition("/")[2],
        "Title": path.rpartition("/")[2],
        "ServerRelativeUrl": path,
        "Length": str(size_bytes),  # as SharePoint has it: text
        "TimeLastModified": _utc(modified),
        "UniqueId": item_id(number),
        "ETag": f'"{{{item_id(number).upper()}}},{int(modified.timestamp())}"',
        "ContentType": content_type,
        "Exists": True,
    }


def _library(title: str, documents: int) -> dict[str, Any]:
    return {
        "Id": list_id(title),
        "Title": title,
        "ItemCount": documents,
        "Hidden": False,
        "BaseType": 1,
        "BaseTemplate": 101,
        "EntityTypeName": title,
        "ParentWebUrl": "/",
    }


def _item(
    call: Call, title: str, number: int, path: str, size_bytes: int, modified: Any, content_type: str
) -> dict[str, Any]:
    name = path.rpartition("/")[2]
    fields = {
        "Id": number,
        "Title": name,
        "FileRef": path,
        "FileLeafRef": name,
        "FileDirRef": path.rpartition("/")[0],
        "FileSystemObjectType": 0,
        "File_x0020_Size": str(size_bytes),
        "Modified": _utc(modified),
        "GUID": item_id(number),
        "HasUniqueRoleAssignments": _has_own(number),
    }
    expanded = call.names("$expand")
    if "file" in expanded:
        fields["File"] = file_fields(number, path, size_bytes, modified, content_type)
    if "roleassignments" in expanded:
        fields["RoleAssignments"] = item_access(number) if _has_own(number) else list_access(title)
    if "parentlist" in expanded:
        fields["ParentList"] = {"Id": list_id(title), "Title": title}
    return fields


def _has_own(number: int) -> bool:
    return number % _OWN_ACCESS_EVERY == 0


def _list_of(path: str) -> str:
    return path.removeprefix(f"{SITE}/").partition("/")[0]


def _check_expand(call: Call) -> None:
    if unknown := call.names("$expand") - _EXPANDABLE:
        allowed = ", ".join(sorted(_EXPANDABLE))
        raise RefusalError(400, f"$expand: {', '.join(sorted(unknown))}: not supported here; {allowed} are")


def _utc(time: Any) -> str:
    return str(time.strftime("%Y-%m-%dT%H:%M:%SZ"))


def _after(token: str) -> int:
    found = _NEXT_ID.match(token)
    if found is None:
        raise RefusalError(400, "$skiptoken: not one of this site's; follow odata.nextLink as it is")
    return int(found[1])


def _next_link(call: Call, top: int, last: int) -> str:
    query = f"$skiptoken={quote(f'Paged=TRUE&p_ID={last}')}&$top={top}"
    for option in ("$select", "$expand", "$filter", "$orderby"):
        if given := call.query.get(option):
            query += f"&{option}={quote(given, safe=',')}"
    how, name = ("getbyid", call.argument) if "getbyid" in call.steps else ("getbytitle", call.argument)
    if call.steps.startswith("web/lists()"):
        where = f"lists(guid'{name}')"
    else:
        where = f"lists/{how}('{quote(name.replace(chr(39), chr(39) * 2), safe=chr(39))}')"
    return f"{call.origin}/_api/web/{where}/items?{query}"
