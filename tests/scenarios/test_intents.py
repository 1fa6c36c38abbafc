"""Tests of the intent of each scenario in the registry, which it states before it does anything."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pinchpoint_scenarios.contract import Endpoint, Intent, ScenarioContext
from pinchpoint_scenarios.registry import SCENARIOS

SECRET = "5ecret-canary"
NOWHERE = "db.invalid"
"""A host without a server: an intent must not connect."""
ENDPOINTS = {
    "sql": Endpoint("sql", f"postgresql://me:{SECRET}@{NOWHERE}/loadtest", {"cache_bytes": str(64 << 20)}),
    "nosql": Endpoint("nosql", f"valkey://:{SECRET}@{NOWHERE}/0"),
    "search": Endpoint("search", f"http://me:{SECRET}@{NOWHERE}:8200", {"kind": "pinchpoint"}),
    "sharepoint": Endpoint("sharepoint", f"http://{NOWHERE}/sites/x", {"auth": "bearer", "token": SECRET}),
    "crawler": Endpoint("crawler", f"ssh://{NOWHERE}", {"user": "me", "password": SECRET}),
}


LOGGED = (
    '{{"timestamp":"2026-11-21 20:15:0{}.100 UTC","dbname":"shop","session_id":"6a.47",'
    '"error_severity":"LOG","message":"duration: 2.500 ms  statement: {}","backend_type":"client backend"}}\n'
)


def params(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return scenario -> tested parameters: none if possible, and other kinds."""
    (folder / "pay.sql").write_text("BEGIN;\nUPDATE a SET n = 1;\nSELECT 1;\nCOMMIT;\n")
    (folder / "postgresql.json").write_text(
        LOGGED.format(1, "SELECT 1") + LOGGED.format(2, "UPDATE t SET n = 1")
    )
    return {
        "full-crawl": [{}, {"mode": "incremental"}, {"drive": "native"}],
        "sql-mix": [{}, {"preset": "bulk"}, {"operations": {"lock_contend": 1, "spill": 1, "range_scan": 1}}],
        "nosql-burst": [{}, {"operations": {"read": 1, "insert": 3}, "batch": 5}],
        "storage-probe": [{"folder": str(folder)}, {"folder": str(folder), "suite": "bonnie"}],
        "sql-script": [{"scripts": str(folder / "pay.sql")}],
        "sql-replay": [{"capture": str(folder / "postgresql.json")}],
    }


def intent_of(use: str, given: Mapping[str, Any], **more: Any) -> Intent:
    kind = SCENARIOS[use]
    context = ScenarioContext(
        "orders",
        ENDPOINTS,
        kind.params_model.model_validate(given),
        1,
        0,
        1,
        0.0,
        lambda *_, **__: None,
        **more,
    )
    return kind(context).intent()


def test_every_scenario_is_asked(tmp_path: Path) -> None:
    """Each scenario of the registry is tested."""
    assert set(params(tmp_path)) == set(SCENARIOS)
    assert all("intent" in vars(kind) for kind in SCENARIOS.values())


@pytest.mark.parametrize("use", sorted(SCENARIOS))
def test_an_intent_names_targets_operations_and_what_is_removed_but_no_secret(
    use: str, tmp_path: Path
) -> None:
    """An intent names targets, operations and removed data, connects to nothing and writes nothing."""
    tried = params(tmp_path)[use]
    before = sorted(tmp_path.iterdir())
    for given in tried:
        intent = intent_of(use, given)
        assert any(target.use == "written" for target in intent.targets)
        assert intent.sent
        assert intent.removed
        assert SECRET not in repr(intent)
        shares = [one.share for one in intent.sent if one.share is not None]
        assert not shares or sum(shares) == pytest.approx(1)
    assert sorted(tmp_path.iterdir()) == before


def test_a_capture_s_statements_are_counted_by_their_first_words(tmp_path: Path) -> None:
    """A capture's statements are counted by their first words; their writes are not known."""
    [given] = params(tmp_path)["sql-replay"]
    intent = intent_of("sql-replay", given)
    assert intent.at_most == 2
    assert {one.operation: one.share for one in intent.sent} == {"select": 0.5, "update": 0.5}
    assert {one.rows for one in intent.sent} == {None}


def test_rows_and_bytes_of_a_mix_follow_from_its_parameters() -> None:
    """Rows and bytes follow from the parameters: twice 64 MiB of cache, four rows per page."""
    intent = intent_of(
        "sql-mix", {"operations": {"log_batch": 1, "point_read": 3}, "batch_rows": 10, "row_bytes": 50}
    )
    made = {one.what: (one.rows, one.size_bytes) for one in intent.prepared}
    assert made == {"table data": (65536, 128 << 20), "table log": (0, 0)}
    sent = {one.operation: (one.share, one.rows, one.size_bytes) for one in intent.sent}
    assert sent == {"log_batch": (0.25, 10, 500), "point_read": (0.75, 0, 0)}
    assert intent.targets[0].inside == "database loadtest, schema pinchpoint_orders"


def test_a_crawl_says_that_it_resets_the_index_and_an_incremental_one_does_not() -> None:
    """A full crawl's notes name the reset of the index; an incremental crawl's do not."""
    full, following = intent_of("full-crawl", {}), intent_of("full-crawl", {"mode": "incremental"})
    assert any("is deleted when the crawl starts" in note for note in full.notes)
    assert not any("is deleted" in note for note in following.notes)
    assert following.removed == "nothing"


def test_a_farm_s_own_crawl_resets_its_index_only_where_that_was_asked_for() -> None:
    """A farm's own crawl resets the index only if its name was given."""
    asked = intent_of("full-crawl", {"drive": "native"}, reset_index=("Search 1",))
    assert "'Search 1' is emptied" in asked.sent[0].what
    assert len(intent_of("full-crawl", {"drive": "native"}).sent) == 1
