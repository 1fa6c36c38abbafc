"""Reading the small files of /proc and /sys."""

from __future__ import annotations

import os


def read_text(path: str) -> str:
    """The whole file. Raises ``OSError``.

    By the system's own calls: every second some dozen to some hundred of these are read, and ``open`` with
    its buffer and text layer takes twice as long as the kernel does.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(descriptor, 1 << 16):
            parts.append(part)
    finally:
        os.close(descriptor)
    return b"".join(parts).decode("utf-8", "replace")


def read_fact(path: str) -> str | None:
    """The stripped text of a file that not every machine has; None where it is missing, empty or refused."""
    try:
        return read_text(path).strip() or None
    except OSError:  # not there, or (EINVAL) a device that has no answer: both mean "not known"
        return None
