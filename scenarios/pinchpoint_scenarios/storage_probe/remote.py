"""Runs a probe on another machine over ssh, and leaves nothing on that machine.

A *keeper* is a POSIX shell on the other machine, with one connection for the whole probe. The keeper creates
the folder. It kills the running command and removes the folder when its input ends, when the connection
breaks, or after a minute without a sign from this process. Each command uses a connection of its own and
writes its process id into the folder. Commands may come from another process than the one that started the
keeper.
"""

from __future__ import annotations

import base64
import re
import shlex
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.remote import ssh
from pinchpoint_collectors.remote.ssh import Address

from ..errors import ScenarioError
from .folder import FOLDER, OWNER, ForeignFolder, NoRoom, check_room
from .process import ProbeStopped, ToolOutput, run
from .tool import Tool, ToolFailed, ToolMissing
from .tools import TOOLS

_BEAT_S = 5.0
_SILENT_S = 60
"""Seconds of silence after which the keeper removes the folder. ssh itself gives up a silent link after 15
s."""
_END_S = 20.0
_MISSING = 127
_NO_FOLDER = 3
"""Exit status of a command if the folder does not exist any more."""
_PATH = "PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin; export PATH"

_LOOK = (
    "p={path}; d={device}; "
    '[ -n "$p" ] || while read -r from at rest; do case $from in "$d"|"$d"[0-9]|"$d"[0-9][0-9]|'
    '"$d"p[0-9]|"$d"p[0-9][0-9]) p=$(printf %bx "$at"); p=${{p%x}}; break;; esac; done < /proc/mounts; '
    '[ -n "$p" ] || {{ echo unmounted; exit 0; }}; cd -- "$p" 2>/dev/null || {{ echo missing; exit 0; }}; '
    "[ -w . ] || {{ echo forbidden; exit 0; }}; "
    's=$(df -Pk . | tail -n 1); n=$(basename "$(readlink -f "${{s%% *}}")"); b=/sys/class/block/$n; '
    'if [ -e "$b/partition" ]; then n=$(basename "$(readlink -f "$b/..")"); fi; [ -e "$b" ] || n=; '
    "echo ok; hostname; id -u; grep MemTotal /proc/meminfo; stat -f -c %T . || echo; "
    'echo "$n"; cat "/sys/class/block/$n/device/model" 2>/dev/null || echo; pwd'
)
"""Script that prints the mount point of the disk, the user, and the facts about the disk, one per line. The
folder is the last line, because its name may contain line ends. /proc/mounts writes a space as ``\\040``,
which ``%b`` decodes."""

_KEEP = (
    'cd -- {parent} || exit 3; f={folder}; trap "" HUP PIPE; refuse() {{ echo "refused $1"; exit 0; }}; '
    "if [ -L $f ]; then refuse theirs; fi; "
    "if [ -e $f ]; then grep -q pid $f/{owner} 2>/dev/null || refuse theirs; "
    "o=$(grep -o '\"pid\": *[0-9]*' $f/{owner} | grep -o '[0-9]*$'); "
    'if [ -n "$o" ] && kill -0 "$o" 2>/dev/null || [ -d "/proc/${{o:-none}}" ]; then refuse "$o"; fi; '
    'grep -qF "$(hostname)" $f/{owner} || refuse "${{o:-0}}"; '
    "rm -rf $f || refuse left; fi; mkdir -m 700 $f || refuse unmade; "
    'echo "{{@pid@: $$, @host@: @$(hostname)@, @remote@: true}}" | tr @ {quote} > $f/{owner}; '
    "stop() {{ if [ -f $f/running ]; then kill -9 $(cat $f/running) 2>/dev/null; fi; }}; "
    "t=; if command -v timeout >/dev/null; then t='timeout {silent}'; fi; "
    'echo "ready $(df -Pk . | tail -n 1)"; '
    "while line=$($t sh -c 'read -r l && echo $l'); do if [ \"$line\" = stop ]; then stop; fi; done; "
    "stop; rm -rf $f || {{ sleep 1; rm -rf $f; }}"
)

_RUN = (
    "cd -- {folder} || exit {gone}; {path}; LC_ALL=C; export LC_ALL; "
    "command -v {program} >/dev/null || exit {missing}; "
    "sh -c {command}; s=$?; rm -f running; [ $s != {gone} ] || s=1; exit $s"
)

_BRING = (
    'cd -- {folder} && for f in log_*.log; do if [ -f $f ]; then echo "== $f"; cat $f; rm -f $f; fi; done'
)


_STOP = "cd -- {folder} && if [ -f running ]; then kill -9 $(cat running); fi"


class HostUnreachable(ScenarioError):  # noqa: N818 -- a state of the way there, named as such
    """The host is not reachable, or its answer cannot be used."""


class DiskNotThere(ScenarioError):  # noqa: N818 -- likewise
    """The host is reachable, but the given path or device is not a writable folder or a mounted disk."""


_OTHERWISE = re.compile(r"[\r\n!\\]|[^\x00-\x7f]")


def _command(script: str) -> str:
    """Return the ssh command that runs a script, for all characters in paths and for every login shell.

    A script with characters that csh or fish read differently, or that are not ASCII, is sent as base64.
    """
    if _OTHERWISE.search(script):
        encoded = base64.b64encode(script.encode("utf-8", "surrogateescape")).decode("ascii")
        script = f'eval "$(echo {encoded} | base64 -d)"'
    return ssh.shell(script)


@dataclass(frozen=True, slots=True)
class RemoteFacts:
    """Facts about a disk of another machine.

    Attributes:
        folder: mount point of the disk, or the path that the user gave.
        host: name of the machine.
        device: kernel name of the whole disk; None if the folder has no block device.
        file_system: type of the file system; None if unknown. ``model`` is also None if unknown.
        memory_bytes: memory of the machine in bytes.
        root: whether the login user is root.
    """

    folder: PurePosixPath
    host: str
    device: str | None
    file_system: str | None
    model: str | None
    memory_bytes: int
    root: bool


def look(address: Address, path: str | None, device: str | None, disk: str) -> RemoteFacts:
    """Return the facts about a disk. ``disk`` is its name for messages.

    Raises DiskNotThere, HostUnreachable.
    """
    node = f"/dev/{(device or 'none').removeprefix('/dev/')}"
    script = _LOOK.format(path=shlex.quote(path or ""), device=shlex.quote(node))
    try:
        answer = ssh.run(address, _command(script)).split("\n", 7)
    except CollectorError as error:
        raise HostUnreachable(str(error)) from error
    state = answer[0].split(" ")[0] if answer else ""
    wrong = {
        "unmounted": f"its device {device} is not mounted there; give its path in farm.yaml",
        "missing": f"{path} is not a folder on that host; correct path: in farm.yaml",
        "forbidden": f"no permission to write to {path or device} on that host; log in as a user who may "
        "write there",
    }
    if state in wrong:
        raise DiskNotThere(f"{disk} on {address}: {wrong[state]}")
    if state != "ok" or len(answer) < 8:
        raise HostUnreachable(
            f"{address}: the host reported nothing usable about {disk}: "
            f"{' '.join(answer)[:200] or 'no answer'}"
        )
    host, user, memory, file_system, name, model, folder = answer[1:]
    folder = folder.removesuffix("\n")
    return RemoteFacts(
        folder=PurePosixPath(folder),
        host=host,
        device=name or None,
        file_system=file_system or None,
        model=model.strip() or None,
        memory_bytes=int(memory.split()[1]) * 1024,
        root=user.strip() == "0",
    )


def version(address: Address, tool: Tool) -> str:
    """Return the version text that a tool on the host prints. Raises ToolMissing, HostUnreachable."""
    program, *rest = tool.version()
    script = (
        f"{_PATH}; command -v {program} >/dev/null || {{ echo missing; exit 0; }}; "
        f"echo there; {shlex.join([program, *rest])} 2>&1"
    )
    try:
        state, _, answer = ssh.run(address, _command(script)).partition("\n")
    except CollectorError as error:
        raise HostUnreachable(str(error)) from error
    if state != "there":
        raise _missing(tool, address)
    return answer


def _missing(tool: Tool, address: Address) -> ToolMissing:
    return ToolMissing(
        f"{tool.program} is not installed on {address}, and this suite needs it; install "
        f"the package {tool.package} there (Debian, Ubuntu: apt-get install {tool.package})"
    )


@dataclass(frozen=True, slots=True)
class Guest:
    """Another machine as a ``ProbedMachine``. A keeper of this or another process keeps its folder.

    Attributes:
        address: ssh address of the machine.
        looked: facts about the disk.
    """

    address: Address
    looked: RemoteFacts

    @property
    def folder(self) -> Path:
        """Return the path of the probe's folder on the machine."""
        return Path(self.looked.folder / FOLDER)

    def tool(self, name: str) -> Tool:
        return TOOLS[name]

    def run(self, tool: Tool, command: Sequence[str], stop: Callable[[], bool]) -> ToolOutput:
        script = _RUN.format(
            folder=shlex.quote(str(self.folder)),
            path=_PATH,
            program=shlex.quote(command[0]),
            missing=_MISSING,
            gone=_NO_FOLDER,
            command=shlex.quote(f"echo $$ > running; exec {shlex.join(command)}"),
        )
        try:
            answer = run(ssh.argv(self.address, _command(script)), Path("/"), stop)
        except ProbeStopped:
            self.end()
            raise
        except FileNotFoundError as error:
            raise HostUnreachable(str(ssh.no_ssh())) from error
        if answer.status in (ssh.SSH_FAILED, _NO_FOLDER):
            why = ssh.why(self.address, answer.status, answer.stderr)
            if answer.status == _NO_FOLDER or self.lost():
                raise HostUnreachable(
                    f"{why}; the process that keeps the probe's folder on that host has ended"
                )
            raise ToolFailed(why)  # only this connection failed: the next one may succeed
        if answer.status == _MISSING:
            raise _missing(tool, self.address)
        return answer

    @contextmanager
    def results(self) -> Iterator[Path]:
        script = _BRING.format(folder=shlex.quote(str(self.folder)))
        try:
            answer = ssh.run(self.address, _command(script))
        except CollectorError as error:
            raise HostUnreachable(str(error)) from error
        with tempfile.TemporaryDirectory(prefix="pinchpoint-probe-") as copies:
            for part in answer.split("== ")[1:]:
                name, _, text = part.partition("\n")
                (Path(copies) / PurePosixPath(name.strip()).name).write_text(text, encoding="utf-8")
            yield Path(copies)

    def end(self) -> None:
        """Kill the running command. If that fails, the keeper kills it at the end."""
        with suppress(CollectorError):
            ssh.run(self.address, _command(_STOP.format(folder=shlex.quote(str(self.folder)))))

    def lost(self) -> bool:
        """Return whether the keeper is known to have ended."""
        return False


@dataclass(frozen=True, slots=True)
class RemoteMachine(Guest):
    """Another machine with a folder that this process keeps.

    Attributes:
        keeper: ssh process of the keeper.
    """

    keeper: subprocess.Popen[str]
    _speaking: threading.Lock = field(default_factory=threading.Lock)

    def end(self) -> None:
        """Let the keeper kill the running command."""
        self.report("stop")

    def lost(self) -> bool:
        """Return whether the keeper has ended. It notices a broken connection within some seconds."""
        try:
            self.keeper.wait(timeout=_END_S)
        except subprocess.TimeoutExpired:
            return False
        return True

    def report(self, word: str) -> None:
        """Send a word to the keeper. Nothing happens if the keeper has ended."""
        assert self.keeper.stdin is not None  # noqa: S101 -- a pipe was asked for
        with self._speaking, suppress(BrokenPipeError, ValueError):
            self.keeper.stdin.write(f"{word}\n")
            self.keeper.stdin.flush()


@contextmanager
def there(address: Address, looked: RemoteFacts, needed_bytes: int) -> Iterator[RemoteMachine]:
    """Create the probe's folder on the machine, yield the machine, and remove the folder at the end.

    Raises ForeignFolder, NoRoom, HostUnreachable.
    """
    with ExitStack() as stack:
        keeper = stack.enter_context(_kept(address, looked, needed_bytes))
        made = RemoteMachine(address, looked, keeper)
        stack.enter_context(_beating(made))
        yield made


@contextmanager
def _kept(address: Address, looked: RemoteFacts, needed_bytes: int) -> Iterator[subprocess.Popen[str]]:
    """Start the keeper, yield its ssh process, and end the keeper.

    Raises ForeignFolder, NoRoom, HostUnreachable.
    """
    script = _KEEP.format(
        parent=shlex.quote(str(looked.folder)),
        folder=FOLDER,
        owner=OWNER,
        silent=_SILENT_S,
        quote="'\"'",
    )
    try:
        keeper = subprocess.Popen(
            ssh.argv(address, _command(script)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C reaches only this process
        )
    except FileNotFoundError as error:
        raise HostUnreachable(str(ssh.no_ssh())) from error
    try:
        free_bytes, total_bytes = _begin(address, looked, keeper)
        check_room(f"{looked.host}:{looked.folder}", needed_bytes, free_bytes, total_bytes)
        yield keeper
    finally:
        _end(keeper)


def _begin(address: Address, looked: RemoteFacts, keeper: subprocess.Popen[str]) -> tuple[int, int]:
    """Return the free and the total bytes of the file system.

    The folder of a killed probe has already been removed.
    """
    assert keeper.stdout is not None  # noqa: S101 -- a pipe was asked for
    text = keeper.stdout.readline().strip()
    folder = f"{looked.host}:{looked.folder / FOLDER}"
    state, _, space = text.partition(" ")
    if state == "ready":
        return _room(address, space)
    _, stderr = keeper.communicate(timeout=_END_S)
    match space:
        case "theirs":
            raise ForeignFolder(
                f"{folder}: exists already and was not created by Pinchpoint, so it is neither written "
                "to nor removed; move it away, or give another path"
            )
        case number if number.isdecimal():
            raise ForeignFolder(
                f"{folder}: another probe uses it (process {number}); wait until it ends. If no probe is "
                "running, remove that folder"
            )
        case "left" | "unmade":
            raise NoRoom(f"{folder}: cannot be created or cleared: {stderr.strip() or 'no reason given'}")
    raise HostUnreachable(ssh.why(address, keeper.returncode or ssh.SSH_FAILED, stderr))


def _room(address: Address, space: str) -> tuple[int, int]:
    """Return the free and the total bytes in the output of ``df -Pk``. Raises HostUnreachable."""
    cells = space.split()
    if len(cells) < 4 or not (cells[1].isdecimal() and cells[3].isdecimal()):
        raise HostUnreachable(
            f"{address}: the host did not report its free space: df printed {space[:200]!r}"
        )
    return int(cells[3]) * 1024, int(cells[1]) * 1024


def _end(keeper: subprocess.Popen[str]) -> None:
    """Close the keeper's input, which makes the keeper remove the folder, and wait until it has ended."""
    assert keeper.stdin is not None  # noqa: S101 -- a pipe was asked for
    with suppress(BrokenPipeError):
        keeper.stdin.close()
    try:
        keeper.wait(timeout=_END_S)
    except subprocess.TimeoutExpired:  # the connection is broken: the remote keeper ends by itself
        keeper.kill()
        keeper.wait()
    for stream in (keeper.stdout, keeper.stderr):
        if stream is not None:
            stream.close()


@contextmanager
def _beating(machine: RemoteMachine) -> Iterator[None]:
    """Send a sign of life to the keeper every few seconds."""
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(_BEAT_S):
            machine.report("beat")

    thread = threading.Thread(target=beat, name="probe-keeper", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
