"""Damages stored files, one place at a time, and calls the commands that read them.

``python -m harness.store.damage 2000`` (in tests/) does so at random for hours; a test takes seconds.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import os
import random
import shutil
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from harness.analysis.build import Build, shared_farm
from harness.comparison.example import saved
from harness.probe.build import Disk, probe_of
from harness.report.example import saved_run

from pinchpoint import cli
from pinchpoint.analysis import analyse
from pinchpoint.base.errors import ExitStatus
from pinchpoint.probe.compare import compared
from pinchpoint.probe.judge import judge
from pinchpoint.probe.record import save
from pinchpoint.probe.verdict import probe_content
from pinchpoint.report.files import write_comparison as save_comparison
from pinchpoint.run.run_set import SET, RunSet, SetFolder
from pinchpoint.store.journal import MAGIC, JournalWriter, read_frames
from pinchpoint.store.read import StoredRun
from pinchpoint.store.schema import JOURNAL, MANIFEST, OPERATIONS, SAMPLES, VERDICT
from pinchpoint.store.write import write_json
from pinchpoint_collectors.record import Sample

Json = Any
VALUES: dict[str, str] = {
    "null": "null",
    "NaN": "NaN",
    "infinite": "-Infinity",
    "1e400": "1e400",
    "10**400": "1" + "0" * 400,
    "2**63": str(2**63),
    "negative": "-1",
    "zero": "0",
    "true": "true",
    "number": "1.5",
    "text": '"?"',
    "empty text": '""',
    "list": "[1]",
    "empty list": "[]",
    "object": '{"?": 1}',
    "empty object": "{}",
    "surrogate": '"\\ud800"',
    "deep": "[" * 100_000 + "]" * 100_000,
    "long ago": '"0001-01-01T00:00:00Z"',
    "running": '"running"',
    "naive": '"2026-01-01T00:00:30"',
}
"""Replacements for a value, as JSON."""
CELLS: tuple[Any, ...] = (None, float("nan"), float("inf"), -1, 0, 2**62, -(2**62), 1e300, "?", "")
"""Replacements for a table cell, where its column allows them."""
_MARK = "\x00damaged\x00"


def steps_run() -> StoredRun:
    """Return a load in steps with objectives, declared limits, a proof, an import and prices."""
    build = shared_farm(Build(40, seed=3), {"sql": {"log": "vda"}})
    build.manifest["farm"]["tiers"]["sql"]["hosts"]["sql1"]["disks"]["log"] |= {
        "limits": {"iops": 240.0},
        "resolved_limits": {"iops": 240.0, "bytes_per_s": 9e7, "latency_s": [[1, 0.001], [8, 0.03]]},
    }
    build.manifest["farm"]["prices"] = {"currency": "USD", "disks": {"sql.log": 10.0}, "machines": {}}
    build.disk("sql1", "vda", np.minimum(240.0, np.linspace(60, 300, build.seconds)), 0.004)
    for host in ("web1", "search1", "sql1", "nosql1"):
        build.cpu(host, 0.4, 0.1)
    build.steps("orders", "sql-mix", np.array([60.0, 120.0, 240.0, 300.0]), 10)
    build.operations("orders", "log_append", np.minimum(240.0, np.linspace(60, 300, build.seconds)), 0.004)
    build.objective(scenario="orders", p95_s=0.02).objective(scenario="orders", errors_ratio=0.01)
    build.generator(orders=(200.0, 199.0))
    build.event("fault", 20, sentence="a disk became slow", host="sql1")
    cell = {"workload": "RND4K write", "block_bytes": 4096, "read_ratio": 0.0, "outstanding": 32}
    found: dict[str, Any] = {
        "reads_per_s": 0.0,
        "writes_per_s": 200.0,
        "seconds": 5.0,
        "mean_s": 0.01,
        "max_s": 0.02,
    }
    found |= {"series": {"step_s": 1.0, "iops": [200.0], "latency_s": [0.01]}, "times_ns": [[10_000_000, 9]]}
    where = {
        "suite": "crystaldiskmark",
        "folder": "/srv",
        "host": "h",
        "disk": "sql.log",
        "size_bytes": 2**20,
    }
    probe = {
        "scenario": "orders",
        "name": "RND4K write",
        "cell": cell,
        "trial": 1,
        "started_s": 1.7e9,
        **where,
    }
    build.event("probed", 21, **probe, **found).event("probe_failed", 22, **probe, why="too fast")
    build.event("load_begun", 10, scenario="orders", at=at(10)).event("guard", 30, why="it was too slow")
    build.event("worker_lost", 30, worker="generator1", scenarios=["orders"])
    build.event("writes_read_back", 31, scenario="orders", acknowledged=9, records=9, missing=1, examples=[1])
    build.event(
        "replayed", 31, scenario="orders", captured=9, executed=8, differences={"x": 1}, failed={"y": 1}
    )
    build.manifest["warm_up"] = {"lasted_s": 10.0, "settled": ["orders"], "unsettled": []}
    build.manifest["endpoints"] = {"orders": {"sql": {"version": "18.0", "settings": {}, "warnings": ["w"]}}}
    build.manifest["data_quality"] = {
        "sql1": {
            "local": {
                "clock_offset_s": 0.01,
                "clock_error_s": 0.001,
                "gaps": [{"from": at(12), "to": at(14), "missed": 2, "why": "late", "filled": False}],
                "more_gaps": 1,
                "impossible": [
                    {
                        "metric": "cpu.busy_ratio",
                        "instance": "",
                        "count": 2,
                        "first": "9.0",
                        "allowed": "0 to 1.5",
                        "at": at(12),
                    }
                ],
            }
        }
    }
    build.manifest["imports"] = [
        {
            "file": "sar.txt",
            "kind": "sysstat",
            "bytes": 12,
            "sha256": "0" * 64,
            "from": at(0),
            "to": at(30),
            "samples": 12,
            "hosts": {"sql1": "db"},
            "zone_assumed": "UTC",
            "notes": ["n"],
        }
    ]
    suspect = {"kind": "disk_cap", "tier": "sql", "host": "sql1", "resource": "disk", "instance": "vda"}
    turns = ["as_is", "slower"] * 4
    build.manifest["proof"] = {
        "suspect": {**suspect, "role": "log"},
        "change": {"what": "the disk", "ratio": 0.8, "of": "its capacity"},
        "control": None,
        "windows": [
            {"what": turn, "from": at(12 + 4 * number), "to": at(16 + 4 * number)}
            for number, turn in enumerate(turns)
        ],
    }
    return build.run()


def at(second: int) -> str:
    return f"2026-01-01T00:00:{second:02}Z"


def kept(folder: Path) -> Path:
    """Store runs, a killed run, a set, a comparison and probes; return their folder."""
    for name, stored in (("shared", saved_run(20)), ("steps", steps_run())):
        directory = saved(stored, folder / "runs" / name)
        write_json(directory / VERDICT, analyse(stored).to_json())
    for night in range(3):
        directory = saved(saved_run(10), folder / "nights" / f"night{night}")
        shutil.copy(folder / "runs" / "shared" / VERDICT, directory / VERDICT)
    killed(folder / "runs" / "killed")
    probe, slow = probe_of(Disk(0.0005, 500, 60e6), repeat=2), probe_of(Disk(0.001), repeat=2)
    for name, one in (("one", probe), ("two", slow)):
        (folder / "probes" / name).mkdir(parents=True)
        save(folder / "probes" / name, probe_content(one, judge(one)))
    save_comparison(compared([folder / "probes/one"], [folder / "probes/two"]), folder / "found").rename(
        folder / "found" / "probes"
    )
    status, said = call(
        "compare", folder / "runs/shared", "--with", folder / "runs/steps", "--out", folder / "made"
    )
    assert status in (0, 3), said
    next((folder / "made").iterdir()).rename(folder / "found" / "runs")
    places = (SetFolder("a", "a", "/a.yaml"), SetFolder("b", "b", "/b.yaml"))
    made = RunSet(folder / "set", "p", 1, places, ("disks",), runs=[], started=at(0), state="finished")
    for place, run in zip(places, ("shared", "steps"), strict=True):
        shutil.copytree(folder / "runs" / run, folder / "set" / place.folder / "one")
        made.runs.append({"folder": place.folder, "round": 1, "run": "one", "status": 0})
    made.end(whole=True)
    return folder


def killed(directory: Path) -> Path:
    """Return a run whose controller was killed, so that only its journal exists."""
    saved(saved_run(5), directory)
    (directory / OPERATIONS).unlink()
    (directory / SAMPLES).unlink()
    manifest = json.loads((directory / MANIFEST).read_text())
    manifest["state"] = "running"
    manifest["ended"] = manifest["phases"][-1]["to"] = None
    (directory / MANIFEST).write_text(json.dumps(manifest))
    (directory / JOURNAL).mkdir()
    first = 1_767_225_600
    with JournalWriter(directory / JOURNAL, "controller", segment_s=5) as writer:
        for second in range(first, first + 15):
            stamp = second * 10**9
            writer.write_samples([Sample(stamp, 1.0, "sql1", "cpu.busy_ratio", "", 0.5, None)])
            row = [second, 1.0, "generator1", "orders", "log_append", "ok", 5, 100, None, None, 0]
            writer.write_operations([row], stamp)
    return directory


def call(*arguments: str | Path) -> tuple[int, str]:
    """Return (exit status, output) of one command in this process."""
    said = io.StringIO()
    given, sys.argv = sys.argv, ["pinchpoint", *map(str, arguments)]
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            return cli._status(), said.getvalue()
    finally:
        sys.argv = given


def commands(folder: Path, file: Path) -> list[tuple[str | Path, ...]]:
    """Return the commands that read the file."""
    here = file.parent.parent if file.parent.name == JOURNAL else file.parent
    place = here.relative_to(folder).as_posix()
    out = folder / "out"
    if place.startswith("probes"):
        other = folder / "probes" / ("two" if here.name == "one" else "one")
        return [
            ("report", here, "--format", "html,md,json", "--out", out),
            ("compare", here, "--with", other, "--out", out),
            ("compare", other, "--with", here, "--out", out),
            ("what-if", folder / "runs/shared", "--set", f"sql.log={here}"),
        ]
    if place.startswith("found"):
        return [("report", here, "--format", "html,md,json", "--out", out)]
    if place.startswith("set"):
        return [("compare", folder / "set", "--out", out), ("runs", folder)]
    if place.startswith("nights"):
        return [
            ("runs", folder / "nights", "--trend", "synthetic", "--out", out),
            ("runs", folder / "nights", "--trend", "synthetic", "--json"),
        ]
    other = folder / "runs" / ("steps" if here.name == "shared" else "shared")
    return [
        ("report", here, "--format", "html,md,json", "--out", out),
        ("report", here, "--format", "md", "--out", out),
        ("analyse", here, "--explain"),
        ("analyse", here, "--json"),
        ("what-if", here),
        ("what-if", here, "--set", "search.cpu=4", "--set", "sql.log=azure/p30"),
        ("compare", here, "--with", other, "--out", out),
        ("compare", other, "--with", here, "--out", out),
        ("runs", folder / "runs"),
        ("runs", folder / "runs", "--trend", "synthetic"),
        ("what-if", here, "--set", f"sql.log={folder / 'probes/one'}"),
        ("init", out / "new", "--from", here),
    ]


def leaves(content: Json, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield every place in a document: leaves and their containers."""
    if path:
        yield path
    if isinstance(content, dict):
        for key, value in content.items():
            yield from leaves(value, (*path, key))
    elif isinstance(content, list):
        for number, value in enumerate(content):
            yield from leaves(value, (*path, number))


def broken(content: Json, chance: random.Random) -> tuple[str, str]:
    """Return (document with one damaged place as text, description of the damage)."""
    content = copy.deepcopy(content)
    # A table of a hundred rows counts as one place of a hundred.
    kinds: dict[tuple[str, ...], list[tuple[str | int, ...]]] = {}
    for path in leaves(content):
        kinds.setdefault(tuple("#" if isinstance(key, int) else key for key in path), []).append(path)
    *above, last = chance.choice(chance.choice(list(kinds.values())))
    place = content
    for key in above:
        place = place[key]
    name = ".".join(map(str, (*above, last)))
    how = chance.choice([*VALUES, "removed", "twice"])
    if how == "removed":
        del place[last]
        return json.dumps(content), f"{name} removed"
    if how == "twice":
        if isinstance(place, dict):
            value = chance.choice([place[last], None, 5, "?"])
            place[_MARK] = value
            return json.dumps(content).replace(json.dumps(_MARK), json.dumps(last)), f"{name} twice"
        place.insert(int(last), place[last])
        return json.dumps(content), f"{name} repeated"
    place[last] = _MARK
    return json.dumps(content).replace(json.dumps(_MARK), VALUES[how]), f"{name}: {how}"


def damage(file: Path, chance: random.Random) -> str:
    """Damage one file in one place; return what was damaged."""
    whole = file.read_bytes()
    how = chance.random()
    if how < 0.15:
        return damaged_whole(file, whole, chance)
    if file.suffix == ".parquet":
        return damaged_table(file, chance)
    if file.suffix == ".jsonl":
        lines = whole.decode().splitlines()
        number = chance.randrange(len(lines))
        lines[number], what = broken(json.loads(lines[number]), chance)
        file.write_text("".join(f"{line}\n" for line in lines))
        return f"line {number + 1}: {what}"
    if file.suffix == ".ppj":
        return damaged_frame(file, chance)
    text, what = broken(json.loads(whole), chance)
    file.write_text(text)
    return what


def damaged_whole(file: Path, whole: bytes, chance: random.Random) -> str:
    """Damage the file as a whole; return how."""
    what = chance.choice(
        ["removed", "folder", "empty", "cut", "not UTF-8", "flipped", "[]", "null", "deep", "0x00"]
    )
    file.unlink()
    if what == "folder":
        file.mkdir()
    elif what != "removed":
        at = chance.randrange(len(whole))
        flipped = whole[:at] + bytes([whole[at] ^ (1 << chance.randrange(8))]) + whole[at + 1 :]
        file.write_bytes(
            {
                "empty": b"",
                "cut": whole[:at],
                "not UTF-8": whole[:at] + b"\xff" + whole[at:],
                "flipped": flipped,
                "[]": b"[]",
                "null": b"null",
                "deep": VALUES["deep"].encode(),
                "0x00": bytes(len(whole)),
            }[what]
        )
    return what


def damaged_table(file: Path, chance: random.Random) -> str:
    """Damage a cell, a column, or a column's name or type; return what was damaged."""
    table = pq.read_table(file)
    number = chance.randrange(table.num_columns)
    field = table.schema.field(number)
    how = chance.choice(["cell", "cell", "column", "removed", "renamed", "type", "repeated"])
    if how == "removed":
        table = table.remove_column(number)
    elif how == "renamed":
        table = table.rename_columns(
            [f"{name}?" if name == field.name else name for name in table.column_names]
        )
    elif how == "type":
        kind = pa.string() if field.type != pa.string() else pa.binary()
        table = table.set_column(number, field.name, table[number].cast(kind))
    elif how == "repeated":
        table = table.append_column(field, table[number])
    else:
        cells = table[number].to_pylist()
        fit = [value for value in CELLS if fits(value, field.type)]
        value = chance.choice(fit)
        if how == "cell":
            cells[chance.randrange(len(cells))] = value
        else:
            cells = [value] * len(cells)
        table = table.set_column(number, field, pa.array(cells, field.type))
        how = f"{how} {value!r}"
    pq.write_table(table, file)
    return f"{field.name}: {how}"


def fits(value: Any, kind: pa.DataType) -> bool:
    try:
        pa.array([value], kind)
    except (pa.ArrowException, TypeError, OverflowError):
        return False
    return True


def damaged_frame(file: Path, chance: random.Random) -> str:
    """Write a frame with a valid checksum and invalid content; return how it was changed."""
    frames = list(read_frames(file))
    number = chance.randrange(len(frames))
    frame = copy.deepcopy(frames[number])
    place: Any = frame
    at: list[int] = []
    while True:
        key = chance.randrange(len(place))
        at.append(key)
        if not isinstance(place[key], list) or not place[key] or chance.random() < 0.3:
            break
        place = place[key]
    value: Any = chance.choice(
        [None, float("nan"), float("inf"), -1, 2**63, 1e300, "?", "", [], [1], {}, True, b"?"]
    )
    place[key] = value
    frames[number] = frame
    file.unlink()
    stem, _, digits = file.stem.rpartition("-")
    with JournalWriter(file.parent, stem) as writer:
        writer._number = int(digits) - 1
        writer._open_for(1)
        for each in frames:
            writer._append(each)
    assert file.read_bytes().startswith(MAGIC)
    return f"frame {number} {at}: {value!r}"


def files(folder: Path) -> list[Path]:
    """Return all files that may be damaged."""
    names = ("*.json", "*.jsonl", "*.parquet", "*.ppj")
    found = sorted(path for name in names for path in folder.rglob(name))
    return [path for path in found if path.relative_to(folder).parts[0] != "set" or path.name == SET]


def walk(
    whole: Path, count: int, chance: random.Random, calls: int, of: Sequence[str] = ()
) -> Iterator[tuple[Path, str, tuple[str | Path, ...], int, str]]:
    """Yield damage after damage: file, damage, command, exit status, output."""
    candidates = [path.relative_to(whole) for path in files(whole)]
    candidates = [path for path in candidates if not of or any(word in str(path) for word in of)]
    for _ in range(count):
        relative = chance.choice(candidates)
        with tempfile.TemporaryDirectory() as made:
            damaged, used = Path(made) / "damaged", Path(made) / "kept"
            shutil.copytree(whole, damaged)
            done = damage(damaged / relative, chance)
            asked = commands(used, used / relative)
            for command in chance.sample(asked, min(len(asked), calls)):
                shutil.rmtree(used, ignore_errors=True)
                shutil.copytree(damaged, used)  # a command may repair or extend what it reads
                yield relative, done, command, *call(*command)


def fault(relative: Path, status: int, said: str) -> str | None:
    """Return the error in a command's answer to a damaged file; None: no error."""
    if status not in {int(known) for known in ExitStatus} - {ExitStatus.INTERNAL} or "Traceback" in said:
        return "internal error"
    # The file's folder is enough; for a setting that the run lacks, the setting is named.
    named = str(Path(*relative.parts[:2])) in said or said.startswith("--set")
    if status == ExitStatus.BAD_INPUT and not named:
        return "names no file"
    return None


def main() -> None:
    """Damage at random, and print internal errors, each code place at most three times."""
    count, seed, *of = sys.argv[1:]
    warnings.simplefilter("error")
    os.environ["PINCHPOINT_DEBUG"] = "1"
    seen: Counter[str] = Counter()
    tried = 0
    with tempfile.TemporaryDirectory() as made:
        whole = kept(Path(made) / "whole")
        for relative, what, command, status, said in walk(whole, int(count), random.Random(seed), 4, of):
            tried += 1
            why = fault(relative, status, said)
            if why is None:
                continue
            frames = [line.strip() for line in said.splitlines() if line.strip().startswith("File ")]
            key = frames[-1] if frames else said[-100:]
            seen[key] += 1
            if seen[key] <= 3:
                where = [frame for frame in frames if "pinchpoint" in frame][-3:]
                words = said.splitlines()[-1][:300]
                print(why, f"{relative} | {what} | {command[0]}", *where, words, sep="\n    ", flush=True)
    print(f"{tried} commands, {seen.total()} wrong in {len(seen)} places")


if __name__ == "__main__":
    main()
