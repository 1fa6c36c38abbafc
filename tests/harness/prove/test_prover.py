"""The controller's side of a proof: changes in turn, restored in any case, and recorded."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from harness.analysis.build import Build

from pinchpoint.analysis import analyse
from pinchpoint.base.errors import FarmUnavailable, GuardError, InputError
from pinchpoint.plan import Farm, Plan, guard_proof, load_farm
from pinchpoint.run.progress import Board, ProgressDisplay
from pinchpoint.run.prove import ORDER, Prover, restore_leftover
from pinchpoint.run.prove.knobs import NoKnob, knob_for, note_slower, run_command
from pinchpoint.store.write import RunWriter

PLAN = Plan.from_json(
    {
        "name": "p",
        "seed": 1,
        "scenarios": {
            "orders": {"use": "sql-mix", "load": {"model": "closed", "users": 8}, "params": {}},
        },
        "phases": {"measure": {"at_most_s": 60.0}},
    }
)


def farm(folder: Path, environment: str = "test", **prove: Any) -> Farm:
    """Return an existing farm with its allowed changes."""
    file = folder / "farm.yaml"
    content = {
        "name": "mine",
        "environment": environment,
        "endpoints": {"sql": {"url": "postgresql://loader@127.0.0.1/loadtest"}},
        "tiers": {"sql": {"hosts": {"sql1": {"disks": {"log": {"device": "loop1"}}}}}},
        "prove": prove,
    }
    file.write_text(json.dumps(content))
    return load_farm(file)


def allows(log: Path, **other: Any) -> dict[str, Any]:
    """Return commands that record their own execution."""
    slower, restore = (f"echo {word} >> {log}" for word in ("slower", "restore"))
    return {"sql.log": {"slower": slower, "restore": restore, "by": "25%", **other}}


class Proof:
    """A prover after a run with a log disk at its cap, on a fake clock.

    Args:
        folder: directory of the run.
        given: the farm.
        ends_in: number of the wait in which the run has to end.
    """

    def __init__(self, folder: Path, given: Farm, ends_in: int | None = None) -> None:
        self.report_unrestored_slowdown: list[str] = []
        self.waits: list[str] = []
        self._ends_in = ends_in
        measured = _at_its_cap().run()
        verdict = analyse(measured).to_json()
        manifest = {key: value for key, value in measured.manifest.items() if key not in {"schema", "state"}}
        with closing(RunWriter(folder / "run", manifest)) as store:
            prover = Prover(
                given, PLAN, store, ProgressDisplay(Board()), self.report_unrestored_slowdown.append
            )
            prover._verdict = lambda wait: verdict  # type: ignore[method-assign]
            self.going_on = prover.run(self._wait, lambda _: False)
            self.found: dict[str, Any] = store.manifest["proof"]
        self.events = [
            json.loads(line)["event"] for line in (folder / "run" / "events.jsonl").read_text().splitlines()
        ]

    def _wait(self, phase: str, length_s: float, done: Callable[[], bool] | None = None) -> bool:
        self.waits.append(phase)
        return len(self.waits) != self._ends_in


def _at_its_cap() -> Build:
    build = Build().host("sql1", "sql", cores=(0, 1), disks={"log": "loop1"}, limits={"log": {"iops": 500.0}})
    build.cpu("sql1", 0.3, 0.25, cores=(0, 1))
    build.disk("sql1", "loop1", 500, 0.008, 0.004, busy=1.0, pressure=0.85)
    build.closed("orders", "sql-mix", 8).operations("orders", "log_append", 500, 0.016)
    return build.generator()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "commands"
    assert restore_leftover(tmp_path / "farm.yaml") is None  # nothing is left to restore


def test_windows_come_by_turns_and_every_change_is_put_back(tmp_path: Path, log: Path) -> None:
    """The slowing command runs before each slower window and its counterpart after; all is recorded."""
    proof = Proof(tmp_path, farm(tmp_path, **allows(log)))
    assert proof.going_on
    assert [window["what"] for window in proof.found["windows"]] == list(ORDER)
    assert proof.found["change"] == {"what": "sql.log", "ratio": 0.75, "of": "capacity"}
    assert proof.found["suspect"]["role"] == "log"
    assert log.read_text().split() == ["slower", "restore"] * ORDER.count("slower")
    assert proof.events == ["made_slower", "put_back"] * ORDER.count("slower")
    assert proof.report_unrestored_slowdown == []
    assert "echo" not in json.dumps(proof.found)


def test_a_run_that_must_not_go_on_is_put_back_and_says_so(tmp_path: Path, log: Path) -> None:
    """Ctrl-C, a guard and a crash in a slower window restore the farm and are reported."""
    proof = Proof(tmp_path, farm(tmp_path, **allows(log)), ends_in=2)
    assert not proof.going_on
    assert log.read_text().split() == ["slower", "restore"]
    assert proof.found == {"result": "failed", "why": "the run was ended before the test was complete"}


@pytest.mark.parametrize(
    ("slower", "words"),
    [
        ("echo no such disk >&2; false", "prove.sql.log.slower: ended with status 1: no such disk"),
        ("sleep 20", "prove.sql.log.slower: took longer than 0.5 s"),
    ],
)
def test_a_command_that_fails_is_put_back_all_the_same(
    tmp_path: Path, log: Path, slower: str, words: str
) -> None:
    """A failed command is undone as well, and the measurement stands."""
    proof = Proof(
        tmp_path,
        farm(
            tmp_path,
            **allows(log) | {"sql.log": {**allows(log, timeout="500ms")["sql.log"], "slower": slower}},
        ),
    )
    assert proof.going_on
    assert proof.found["result"] == "failed"
    assert words in proof.found["why"]
    assert log.read_text().split() == ["restore"]
    assert proof.report_unrestored_slowdown == []


def test_what_cannot_be_put_back_is_said_and_tried_again_by_the_next_run(tmp_path: Path, log: Path) -> None:
    """A change that cannot be undone is reported, and the next run tries again from a note."""
    allowed = allows(log)
    allowed["sql.log"]["restore"] = f"test -e {tmp_path}/mended && echo restore >> {log}"
    given = farm(tmp_path, **allowed)
    proof = Proof(tmp_path, given)
    assert proof.found["result"] == "failed"
    assert "could not be put back" in proof.report_unrestored_slowdown[0]
    assert restore_leftover(given.identity) is None  # the writer is this process, which is alive
    again = "import sys; from pathlib import Path; from pinchpoint.run.prove import restore_leftover as r\n"
    again += "print(r(Path(sys.argv[1])))"
    command = [sys.executable, "-c", again, str(given.identity)]
    note = next((Path(os.environ["PINCHPOINT_STATE"]) / "proofs").glob("*.json"))
    assert note.stat().st_mode & 0o077 == 0
    content = json.loads(note.read_text())
    note.write_text(json.dumps({**content, "by": [content["by"][0], 1.0]}))  # as if the writer were dead
    failed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert "by hand" in failed.stderr
    (tmp_path / "mended").touch()
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "had left sql.log slower: put back" in done.stdout
    assert not note.exists()


def test_a_note_that_cannot_be_read_is_named_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreadable note is named with its absolute path, also for a relative state folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PINCHPOINT_STATE", "state")
    given = farm(tmp_path, **allows(tmp_path / "log"))
    note_slower(given.identity, "sql.log", given.prove["sql.log"])
    [place] = (tmp_path / "state" / "proofs").glob("*.json")
    place.write_text("no JSON")
    with pytest.raises(FarmUnavailable, match=re.escape(f"{place}: says what a killed run left slower")):
        restore_leftover(given.identity)


@pytest.mark.parametrize("spoilt", ["owner", "group", "everyone", "folder", "link"])
def test_a_note_that_others_may_have_written_is_not_obeyed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoilt: str
) -> None:
    """A note that another user could have written is refused, and its command does not run."""
    if spoilt == "owner" and os.geteuid() != 0:
        pytest.skip("only root gives files away")
    monkeypatch.setenv("PINCHPOINT_STATE", str(tmp_path / "state"))
    given = farm(tmp_path, **allows(log := tmp_path / "commands"))
    note_slower(given.identity, "sql.log", given.prove["sql.log"])
    [place] = (tmp_path / "state" / "proofs").glob("*.json")
    content = json.loads(place.read_text())
    place.write_text(json.dumps({**content, "by": [2**22 + 1, 0.0]}))  # of a process that has ended
    match spoilt:
        case "owner":
            os.chown(place, 65534, 65534)
        case "group":
            place.chmod(0o620)
        case "everyone":
            place.chmod(0o602)
        case "folder":
            place.parent.chmod(0o777)
        case "link":
            place.symlink_to(place.rename(tmp_path / "elsewhere.json"))
    with pytest.raises(FarmUnavailable, match="by hand, then remove"):
        restore_leftover(given.identity)
    assert not log.exists()


def test_nothing_happens_that_the_farm_does_not_allow(tmp_path: Path, log: Path) -> None:
    """Without permission in farm.yaml for the suspect, no command runs, and the message says so."""
    allowed = {"sql.cpu": allows(log)["sql.log"]}
    proof = Proof(tmp_path, farm(tmp_path, **allowed))
    assert proof.found["result"] == "not_allowed"
    assert "no prove.sql.log" in proof.found["why"]
    assert not log.exists()


def test_production_is_not_made_slower(tmp_path: Path) -> None:
    """Production is never slowed down, whatever farm.yaml allows."""
    with pytest.raises(GuardError, match="production"):
        guard_proof(farm(tmp_path, environment="production", **allows(tmp_path / "log")))


def test_what_may_be_named_is_a_part_of_the_farm(tmp_path: Path) -> None:
    """Every wrong name, command and share is in one message with the allowed values."""
    allowed = allows(tmp_path / "log")["sql.log"]
    with pytest.raises(InputError) as error:
        farm(
            tmp_path,
            **{
                "sql.lock": allowed,
                "sql.cpu": {**allowed, "by": "80%"},
                "sql.endpoint": {"slower": "true", "by": "20%"},
                "sql.log": {**allowed, "restore": " "},
            },
        )
    for words in ("sql.cpu, sql.endpoint, sql.log", "80", "restore", "empty command"):
        assert words in str(error.value)


def test_commands_are_in_no_manifest_and_a_late_one_is_killed(tmp_path: Path) -> None:
    """Commands, which may contain secrets, are in no manifest; a hanging one is killed as a group."""
    marker = tmp_path / "alive"
    with pytest.raises(FarmUnavailable) as error:
        run_command(
            "prove.sql.log.slower",
            f"(while :; do date > {marker}; sleep 0.1; done) & sleep 30; echo s3cret",
            1.0,
        )
    assert "s3cret" not in str(error.value)
    marker.unlink(missing_ok=True)
    time.sleep(0.4)
    assert not marker.exists()
    allowed = farm(tmp_path, **allows(tmp_path / "log", slower="reset --password=s3cret"))
    shown = json.dumps(allowed.shown())
    assert "s3cret" not in shown
    assert '"by_ratio": 0.25' in shown


def test_cores_of_which_nobody_knows_the_user_have_no_knob(tmp_path: Path) -> None:
    """Shared cores of unknown use cannot be slowed down, as the tier is not known."""
    named = {"kind": "cpu", "tier": None, "host": "web1", "role": None}
    found = knob_for(farm(tmp_path), named, {}, {}, all_of_it=True)
    assert found == NoKnob("not_supported", "which tier uses the shared cores was not measured")
