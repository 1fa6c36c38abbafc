"""``make fuzz``: process damaged inputs of every kind, up to a time or a number of inputs.

Each input must be accepted or refused with a message. Any other exception, more than ``MOST_CPU_S`` of CPU
time, or more than ``MOST_BYTES`` of additional memory is an error. The input of each error is written to
``build/fuzz/``, the table to ``build/fuzz.json``.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import pickle
import re
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fuzz.kinds import Kind, kinds, workplace
from hypothesis import HealthCheck, Phase, given, seed, settings

MOST_CPU_S = 20.0
MOST_BYTES = 10**9
_HANGS_S = 600.0
_ROUND = 25
"""Number of inputs per round of a kind with weight 1."""
BUILD = Path(__file__).parents[2] / "build"


class Hang(BaseException):
    """An input took too long; a BaseException, so that no handler of the product catches it."""


class TooMuchMemoryError(AssertionError):
    """An input took too much memory."""


@dataclass(slots=True)
class Tally:
    """Counts of the inputs of one kind."""

    kind: str
    inputs: int = 0
    accepted: int = 0
    seconds: float = 0.0
    peak_bytes: int = 0
    faults: list[str] = field(default_factory=list)


def _rss() -> int:
    return int(re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024  # type: ignore[index]


def _peak() -> int:
    return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024  # type: ignore[index]


@contextmanager
def bounded(tally: Tally) -> Iterator[None]:
    """Limit the CPU time and the memory of one input."""

    def over(*_: object) -> None:
        raise Hang(f"more than {MOST_CPU_S:g} s of processor time")

    Path("/proc/self/clear_refs").write_text("5")  # reset the peak memory
    before, begun = _rss(), time.process_time()
    signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, MOST_CPU_S)
    faulthandler.dump_traceback_later(_HANGS_S, exit=True)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()
        tally.seconds += time.process_time() - begun
    grown = _peak() - before
    tally.peak_bytes = max(tally.peak_bytes, grown)
    if grown > MOST_BYTES:
        raise TooMuchMemoryError(f"{grown / 1e9:.1f} GB of memory")


def fuzz(kind: Kind, number: int, inputs: int, tally: Tally) -> None:
    """Process ``inputs`` inputs of a kind; the first error is stored with its traceback."""
    last: list[Any] = []

    @seed(number)
    @settings(
        max_examples=inputs,
        deadline=None,
        database=None,
        print_blob=False,
        report_multiple_bugs=False,
        phases=(Phase.generate,),  # shrinking takes an hour when one input takes a second
        suppress_health_check=list(HealthCheck),
    )
    @given(kind.inputs)
    def one(content: Any) -> None:
        last[:] = [content]
        tally.inputs += 1
        with bounded(tally):
            tally.accepted += kind.perform(content)

    try:
        one()
    except (Exception, Hang) as error:  # noqa: BLE001 -- every fault is one
        _keep(kind, last[0], error, tally)


def _keep(kind: Kind, content: Any, error: BaseException, tally: Tally) -> None:
    said = "".join(traceback.format_exception(error))
    where = re.findall(r'File "[^"]*/(pinchpoint\w*/[^"]+)", line (\d+)', said)
    place = ":".join(where[-1]) if where else "?"
    words = [*str(error).strip().splitlines(), ""][:-1][-1:]
    fault = f"{kind.name}: {type(error).__name__} at {place}: {''.join(words)[:200]}"
    if fault in tally.faults:
        return
    tally.faults.append(fault)
    folder = BUILD / "fuzz"
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{kind.name}-{len(list(folder.glob(kind.name + '-*.txt'))) + 1}"
    (folder / f"{stem}.pickle").write_bytes(pickle.dumps(content))
    shown = f"{fault}\n\n{repr(content)[:20_000]}\n\n{said[-20_000:]}"
    (folder / f"{stem}.txt").write_text(shown, errors="replace")
    print(f"FAULT {fault} -> build/fuzz/{stem}.txt", flush=True)


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, help="end after so long, in place of a number of inputs")
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default="", help="only kinds whose names begin with one of these")
    parser.add_argument("--replay", type=Path, help="a .pickle of build/fuzz: that input alone")
    asked = parser.parse_args()
    soft = resource.getrlimit(resource.RLIMIT_DATA)[1]
    # an allocation fails before the machine runs out of memory
    resource.setrlimit(resource.RLIMIT_DATA, (6 * MOST_BYTES, soft))
    with workplace():
        return _fuzzed(asked)


def _fuzzed(asked: argparse.Namespace) -> int:
    chosen = [one for one in kinds() if one.name.startswith(tuple(asked.kinds.split()) or ("",))]
    if asked.replay:
        name = asked.replay.stem.rpartition("-")[0]
        [kind] = [one for one in chosen if one.name == name]
        with bounded(Tally(name)):
            print(kind.perform(pickle.loads(asked.replay.read_bytes())))  # noqa: S301 -- our own
        return 0
    tallies = {one.name: Tally(one.name) for one in chosen}
    begun, number = time.monotonic(), asked.seed
    while not _over(asked, tallies, begun):
        for kind in chosen:
            if _over(asked, tallies, begun):
                break
            fuzz(kind, number, _ROUND * kind.weight, tallies[kind.name])
        number += 1
    _show(tallies)
    return int(any(tally.faults for tally in tallies.values()))


def _over(asked: argparse.Namespace, tallies: dict[str, Tally], begun: float) -> bool:
    if asked.seconds:
        return bool(time.monotonic() - begun >= asked.seconds)
    return bool(sum(tally.inputs for tally in tallies.values()) >= asked.inputs)


def _show(tallies: dict[str, Tally]) -> None:
    BUILD.mkdir(exist_ok=True)
    (BUILD / "fuzz.json").write_text(json.dumps([asdict(each) for each in tallies.values()], indent=1) + "\n")
    print(f"{'kind':20} {'inputs':>7} {'accepted':>9} {'CPU s':>7} {'peak MB':>8} {'faults':>7}")
    for each in tallies.values():
        print(
            f"{each.kind:20} {each.inputs:7} {each.accepted:9} {each.seconds:7.1f} "
            f"{each.peak_bytes / 1e6:8.0f} {len(each.faults):7}"
        )
    total = Counter(inputs=sum(each.inputs for each in tallies.values()))
    faults = [fault for each in tallies.values() for fault in each.faults]
    print(f"{total['inputs']} inputs, {len(faults)} faults")
    for fault in faults:
        print(f"  {fault}")


if __name__ == "__main__":
    sys.exit(main())
