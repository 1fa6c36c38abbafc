"""The kinds of fuzzed input: for each, a strategy and the function that processes the input.

The function returns True if the input was accepted, and raises only errors that a parser's callers expect. A
command's exit status is 0 to 5, and the command prints no traceback.
"""

from __future__ import annotations

import io
import json
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any, cast

import msgpack
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from collectors.imports.blg_file import DATA, event, parted, trace
from collectors.imports.test_blg import CATALOGUE as BLG_CATALOGUE
from collectors.imports.test_blg import READINGS as BLG_READINGS
from fuzz.damage import changed_value, damaged, damaged_json, split
from golden.doors import DOORS
from harness.plan.samples import REAL_FARM, WHOLE_PLAN
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from scenarios.storage_probe.result_files import ALL as RESULTS
from support import run_cli
from valkey import exceptions

from pinchpoint.base.errors import InputError, PinchpointError
from pinchpoint.cli import templates
from pinchpoint.loadgen.messages import BadMessage, Receiver, Sender, check_second
from pinchpoint.plan import load
from pinchpoint.store import histogram, journal
from pinchpoint_collectors.agent.codec import Decoder
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.exporters import query
from pinchpoint_collectors.record import Sample
from pinchpoint_scenarios.errors import ScenarioError
from pinchpoint_scenarios.fastpath import cql
from pinchpoint_scenarios.fastpath.drivers import MORE, EndedError
from pinchpoint_scenarios.fastpath.drivers.cql import CqlDriver
from pinchpoint_scenarios.fastpath.drivers.http import HttpDriver, HttpError
from pinchpoint_scenarios.fastpath.drivers.resp import RespDriver
from pinchpoint_scenarios.full_crawl.failures import Failure
from pinchpoint_scenarios.full_crawl.http import UnpackError, unpacked
from pinchpoint_scenarios.full_crawl.sharepoint_client import page
from pinchpoint_scenarios.full_crawl.sources import web
from pinchpoint_scenarios.full_crawl.sources.web import Page, canonical
from pinchpoint_scenarios.sql_script.params import SqlScriptParams, read_scripts, read_text
from pinchpoint_scenarios.sql_script.scope import Chance, EvaluationError, ScriptScope
from pinchpoint_scenarios.sql_script.script import Set, flat
from pinchpoint_scenarios.storage_probe import SUITES, TOOLS, ProbePlace, ToolFailed
from pinchpoint_scenarios.storage_probe.tool import answer

TESTS = Path(__file__).parents[1]
KEPT = TESTS / "golden_runs"
ROOT = TESTS.parent
Perform = Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of fuzzed input.

    Attributes:
        name: name of the kind.
        inputs: strategy that draws an input.
        perform: function that processes the input as the product does; returns True if it was accepted.
        weight: number of inputs per round, relative to a kind with weight 1.
    """

    name: str
    inputs: SearchStrategy[Any]
    perform: Perform
    weight: int = 1


def command(*arguments: str | Path) -> bool:
    """Run one command; return True if it accepted its input."""
    done = run_cli(*arguments, env={"PINCHPOINT_DEBUG": "1"})
    assert done.returncode in (0, 1, 2, 3, 5), done.stderr[-6000:]
    assert "Traceback" not in done.stderr + done.stdout, done.stderr[-6000:]
    assert done.returncode != 2 or done.stderr.strip(), "refused without a word"
    for text in (done.stderr, done.stdout):
        assert "\x1b" not in text, "a terminal would obey it"
    return done.returncode != 2


@contextmanager
def workplace() -> Iterator[None]:
    """Provide a folder for the inputs of this process."""
    with tempfile.TemporaryDirectory(prefix="pinchpoint-fuzz-") as folder:
        _PLACE.append(Path(folder))
        yield
        _PLACE.clear()
        for made in (_whole, _comparison, _journal):
            made.cache_clear()


_PLACE: list[Path] = []


def _place() -> Path:
    return _PLACE[0]


def _refused(*said: str, begin: str | None = None) -> bool:
    """Assert that an error has text; with ``begin``, each text is one printable line. Returns False."""
    assert said, "an error without a problem"
    for one in said:
        assert one.strip(), "refused without a word"
        assert begin is None or (one.startswith(begin) and one.isprintable()), one
    return False


def _empty() -> Path:
    folder = _place() / "now"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def _recorded(door: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (KEPT / "inputs" / f"{door}.jsonl").read_text().splitlines()]


# ---- both YAML files, and those that options name


def _files(of: str, *more: str) -> list[bytes]:
    found = sorted(ROOT.glob("tests/ground_truth/cases/*/" + of))[::8]
    return [*(text.encode() for text in more), *(path.read_bytes() for path in found)]


@st.composite
def _farm_and_plan(draw: DrawFn) -> tuple[bytes, bytes]:
    made = [file for name in templates.names() for file in templates.files(name).items()]
    farms = _files("farm.yaml", REAL_FARM, *(text for name, text in made if name != "plan.yaml"))
    plans = _files("plan.yaml", WHOLE_PLAN, *(text for name, text in made if name == "plan.yaml"))
    both = draw(st.integers(0, 3))
    farm = draw(damaged(farms)) if both != 0 else draw(st.sampled_from(farms))
    return farm, draw(damaged(plans)) if both != 1 else draw(st.sampled_from(plans))


def _loaded(files: tuple[bytes, bytes]) -> bool:
    folder = _empty()
    for name, content in zip(("farm.yaml", "plan.yaml"), files, strict=True):
        (folder / name).write_bytes(content)
    try:
        load(folder / "farm.yaml", folder / "plan.yaml")
    except InputError as error:
        return _refused(*error.problems, begin=str(folder))
    return True


_MAPPING = b"""\
time: {column: t, format: "%Y-%m-%d %H:%M:%S"}
interval: 10s
delimiter: ";"
decimal: ","
columns:
  "cpu %": {metric: cpu.busy_ratio, scale: 0.01}
  wlat: {metric: disk.write_latency_s, instance: sda, scale: 0.001, weight: wps}
host: sql1
"""
_TABLE = b"t;cpu %;wlat;wps\n2026-01-01 00:00:10;17,5;3,1;200\n2026-01-01 00:00:20;27,5;3,3;210\n"
_NAMES = b"1\n1847\n2\nSystem\n4\nSpeicher\n6\n% Prozessorzeit\n234\nPhysikalischer Datentr\xc3\xa4ger\n"


def _with_mapping(content: bytes) -> bool:
    folder = _empty()
    (folder / "mapping.yaml").write_bytes(content)
    (folder / "table.csv").write_bytes(_TABLE)
    return command("import", folder / "table.csv", "--map", folder / "mapping.yaml", "--out", folder / "out")


def _with_names(content: bytes) -> bool:
    folder = _empty()
    (folder / "names.txt").write_bytes(content)
    shutil.copy(KEPT / "imports/perfmon.csv", folder / "p.csv")
    return command("import", folder / "p.csv", "--names", folder / "names.txt", "--out", folder / "out")


def _published(content: bytes) -> bool:
    folder = _empty()
    (folder / "report.yaml").write_bytes(content)
    return command("analyse", folder / "report.yaml")


# ---- what other tools recorded


@st.composite
def _import(draw: DrawFn, kind: str) -> tuple[bytes, list[str]]:
    recorded = _recorded(f"imports.{kind}")
    given = draw(st.sampled_from(recorded))
    texts = [one["text"].encode("utf-8", "surrogatepass") for one in recorded if one["text"]]
    whole = [path.read_bytes() for path in (KEPT / "imports").glob(f"{kind}*")]
    content = draw(damaged([given["text"].encode("utf-8", "surrogatepass"), *whole, *texts[:20]]))
    options = ["--kind", kind] if draw(st.integers(0, 4)) else []
    if given.get("zone"):
        options += ["--zone", given["zone"]]
    if draw(st.booleans()):
        options += ["--start", "2026-01-01T00:00", "--every", "1s"]
    return content, [*options, "--host", "sql1"] if draw(st.integers(0, 3)) else options


def _imported(given: tuple[bytes, list[str]]) -> bool:
    content, options = given
    folder = _empty()
    (folder / "recorded").write_bytes(content)
    return command("import", folder / "recorded", *options, "--out", folder / "out")


def _blg() -> list[bytes]:
    """Return binary logs as Windows writes them: each reading whole, and each in parts."""
    whole = [event(DATA, body, 15 * second) for second, body in enumerate(BLG_READINGS)]
    parts = [
        piece for second, body in enumerate(BLG_READINGS) for piece in parted(DATA, body, 15 * second, 2)
    ]
    return [trace([BLG_CATALOGUE, *whole]), trace([BLG_CATALOGUE, *parts], pointers=4)]


def _imported_blg(content: bytes) -> bool:
    folder = _empty()
    (folder / "log.blg").write_bytes(content)
    return command("import", folder / "log.blg", "--out", folder / "out")


def _imported_result(content: bytes) -> bool:
    """Import the output of a storage tool as a probe."""
    folder = _empty()
    (folder / "result.txt").write_bytes(content)
    return command("import", folder / "result.txt", "--disk", "sql1:D:=sql.data", "--out", folder / "out")


def _csv(content: bytes) -> bool:
    folder = _empty()
    (folder / "mapping.yaml").write_bytes(_MAPPING)
    (folder / "table.csv").write_bytes(content)
    return command("import", folder / "table.csv", "--map", folder / "mapping.yaml", "--out", folder / "out")


# ---- files of a door: replay logs, exports of a production server


@st.composite
def _door_files(draw: DrawFn, door: str) -> dict[str, Any]:
    given: dict[str, Any] = draw(st.sampled_from([one for one in _recorded(door) if one["files"]]))
    given.pop("case", None)
    files = {name: text.encode("utf-8", "surrogateescape") for name, text in given["files"].items()}
    name = draw(st.sampled_from(sorted(files)))
    files[name] = draw(damaged([files[name]]))
    return given | {"files": {key: raw.decode("utf-8", "surrogateescape") for key, raw in files.items()}}


def _opened(door: str, expected: tuple[type[Exception], ...], given: Mapping[str, Any]) -> bool:
    try:
        DOORS[door](**given)
    except expected as error:
        return _refused(str(error))
    return True


_SCRIPTS = (
    b"\\set aid random(1, 100000 * :scale)\n\\set d random(-5000, 5000)\nBEGIN;\n"
    b"UPDATE a SET b = b + :d WHERE aid = :aid;\nSELECT b FROM a WHERE aid = :aid \\gset x_\n"
    b"\\if :aid > 5 and not (:d = 0)\nINSERT INTO h VALUES (':aid', $x$;$x$, E'\\';');\n\\elif :d is null\n"
    b"\\sleep 10 ms\n\\else\nSELECT 1\\; SELECT 2;\n\\endif\nEND;\n",
    b"\\set n case when :client_id % 2 = 0 then 1 << 3 else ~5 # 3 end\n\\set m greatest(1, :n, 2.5) / 3\n"
    b"\\set g random_gaussian(1, 100, 2.5)\n\\set z random_zipfian(1, 10, 1.5)\n\\set p permute(5, 10, 3)\n"
    b"\\set h hash(:n, 7)\n\\set q pow(2, 0.5) + sqrt(4) - abs(-1) * exp(1) / ln(2) % 3\n"
    b"-- comment; /* none */\nSELECT /* a; /* b; */ c; */ :n::int, x[1:2];\n",
    b"SELECT 1 \\startpipeline\n\\shell ls\n\\setshell x echo 1\n",
)


def _script(content: bytes) -> bool:
    """Read a script and evaluate its expressions, as a session does."""
    folder = _empty()
    file = folder / "own.sql"
    file.write_bytes(content)
    try:
        read_text(file, ("mssql", "mysql", "postgresql"))
        [chosen] = read_scripts(SqlScriptParams(scripts=(str(file),)))
    except ScenarioError as error:
        return _refused(str(error))
    scope = ScriptScope(Chance(Random(1)), {"client_id": 0, "scale": 1, "random_seed": 1, "default_seed": 1})
    for one in list(flat(chosen.script.commands))[:200]:
        if isinstance(one, Set):
            try:
                scope.variables[one.name] = one.expression(scope)
            except EvaluationError as error:
                _refused(str(error))
    return True


# ---- run directories and what lies beside them

_RUNS = ("thread-sql-scan", "lock-one-row", "nosql-floor-30ms", "healthy-crawl-thinking")


@cache
def _whole(name: str) -> Path:
    """Write a kept run with its verdict and report data, and its archive next to it; return the run."""
    run = _place() / "whole" / name
    shutil.copytree(KEPT / "real" / name, run)
    assert command("analyse", run)
    assert command("pack", run, "--out", _place() / "whole")
    return run


_OF_RUN = ("manifest.json", "events.jsonl", "verdict.json", "operations.parquet", "samples.parquet")
_READERS: tuple[tuple[str, ...], ...] = (
    ("analyse", "RUN"),
    ("analyse", "RUN", "--json"),
    ("analyse", "RUN", "--explain"),
    ("report", "RUN", "--format", "json,md,html,junit", "--out", "OUT"),
    ("report", "RUN", "--format", "xlsx", "--redact", "--out", "OUT"),
    ("compare", "RUN", "--with", "OTHER", "--out", "OUT"),
    ("compare", "OTHER", "--with", "RUN", "--json", "--out", "OUT"),
    ("compare", "OTHER", "RUN", "THIRD", "--out", "OUT"),
    ("what-if", "RUN"),
    ("runs", "PARENT"),
    ("pack", "RUN", "--out", "OUT"),
)


def _without(draw: DrawFn, found: pa.Table, at: int) -> pa.Table:
    return found.remove_column(at) if found.num_columns > 1 else found


def _texts(draw: DrawFn, found: pa.Table, at: int) -> pa.Table:
    return found.set_column(at, found.schema.names[at], pa.array(["x"] * found.num_rows))


def _nulls(draw: DrawFn, found: pa.Table, at: int) -> pa.Table:
    return found.set_column(at, found.schema.names[at], pa.nulls(found.num_rows, found.schema.field(at).type))


def _rows(draw: DrawFn, found: pa.Table, at: int) -> pa.Table:
    """Return a few rows in any order and repeated, no rows, or all rows twice."""
    if not found.num_rows or draw(st.booleans()):
        return pa.concat_tables([found, found]) if draw(st.booleans()) else found.slice(0, 0)
    return found.take(pa.array(draw(st.lists(st.integers(0, found.num_rows - 1), max_size=30)), pa.int64()))


def _odd_cells(draw: DrawFn, found: pa.Table, at: int) -> pa.Table:
    values = found.column(at).to_pylist()
    if not values:
        return found
    kind = found.schema.field(at).type
    odd = draw(st.sampled_from(_ODD_CELLS[_sort(kind)]))
    for row in draw(st.lists(st.integers(0, len(values) - 1), min_size=1, max_size=3)):
        values[row] = odd
    if draw(st.integers(0, 3)) == 0:
        values = [odd] * len(values)
    return found.set_column(at, found.schema.names[at], pa.array(values, kind))


@st.composite
def _table(draw: DrawFn, path: Path) -> bytes:
    """Return a Parquet file with changed columns or unusual values."""
    found = pq.read_table(path)
    changes = (_odd_cells, _odd_cells, _odd_cells, _without, _texts, _nulls, _rows)
    for _ in range(draw(st.integers(1, 2))):
        at = draw(st.integers(0, found.num_columns - 1))
        found = draw(st.sampled_from(changes))(draw, found, at)
    out = io.BytesIO()
    pq.write_table(found, out)
    return out.getvalue()


_ODD_CELLS: Mapping[str, Sequence[Any]] = {
    "int": (None, 0, -1, 1, 2**31 - 1, -(2**31)),
    "float": (None, 0.0, -1.0, 1e308, -1e308, 1e-320, float("nan"), float("inf"), -float("inf")),
    "other": (None, "", "\x1b[2J", "x" * 5000, "tier:", "sql", "../..", "é\u202e", "HISTFAAAA", "AAAA"),
}


def _sort(kind: pa.DataType) -> str:
    return "int" if pa.types.is_integer(kind) else "float" if pa.types.is_floating(kind) else "other"


@st.composite
def _damaged_run(draw: DrawFn) -> tuple[str, str, bytes | None, tuple[str, ...]]:
    run = draw(st.sampled_from(_RUNS))
    file = draw(st.sampled_from(_OF_RUN))
    path = _whole(run) / file
    content = None
    if draw(st.integers(0, 30)):
        whole = [path.read_bytes()]
        if not file.endswith(".parquet"):
            content = draw(damaged_json(whole))
        else:
            content = draw(_table(path) if draw(st.integers(0, 3)) else damaged(whole))
    return run, file, content, draw(st.sampled_from(_READERS))


def _read_run(given: tuple[str, str, bytes | None, tuple[str, ...]]) -> bool:
    run, file, content, arguments = given
    whole = _whole(run)
    folder = _empty() / "runs"
    shutil.copytree(whole, folder / run)
    if content is None:
        (folder / run / file).unlink()
    else:
        (folder / run / file).write_bytes(content)
    named = {
        "RUN": folder / run,
        "OTHER": _whole(_RUNS[0]),
        "THIRD": _whole(_RUNS[1]),
        "PARENT": folder,
        "OUT": folder.parent / "out",
    }
    return command(*(named.get(each, each) for each in arguments))


@st.composite
def _damaged_archive(draw: DrawFn) -> bytes:
    """Return an archive of a run with damage to its bytes or to one member."""
    file = _whole(_RUNS[0]).parent / f"{_RUNS[0]}.pinchpoint.zip"
    [file] = [path for path in file.parent.iterdir() if path.is_file() and path.name.startswith(_RUNS[0])]
    if draw(st.booleans()):
        return draw(damaged([file.read_bytes()]))
    out = io.BytesIO()
    with (
        zipfile.ZipFile(file) as source,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
    ):
        names = source.namelist()
        wrong = draw(st.sampled_from(names))
        for name in names:
            content = source.read(name)
            if name == wrong:
                content = draw(damaged_json([content]) if name.endswith("json") else damaged([content]))
                if draw(st.integers(0, 9)) == 0:
                    content = bytes(200 * 2**20)
                name = draw(st.sampled_from((name, name, name, "../" + name, "/" + name, name + "\0", "x")))  # noqa: PLW2901
            archive.writestr(name, content)
    return out.getvalue()


def _unpacked(content: bytes) -> bool:
    folder = _empty()
    (folder / "a.zip").write_bytes(content)
    accepted = command("unpack", folder / "a.zip", "--out", folder / "out")
    assert {path.name for path in folder.iterdir()} <= {"a.zip", "out"}
    return accepted


_SET = {
    "schema": "pinchpoint.set/1",
    "plan": "orders",
    "repeat": 1,
    "places": [
        {"folder": "dev", "farm": "dev", "identity": "/dev.yaml", "again": False},
        {"folder": "prod", "farm": "prod", "identity": "/prod.yaml", "again": False},
    ],
    "factors": [],
    "metrics": [],
    "started": "2026-11-20T09:00:00.000000Z",
    "ended": "2026-11-20T09:10:00.000000Z",
    "state": "finished",
    "runs": [
        {"folder": "dev", "round": 1, "run": _RUNS[0], "status": 0},
        {"folder": "prod", "round": 1, "run": _RUNS[1], "status": 0},
    ],
}


def _read_set(given: tuple[bytes, str]) -> bool:
    content, reader = given
    folder = _empty() / "set"
    for side, run in (("dev", _RUNS[0]), ("prod", _RUNS[1])):
        shutil.copytree(_whole(run), folder / side / run)
    (folder / "set.json").write_bytes(content)
    if reader == "runs":
        return command("runs", folder.parent)
    return command("report", folder, "--format", "json,md,html", "--out", folder.parent / "out")


@cache
def _comparison() -> bytes:
    out = _place() / "compared"
    assert command("compare", _whole(_RUNS[0]), "--with", _whole(_RUNS[1]), "--out", out)
    [found] = out.rglob("comparison.json")
    return found.read_bytes()


def _read_document(name: str, content: bytes) -> bool:
    folder = _empty()
    (folder / "d").mkdir()
    (folder / "d" / name).write_bytes(content)
    return command("report", folder / "d", "--format", "json,md,html", "--out", folder / "out")


def _probes() -> list[bytes]:
    return [path.read_bytes() for path in sorted((KEPT / "probes").glob("*/probe.json"))]


@cache
def _journal() -> bytes:
    """Return a journal segment as a generator and a collector write it."""
    folder = _place() / "journal"
    folder.mkdir()
    rows = pq.read_table(KEPT / "real" / _RUNS[0] / "operations.parquet").slice(0, 60).to_pylist()
    samples = pq.read_table(KEPT / "real" / _RUNS[0] / "samples.parquet").slice(0, 200).to_pylist()
    names = ("time_ns", "interval_s", "host", "metric", "instance", "value", "weight")
    with journal.JournalWriter(folder, "g0") as writer:
        writer.write_operations([list(row.values()) for row in rows], 1)
        writer.write_samples([Sample(*(row[name] for name in names)) for row in samples])
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir())[:1])


@st.composite
def _damaged_journal(draw: DrawFn) -> bytes:
    """Return a journal with damaged bytes, or with a changed frame and its correct checksum."""
    if draw(st.booleans()):
        return draw(damaged([_journal()]))
    file = _place() / "frames"
    file.write_bytes(_journal())
    frames = list(journal.read_frames(file))
    at = draw(st.integers(0, len(frames) - 1))
    with suppress(OverflowError):  # a number that is too large for a frame
        packed = [msgpack.packb(frame) for frame in frames]
        packed[at] = msgpack.packb(draw(changed_value(frames[at])))
        framed = (journal._HEADER.pack(len(one), zlib.crc32(one)) + one for one in packed)
        return journal.MAGIC + b"".join(framed)
    return _journal()


def _recovered(content: bytes) -> bool:
    folder = _empty() / _RUNS[0]
    shutil.copytree(KEPT / "real" / _RUNS[0], folder)
    for name in ("operations.parquet", "samples.parquet"):
        (folder / name).unlink()
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"state": "running"}))
    (folder / "journal").mkdir()
    (folder / "journal" / f"g0-000001{journal.SUFFIX}").write_bytes(content)
    return command("analyse", folder)


# ---- what peers send

_ANSWERS = (
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: text/html\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n\0\1",
    b"HTTP/1.0 200 OK\r\n\r\nto the end",
    b"HTTP/1.1 204 No Content\r\nRetry-After: 5\r\n\r\n",
)


@st.composite
def _pieces(draw: DrawFn, samples: Sequence[bytes]) -> list[bytes]:
    return draw(split(draw(damaged(samples))))


def _http(pieces: Sequence[bytes]) -> bool:
    driver = HttpDriver(2**20)
    try:
        for piece in [*filter(None, pieces), b""]:
            answer = driver.receive(piece)
            if answer is not MORE:
                for name, _ in answer.headers:
                    answer.header(name.lower())
    except HttpError:
        return False
    return True


_REPLIES = (
    b"+OK\r\n",
    b"$5\r\nhello\r\n",
    b"*2\r\n$1\r\na\r\n:5\r\n",
    b"-ERR no\r\n",
    b"%1\r\n+a\r\n#t\r\n",
    b"*-1\r\n$-1\r\n_\r\n,1.5\r\n(99\r\n",
    b"*1000000000\r\n",
)


def _resp(pieces: Sequence[bytes]) -> bool:
    driver = RespDriver()
    try:
        return any(driver.receive(piece) is not MORE for piece in [*filter(None, pieces), b""])
    except (exceptions.ValkeyError, EndedError):
        return False


def _cql_frame(opcode: int, body: bytes, flags: int = 0) -> bytes:
    return struct.pack(">BBhBi", 0x84, flags, 0, opcode, len(body)) + body


_ROWS_BODY = b"\0\0\0\2" + b"\0\0\0\4" + b"\0\0\0\2" + b"\0\0\0\2" + b"\0\0\0\1a\xff\xff\xff\xff" * 2
_FRAMES = (
    _cql_frame(8, _ROWS_BODY),
    _cql_frame(8, b"\0\0\0\1"),
    _cql_frame(8, b"\0\2\0\3abc\0\1x" + _ROWS_BODY, 0x08),
    _cql_frame(8, bytes(16) + _ROWS_BODY, 0x02),
    _cql_frame(0, b"\0\0\x22\0\0\5hello"),
)


class _Said:
    """A channel whose server sends these pieces and then nothing."""

    def __init__(self, pieces: Sequence[bytes], driver: CqlDriver) -> None:
        self._pieces = [*filter(None, pieces), b""]
        self._driver = driver

    def send(self, message: bytes) -> None:
        """Accept any request."""

    def __call__(self) -> Any:
        while (found := self._driver.receive(self._pieces.pop(0))) is MORE:
            continue
        return found


def _cql(pieces: Sequence[bytes]) -> bool:
    from pinchpoint_scenarios.nosql_burst.stores.cassandra import FAILURES  # noqa: PLC0415 -- loads its driver

    connection = cql.CqlWire(cast("Any", None), 1, 1, prepared=False)
    connection._channel = cast("Any", _Said(pieces, connection._driver))
    try:
        connection.execute("SELECT 1", (), 1, None)
    except FAILURES:
        return False
    return True


def _messages() -> list[bytes]:
    counts = histogram.encoded(histogram.counted(np.array([5_000_000, 6_000_000])))
    rows = [[1_800_000_000, 1.0, "w", "burst", "write", "ok", 4, 10, counts, None, 0]]
    samples = [[1_800_000_000 * 10**9, 1.0, "w", "generator.cpu_ratio", "burst", 0.5, None]]
    sender = Sender()
    return [
        sender.encoded(each)
        for each in (
            {"type": "hello", "host": "h1", "cores": [0, 1], "version": "1.0"},
            {"type": "second", "rows": rows, "samples": samples, "progress": {}},
            {"type": "event", "event": "logged", "scenario": "burst", "message": "x"},
            {"type": "pong", "sent_ns": 1, "utc_ns": 2},
            {"type": "working", "scenario": "burst", "working": True},
            {"type": "failed", "kind": "environment", "why": "x"},
            {"ping": 1},
            {"tick": 1},
            {"begin": ["burst"]},
        )
    ]


def _message(content: bytes) -> bool:
    accepted = False
    for receiver in (Receiver.of_worker(), Receiver.of_controller()):
        try:
            message = receiver.taken(content)
            if getattr(message, "rows", None) is not None:
                check_second(message, "w", ("burst",), 1_800_000_000, 1_800_000_100)
        except BadMessage as error:
            _refused(str(error), begin="")
        else:
            accepted = True
    return accepted


_RING = (
    b'{"at":1800000000000000000,"rows":[[1800000000000000000,1.0,[[0,0.5],[1,3.0,7.0],[2,null]]]],'
    b'"names":[["cpu.busy_ratio",""],["disk.write_latency_s","sda"],["mem.available_bytes",""]]}\n'
    b'{"at":1800000001000000000,"rows":[[1800000001000000000,1.0,[[0,0.6],[1,2.0,9.0]]]]}\n'
)


def _ring(content: bytes) -> bool:
    decoder = Decoder()
    try:
        for line in content.splitlines():
            decoder.decode(line.decode())
    except ValueError:
        return False
    return True


_PROMETHEUS = (
    json.dumps(
        {
            "status": "success",
            "data": {
                "resultType": kind,
                "result": [{"metric": {"__name__": "up", "instance": "a:1"}, key: value}],
            },
            "warnings": ["x"],
        }
    ).encode()
    for kind, key, value in (
        ("matrix", "values", [[1.8e9, "1"], [1.8e9 + 15, "NaN"]]),
        ("vector", "value", [1.8e9, "+Inf"]),
    )
)


def _prometheus(content: bytes) -> bool:
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):  # the error that requests reports
        return False
    try:
        query.partial(answer)
        list(query.vector(answer))
        list(query.matrix(answer))
    except CollectorError:
        return False
    return True


_HTML = (
    b"<!DOCTYPE html><html><head><base href='/x/'><meta name=robots content='noindex, nofollow'>"
    b"<link rel=canonical href='/c'><meta http-equiv=refresh content='0; url=/r'></head><body>"
    b"<a href='a.html'>a</a><a rel=nofollow href='//h/b?x=1#y'>b</a><iframe src='c'></iframe></body></html>",
)
_SITEMAPS = (
    b"<?xml version='1.0' encoding='UTF-8'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>"
    b"<url><loc>http://h/a</loc><lastmod>2026-01-01</lastmod></url></urlset>",
    b"<sitemapindex><sitemap><loc>http://h/s.xml</loc></sitemap></sitemapindex>",
    b"http://h/a\nhttp://h/b\n",
)
_ROBOTS = (
    b"User-agent: *\nDisallow: /a*b$\nAllow: /\nCrawl-delay: 1.5\nRequest-rate: 1/5s 0900-1700\n"
    b"Sitemap: http://h/s.xml\nHost: h\nClean-param: a /\n",
)
_LISTS = (
    json.dumps({"value": [{"Id": 1, "Title": "a"}], "odata.nextLink": "http://h/next"}).encode(),
    json.dumps({"d": {"results": [{"Id": 1}], "__next": "http://h/n"}}).encode(),
)


def _web(content: bytes) -> bool:
    """Parse one body with each reader of the crawl."""
    said = web._said(web._utf8(content[: 2 * 2**20], "text/html; charset=cp1252"))
    start = Page("http://h/p/")
    start.links(said.hrefs)
    for href in [*said.hrefs, said.base, said.canonical]:
        canonical(href)
    rules = web.parsed(content, "pinchpoint")
    rules.allow("http://h/aab")
    accepted = True
    try:
        web.entries(content, "http://h/sitemap.xml")
    except Failure:
        accepted = False
    try:
        unpacked(content, 2**24)
    except UnpackError:
        accepted = False
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        return accepted
    try:
        page(answer, "/x")
    except Failure:
        accepted = False
    return accepted


_FIO = json.dumps(
    {
        "jobs": [
            {
                "error": 0,
                **{
                    way: {
                        "runtime": 2000,
                        "total_ios": 900,
                        "lat_ns": {"N": 900, "mean": 1e6, "max": 5_000_000, "bins": {"1000000": 900}},
                    }
                    for way in ("read", "write")
                },
            }
        ]
    },
    indent=1,
).encode()
_TOOLS = (
    _FIO,
    b"1000, 500, 0, 4096, 0\n2000, 510, 1, 4096, 0\n3000, 505, 0, 4096, 0\n",
    b"64+0 records in\n64+0 records out\n67108864 bytes (67 MB, 64 MiB) copied, 0.0431 s, 1.6 GB/s\n",
    b"\n/dev/sda:\n Timing buffered disk reads: 1492 MB in  3.00 seconds = 497.16 MB/sec\n",
    b"1.98,2.00a,probe,1,1731168315,63G,,8192,5,,,745124,100,980550,91,,,1203968,58,812.5,12"
    + b"," * 19
    + b"5650us,12027us,,1806us,478us,,,,,,\n",
)


_PROBE_PLACE = ProbePlace(Path("/disk/pinchpoint-probe"), 2**26, "/dev/sdb", 8 * 2**30)


def _tool(content: bytes) -> bool:
    """Parse the output of a probe's tool with each tool's parser."""
    text = content.decode("utf-8", "replace")
    accepted = False
    for suite in ("sequential", "bonnie", "crystaldiskmark"):
        for job in SUITES[suite].jobs(1.0):
            try:
                answer(TOOLS[job.tool], job, _PROBE_PLACE, text, text)
            except ToolFailed as error:
                _refused(str(error))
            else:
                accepted = True
    return accepted


# ---- what collectors are told: rows and texts

_COLLECTED = (
    *(
        "cassandra.levels",
        "cgroup.parse",
        "cpu_list.parse",
        "diskstats.parse",
        "exporters.samples",
        "frame.parse",
    ),
    *("hello.parse", "linux.sources", "mariadb.files", "meminfo.parse", "memory.parse_v2", "mongodb.levels"),
    *("mountinfo.parse", "net_dev.parse", "postgres.files", "pressure.parse", "process.parse", "stat.parse"),
    *("valkey.levels", "vmstat.parse", "windows.reader"),
)


@st.composite
def _collected(draw: DrawFn) -> tuple[str, dict[str, Any]]:
    door = draw(st.sampled_from(_COLLECTED))
    given = draw(st.sampled_from(_recorded(door)))
    given.pop("case", None)
    if set(given) == {"text"}:
        return door, {"text": draw(damaged([given["text"].encode()])).decode("utf-8", "replace")}
    name = draw(st.sampled_from(sorted(given)))
    return door, given | {name: draw(changed_value(given[name]))}


def _collector(given: tuple[str, dict[str, Any]]) -> bool:
    """Give an input to a collector.

    Any exception counts as "not measured"; only time and memory are checked.
    """
    door, arguments = given
    try:
        DOORS[door](**arguments)
    except Exception:  # noqa: BLE001 -- as the sampler
        return False
    return True


_EXPECTED = (PinchpointError, ScenarioError, CollectorError)


@cache
def kinds() -> tuple[Kind, ...]:
    """Return all kinds."""
    readers = st.sampled_from(("report", "runs"))
    imports = [
        path.name.split(".", 1)[1].removesuffix(".jsonl")
        for path in sorted((KEPT / "inputs").glob("imports.*"))
    ]
    examples = [path.read_bytes() for path in sorted((ROOT / "infra/examples").glob("*.yaml"))]
    return (
        Kind("plan", _farm_and_plan(), _loaded, 4),
        *(Kind(f"import.{name}", _import(name), _imported) for name in imports if name != "csv"),
        Kind("import.csv", damaged([_TABLE]), _csv),
        Kind("import.blg", damaged(_blg()), _imported_blg),
        Kind(
            "import.result",
            damaged([text.encode() for texts in RESULTS.values() for text in texts]),
            _imported_result,
            2,
        ),
        Kind("import.mapping", damaged([_MAPPING]), _with_mapping),
        Kind("import.names", damaged([_NAMES]), _with_names),
        Kind("published", damaged(examples), _published),
        Kind("capture", _door_files("capture"), partial(_opened, "capture", _EXPECTED), 3),
        Kind("fit", _door_files("fit"), partial(_opened, "fit", _EXPECTED), 3),
        Kind("script", damaged(_SCRIPTS), _script, 4),
        Kind("run", _damaged_run(), _read_run, 12),
        Kind("archive", _damaged_archive(), _unpacked, 2),
        Kind("set", st.tuples(damaged_json([json.dumps(_SET).encode()]), readers), _read_set, 2),
        Kind(
            "comparison",
            st.deferred(lambda: damaged_json([_comparison()])),
            partial(_read_document, "comparison.json"),
            2,
        ),
        Kind("probe", damaged_json(_probes()), partial(_read_document, "probe.json"), 2),
        Kind("journal", _damaged_journal(), _recovered, 2),
        Kind("wire.http", _pieces(_ANSWERS), _http, 4),
        Kind("wire.resp", _pieces(_REPLIES), _resp),
        Kind("wire.cql", _pieces(_FRAMES), _cql, 4),
        Kind("wire.worker", damaged_json(_messages()), _message, 4),
        Kind("wire.agent", damaged_json([_RING]), _ring, 2),
        Kind("wire.prometheus", damaged_json(list(_PROMETHEUS)), _prometheus, 2),
        Kind("web", damaged([*_HTML, *_SITEMAPS, *_ROBOTS, *_LISTS]), _web, 4),
        Kind("tool", damaged(_TOOLS), _tool, 2),
        Kind("collector", _collected(), _collector, 4),
    )
