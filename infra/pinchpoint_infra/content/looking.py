"""Looking at a corpus: which of its files are documents."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from pinchpoint_infra.content.corpus import Folder
from pinchpoint_infra.content.document import CostlyDocumentError, NotADocumentError
from pinchpoint_infra.content.generated import Generated
from pinchpoint_infra.content.planned import Found
from pinchpoint_infra.content.said import Said
from pinchpoint_infra.content.workers import Workers, parts

_FILES_IN_A_PART = 100
_WORTH_PROCESSES = 2_000
"""Fewer are done before the processes for it have started: half a second of CPU each."""

Source = Folder | Generated


def documents(
    source: Source, limit: int | None, workers: Workers, progress: Callable[[str], None]
) -> list[Found]:
    """At most so many documents, in path order; whatever else there is, is counted as skipped."""
    paths = source.files()
    order = paths if limit is None else source.shuffled(paths)
    found: list[Found] = []
    looked_at, said = 0, Said(progress)

    def words() -> str:
        return f"content: looked at {looked_at:,} of {len(paths):,} files, {len(found):,} are documents"

    work = ((source, part) for part in parts(order, _FILES_IN_A_PART))
    with closing(workers.each(look, work, worth_it=len(paths) > _WORTH_PROCESSES)) as outcomes:
        for outcome in (each for part in outcomes for each in part):
            if len(found) == limit:
                break
            looked_at += 1
            if isinstance(outcome, Found):
                found.append(outcome)
            else:
                source.skipped[outcome] += 1
            said.now_and_then(words)
    if beyond := len(paths) - looked_at:
        source.skipped[f"beyond the limit of {limit:,} documents"] += beyond
    return sorted(found, key=lambda each: each.path)


def look(part: tuple[Source, list[bytes]]) -> list[Found | str]:
    """Of some files each: the document in it, or the reason why there is none."""
    source, paths = part
    outcomes: list[Found | str] = []
    for path in paths:
        try:
            entry = source.entry(path)
        except NotADocumentError as reason:
            named = (
                f": {path.decode('utf-8', 'backslashreplace')}"
                if isinstance(reason, CostlyDocumentError)
                else ""
            )
            outcomes.append(f"{reason}{named}")
        else:
            size_bytes = len(entry.content)
            outcomes.append(Found(path, entry.document.content_type, size_bytes, entry.modified_s))
    return outcomes
