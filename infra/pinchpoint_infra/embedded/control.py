"""Starts, stops and queries a farm from outside its supervisor (``up``, ``down``, ``status``)."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import psutil

from pinchpoint_collectors.environment import child_environment
from pinchpoint_infra.content import CorpusError
from pinchpoint_infra.content.corpus import Folder
from pinchpoint_infra.embedded import place, removal
from pinchpoint_infra.embedded.record import (
    FarmError,
    FarmInputError,
    FarmSpec,
    FarmState,
    FarmStatus,
    Slower,
    TierStatus,
)
from pinchpoint_infra.embedded.record import TierState as TierWord
from pinchpoint_infra.embedded.state import SPEC, LimitsInForce, State, TierState, load, want
from pinchpoint_infra.embedded.tiers import TIERS
from pinchpoint_infra.embedded.tiers.contract import write_secret
from pinchpoint_infra.embedded.tiers.web import WebTier

_POLL_S = 0.1
_STOP_S = 15.0
_NOTE_S = 2.0
"""Seconds within which a supervisor notices the end of a tier. It takes a quarter of a second unless the
machine is busy."""
_LIMIT_S = 60.0  # dropping a large table from the page cache first writes it to the disk

_supervisors: dict[str, subprocess.Popen[bytes]] = {}
"""Supervisors that this process started. A farm with a lifeline runs while the supervisor's stdin is open."""


def up(spec: FarmSpec, *, lifeline: bool, progress: Callable[[str], None]) -> FarmStatus:
    """Start a farm and wait until every tier answers. A farm that is already up is not changed.

    Args:
        spec: the farm to build.
        lifeline: whether the farm ends and is removed with this process, even if the process is killed.
        progress: receives sentences for the user.

    Raises:
        FarmError: the farm cannot be started; everything that this call started is ended.
    """
    launched = launch(spec, lifeline=lifeline, progress=progress)
    try:
        return wait_up(spec.identity, progress)
    except BaseException:
        if launched:
            down(spec.identity)
        raise


def launch(spec: FarmSpec, *, lifeline: bool, progress: Callable[[str], None]) -> bool:
    """Start a farm, unless it is up or another process is starting it (see ``up``).

    Returns:
        Returns whether this call started the farm. If so, the caller must also stop it.

    Raises:
        FarmError: the farm cannot be built, or the remains of an earlier one cannot be removed.
    """
    _check(spec)
    if status(spec.identity).state == "up":
        return False
    directory = place.farm_directory(spec.identity)
    with _alone(directory.parent):
        if status(spec.identity).state in {"starting", "up"}:  # the farm may have started during the wait
            return False
        for sentence in removal.remove(place.farm_id(spec.identity), directory):
            progress(f"remains of an earlier farm: {sentence}")
        _let_go(place.farm_id(spec.identity))
        _launch(spec, directory, lifeline=lifeline)
    return True


def wait_up(identity: Path, progress: Callable[[str], None]) -> FarmStatus:
    """Wait until every tier of a started farm answers, whichever process started it (see ``up``).

    Raises:
        FarmError: the farm failed, or no longer exists.
    """
    result = status(identity)
    if result.state == "up":
        return result
    directory = place.farm_directory(identity)
    supervisor = _supervisors.get(place.farm_id(identity))
    answer, filled = "", False
    while True:
        state = load(directory)
        if state and state.message != answer:
            answer = state.message
            progress(answer)
        if state and state.content and not filled:
            filled = True
            progress(_filled_with(state.content))
        if state and state.stage == "failed":
            raise FarmInputError(state.failure) if state.input_at_fault else FarmError(state.failure)
        result = status(identity)
        if result.state == "up":
            return result
        gone = supervisor.poll() is not None if supervisor else result.state != "starting"
        if gone:
            raise FarmError(f"the farm's supervisor ended while starting: {_last_words(directory)}")
        time.sleep(_POLL_S)


def _last_words(directory: Path) -> str:
    try:
        lines = (directory / "supervisor.log").read_text(errors="replace").strip().splitlines()
    except FileNotFoundError:  # the process that started the farm has removed it already
        lines = []
    return lines[-1] if lines else "without a word"


def down(identity: Path) -> list[str]:
    """Stop a farm and remove everything it created. Return sentences on what was done; none without a farm.

    Raises:
        FarmError: something could not be removed, because rights are missing.
    """
    return down_by_id(place.farm_id(identity))


def down_by_id(identifier: str) -> list[str]:
    """Stop a farm whose file may be deleted (see ``down``)."""
    directory = place.directory_of(identifier)
    state = load(directory)
    done = []
    if state and state.supervisor and removal.alive(*state.supervisor):
        os.kill(state.supervisor[0], signal.SIGTERM)
        deadline = time.monotonic() + _STOP_S
        while removal.alive(*state.supervisor) and time.monotonic() < deadline:
            time.sleep(0.05)
        done.append(f"stopped {', '.join(dict.fromkeys(tier.tier for tier in state.tiers.values()))}")
    done += removal.remove(identifier, directory)
    _let_go(identifier)
    return done


def limit(identity: Path, *, hold: bool) -> None:
    """Start a farm's limits and delays from their initial state, or lift them.

    Raises:
        FarmError: the limits cannot be applied, or the farm is not up.
    """
    _ask(identity, lambda now: LimitsInForce(now.number + 1, hold))


def slow(identity: Path, slower: Slower | None, for_s: float = 0.0) -> None:
    """Slow down one part of a farm, whose limits stay in force; None restores all parts.

    The slowdown ends after ``for_s`` seconds, because the caller may be killed before that.

    Raises:
        FarmError: this part cannot be slowed down (the message says why), or the farm is not up.
    """
    until_s = time.time() + for_s if slower else 0.0
    _ask(
        identity,
        lambda now: LimitsInForce(now.number + 1, now.hold, live=True, slower=slower, until_s=until_s),
    )


def _ask(identity: Path, wish: Callable[[LimitsInForce], LimitsInForce]) -> None:
    """Send a request for limits to a farm's supervisor, and wait until it is done. Raises FarmError."""
    directory = place.farm_directory(identity)
    state = load(directory)
    if state is None:
        raise FarmError("the farm is not up")
    wanted = wish(state.limits)
    number = wanted.number
    want(directory, wanted)
    deadline = time.monotonic() + _LIMIT_S
    while state.limits.number != number:
        if not (state.supervisor and removal.alive(*state.supervisor)) or time.monotonic() > deadline:
            raise FarmError("the farm's supervisor does not answer: its limits are not known to hold")
        time.sleep(_POLL_S / 2)
        state = load(directory) or state
    if state.limits.failure:
        raise FarmError(state.limits.failure)


def status(identity: Path) -> FarmStatus:
    """Return the state of a farm, without changing anything."""
    return status_by_id(place.farm_id(identity))


def known() -> list[tuple[FarmStatus, Path | None]]:
    """Yield every farm with files on this machine, and the path of its farm file, if known."""
    return [(status_by_id(identifier), _built_from(identifier)) for identifier in place.known_ids()]


def status_by_id(identifier: str) -> FarmStatus:
    """Return the state of a farm whose file may be deleted (see ``status``)."""
    directory = place.directory_of(identifier)
    state = load(directory)
    until = time.monotonic() + _NOTE_S
    while state is not None and _is_unnoted(state) and time.monotonic() < until:
        time.sleep(0.05)
        state = load(directory)
    if state is None:
        left = directory.exists() or bool(removal.of_farm(identifier, directory))
        return FarmStatus(identifier, "broken" if left else "down", str(directory))
    tiers = tuple(_tier(name, tier) for name, tier in state.tiers.items())
    return FarmStatus(
        farm_id=identifier,
        state=_farm_state(state, tiers),
        directory=str(directory),
        tiers=tiers,
        endpoints=state.endpoints,
        disks={name: tier.disks for name, tier in state.tiers.items()},
        farm_cores=tuple(state.farm_cores),
        generator_cores=tuple(state.generator_cores),
        content=state.content,
        emulated=state.emulated,
        limited=state.limits.hold,
        slower=state.limits.slower,
        warnings=tuple(_warnings(state)),
    )


def _built_from(identifier: str) -> Path | None:
    try:
        return Path(json.loads((place.directory_of(identifier) / SPEC).read_text())["identity"])
    except (FileNotFoundError, json.JSONDecodeError):
        return None  # the process was killed before it wrote its process id


def _check(spec: FarmSpec) -> None:
    if sys.platform != "linux":
        raise FarmError(f"the embedded farm runs on Linux only, this is {sys.platform}")
    unknown = sorted(set(spec.tiers) - set(TIERS))
    if unknown or not spec.tiers:
        raise FarmInputError(f"tiers: found {', '.join(unknown) or 'none'}; allowed: {', '.join(TIERS)}")
    if "web" in spec.tiers and "sql" not in spec.tiers:
        raise FarmInputError("tiers: web needs sql, where its content lies; add sql")
    if fixed := sorted(set(spec.hosts) - {name for name, tier in TIERS.items() if tier.several}):
        several = ", ".join(name for name, tier in TIERS.items() if tier.several)
        raise FarmInputError(f"hosts: found {', '.join(fixed)}; allowed: {several}")
    if unthrottled := sorted(set(spec.throttle) - ({WebTier.name} & set(spec.tiers))):
        raise FarmInputError(
            f"throttle: found {', '.join(unthrottled)}; allowed: web, where it is among the tiers"
        )
    if spec.corpus:
        try:
            Folder(spec.corpus)  # a missing folder is reported before any server is started
        except CorpusError as error:
            raise FarmInputError(str(error)) from error


@contextmanager
def _alone(farms: Path) -> Iterator[None]:
    """Lock a farm, so that two commands never start it at the same time."""
    place.make_farms(farms)
    try:
        lock = os.open(farms, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise FarmError(
            f"cannot open {farms}: {error.strerror}; name a folder of your own in {place.STATE_VARIABLE}"
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _launch(spec: FarmSpec, directory: Path, *, lifeline: bool) -> None:
    place.make_directory(directory)
    identifier = place.farm_id(spec.identity)
    write_secret(directory / SPEC, json.dumps(asdict(spec), default=os.fsdecode))
    log_file = directory / "supervisor.log"
    log_file.touch(mode=0o600)
    with log_file.open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "pinchpoint_infra.embedded.supervisor", str(directory)],
            cwd=directory,
            stdin=subprocess.PIPE if lifeline else subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=child_environment((place.STATE_VARIABLE, "XDG_STATE_HOME")) | {place.MARK: identifier},
            start_new_session=True,
        )
    _supervisors[identifier] = process
    # The next process must see that the farm is starting, so that it does not remove the farm as a leftover.
    if load(directory) is None:
        State(supervisor=(process.pid, psutil.Process(process.pid).create_time())).save(directory)


def _let_go(identifier: str) -> None:
    """Remove an ended supervisor from ``_supervisors``."""
    ended = _supervisors.pop(identifier, None)
    if ended:
        if ended.stdin:
            ended.stdin.close()
        ended.wait()


def _filled_with(content: dict[str, Any]) -> str:
    """Return a sentence about the content of a farm."""
    copies = f", {content['copies']:,} of them further copies" if content["copies"] else ""
    stored = f"{content['stored_bytes'] / 1e6:,.1f} MB stored"
    return f"content: {content['documents']:,} documents of {content['corpus']}{copies}, {stored}"


def _is_gone(tier: TierState) -> bool:
    """Return whether a tier that counts as up has ended: its supervisor is gone or has not noticed yet."""
    return tier.state == "up" and tier.pid is not None and not removal.alive(tier.pid, tier.create_time)


def _is_unnoted(state: State) -> bool:
    """Return whether a tier has ended and its supervisor has not recorded the exit status yet."""
    supervised = state.supervisor is not None and removal.alive(*state.supervisor)
    return supervised and any(map(_is_gone, state.tiers.values()))


def _tier(name: str, tier: TierState) -> TierStatus:
    state = "crashed" if _is_gone(tier) else tier.state
    return TierStatus(
        server=name,
        name=tier.tier,
        host=tier.host,
        state=cast("TierWord", state),  # the supervisor writes the same words
        pid=tier.pid,
        port=tier.port,
        directory=tier.directory,
        log=tier.log,
        exit_status=tier.exit_status,
        log_tail=tier.log_tail,
    )


def _farm_state(state: State, tiers: tuple[TierStatus, ...]) -> FarmState:
    supervised = state.supervisor is not None and removal.alive(*state.supervisor)
    if not supervised or any(tier.state == "crashed" for tier in tiers):
        return "broken"
    return "up" if state.stage == "up" else "starting"


def _warnings(state: State) -> Iterator[str]:
    if state.supervisor and not removal.alive(*state.supervisor):
        yield "its supervisor is gone: `pinchpoint farm down` clears away what is left"
    if set(state.farm_cores) == set(state.generator_cores):
        yield "this machine has one usable core: farm and load generator share it"
    yield from state.warnings
