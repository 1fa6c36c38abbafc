"""The embedded farm as a run sees it; needs the extra ``pinchpoint[farm]``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pinchpoint_infra.embedded import FarmError, FarmSpec, FarmStatus

from pinchpoint.errors import FarmUnavailable
from pinchpoint.plan import Farm
from pinchpoint_infra import embedded


def spec(farm: Farm) -> FarmSpec:
    """What infra is to build for a farm.yaml with ``embedded:``."""
    assert farm.embedded is not None  # noqa: S101 -- callers ask first
    content = farm.embedded.content
    return FarmSpec(
        identity=farm.identity,
        name=farm.name,
        tiers=tuple(farm.embedded.tiers),
        corpus=content.corpus if content else None,
        documents=content.documents if content else None,
    )


def up(farm: Farm, progress: Callable[[str], None], *, lifeline: bool) -> FarmStatus:
    """Start the farm, or find it up. Raises FarmUnavailable."""
    try:
        return embedded.up(spec(farm), lifeline=lifeline, progress=progress)
    except FarmError as error:
        raise FarmUnavailable(f"farm {farm.name}: {error}") from error


def standing(farm: Farm) -> FarmStatus | None:
    """The farm as it stands; None when it is not up."""
    status = embedded.status(farm.identity)
    return status if status.state == "up" else None


@contextmanager
def embedded_farm(farm: Farm, progress: Callable[[str], None]) -> Iterator[FarmStatus]:
    """The farm, up; stopped at the end unless it was up before. Raises FarmUnavailable."""
    was_up = standing(farm) is not None
    if was_up:
        progress(f"farm {farm.name} is up already: it is used, and left up")
    status = up(farm, progress, lifeline=True)
    try:
        yield status
    finally:
        if not was_up:
            progress(f"stopping farm {farm.name}")
            embedded.down(farm.identity)


def crashed_tiers(identity: Path) -> list[tuple[str, str, str]]:
    """(tier, host, tail of its log) of every tier that ended by itself."""
    status = embedded.status(identity)
    return [(tier.name, tier.host, tier.log_tail) for tier in status.tiers if tier.state == "crashed"]
