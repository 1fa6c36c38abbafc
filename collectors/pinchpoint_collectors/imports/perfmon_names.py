"""Localised names of the counters that are used: German, French and Spanish, and any by the registry's index.

The names are those of Windows' own lists (registry, Perflib; ``Get-Counter -ListSet``). A Japanese Windows
has the English ones. Of Spanish only the names that are known from more than one real system are here.

Names are compared without their accented letters and apostrophes: a log is written in whatever code page its
system had, and they are what differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pinchpoint_collectors.imports.perfmon_counters import COUNTERS, NAMED_INSTANCE, REGISTRY
from pinchpoint_collectors.imports.record import ForeignFileError

LANGUAGES = ("English (also of a Japanese Windows)", "German", "French", "Spanish")

_GERMAN_DISK = {
    "Avg. Disk Queue Length": "Durchschnittl. Warteschlangenlänge des Datenträgers",
    "Current Disk Queue Length": "Aktuelle Warteschlangenlänge",
    "Avg. Disk sec/Transfer": "Mittlere Sek./Übertragung",
    "Avg. Disk sec/Read": "Mittlere Sek./Lesevorgänge",
    "Avg. Disk sec/Write": "Mittlere Sek./Schreibvorgänge",
    "Disk Transfers/sec": "Übertragungen/s",
    "Disk Reads/sec": "Lesevorgänge/s",
    "Disk Writes/sec": "Schreibvorgänge/s",
    "Disk Read Bytes/sec": "Bytes gelesen/s",
    "Disk Write Bytes/sec": "Bytes geschrieben/s",
    "% Idle Time": "Leerlaufzeit (%)",
}
_FRENCH_DISK = {
    "Avg. Disk Queue Length": "Longueur moyenne de file d'attente du disque",
    "Current Disk Queue Length": "Taille de file d'attente du disque actuelle",
    "Avg. Disk sec/Transfer": "Moyenne disque s/transfert",
    "Avg. Disk sec/Read": "Moyenne disque s/lecture",
    "Avg. Disk sec/Write": "Moyenne disque s/écriture",
    "Disk Transfers/sec": "Transferts disque/s",
    "Disk Reads/sec": "Lectures disque/s",
    "Disk Writes/sec": "Écritures disque/s",
    "Disk Read Bytes/sec": "Lectures disque, octets/s",
    "Disk Write Bytes/sec": "Écritures disque, octets/s",
    "% Idle Time": "% d'inactivité",
}
_SPANISH_DISK = {
    "Avg. Disk Queue Length": "Longitud promedio de la cola de disco",
    "Current Disk Queue Length": "Longitud actual de la cola de disco",
    "Avg. Disk sec/Read": "Promedio de segundos de disco/lectura",
    "Avg. Disk sec/Write": "Promedio de segundos de disco/escritura",
    "Disk Transfers/sec": "Transferencias de disco/s",
    "Disk Reads/sec": "Lecturas de disco/s",
    "Disk Writes/sec": "Escrituras en disco/s",
    "Disk Read Bytes/sec": "Bytes de lectura de disco/s",
    "Disk Write Bytes/sec": "Bytes de escritura en disco/s",
    "% Idle Time": "% de tiempo inactivo",
}

Language = Mapping[str, tuple[str, Mapping[str, str]]]
"""English object -> (its name, English counter -> its name)."""

_LOCALISED: tuple[Language, ...] = (
    {
        "LogicalDisk": ("Logischer Datenträger", _GERMAN_DISK),
        "PhysicalDisk": ("Physikalischer Datenträger", _GERMAN_DISK),
        "Processor": ("Prozessor", {"% Processor Time": "Prozessorzeit (%)"}),
        "Processor Information": ("Prozessorinformationen", {"% Processor Time": "Prozessorzeit (%)"}),
        "Memory": (
            "Arbeitsspeicher",
            {
                "Available Bytes": "Verfügbare Bytes",
                "Available KBytes": "Verfügbare KB",
                "Available MBytes": "Verfügbare MB",
                "Pages Input/sec": "Seiteneingabe/s",
            },
        ),
        "System": ("System", {"Processor Queue Length": "Prozessor-Warteschlangenlänge"}),
        "Network Interface": (
            "Netzwerkschnittstelle",
            {
                "Bytes Received/sec": "Empfangene Bytes/s",
                "Bytes Sent/sec": "Bytes gesendet/s",
                "Current Bandwidth": "Aktuelle Bandbreite",
            },
        ),
    },
    {
        "LogicalDisk": ("Disque logique", _FRENCH_DISK),
        "PhysicalDisk": ("Disque physique", _FRENCH_DISK),
        "Processor": ("Processeur", {"% Processor Time": "% temps processeur"}),
        "Processor Information": (
            "Informations sur le processeur",
            {"% Processor Time": "% temps processeur"},
        ),
        "Memory": (
            "Mémoire",
            {
                "Available Bytes": "Octets disponibles",
                "Available KBytes": "Kilo-octets disponibles",
                "Available MBytes": "Mégaoctets disponibles",
                "Pages Input/sec": "Pages en entrée/s",
                "Pages Output/sec": "Pages en sortie/s",
            },
        ),
        "System": ("Système", {"Processor Queue Length": "Longueur de la file du processeur"}),
        "Network Interface": (
            "Interface réseau",
            {
                "Bytes Received/sec": "Octets reçus/s",
                "Bytes Sent/sec": "Octets envoyés/s",
                "Current Bandwidth": "Bande passante actuelle",
            },
        ),
    },
    {
        "LogicalDisk": ("Disco lógico", _SPANISH_DISK),
        "PhysicalDisk": ("Disco físico", _SPANISH_DISK),
        "Processor": ("Procesador", {"% Processor Time": "% de tiempo de procesador"}),
        "Processor Information": (
            "Información del procesador",
            {"% Processor Time": "% de tiempo de procesador"},
        ),
        "Memory": ("Memoria", {"Available MBytes": "Mbytes disponibles"}),
        "System": ("Sistema", {"Processor Queue Length": "Longitud de la cola del procesador"}),
        "Network Interface": (
            "Interfaz de red",
            {"Bytes Received/sec": "Bytes recibidos/s", "Bytes Sent/sec": "Bytes enviados/s"},
        ),
    },
)


def folded(name: str) -> str:
    """A name as it is compared: small letters of ASCII, single spaces, no apostrophe."""
    kept = "".join(letter for letter in name.casefold() if letter.isascii() and letter != "'")
    return " ".join(kept.split())


def _english() -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    for name, counters in COUNTERS.items():
        for counter in counters:
            yield (folded(name), folded(counter)), (name, counter)


def _localised(language: Language) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    for name, (local, counters) in language.items():
        for counter, local_counter in counters.items():
            yield (folded(local), folded(local_counter)), (name, counter)


_KNOWN: Mapping[tuple[str, str], tuple[str, str]] = {
    **{local: ours for language in _LOCALISED for local, ours in _localised(language)},
    **dict(_english()),
}


def english(name: str, counter: str, names: Mapping[str, frozenset[int]]) -> tuple[str, str] | None:
    """An object and its counter by their English names; None where they are none of those that are used.

    Args:
        name: of the object, as in the file.
        counter: likewise.
        names: what the registry of the system says, from ``registry_names``; empty where it is not known.
    """
    plain = NAMED_INSTANCE.sub("SQLServer:", name)
    known = _KNOWN.get((folded(plain), folded(counter)))
    if known is not None or not names:
        return known
    objects, counters = (names.get(folded(each), frozenset()) for each in (name, counter))
    for ours, its in COUNTERS.items():
        if REGISTRY.get(ours) in objects:
            return next(((ours, each) for each in its if REGISTRY.get(each) in counters), None)
    return None


def registry_names(lines: Iterable[str]) -> dict[str, frozenset[int]]:
    r"""A system's own list of counter names, one index and one name in turn, a line each.

    That is what ``(Get-ItemProperty 'HKLM:\SOFTWARE\Microsoft\Windows NT\CurrentVersion\Perflib\
    CurrentLanguage').Counter`` prints in PowerShell.

    Returns:
        Name (``folded``) -> the indices that have it.

    Raises:
        ForeignFileError: it is no such list.
    """
    found: dict[str, set[int]] = {}
    index: int | None = None
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if index is not None:
            found.setdefault(folded(text), set()).add(index)
            index = None
        elif text.isdecimal():
            index = int(text)
        elif text:
            raise ForeignFileError(
                f"found {text[:60]!r} where the index of a counter name should be; allowed: an index and a "
                "name in turn, a line each, as the registry's Perflib\\CurrentLanguage, value Counter, has "
                "them",
                number,
            )
    return {name: frozenset(indices) for name, indices in found.items()}
