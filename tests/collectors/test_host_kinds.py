"""What all kinds that watch a host have in common, before anything is reached."""

from __future__ import annotations

from typing import Any

import pytest

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Watch
from pinchpoint_collectors.registry import kind

KINDS: dict[str, dict[str, Any]] = {
    "local": {},
    "ssh": {"address": "sql1"},
    "agent": {"address": "sql1"},
    "windows": {"address": "sql1", "user": "w", "password": "hunter2"},
}
"""Kind -> the least that farm.yaml has to say."""
PORT = "allowed: a number from 1 to 65535"


@pytest.mark.parametrize("name", KINDS)
def test_one_host_twice_is_refused(name: str) -> None:
    """Its samples would be there twice."""
    twice = [Watch("db1", tier, options=KINDS[name]) for tier in ("sql", "nosql")]
    with pytest.raises(CollectorError, match=f"'db1' is watched by '{name}' more than once"):
        kind(name).connect(twice)


@pytest.mark.parametrize("name", KINDS)
def test_hosts_of_one_machine_share_a_collector(name: str) -> None:
    """Whatever else they say."""
    watches = [
        Watch("sql1", "sql", options=KINDS[name]),
        Watch("web1", "web", {"log": "/x"}, options=KINDS[name]),
    ]
    assert len({kind(name).machine(each) for each in watches}) == 1


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("local", {"process": []}, r"process: found \[\]; allowed: a name or a list of names"),
        ("local", {"process": 5}, "process: found 5"),
        ("local", {"port": "5432"}, f"port: found '5432'; {PORT}"),
        ("local", {"port": True}, "port: found True"),
        (
            "local",
            {"port": 5432, "process": "postgres"},
            "port: given beside `process`; allowed: one of them",
        ),
        ("ssh", {"interval": "5s"}, "interval: found '5s'; allowed: a duration from 100ms to 1s"),
        ("ssh", {"interval": 1}, "interval: found 1"),
        ("ssh", {"address": None}, "address: missing"),
        ("ssh", {"port": 0}, f"port: found 0; {PORT}"),
        ("agent", {"address": None}, "address: missing"),
        ("agent", {"folder": "-x"}, "folder: found '-x'; allowed: a path on the host"),
        ("windows", {"address": None}, "address: missing"),
        ("windows", {"port": 0}, f"port: found 0; {PORT}"),
        ("windows", {"interval": "1ms"}, "interval: found '1ms'; allowed: a duration from 200ms to 15s"),
    ],
)
def test_wrong_options_name_host_and_collector(name: str, options: dict[str, Any], said: str) -> None:
    """What was found, what is allowed; a password is in no message."""
    with pytest.raises(CollectorError, match=f"host 'sql1', collector '{name}': {said}") as caught:
        kind(name).connect([Watch("sql1", "sql", options={**KINDS[name], **options})])
    assert "hunter2" not in str(caught.value)
