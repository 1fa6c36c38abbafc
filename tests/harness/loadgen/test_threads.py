"""Sessions with drivers that block in C code get threads; the loop and the records are as usual."""

from __future__ import annotations

from pathlib import Path

from support import run_script

SCRIPT = Path(__file__).with_name("threads_script.py")


def test_sessions_that_block_wait_side_by_side() -> None:
    """Twenty blocking sessions run concurrently in one generator, with each load model's starts."""
    found = run_script(SCRIPT)
    long, short, paced, thinking = (found[name] for name in ("long", "short", "open", "thinking"))
    assert long["opened_s"] < 0.4, "one after the other: 0.4 s at least"
    assert 60 <= long["done"] <= 120, "twenty users, five each in a second; one thread would do five in all"
    assert short["done"] > 600, "two users of half a millisecond, with one hop for many operations"
    assert 60 <= paced["done"] <= 110
    assert paced["responses"] > 0, "an open load's operations keep their intended start"
    assert 12 <= thinking["done"] <= 24, "who thinks between operations does one at a time"
    for kind in (long, short, paced, thinking):
        assert kind["lag_s"] < 0.15
        assert kind["closed"] == kind["users"]
    assert found["raised"] == "an error of ours"
