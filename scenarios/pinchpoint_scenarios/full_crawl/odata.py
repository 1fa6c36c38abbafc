"""What is in the answers of SharePoint's REST API, in either of their JSON forms."""

from __future__ import annotations

from typing import Any

from .failures import Failure

LIGHT = "application/json;odata=nometadata"
"""The ``Accept`` that asks for the smaller form."""


def opened(answer: Any) -> Any:
    """What is in an answer, whichever its form: the verbose one is wrapped in ``d``."""
    return answer["d"] if isinstance(answer, dict) and set(answer) == {"d"} else answer


def page(answer: Any, target: str) -> tuple[list[dict[str, Any]], str]:
    """The entries of a list, and the URL of its next page ("" at its end). Raises ``Failure``."""
    found = answer.get("value", answer.get("results")) if isinstance(answer, dict) else None
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise Failure("bad_answer", f"{target} has no list of the expected form", permanent=True)
    following = answer.get("odata.nextLink") or answer.get("@odata.nextLink") or answer.get("__next")
    return found, str(following or "")
