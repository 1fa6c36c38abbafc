"""The embedded farm as a run sees it; needs the extra ``pinchpoint[farm]``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pinchpoint.errors import FarmUnavailable, InputError
from pinchpoint.plan import Farm
from pinchpoint_infra import embedded
from pinchpoint_infra.embedded import FarmError, FarmInputError, FarmSpec, FarmStatus


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
    """Start the farm, or find it up. Raises FarmUnavailable, InputError."""
    try:
        return embedded.up(spec(farm), lifeline=lifeline, progress=progress)
    except FarmInputError as error:
        raise InputError(f"farm {farm.name}: {error}") from error
    except FarmError as error:
        raise FarmUnavailable(f"farm {farm.name}: {error}") from error


def down(identity: Path) -> list[str]:
    """Stop a farm and remove all it made; sentences of what was done. Raises FarmUnavailable."""
    try:
        return embedded.down(identity)
    except FarmError as error:
        raise FarmUnavailable(str(error)) from error


def status(identity: Path) -> FarmStatus:
    """How a farm is."""
    return embedded.status(identity)


def describe(found: FarmStatus) -> str:
    """A farm's tiers for the terminal: state, process, port, log; why one crashed."""
    lines = [f"farm {found.farm_id}: {found.state}"]
    for tier in found.tiers:
        where = f", port {tier.port}" if tier.port else ""
        lines.append(f"  {tier.name:<7} {tier.state:<9} process {tier.pid}{where}, log {tier.log}")
        if tier.state == "crashed":
            lines.append(f"          exit status {tier.exit_status}; the end of its log:")
            lines += [f"          {line}" for line in tier.log_tail.splitlines()]
    return "\n".join([*lines, *(f"  warning: {warning}" for warning in found.warnings)])


def standing(farm: Farm) -> FarmStatus | None:
    """The farm as it stands; None when it is not up."""
    found = status(farm.identity)
    return found if found.state == "up" else None


@contextmanager
def embedded_farm(farm: Farm, progress: Callable[[str], None]) -> Iterator[FarmStatus]:
    """The farm, up; stopped at the end unless it was up before. Raises FarmUnavailable."""
    was_up = standing(farm) is not None
    if was_up:
        progress(f"farm {farm.name} is up already: it is used, and left up")
    found = up(farm, progress, lifeline=True)
    try:
        yield found
    finally:
        if not was_up:
            progress(f"stopping farm {farm.name}")
            down(farm.identity)


def crashed_tiers(identity: Path) -> list[tuple[str, str, str]]:
    """(tier, host, tail of its log) of every tier that ended by itself."""
    found = status(identity)
    return [(tier.name, tier.host, tier.log_tail) for tier in found.tiers if tier.state == "crashed"]
