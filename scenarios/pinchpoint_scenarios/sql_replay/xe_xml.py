"""Extended Events as XML, as ``sys.fn_xe_file_target_read_file`` and the ring buffer give them.

One event is ``<event name="rpc_completed" timestamp="..."><data name="duration"><value>12</value></data>...
<action name="session_id"><value>70</value></action></event>`` (SQL Server manual, "Targets for Extended
Events"). Rows of them need no root around; whatever stands between them is no concern of anybody's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from xml.parsers import expat

from ..errors import ScenarioError
from .files import LOST
from .xe_event import Event

_DECLARATION = re.compile(r"\s*<\?xml[^>]*\?>")
_NO_LETTER = re.compile(
    r"[\0-\x08\x0b\x0c\x0e-\x1f]|&#(?:x0*(?:[0-8bcef]|1[0-9a-f])|0*(?:[0-8]|1[124-9]|2\d|3[01]));",
    re.IGNORECASE,
)
"""What no XML may have, and the server writes where a statement has it."""
_CHUNK = 2**20


def chunks(file: Iterable[str], size: int = _CHUNK) -> Iterator[str]:
    """The lines of a file, so many together that they have about this many characters."""
    lines: list[str] = []
    held = 0
    for line in file:
        lines.append(line)
        held += len(line)
        if held >= size:
            yield "".join(lines)
            lines, held = [], 0
    yield "".join(lines)


def xml_events(texts: Iterable[str], file: str, first_line: int = 1) -> Iterator[Event]:
    """The events in a text.

    Args:
        texts: it, in pieces.
        file: its name, for messages.
        first_line: where in the file it begins.

    Raises:
        ScenarioError: it is no XML, with the line.
    """
    reader = _Reader(file, first_line)
    # Within a root of ours no document type can be declared, and so no entity that grows, or is fetched.
    reader.feed("<capture>")
    first = True
    for text in (_NO_LETTER.sub(LOST, each) for each in texts):
        reader.feed(_DECLARATION.sub(_blank, text, count=1) if first else text)
        first = False
        yield from reader.taken()
    reader.feed("</capture>", last=True)
    yield from reader.taken()


def _blank(declaration: re.Match[str]) -> str:
    return "\n" * declaration[0].count("\n")


class _Reader:
    """Makes events of elements. Elements it does not know, and what is in them, are left alone."""

    def __init__(self, file: str, first_line: int) -> None:
        self._file = file
        self._first_line = first_line
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._events: list[Event] = []
        self._open: tuple[str, str, str] | None = None
        self._fields: dict[str, str] = {}
        self._field = ""
        self._element = ""
        self._text: list[str] = []

    def feed(self, text: str, *, last: bool = False) -> None:
        """Read on."""
        try:
            self._parser.Parse(text, last)
        except expat.ExpatError as error:
            raise ScenarioError(
                f"{self._file}:{self._line(error.lineno)}: no XML ({expat.ErrorString(error.code)}); "
                "allowed: events as sys.fn_xe_file_target_read_file gives them, whole (sqlcmd: -y 0)"
            ) from error

    def taken(self) -> list[Event]:
        """The events that have ended since."""
        taken, self._events = self._events, []
        return taken

    def _line(self, line: int) -> int:
        return line + self._first_line - 1

    def _start(self, element: str, attributes: dict[str, str]) -> None:
        if element == "event" and self._open is None:
            place = f"{self._file}:{self._line(self._parser.CurrentLineNumber)}"
            self._open = (place, attributes.get("name", ""), attributes.get("timestamp", ""))
            self._fields = {}
        elif element in ("data", "action") and self._open:
            self._field = attributes.get("name", "")
        elif element in ("value", "text") and self._field and not self._element:
            self._element, self._text = element, []

    def _characters(self, text: str) -> None:
        if self._element:
            self._text.append(text)

    def _end(self, element: str) -> None:
        if element == self._element:
            self._keep(element, "".join(self._text))
            self._element = ""
        elif element in ("data", "action"):
            self._field = ""
        elif element == "event" and self._open and not self._field:
            self._events.append(Event(*self._open, self._fields))
            self._open = None

    def _keep(self, element: str, text: str) -> None:
        """A value; or the text beside it, which says more than the number, where there is one."""
        if element == "value":
            self._fields.setdefault(self._field, text)
        elif text.strip():
            self._fields[self._field] = text
