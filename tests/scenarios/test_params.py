"""Tests of parameters: allowed values, and the errors of others."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from pinchpoint_scenarios.full_crawl.params import FullCrawlParams
from pinchpoint_scenarios.nosql_burst import NosqlBurstParams
from pinchpoint_scenarios.sql_mix import SqlMixParams
from pinchpoint_scenarios.units import seconds, size_bytes, spelt_bytes, spelt_s


@pytest.mark.parametrize(
    ("given", "expected"),
    [("30s", 30), ("250ms", 0.25), ("1m30s", 90), ("2h", 7200), ("1.5s", 1.5), (5, 5), (0.2, 0.2)],
)
def test_a_duration_is_seconds(given: object, expected: float) -> None:
    """A duration becomes seconds."""
    assert seconds(given) == pytest.approx(expected)


@pytest.mark.parametrize("given", ["", "30", "s", "5 minutes", "0s", 0, -1, True, None, float("nan"), []])
def test_what_is_no_duration_is_refused_with_the_remedy(given: object) -> None:
    """An invalid duration's error shows the allowed form."""
    with pytest.raises(ValueError, match="30s"):
        seconds(given)


@pytest.mark.parametrize(
    ("given", "expected"),
    [("200B", 200), ("8KiB", 8192), ("64MB", 64_000_000), ("1.5 GiB", 1_610_612_736), (512, 512)],
)
def test_a_size_is_bytes(given: object, expected: int) -> None:
    """A size becomes bytes."""
    assert size_bytes(given) == expected


@pytest.mark.parametrize("given", ["", "8", "KiB", "8 kilobytes", "0B", 0, -1, 1.5, "1.3B", True, None, []])
def test_what_is_no_size_is_refused_with_the_remedy(given: object) -> None:
    """An invalid size's error shows the allowed form."""
    with pytest.raises(ValueError, match=r"8KiB|allowed: B, kB"):
        size_bytes(given)


@pytest.mark.parametrize(
    ("given", "said"), [(200, "200 bytes"), (8192, "8 KiB"), (1.5 * 2**30, "1.5 GiB"), (2**27, "128 MiB")]
)
def test_a_size_reads_well(given: float, said: str) -> None:
    """A size is formatted for a sentence."""
    assert spelt_bytes(given) == said


@pytest.mark.parametrize(("given", "said"), [(0.2, "1s"), (8, "8s"), (80, "1m20s"), (7500, "2h05m")])
def test_a_length_of_time_reads_well(given: float, said: str) -> None:
    """A duration is formatted for a sentence."""
    assert spelt_s(given) == said


def _problem(model: type[Any], given: dict[str, Any]) -> str:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(given)
    return "\n".join(str(error["msg"]) for error in caught.value.errors())


@pytest.mark.parametrize(
    ("model", "given", "said"),
    [
        (
            SqlMixParams,
            {"preset": "log-havy"},
            "allowed: balanced, bulk, data-heavy, log-heavy, read-mostly, tempdb; nearest: log-heavy",
        ),
        (SqlMixParams, {"operations": {"log_apend": 1}}, "nearest: log_append"),
        (
            SqlMixParams,
            {"operations": {"zzz": 1}},
            "allowed: bulk_load, data_update, lock_contend, log_append, log_batch",
        ),
        (SqlMixParams, {"operations": {}}, "no operation is named"),
        (SqlMixParams, {"operations": {"log_append": 0}}, "greater than 0"),
        (SqlMixParams, {"operations": {"log_append": float("inf")}}, "finite"),
        (SqlMixParams, {"preset": "balanced", "operations": {"log_append": 1}}, "both preset and operations"),
        (SqlMixParams, {"presets": "balanced"}, "Extra inputs"),
        (SqlMixParams, {"hot_rows": 0}, "greater than or equal to 1"),
        (SqlMixParams, {"hold": "10"}, "no duration"),
        (SqlMixParams, {"lock_rows": 2}, "allowed: lock_rows of hot_rows or less"),
        (SqlMixParams, {"skew": "80"}, "two percentages such as 80/20"),
        (
            SqlMixParams,
            {"isolation": "read_uncommitted"},
            "'read_committed', 'repeatable_read', 'serializable' or 'snapshot'",
        ),
        (SqlMixParams, {"row_bytes": "200"}, "no size"),
        (SqlMixParams, {"spill_bytes": "8KiB"}, "greater than or equal to 1048576"),
        (SqlMixParams, {"copy_rows": 100_000, "row_bytes": "1KiB"}, "98 MiB in one statement"),
        (
            SqlMixParams,
            {"operations": {"lock_contend": 1}, "hold": "2s", "timeout_s": "2s"},
            "hold is 2 s and timeout_s 2 s, so that no lock_contend could succeed",
        ),
        (NosqlBurstParams, {"fields": 0}, "greater than or equal to 1"),
        (FullCrawlParams, {"sources": [{"kind": "sharepont"}]}, "'sharepoint', 'web', 'files' or 'profiles'"),
        (
            FullCrawlParams,
            {"sources": [{"kind": "files", "url": "http://x"}]},
            "not for a source of kind files",
        ),
        (
            FullCrawlParams,
            {"sources": [{"kind": "files", "path": "/x", "endpoint": "y"}]},
            "both endpoint and path",
        ),
        (FullCrawlParams, {"sources": [{"kind": "files"}] * 2}, "two sources are named 'files'"),
        (FullCrawlParams, {"sources": [{"kind": "files", "name": "a/b"}]}, "pattern"),
        (FullCrawlParams, {"timeout_s": "soon"}, "no duration"),
    ],
)
def test_a_wrong_parameter_is_named_with_what_is_allowed(
    model: type[Any], given: dict[str, Any], said: str
) -> None:
    """Each wrong value has its own error."""
    assert said in _problem(model, given)


def test_weights_come_from_operations_a_preset_or_the_default() -> None:
    """Weights come from operations, a preset or the default."""
    assert SqlMixParams(operations={"log_append": 3}).weights == {"log_append": 3}
    assert SqlMixParams(preset="log-heavy").weights["log_append"] == 8
    assert SqlMixParams().weights == SqlMixParams(preset="balanced").weights
