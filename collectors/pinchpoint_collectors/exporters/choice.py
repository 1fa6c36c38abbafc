"""Which of a server's series are a host's: from farm.yaml's words to PromQL, and what it found. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pinchpoint_collectors.errors import CollectorError, OptionError
from pinchpoint_collectors.exporters.means import NAME, Labels
from pinchpoint_collectors.record import Watch

_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPECIAL = re.compile(r"([\\.+*?()|\[\]{}^$])")
_PORT = re.compile(r":\d+$")
_DURATION = re.compile(r"(\d+)(ms|[smhdwy])")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0, "y": 31536000.0}


@dataclass(frozen=True, slots=True)
class Target:
    """An exporter as Prometheus scrapes it; None: its series do not say."""

    job: str | None
    instance: str | None

    @classmethod
    def of(cls, labels: Mapping[str, str]) -> Target:
        """By the labels every series of it has."""
        return cls(labels.get("job"), labels.get("instance"))

    def __str__(self) -> str:
        return f"{self.instance or 'the exporter'} (job {self.job})" if self.job else str(self.instance)


def only_target(where: str, found: Iterable[Labels]) -> Target:
    """The one exporter all these series are of. Raises ``CollectorError`` where there are several."""
    targets = sorted({Target.of(labels) for labels in found}, key=str)
    if len(targets) > 1:
        shown = "; ".join(map(str, targets[:5]))
        raise CollectorError(
            f"{where}: several exporters fit: {shown}; say which with `instance:`, or `labels: {{job: ...}}`"
        )
    return targets[0]


def matchers(watch: Watch, where: str) -> str:
    """What selects the host's series, in PromQL. Raises ``OptionError``."""
    labels = watch.options.get("labels", {})
    if not isinstance(labels, Mapping) or not all(_LABEL.fullmatch(str(name)) for name in labels):
        said = f"found {labels!r}; allowed: names and values, as {{job: node}}"
        raise OptionError("labels", said, where)
    found = [f"{name}={_quoted(str(value))}" for name, value in labels.items()]
    if "instance" in watch.options or not labels:
        found.append(_instance(str(watch.options.get("instance", watch.host))))
    return ",".join(found)


def selector(names: Iterable[str], of: str) -> str:
    """Series of these names that ``matchers`` select."""
    return f'{{{NAME}=~"{"|".join(sorted(names))}",{of}}}'


def duration_s(text: str) -> float | None:
    """``1m30s`` as seconds; None where it is no duration of Prometheus'."""
    if not text or _DURATION.sub("", text):
        return None
    return sum(int(number) * _SECONDS[unit] for number, unit in _DURATION.findall(text))


def shown(watch: Watch) -> str:
    """The server's address without a login."""
    scheme, separator, rest = str(watch.options.get("url", "")).partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"


def _instance(given: str) -> str:
    """An instance with its port as it is, one without on any port."""
    if _PORT.search(given):
        return f"instance={_quoted(given)}"
    escaped = _SPECIAL.sub(r"\\\1", given)
    return f"instance=~{_quoted(f'{escaped}(:[0-9]+)?')}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
