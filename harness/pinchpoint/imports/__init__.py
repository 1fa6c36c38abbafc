"""Turns files of other tools into runs: hosts, disk roles, samples."""

from pinchpoint.imports.alone import import_alone
from pinchpoint.imports.into import import_into
from pinchpoint.imports.mapping import read_mapping
from pinchpoint.imports.places import HostPlaces, read_places
from pinchpoint.imports.source import RecordingFile, open_source, read_names, read_text, result_kind

__all__ = [
    "HostPlaces",
    "RecordingFile",
    "import_alone",
    "import_into",
    "open_source",
    "read_mapping",
    "read_names",
    "read_places",
    "read_text",
    "result_kind",
]
