"""The parameters of sql-replay in a plan."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, field_validator

from ..contract import FileParams
from ..errors import ScenarioError
from ..units import Seconds


class SqlReplayParams(FileParams):
    """``params`` of sql-replay.

    Attributes:
        capture: the log files, or exported events, of one server, from the plan's folder on; any number of
            parts, in any order.
        database: of a log with several databases, the one whose statements are replayed.
        speed: how much faster than captured: 2 halves every pause.
        timeout_s: after so long the server gives a statement up (outcome ``statement_timeout``).
    """

    capture: tuple[str, ...] = ()
    database: str | None = None
    speed: Annotated[float, Field(gt=0, le=1000)] = 1.0
    timeout_s: Seconds = 600.0

    @field_validator("capture", mode="before", json_schema_input_type=str | tuple[str, ...])
    @classmethod
    def _one_or_several(cls, capture: Any) -> Any:
        return [capture] if isinstance(capture, str) else capture

    @classmethod
    def placed(cls, given: Mapping[str, Any], directory: Path) -> dict[str, Any]:
        capture = given.get("capture")
        if isinstance(capture, str):
            capture = [capture]
        if not isinstance(capture, list | tuple):
            return dict(given)
        paths = [
            str(directory / Path(each).expanduser()) if isinstance(each, str) else each for each in capture
        ]
        return {**given, "capture": paths}

    def paths(self) -> tuple[str, ...]:
        return self.capture

    def read_files(self) -> None:
        """Whether they are there; a log may be long, and is read when it is needed."""
        if not self.capture:
            raise ScenarioError("no capture is named; needed: capture, the log files of the server")
        for path in self.capture:
            if not Path(path).is_file():
                raise ScenarioError(f"{path}: there is no such file; check the path")
