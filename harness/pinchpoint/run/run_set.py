"""Defines a set of runs: one plan on several farms, or repeated. A set has a folder with set.json.

Farms take turns, so that a drift over hours favours no farm: every second round is in reverse order. The set
has a folder for each farm, which ``compare`` accepts as a side.
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
    """The folder of one side in a set.

    Attributes:
        folder: name of the folder in the directory of the set.
        farm: name of the farm.
        identity: path of the farm file.
        again: whether the side repeats the first farm, so that both form an A/A pair.
    """

    folder: str
    farm: str
    identity: str
    again: bool = False


@dataclass(slots=True)
class RunSet:
    """A set of runs, during and after its runs.

    Attributes:
        directory: folder of the set.
        plan: name of the plan.
        repeat: number of runs of each farm.
        places: folders of the sides: the base first, directly followed by its A/A repetition if there is one.
        factors: factors that are studied, declared before the first run.
        metrics: figures to judge; empty: the default figures.
        started: UTC time of the start.
        ended: UTC time of the end; None during the runs.
        state: state of the set. ``ended early``: a run failed or the set was interrupted; complete runs are
            kept.
        runs: entries of the runs in order: ``folder``, ``round``, ``run`` (name of its directory) and
            ``status`` (exit status).
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
        """Return the folders of the farms, the base first, without the A/A repetition."""
        return tuple(self.directory / one.folder for one in self.places if not one.again)

    @property
    def again(self) -> Path | None:
        """Return the folder of the A/A repetition; None if there is none."""
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
    """The options for a set of runs.

    Attributes:
        repeat: number of runs of each farm; None: one.
        aa: whether the first farm runs twice in each round.
        factors: factors that are studied.
        metrics: figures to judge.
    """

    repeat: int | None = None
    aa: bool = False
    factors: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()


def new_set(out: Path, plan: str, farms: Sequence[tuple[str, Path]], asked: Repeated) -> RunSet:
    """Return a new set. Its directory is created later.

    Args:
        out: parent folder of the set's directory.
        plan: name of the plan.
        farms: name and file of each farm, the base first.
        asked: options of the set.
    """
    places = list(_places(farms))
    if asked.aa:
        first = places[0]
        places.insert(1, SetFolder(f"{first.folder}-{AGAIN}", first.farm, first.identity, again=True))
    names = "-".join(dict.fromkeys(name for name, _ in farms))
    directory = free_path(out, f"set-{plan}-{names}")
    return RunSet(directory, plan, asked.repeat or 1, tuple(places), asked.factors, asked.metrics)


def _places(farms: Sequence[tuple[str, Path]]) -> Iterator[SetFolder]:
    """Return a folder for each farm. Farms with the same name get numbers."""
    taken: set[str] = set()
    for name, identity in farms:
        folder, number = name, 1
        while folder in taken:
            number += 1
            folder = f"{name}-{number}"
        taken.add(folder)
        yield SetFolder(folder, name, str(identity))


def turns(places: Sequence[SetFolder], repeat: int) -> Iterator[tuple[int, SetFolder]]:
    """Yield round and farm of each run. Every second round is in reverse order."""
    for number in range(repeat):
        for place in places if number % 2 == 0 else reversed(places):
            yield number + 1, place


def is_set(directory: Path) -> bool:
    """Return whether a directory is a set of runs."""
    return (directory / SET).exists()


class _Run(Form):
    """Entry of a run in set.json."""

    folder: str
    round: int
    run: str
    status: int


class _SavedSet(Form):
    """Contents of set.json."""

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
    """Read the directory of a set. Raises InputError."""
    remedy = "compare the folders of its farms by themselves"
    kept: _SavedSet = document.read_record(directory / SET, _SavedSet, SCHEMA, remedy)
    content = {name: getattr(kept, name) for name in _SavedSet.model_fields}
    return RunSet(directory=directory, **{**content, "runs": [dict(run) for run in kept.runs]})
