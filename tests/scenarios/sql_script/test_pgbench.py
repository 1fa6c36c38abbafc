"""Comparison of the same script in pgbench and sql-script: same rows, same sums."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from bench.pgbench import program
from scenarios.sql_mix.helpers import ask
from scenarios.sql_script.helpers import prepared, written
from scenarios.support import Recorder

from pinchpoint_scenarios.contract import Endpoint

CLIENTS, TIMES, SEED = 3, 40, 17

SUMS = """SELECT count(*), sum(at), sum(amount), sum(rate)::numeric(20, 6), count(*) FILTER (WHERE fits),
    count(fits), sum(length(note)), count(DISTINCT client) FROM moved"""
ROWS = "SELECT client, at, amount, rate::numeric(30, 9), fits, note FROM moved ORDER BY 1, 2, 3, 4"

# No random numbers here, so the results must be equal.
COMPUTED = """\\set n :n + 1
\\set account 1 + (:n * 37 + :client_id * 11) % 100
\\set amount hash(:n, :client_id) % 1000 + hash_fnv1a(:n, 5) % 100 - hash_murmur2(:client_id, :n) % 10
\\set rate sqrt(:n) * pi() / (1 + :client_id) + exp(0.1) - ln(:n + 1) + pow(1.5, 2) + double(3) / 7
\\set bits (:n << 3 | 5) # (:n & 6) + ~ :client_id - greatest(:n, 20, 3) + least(:n, 4.0) * int(7.6)
\\set sign case when :n % 3 = 0 then -1 when :n % 3 = 1 then null else abs(-1) end
\\set fits :n > 20 and not :n % 2 = 0 or :sign is null
BEGIN;
UPDATE account SET balance = balance + :amount WHERE id = :account;
SELECT balance % 1000 AS rest, name AS name FROM account WHERE id = :account
\\gset of_
\\if :fits
INSERT INTO moved VALUES (:n, :client_id, :amount * :bits, :rate, :fits, $$fits$$);
\\elif :sign is not null and :n % 5 = 1
SELECT x AS last FROM generate_series(1, :n) x \\aset
INSERT INTO moved VALUES (:n, :client_id, :last * :scale, 0, false, 'elif');
\\else
INSERT INTO moved VALUES (:n, :client_id, :of_rest % 2 * 0, -:rate, NULL, 'else');
\\endif
\\sleep 100us
COMMIT; -- the end
"""
# The manual's example of \\aset: all results of combined statements become variables.
JOINED = """SELECT 4 AS four \\; SELECT x AS five FROM generate_series(1, 5) x \\;
    SELECT 1 AS six WHERE false \\aset
UPDATE account SET balance = balance + :four * :five WHERE id = 100;
"""


def _by_pgbench(endpoint: Endpoint, protocol: str, *more: str) -> str:
    command = [
        str(program()),
        "-n",
        "-M",
        protocol,
        "-c",
        str(CLIENTS),
        "-t",
        str(TIMES),
        "-D",
        "n=0",
        "-s",
        "4",
    ]
    done = subprocess.run(
        [*command, f"--random-seed={SEED}", *more, endpoint.url],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _by_us(endpoint: Endpoint, protocol: str, **params: Any) -> Recorder:
    recorder = Recorder()
    with prepared(endpoint, protocol=protocol, define={"n": 0}, scale=4, **params) as driver:
        for number in range(CLIENTS):
            session = driver.session(number)
            for _ in range(TIMES):
                session.perform(recorder)
            session.close()
    return recorder


@pytest.mark.parametrize("protocol", ["simple", "prepared"])
def test_what_a_script_computes_is_what_pgbench_computes(
    bank: Endpoint, tmp_path: Path, protocol: str
) -> None:
    r"""Operators, functions, branches, \gset and \aset give pgbench's rows, where chance has no part."""
    text = COMPUTED + JOINED if protocol == "simple" else _castable(COMPUTED)
    (script,) = written(tmp_path, computed=text)
    seen = []
    for run in (
        lambda: _by_pgbench(bank, protocol, "-f", script),
        lambda: _by_us(bank, protocol, scripts=script),
    ):
        run()
        seen.append(
            (ask(bank, SUMS), ask(bank, ROWS), ask(bank, "SELECT id, balance FROM account ORDER BY 1"))
        )
        ask(bank, "DELETE FROM moved")
        ask(bank, "UPDATE account SET balance = 0")
    assert seen[0][0][0][0] == CLIENTS * TIMES
    assert seen[0] == seen[1]


def _castable(text: str) -> str:
    """Return the text with types, because parameters have none: mixed expressions and nulls need them."""
    return (
        text.replace(":amount * :bits", ":amount::bigint * :bits::float8")
        .replace(":last * :scale", ":last::int * :scale::int")
        .replace(":of_rest % 2 * 0", ":of_rest::int % 2 * 0")
        .replace("-:rate", "-(:rate::float8)")
    )


def test_chance_has_the_same_shape(bank: Endpoint, tmp_path: Path) -> None:
    """The mean of each distribution is within the random error of pgbench's."""
    text = """INSERT INTO moved (client, at, amount, rate, note) VALUES
    (:client_id, :even, :bell, :falling, ':rank');
"""
    sets = """\\set even random(1, 1000)
\\set bell random_gaussian(1, 1000, 4.0)
\\set falling random_exponential(1, 1000, 3.0)
\\set rank random_zipfian(1, 1000, 1.5)
"""
    (script,) = written(tmp_path, chance=sets + text * 1 + (sets + text) * 9)
    question = """SELECT avg(at), avg(amount), avg(rate), avg(ln(note::float8)), stddev(amount), count(*)
        FROM moved"""
    seen = []
    for run in (
        lambda: _by_pgbench(bank, "simple", "-f", script),
        lambda: _by_us(bank, "simple", scripts=script),
    ):
        run()
        seen.append([float(each) for each in ask(bank, question)[0]])
        ask(bank, "DELETE FROM moved")
    theirs, ours = seen
    assert theirs[5] == ours[5] == CLIENTS * TIMES * 10
    # five standard errors of a mean of 1,200 draws; the widest distribution (uniform) has 8 % of its mean
    assert ours == pytest.approx(theirs, rel=0.17)


def test_scripts_and_weights_are_pgbenchs(bank: Endpoint, tmp_path: Path) -> None:
    """Several files with @weight have pgbench's shares."""
    often, rarely = written(
        tmp_path, often="INSERT INTO moved (at) VALUES (1);", rarely="INSERT INTO moved (at) VALUES (0);"
    )
    named = [f"{often}@3", f"{rarely}@1"]
    shares = []
    for run in (
        lambda: _by_pgbench(bank, "simple", "-f", named[0], "-f", named[1]),
        lambda: _by_us(bank, "simple", scripts=named),
    ):
        run()
        shares.append(float(ask(bank, "SELECT avg(at) FROM moved")[0][0]))
        ask(bank, "DELETE FROM moved")
    assert shares == pytest.approx([0.75, 0.75], abs=0.2)  # five standard errors of 120 draws
