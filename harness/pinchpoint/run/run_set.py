"""A set of runs: one plan on several farms, or repeated; its folder and set.json.

Runs take turns, so that a drift over hours favours no farm: round by round, every second round backwards.
Beside set.json, each farm has a folder, which ``compare`` accepts as a side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from pinchpoint.base.errors import ExitStatus
from pinchpoint.store import document
from pinchpoint.store.document import Form, Time
from pinchpoint.store.write import free_path, writable, write_json
from pinchpoint_collectors.common.times import utc

SCHEMA = "pinchpoint.set/1"
SET = "set.json"
AGAIN = "again"

State = Literal["running", "finished", "ended early"]


@dataclass(frozen=True, slots=True)
class SetFolder:
    """One side's place in a set.

    Attributes:
        folder: its folder in the set's directory.
        farm: the farm's name.
        identity: the farm's file.
        again: whether it is a repetition of the first farm: both are an A/A pair.
    """

    folder: str
    farm: str
    identity: str
    again: bool = False


@dataclass(slots=True)
class RunSet:
    """A set, during and after its runs.

    Attributes:
        directory: its folder.
        plan: the plan's name.
        repeat: runs of each farm.
        places: the base first; an A/A repetition of it directly after it.
        factors: the studied factors, declared before the first run.
        metrics: the figures to judge; empty: the default ones.
        started: UTC.
        ended: UTC; None while it runs.
        state: ``ended early``: a run failed, or the set was interrupted; complete runs are kept.
        runs: in the order of the runs: ``folder``, ``round``, ``run`` (its directory's name) and ``status``
            (its exit status).
    """

    directory: Path
    plan: str
    repeat: int
    places: tuple[SetFolder, ...]
    factors: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    started: str = field(default_factory=utc)
    ended: str | None = None
    state: State = "running"
    runs: list[dict[str, str | int]] = field(default_factory=list)

    @property
    def sides(self) -> tuple[Path, ...]:
        """The folders of the farms, the base first, without the A/A repetition."""
        return tuple(self.directory / one.folder for one in self.places if not one.again)

    @property
    def again(self) -> Path | None:
        """The folder of the A/A repetition; None without one."""
        return next((self.directory / one.folder for one in self.places if one.again), None)

    def note(self, place: SetFolder, number: int, run: Path, status: ExitStatus) -> None:
        """Record a run. Raises InputError."""
        self.runs.append({"folder": place.folder, "round": number, "run": run.name, "status": int(status)})
        self.save()

    def end(self, *, whole: bool) -> None:
        """Record that the set has ended. Raises InputError."""
        self.ended, self.state = utc(), "finished" if whole else "ended early"
        self.save()

    def save(self) -> None:
        """Write set.json. Raises InputError."""
        content = {"schema": SCHEMA, **asdict(self)}
        del content["directory"]
        path = self.directory / SET
        with writable(path):
            self.directory.mkdir(parents=True, exist_ok=True)
            write_json(path, content)


@dataclass(frozen=True, slots=True)
class Repeated:
    """The options of a set of runs.

    Attributes:
        repeat: runs of each farm; None: one.
        aa: whether the first farm runs twice in each round.
        factors: what is studied.
        metrics: the figures to judge.
    """

    repeat: int | None = None
    aa: bool = False
    factors: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()


def new_set(out: Path, plan: str, farms: Sequence[tuple[str, Path]], asked: Repeated) -> RunSet:
    """A new set; its directory is not created yet.

    Args:
        out: the parent of its directory.
        plan: the plan's name.
        farms: (name, file) of each, the base first.
        asked: number and purpose of the runs.
    """
    places = list(_places(farms))
    if asked.aa:
        first = places[0]
        places.insert(1, SetFolder(f"{first.folder}-{AGAIN}", first.farm, first.identity, again=True))
    names = "-".join(dict.fromkeys(name for name, _ in farms))
    directory = free_path(out, f"set-{plan}-{names}")
    return RunSet(directory, plan, asked.repeat or 1, tuple(places), asked.factors, asked.metrics)


def _places(farms: Sequence[tuple[str, Path]]) -> Iterator[SetFolder]:
    """Farms with the same name get numbers."""
    taken: set[str] = set()
    for name, identity in farms:
        folder, number = name, 1
        while folder in taken:
            number += 1
            folder = f"{name}-{number}"
        taken.add(folder)
        yield SetFolder(folder, name, str(identity))


def turns(places: Sequence[SetFolder], repeat: int) -> Iterator[tuple[int, SetFolder]]:
    """(round, farm): every second round in reverse order."""
    for number in range(repeat):
        for place in places if number % 2 == 0 else reversed(places):
            yield number + 1, place


def is_set(directory: Path) -> bool:
    """Whether a directory is a set of runs."""
    return (directory / SET).exists()


class _Run(Form):
    """A run of a set, as in set.json."""

    folder: str
    round: int
    run: str
    status: int


class _SavedSet(Form):
    """set.json."""

    plan: str
    repeat: int
    places: tuple[SetFolder, ...]
    factors: tuple[str, ...]
    metrics: tuple[str, ...]
    started: Time
    ended: Time | None
    state: State
    runs: list[_Run]


def load_set(directory: Path) -> RunSet:
    """A set's directory, read back. Raises InputError."""
    remedy = "compare the folders of its farms by themselves"
    kept: _SavedSet = document.read_record(directory / SET, _SavedSet, SCHEMA, remedy)
    content = {name: getattr(kept, name) for name in _SavedSet.model_fields}
    return RunSet(directory=directory, **{**content, "runs": [dict(run) for run in kept.runs]})
