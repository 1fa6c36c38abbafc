"""``pinchpoint demo --seed``: repeats published experiments on farms and disks of this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import click

from pinchpoint.base.errors import ExitStatus, FarmUnavailable, InputError, gravest
from pinchpoint.cli.probe_run import ProbeOptions, run_probe
from pinchpoint.cli.run import run_and_report
from pinchpoint.cli.run_set import compare_farms, run_members
from pinchpoint.farm.ready import embedded
from pinchpoint.plan import Farm, Plan, load, load_farm
from pinchpoint.run.run_set import Repeated, new_set
from pinchpoint.store.schema import REPORT
from pinchpoint.store.write import writable
from pinchpoint_infra.disks import support
from pinchpoint_infra.disks.way import choose


@dataclass(frozen=True, slots=True)
class Asked:
    """The options for repeating a published experiment.

    Attributes:
        folder: folder with the files of the experiment.
        out: folder for results.
        repeat: number of repetitions; None: as in the publication.
        notes: sentences for the pages about how the experiment was made.
    """

    folder: Path
    out: Path
    repeat: int | None
    notes: tuple[str, ...]


Step = Callable[[Asked], ExitStatus]
"""One step of an experiment. The step prints the path of its page."""


@dataclass(frozen=True, slots=True)
class Seed:
    """One published experiment.

    Attributes:
        letter: value of ``--seed``; ``name`` is also allowed.
        name: folder of its files in the examples.
        about: description in one line.
        emulated: sentence on which hardware of the publication is emulated here.
        steps: steps in order.
        as_here: returns a sentence on what depends on this machine.
    """

    letter: str
    name: str
    about: str
    emulated: str
    steps: tuple[Step, ...]
    as_here: Callable[[], str] | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """Return the notes for the pages about how the experiment was made."""
        return (self.emulated, *([self.as_here()] if self.as_here else []))


def _share() -> str:
    """Create the folder with the documents of the file share."""
    from pinchpoint_infra.embedded.tiers.files import missing_for_a_share  # noqa: PLC0415 -- of the extra farm

    if lack := missing_for_a_share():
        return f"The file share is a folder without a delay, so its link is not measured: {lack}."
    return "The file share is a real SMB share (Samba) on this machine, behind a delay in place of the VPN."


_ARRAYS = ("farm-1", "farm-2", "farm-4", "farm-8", "raid-1", "raid-4", "raid-5", "raid-6", "raid-10")


def _runs(*names: str) -> Step:
    """Run the plan of the folder on each farm in turns, and compare the farms."""

    def step(asked: Asked) -> ExitStatus:
        folder = asked.folder
        farms = [load(folder / f"{name}.yaml", folder / "plan.yaml") for name in names]
        return run_all(farms, asked.out, asked.repeat or 1, asked.notes)

    return step


def _probes(
    *farms: str, suite: str, disk: str = "nosql.data", repeat: int = 1, seconds: str | None = None, size: str
) -> Step:
    """Run one suite on the disk of each farm."""

    def step(asked: Asked) -> ExitStatus:
        paths = tuple(asked.folder / f"{name}.yaml" for name in farms)
        for path in paths:
            check_means(load_farm(path))
        directory, status = run_probe(
            ProbeOptions(
                folders=(),
                farm_files=paths,
                disks=(disk,),
                suite=suite,
                profile=None,
                repeat=asked.repeat or repeat,
                time_per_cell=seconds,
                size=size,
                line=None,
                threads=None,
                resume=None,
                calibrate=False,
                copy_tool=None,
                as_json=False,
                out=asked.out,
                notes=asked.notes,
            )
        )
        click.echo(directory / REPORT)
        return status

    return step


SEEDS: tuple[Seed, ...] = (
    Seed(
        "a",
        "crawl-dev-vs-prod",
        "a full crawl of four content sources on two farms that differ in their SQL disks (5 to 9 minutes)",
        "The SQL and index disks are emulated. The two search hosts have 0.15 of a core and an index disk "
        "each: all tiers run on this machine.",
        (_runs("dev", "prod"),),
        _share,
    ),
    Seed(
        "b",
        "storage-qos",
        "Iometer's matrix on a hard disk and an SSD, with and without a QoS of 500 IOPS (10 to 15 minutes)",
        "The four disks are emulated; the SSD is scaled down to 3,000 IOPS. Of the matrix the blocks of 8 "
        "KiB are measured: 44 of 660 measurements, less those that a bisection leaves out.",
        (
            _probes(
                "hdd",
                "hdd-qos",
                "ssd",
                "ssd-qos",
                suite="iometer-knee",
                size="256MiB",
            ),
        ),
    ),
    Seed(
        "c",
        "stripes",
        "sequential I/O and a NoSQL write burst on RAID 0 of 1, 2, 4 and 8 disks, and on RAID 1, 4, 5, 6 and "
        "10 (half an hour)",
        "The arrays are emulated: the time that reads, writes and parity of each level take on its disks, "
        "which are slow while they are new; not the time to compute parity, nor the cache of a controller. "
        "dd of 24 MiB, five times, stands for bonnie++, and there is no run of eight hours.",
        (
            _probes(*_ARRAYS, suite="sequential", repeat=5, size="24MiB"),
            _runs(*_ARRAYS),
        ),
    ),
    Seed(
        "d",
        "premium-disk",
        "CrystalDiskMark's four patterns on an Azure P10, beside what its catalogue entry allows (3 minutes)",
        "The P10, and the machine in front of it that lets reads exceed its limit, are emulated. Each figure "
        "is of three repetitions of two seconds.",
        (_probes("p10", suite="crystaldiskmark", repeat=3, seconds="2s", size="256MiB"),),
    ),
    Seed(
        "e",
        "three-storages",
        "dd, hdparm and CrystalDiskMark's patterns on three storages side by side (10 minutes)",
        "The three storages, and the host's cache of one, are emulated. Five trials of 64 MiB stand for "
        "twelve of 1 GiB.",
        (
            _probes("persistent", "ephemeral", "mounted", suite="sequential", repeat=5, size="64MiB"),
            _probes(
                *("persistent", "ephemeral", "mounted"),
                suite="crystaldiskmark-3",
                repeat=5,
                seconds="1s",
                size="128MiB",
            ),
        ),
    ),
)


def seed_named(name: str) -> Seed:
    """Return the experiment with a letter or name. Raises InputError that lists all."""
    for one in SEEDS:
        if name in (one.letter, one.name):
            return one
    known = "\n".join(f"  {one.letter}, {one.name}: {one.about}" for one in SEEDS)
    raise InputError(f"--seed: there is no {name!r}; allowed:\n{known}")


def run_seed(name: str, out: Path, repeat: int | None) -> ExitStatus:
    """Copy the files of an experiment, which the user can change, and run its steps.

    Raises InputError, FarmUnavailable.
    """
    one = seed_named(name)
    folder = out / one.name
    with writable(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for file in files("pinchpoint_infra").joinpath("examples", one.name).iterdir():
            if not (folder / file.name).exists():
                (folder / file.name).write_bytes(file.read_bytes())
    click.echo(f"{one.about}. {' '.join(one.notes)} Its files: {folder}", err=True)
    asked = Asked(folder, out, repeat, one.notes)
    statuses = []
    for step in one.steps:
        statuses.append(step(asked))
        if statuses[-1] in (ExitStatus.INTERRUPTED, ExitStatus.ENVIRONMENT):
            break
    return gravest(statuses)


def run_all(
    farms: Sequence[tuple[Farm, Plan]], out: Path, repeat: int = 1, notes: Sequence[str] = ()
) -> ExitStatus:
    """Run the plan on each farm in turns and compare them. The last printed line is the comparison's page.

    Args:
        farms: farm and plan of each side.
        out: folder for the set of runs.
        repeat: number of runs of each farm.
        notes: sentences for the page of the comparison about how it was made.

    Raises:
        FarmUnavailable: this machine cannot emulate such disks, so all farms would be the same.
    """
    for described, _ in farms:
        check_means(described)
    names = [(described.name, Path(described.identity)) for described, _ in farms]
    made = new_set(out, farms[0][1].name, names, Repeated(repeat, factors=("disks",)))
    statuses = run_members(made, farms, run_and_report)
    if made.state != "finished":
        click.echo(made.directory)
        return gravest(statuses)
    written, status = compare_farms(made, notes)
    click.echo(written[0] / REPORT)
    return gravest([*statuses, status])


def check_means(described: Farm) -> None:
    """Raises ``FarmUnavailable`` if this machine cannot emulate the disks that a farm describes."""
    result = support()
    ways = {choose(disk, result) for disk in embedded().spec(described).disks.values()}
    lacking = sorted(way for way in ways if isinstance(way, str))
    if lacking:
        raise FarmUnavailable(
            f"farm {described.name}: this machine lacks the means for disks of its own: "
            f"{'; '.join(lacking)}. Without them all farms would be the same; run it as root on Linux, "
            "or `pinchpoint demo`"
        )
