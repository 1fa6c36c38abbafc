"""The fields of an item: what it can be chosen by, and what a view shows of it."""

from __future__ import annotations

from typing import Any

from pinchpoint_infra.services.odata_filter import FOLDER, NAME, Fields, time
from pinchpoint_infra.services.web_store import item_id, item_number


def _numbered(guid: str) -> int:
    number = item_number(guid)
    if number is None:
        raise ValueError(guid)
    return number


ITEM_FIELDS: Fields = {
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
"""What items can be chosen by and sorted by."""

ROW_FIELDS = (
    "ID", "Title", "FileRef", "FileLeafRef", "FileDirRef", "FSObjType", "File_x0020_Size", "File_x0020_Type",
    "Modified", "Created", "UniqueId", "ContentType",
)  # fmt: skip
"""What a view shows of an item, by the names views have for it."""


def row_fields(number: int, path: str, size_bytes: int, modified: Any, content_type: str) -> dict[str, str]:
    """``ROW_FIELDS`` of an item; all of them texts, as in SharePoint's views."""
    folder, _, name = path.rpartition("/")
    moment = modified.strftime("%Y-%m-%dT%H:%M:%SZ")
    suffix = name.rpartition(".")[2] if "." in name else ""
    texts = (
        str(number), name, path, name, folder, "0", str(size_bytes), suffix, moment, moment,
        f"{{{item_id(number).upper()}}}", content_type,
    )  # fmt: skip
    return dict(zip(ROW_FIELDS, texts, strict=True))
