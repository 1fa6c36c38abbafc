"""Lists the logins of a site: the values of ``auth``, and the options of each."""

from __future__ import annotations

from collections.abc import Collection, Mapping

LOGINS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "none": ((),),
    "basic": (("user", "password"),),
    "bearer": (("token",),),
    "cookies": (("cookies",),),
    "ntlm": (("user", "password"),),
    "kerberos": ((), ("user",), ("user", "password")),
    "entra": (
        ("tenant", "client", "secret"),
        ("tenant", "client", "certificate"),
        ("tenant", "client", "certificate", "password"),
    ),
}
"""``auth`` -> sets of options, the smallest first."""

LOGIN_OPTIONS = tuple(dict.fromkeys(name for ways in LOGINS.values() for way in ways for name in way))
"""All options of a login."""


def missing(auth: str, given: Collection[str]) -> tuple[str, ...]:
    """Return the options that ``auth`` still needs; of several sets, those of the nearest one."""
    return min((tuple(name for name in way if name not in given) for way in LOGINS[auth]), key=len)
