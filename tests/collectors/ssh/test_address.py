"""Tests of a host's address, of the ssh command line, and of ssh's errors as sentences."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support import require

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.linux_over_ssh.script import END, RECEIVE
from pinchpoint_collectors.remote import ssh
from pinchpoint_collectors.remote.ssh import Address

SHELLS = ("sh", "dash", "bash", "csh", "tcsh", "fish", "zsh")  # each in a package of the same name


def test_the_command_line_asks_nobody_and_holds_no_secret(tmp_path: Path) -> None:
    """The command line has BatchMode, timeouts, no shared connection, and the given options."""
    key, config = tmp_path / "key", tmp_path / "config"
    key.touch()
    config.touch()
    address = Address.of(
        {"address": "sql1", "user": "w", "port": 2222, "identity": str(key), "config": str(config)}
    )
    line = ssh.argv(address, "uptime")
    assert line[:2] == ["ssh", "-T"]
    assert line[-3:] == ["--", "sql1", "uptime"]
    for setting in ("BatchMode=yes", "ConnectTimeout=5", "ServerAliveInterval=5", "ControlMaster=no"):
        assert line[line.index(setting) - 1] == "-o"
    pairs = list(itertools.pairwise(line))
    for pair in (("-F", str(config)), ("-i", str(key)), ("-l", "w"), ("-p", "2222")):
        assert pair in pairs
    assert not any("StrictHostKeyChecking" in word or "UserKnownHostsFile" in word for word in line)


def test_what_is_not_given_is_left_to_the_users_configuration() -> None:
    """An alias of ~/.ssh/config is enough; other settings are left to the user's configuration."""
    line = ssh.argv(Address.of({"address": "db-behind-bastion"}), "uptime")
    assert not {"-F", "-i", "-l", "-p"} & set(line)


def test_user_at_host() -> None:
    """user@host and a bracketed IPv6 address with a port are parsed."""
    assert Address.of({"address": "admin@sql1"}) == Address("sql1", user="admin")
    assert str(Address("fe80::1", "admin", 22)) == "admin@[fe80::1]:22"
    assert str(Address("sql1")) == "sql1"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "address: missing"),
        ({"address": "-oProxyCommand=reboot"}, "address: found '-oProxyCommand=reboot'"),
        ({"address": "sql1 reboot"}, "address: found 'sql1 reboot'"),
        ({"address": "a@sql1", "user": "b"}, "user: found 'b' beside 'a@sql1'"),
        ({"address": "@sql1"}, "allowed: HOST or USER@HOST"),
        ({"address": "root@-oProxyCommand=reboot"}, "allowed: HOST or USER@HOST"),
        ({"address": "sql1", "port": "22"}, "port: found '22'; allowed: a number from 1 to 65535"),
        ({"address": "sql1", "port": True}, "port: found True"),
        ({"address": "sql1", "identity": "key"}, "identity: found 'key'; allowed: an absolute path"),
        ({"address": "sql1", "config": "/no/such/file"}, "config: /no/such/file is no file"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    """A wrong option gives the field, value and allowed values; an address cannot be an ssh option."""
    with pytest.raises(CollectorError) as caught:
        Address.of(options)
    assert message in str(caught.value)


_CHANGED = """\
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
Host key for sql1 has changed and you have requested strict checking.
Host key verification failed.
"""
_ALL = (
    "No ED25519 host key is known for sql1 and you have requested strict checking.\n"
    "Host key verification failed.\n"
)
_OPEN = """\
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@         WARNING: UNPROTECTED PRIVATE KEY FILE!          @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
Permissions 0644 for '/home/w/key' are too open.
w@sql1: Permission denied (publickey).
"""
_CONFIG = (
    "/home/w/farm.ssh: line 2: Bad configuration option: x\n"
    "/home/w/farm.ssh: terminating, 1 bad configuration options\n"
)


@pytest.mark.parametrize(
    ("status", "said", "words"),
    [
        (255, _ALL, "host key is not known here; connect once by hand (`ssh sql1`)"),
        (255, _CHANGED, "its host key is another than known_hosts says"),
        (
            255,
            "w@sql1: Permission denied (publickey,password).",
            "no key of ours (it takes publickey,password)",
        ),
        (255, "ssh: connect to host sql1 port 22: Connection refused", "nothing listens there; start sshd"),
        (255, "ssh: connect to host sql1 port 22: Connection timed out", "did not answer within 5 s"),
        (255, "ssh: connect to host sql1 port 22: No route to host", "no way leads there"),
        (
            255,
            "ssh: Could not resolve hostname sql1: Name or service not known",
            "its name is not known here",
        ),
        (255, _OPEN, "others may read the private key; `chmod 600` it"),
        (
            255,
            _CONFIG,
            "correct the ssh configuration: /home/w/farm.ssh: line 2: Bad configuration option: x",
        ),
        (255, "Timeout, server sql1 not responding.", "the link was cut"),
        (255, "Connection closed by 10.0.0.1 port 22", "sshd closed the connection"),
        (255, "Connection to sql1 closed by remote host.", "sshd closed the connection"),
        (255, "", "ssh failed: without a word, as it gives up a link that was cut; try `ssh sql1`"),
        (1, "This account is currently not available.", "there is no shell that runs our commands"),
        (127, "sh: 1: exec: /bin/sh: not found", "there is no shell that runs our commands"),
        (2, "cat: /x: Permission denied", "the command ended with status 2: cat: /x: Permission denied"),
    ],
)
def test_failures_are_sentences_with_a_remedy(status: int, said: str, words: str) -> None:
    """Each error of OpenSSH 9.2 becomes a sentence with a remedy and ssh's last line."""
    sentence = ssh.why(Address("sql1"), status, said)
    assert sentence.startswith("sql1: ")
    assert words in sentence
    if said and status == 255:
        assert said.strip().splitlines()[-1] in sentence


def test_a_machine_without_ssh_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without ssh, the error names the package to install."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CollectorError, match="install OpenSSH's client"):
        ssh.run(Address("sql1"), "uptime")


def test_a_command_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A command that does not end gives an error with the time limit; `ssh` is a program that sleeps here."""
    fake = tmp_path / "ssh"
    fake.write_text("#!/bin/sh\nexec /bin/sleep 20\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CollectorError, match=r"did not end within 0\.2 s"):
        ssh.run(Address("sql1"), "uptime", timeout_s=0.2)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_reaches_a_posix_shell_through_any_login_shell(shell: str) -> None:
    """Any login shell passes a script to a POSIX shell; sshd passes the whole command after -c."""
    command = ssh.shell('printf "%s|" "$0" *.nothing; case $1 in ("") echo "it is";; esac')
    program = require(shell, shell)
    done = subprocess.run([program, "-c", command], capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout == "/bin/sh|*.nothing|it is\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_is_received_line_by_line_and_no_further(shell: str) -> None:
    """The shell reads exactly the script's lines, so that later input reaches the script."""
    text = 'say() { echo "$1!"; }\nread -r word\nsay \'it is\' \\\n  # a comment\nsay "$word"\n'
    done = subprocess.run(
        [require(shell, shell), "-c", RECEIVE],
        input=f"{text}{END}\nsaid later\n",
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
    )
    assert done.stdout == "it is!\nsaid later!\n"
