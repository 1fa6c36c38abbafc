"""Serves the files and folders of the site."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, unquote

from starlette.responses import Response

from pinchpoint_infra.content.database import SITE, address, list_id
from pinchpoint_infra.services.odata import Call, RefusalError, Tree
from pinchpoint_infra.services.odata_answer import Entity, collection, entity
from pinchpoint_infra.services.odata_filter import NAME, Fields, time
from pinchpoint_infra.services.web_store import ContentStore, item_id, item_number, storable

COLUMNS = "id, path, size_bytes, modified, content_type"
"""Columns that ``file_entity`` needs."""
CONTENT = "coalesce(documents.content, other.content)"
DOCUMENTS = "documents LEFT JOIN documents AS other ON other.id = documents.content_of"
"""Documents with their bytes or those of another document (see ``content.database``)."""

_FILE_FIELDS: Fields = {
    "name": (NAME, str),
    "title": (NAME, str),
    "serverrelativeurl": ("path", str),
    "length": ("size_bytes", int),
    "timelastmodified": ("modified", time),
}
_FOLDER_FIELDS: Fields = {"name": (NAME, str), "serverrelativeurl": ("path", str)}
OF_A_FOLDER: Tree = {"files": {}, "folders": {}}
"""Fields of a folder that can be expanded."""


class WebFiles:
    """Handles the requests for files and folders."""

    def __init__(self, store: ContentStore) -> None:
        self._store = store

    async def file(self, call: Call) -> Response:
        """Return the properties of a file."""
        return entity(call, file_entity(*await self.found(call)))

    async def file_content(self, call: Call) -> Response:
        """Return the bytes of a file."""
        by_path = call.steps.startswith(("web/getfilebyserverrelative", "web/getfilebyurl"))
        return await self.content(_path(call.argument) if by_path else (await self.found(call))[1])

    async def content(self, path: str) -> Response:
        """Return the bytes at a server-relative path. Raises ``RefusalError`` if there is no such file."""
        rows = await self._store.rows(
            f"SELECT documents.content_type, {CONTENT} FROM {DOCUMENTS}"  # noqa: S608 - made of our own words
            " WHERE documents.address = %s ORDER BY documents.path = %s DESC LIMIT 1",
            (address(path), storable(path)),
            binary=True,
        )
        if not rows:
            raise RefusalError(404, f"there is no file {path!a}")
        ((content_type, content),) = rows
        return Response(content, headers={"Content-Type": content_type})

    async def found(self, call: Call) -> tuple[Any, ...]:
        """Return ``COLUMNS`` of the requested file: by its path, its GUID, or its name in a folder."""
        if "/files()" in call.steps or "/files/getbyurl()" in call.steps:
            return await self._at(f"{await self._place(call)}/{call.arguments[-1]}")
        if not call.steps.startswith("web/getfilebyid"):
            return await self._at(_path(call.argument))
        number = item_number(call.argument)
        rows = await self._store.rows(f"SELECT {COLUMNS} FROM documents WHERE id = %s", (number,))  # noqa: S608 - made of our own words
        if not rows:
            raise RefusalError(404, f"there is no file {call.argument!a}")
        return rows[0]

    async def folder(self, call: Call) -> Response:
        """Return the properties of a folder. ``$expand=Files,Folders`` adds its contents."""
        path = await self._place(call)
        rows = await self._store.rows(
            "SELECT path FROM folders WHERE address = %s ORDER BY path = %s DESC LIMIT 1",
            (address(path), storable(path)),
        )
        if not rows:
            raise RefusalError(404, f"there is no folder {path!a}")
        ((path,),) = rows
        inside: dict[str, Any] = {}
        if "files" in call.expanded:
            files = await self._store.rows(
                f"SELECT {COLUMNS} FROM documents WHERE folder = %s ORDER BY id",  # noqa: S608 - made of our own words
                (address(path),),
            )
            inside["Files"] = [file_entity(*row) for row in files]
        if "folders" in call.expanded:
            below = await self._store.rows(
                "SELECT path FROM folders WHERE parent = %s ORDER BY id", (address(path),)
            )
            inside["Folders"] = [folder_entity(*row) for row in below]
        return entity(call, folder_entity(path, inside))

    async def files(self, call: Call) -> Response:
        """Return the files directly in a folder."""
        call.allow_expand({})
        within = ("folder = %s", [address(await self._place(call))])
        table = f"SELECT {COLUMNS} FROM documents"  # noqa: S608 - made of our own words
        rows, following = await self._store.page(call, table, _FILE_FIELDS, within)
        return collection(call, [file_entity(*row) for row in rows], call.next_link(following))

    async def folders(self, call: Call) -> Response:
        """Return the folders directly in a folder."""
        call.allow_expand({})
        within = ("parent = %s", [address(await self._place(call))])
        rows, following = await self._store.page(call, "SELECT path FROM folders", _FOLDER_FIELDS, within)
        return collection(call, [folder_entity(*row) for row in rows], call.next_link(following))

    async def _place(self, call: Call) -> str:
        """Return the path of the requested folder: named, a list's, the site's, or a subfolder of these."""
        names = list(call.arguments)
        if call.steps.startswith(("web/lists", "web/getlist()")):
            _, title, _ = await self._store.list_of(call)
            path, names = f"{SITE}/{title}", names[1:]
        elif call.steps.startswith(("web/rootfolder", "web/folders")):
            path = SITE
        else:
            path = _path(names.pop(0)).rstrip("/")
        return f"{path}/{names[0]}" if "/folders()" in call.steps else path

    async def _at(self, path: str) -> tuple[Any, ...]:
        rows = await self._store.rows(
            f"SELECT {COLUMNS} FROM documents WHERE address = %s ORDER BY path = %s DESC LIMIT 1",  # noqa: S608 - made of our own words
            (address(path), storable(path)),
        )
        if not rows:
            raise RefusalError(404, f"there is no file {path!a}")
        return rows[0]


def folder_entity(path: str, inside: dict[str, Any] | None = None) -> Entity:
    """Return a folder as in the API."""
    fields = {"Name": path.rpartition("/")[2], "ServerRelativeUrl": path, "Exists": True}
    return Entity(
        "SP.Folder",
        f"Web/GetFolderByServerRelativePath(decodedurl='{_quoted(path)}')",
        fields | (inside or {}),
    )


def file_entity(number: int, path: str, size_bytes: int, modified: Any, content_type: str) -> Entity:
    """Return a file as in the API."""
    unique, name = item_id(number), path.rpartition("/")[2]
    fields = {
        "Name": name,
        "Title": name,
        "ServerRelativeUrl": path,
        "Length": str(size_bytes),  # a text, as in SharePoint
        "TimeLastModified": utc(modified),
        "UniqueId": unique,
        "ETag": f'"{{{unique.upper()}}},{int(modified.timestamp())}"',
        "ContentType": content_type,
        "Exists": True,
    }
    return Entity("SP.File", f"Web/GetFileById('{unique}')", fields)


def item_link(title: str, number: int) -> str:
    """Return the address of an item after ``/_api/``."""
    return f"Web/Lists(guid'{list_id(title)}')/Items({number})"


def utc(moment: Any) -> str:
    """Return a time in SharePoint's form."""
    return str(moment.strftime("%Y-%m-%dT%H:%M:%SZ"))


def _path(given: str) -> str:
    """Return the server-relative path of a request, which may contain a full URL of this site."""
    if not given.lower().startswith(("http:", "https:")):
        return given
    return "/" + unquote(given.partition("//")[2].partition("/")[2])


def _quoted(path: str) -> str:
    return quote(path.replace("'", "''"), safe="/'")
