"""The ``files`` tier: a folder of documents; with a delay, a real SMB share of this folder."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
from pathlib import Path

from pinchpoint_infra.embedded.place import STATE_VARIABLE
from pinchpoint_infra.embedded.record import FarmError
from pinchpoint_infra.embedded.tiers.contract import EmbeddedTier, new_secret, write_secret
from pinchpoint_infra.ports import free_port

_SHARE = "docs"
_PLACES = ("private dir", "lock directory", "state directory", "cache directory", "pid directory")
_PASSWORD_S = 20.0
_LONGEST_BYTES = 85
"""Longest path of the folder of Samba's sockets in bytes: unix(7) allows 107, including ``/msg.sock/PID``."""


def _program(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path="/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin")


def missing_for_a_share() -> str | None:
    """Return what this machine lacks for an SMB share, as a sentence; None if nothing is missing."""
    if os.geteuid() != 0:
        return "an SMB share needs root rights"
    if not (_program("smbd") and _program("smbpasswd")):
        return "an SMB share needs smbd and smbpasswd (Debian, Ubuntu: apt-get install samba)"
    return None


class FilesTier(EmbeddedTier):
    """A folder without a server; with a delay, Samba serves it as ``smb://.../docs``."""

    name = "files"
    endpoint_name = "files"

    @property
    def folder(self) -> Path:
        """The folder of the documents."""
        return self.directory / "content"

    @property
    def _served(self) -> bool:
        return self.far and missing_for_a_share() is None

    @property
    def _config(self) -> Path:
        return self.directory / "smb.conf"

    def prepare(self) -> None:
        """Create the folder (see ``EmbeddedTier``)."""
        self.folder.mkdir(exist_ok=True)
        if self._served:
            self._prepare_share()

    def _prepare_share(self) -> None:
        self.port, self._password = free_port(), new_secret()
        self._user = pwd.getpwuid(os.geteuid()).pw_name
        own = self.directory / "samba"
        if len(os.fsencode(own)) > _LONGEST_BYTES:
            raise FarmError(
                f"the share of the tier files cannot be made: {own} has {len(os.fsencode(own))} bytes, and "
                f"Samba's sockets allow {_LONGEST_BYTES}; name a shorter folder in {STATE_VARIABLE}"
            )
        own.mkdir(exist_ok=True, mode=0o700)
        lines = [
            "[global]",
            "server role = standalone server",
            "interfaces = 127.0.0.1",
            "bind interfaces only = yes",
            "disable netbios = yes",
            f"smb ports = {self.port}",
            "security = user",
            "passdb backend = tdbsam",
            *(f"{place} = {own}" for place in _PLACES),
            f"ncalrpc dir = {own}/rpc",
            "log level = 0",
            "load printers = no",
            "disable spoolss = yes",
            f"[{_SHARE}]",
            f"path = {self.folder}",
            "read only = yes",
        ]
        write_secret(self._config, "\n".join(lines) + "\n")
        try:
            subprocess.run(
                [str(_program("smbpasswd")), "-c", str(self._config), "-a", "-s", self._user],
                input=f"{self._password}\n{self._password}\n",
                text=True,
                check=True,
                capture_output=True,
                timeout=_PASSWORD_S,
            )
        except (OSError, subprocess.SubprocessError) as error:
            answer = getattr(error, "stderr", None) or error
            raise FarmError(f"the share of the tier files cannot be made: smbpasswd: {answer}") from error

    def command(self) -> list[str] | None:
        """Return the command of Samba; None without a delay."""
        if not self._served:
            return None
        # Samba has a session of its own already, and refuses to start in another new session.
        how = ["--foreground", "--no-process-group", "--debug-stdout"]
        return [str(_program("smbd")), *how, "-s", str(self._config)]

    def is_ready(self) -> bool:
        """Return whether the folder exists, or the share answers."""
        if not self._served:
            return self.folder.is_dir()
        try:
            socket.create_connection(("127.0.0.1", int(self.port or 0)), timeout=2).close()
        except OSError:
            return False
        return True

    def endpoint(self) -> dict[str, str]:
        if not self._served:
            return {"url": str(self.folder)}
        url = f"smb://127.0.0.1:{self.port}/{_SHARE}"
        return {"url": url, "user": self._user, "password": self._password}

    def disks(self) -> dict[str, Path]:
        """The folder of the documents."""
        return {"content": self.folder}
