"""Tests of the ring: readings come back by lines, within its limits, also after a crash and a restart."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from pinchpoint_collectors.agent.codec import Decoder, Encoder, RingReading
from pinchpoint_collectors.agent.command import Config, Ring, RingReader, main
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Sample

HOUR_NS = 3_600_000_000_000
ABOUT = {"interval_s": 1.0, "process": []}


def reading(at_ns: int, instances: int = 3) -> RingReading:
    samples = [
        Sample(at_ns, 1.0, "", "disk.write_latency_s", f"sd{number}", 0.0028, 12.0)
        for number in range(instances)
    ]
    return RingReading(at_ns, [*samples, Sample(at_ns - 5, 0.5, "", "cpu.steal_ratio", "", None)])


def held(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("readings-*"))


def test_a_reading_comes_back_as_it_was() -> None:
    """A reading with nulls, weights and repeated metrics comes back the same; names are written once."""
    encoder, decoder = Encoder(), Decoder()
    first, second = (encoder.encode(reading(at)) for at in (10, 20))
    assert decoder.decode(first) == reading(10)
    assert decoder.decode(second) == reading(20)
    assert "write_latency" not in second
    with pytest.raises(ValueError, match="no reading"):
        Decoder().decode(second)  # the first reading contained its names


def test_what_is_appended_is_read_at_once(tmp_path: Path) -> None:
    """A reader gets new readings from a position, or from now on, each once."""
    ring = Ring(tmp_path, 1, 1 << 20, ABOUT)
    for at in (10, 20, 30):
        ring.append(reading(at))
    reader, later = RingReader(tmp_path, 10), RingReader(tmp_path, None)
    assert [each.at_ns for each in reader.new()] == [20, 30]
    assert list(later.new()) == []
    ring.append(reading(40))
    assert list(reader.new()) == list(later.new()) == [reading(40)]
    assert list(reader.new()) == []
    for one in (reader, later, ring):
        one.close()


def test_a_reader_follows_from_one_segment_to_the_next(tmp_path: Path) -> None:
    """Ten thousand readings over many segments arrive once and in order, and the ring keeps its size."""
    size = 1 << 20
    ring = Ring(tmp_path, 1000, size, ABOUT)
    reader = RingReader(tmp_path, 0)
    found, written = [], 10_000
    for at in range(1, written + 1):
        ring.append(reading(at))
        if at % 100 == 0:
            found += [each.at_ns for each in reader.new()]
            assert held(tmp_path) <= size
    assert found == list(range(1, written + 1))
    late = RingReader(tmp_path, 0)
    kept = [each.at_ns for each in late.new()]
    assert late.dropped
    assert kept[0] == late.oldest_ns
    assert kept == list(range(kept[0], written + 1))
    assert held(tmp_path) > size // 2
    for one in (reader, late, ring):
        one.close()


def test_what_is_too_old_is_dropped(tmp_path: Path) -> None:
    """Of ten hours the ring keeps at least two hours, and at most twenty minutes more."""
    ring = Ring(tmp_path, 2, 1 << 30, ABOUT)
    last = 600
    for minute in range(1, last + 1):
        ring.append(reading(minute * HOUR_NS // 60))
    with closing(RingReader(tmp_path, 0)) as reader:
        kept = [each.at_ns * 60 // HOUR_NS for each in reader.new()]
    ring.close()
    assert last - kept[0] in range(120, 140)


def test_a_torn_line_and_a_clock_set_back(tmp_path: Path) -> None:
    """After a crash in mid-line, or with the clock set back, the next process writes at later positions."""
    ring = Ring(tmp_path, 1, 1 << 20, ABOUT)
    ring.append(reading(1000))
    ring.close()
    (segment,) = tmp_path.glob("readings-*")
    with segment.open("a") as file:
        file.write('{"at":2000,"rows":[[')
    again = Ring(tmp_path, 1, 1 << 20, ABOUT)
    again.append(reading(500))
    again.close()
    with closing(RingReader(tmp_path, 0)) as reader:
        assert [each.at_ns for each in reader.new()] == [1000, 1001]


def test_where_nobody_records_it_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``tail`` without a recorder gives one sentence with the remedy and exit status 1."""
    assert main(["tail", "--folder", str(tmp_path)]) == 1
    assert "systemctl start pinchpoint-collect" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hour = 3", "hour: unknown; allowed: folder, hours"),
        ("hours = 'x'", "hours: found 'x'; allowed: a number from 0.01"),
        ("hours = true", "hours: found True"),
        ("size_bytes = 10", "size_bytes: found 10; allowed: a number from 1.04858e+06"),
        ("folder = 'here'", "an absolute path"),
        ("disks = 'sda'", "a list of names"),
        ("hours = ", "give a TOML file"),
    ],
)
def test_a_wrong_configuration_is_said(text: str, said: str, tmp_path: Path) -> None:
    """A wrong configuration is an error with file, key, value and allowed values."""
    path = tmp_path / "collect.toml"
    path.write_text(text)
    with pytest.raises(CollectorError) as caught:
        Config.of(path)
    assert str(path) in str(caught.value)
    assert said in str(caught.value)
