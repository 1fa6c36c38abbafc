"""Imports recordings of other tools as runs: their hosts, disk roles and samples."""

from pinchpoint.imports.as_run import import_as_run
from pinchpoint.imports.into_run import import_into_run
from pinchpoint.imports.mapping import read_mapping
from pinchpoint.imports.places import HostPlaces, read_places
from pinchpoint.imports.source import RecordingFile, open_source, read_names, read_text, result_kind

__all__ = [
    "HostPlaces",
    "RecordingFile",
    "import_as_run",
    "import_into_run",
    "open_source",
    "read_mapping",
    "read_names",
    "read_places",
    "read_text",
    "result_kind",
]
