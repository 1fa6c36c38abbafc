"""The ground-truth runner's own logic: what it reads, varies, chooses, counts and says."""

from __future__ import annotations

import copy
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from ground_truth import machine, run
from ground_truth.burner import burning, measuring_since
from ground_truth.cases import Answer, Case, Expected, farms, needs_of, read_case, select
from ground_truth.judge import Found, Judged, is_right, what_counts, wrong
from ground_truth.noises import every, lost, without
from ground_truth.rows import Row, confusion, summary
from ground_truth.variants import VARIANTS, declared_times, withheld
from pydantic import ValidationError

from pinchpoint.analysis.verdict import Kind
from pinchpoint.errors import InputError
from pinchpoint.store.schema import SAMPLES_SCHEMA

TESTS = Path(__file__).parents[1]

FARM = """\
name: {name}
environment: test
embedded: {{tiers: [{tier}]}}
"""
PLAN = """\
name: {name}
scenarios: {{load: {{use: {use}, load: {{model: open, rate: 20/s}}}}}}
phases: {{warm_up: 1s, measure: {measure}}}
"""
HEALTHY = "outcome: not_reached\nwhy: hardly any load\n"
LOG_CAP = Answer("bottleneck", "disk_cap", "sql", "log")
OTHER_DISK = Answer("bottleneck", "disk_cap", "sql", "data")
NOBODY = Answer("inconclusive")


def make_case(
    folder: Path, name: str, tier: str = "nosql", measure: str = "3s", expected: str = HEALTHY
) -> Path:
    """A case's folder with its three files."""
    place = folder / name
    place.mkdir(parents=True)
    use = {"nosql": "nosql-burst", "sql": "sql-mix"}[tier]
    (place / "farm.yaml").write_text(FARM.format(name=name, tier=tier))
    (place / "plan.yaml").write_text(PLAN.format(name=name, use=use, measure=measure))
    (place / "expected.yaml").write_text(expected)
    return place


def make_row(case: Case, *answers: Answer) -> Row:
    """A row whose variants found these answers, none of them where there are none."""
    found = {name: Found(answer, "medium") for name, answer in zip(VARIANTS, answers, strict=False)}
    return Row(case, 1, 1.0, Judged(found, {}) if found else None)


def manifest() -> dict[str, Any]:
    """What the variants may change, and what they may not."""
    limits = {"iops": 500.0, "bytes_per_s": 60e6, "io_unit_bytes": 8192}
    return {
        "name": "x",
        "farm": {
            "name": "x",
            "embedded": {"disks": {"sql.log": {"limits": {"iops": 400.0}}}},
            "tiers": {
                "sql": {
                    "hosts": {
                        "sql1": {
                            "machine": "azure/ds12",
                            "disks": {
                                "log": {"profile": "azure/s30", "resolved_limits": limits},
                                "data": {"device": "sdc", "limits": "unknown"},
                                "tempdb": {"limits": dict(limits), "resolved_limits": dict(limits)},
                            },
                        }
                    }
                }
            },
        },
        "hosts": {"sql1": {"roles": {"log": {"device": "loop1"}}}},
    }


def disks_of(found: dict[str, Any]) -> dict[str, Any]:
    """The disks the manifest above declares."""
    disks: dict[str, Any] = found["farm"]["tiers"]["sql"]["hosts"]["sql1"]["disks"]
    return disks


def test_no_variant_changes_what_it_is_given_or_keeps_how_the_farm_was_built() -> None:
    """Every variant is a new manifest; none of them holds the answer; measurements stay as they are."""
    given = manifest()
    before = copy.deepcopy(given)
    for change in VARIANTS.values():
        found = change(given)
        assert given == before
        assert "embedded" not in found["farm"]
        assert found["hosts"] == before["hosts"]


def test_withheld_limits_are_not_in_the_manifest_in_any_form() -> None:
    """Neither figure nor profile nor machine is left to read a cap from; which device it is stays known."""
    found = withheld(manifest())
    assert disks_of(found) == {"log": {}, "data": {"device": "sdc"}, "tempdb": {}}
    assert not any(word in json.dumps(found) for word in ("iops", "azure", "bytes_per_s"))


@pytest.mark.parametrize("factor", [2.0, 0.5])
def test_wrong_limits_are_wrong_in_every_figure_but_the_unit(factor: float) -> None:
    """A profile is replaced by its figures, wrong; what is unknown stays unknown."""
    disks = disks_of(declared_times(manifest(), factor))
    wrong = {"iops": 500.0 * factor, "bytes_per_s": 60e6 * factor, "io_unit_bytes": 8192}
    assert disks["log"] == {"limits": wrong, "resolved_limits": wrong}
    assert disks["tempdb"] == {"limits": wrong, "resolved_limits": wrong}
    assert disks["data"] == {"device": "sdc", "limits": "unknown"}


def test_a_manifest_without_declarations_has_no_variants() -> None:
    """A farm that declares nothing (no tiers at all) is left as it is."""
    bare = {"farm": {"name": "x", "embedded": {"tiers": ["sql"]}}}
    assert all(change(bare) == {"farm": {"name": "x"}} for change in VARIANTS.values())


def samples_of(seconds: int) -> pa.Table:
    """A reading a second of two hosts: a rate, a latency with its operations, and what a database says."""
    rows = []
    for host in ("sql1", "web1"):
        for second in range(seconds):
            time_ns = (1_795_000_000 + second) * 10**9 + 7
            latency = None if second % 5 == 4 else 0.001 * (second % 5 + 1)
            operations = None if latency is None else float(second % 5 + 1)
            rows += [
                (time_ns, 1.0, host, "disk.writes_per_s", "vda", float(second), None),
                (time_ns, 1.0, host, "disk.write_latency_s", "vda", latency, operations),
                (time_ns, 1.0, host, "db.commits_per_s", "", 5.0, None),
                (time_ns, 1.0, host, "collector.ok", "local", 1.0, None),
                (time_ns, 1.0, host, "collector.ok", "postgres", 1.0, None),
                (time_ns, 1.0, host, "collector.cpu_s", "postgres/looks", 0.1, None),
            ]
    rows.append((1_795_000_000 * 10**9, 1.0, "generator1", "generator.scheduled_per_s", "orders", 9.0, None))
    columns = zip(*rows, strict=True)
    return pa.table(dict(zip(SAMPLES_SCHEMA.names, columns, strict=True)), schema=SAMPLES_SCHEMA)


def test_a_missing_collector_takes_its_own_samples_along() -> None:
    """The host's own readings, or the database's view; nothing of another host, and the other one stays."""
    samples = samples_of(3)

    def left(host: str, kind: str) -> set[tuple[str, str]]:
        found = without(samples, host, kind)
        assert found.schema == SAMPLES_SCHEMA
        return set(zip(found["host"].to_pylist(), found["metric"].to_pylist(), strict=True))

    everything = left("nobody", "local")
    assert everything - left("sql1", "local") == {
        ("sql1", "disk.writes_per_s"),
        ("sql1", "disk.write_latency_s"),
    }
    assert everything - left("web1", "postgres") == {
        ("web1", "db.commits_per_s"),
        ("web1", "collector.cpu_s"),
    }
    still = without(samples, "sql1", "local").filter(pc.equal(pc.field("metric"), "collector.ok"))
    assert still.group_by(["host", "instance"]).aggregate([]).num_rows == 3


def test_seldom_samples_are_means_as_a_collector_would_have_read_them() -> None:
    """A rate over five seconds is its mean, a latency counts by operations; nulls stay out."""
    found = every(samples_of(10), 5)
    rates = found.filter((pc.field("host") == "sql1") & (pc.field("metric") == "disk.writes_per_s")).sort_by(
        "time_ns"
    )
    assert rates["value"].to_pylist() == [2.0, 7.0]
    assert rates["interval_s"].to_pylist() == [5.0, 5.0]
    times = found.filter(
        (pc.field("host") == "sql1") & (pc.field("metric") == "disk.write_latency_s")
    ).sort_by("time_ns")
    # 1, 2, 3, 4 operations of 1, 2, 3, 4 ms: (1 + 4 + 9 + 16) / 10 = 3 ms.
    assert times["value"].to_pylist() == pytest.approx([0.003, 0.003])
    assert times["weight"].to_pylist() == [10.0, 10.0]
    assert found.filter(pc.field("metric") == "generator.scheduled_per_s").num_rows == 1
    nothing = samples_of(10).filter(pc.is_null(pc.field("value")))
    assert every(nothing, 5)["value"].to_pylist() == [None] * 4


def test_a_fifth_of_the_samples_is_lost_the_same_one_each_time() -> None:
    """Whole readings as well as single samples, and no others than the seed says."""
    samples = samples_of(1500)
    found = lost(samples, 0.2, 5)
    assert found.num_rows / samples.num_rows == pytest.approx(0.8, abs=0.02)
    assert found == lost(samples, 0.2, 5)
    assert found != lost(samples, 0.2, 6)
    readings = samples.group_by(["host", "time_ns"]).aggregate([]).num_rows
    left = found.group_by(["host", "time_ns"]).aggregate([]).num_rows
    # Of six samples of a reading all are lost one by one in about one reading of a million.
    assert left / readings == pytest.approx(0.8**0.5, abs=0.04)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"outcome": "bottleneck", "why": "x"}, "a kind belongs to"),
        ({"outcome": "not_reached", "kind": "cpu", "why": "x"}, "a kind belongs to"),
        ({"outcome": "bottleneck", "kind": "cpu", "why": "x"}, "a tier belongs to"),
        ({"outcome": "bottleneck", "kind": "disk_cap", "tier": "sql", "why": "x"}, "a role belongs to"),
        (
            {"outcome": "bottleneck", "kind": "cpu", "tier": "sql", "role": "log", "why": "x"},
            "a role belongs",
        ),
        ({"outcome": "not_reached"}, "why"),
        ({"outcome": "healthy", "why": "x"}, "outcome"),
        ({"outcome": "not_reached", "why": "x", "kinds": ["cpu"]}, "kinds"),
        ({"outcome": "not_reached", "why": "x", "needs": ["luck"]}, "needs"),
    ],
)
def test_a_label_says_one_whole_answer(fields: dict[str, Any], words: str) -> None:
    """A label that leaves room (half an answer, two answers) could never be missed: it is refused."""
    with pytest.raises(ValidationError, match=words):
        Expected.model_validate(fields)


def test_a_case_that_cannot_be_read_names_its_file(tmp_path: Path) -> None:
    """The label's file stands in the message, with the field."""
    place = make_case(tmp_path, "one", expected="outcome: perfect\nwhy: x\n")
    with pytest.raises(InputError, match=r"expected\.yaml: outcome: "):
        read_case(place)
    (place / "expected.yaml").unlink()
    with pytest.raises(InputError, match=r"expected\.yaml: cannot be read"):
        read_case(place)


def test_every_case_can_be_read_and_says_what_it_needs() -> None:
    """All labelled cases are whole, and no knob is used that ``needs`` does not name."""
    for case in select([]):
        assert case.farm.embedded is not None
        assert set(case.expected.needs) == needs_of(case.farm.embedded.to_json()), case.name
        climbs = any(scenario.load.model == "steps" for scenario in case.plan.scenarios.values())
        assert case.load_s <= (135 if climbs else 60), f"{case.name}: a sweep takes long enough as it is"
        assert case.farm.name == case.plan.name == case.name


def test_there_are_cases_enough() -> None:
    """60 in all, twelve of them healthy, three of each kind; CI's are among them and fit its two minutes."""
    cases = select([])
    labels = Counter(case.expected.answer.label for case in cases)
    assert len(cases) >= 60
    assert labels["not_reached"] >= 12
    assert {kind for kind in get_args(Kind) if labels[kind] < 3} == set()
    chosen = select(["@ci"])
    assert len({case.expected.answer.label for case in chosen}) >= 2
    assert sum(case.load_s + 10 for case in chosen) <= 120


def test_a_climb_is_as_long_as_its_levels() -> None:
    """A plan in steps that measured for less than its levels last would never hold the last one."""
    for case in select([]):
        for scenario in case.plan.scenarios.values():
            if scenario.load.model == "steps":
                least = scenario.load.count * scenario.load.each_s
                assert case.plan.phases.measure.at_most_s >= least + 5, case.name
                assert scenario.load.count >= 6, case.name


def test_cases_are_chosen_by_name_glob_and_list(tmp_path: Path) -> None:
    """In order of names, each once; a list may hold comments; what means nothing is refused, all at once."""
    for name in ("log-a", "log-b", "web"):
        make_case(tmp_path / "cases", name)
    (tmp_path / "few.txt").write_text("# the quick ones\nweb\n\nlog-a\n")

    def chosen(*patterns: str) -> list[str]:
        return [case.name for case in select(patterns, tmp_path / "cases", tmp_path)]

    assert chosen() == ["log-a", "log-b", "web"]
    assert chosen("log-*") == ["log-a", "log-b"]
    assert chosen("@few", "log-a") == ["log-a", "web"]
    with pytest.raises(InputError, match=r"(?s)lgo-a: is no case; nearest: log-a.*zzz.*there are: log-a"):
        chosen("lgo-a", "web", "zzz")
    with pytest.raises(InputError, match=r"@none.*none\.txt cannot be read"):
        chosen("@none")


def test_shards_share_out_whole_farms(tmp_path: Path) -> None:
    """Every case is in exactly one shard, farms are never split, and the longest farm stands alone."""
    for name, tier, measure in (
        ("a", "nosql", "50s"),
        ("b", "sql", "10s"),
        ("c", "nosql", "50s"),
        ("d", "sql", "10s"),
    ):
        make_case(tmp_path, name, tier, measure)
    cases = select([], tmp_path)
    assert [[case.name for case in group] for group in farms(cases)] == [["a", "c"], ["b", "d"]]
    shards = [farms(cases, shard, 2) for shard in (1, 2)]
    assert [[[case.name for case in group] for group in shard] for shard in shards] == [
        [["a", "c"]],
        [["b", "d"]],
    ]
    assert farms(cases, 3, 3) == []


def test_right_means_every_variant() -> None:
    """One variant that names another disk, or nothing, makes the case a miss, and is what counts."""
    good = {"declared": Found(LOG_CAP, "high"), "withheld": Found(LOG_CAP, "low")}
    assert wrong(LOG_CAP, Judged(good, {})) == {}
    assert what_counts(LOG_CAP, Judged(good, {})) == good["declared"]
    for answer in (OTHER_DISK, NOBODY, Answer("bottleneck", "disk_latency", "sql", "log")):
        found = Judged({**good, "declared x2": Found(answer, None)}, {})
        assert [*wrong(LOG_CAP, found)] == ["declared x2"]
        assert what_counts(LOG_CAP, found).answer == answer


def test_noise_may_make_unsure_and_nothing_else() -> None:
    """Under noise "inconclusive" is right too; another answer, "not reached" among them, is a miss."""
    assert is_right(LOG_CAP, NOBODY, noisy=True)
    assert not is_right(LOG_CAP, NOBODY, noisy=False)
    for answer in (OTHER_DISK, Answer("not_reached"), Answer("invalid", "generator")):
        assert not is_right(LOG_CAP, answer, noisy=True)
    assert not is_right(Answer("not_reached"), LOG_CAP, noisy=True)
    good = {"declared": Found(LOG_CAP, "high")}
    assert wrong(LOG_CAP, Judged(good, {"every 5 s": Found(NOBODY, None)})) == {}
    assert [*wrong(LOG_CAP, Judged(good, {"20% lost": Found(OTHER_DISK, "low")}))] == ["20% lost"]
    assert wrong(LOG_CAP, Judged({"declared": Found(NOBODY, None)}, {}), noisy=True) == {}


def test_the_confusion_table_tells_kinds_places_and_errors_apart(tmp_path: Path) -> None:
    """A right kind on the wrong disk is no hit in the table either; errors have their own column."""
    label = "outcome: bottleneck\nkind: disk_cap\ntier: sql\nrole: log\nwhy: x\n"
    log = read_case(make_case(tmp_path, "log", expected=label))
    fine = read_case(make_case(tmp_path, "fine"))
    rows = [
        make_row(log, LOG_CAP),
        make_row(log, OTHER_DISK),
        make_row(log),
        make_row(fine, Answer("not_reached")),
        make_row(fine, NOBODY),
    ]
    heading, capped, healthy = [line.split("  ") for line in confusion(rows).splitlines()]
    table = {
        line[0].strip(): dict(
            zip(heading[1:], (cell.strip() for cell in line[1:] if cell.strip()), strict=True)
        )
        for line in (capped, healthy)
    }
    assert (
        table["disk_cap"] | {"disk_cap": "1", "disk_cap, elsewhere": "1", "error": "1"} == table["disk_cap"]
    )
    assert table["not_reached"] | {"not_reached": "1", "inconclusive": "1"} == table["not_reached"]


def test_the_summary_counts_kinds_confidence_health_noises_and_repetitions(tmp_path: Path) -> None:
    """Each line counts what it says, and an answer that changes between repetitions is not the same one."""
    label = "outcome: bottleneck\nkind: disk_cap\ntier: sql\nrole: log\nwhy: x\n"
    place = make_case(tmp_path, "log", "sql", expected=label)
    farm = place / "farm.yaml"
    farm.write_text(farm.read_text() + "tiers: {sql: {hosts: {sql1: {disks: {log: {limits: {iops: 9}}}}}}}\n")
    log, fine = read_case(place), read_case(make_case(tmp_path, "fine"))
    assert log.limit_declared
    assert not fine.limit_declared
    sure = Judged({"declared": Found(LOG_CAP, "high")}, {"every 5 s": Found(NOBODY, None)})
    rows = [
        Row(log, 1, 1.0, sure),
        Row(log, 2, 1.0, Judged(sure.variants, {"every 5 s": Found(OTHER_DISK, "low")})),
        make_row(fine, Answer("not_reached")),
        Row(fine, 2, 1.0, make_row(fine, Answer("not_reached")).judged),
    ]
    assert list(summary(rows)) == [
        "right by kind: disk_cap 1 of 2, not_reached 2 of 2",
        "right with high confidence where the limit is declared: 1 of 2",
        "healthy farms right: 2 of 2",
        "noises that made no wrong answer: 1 of 2",
        "cases with the same answer in all repetitions: 1 of 2",
    ]


def test_the_farms_cores_are_used_up_in_the_middle_third_of_the_measurement(tmp_path: Path) -> None:
    """Nothing before, a process on the core named meanwhile, none after, whatever else happens."""
    core = max(os.sched_getaffinity(0))
    run = tmp_path / "run"
    run.mkdir()
    assert measuring_since(tmp_path) is None
    phases = [{"name": "measure", "from": datetime.now(UTC).isoformat()}]

    before = psutil.Process().children()  # servers that other tests share

    def burners() -> list[psutil.Process]:
        return [process for process in psutil.Process().children() if process not in before]

    with burning(tmp_path, [core], measure_s=4.5):
        time.sleep(0.6)
        assert burners() == []  # it does not measure yet
        (run / "manifest.json").write_text(json.dumps({"phases": phases}))
        deadline = time.monotonic() + 10
        while not burners() and time.monotonic() < deadline:
            time.sleep(0.05)
        (burner,) = burners()
        time.sleep(0.3)
        assert burner.cpu_affinity() == [core]
    assert burners() == []


def test_what_the_machine_lacks_is_said_once_and_is_an_error_as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing may be skipped as root; anybody else reads why it is not possible."""
    why = lambda: "no root rights"  # noqa: E731 -- two needs, one reason
    assert machine.lacking(["root", "disks"], {"root": why, "disks": why}) == "no root rights"
    assert machine.lacking(["root"], {"root": lambda: None}) == ""
    for root, words in ((True, "error: no root rights"), (False, "not possible here: no root rights")):
        monkeypatch.setattr(machine, "is_root", lambda root=root: root)
        assert run._not_run("no root rights") == words


@pytest.mark.parametrize(
    "words", [["--shard", "3/2"], ["--shard", "0/2"], ["--shard", "x"], ["--repeat", "0"]]
)
def test_a_wrong_argument_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 2 and what is allowed, before anything is started."""
    with pytest.raises(SystemExit) as ended:
        run.main(words)
    assert ended.value.code == 2
    assert "allowed:" in capsys.readouterr().err


def test_an_unknown_case_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 2, the name and those there are."""
    assert run.main(["--cases", "no-such-case"]) == 2
    assert "no-such-case: is no case" in capsys.readouterr().err


# Stands in for `python -m ground_truth.run`, with cases and results of its own. Runs are real, and so are
# their analyses; what these say of so short a run on a busy machine is not the matter here: one answer
# stands for all of it.
SCRIPT = """
import sys
from pathlib import Path
from ground_truth import cases, judge, run
healthy = judge.Found(cases.Answer("not_reached"), None)
true_judge = judge.judge
def judged(directory):
    found = true_judge(directory)
    return judge.Judged(dict.fromkeys(found.variants, healthy), dict.fromkeys(found.noises, healthy))
run.judge = judged
run.BUILD = Path(sys.argv[1]) / "build"
run.pairs.PAIRS = Path(sys.argv[1]) / "pairs"
found = cases.select
run.select = lambda patterns: found(patterns, Path(sys.argv[1]) / "cases", Path(sys.argv[1]))
sys.exit(run.main(sys.argv[2:]))
"""


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """The runner, in a process of its own, on the cases below ``folder``."""
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(folder), *arguments],
        cwd=TESTS,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env=os.environ | {"TMPDIR": str(folder)},  # a killed one leaves its work folder, nothing else
    )


def farm_processes(folder: Path) -> list[int]:
    """Processes of farms, below the state folder of this test."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("PINCHPOINT_STATE") == str(folder) and process.pid != os.getpid():
                found.append(process.pid)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


@pytest.mark.slow
@pytest.mark.farm
@pytest.mark.alone
def test_one_farm_serves_its_cases_and_a_miss_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two cases, one farm, one of them labelled wrongly: a hit, a miss with its run kept, exit status 1."""
    state = tmp_path / "state"
    monkeypatch.setenv("PINCHPOINT_STATE", str(state))
    make_case(tmp_path / "cases", "fine")
    make_case(
        tmp_path / "cases", "wrong", expected="outcome: bottleneck\nkind: cpu\ntier: nosql\nwhy: it is not\n"
    )
    process = start(tmp_path)
    out, _ = process.communicate(timeout=150)
    assert process.returncode == 1, out
    rows = json.loads((tmp_path / "build/ground-truth.json").read_text())
    assert [(row["case"], row["found"], row["right"]) for row in rows] == [
        ("fine", "not_reached", True),
        ("wrong", "not_reached", False),
    ]
    assert [*rows[1]["variants"]] == [*VARIANTS]
    assert {"without local of nosql1", "every 5 s", "20% lost"} <= set(rows[1]["noises"])
    kept = tmp_path / "build/ground-truth-runs"
    assert [place.name for place in kept.iterdir()] == ["wrong"]
    assert {"manifest.json", "report.html", "run.log", "samples.parquet"} <= {
        place.name for place in (kept / "wrong").iterdir()
    }
    assert "is used, and left up" in (kept / "wrong" / "run.log").read_text()
    assert "1 of 2 right" in out
    again, _ = start(tmp_path, "--again").communicate(timeout=60)
    assert "0 of 2 right" in again  # the hit was not kept
    rows = json.loads((tmp_path / "build/ground-truth.json").read_text())
    assert [row["found"] for row in rows][1] == "not_reached"
    assert "is no directory" in rows[0]["found"]
    assert farm_processes(state) == []
    assert not state.exists() or not any(state.rglob("*"))


@pytest.mark.farm
@pytest.mark.alone
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_when_it_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """Ctrl-C ends the run and removes the farm; a kill does too, by the farm's lifeline."""
    state = tmp_path / "state"
    monkeypatch.setenv("PINCHPOINT_STATE", str(state))
    make_case(tmp_path / "cases", "long", measure="60s")
    process = start(tmp_path)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("pinchpoint-ground-truth-*/1/run1/*")) and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1)  # within the run's warm-up
    process.send_signal(number)
    process.communicate(timeout=90)
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    while (left := farm_processes(state)) and time.monotonic() < deadline + 60:
        time.sleep(0.2)
    assert left == []
    assert not any(place.is_file() for place in state.rglob("*"))
